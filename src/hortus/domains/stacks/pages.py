"""Cluster stacks in the dashboard: the catalogue of releases, the addons of clusters, and those of one cluster."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from hortus.domains.stacks.rows import AddonRows, AddonSubject, ReleaseRows, ReleaseSubject
from hortus.domains.stacks.types import (
    CLUSTER_ADDONS,
    CLUSTER_STACK_RELEASES,
    CLUSTER_STACKS,
    ClusterAddon,
    ClusterStack,
    ClusterStackRelease,
    ManagedResource,
    SeverityCondition,
)
from hortus.engine.fleet import FleetKind, FleetObjects, reading
from hortus.engine.pages import (
    Block,
    Cell,
    ClusterNames,
    ClusterPart,
    FleetPage,
    Grid,
    Item,
    ItemKey,
    StateMark,
    TreeNode,
    is_at,
    item_of,
    node_of,
)
from hortus.schema import Condition, ObjectMeta

_STACKS: Final = FleetKind(CLUSTER_STACKS, reading(ClusterStack))
_RELEASES: Final = FleetKind(CLUSTER_STACK_RELEASES, reading(ClusterStackRelease))
_ADDONS: Final = FleetKind(CLUSTER_ADDONS, reading(ClusterAddon))


class StackPage(FleetPage):
    """Releases and addons as rows, and the stacks that offer them."""

    name = "stacks"
    title = "Stacks"
    order = 30
    intro = "Releases of cluster stacks, and the addons that clusters have of them."
    kinds = (_STACKS, _RELEASES, _ADDONS)

    def blocks(self, objects: FleetObjects, now: float) -> Sequence[Block]:
        rows: list[list[Cell]] = []
        for stack in sorted(objects.all(_STACKS, ClusterStack), key=lambda one: one.metadata.name):
            spec, status = stack.spec, stack.status
            rows += [
                [stack.metadata.name, f"{spec.provider}-{spec.name} {spec.kubernetes_version}", release.name,
                 StateMark("well" if release.ready else "waiting", release.phase or "pending"), release.message]
                for release in status.summary
            ]  # fmt: skip
            if not status.summary:
                rows.append([stack.metadata.name, f"{spec.provider}-{spec.name} {spec.kubernetes_version}", "", "", ""])
        heads = ("ClusterStack", "Stack", "Release", "State", "Because")
        return (Grid("Catalogue", heads, rows, "No ClusterStack offers releases."),)

    def item(self, objects: FleetObjects, key: ItemKey, now: float) -> Item | None:
        release = next(
            (one for one in objects.all(_RELEASES, ClusterStackRelease) if _is(one.metadata, key, release=True)), None
        )
        if release is not None:
            return item_of(_release_node(release), _resources(release.status.resources))
        addon = next((one for one in objects.all(_ADDONS, ClusterAddon) if _is(one.metadata, key, release=False)), None)
        return None if addon is None else item_of(_addon_node(addon), _resources(addon.status.resources))


class AddonPart(ClusterPart):
    """The addons of a cluster."""

    kinds = (_ADDONS,)
    order = 40

    def nodes(self, objects: FleetObjects, cluster: ClusterNames, now: float) -> Iterable[TreeNode]:
        for addon in objects.all(_ADDONS, ClusterAddon):
            if cluster.has(addon.metadata.namespace, addon.spec.cluster_ref.name):
                yield _addon_node(addon)


def _is(metadata: ObjectMeta, key: ItemKey, *, release: bool) -> bool:
    return is_at(key, CLUSTER_STACK_RELEASES if release else CLUSTER_ADDONS, metadata)


def _release_node(release: ClusterStackRelease) -> TreeNode:
    row = ReleaseRows().row(ReleaseSubject(release))
    return node_of(row, page=ReleaseRows.page, conditions=_plain(release.status.conditions))


def _addon_node(addon: ClusterAddon) -> TreeNode:
    row = AddonRows().row(AddonSubject(addon))
    return node_of(row, page=AddonRows.page, conditions=_plain(addon.status.conditions))


def _plain(conditions: Iterable[SeverityCondition]) -> list[Condition]:
    """Conditions of Cluster API's first form in that of Kubernetes."""
    names = ("type", "status", "reason", "message", "last_transition_time")
    return [
        Condition(**{name: getattr(one, name) for name in names})
        for one in conditions
        if one.status in ("True", "False", "Unknown")
    ]


def _resources(resources: Iterable[ManagedResource]) -> Grid:
    rows: list[list[Cell]] = [
        [f"{one.kind} {one.namespace}/{one.name}" if one.namespace else f"{one.kind} {one.name}",
         StateMark("well" if one.status == "synced" else "waiting", one.status or "pending"), one.error]
        for one in resources
    ]  # fmt: skip
    return Grid("Objects", ("Object", "State", "Because"), rows, "It has applied no object.")
