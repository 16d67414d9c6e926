"""The requests that arrive in a fork, by cluster and verb."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web

from hortus.apiserver.http import Reply, RequestInfo
from hortus.kube import Clock

_READS = frozenset({"get", "list", "watch", ""})
SIMULATION = "hortus-simulation"
"""User-Agent, up to a slash, of what stands for the garden and for workloads."""
_AT_ONCE: Final = 100
"""Writes of one object at one instant that take no time."""
_SECONDS: Final = 2.0
"""Time that each later write of such an object takes: writers that undo each other's work at once would stop time."""


class RequestCounts:
    """An interceptor that counts the requests of controllers, and makes those that would stop time take some."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._instant = 0.0
        self._written: Counter[RequestInfo] = Counter()
        """By object, the writes at the present instant."""
        self._slow: set[RequestInfo] = set()
        self.calls: Counter[str] = Counter()
        self.writes: Counter[str] = Counter()

    async def answer(
        self, request: web.BaseRequest, info: RequestInfo, serve: Callable[[], Awaitable[Reply | web.StreamResponse]]
    ) -> Reply | web.StreamResponse:
        """Counts and serves the request."""
        if request.headers.get("User-Agent", "").partition("/")[0] != SIMULATION:
            self.calls[info.cluster] += 1
            if info.verb not in _READS:
                self.writes[info.cluster] += 1
                await self._take_time(info)
        return await serve()

    async def _take_time(self, info: RequestInfo) -> None:
        if not info.name:
            return
        now = self._clock.monotonic()
        if now != self._instant:
            self._instant = now
            self._written.clear()
        place = RequestInfo(info.cluster, "", "", "", info.group, "", info.resource, "", info.namespace, info.name)
        self._written[place] += 1
        if self._written[place] > _AT_ONCE:
            self._slow.add(place)
        if place in self._slow:
            await self._clock.sleep(_SECONDS)
