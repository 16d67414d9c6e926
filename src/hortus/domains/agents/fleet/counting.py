"""The fleet of a configuration in numbers, and the clusters that need somebody."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from hortus.domains.agents.fleet.reasons import PlacementReason
from hortus.domains.agents.types import AgentCounts, AgentPlacement, NodeCounts, TroubledCluster
from hortus.engine.conditions import FALSE, READY, TRUE
from hortus.schema import Condition

MOST_WORST: Final = 10
"""Clusters that a status names."""
_LONGEST: Final = 300
"""Characters of a message there: the AgentPlacement has the whole."""
_AWAY: Final = frozenset(
    {
        PlacementReason.HIBERNATED,
        PlacementReason.UNREACHABLE,
        PlacementReason.NO_ACCESS,
        PlacementReason.CLUSTER_MISSING,
    }
)
"""Reasons of clusters that cannot be changed now."""
_HELD: Final = frozenset({PlacementReason.WAITS, PlacementReason.RUNNING, PlacementReason.ROLLING})
"""Reasons of clusters that a rollout can hold back: one that it has admitted waits no more if a request is refused or
finalizers hold an object."""


class AgentClusterState:
    """The states of a cluster that is to have an agent, each in one word."""

    READY: Final = "Ready"
    """The wanted version runs on all nodes."""
    WAITING: Final = "Waiting"
    """A rollout holds the wanted version back."""
    PROGRESSING: Final = "Progressing"
    FAILED: Final = "Failed"
    AWAY: Final = "Away"
    """Hibernated, or not to be reached."""
    LEAVING: Final = "Leaving"


AGENT_STATES: Final = (
    AgentClusterState.READY,
    AgentClusterState.WAITING,
    AgentClusterState.PROGRESSING,
    AgentClusterState.FAILED,
    AgentClusterState.AWAY,
    AgentClusterState.LEAVING,
)


class PlacementState(NamedTuple):
    """One AgentPlacement, and whether it waits for a rollout."""

    placement: AgentPlacement
    waits: bool


def ready_of(placement: AgentPlacement) -> Condition | None:
    """The condition Ready, as far as it is of the present spec."""
    return next((one for one in placement.status.conditions if one.type == READY), None)


def is_current(placement: AgentPlacement) -> bool:
    return placement.status.version == placement.spec.version


def is_ready(placement: AgentPlacement) -> bool:
    ready = ready_of(placement)
    return is_current(placement) and ready is not None and ready.status == TRUE


def is_failed(placement: AgentPlacement) -> bool:
    ready = ready_of(placement)
    return ready is not None and ready.status == FALSE


def agent_state_of(known: PlacementState) -> str:
    """The state of one cluster, in one word."""
    placement, ready = known.placement, ready_of(known.placement)
    if placement.metadata.deletion_timestamp is not None:
        return AgentClusterState.LEAVING
    if ready is not None and ready.reason in _AWAY:
        return AgentClusterState.AWAY
    if is_failed(placement):
        return AgentClusterState.FAILED
    if known.waits and (ready is None or ready.reason in _HELD):
        return AgentClusterState.WAITING
    return AgentClusterState.READY if is_ready(placement) else AgentClusterState.PROGRESSING


def counted(states: Sequence[PlacementState], *, selected: int, overruled: int) -> AgentCounts:
    """The numbers of clusters."""
    return AgentCounts(
        selected=selected,
        current=sum(is_current(one.placement) for one in states),
        ready=sum(is_ready(one.placement) for one in states),
        waiting=sum(one.waits for one in states),
        failed=sum(is_failed(one.placement) for one in states),
        overruled=overruled,
    )


def summary(states: Sequence[PlacementState]) -> NodeCounts:
    """The nodes of all clusters."""
    nodes = [one.placement.status.nodes for one in states]
    return NodeCounts(
        desired=sum(one.desired for one in nodes),
        available=sum(one.available for one in nodes),
        updated=sum(one.updated for one in nodes),
    )


def worst_of(states: Sequence[PlacementState]) -> list[TroubledCluster]:
    """The clusters without a running agent: those that failed, then those with most nodes without one, then by name."""

    def rank(placement: AgentPlacement) -> tuple[bool, int, str]:
        nodes = placement.status.nodes
        return not is_failed(placement), nodes.available - nodes.desired, placement.spec.cluster

    ill = sorted((one.placement for one in states if not is_ready(one.placement)), key=rank)
    return [_troubled(placement) for placement in ill[:MOST_WORST]]


def _troubled(placement: AgentPlacement) -> TroubledCluster:
    ready = ready_of(placement)
    reason = ready.reason if ready is not None else "Pending"
    return TroubledCluster(
        name=placement.spec.cluster,
        reason=reason,
        message=ready.message[:_LONGEST] if ready is not None else "",
    )
