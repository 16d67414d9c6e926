"""The queue of the server's own controllers: keys of all logical clusters, processed by few tasks that no cluster can
block.

Level-based: a key only names an object. A key that fails is retried later, and one that is added while it is processed
is processed again. The engine's queue is for controllers of clusters; this one has no priorities, no shards and no
metrics, because it never leaves the process.

The time of a key depends on its cluster: deletions call the webhooks that its users configured. So one key of each
cluster is processed at a time, clusters take turns, a key that takes longer than `SLOW` seconds gives up its place
among the quick ones, and one that takes longer than `LONGEST` is cancelled and retried later. Clusters whose last key
was slow wait for each other, and quick ones do not wait for them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from contextvars import Context, ContextVar
from functools import partial
from typing import Generic, TypeVar

from hortus.kube.clock import Clock, Timer

K = TypeVar("K", bound=Hashable)
SLOW, LONGEST = 1.0, 30.0
"""Seconds of work on one key."""
QUICK_WORKERS, SLOW_WORKERS, MOST_WORKERS = 8, 8, 64
"""Keys of quick clusters and of slow ones begun at once, and all keys, those included that turned out to be slow."""
_FIRST_RETRY, _LAST_RETRY = 0.05, 30.0
"""Seconds to wait after the first failure of a key, doubling up to the last."""

OWN_WORK: ContextVar[bool] = ContextVar("own work", default=False)
"""True in the work of such a queue, False in the request of a client."""

_log = logging.getLogger("hortus.apiserver.loops")


class KeyQueue(Generic[K]):
    """`work` processes one key; `cluster_of` returns its logical cluster."""

    def __init__(
        self, name: str, clock: Clock, work: Callable[[K], Awaitable[None]], cluster_of: Callable[[K], str]
    ) -> None:
        self._name = name
        self._clock = clock
        self._work = work
        self._cluster_of = cluster_of
        self._waiting: dict[str, dict[K, None]] = {}
        """Keys by cluster."""
        self._turns: tuple[dict[str, None], dict[str, None]] = ({}, {})
        """Quick and slow clusters that can begin, in the order of their turns."""
        self._running: dict[str, asyncio.Task[None]] = {}
        self._overdue: set[str] = set()
        """Clusters whose key in progress has taken longer than `SLOW`."""
        self._slow: set[str] = set()
        """Clusters whose last key took longer than `SLOW`."""
        self._failures: dict[K, int] = {}
        self._timers: dict[K, Timer] = {}
        self._idle = asyncio.Event()
        self._idle.set()
        self._started = False

    def add(self, key: K) -> None:
        cluster = self._cluster_of(key)
        self._waiting.setdefault(cluster, {})[key] = None
        self._line_up(cluster)
        self._idle.clear()
        self._begin()

    async def start(self) -> None:
        self._started = True
        self._begin()

    async def stop(self) -> None:
        self._started = False
        for timer in self._timers.values():
            timer.cancel()
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def settled(self) -> None:
        """Waits until no key is waiting or in progress; failed keys that wait for a retry do not count."""
        await self._idle.wait()

    def _line_up(self, cluster: str) -> None:
        if cluster in self._waiting and cluster not in self._running:
            self._turns[cluster in self._slow][cluster] = None

    def _begin(self) -> None:
        """Starts a task for each cluster in turn, as long as there are free ones."""
        while self._started and (cluster := self._next()) is not None:
            keys = self._waiting.pop(cluster)
            key = next(iter(keys))
            del keys[key]
            if keys:
                self._waiting[cluster] = keys
            # A context of its own: these writes belong to no request, and no request gets their warnings.
            task = asyncio.get_running_loop().create_task(
                self._work_on(cluster, key), name=f"{self._name} {cluster}", context=Context()
            )
            self._running[cluster] = task
            task.add_done_callback(partial(self._done, cluster, key))

    def _next(self) -> str | None:
        """The next cluster in turn; None when none may begin."""
        quick, slow = self._turns
        if len(self._running) >= MOST_WORKERS or not (quick or slow):
            return None
        busy = sum(cluster in self._slow for cluster in self._running)
        if quick and len(self._running.keys() - self._slow - self._overdue) < QUICK_WORKERS:
            turns = quick
        elif slow and busy < SLOW_WORKERS:
            turns = slow
        else:
            return None
        cluster = next(iter(turns))
        del turns[cluster]
        return cluster

    async def _work_on(self, cluster: str, key: K) -> None:
        task = asyncio.current_task()
        assert task is not None
        timer = self._clock.call_later(SLOW, lambda: overdue())

        def overdue() -> None:
            nonlocal timer
            self._overdue.add(cluster)
            timer = self._clock.call_later(LONGEST - SLOW, partial(task.cancel, "took too long"))
            self._begin()

        OWN_WORK.set(True)
        try:
            await self._work(key)
        finally:
            timer.cancel()

    def _done(self, cluster: str, key: K, task: asyncio.Task[None]) -> None:
        del self._running[cluster]
        if cluster in self._overdue:
            self._overdue.discard(cluster)
            self._slow.add(cluster)
        else:
            self._slow.discard(cluster)
        error = TimeoutError(f"took longer than {LONGEST:g} s") if task.cancelled() else task.exception()
        if error is None:
            self._failures.pop(key, None)
        elif self._started:
            self._failed(key, error)
        self._line_up(cluster)
        self._begin()
        if not self._waiting and not self._running:
            self._idle.set()

    def _failed(self, key: K, error: BaseException) -> None:
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        wait = min(_FIRST_RETRY * 2 ** min(failures, 16), _LAST_RETRY)
        if failures > 3:
            _log.warning("work on a key failed", extra={"queue": self._name, "key": str(key), "error": str(error)})
        else:
            _log.debug("work on a key failed", extra={"queue": self._name, "key": str(key), "error": str(error)})
        self._timers[key] = self._clock.call_later(wait, lambda: self._again(key))

    def _again(self, key: K) -> None:
        self._timers.pop(key, None)
        self.add(key)
