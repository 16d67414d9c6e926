"""The words of a plan: problems and rows that are alike are one, and every format has each section."""

from __future__ import annotations

from typing import Any

from hortus.simulation.plan.model import FleetPlan, ObjectChange, Ongoing, PlannedProblem, Sums
from hortus.simulation.plan.page import html
from hortus.simulation.plan.printing import lines, markdown
from hortus.simulation.plan.texts import headline, rows_of


def _plan(**parts: Any) -> FleetPlan:
    empty: dict[str, Any] = {"sums": Sums(), "groups": (), "shared": (), "change": ("a change",), "ended": "Rest"}
    return FleetPlan(began="2026-01-01T00:00:00Z", settled=True, seconds=60.0, **{**empty, **parts})


def _problem(cluster: str, message: str, step: str = "mend it") -> PlannedProblem:
    return PlannedProblem(
        cluster=cluster, kind="Kyma", namespace="kcp-system", name=cluster, state="Error", reason="Ill",
        message=message, owner="operator", step=step,
    )  # fmt: skip


def test_problems_that_differ_in_the_cluster_alone_are_one_entry() -> None:
    plan = _plan(problems=(_problem("a", "a is ill"), _problem("b", "b is ill"), _problem("c", "the disk is full")))
    text = "\n".join(lines(plan))
    assert text.count("mend it") == 2
    assert (
        "  Kyma kcp-system/CLUSTER: Error, 2 clusters: a, b\n      CLUSTER is ill\n      next step, operator: mend it"
        in text
    )
    assert "  Kyma kcp-system/c: Error\n      the disk is full\n" in text
    assert headline(plan) == "No change; 3 objects need somebody."
    for shown in ("\n".join(markdown(plan)), html(plan)):
        assert "What needs somebody" in shown
        assert shown.count("mend it") == 2


def test_a_problem_of_one_cluster_names_it_and_its_reason_where_it_has_no_message() -> None:
    text = "\n".join(lines(_plan(problems=(_problem("a", "", "look at a"),))))
    assert "  Kyma kcp-system/a: Error\n      Ill\n      next step, operator: look at a" in text


def test_what_is_renewed_is_one_entry_a_kind_with_the_range_of_its_periods() -> None:
    renewed = [
        Ongoing(where="root", kind="Secret", name=f"token-{number}", writes=3, how="recurring", period=600.0 + number)
        for number in range(9)
    ]
    text = "\n".join(lines(_plan(ongoing=tuple(renewed))))
    assert (
        "Secret token-0, token-1, token-2, token-3, token-4, token-5 and 3 more (management) every 10m to 10m 8s"
        in text
    )


def test_a_plan_that_is_cut_short_names_the_time_that_passed() -> None:
    text = "\n".join(lines(_plan(ended="Horizon", passed=86400.0)))
    assert "the horizon, 1d after the change; the last write came 1m after the change" in text
    text = "\n".join(lines(_plan(ended="Budget", passed=3600.0, change=())))
    assert text.startswith("No change; cut short: the budget of time was spent.\n")
    assert "1h after the start" in text


def test_many_objects_of_a_kind_that_come_or_go_are_one_row_and_data_comes_first() -> None:
    roles = [_change("ClusterRole", f"role-{number}", "Deleted") for number in range(9)]
    space = _change("Namespace", "space", "Deleted", data=True)
    rows = [*rows_of((one, 1) for one in (*roles, space))]
    assert [(change.kind, change.name) for change, _ in rows] == [
        ("Namespace", "space"),
        ("ClusterRole", "(9): role-0, role-1, role-2 and 6 more"),
    ]


def _change(kind: str, name: str, action: Any, *, data: bool = False) -> ObjectChange:
    return ObjectChange(where="root", group="", kind=kind, name=name, action=action, data=data)
