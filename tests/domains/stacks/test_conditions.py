"""Conditions of Cluster API's v1beta1: severity, transition time, order and summary."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hortus.domains.stacks.conditions import (
    Severity,
    condition_of,
    conditions_of,
    is_false,
    is_true,
    mark_false,
    mark_true,
    remove,
    summarize,
)

NOW, LATER = "1970-01-01T00:01:40Z", "1970-01-01T00:03:20Z"


def failed(kind: str, severity: Severity = Severity.INFO, **changed: str) -> dict[str, Any]:
    named = {"reason": "Waiting", "message": "waits", **changed}
    return {"type": kind, "status": "False", "severity": severity.value, "lastTransitionTime": NOW, **named}


def true(kind: str) -> dict[str, Any]:
    return {"type": kind, "status": "True", "lastTransitionTime": NOW}


def test_a_true_condition_has_no_reason_severity_or_message() -> None:
    status: dict[str, Any] = {"conditions": [failed("A")]}
    mark_true(status, "A", now=200.5)
    assert status == {"conditions": [{"type": "A", "status": "True", "lastTransitionTime": LATER}]}


@pytest.mark.parametrize(
    ("reason", "severity", "message", "time"),
    [
        ("Waiting", Severity.INFO, "waits", NOW),
        ("Failed", Severity.INFO, "waits", LATER),
        ("Waiting", Severity.ERROR, "waits", LATER),
        ("Waiting", Severity.INFO, "fails", LATER),
    ],
)
def test_the_time_moves_with_reason_severity_and_message(
    reason: str, severity: Severity, message: str, time: str
) -> None:
    status: dict[str, Any] = {"conditions": [failed("A")]}
    mark_false(status, "A", reason, severity, message, now=200)
    assert conditions_of(status)[0]["lastTransitionTime"] == time


def test_an_unchanged_condition_leaves_the_list_as_it_is() -> None:
    before = [failed("B"), true("A")]
    status: dict[str, Any] = {"conditions": before}
    mark_true(status, "A", now=200)
    assert status["conditions"] is before


def test_ready_comes_first_and_the_others_by_type() -> None:
    status: dict[str, Any] = {}
    for kind in ("B", "Zoo", "A"):
        mark_true(status, kind, now=100)
    summarize(status, now=100)
    assert [condition["type"] for condition in conditions_of(status)] == ["Ready", "A", "B", "Zoo"]


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ([true("A"), true("B")], {"status": "True"}),
        ([true("A"), failed("B")], {"status": "False", "severity": "Info", "reason": "Waiting", "message": "waits"}),
        (
            [failed("A"), failed("B", Severity.WARNING, reason="Slow")],
            {"status": "False", "severity": "Warning", "reason": "Slow", "message": "waits"},
        ),
        (
            [failed("C", Severity.ERROR, reason="Late"), failed("B", Severity.ERROR, reason="First"), failed("A")],
            {"status": "False", "severity": "Error", "reason": "First", "message": "waits"},
        ),
        ([{"type": "A", "status": "Unknown"}, true("B")], {"status": "True"}),
        ([{"type": "A", "status": "Unknown", "reason": "New"}], {"status": "Unknown", "reason": "New"}),
    ],
)
def test_ready_is_the_worst_of_the_others(others: list[dict[str, Any]], expected: dict[str, Any]) -> None:
    status: dict[str, Any] = {"conditions": others}
    summarize(status, now=100)
    assert condition_of(status, "Ready") == {"type": "Ready", "lastTransitionTime": NOW, **expected}


@given(st.permutations([true("A"), failed("B"), failed("C", Severity.ERROR), failed("D", Severity.ERROR)]))
def test_the_summary_does_not_depend_on_the_order(others: list[dict[str, Any]]) -> None:
    status: dict[str, Any] = {"conditions": list(others)}
    summarize(status, now=100)
    found = condition_of(status, "Ready")
    assert found is not None
    assert (found["severity"], found["reason"]) == ("Error", "Waiting")


def test_without_other_conditions_there_is_no_ready() -> None:
    status: dict[str, Any] = {}
    summarize(status, now=100)
    assert status == {}


def test_a_removed_condition_is_neither_true_nor_false() -> None:
    status: dict[str, Any] = {"conditions": [true("A"), failed("B")]}
    assert (is_true(status, "A"), is_false(status, "B")) == (True, True)
    remove(status, "A")
    remove(status, "B")
    assert not any(test(status, kind) for test in (is_true, is_false) for kind in "AB")
