"""Agents in the dashboard: the configurations with their numbers, and the agent of each cluster."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from hortus.domains.agents.fleet.rows import PlacementRows, PlacementSubject
from hortus.domains.agents.types import AGENT_CONFIGURATIONS, AGENT_PLACEMENTS, AgentConfiguration, AgentPlacement
from hortus.engine.fleet import FleetKind, FleetObjects, reading
from hortus.engine.pages import (
    Bar,
    BarPart,
    Bars,
    Block,
    Cell,
    ClusterNames,
    ClusterPart,
    FactList,
    FleetPage,
    Grid,
    Item,
    ItemKey,
    TreeNode,
    is_at,
    item_of,
    node_of,
)

_CONFIGURATIONS: Final = FleetKind(AGENT_CONFIGURATIONS, reading(AgentConfiguration))
_PLACEMENTS: Final = FleetKind(AGENT_PLACEMENTS, reading(AgentPlacement))


class AgentPage(FleetPage):
    """The agent of each cluster as rows, and the configurations that they come from."""

    name = "agents"
    title = "Agents"
    order = 40
    intro = "Monitoring agents: where they run, and what they wait for."
    kinds = (_CONFIGURATIONS, _PLACEMENTS)

    def blocks(self, objects: FleetObjects, now: float) -> Sequence[Block]:
        known = sorted(objects.all(_CONFIGURATIONS, AgentConfiguration), key=lambda one: one.metadata.name)
        worst: list[list[Cell]] = [
            [one.name, configuration.metadata.name, one.reason, one.message]
            for configuration in known
            for one in configuration.status.worst
        ]
        return (
            Bars("Configurations", [_bar(one) for one in known], "There is no AgentConfiguration."),
            Grid("Clusters without a running agent", ("Cluster", "Configuration", "Reason", "Because"), worst),
        )

    def item(self, objects: FleetObjects, key: ItemKey, now: float) -> Item | None:
        known = objects.all(_PLACEMENTS, AgentPlacement)
        placement = next((one for one in known if is_at(key, AGENT_PLACEMENTS, one.metadata)), None)
        if placement is None:
            return None
        spec, status = placement.spec, placement.status
        facts: list[tuple[str, Cell]] = [
            ("Cluster", spec.cluster),
            ("Configuration", spec.configuration),
            ("Agent", f"{spec.agent_namespace}/{spec.agent_name}"),
            ("Nodes", f"{status.nodes.available} of {status.nodes.desired}"),
            ("Version", status.version or "none"),
        ]
        return item_of(_node(placement), FactList("Agent", facts))


class PlacementPart(ClusterPart):
    """The agents of a cluster."""

    kinds = (_PLACEMENTS,)
    order = 50

    def nodes(self, objects: FleetObjects, cluster: ClusterNames, now: float) -> Iterable[TreeNode]:
        for placement in objects.all(_PLACEMENTS, AgentPlacement):
            if placement.spec.cluster in cluster.names:
                yield _node(placement)


def _node(placement: AgentPlacement) -> TreeNode:
    row = PlacementRows().row(PlacementSubject(placement))
    return node_of(row, page=PlacementRows.page, conditions=placement.status.conditions)


def _bar(configuration: AgentConfiguration) -> Bar:
    counts = configuration.status.clusters
    rest = max(0, counts.selected - counts.ready - counts.failed)
    parts = (
        BarPart("ready", "well", counts.ready),
        BarPart("failed", "failed", counts.failed),
        BarPart("on their way", "waiting", rest),
    )
    nodes = configuration.status.nodes
    note = f"{nodes.available} of {nodes.desired} nodes"
    return Bar(f"{configuration.metadata.name}: {counts.ready} of {counts.selected} clusters", parts, note)
