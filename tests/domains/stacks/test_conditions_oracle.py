"""Conditions compared with Cluster API's own package: the three-way merge and the summary, for random lists."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles.programs import GoProgram, go_program

from hortus.domains.stacks.conditions import ConditionConflict, merged, summarize
from hortus.kube.objects import Object

TIMES = ["2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"]
TYPES = ["Applied", "Found", "Ready", "Zoned"]
CASES = 200


def _condition(kind: str) -> st.SearchStrategy[Object]:
    time = st.sampled_from(TIMES)
    true = st.builds(lambda at: {"type": kind, "status": "True", "lastTransitionTime": at}, time)
    false = st.builds(
        lambda at, severity, reason, message: {
            "type": kind,
            "status": "False",
            "severity": severity,
            "reason": reason,
            "lastTransitionTime": at,
            **({"message": message} if message else {}),
        },
        time,
        st.sampled_from(["Error", "Warning", "Info"]),
        st.sampled_from(["One", "Two"]),
        st.sampled_from(["", "text"]),
    )
    unknown = st.builds(lambda at: {"type": kind, "status": "Unknown", "lastTransitionTime": at}, time)
    return st.one_of(true, false, unknown)


def _lists(types: list[str]) -> st.SearchStrategy[list[Object]]:
    """Lists as they are stored: Ready first, the others by type, each type once."""
    ordered = sorted(types, key=lambda kind: (kind != "Ready", kind))
    parts = [st.one_of(st.none(), _condition(kind)) for kind in ordered]
    return st.tuples(*parts).map(lambda found: [one for one in found if one is not None])


def _edited(base: list[Object]) -> st.SearchStrategy[list[Object]]:
    """The list, with some conditions as they were: most writers change few of them."""
    known = {one["type"]: one for one in base}

    def mixed(other: list[Object], kept: set[str]) -> list[Object]:
        found = {one["type"]: one for one in other if one["type"] not in kept}
        found |= {kind: one for kind, one in known.items() if kind in kept}
        return sorted(found.values(), key=lambda one: (one["type"] != "Ready", one["type"]))

    return st.builds(mixed, _lists(TYPES), st.sets(st.sampled_from(TYPES)))


@st.composite
def _writers(draw: st.DrawFn) -> tuple[list[Object], list[Object], list[Object]]:
    before = draw(_lists(TYPES))
    return before, draw(_edited(before)), draw(_edited(before))


@pytest.fixture(scope="session")
def capi() -> Iterator[GoProgram]:
    yield from go_program("capiconditions")


@given(lists=_writers())
@settings(max_examples=CASES, deadline=None)
def test_two_writers_are_merged_as_cluster_api_does(
    capi: GoProgram, lists: tuple[list[Object], list[Object], list[Object]]
) -> None:
    before, after, latest = lists
    theirs = capi.ask(op="merge", before=before, after=after, latest=latest)
    try:
        ours: Any = {"conditions": merged(before, after, latest) or None}
    except ConditionConflict:
        ours = {"conflict": True}
    assert ours == _drafted(theirs, after)


def _drafted(theirs: Any, after: list[Object]) -> Any:
    """The answer, with the time of the draft where Cluster API has put the time of writing: that of a change."""
    if "conditions" not in theirs:
        return theirs
    times = {one["type"]: one["lastTransitionTime"] for one in after}
    found = [
        one if one["lastTransitionTime"] in TIMES else {**one, "lastTransitionTime": times[one["type"]]}
        for one in theirs["conditions"] or ()
    ]
    return {"conditions": found or None}


@given(found=_lists([kind for kind in TYPES if kind != "Ready"]))
@settings(max_examples=CASES, deadline=None)
def test_the_summary_is_that_of_cluster_api(capi: GoProgram, found: list[Object]) -> None:
    theirs = capi.ask(op="summary", latest=found).get("conditions") or []
    status: Object = {"conditions": list(found)}
    summarize(status, now=0.0)
    assert _timeless(status["conditions"]) == _timeless(theirs)


def _timeless(found: list[Object]) -> list[Object]:
    """Without the time of Ready, which is that of the comparison."""
    return [
        {name: value for name, value in one.items() if one["type"] != "Ready" or name != "lastTransitionTime"}
        for one in found
    ]
