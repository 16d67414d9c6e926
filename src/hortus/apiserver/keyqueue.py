"""The server's own small loops: a set of keys and one task that brings each into order.

Level-based: a key says only where to look. A key that fails comes back later, and one that is added while it is worked
on is worked on again. The engine's queue is for controllers; this one has no priorities, no shards and no metrics, as
it never leaves the process.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from hortus.kube.clock import Clock, Timer

K = TypeVar("K", bound=Hashable)
_FIRST_RETRY, _LAST_RETRY = 0.05, 30.0
"""Seconds to wait after the first failure of a key, doubling up to the last."""

_log = logging.getLogger("hortus.apiserver.loops")


class KeyQueue(Generic[K]):
    def __init__(self, name: str, clock: Clock, work: Callable[[K], Awaitable[None]]) -> None:
        self._name = name
        self._clock = clock
        self._work = work
        self._keys: dict[K, None] = {}
        self._failures: dict[K, int] = {}
        self._timers: dict[K, Timer] = {}
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._task: asyncio.Task[None] | None = None

    def add(self, key: K) -> None:
        self._keys[key] = None
        self._wake.set()
        self._idle.clear()

    async def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run(), name=self._name)

    async def stop(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def settled(self) -> None:
        """Wait until no key is waiting or worked on; keys that failed and wait for another try do not count."""
        await self._idle.wait()

    async def _run(self) -> None:
        while True:
            if not self._keys:
                self._idle.set()
            await self._wake.wait()
            while self._keys:
                key = next(iter(self._keys))
                del self._keys[key]
                await self._try(key)
            self._wake.clear()

    async def _try(self, key: K) -> None:
        try:
            await self._work(key)
        except Exception as error:
            failures = self._failures.get(key, 0)
            self._failures[key] = failures + 1
            wait = min(_FIRST_RETRY * 2 ** min(failures, 16), _LAST_RETRY)
            _log.log(logging.WARNING if failures > 3 else logging.DEBUG, "%s: %s: %s", self._name, key, error)
            self._timers[key] = self._clock.call_later(wait, lambda: self._again(key))
        else:
            self._failures.pop(key, None)

    def _again(self, key: K) -> None:
        self._timers.pop(key, None)
        self.add(key)
