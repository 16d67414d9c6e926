"""Gardener's judgement of Shoots that our own code makes, or that our own pages and tests show."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from tests.oracles.programs import GoProgram, built_program

from hortus.kube.objects import Object

_KNOWN: Final = {
    r"unknown field \"spec\.kubernetes\.kubeAPIServer\.oidcConfig\"": "sent up to Kubernetes 1.31, of older gardens",
}
"""Refusals of what our code sends on purpose, by their words, with the reason of each."""


class Judge:
    def __init__(self, program: GoProgram) -> None:
        self._program = program

    def refusals(self, obj: Object) -> list[str]:
        """The garden's answer to a strict client that creates the object, without what is known."""
        answer = self._program.ask(op="create", object=obj, brief=True, only="stored")
        if "failure" in answer:  # Gardener panics on some, and its API server answers with that
            return [answer["failure"]]
        said = [answer[name] for name in ("decoding", "strictDecoding") if name in answer]
        said += [error["message"] for error in answer.get("storedErrors") or ()]
        return [text for text in said if not any(re.search(pattern, text) for pattern in _KNOWN)]


def judge() -> Iterator[Judge | None]:
    """The judge, for use in a fixture; None where the oracle is not built."""
    binary = built_program("gardener")
    if binary is None:
        yield None
        return
    program = GoProgram(binary)
    program.ask(op="gates", gates={"InPlaceNodeUpdates": True})
    yield Judge(program)
    program.close()
