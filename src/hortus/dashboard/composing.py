"""The content of a page for one viewer, as values: what is drawn, and what is sent as JSON."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from hortus.dashboard.catalogue import Catalogue
from hortus.dashboard.content import Content
from hortus.dashboard.filters import Filters, chosen
from hortus.dashboard.ranking import RankedRows
from hortus.dashboard.readers import FleetWatch, VisibleState
from hortus.dashboard.rendering import Drawn, PagePart, draw
from hortus.dashboard.viewers import Viewer
from hortus.engine.events import EVENTS
from hortus.engine.fleet import FleetKind
from hortus.engine.pages import AccessNeed, Block, EventTimeline, FleetPage, Happening, Item, ItemKey
from hortus.kube.clock import Clock
from hortus.kube.errors import KubeError
from hortus.kube.objects import Object

_K = TypeVar("_K")
_V = TypeVar("_V")
PATIENCE: Final = 0.4
"""Seconds that a page waits for the first lists; what is missing then follows by the page's stream."""
_KEPT: Final = 128
"""Contents that are kept for open pages that show the same."""
_READ_KEPT: Final = 4
"""Contents of a viewer's pages that are read when they are shown: of a plan that was forgotten no more are held."""
_DRAWN: Final = 32 << 20
"""Characters of drawn pages that are kept."""
_SHORTEST: Final = 0.1
_LONGEST: Final = 0.5
"""Seconds between two beats: a change is to be seen within one second."""
_MEASURED: Final = 1.0
"""Seconds for which work is counted until the beats are made longer or shorter."""
_PIECE: Final = 0.02
"""Seconds for which a page is drawn before others have their turn."""
_JUDGED: Final = 15.0
"""Seconds for which contents are kept although nothing changed: some depend on the time."""
_MOST_EVENTS: Final = 50
_OBJECTS_WITH_EVENTS: Final = 8
_EVENTS_KEPT: Final = 5.0
"""Seconds for which events are shown again before they are asked for again."""


class Reading(NamedTuple):
    """The content of a page that is read when it is shown."""

    blocks: Sequence[Block] = ()
    notes: Sequence[str] = ()
    item: Item | None = None
    """The page of one object; None for one that does not exist."""


class ReadPage(FleetPage, ABC):
    """A page of things that are no objects of the fleet: they are read when it is shown, and are not watched."""

    upload: str = ""
    """The label of a file that a viewer may open on the overview; empty for none."""

    @abstractmethod
    async def read(self, viewer: Viewer, key: ItemKey | None, now: float) -> Reading:
        """The content as this viewer may see it. Raises KubeError."""


class Beats:
    """The moments at which open pages are drawn again, the rarer the more work that is.

    Pages that were drawn whenever each of them is ready would each show another state of a fleet that changes much,
    and none could use what was made for another.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._spent = 0.0
        self._since = clock.monotonic()
        self.length = _SHORTEST
        """Seconds between two of them."""

    def left(self) -> float:
        """Seconds until the next one."""
        now = self._clock.monotonic()
        if now - self._since >= _MEASURED:
            self.length = min(max(_SHORTEST, self._spent / (now - self._since)), _LONGEST)
            self._spent, self._since = 0.0, now
        return self.length - now % self.length

    @contextmanager
    def working(self) -> Iterator[None]:
        """Counts the time of the block as work on pages."""
        began = self._clock.monotonic()
        try:
            yield
        finally:
            self._spent += self._clock.monotonic() - began


class Drawings:
    """The parts of contents that were drawn last; open pages that show the same share them.

    A page that takes long is drawn in pieces, and of all such pages one at a time: others wait for one piece at most.
    """

    def __init__(self, beats: Beats, clock: Clock) -> None:
        self._beats = beats
        self._clock = clock
        self._long = asyncio.Lock()
        self._known: dict[tuple[int, str], tuple[Content, Drawn]] = {}
        """By the `id` of a content, which stays its own as long as the content is held here."""

    async def of(self, content: Content, *, csrf: str, now: float) -> Drawn:
        """The parts of a page. Those of an overview have no form of a session, so all sessions share them."""
        token = csrf if content.key is not None or content.upload else ""
        place = id(content), token
        if (known := self._known.get(place)) is None:
            parts: list[PagePart] = []
            pieces = draw(content, csrf=token, now=now)
            if not self._draw(pieces, parts):
                async with self._long:
                    while known is None:
                        await asyncio.sleep(0)  # others have their turn
                        known = self._known.get(place)
                        if known is None and self._draw(pieces, parts):
                            break
        if known is not None:
            _keep(self._known, place, known)
            return known[1]
        drawn = Drawn(content.title, parts)
        _keep(self._known, place, (content, drawn))
        while sum(one.size for _, one in self._known.values()) > _DRAWN:
            del self._known[next(iter(self._known))]
        return drawn

    def _draw(self, pieces: Iterator[PagePart], parts: list[PagePart]) -> bool:
        """Draws for a moment; returns True at the end."""
        with self._beats.working():
            began = self._clock.monotonic()
            for part in pieces:
                parts.append(part)
                if self._clock.monotonic() - began >= _PIECE:
                    return False
        return True


class Composer:
    """Makes the content of pages for viewers."""

    def __init__(self, catalogue: Catalogue, clock: Clock) -> None:
        self._catalogue = catalogue
        self._clock = clock
        self._contents: dict[_Place, tuple[int, Content]] = {}
        self._rows = RankedRows(clock)
        self.beats = Beats(clock)
        self.drawings = Drawings(self.beats, clock)
        self._read_last: WeakKeyDictionary[Viewer, dict[tuple[object, ...], Content]] = WeakKeyDictionary()
        self._events: WeakKeyDictionary[Viewer, dict[tuple[str, ItemKey], tuple[float, Sequence[Happening], str]]] = (
            WeakKeyDictionary()
        )

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
        if isinstance(page, ReadPage):
            return await self._read(viewer, page, key, namespace=namespace, filters=filters)
        kinds, watch = self.kinds(page, key), viewer.watch(namespace)
        await watch.want(kinds, patience=patience)
        if key is None:
            # From here on nothing is awaited: of all open pages that show the same, of whichever viewers, the first
            # makes it.
            place = _Place(page.name, namespace, filters, watch.seen(kinds))
            known = self._contents.get(place)
            if known is None or known[0] != self.judged:
                with self.beats.working():
                    made = self._overview(page, watch, filters, place.seen)
                # An equal content keeps its picture.
                known = self.judged, made if known is None or known[1] != made else known[1]
            _keep(self._contents, place, known)
            return known[1]
        content = Content(page, key, page.title, namespace, watch.notes(kinds), filters)
        objects, now = watch.objects(kinds), self._clock.now()
        content.title = f"{key.name} - {page.title}"
        item = content.item = page.item(objects, key, now)
        if item is None:
            content.gone = True
            return content
        content.actions = [one for one in item.actions if await viewer.reviews.all_allowed(one.needs)]
        content.blocks, problem = await self._with_events(viewer, namespace, key, item)
        content.notes = [*content.notes, *([problem] if problem else [])]
        return content

    async def _read(
        self, viewer: Viewer, page: ReadPage, key: ItemKey | None, *, namespace: str, filters: Filters
    ) -> Content:
        found = await page.read(viewer, key, self._clock.now())
        title = page.title if key is None else f"{found.item.title if found.item else key.name} - {page.title}"
        content = Content(page, key, title, namespace, found.notes, filters, blocks=found.blocks, item=found.item)
        content.upload = page.upload if key is None else ""
        if key is not None and found.item is not None:
            content.blocks, content.actions = found.item.blocks, found.item.actions
        content.gone = key is not None and found.item is None
        place, kept = (page.name, key, namespace, filters), self._read_last.setdefault(viewer, {})
        known = kept.get(place)
        content = known if known is not None and known == content else content  # an equal one keeps its picture
        _keep(kept, place, content, _READ_KEPT)
        return content

    @property
    def judged(self) -> int:
        """A number that changes when contents are made again although nothing changed."""
        return int(self._clock.now() / _JUDGED)

    def _overview(self, page: FleetPage, watch: FleetWatch, filters: Filters, seen: VisibleState) -> Content:
        kinds = self.kinds(page, None)
        content = Content(page, None, page.title, watch.namespace, seen.notes, filters)
        if views := self._catalogue.views(page):
            ranking = self._rows.of(views, watch)
            content.window = chosen(ranking.rows, filters, ranking.facets)
        content.blocks = page.blocks(watch.objects(kinds), self._clock.now())
        return content

    async def _with_events(
        self, viewer: Viewer, namespace: str, key: ItemKey, item: Item
    ) -> tuple[Sequence[Block], str]:
        now, place = self._clock.monotonic(), (namespace, key)
        kept = self._events.setdefault(viewer, {})
        known = kept.get(place)
        if known is None or now - known[0] >= _EVENTS_KEPT:
            known = now, *await _events(viewer, item)
            if len(kept) > _KEPT:
                kept.clear()
            kept[place] = known
        return [_joined(block, known[1]) for block in item.blocks], known[2]


class _Place(NamedTuple):
    """An overview as it is shown to all who see the same."""

    page: str
    namespace: str
    filters: Filters
    seen: VisibleState


def _keep(known: dict[_K, _V], key: _K, value: _V, most: int = _KEPT) -> None:
    """Keeps a value as the one that was used last; the one that was used least recently makes room."""
    known.pop(key, None)
    if len(known) >= most:
        del known[next(iter(known))]
    known[key] = value


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
