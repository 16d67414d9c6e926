"""Pages of the dashboard as values: the part that each domain has in what a browser shows.

A page is made of blocks (facts, grids, bars, trees, timelines) whose texts come from objects. Domains write no markup,
so nothing in an object can become any; the dashboard draws the blocks as HTML and SVG, and sends the same blocks as
JSON. A page reads the objects that a viewer may read, and its actions are calls with the viewer's own credential.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from hortus.engine.fleet import OWNERS, FleetKind, FleetObjects, FleetRow, RowStanding, seconds_of
from hortus.engine.outcomes import Actor
from hortus.kube import Client
from hortus.kube.objects import Resource, format_time
from hortus.schema import Condition, ObjectMeta

STANDINGS: Final[Mapping[RowStanding, str]] = {one: one.name.lower() for one in RowStanding}
"""Standings in the words of pages and of `hortus top -o json`."""
UNKNOWN: Final = "unknown"
"""The standing of what was not looked at."""


class StateMark(msgspec.Struct, frozen=True, tag="mark"):
    """A state, drawn with a sign and a colour."""

    standing: str
    """One of STANDINGS, or UNKNOWN."""
    text: str


class PageLink(msgspec.Struct, frozen=True, tag="link"):
    """A link to another page of the dashboard."""

    text: str
    path: tuple[str, ...]
    """Name of the page, and for one object the kind, the namespace and the name."""


class TimeCell(msgspec.Struct, frozen=True, tag="time"):
    """A point in time."""

    at: str
    """RFC 3339; empty for none."""


Cell = str | int | StateMark | PageLink | TimeCell


def moment(seconds: float | None) -> TimeCell:
    """A time in seconds since 1970 as a cell."""
    return TimeCell("" if seconds is None else format_time(seconds))


class FactList(msgspec.Struct, frozen=True, tag="facts"):
    """Names and values."""

    title: str
    items: Sequence[tuple[str, Cell]]


class Grid(msgspec.Struct, frozen=True, tag="table"):
    """A table whose first column names the row."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    empty: str = "None."
    """The sentence in place of a table without rows."""


class BarPart(msgspec.Struct, frozen=True):
    """One part of a bar."""

    name: str
    standing: str
    count: int


class Bar(msgspec.Struct, frozen=True):
    """A number of things by their state."""

    label: str
    parts: Sequence[BarPart]
    note: str = ""

    @property
    def total(self) -> int:
        return sum(part.count for part in self.parts)


class Bars(msgspec.Struct, frozen=True, tag="bars"):
    """Bars of one scale each."""

    title: str
    bars: Sequence[Bar]
    empty: str = "None."


class TreeNode(msgspec.Struct, frozen=True, omit_defaults=True):
    """An object in a tree, with its health and the objects below it."""

    kind: str
    name: str
    standing: str = UNKNOWN
    state: str = ""
    note: str = ""
    """The sentence behind the state."""
    owner: str = ""
    """The owner of the next step; empty where nothing is to be done."""
    step: str = ""
    path: tuple[str, ...] = ()
    """The page of the object, where it has one."""
    written: str = ""
    """When a credential was written, RFC 3339."""
    expires: str = ""
    """When it ends, RFC 3339."""
    namespace: str = ""
    children: tuple[TreeNode, ...] = ()
    conditions: tuple[Condition, ...] = ()

    def all(self) -> Iterable[TreeNode]:
        """Yields this node and all below it, depth first."""
        yield self
        for child in self.children:
            yield from child.all()


class Tree(msgspec.Struct, frozen=True, tag="tree"):
    """Objects that hang together."""

    title: str
    root: TreeNode


class Happening(msgspec.Struct, frozen=True):
    """One entry of a timeline."""

    at: str
    """RFC 3339."""
    standing: str
    source: str
    """The object, as Kind/name."""
    text: str


class EventTimeline(msgspec.Struct, frozen=True, tag="timeline"):
    """Changes in the order of time, the newest first."""

    title: str
    happenings: Sequence[Happening]
    empty: str = "Nothing was reported."


class PlotLine(msgspec.Struct, frozen=True):
    """The values of one quantity over time."""

    name: str
    points: Sequence[tuple[float, float]]
    """Seconds since 1970, and the value."""


class Plot(msgspec.Struct, frozen=True):
    """Quantities of one unit over time."""

    title: str
    unit: str
    lines: Sequence[PlotLine]


class PlotGroup(msgspec.Struct, frozen=True, tag="plots"):
    """Plots over the same time."""

    title: str
    plots: Sequence[Plot]
    empty: str = "Nothing was measured yet."


Block = FactList | Grid | Bars | Tree | EventTimeline | PlotGroup


class ItemKey(NamedTuple):
    """The address of one object on a page."""

    kind: str
    """In lower case."""
    namespace: str
    name: str


class AccessNeed(NamedTuple):
    """A permission that an action needs, as `kubectl auth can-i` is asked for it."""

    verb: str
    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""


class Action(msgspec.Struct, frozen=True):
    """A button: one change of one object, made with the viewer's credential."""

    name: str
    title: str
    needs: tuple[AccessNeed, ...]
    warning: str = ""
    """The question to ask before; empty where the change can be undone."""
    shown: tuple[tuple[str, str], ...] = ()
    """Facts of the object as it was drawn, by name; they come back with the button."""


class ActionRefused(Exception):
    """An action does not fit the state of the object; the message names the state and the fix."""


class Item(msgspec.Struct, frozen=True):
    """The page of one object."""

    title: str
    standing: str
    state: str
    blocks: Sequence[Block]
    note: str = ""
    """The reason for a state that is not well: the sentence of `hortus why`."""
    owner: str = ""
    step: str = ""
    actions: Sequence[Action] = ()
    about: Sequence[ItemKey] = ()
    """The objects whose events belong to the page; kinds as they are written."""


class FleetPage:
    """A page of the dashboard: an overview, and a page for each of its objects.

    Rows of the views with the page's name come first, with filters, then the blocks.
    """

    name: str
    """The first part of the address."""
    title: str
    order: int = 50
    intro: str = ""
    kinds: Sequence[FleetKind] = ()
    """The kinds that the blocks and the items read, besides those of the views."""

    def blocks(self, objects: FleetObjects, now: float) -> Sequence[Block]:
        """The blocks of the overview."""
        return ()

    def item(self, objects: FleetObjects, key: ItemKey, now: float) -> Item | None:
        """The page of one object; None for one that does not exist."""
        return None

    async def act(self, client: Client, key: ItemKey, action: str, shown: Mapping[str, str]) -> str:
        """Does what a button says, and returns the sentence that reports it. Raises ActionRefused, KubeError.

        `shown` is that of the Action as the viewer saw it, which may be long ago.
        """
        raise ActionRefused(f"{self.title} has no action {action}")


class ClusterNames(NamedTuple):
    """A cluster by all names that its objects have."""

    namespace: str
    names: frozenset[str]

    def has(self, namespace: str, name: str) -> bool:
        return name in self.names and (not self.namespace or namespace == self.namespace)


class ClusterPart(ABC):
    """The part that a domain has in the page of a cluster: nodes of its tree."""

    kinds: Sequence[FleetKind] = ()
    order: int = 50

    def names(self, objects: FleetObjects, cluster: ClusterNames) -> Iterable[str]:
        """Further names of the cluster."""
        return ()

    @abstractmethod
    def nodes(self, objects: FleetObjects, cluster: ClusterNames, now: float) -> Iterable[TreeNode]:
        """The domain's objects of the cluster."""


def node_of(row: FleetRow, *, page: str, note: str = "", conditions: Sequence[Condition] = ()) -> TreeNode:
    """A row of the fleet as a node, which links to its page."""
    well = row.standing is RowStanding.WELL
    return TreeNode(
        kind=row.kind,
        name=row.name,
        namespace=row.namespace,
        standing=STANDINGS[row.standing],
        state=row.state,
        note=note or reason_of(row),
        owner="" if well else OWNERS[row.owner],
        step="" if well or row.owner == Actor.NOBODY else row.step,
        path=path_of(row, page),
        conditions=tuple(conditions),
    )


def reason_of(row: FleetRow) -> str:
    """The message of a row with its reason; empty where it has neither."""
    if row.reason and row.message and row.reason not in row.message:
        return f"{row.message} ({row.reason})"
    return row.message or row.reason


def path_of(row: FleetRow, page: str) -> tuple[str, ...]:
    """The address of a row's object on a page."""
    return page, row.kind.lower(), row.namespace or "-", row.name


def condition_happenings(node: TreeNode) -> Iterable[Happening]:
    """The conditions of a node as entries of a timeline; those without a time are left out."""
    for one in node.conditions:
        if seconds_of(one.last_transition_time) is None:
            continue
        standing = {"True": "well", "False": node.standing}.get(one.status, UNKNOWN)
        text = f"{one.type}={one.status} {one.reason}"
        text = f"{text}: {one.message}" if one.message else text
        yield Happening(one.last_transition_time, standing, f"{node.kind}/{node.name}", text)


def timeline_of(nodes: Iterable[TreeNode]) -> EventTimeline:
    """The conditions of some nodes, the newest first."""
    found = [one for node in nodes for one in condition_happenings(node)]
    return EventTimeline("Timeline", sorted(found, key=lambda one: one.at, reverse=True))


def item_of(node: TreeNode, *blocks: Block, actions: Sequence[Action] = ()) -> Item:
    """The page of one object: its node, further blocks, and a timeline."""
    return Item(
        title=node.name,
        standing=node.standing,
        state=node.state,
        note="" if node.standing == STANDINGS[RowStanding.WELL] else node.note,
        owner=node.owner,
        step=node.step,
        blocks=(*blocks, timeline_of(node.all())),
        actions=actions,
        about=(ItemKey(node.kind, node.namespace, node.name),) if node.namespace else (),
    )


def is_at(key: ItemKey, resource: Resource, metadata: ObjectMeta) -> bool:
    """Reports whether an object has the address of a page."""
    return key == ItemKey(resource.kind.lower(), metadata.namespace, metadata.name)
