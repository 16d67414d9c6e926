"""A record of what a program does on an API server, and on whose behalf: one entry for each sort of request.

It stands in the path of the requests of an embedded API server, so that nothing that reaches a handler is missing.
"""

from __future__ import annotations

from typing import NamedTuple

from aiohttp import web

from hortus.apiserver.handling import Interceptor
from hortus.apiserver.http import Reply, RequestInfo
from hortus.kube.errors import ApiError
from hortus.simulation.disruption import Answer


class Deed(NamedTuple):
    """A request that was answered with success."""

    cluster: str
    """The logical cluster."""
    acting_as: str
    """The user that the program impersonated; empty for the program itself."""
    verb: str
    group: str
    resource: str
    """Plural, with a subresource as `agents/status`."""
    namespace: str
    name: str
    """Empty for a collection, and for a creation."""

    def __str__(self) -> str:
        where = "/".join(filter(None, (self.namespace, self.name)))
        kind = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{self.verb} {kind} {where} in {self.cluster}" + (f" as {self.acting_as}" if self.acting_as else "")


class DeedRecorder:
    """Keeps the deeds of one program, known by its User-Agent."""

    def __init__(self, agent: str, inner: Interceptor | None = None) -> None:
        """`inner` is the interceptor that stands behind this one."""
        self._agent = agent
        self._inner = inner
        self._found: set[Deed] = set()

    async def answer(self, request: web.BaseRequest, info: RequestInfo, serve: Answer) -> Reply | web.StreamResponse:
        """Serves the request, and records it where it is one of the program's. Raises ApiError."""
        if request.headers.get("User-Agent", "").partition("/")[0] != self._agent or not info.resource:
            return await self._serve(request, info, serve)
        deed = Deed(
            info.cluster,
            request.headers.get("Impersonate-User", ""),
            info.verb,
            info.group,
            "/".join(filter(None, (info.resource, info.subresource))),
            info.namespace,
            info.name,
        )
        early = info.verb == "watch" and deed not in self._found
        if early:
            self._found.add(deed)  # a watch is answered when it ends
        try:
            answer = await self._serve(request, info, serve)
        except ApiError:
            if early:
                self._found.discard(deed)
            raise
        if not isinstance(answer, Reply) or answer.code < 400:
            self._found.add(deed)
        return answer

    def take(self) -> frozenset[Deed]:
        """Returns the deeds since the last call."""
        found = frozenset(self._found)
        self._found.clear()
        return found

    def __len__(self) -> int:
        return len(self._found)

    async def _serve(self, request: web.BaseRequest, info: RequestInfo, serve: Answer) -> Reply | web.StreamResponse:
        return await (serve() if self._inner is None else self._inner.answer(request, info, serve))
