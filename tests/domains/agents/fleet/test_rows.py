"""The rows of the agents of clusters in `hortus top` and `hortus problems`."""

from __future__ import annotations

import msgspec
import pytest
from tests.domains.agents.fleet.test_selection import state

from hortus.domains.agents.fleet.rows import PlacementRows, PlacementSubject
from hortus.engine import Actor
from hortus.engine.fleet import RowStanding


@pytest.mark.parametrize(
    ("status", "reason", "standing", "owner", "shown"),
    [
        ("True", "AgentsRunning", RowStanding.WELL, Actor.NOBODY, ("Ready", "")),
        ("Unknown", "AgentsRolling", RowStanding.WAITING, Actor.NOBODY, ("Progressing", "AgentsRolling")),
        ("False", "OtherWorkload", RowStanding.FAILED, Actor.OPERATOR, ("Failed", "OtherWorkload")),
    ],
)
def test_a_row_shows_the_state_and_the_owner_of_the_next_step(
    status: str, reason: str, standing: RowStanding, owner: Actor, shown: tuple[str, str]
) -> None:
    found = state("one", status, reason, desired=3, available=3)
    row = PlacementRows().row(PlacementSubject(found.placement))
    assert (row.standing, row.owner, row.state, row.reason) == (standing, owner, *shown)
    assert bool(row.step) is (standing is RowStanding.FAILED)
    assert row.since is not None and row.kind == "AgentPlacement"


def test_a_placement_without_a_report_waits() -> None:
    found = msgspec.structs.replace(state("one", "True", "AgentsRunning", desired=1, available=1).placement)
    bare = msgspec.structs.replace(found, status=type(found.status)())
    row = PlacementRows().row(PlacementSubject(bare))
    assert (row.standing, row.state, row.since) == (RowStanding.WAITING, "Progressing", None)
