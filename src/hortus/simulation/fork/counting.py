"""The requests that arrive in a fork, by cluster and verb."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable

from aiohttp import web

from hortus.apiserver.http import Reply, RequestInfo

_READS = frozenset({"get", "list", "watch", ""})
SIMULATION = "hortus-simulation"
"""User-Agent, up to a slash, of what stands for the garden and for workloads."""


class RequestCounts:
    """An interceptor that counts the requests of controllers."""

    def __init__(self) -> None:
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
        return await serve()
