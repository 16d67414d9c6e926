"""The caches of one client: callers that ask for the same selection share one list, one watch and one copy in memory.

There is one `Caches` for each API server that a process looks at, so that a remote cluster's watches end together when
its connection is given up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from random import Random

from hortus.engine.cache import Cache, Transform
from hortus.engine.reflector import UNSERVED_RETRY, ListerWatcher, Reflector, Selection
from hortus.engine.scope import start_shared
from hortus.kube.clock import Clock
from hortus.kube.errors import NotServed
from hortus.kube.objects import Resource


class Caches:
    """Hands out caches, runs their reflectors between `start` and `stop`."""

    def __init__(self, client: ListerWatcher, *, clock: Clock, random: Random | None = None) -> None:
        self._client = client
        self._clock = clock
        self._random = random or Random()  # noqa: S311 - jitter, not secrecy
        self._caches: dict[tuple[Selection, Transform | None], Cache] = {}
        self._reflectors: dict[str, Reflector] = {}
        self._optional: set[str] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self._started = False

    def get(
        self,
        resource: Resource,
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        transform: Transform | None = None,
    ) -> Cache:
        """The cache of this selection, made when nobody asked before; a cache asked for after `start` starts at once.

        Another transform is another cache: what is kept differs.
        """
        selection = Selection(resource, namespace, labels, fields)
        known = self._caches.get((selection, transform))
        if known is not None:
            return known
        name = str(selection) if str(selection) not in self._reflectors else f"{selection}#{len(self._reflectors)}"
        cache = Cache(name, transform=transform, belongs=selection.belongs)
        self._caches[selection, transform] = cache
        self._reflectors[name] = Reflector(
            self._client,
            selection,
            cache,
            clock=self._clock,
            random=self._random,
            unserved_backoff=UNSERVED_RETRY,
        )
        if self._started:
            self._run(name)
        return cache

    def start(self) -> None:
        """Begin to list and watch."""
        self._started = True
        for name in self._reflectors:
            self._run(name)

    async def stop(self) -> None:
        """End every watch. The caches keep what they hold and are current no more."""
        self._started = False
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def synced(self) -> None:
        """Return when the first list of every cache is complete."""
        for cache in list(self._caches.values()):
            await cache.synced()

    def allow_unserved(self, cache: Cache) -> None:
        """Do not wait for this cache where the server does not serve its kind, which the log reports as an error."""
        self._optional.add(cache.name)

    @property
    def waiting_for(self) -> list[str]:
        """The caches whose first list is not complete, with the problem where there is one."""
        return [
            f"{cache.name}: {self._reflectors[cache.name].problem or 'listing'}"
            for cache in self._caches.values()
            if not cache.has_synced and not self._is_left_out(cache)
        ]

    def _is_left_out(self, cache: Cache) -> bool:
        return cache.name in self._optional and isinstance(self._reflectors[cache.name].problem, NotServed)

    def stalled(self) -> Iterator[tuple[Resource, Cache, Exception]]:
        """The caches that wait for the first list or whose kind is served no more, each with the problem."""
        for (selection, _), cache in self._caches.items():
            problem = self._reflectors[cache.name].problem
            if problem is None or self._is_left_out(cache):
                continue
            if not cache.has_synced or isinstance(problem, NotServed):
                yield selection.resource, cache, problem

    def problems(self) -> Iterator[tuple[Cache, Exception | None]]:
        """Every cache, with why it, or what it holds of an object, is not being kept current now."""
        for cache in self:
            yield cache, self._reflectors[cache.name].problem or cache.problem

    def __iter__(self) -> Iterator[Cache]:
        return iter(list(self._caches.values()))

    def _run(self, name: str) -> None:
        # A cache that a reconcile asks for serves all: it runs without that reconcile's context.
        self._tasks.append(start_shared(self._reflectors[name].run(), name=f"reflector {name}"))
