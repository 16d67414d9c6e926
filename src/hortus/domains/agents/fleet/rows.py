"""The rows of the agents of clusters in `hortus top` and `hortus problems`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from hortus.domains.agents.fleet.counting import is_failed, is_ready, ready_of
from hortus.domains.agents.fleet.explaining import next_step
from hortus.domains.agents.types import AGENT_PLACEMENTS, AgentPlacement
from hortus.engine import Actor
from hortus.engine.fleet import FleetKind, FleetObjects, FleetRow, FleetView, RowStanding, reading, seconds_of

_PLACEMENTS: Final = FleetKind(AGENT_PLACEMENTS, reading(AgentPlacement))


class PlacementSubject(NamedTuple):
    """The agent of one cluster."""

    placement: AgentPlacement


class PlacementRows(FleetView[PlacementSubject]):
    """One row for each AgentPlacement."""

    kinds = (_PLACEMENTS,)
    page = "agents"
    order = 6

    def subjects(self, objects: FleetObjects) -> Iterable[PlacementSubject]:
        return map(PlacementSubject, objects.all(_PLACEMENTS, AgentPlacement))

    def row(self, subject: PlacementSubject) -> FleetRow:
        placement = subject.placement
        metadata, ready = placement.metadata, ready_of(placement)
        well, failed = is_ready(placement), is_failed(placement)
        return FleetRow(
            kind=AGENT_PLACEMENTS.kind,
            namespace=metadata.namespace,
            name=metadata.name,
            standing=RowStanding.FAILED if failed else RowStanding.WELL if well else RowStanding.WAITING,
            state="Ready" if well else "Failed" if failed else "Progressing",
            reason=ready.reason if ready is not None and not well else "",
            message=ready.message if ready is not None and not well else "",
            owner=Actor.OPERATOR if failed else Actor.NOBODY,
            step=next_step(placement) if failed else "",
            since=seconds_of(ready.last_transition_time) if ready is not None else None,
        )
