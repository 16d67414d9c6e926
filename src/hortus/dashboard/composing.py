"""The content of a page for one viewer, as values: what is drawn, and what is sent as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from hortus.dashboard.catalogue import Catalogue
from hortus.dashboard.filters import Filters, RowWindow, chosen
from hortus.dashboard.viewers import Viewer
from hortus.engine.events import EVENTS
from hortus.engine.fleet import FleetKind, document_of
from hortus.engine.pages import AccessNeed, Action, Block, EventTimeline, FleetPage, Happening, Item, ItemKey
from hortus.kube.clock import Clock
from hortus.kube.errors import KubeError
from hortus.kube.objects import Object, format_time

PATIENCE: Final = 0.7
"""Seconds that a page waits for the first lists; what is missing then follows by the page's stream."""
_MOST_EVENTS: Final = 50
_OBJECTS_WITH_EVENTS: Final = 8
_EVENTS_KEPT: Final = 5.0
"""Seconds for which events are shown again before they are asked for again."""


class Content(msgspec.Struct):
    """One page at one moment."""

    page: FleetPage
    key: ItemKey | None
    title: str
    namespace: str
    notes: Sequence[str]
    """Kinds that are not shown, or not current, each with the reason."""
    filters: Filters
    window: RowWindow | None = None
    blocks: Sequence[Block] = ()
    item: Item | None = None
    actions: Sequence[Action] = ()
    """The actions that the viewer may do."""
    gone: bool = False
    """True for an object that does not exist, or that this viewer cannot see."""


class Composer:
    """Makes the content of pages for viewers."""

    def __init__(self, catalogue: Catalogue, clock: Clock) -> None:
        self._catalogue = catalogue
        self._clock = clock
        self._events: dict[tuple[int, str, ItemKey], tuple[float, Sequence[Happening], str]] = {}

    def kinds(self, page: FleetPage, key: ItemKey | None) -> tuple[FleetKind, ...]:
        """The kinds that a page reads."""
        return self._catalogue.kinds(page, item=key is not None)

    async def compose(
        self,
        viewer: Viewer,
        page: FleetPage,
        key: ItemKey | None,
        *,
        namespace: str,
        filters: Filters,
        patience: float = PATIENCE,
    ) -> Content:
        """The content as this viewer may see it. Raises KubeError."""
        kinds, watch = self.kinds(page, key), viewer.watch(namespace)
        await watch.want(kinds, patience=patience)
        content = Content(page, key, page.title, namespace, watch.notes(kinds), filters)
        objects, now = watch.objects(kinds), self._clock.now()
        if key is None:
            if views := self._catalogue.views(page):
                content.window = chosen(watch.rows(views), filters)
            content.blocks = page.blocks(objects, now)
            return content
        content.title = f"{key.name} - {page.title}"
        item = content.item = page.item(objects, key, now)
        if item is None:
            content.gone = True
            return content
        content.actions = [one for one in item.actions if await viewer.reviews.all_allowed(one.needs)]
        content.blocks, problem = await self._with_events(viewer, namespace, key, item)
        content.notes = [*content.notes, *([problem] if problem else [])]
        return content

    async def _with_events(
        self, viewer: Viewer, namespace: str, key: ItemKey, item: Item
    ) -> tuple[Sequence[Block], str]:
        now = self._clock.monotonic()
        known = self._events.get((id(viewer), namespace, key))
        if known is None or now - known[0] >= _EVENTS_KEPT:
            found, problem = await _events(viewer, item)
            known = now, found, problem
            if len(self._events) > 1000:
                self._events.clear()
            self._events[id(viewer), namespace, key] = known
        return [_joined(block, known[1]) for block in item.blocks], known[2]


async def _events(viewer: Viewer, item: Item) -> tuple[Sequence[Happening], str]:
    found: list[Happening] = []
    for about in item.about[:_OBJECTS_WITH_EVENTS]:
        if not await viewer.reviews.allowed(AccessNeed("list", EVENTS, about.namespace)):
            return found, f"events: you may not list events in namespace {about.namespace}"
        fields = f"involvedObject.name={about.name},involvedObject.kind={about.kind}"
        try:
            listed = (await viewer.client.list(EVENTS, about.namespace, fields=fields)).items
        except KubeError as error:
            return found, f"events: {error}"
        found += map(_happening, listed)
    return sorted(found, key=lambda one: one.at, reverse=True)[:_MOST_EVENTS], ""


def _happening(event: Object) -> Happening:
    about = event.get("involvedObject") or {}
    series = event.get("series") or {}
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    at = next((str(one) for one in times if one), str((event.get("metadata") or {}).get("creationTimestamp") or ""))
    count = series.get("count") or event.get("count") or 1
    often = f" ({count} times)" if isinstance(count, int) and count > 1 else ""
    standing = "failed" if event.get("type") == "Warning" else "well"
    text = f"{event.get('reason', '')}: {event.get('message', '')}{often}"
    return Happening(at, standing, f"{about.get('kind', '')}/{about.get('name', '')}", text)


def _joined(block: Block, events: Sequence[Happening]) -> Block:
    if not isinstance(block, EventTimeline) or not events:
        return block
    return EventTimeline(block.title, sorted([*block.happenings, *events], key=lambda one: one.at, reverse=True))


def document(content: Content, now: float) -> Mapping[str, Any]:
    """The content for programs; rows are those of `hortus top -o json`."""
    found: dict[str, Any] = {
        "page": content.page.name,
        "title": content.title,
        "time": format_time(now),
        "namespace": content.namespace,
        "notes": list(content.notes),
    }
    if (window := content.window) is not None:
        found["rows"] = {
            "total": window.total,
            "matching": window.matching,
            "start": window.start,
            "items": [document_of(row) for row in window.rows],
            "facets": {facet.name: dict(facet.values) for facet in window.facets},
        }
    if (item := content.item) is not None:
        named = ("title", "standing", "state", "note", "owner", "step")
        found["item"] = {name: getattr(item, name) for name in named}
        found["actions"] = [action.name for action in content.actions]
    found["blocks"] = msgspec.to_builtins(list(content.blocks))
    return found
