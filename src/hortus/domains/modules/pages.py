"""Modules in the dashboard: the catalogue with its channels, where each version runs, and those of one cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from hortus.domains.modules.names import State
from hortus.domains.modules.rows import KymaRows, KymaSubject
from hortus.domains.modules.types import KYMAS, MODULE_RELEASE_METAS, Kyma, ModuleReleaseMeta, ModuleStatus
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

_KYMAS: Final = FleetKind(KYMAS, reading(Kyma))
_METAS: Final = FleetKind(MODULE_RELEASE_METAS, reading(ModuleReleaseMeta))
_STANDINGS: Final = {State.READY: "well", State.UNMANAGED: "well", State.ERROR: "failed", State.WARNING: "failed"}
"""By the state of a module; the others are on their way."""


class ModulePage(FleetPage):
    """Clusters with modules, the catalogue, and the versions that run."""

    name = "modules"
    title = "Modules"
    order = 20
    intro = "The modules of each cluster, and the catalogue that they come from."
    kinds = (_KYMAS, _METAS)

    def blocks(self, objects: FleetObjects, now: float) -> Sequence[Block]:
        kymas = objects.all(_KYMAS, Kyma)
        running = Counter((one.name, one.version) for kyma in kymas for one in kyma.status.modules if one.version)
        ill = Counter(
            (one.name, one.version) for kyma in kymas for one in kyma.status.modules if _standing(one) == "failed"
        )
        catalogue: list[list[Cell]] = [
            [meta.metadata.name, _channels(meta), "yes" if meta.spec.mandatory is not None else ""]
            for meta in sorted(objects.all(_METAS, ModuleReleaseMeta), key=lambda one: one.metadata.name)
        ]
        versions: list[list[Cell]] = [
            [name, version, count, StateMark("failed", str(ill[name, version])) if ill[name, version] else 0]
            for (name, version), count in sorted(running.items())
        ]
        return (
            Grid("Catalogue", ("Module", "Channels", "Mandatory"), catalogue, "No module is published."),
            Grid(
                "Versions that run", ("Module", "Version", "Clusters", "Failing"), versions, "No cluster has a module."
            ),
        )

    def item(self, objects: FleetObjects, key: ItemKey, now: float) -> Item | None:
        kyma = next((one for one in objects.all(_KYMAS, Kyma) if is_at(key, KYMAS, one.metadata)), None)
        if kyma is None:
            return None
        modules: list[list[Cell]] = [
            [one.name, StateMark(_standing(one), one.state), one.version, one.channel, one.message]
            for one in kyma.status.modules
        ]
        heads = ("Module", "State", "Version", "Channel", "Because")
        return item_of(_node(kyma), Grid("Modules", heads, modules, "It has no modules."))


class ModulePart(ClusterPart):
    """The Kyma of a cluster, and its modules."""

    kinds = (_KYMAS,)
    order = 30

    def nodes(self, objects: FleetObjects, cluster: ClusterNames, now: float) -> Iterable[TreeNode]:
        for kyma in objects.all(_KYMAS, Kyma):
            if cluster.has(kyma.metadata.namespace, kyma.metadata.name):
                children = tuple(
                    TreeNode(
                        kind="Module",
                        name=one.name,
                        standing=_standing(one),
                        state=one.state,
                        note=" ".join(part for part in (one.version, one.message) if part),
                    )
                    for one in kyma.status.modules
                )
                yield replace(_node(kyma), children=children)


def _node(kyma: Kyma) -> TreeNode:
    return node_of(KymaRows().row(KymaSubject(kyma)), page=KymaRows.page, conditions=kyma.status.conditions)


def _standing(module: ModuleStatus) -> str:
    return _STANDINGS.get(State(module.state), "waiting") if module.state in list(State) else "unknown"


def _channels(meta: ModuleReleaseMeta) -> str:
    if meta.spec.mandatory is not None:
        return meta.spec.mandatory.version
    return ", ".join(f"{one.channel} {one.version}" for one in meta.spec.channels)
