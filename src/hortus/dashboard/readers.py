"""The objects that one viewer may read, kept current by watches with the viewer's own credential.

A kind is watched only after the API server has said that the viewer may list and watch it (SelfSubjectAccessReview), so
what a page shows is what `kubectl auth can-i` says. Kinds are read when the first page needs them and shared by all
pages of the viewer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from hortus.dashboard.reviews import Reviews
from hortus.engine.cache import Cache
from hortus.engine.caches import Caches
from hortus.engine.fleet import FleetKind, FleetObjects, FleetRow, FleetView, KeptRows
from hortus.engine.fleetreading import KeptValues, MetadataOnly, ReadGarden, kept_part, ranked_rows
from hortus.engine.pages import AccessNeed
from hortus.kube import Client
from hortus.kube.clock import Clock
from hortus.kube.errors import NotFound, Unauthorized
from hortus.kube.objects import ObjectKey

VERBS: Final = ("list", "watch")
"""The verbs that a kind needs to be shown."""
_JUDGED: Final = 15.0
"""Seconds for which rows are kept although nothing changed: credentials expire without a change of an object."""

_Rows = tuple[tuple[int, int], list[FleetRow]]


class FleetWatch:
    """The objects of one viewer in one namespace, or in all."""

    def __init__(
        self, client: Client, reviews: Reviews, namespace: str, *, garden: ReadGarden | None, clock: Clock
    ) -> None:
        self.namespace = namespace
        self._client = client
        self._reviews = reviews
        self._garden = garden or ReadGarden()
        self._clock = clock
        self._caches: dict[FleetKind, Cache] = {}
        self._running: dict[tuple[bool, bool], Caches] = {}
        self._refused: dict[FleetKind, str] = {}
        self._versions: dict[FleetKind, int] = {}
        self._kept: dict[FleetView[Any], KeptRows[Any]] = {}
        self._rows: dict[tuple[FleetView[Any], ...], _Rows] = {}
        self._listeners: dict[object, Callable[[], None]] = {}

    async def want(self, kinds: Iterable[FleetKind], *, patience: float) -> None:
        """Begins to watch kinds that are not watched yet, and hides those that the viewer may no longer see.

        Waits for first lists, `patience` seconds at most. Raises KubeError.
        """
        wanted = [kind for kind in dict.fromkeys(kinds) if not self._is_out_of_reach(kind)]
        await asyncio.gather(*map(self._begin, wanted))
        waiting = [cache for cache in self._caches.values() if not cache.has_synced and not self._problem_of(cache)]
        if waiting:
            synced = [asyncio.ensure_future(cache.synced()) for cache in waiting]
            await asyncio.wait(synced, timeout=patience)
            for task in synced:
                task.cancel()

    def version(self, kinds: Iterable[FleetKind]) -> int:
        """A number that grows with each change of these kinds."""
        return sum(self._versions.get(kind, 0) for kind in kinds)

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

    def rows(self, views: Sequence[FleetView[Any]]) -> list[FleetRow]:
        """The rows of some views, worst first."""
        kinds = dict.fromkeys(kind for view in views for kind in view.kinds)
        now, state = self._clock.now(), (self.version(kinds), self.judged)
        known = self._rows.get(tuple(views))
        if known is None or known[0] != state:
            kept = [self._kept.setdefault(view, KeptRows(view)) for view in views]
            known = self._rows[tuple(views)] = state, ranked_rows(kept, self.objects(kinds), now)
        return known[1]

    @property
    def judged(self) -> int:
        """A number that changes when rows are judged again."""
        return int(self._clock.now() / _JUDGED)

    def notes(self, kinds: Iterable[FleetKind]) -> list[str]:
        """The kinds that are not shown, or not current, each with the reason."""
        found: dict[str, None] = {}
        for kind in dict.fromkeys(kinds):
            why: object = self._refused.get(kind)
            if why is None and (cache := self._caches.get(kind)) is not None:
                why = self._problem_of(cache) or (None if cache.has_synced else "being read")
            if why and not isinstance(why, NotFound):
                found[f"{kind.resource.plural}: {why}"] = None
        return list(found)

    @property
    def expired(self) -> bool:
        """True once the API server no longer accepts the credential."""
        return any(isinstance(self._problem_of(cache), Unauthorized) for cache in self._caches.values())

    async def close(self) -> None:
        """Ends every watch."""
        running, self._running = list(self._running.values()), {}
        self._caches.clear()
        self._rows.clear()
        for caches in running:
            await caches.stop()

    async def _begin(self, kind: FleetKind) -> None:
        # Objects of the garden are judged by the garden; its answer is the problem of the cache.
        allowed = kind.garden or await self._reviews.all_allowed(
            AccessNeed(verb, kind.resource, self._place(kind)) for verb in VERBS
        )
        if not allowed:
            place = f"in namespace {self.namespace}" if self.namespace else "in all namespaces"
            group = f".{kind.resource.group}" if kind.resource.group else ""
            if kind not in self._refused:
                self._versions[kind] = self._versions.get(kind, 0) + 1
            self._refused[kind] = f"you may not list and watch {kind.resource.plural}{group} {place}"
            return
        if self._refused.pop(kind, None):
            self._versions[kind] = self._versions.get(kind, 0) + 1
        if kind in self._caches:
            return
        client = self._garden.client if kind.garden else self._client
        assert client is not None, "kinds of a garden that is not known are left out"
        lister = MetadataOnly(client) if kind.metadata_only else client
        caches = self._running.get((kind.garden, kind.metadata_only))
        if caches is None:
            caches = self._running[kind.garden, kind.metadata_only] = Caches(lister, clock=self._clock)
            caches.start()
        cache = caches.get(kind.resource, namespace=self._place(kind), labels=kind.labels, transform=kept_part(kind))
        self._caches[kind] = cache
        cache.subscribe(lambda _: self._changed(kind))
        cache.on_sync(lambda: self._changed(kind))

    def _changed(self, kind: FleetKind) -> None:
        self._versions[kind] = self._versions.get(kind, 0) + 1
        for listener in list(self._listeners.values()):
            listener()

    def _place(self, kind: FleetKind) -> str:
        if kind.garden:
            return self._garden.namespace
        return self.namespace if kind.resource.namespaced else ""

    def _is_shown(self, kind: FleetKind) -> bool:
        return kind in self._caches and kind not in self._refused

    def _is_out_of_reach(self, kind: FleetKind) -> bool:
        return kind.garden and self._garden.client is None

    def _problem_of(self, cache: Cache) -> Exception | None:
        for caches in self._running.values():
            for found, problem in caches.problems():
                if found is cache:
                    return problem
        return None
