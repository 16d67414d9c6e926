"""Leftovers in the dashboard: what deletions left behind, with the owner of the next step and the commands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from hortus.domains.leftovers.rows import LeftoverRows, LeftoverSubject
from hortus.domains.leftovers.views import place, since, source
from hortus.engine.fleet import FleetKind, FleetObjects, reading
from hortus.engine.leftovers import open_items, sentence_of, thing_of, ways_of
from hortus.engine.leftovers.types import LEFTOVERS, Leftover
from hortus.engine.pages import (
    Block,
    Cell,
    ClusterNames,
    ClusterPart,
    FactList,
    FleetPage,
    Grid,
    Item,
    ItemKey,
    StateMark,
    TimeCell,
    TreeNode,
    is_at,
    item_of,
    node_of,
)

_LEFTOVERS: Final = FleetKind(LEFTOVERS, reading(Leftover))
_OWNERS: Final = {"ClusterOwner": "cluster owner", "Operator": "operator"}
_STANDINGS: Final = {"Gone": "well", "Left": "failed"}


class LeftoverPage(FleetPage):
    """Open Leftovers as rows, and those that are settled."""

    name = "leftovers"
    title = "Leftovers"
    order = 60
    intro = "What was released without being seen to be gone."
    kinds = (_LEFTOVERS,)

    def blocks(self, objects: FleetObjects, now: float) -> Sequence[Block]:
        settled: list[list[Cell]] = [
            [one.metadata.name, place(one), source(one), TimeCell(one.status.settled_at or "")]
            for one in sorted(objects.all(_LEFTOVERS, Leftover), key=lambda one: one.metadata.name)
            if not open_items(one)
        ]
        heads = ("Leftover", "Cluster", "Source", "Settled")
        return (Grid("Settled", heads, settled, "None is kept: settled ones are deleted after some time."),)

    def item(self, objects: FleetObjects, key: ItemKey, now: float) -> Item | None:
        known = objects.all(_LEFTOVERS, Leftover)
        leftover = next((one for one in known if is_at(key, LEFTOVERS, one.metadata)), None)
        if leftover is None:
            return None
        spec = leftover.spec
        facts: list[tuple[str, Cell]] = [
            ("Source", source(leftover)),
            ("Cluster", place(leftover) or "none"),
            ("Reason", spec.reason),
            ("Since", TimeCell(since(leftover))),
            (
                "Acknowledged",
                f"{spec.acknowledgement.by}: {spec.acknowledgement.reason}" if spec.acknowledgement else "",
            ),
        ]
        heads = ("Item", "State", "Where", "Next step of", "To look", "To remove")
        return item_of(_node(leftover), FactList("Source", facts), Grid("Items", heads, _items(leftover)))


class LeftoverPart(ClusterPart):
    """The Leftovers of a cluster."""

    kinds = (_LEFTOVERS,)
    order = 70

    def nodes(self, objects: FleetObjects, cluster: ClusterNames, now: float) -> Iterable[TreeNode]:
        for leftover in objects.all(_LEFTOVERS, Leftover):
            found = leftover.spec.cluster
            if open_items(leftover) and (found.name in cluster.names or found.shoot in cluster.names):
                yield _node(leftover)


def _node(leftover: Leftover) -> TreeNode:
    if not open_items(leftover):
        return TreeNode(
            kind=LEFTOVERS.kind,
            name=leftover.metadata.name,
            namespace=leftover.metadata.namespace,
            standing="well",
            state="Settled",
            conditions=leftover.status.conditions,
        )
    row = LeftoverRows().row(LeftoverSubject(leftover))
    return node_of(row, page=LeftoverRows.page, note=sentence_of(leftover), conditions=leftover.status.conditions)


def _items(leftover: Leftover) -> list[list[Cell]]:
    states = {item.id: item.state for item in leftover.status.items}
    found: list[list[Cell]] = []
    for item in leftover.spec.items:
        state = states.get(item.id, "Unknown")
        owner = "" if state == "Gone" else _OWNERS[item.actor]
        found.append(
            [thing_of(item), StateMark(_STANDINGS.get(state, "unknown"), state), item.where, owner, *ways_of(item)]
        )
    return found
