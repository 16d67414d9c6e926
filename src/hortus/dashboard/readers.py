"""The objects that one viewer may read, kept current by watches with the viewer's own credential.

A kind is watched only after the API server has said that the viewer may list and watch it (SelfSubjectAccessReview), so
what a page shows is what `kubectl auth can-i` says. Kinds are read when the first page needs them and shared by all
pages of the viewer. What several viewers read is held once (`hortus.dashboard.sharing`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from hortus.dashboard.reviews import Reviews
from hortus.dashboard.sharing import SharedLister, SharedReading, mark_of, marks_of
from hortus.engine.cache import Cache, Change
from hortus.engine.caches import Caches
from hortus.engine.fleet import FleetKind, FleetObjects
from hortus.engine.fleetreading import KeptValues, ReadGarden
from hortus.engine.pages import AccessNeed
from hortus.kube import Client
from hortus.kube.clock import Clock
from hortus.kube.errors import KubeError, NotFound, Unauthorized
from hortus.kube.objects import ObjectKey, Resource

_NAMESPACES: Final = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
VERBS: Final = ("list", "watch")
"""The verbs that a kind needs to be shown."""


class VisibleState(NamedTuple):
    """The things that decide what a viewer is shown; equal for viewers who are shown the same."""

    marks: tuple[int | None, ...]
    """The marks of the objects of each kind; None for a kind that is not shown."""
    notes: tuple[str, ...]
    """The kinds that are not shown, or not current, each with the reason."""


class FleetWatch:
    """The objects of one viewer in one namespace, or in all."""

    def __init__(
        self,
        client: Client,
        reviews: Reviews,
        namespace: str,
        *,
        garden: ReadGarden | None,
        shared: SharedReading,
        clock: Clock,
    ) -> None:
        self.namespace = namespace
        self._client = client
        self._reviews = reviews
        self._garden = garden or ReadGarden()
        self._shared = shared
        self._clock = clock
        self._caches: dict[FleetKind, Cache] = {}
        self._running: dict[FleetKind, Caches] = {}
        self._refused: dict[FleetKind, str] = {}
        self._marks: dict[FleetKind, int] = {}
        """The marks of the objects of each cache, except those that have to be made again."""
        self._beginning = asyncio.Lock()
        self._closed = False
        self._listeners: dict[object, Callable[[], None]] = {}

    @property
    def has_listeners(self) -> bool:
        return bool(self._listeners)

    async def want(self, kinds: Iterable[FleetKind], *, patience: float) -> None:
        """Begins to watch kinds that are not watched yet, and hides those that the viewer may no longer see.

        Waits for first lists, `patience` seconds at most. Raises KubeError.
        """
        wanted = [kind for kind in dict.fromkeys(kinds) if not self._is_out_of_reach(kind)]
        if not all(map(self._is_settled, wanted)):
            async with self._beginning:  # of all pages that find the same, the first asks
                if unsettled := [kind for kind in wanted if not self._is_settled(kind)]:
                    missing = bool(self.namespace) and await self._is_missing()
                    await asyncio.gather(*(self._begin(kind, missing) for kind in unsettled))
        waiting = [cache for kind, cache in self._caches.items() if not cache.has_synced and not self._problem_of(kind)]
        if waiting:
            synced = [asyncio.ensure_future(cache.synced()) for cache in waiting]
            await asyncio.wait(synced, timeout=patience)
            for task in synced:
                task.cancel()

    def seen(self, kinds: Sequence[FleetKind]) -> VisibleState:
        """The present state of some kinds."""
        marks = tuple(self._marks_of(kind) if self._is_shown(kind) else None for kind in kinds)
        return VisibleState(marks, tuple(self.notes(kinds)))

    def subscribe(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Calls `changed` after each change of any kind; returns the way to stop it."""
        token = object()
        self._listeners[token] = changed
        return lambda: self._listeners.pop(token, None) and None

    def objects(self, kinds: Iterable[FleetKind]) -> FleetObjects:
        """The present values; kinds that are not watched have none."""
        empty: Mapping[ObjectKey, object] = {}
        return FleetObjects(
            {kind: KeptValues(self._caches[kind]) if self._is_shown(kind) else empty for kind in dict.fromkeys(kinds)}
        )

    def notes(self, kinds: Iterable[FleetKind]) -> list[str]:
        """The kinds that are not shown, or not current, each with the reason."""
        found: dict[str, None] = {}
        for kind in dict.fromkeys(kinds):
            why: object = self._refused.get(kind)
            if why is None and (cache := self._caches.get(kind)) is not None:
                why = self._problem_of(kind) or (None if cache.has_synced else "being read")
            if why and not isinstance(why, NotFound):
                found[f"{kind.resource.plural}: {why}"] = None
        return list(found)

    @property
    def expired(self) -> bool:
        """True once the API server no longer accepts the credential."""
        return any(isinstance(self._problem_of(kind), Unauthorized) for kind in self._caches)

    async def close(self) -> None:
        """Ends every watch, for good."""
        self._closed = True
        running, self._running = list(self._running.values()), {}
        self._caches.clear()
        self._marks.clear()
        for caches in running:
            await caches.stop()

    async def _is_missing(self) -> bool:
        """Reports whether there is no such namespace; one that cannot be read is taken to exist.

        Raises Unauthorized.
        """
        try:
            await self._client.get(_NAMESPACES, self.namespace)
        except NotFound:
            return True
        except Unauthorized:
            raise
        except KubeError:
            pass  # the permissions for what is in it decide
        return False

    async def _begin(self, kind: FleetKind, missing: bool) -> None:
        # Objects of the garden are judged by the garden; its answer is the problem of the cache.
        if not kind.garden and not await self._reviews.all_allowed(self._needs(kind)):
            place = f"in namespace {self.namespace}" if self.namespace else "in all namespaces"
            group = f".{kind.resource.group}" if kind.resource.group else ""
            self._refused[kind] = f"you may not list and watch {kind.resource.plural}{group} {place}"
            return
        if missing and kind.resource.namespaced and not kind.garden:
            self._refused[kind] = f"there is no namespace {self.namespace}"
            return
        self._refused.pop(kind, None)
        if kind in self._caches or self._closed:
            return
        client = self._garden.client if kind.garden else self._client
        assert client is not None, "kinds of a garden that is not known are left out"
        shared = self._shared.kind(client, kind)
        caches = self._running[kind] = Caches(SharedLister(client, kind, shared), clock=self._clock)
        cache = caches.get(kind.resource, namespace=self._place(kind), labels=kind.labels, transform=shared.kept)
        self._caches[kind] = cache
        cache.subscribe(lambda change: self._changed(kind, change))
        cache.on_sync(self._tell)
        caches.start()

    def _changed(self, kind: FleetKind, change: Change) -> None:
        if change.new is None:
            # The state in which an object went need not be the one that was held.
            self._marks.pop(kind, None)
        elif kind in self._marks:
            self._marks[kind] ^= mark_of(change.old) ^ mark_of(change.new)
        self._tell()

    def _tell(self) -> None:
        for listener in list(self._listeners.values()):
            listener()

    def _marks_of(self, kind: FleetKind) -> int:
        found = self._marks.get(kind)
        if found is None:
            found = self._marks[kind] = marks_of(self._caches[kind].values())
        return found

    def _needs(self, kind: FleetKind) -> list[AccessNeed]:
        return [AccessNeed(verb, kind.resource, self._place(kind)) for verb in VERBS]

    def _is_settled(self, kind: FleetKind) -> bool:
        """Reports whether a kind is watched, or refused, by an answer that still counts."""
        if kind.garden:
            return kind in self._caches
        return (kind in self._caches or kind in self._refused) and self._reviews.are_fresh(self._needs(kind))

    def _place(self, kind: FleetKind) -> str:
        if kind.garden:
            return self._garden.namespace
        return self.namespace if kind.resource.namespaced else ""

    def _is_shown(self, kind: FleetKind) -> bool:
        return kind in self._caches and kind not in self._refused

    def _is_out_of_reach(self, kind: FleetKind) -> bool:
        return kind.garden and self._garden.client is None

    def _problem_of(self, kind: FleetKind) -> Exception | None:
        """The reason why a kind is not current."""
        caches = self._running.get(kind)
        return None if caches is None else next((problem for _, problem in caches.problems()), None)
