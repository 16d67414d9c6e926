"""Gardener's own decoding, defaults and validation, next to a corpus of what Gardener 1.150 answered elsewhere."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.oracles.programs import GoProgram, go_program

from hortus.kube.objects import Object
from hortus.kube.patches import apply_json_patch

pytestmark = pytest.mark.oracle

_CORPORA = Path(__file__).resolve().parents[3] / "shared" / "corpora"
_CUT = 240
"""Characters of a message that the corpus holds."""


@pytest.fixture(scope="module")
def gardener() -> Iterator[GoProgram]:
    yield from go_program("gardener")


@pytest.fixture(scope="module")
def corpora() -> Path:
    """The folder of the corpora. `HORTUS_CORPORA` names another place."""
    folder = Path(os.environ.get("HORTUS_CORPORA") or _CORPORA)
    if not folder.is_dir():
        pytest.skip(f"no corpora at {folder}: set HORTUS_CORPORA to compare with what Gardener answered elsewhere")
    return folder


def test_the_program_answers_as_the_corpus_says(gardener: GoProgram, corpora: Path) -> None:
    bases = orjson.loads((corpora / "shoot-bases.json").read_bytes())
    cases = [orjson.loads(line) for line in (corpora / "shoots.jsonl").read_bytes().splitlines()]
    differing = {}
    for case in cases:
        sent = apply_json_patch(copy.deepcopy(bases[case["base"]]), case["patch"])
        wanted, found = _expected(case, sent), _answered(gardener.ask(op="create", object=sent), case, sent)
        if wanted != found:
            differing[case["id"]] = wanted, found
    assert differing == {}
    assert len(cases) > 300


def _expected(case: Object, sent: Object) -> Object:
    expected = dict(case["expected"])
    if "errors" in expected:
        expected["errors"] = _sorted(expected["errors"])
    if "defaulted" in expected:
        expected["defaulted"] = _steady(apply_json_patch(copy.deepcopy(sent["spec"]), expected["defaulted"]), sent)
    return expected


def _answered(answer: Object, case: Object, sent: Object) -> Object:
    found: Object = {"accepted": "decoding" not in answer and not answer["errors"]}
    for name in ("decoding", "strictDecoding"):
        if name in answer:
            found[name] = answer[name]
    if answer["errors"]:
        found["errors"] = _sorted(answer["errors"])
    if "defaulted" in case["expected"]:
        found["defaulted"] = _steady(answer["defaulted"]["spec"], sent)
    return found


def _sorted(errors: list[Object]) -> list[tuple[Any, ...]]:
    """Rules that go through a map answer in no order."""
    return sorted((error["type"], error["field"], error["message"][:_CUT]) for error in errors)


def _steady(spec: Object, sent: Object) -> Object:
    """Without the maintenance window where Gardener has drawn it."""
    if "timeWindow" not in sent["spec"].get("maintenance", {}):
        spec["maintenance"].pop("timeWindow")
    return spec
