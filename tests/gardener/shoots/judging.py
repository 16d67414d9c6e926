"""Gardener's judgement of Shoots that our own code makes, or that our own pages and tests show."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from tests.oracles.programs import GoProgram, built_program

from hortus.kube.objects import Object

_BINDING: Final = r"^spec\.secretBindingName: Forbidden: for Kubernetes versions >= 1\.34"
_PROFILE: Final = r"^spec\.cloudProfileName: Forbidden: for Kubernetes version >= 1\.34"
_KNOWN: Final = {
    _BINDING: "neither the conversion nor the examples know credentialsBindingName",
    _PROFILE: "the examples have the older of two fields",
    r"^spec\.networking\.type: Required": "the conversion passes on a type that its Runtime leaves out",
    r"^spec\.provider\.workers: Forbidden: at least one active": "the conversion passes on pools of no nodes",
    r"^spec\.provider\.workers\[\d+\]\.maximum: Forbidden: maximum node": "and more zones than nodes of a pool",
    r"unknown field \"spec\.kubernetes\.kubeAPIServer\.oidcConfig\"": "the conversion sends what Gardener has removed",
    r"unknown feature gate [AB]$": "names that a test has made up",
    r"unknown API group version \"batch/v2\"": "a name that a test has made up",
}
"""Refusals that our code still has to avoid, by their words, with the reason of each."""


class Judge:
    def __init__(self, program: GoProgram) -> None:
        self._program = program

    def refusals(self, shoot: Object) -> list[str]:
        """The garden's answer to a strict client that creates the Shoot, without what is known."""
        answer = self._program.ask(op="create", object=shoot, brief=True, only="stored")
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
