"""The graph of stacks, releases, Clusters and addons, made of a view of live objects: pure, for every notation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Any, Final, NamedTuple

import msgspec

from hortus.domains.stacks.addons.creation import addon_key
from hortus.domains.stacks.capi import CapiCluster
from hortus.domains.stacks.flux.objects import CLUSTER_LABEL, HELM_RELEASES, FluxObject, state_of
from hortus.domains.stacks.live import StacksView
from hortus.domains.stacks.names import parse_either
from hortus.domains.stacks.rows import AddonRows, AddonSubject, ReleaseRows, ReleaseSubject
from hortus.domains.stacks.types import (
    CLUSTER_ADDONS,
    CLUSTER_STACK_RELEASES,
    CLUSTER_STACKS,
    ClusterStack,
    ClusterStackRelease,
)
from hortus.engine.conditions import FALSE, READY
from hortus.engine.fleet import FleetRow, RowStanding
from hortus.kube.objects import ObjectKey
from hortus.terminal.escaping import mermaid as escaped

CLUSTER: Final = "Cluster"


class NodeState(StrEnum):
    """The state of a node, as every notation marks it."""

    WELL = "ready"
    WAITING = "waiting"
    FAILED = "failed"
    PLAIN = ""
    """An object that reports no state here, such as one that is only named by another."""


_STATES: Final = {
    RowStanding.WELL: NodeState.WELL,
    RowStanding.WAITING: NodeState.WAITING,
    RowStanding.FAILED: NodeState.FAILED,
}


class NodeId(NamedTuple):
    """An object in the graph."""

    kind: str
    namespace: str
    name: str


class GraphNode(msgspec.Struct, frozen=True):
    """One object with its state."""

    id: NodeId
    state: NodeState = NodeState.PLAIN
    reason: str = ""
    message: str = ""


class GraphEdge(NamedTuple):
    """A relation, read from `source` to `target`."""

    source: NodeId
    relation: str
    target: NodeId


class StacksGraph(NamedTuple):
    """All nodes and edges, in an order that does not change while the objects stay."""

    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]


def graph_of(view: StacksView) -> StacksGraph:
    """The graph of a view. An object that is only named, such as one of a provider, is a node without a state."""
    nodes = {one.id: one for one in _nodes(view)}
    edges = tuple(_edges(view))
    for edge in edges:
        for end in (edge.source, edge.target):
            nodes.setdefault(end, GraphNode(end))
    return StacksGraph(tuple(nodes.values()), edges)


def mermaid(graph: StacksGraph) -> Iterator[str]:
    """A flowchart in Mermaid's notation, in which nodes that are not ready are marked."""
    ids = {node.id: f"n{number}" for number, node in enumerate(graph.nodes)}
    yield "flowchart LR"
    for node in graph.nodes:
        kind, namespace, name = node.id
        reason = f"<br/>{node.state}: {escaped(node.reason)}" if node.reason else ""
        yield f'  {ids[node.id]}["{escaped(kind)}<br/>{escaped(f"{namespace}/{name}")}{reason}"]'
    yield from (f"  {ids[one.source]} -->|{one.relation}| {ids[one.target]}" for one in graph.edges)
    yield "  classDef waiting stroke-dasharray: 4"
    yield "  classDef failed stroke:#b3261e,stroke-width:3px"
    for state in (NodeState.WAITING, NodeState.FAILED):
        if marked := [ids[node.id] for node in graph.nodes if node.state is state]:
            yield f"  class {','.join(marked)} {state}"


def _nodes(view: StacksView) -> Iterator[GraphNode]:
    for stack in sorted(view.stacks, key=lambda one: (one.metadata.namespace, one.metadata.name)):
        yield _stack(stack)
    for release in sorted(view.releases, key=_release_order):
        yield _node(CLUSTER_STACK_RELEASES.kind, ReleaseRows().row(ReleaseSubject(release)))
    for cluster in sorted(view.clusters, key=lambda one: one.key):
        if cluster.has_topology:
            yield GraphNode(_id_of(cluster))
    for addon in sorted(view.addons, key=lambda one: (one.metadata.namespace, one.metadata.name)):
        yield _node(CLUSTER_ADDONS.kind, AddonRows().row(AddonSubject(addon)))
    for handed in _handed(view):
        yield _helm_release(handed)


def _edges(view: StacksView) -> Iterator[GraphEdge]:
    for release in sorted(view.releases, key=_release_order):
        namespace = release.metadata.namespace
        at = NodeId(CLUSTER_STACK_RELEASES.kind, namespace, release.metadata.name)
        for owner in release.metadata.owner_references:
            yield GraphEdge(NodeId(owner.kind, namespace, owner.name), "offers", at)
        if (provider := release.spec.provider_ref) is not None:
            yield GraphEdge(at, "waits for", NodeId(provider.kind, namespace, provider.name))
        for cluster in sorted(view.users(release), key=lambda one: one.key):
            yield GraphEdge(_id_of(cluster), "uses", at)
    for addon in sorted(view.addons, key=lambda one: (one.metadata.namespace, one.metadata.name)):
        namespace = addon.metadata.namespace
        at = NodeId(CLUSTER_ADDONS.kind, namespace, addon.metadata.name)
        yield GraphEdge(NodeId(CLUSTER, namespace, addon.spec.cluster_ref.name), "has", at)
    for handed in _handed(view):
        metadata = handed.metadata
        addon_at = addon_key(ObjectKey(metadata.namespace, metadata.labels.get(CLUSTER_LABEL, "")))
        source = NodeId(CLUSTER_ADDONS.kind, addon_at.namespace, addon_at.name)
        yield GraphEdge(source, "by Flux", NodeId(HELM_RELEASES.kind, metadata.namespace, metadata.name))


def _handed(view: StacksView) -> list[FluxObject]:
    return sorted(view.helm_releases, key=lambda one: (one.metadata.namespace, one.metadata.name))


def _helm_release(release: FluxObject) -> GraphNode:
    found = state_of(release)
    state = NodeState.WELL if found.ready else NodeState.FAILED if found.failed else NodeState.WAITING
    at = NodeId(HELM_RELEASES.kind, release.metadata.namespace, release.metadata.name)
    return GraphNode(at, state) if found.ready else GraphNode(at, state, found.reason, found.message)


def _release_order(release: ClusterStackRelease) -> tuple[Any, ...]:
    name = parse_either(release.metadata.name)
    if name is None:
        return (release.metadata.namespace, release.metadata.name, (), False, ())
    version = name.version
    return (
        release.metadata.namespace,
        f"{name.provider}-{name.stack}",
        name.kubernetes,
        not version.is_stable,
        version.order,
    )


def _id_of(cluster: CapiCluster) -> NodeId:
    return NodeId(CLUSTER, cluster.key.namespace, cluster.key.name)


def _stack(stack: ClusterStack) -> GraphNode:
    """A ClusterStack fails where its summary is False with severity Error, as releases and addons do."""
    at = NodeId(CLUSTER_STACKS.kind, stack.metadata.namespace, stack.metadata.name)
    summary = next((one for one in stack.status.conditions if one.type == READY), None)
    if summary is None:
        return GraphNode(at, NodeState.WAITING)
    if summary.status != FALSE:
        return GraphNode(at, NodeState.WELL)
    state = NodeState.FAILED if summary.severity == "Error" else NodeState.WAITING
    return GraphNode(at, state, summary.reason, summary.message)


def _node(kind: str, row: FleetRow) -> GraphNode:
    return GraphNode(NodeId(kind, row.namespace, row.name), _STATES[row.standing], row.reason, row.message)


def neighbours(edges: Iterable[GraphEdge]) -> dict[NodeId, list[NodeId]]:
    """The nodes that edges join to each node, in either direction."""
    found: dict[NodeId, list[NodeId]] = {}
    for edge in edges:
        found.setdefault(edge.source, []).append(edge.target)
        found.setdefault(edge.target, []).append(edge.source)
    return found


__all__ = ["CLUSTER", "GraphEdge", "GraphNode", "NodeId", "NodeState", "StacksGraph", "graph_of", "mermaid"]
