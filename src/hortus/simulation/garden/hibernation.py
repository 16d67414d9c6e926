"""The API of a hibernated shoot does not answer: connections to it are cut, as where no kube-apiserver runs.

Stands in the path of requests of the embedded API server, in front of any other faults. Which clusters sleep is known
from the Shoots, at each of their writes. The simulation itself, which prepares a cluster that is waking up, passes.
"""

from __future__ import annotations

from typing import Final

import orjson
from aiohttp import web

from hortus.apiserver import ApiServer
from hortus.apiserver.handling import Interceptor
from hortus.apiserver.http import Reply, RequestInfo
from hortus.apiserver.store.backend import Commit
from hortus.kube.objects import Object
from hortus.simulation.disruption import Answer
from hortus.simulation.garden.kinds import CORE, SHOOTS, technical_id

AGENT: Final = "hortus-simulation"
"""User-Agent, up to a slash, of whom a sleeping cluster answers."""


class Hibernation:
    """`server` is the one it stands in; `garden` the logical cluster of the Shoots; `inner` what comes after it."""

    def __init__(self, server: ApiServer, garden: str, inner: Interceptor | None = None) -> None:
        self._server = server
        self._garden = garden
        self._inner = inner
        self._sleeping: dict[str, str] = {}
        """Workload clusters by the store's name of their Shoot."""
        self._names: set[str] = set()
        self._watches: dict[str, dict[int, web.BaseRequest]] = {}
        """Open watches by cluster; by their identity, as they cannot be hashed."""
        server.context.storage.listen(self._changed, f"{CORE}/{SHOOTS.plural}")

    async def start(self) -> None:
        """Learn who sleeps already. To be called before requests are answered."""
        for shoot in await self._server.local(self._garden).list(SHOOTS):
            metadata = shoot["metadata"]
            self._follow(f"{metadata['namespace']}/{metadata['name']}", shoot)

    async def stop(self) -> None: ...

    async def answer(self, request: web.BaseRequest, info: RequestInfo, serve: Answer) -> Reply | web.StreamResponse:
        """Serve the request, or cut its connection. Raises ApiError, ConnectionResetError."""
        cluster = info.cluster
        if cluster in self._names and request.headers.get("User-Agent", "").partition("/")[0] != AGENT:
            _cut(request)
            raise ConnectionResetError("the cluster is hibernated")
        if info.verb != "watch":
            return await self._serve(request, info, serve)
        watches = self._watches.setdefault(cluster, {})
        watches[id(request)] = request
        try:
            return await self._serve(request, info, serve)
        finally:
            del watches[id(request)]
            if not watches:
                self._watches.pop(cluster, None)

    async def _serve(self, request: web.BaseRequest, info: RequestInfo, serve: Answer) -> Reply | web.StreamResponse:
        return await (serve() if self._inner is None else self._inner.answer(request, info, serve))

    def _changed(self, change: Commit) -> None:
        name = change.key.name
        if change.value is not None and b'"hibernated":true' in change.value:
            self._follow(name, orjson.loads(change.value))
        else:
            self._follow(name, {})

    def _follow(self, name: str, shoot: Object) -> None:
        asleep = (shoot.get("status") or {}).get("hibernated") is True
        cluster = technical_id(*name.split("/")) if asleep else ""
        if cluster == self._sleeping.get(name, ""):
            return
        if cluster:
            self._sleeping[name] = cluster
            for request in list(self._watches.get(cluster, {}).values()):
                _cut(request)
        else:
            self._sleeping.pop(name)
        self._names = set(self._sleeping.values())


def _cut(request: web.BaseRequest) -> None:
    if request.transport is not None:
        request.transport.abort()
