"""One request on its way through this server to an aggregated API server: bodies stream both ways, and nothing is read
ahead of what the other end takes.

The request is authenticated and authorized here, like every other; admission belongs to the server behind. It ends with
its client: the connection's loss cancels the task. Codes and texts of refusals are kube-aggregator's
(k8s.io/kube-aggregator, pkg/apiserver/handler_proxy.go), plain text where that answers in plain text.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Final

import aiohttp
from aiohttp import HttpVersion10, web
from multidict import CIMultiDict

from hortus.apiserver.aggregation.apiservices import RemoteApi
from hortus.apiserver.aggregation.headers import forwarded, returned
from hortus.apiserver.aggregation.resolving import RemoteAddress, Resolver
from hortus.apiserver.aggregation.servers import RemoteServer, RemoteServers, Unreachable
from hortus.apiserver.aggregation.upgrading import PassedAnswer, Tunnels, is_upgrade
from hortus.apiserver.authn.identity import UserInfo
from hortus.apiserver.connection import Connection, taken
from hortus.apiserver.http import Reply, RequestInfo
from hortus.apiserver.remarks import REMARKS
from hortus.apiserver.resources.names import random_uid
from hortus.apiserver.tenants import ROOT_CLUSTER
from hortus.kube.errors import Timeout

LONG_RUNNING: Final = frozenset({"attach", "exec", "log", "portforward", "proxy"})
"""Subresources whose requests have no time limit, besides watches (kube-apiserver)."""
_DISCOVERY_SECONDS = 5.0
"""Seconds for the list of resources of a version, which every client waits for (k8s.io/apiserver, pkg/util/proxy)."""
_UNSENT = 64 * 1024
"""Bytes in the socket's buffer from which the server waits for the client."""
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_NO_BODY: Final = frozenset({HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED})
UNAVAILABLE = "service unavailable"
_REDIRECTED = "the backend attempted to redirect this request, which is not permitted"
"""The refusal of kube-apiserver with --aggregator-reject-forwarding-redirect, its default: a client would follow with
its credentials."""


def plain(text: str, code: int) -> Reply:
    """A refusal as Go's http.Error writes it."""
    headers = {"X-Content-Type-Options": "nosniff"}
    return Reply(f"{text}\n".encode(), code=code, content_type="text/plain; charset=utf-8", headers=headers)


class Proxy:
    def __init__(self, servers: RemoteServers, resolver: Resolver) -> None:
        self._servers = servers
        self._resolver = resolver
        self._answers: set[aiohttp.ClientResponse] = set()
        self._ending: set[aiohttp.ClientResponse] = set()
        self._tunnels = Tunnels()

    async def end(self) -> None:
        """Ends every stream, as if the server behind had ended it."""
        self._ending |= self._answers
        for answer in list(self._answers):
            answer.close()
        self._tunnels.end()

    async def stop(self) -> None:
        """Cuts what is left of the streams."""
        await self._tunnels.stop()

    async def pass_on(
        self, request: web.BaseRequest, info: RequestInfo, api: RemoteApi, user: UserInfo
    ) -> Reply | web.StreamResponse:
        """The answer of the server behind, or why there is none. Raises Timeout, ConnectionError."""
        if not api.available:
            return plain(UNAVAILABLE, 503)
        try:
            server = self._servers.of(info.cluster, api)
        except ValueError as error:
            return plain(str(error), 500)
        try:
            address = (await self._resolver.target(info.cluster, api.service)).any()
        except LookupError:
            return plain(UNAVAILABLE, 503)
        connection = request.protocol
        assert isinstance(connection, Connection)
        said = REMARKS.get()
        audit = (said.audit_id if said is not None else "") or request.headers.get("Audit-Id") or random_uid()
        target = _target(request, info)
        connection.stream = asyncio.current_task()
        try:
            headers = forwarded(request, user, audit, info.path)
            if is_upgrade(request):
                return await self._tunnels.open(request, server, address, target, headers)
            return await self._passed(request, info, server, address, target, headers)
        except Unreachable as error:
            return plain(f"error trying to reach service: {error}", 503)
        finally:
            connection.stream = None

    async def _passed(
        self,
        request: web.BaseRequest,
        info: RequestInfo,
        server: RemoteServer,
        address: RemoteAddress,
        target: str,
        headers: CIMultiDict[str],
    ) -> Reply | web.StreamResponse:
        within = _seconds(request, info)
        begun = False
        try:
            async with (
                asyncio.timeout(within),
                server.ask(request.method, address, target, headers, _body(request)) as answer,
            ):
                if 300 <= answer.status < 400 and "Location" in answer.headers:
                    return plain(_REDIRECTED, 502)
                begun = True
                return await self._written(request, answer)
        except TimeoutError:
            if begun:
                raise _broken_off(request) from None
            if within == _DISCOVERY_SECONDS:
                raise Unreachable("context deadline exceeded") from None
            raise Timeout("request did not complete within the allotted timeout") from None
        except Unreachable:
            if begun:
                raise _broken_off(request) from None
            raise

    async def _written(self, request: web.BaseRequest, answer: aiohttp.ClientResponse) -> web.StreamResponse:
        """Writes the answer as it arrives."""
        said = REMARKS.get()
        if said is not None and said.on_start is not None and answer.content_length is None:
            said.on_start()
        self._answers.add(answer)
        try:
            sink = _Sink(request, answer)
            sink.begin()
            try:
                async for chunk in answer.content.iter_any():
                    await sink.write(chunk)
            except aiohttp.ClientError:
                if answer not in self._ending:
                    raise
            sink.end()
        finally:
            self._answers.discard(answer)
            self._ending.discard(answer)
        return PassedAnswer(answer.status, keep_alive=sink.keep_alive)


class _Sink:
    """The client's end of an answer: HTTP/1.1 with a length where that is known, in chunks otherwise."""

    def __init__(self, request: web.BaseRequest, answer: aiohttp.ClientResponse) -> None:
        self._request = request
        self._answer = answer
        bodiless = request.method == "HEAD" or answer.status in _NO_BODY
        length = answer.headers.get("Content-Length")
        old = request.version == HttpVersion10
        self._chunked = length is None and not bodiless and not old
        self._length = length if answer.status not in _NO_BODY else None
        self.keep_alive = bool(request.keep_alive) and not (old and length is None and not bodiless)

    def begin(self) -> None:
        answer = self._answer
        lines = [f"HTTP/1.1 {answer.status} {answer.reason or ''}"]
        lines += [f"{name}: {value}" for name, value in returned(answer.headers)]
        if self._chunked:
            lines.append("Transfer-Encoding: chunked")
        elif self._length is not None:
            lines.append(f"Content-Length: {self._length}")
        if not self.keep_alive:
            lines.append("Connection: close")
        self._transport().write(("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "surrogateescape"))

    async def write(self, chunk: bytes) -> None:
        transport = self._transport()
        transport.write(b"%x\r\n%b\r\n" % (len(chunk), chunk) if self._chunked else chunk)
        if transport.get_write_buffer_size() >= _UNSENT:
            await taken(self._request)

    def end(self) -> None:
        if self._chunked:
            self._transport().write(b"0\r\n\r\n")

    def _transport(self) -> asyncio.Transport:
        transport = self._request.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the client has gone")
        return transport


def _broken_off(request: web.BaseRequest) -> ConnectionError:
    """Ends the client's connection, which is the only sign that half an answer can have."""
    connection = request.protocol
    assert isinstance(connection, Connection)
    connection.drop()
    return ConnectionResetError("the answer broke off")


def _target(request: web.BaseRequest, info: RequestInfo) -> str:
    """The path below the logical cluster with its query, as the client wrote them."""
    raw: str = request._message.path
    prefix = f"/clusters/{info.cluster}"
    if info.cluster != ROOT_CLUSTER or raw.startswith(f"{prefix}/"):
        raw = raw[len(prefix) :]
    return raw


def _seconds(request: web.BaseRequest, info: RequestInfo) -> float | None:
    """The time for a whole request; None for one that may last."""
    connection = request.protocol
    assert isinstance(connection, Connection)
    if info.verb == "watch" or info.subresource.partition("/")[0] in LONG_RUNNING:
        return None
    if not info.resource and info.path.count("/") == 3:
        return _DISCOVERY_SECONDS
    return connection.listener.limits.body


def _body(request: web.BaseRequest) -> AsyncIterator[bytes] | None:
    stream = request.content
    if stream.is_eof() and not stream.total_bytes:
        return None
    return _pieces(request)


async def _pieces(request: web.BaseRequest) -> AsyncIterator[bytes]:
    stream, transport = request.content, request.transport
    expected = request.headers.get("Expect", "").lower() == "100-continue"
    if expected and not stream.is_eof() and transport is not None:
        transport.write(_CONTINUE)
    while not stream.at_eof():
        piece = await stream.readany()
        if piece:
            yield piece
