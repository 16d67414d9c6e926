"""A server behind the API server, written for tests: it records what reaches it and answers as the path asks."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

from aiohttp import web
from tests.apiserver.wire import Wire
from tests.oracles.extension import Extension, apiservice

from hortus.engine.serving import ServingPair, self_signed
from hortus.kube.objects import Object
from hortus.kube.tls import server_context

TRUST = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
_PATIENCE = 60.0
BIG = 64 * 1024 * 1024
"""Bytes of the answer that nobody reads."""


class Received(NamedTuple):
    method: str
    path: str
    headers: list[tuple[str, str]]
    body: bytes
    caller: str
    """The common name of the client's certificate."""

    def values(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key.lower() == name.lower()]


class Behind:
    """`received` are the requests but those for discovery and of garbage collectors, which get nothing; events put
    into `events` go to the open watch."""

    def __init__(self, group: str) -> None:
        self.group = group
        self.received: list[Received] = []
        self.events: asyncio.Queue[bytes] = asyncio.Queue()
        self.gone = asyncio.Event()
        """Set when a request's client has gone before its end."""
        self.sent = 0
        """Bytes of the large answer that were taken."""
        self.arrived: asyncio.Queue[bytes] = asyncio.Queue()
        """Pieces of a streamed body, in their order."""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        own = f"/apis/{self.group}/v1"
        if request.path == own:
            return web.json_response(_resources(self.group))
        collector = request.headers.get("X-Remote-User", "").startswith("system:")
        if collector or not request.path.startswith(f"{own}/"):
            return web.Response(status=404)
        what = request.path.rpartition("/")[2]
        if what == "streamed":
            async for piece in request.content.iter_any():
                self.arrived.put_nowait(piece)
        body = await request.read()
        tls = request.transport.get_extra_info("ssl_object") if request.transport is not None else None
        subject = dict(pair for part in (tls.getpeercert() or {}).get("subject", ()) for pair in part) if tls else {}
        self.received.append(
            Received(
                request.method, request.path_qs, list(request.headers.items()), body, subject.get("commonName", "")
            )
        )
        answer = getattr(self, f"_{what}", self._echo)
        result: web.StreamResponse = await (self._watched(request) if "watch" in request.query else answer(request))
        return result

    async def _echo(self, request: web.Request) -> web.StreamResponse:
        return web.Response(
            body=await request.read(),
            status=201 if request.method == "POST" else 200,
            headers={"X-Own": "yes", "Connection": "X-Secret", "X-Secret": "hop"},
            content_type="text/x-echo",
        )

    async def _watched(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        try:
            while event := await self.events.get():
                await response.write(event + b"\n")
        except (ConnectionError, asyncio.CancelledError):
            self.gone.set()
            raise
        return response

    async def _slow(self, request: web.Request) -> web.StreamResponse:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            self.gone.set()
            raise
        return web.Response()

    async def _big(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while self.sent < BIG:
            await response.write(bytes(64 * 1024))
            self.sent += 64 * 1024
        return response

    async def _redirected(self, request: web.Request) -> web.StreamResponse:
        return web.Response(status=302, headers={"Location": "https://elsewhere.example/"})

    async def _broken(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"half")
        assert request.transport is not None
        request.transport.abort()
        return response

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        talk = web.WebSocketResponse(protocols=("v5.channel.k8s.io",))
        await talk.prepare(request)
        async for message in talk:
            await talk.send_bytes(message.data[::-1])
        self.gone.set()
        return talk

    async def _refused(self, request: web.Request) -> web.StreamResponse:
        return web.json_response({"kind": "Status", "code": 403}, status=403)


class Listening(NamedTuple):
    """A running server that trusts the front proxy of one cluster."""

    behind: Behind
    port: int
    pair: ServingPair


@contextlib.asynccontextmanager
async def listening_behind(wire: Wire, group: str, host: str) -> AsyncIterator[Listening]:
    """Starts the server, which believes the headers of the API server of `wire`, without registering it."""
    behind = Behind(group)
    pair = self_signed([host], now=time.time())
    trust = (await wire.get(TRUST)).body["data"]["requestheader-client-ca-file"]
    tls = server_context(certificate=pair.certificate, key=pair.key, client_ca=trust.encode())
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", behind.handle)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    try:
        yield Listening(behind, runner.addresses[0][1], pair)
    finally:
        await runner.cleanup()
        # The transports of connections that were cut end a moment later, which the loop has to live to see.
        for _ in range(20):
            await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def running_behind(
    wire: Wire, namespace: str, *, name: str = "behind", believed: bool = True
) -> AsyncIterator[Behind]:
    """Starts the server and registers it in `namespace`; its certificate is in the caBundle if it is `believed`."""
    extension = Extension(namespace, name, [(f"{name}.{namespace}.example.com", "v1")])
    group, version = extension.versions[0]
    other = self_signed(["localhost"], now=time.time())
    async with listening_behind(wire, group, f"{name}.{namespace}.svc") as listening:
        ca = listening.pair.bundle if believed else other.bundle
        try:
            await _register(wire, extension, ca, listening.port)
            yield listening.behind
        finally:
            await wire.delete(f"{SERVICES}/{version}.{group}")


async def _register(wire: Wire, extension: Extension, ca: bytes, port: int) -> None:
    service: Object = {
        "metadata": {"name": extension.service},
        "spec": {"type": "ExternalName", "externalName": "localhost"},
    }
    assert (await wire.post(f"/api/v1/namespaces/{extension.namespace}/services", service)).code == 201
    obj = apiservice(extension, *extension.versions[0], ca, port)
    assert (await wire.post(SERVICES, obj)).code == 201
    await until_condition(wire, obj["metadata"]["name"], "True")
    group, version = extension.versions[0]
    async with asyncio.timeout(_PATIENCE):
        while ca and (await wire.get(f"/apis/{group}/{version}")).body == b"service unavailable\n":
            await asyncio.sleep(0.02)


async def until_condition(wire: Wire, name: str, status: str) -> Object:
    """The condition Available of an APIService once it has this status."""
    async with asyncio.timeout(_PATIENCE):
        while True:
            found: Any = (await wire.get(f"{SERVICES}/{name}")).body
            for condition in found.get("status", {}).get("conditions") or ():
                if condition["type"] == "Available" and condition["status"] == status:
                    return dict(condition)
            await asyncio.sleep(0.02)


def _resources(group: str) -> Object:
    verbs = ["create", "delete", "deletecollection", "get", "list", "watch"]
    thing = {"name": "things", "singularName": "thing", "namespaced": True, "kind": "Thing", "verbs": verbs}
    part = {"name": "things/status", "singularName": "", "namespaced": True, "kind": "Thing", "verbs": ["get"]}
    resources = [{**thing, "shortNames": ["th"], "categories": ["all"]}, part]
    head = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{group}/v1"}
    return {**head, "resources": resources}
