"""The rules of Shoots, next to Gardener's own validation: the same errors for the same Shoots and changes.

Compared are type and place of each error, and its message, but for what docs/simulated-garden.md lists.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

import orjson
import pytest
from tests.gardener.shoots.corpus import cases
from tests.gardener.shoots.generator import shoots
from tests.gardener.shoots.updates import updates
from tests.oracles.programs import GoProgram, go_program

from hortus.gardener.shoots import change_problems, defaulted, shoot_problems
from hortus.kube.objects import Object
from hortus.schema import FieldError
from hortus.schema.builtin import ShapeError

_CUT: Final = 240
"""Characters of a message that the corpus holds."""
_GENERATED: Final = "xxxxx"
"""The program puts this after `generateName`."""
_GO_VALUES: Final = re.compile(
    r"(\.controlPlane|\.exposure|\.systemComponents|\.volume|\.image\.version|admissionPlugins\[\d+\]\.config): "
    r"Invalid value: .*"
)
"""Errors that show a whole object: Gardener shows the fields of its Go struct, or the bytes as they were sent."""
_WORDS: Final = (
    (re.compile(r"(\.zones: Invalid value: )\[\]"), r"\1null"),
    (re.compile(r'supported values: "memory", "cpu"'), 'supported values: "cpu", "memory"'),
    (re.compile(r"(cannot update shoot spec if deletion timestamp is set).*", re.DOTALL), r"\1"),
)
_IMPROPER: Final = re.compile(r"\.kubernetes\.version: .*improper constraint")
_EMPTY_LIST: Final = b'"preloadedImagesVerificationAllowlist":[]'

Refusal = tuple[str, str]
"""Type and text of an error."""


@pytest.fixture(scope="module")
def gardener() -> Iterator[GoProgram]:
    for program in go_program("gardener"):
        # The simulated garden updates nodes in place, as gardens do that have the gate on.
        program.ask(op="gates", gates={"InPlaceNodeUpdates": True})
        yield program


def test_the_corpus_is_refused_as_by_gardener() -> None:
    compared = 0
    for case in cases():
        if "decoding" in case.expected:
            continue
        found = shoot_problems(defaulted(case.shoot))
        # The corpus has the answers of one function; a garden also refuses its own finalizers on creation.
        own = [problem for problem in found if not problem.path.startswith("metadata.finalizers[")]
        wanted = {(one["type"], _plain(one["message"])[:_CUT]) for one in case.expected.get("errors", ())}
        assert {(kind, text[:_CUT]) for kind, text in _refusals(own)} == wanted, case.id
        compared += 1
    assert compared > 290


@pytest.mark.oracle
@pytest.mark.parametrize(("seed", "count"), [(1, 2_000), pytest.param(2, 20_000, marks=pytest.mark.soak)])
def test_random_shoots_are_refused_as_by_gardener(gardener: GoProgram, seed: int, count: int) -> None:
    refused = 0
    for drawn in shoots(seed, count):
        answer = gardener.ask(op="create", object=drawn.shoot)
        try:
            shoot = _decoded(drawn.shoot)
        except ShapeError:
            assert answer["decoding"], drawn.names
            continue
        found = [one for one in shoot_problems(shoot) if not _is_of_the_strategy(one)]
        assert _compared(_refusals(found), drawn.shoot) == _compared(_answered(answer), drawn.shoot), drawn.names
        refused += bool(found)
    assert refused > count // 2


@pytest.mark.oracle
@pytest.mark.parametrize(("seed", "count"), [(3, 2_000), pytest.param(4, 20_000, marks=pytest.mark.soak)])
def test_random_changes_are_refused_as_by_gardener(gardener: GoProgram, seed: int, count: int) -> None:
    compared = 0
    for drawn in updates(seed, count):
        if drawn.subresource:
            continue
        answer = gardener.ask(op="update", object=drawn.sent, old=drawn.held)
        if "failure" in answer:
            # Gardener reads versions that are none, and fails.
            assert "nil pointer" in answer["failure"], drawn.names
            continue
        try:
            held, sent = map(_decoded, (drawn.held, drawn.sent))
        except ShapeError:
            assert answer.get("decoding") or answer.get("oldDecoding"), drawn.names
            continue
        found = _compared(_refusals(change_problems(sent, held)), drawn.sent)
        assert found == _compared(_answered(answer), drawn.sent), drawn.names
        compared += 1
    assert compared > count // 2


def _decoded(sent: Object) -> Object:
    """The Shoot as the rules see it; an API server generates names before."""
    shoot = defaulted(sent, hour=0)
    metadata = shoot["metadata"]
    if metadata.get("generateName") and not metadata.get("name"):
        metadata["name"] = f"{metadata['generateName']}{_GENERATED}"
    return shoot


def _is_of_the_strategy(problem: FieldError) -> bool:
    """A rule of creations that the program answers in another field."""
    return problem.path.startswith("metadata.finalizers[") or "force-deletion" in problem.path


def _refusals(problems: Iterable[FieldError]) -> set[Refusal]:
    return {(problem.reason, _plain(str(problem))) for problem in problems}


def _answered(answer: Object) -> set[Refusal]:
    # A version that is none is read in two ways, and refused twice.
    errors = [error for error in answer["errors"] if not _IMPROPER.search(error["message"])]
    return {(error["type"], _plain(error["message"])) for error in errors}


def _compared(refusals: set[Refusal], sent: Object) -> set[Refusal]:
    """Gardener distinguishes an empty list of images from none until it has stored the Shoot."""
    if _EMPTY_LIST not in orjson.dumps(sent):
        return refusals
    return {one for one in refusals if "preloadedImagesVerificationAllowlist: Forbidden" not in one[1]}


def _plain(message: str) -> str:
    message = _GO_VALUES.sub(r"\1", message)
    for pattern, text in _WORDS:
        message = pattern.sub(text, message)
    return message
