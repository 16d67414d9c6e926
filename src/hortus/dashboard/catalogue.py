"""All pages of the dashboard: those of the domains by their descriptors, and the page of a cluster, which is made of a
part of each domain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from hortus.dashboard.changes import ChangesPage
from hortus.domains import Domain
from hortus.engine.fleet import FleetKind, FleetObjects, FleetView
from hortus.engine.pages import (
    Block,
    Cell,
    ClusterNames,
    ClusterPart,
    FleetPage,
    Grid,
    Item,
    ItemKey,
    PageLink,
    TimeCell,
    Tree,
    TreeNode,
    item_of,
)

CLUSTERS: Final = "clusters"
_ROUNDS: Final = 3
"""Times that names lead to further names: a Shoot's name, its Runtime, and that one's runtime-id."""


class ClustersPage(FleetPage):
    """The fleet, and each cluster with all that hangs together with it."""

    name = CLUSTERS
    title = "Clusters"
    order = 0
    intro = "Every cluster, the worst first."

    def __init__(self, parts: Sequence[ClusterPart]) -> None:
        self._parts = sorted(parts, key=lambda part: part.order)
        self.kinds = tuple(dict.fromkeys(kind for part in self._parts for kind in part.kinds))

    def item(self, objects: FleetObjects, key: ItemKey, now: float) -> Item | None:
        cluster = self._names(objects, key)
        nodes = [node for part in self._parts for node in part.nodes(objects, cluster, now)]
        root = next((node for node in nodes if _is_at(node, key)), None)
        if root is None:
            return None
        others = tuple(node for node in nodes if node is not root)
        tree = _joined(root, others)
        return replace(item_of(tree, *_blocks(tree)), about=_about(tree))

    def _names(self, objects: FleetObjects, key: ItemKey) -> ClusterNames:
        cluster = ClusterNames(key.namespace, frozenset((key.name,)))
        for _ in range(_ROUNDS):
            found = {name for part in self._parts for name in part.names(objects, cluster) if name}
            if found <= cluster.names:
                break
            cluster = cluster._replace(names=cluster.names | found)
        return cluster


class Catalogue:
    """Pages by name, with the views whose rows they show."""

    def __init__(self, domains: Iterable[Domain], others: Iterable[FleetPage] = ()) -> None:
        """`others` are pages of the dashboard itself."""
        domains = list(domains)
        parts = [part for domain in domains for part in domain.cluster_parts()]
        changed = dict.fromkeys(kind for domain in domains for kind in domain.kinds())
        views = sorted((view for domain in domains for view in domain.fleet_views()), key=lambda view: view.order)
        shown = {kind.resource.kind: view.page for view in views for kind in view.kinds if kind.resource.group}
        pages: list[FleetPage] = [ClustersPage(parts), *(page for domain in domains for page in domain.pages())]
        pages += [ChangesPage(changed, shown), *others]
        self.pages: Mapping[str, FleetPage] = {page.name: page for page in sorted(pages, key=lambda page: page.order)}
        self._views = {name: tuple(view for view in views if view.page == name) for name in self.pages}

    def views(self, page: FleetPage) -> tuple[FleetView[Any], ...]:
        """The views whose rows an overview shows."""
        return self._views[page.name]

    def kinds(self, page: FleetPage, *, item: bool) -> tuple[FleetKind, ...]:
        """The kinds that the overview, or a page of one object, reads. The page of a cluster alone reads its parts."""
        if item:
            return tuple(page.kinds)
        own = () if page.name == CLUSTERS else page.kinds
        return tuple(dict.fromkeys([*(kind for view in self.views(page) for kind in view.kinds), *own]))


def _is_at(node: TreeNode, key: ItemKey) -> bool:
    return (node.kind.lower(), node.namespace, node.name) == (key.kind, key.namespace, key.name)


def _joined(root: TreeNode, others: tuple[TreeNode, ...]) -> TreeNode:
    return replace(root, children=(*root.children, *others))


def _blocks(tree: TreeNode) -> list[Block]:
    ill = [node for node in tree.all() if node.standing in ("failed", "waiting")]
    needed: list[list[Cell]] = [
        [PageLink(f"{node.kind} {node.name}", node.path) if node.path else f"{node.kind} {node.name}",
         node.state, node.note, node.owner, node.step]
        for node in ill
    ]  # fmt: skip
    found: list[Block] = [
        Grid(
            "What needs somebody",
            ("Object", "State", "Because", "Next step of", "Next step"),
            needed,
            "Nothing: all objects of this cluster are well.",
        ),
        Tree("Objects", tree),
    ]
    credentials = [(f"{node.kind} {node.name}", node) for node in tree.all() if node.expires or node.written]
    if credentials:
        ages: list[list[Cell]] = [[name, TimeCell(node.written), TimeCell(node.expires)] for name, node in credentials]
        found.append(Grid("Credentials", ("Credential", "Written", "Expires"), ages))
    return found


def _about(tree: TreeNode) -> tuple[ItemKey, ...]:
    return tuple(dict.fromkeys(ItemKey(node.kind, node.namespace, node.name) for node in tree.all() if node.namespace))
