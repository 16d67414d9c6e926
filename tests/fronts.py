"""Further ways to a logical cluster: servers with certificates of their own that pass requests on, or lie."""

from __future__ import annotations

import base64
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import orjson
from aiohttp import web

from hortus.engine.serving.certificates import ServingPair, self_signed
from hortus.kube import yaml
from hortus.kube.kubeconfig import from_untrusted
from hortus.kube.objects import Object
from hortus.kube.tls import client_context, server_context
from hortus.testing.apiserver import TestServer

_IDENTITY = "/api/v1/namespaces/kube-system"
_MARKS = f"{_IDENTITY}/secrets"
_MARK = f"{_MARKS}/hortus-mark"


class Front:
    """One server. What it does with requests can be changed at any time."""

    def __init__(self, server: TestServer, cluster: str, session: aiohttp.ClientSession) -> None:
        self._server, self._cluster, self._session = server, cluster, session
        self.kubeconfig: Object = {}
        self.uid = ""
        """The uid of kube-system that it shows, if not that of its cluster."""
        self.mark: bytes = b""
        """The mark that it shows, if not that of its cluster."""
        self.hides_uid = False
        self.status: dict[str, int] = {}
        """The status of requests for the mark that it refuses, by method."""
        self.requests: list[tuple[str, str]] = []

    @property
    def address(self) -> str:
        found: str = self.kubeconfig["clusters"][0]["cluster"]["server"]
        return found

    def lists(self, plural: str) -> int:
        """The number of lists of a resource, which are not watches."""
        return sum(f"/{plural}" in path and "watch=" not in path for _, path in self.requests)

    def marks(self, method: str) -> int:
        """The number of requests about the mark with this method."""
        return sum(one == method and path.startswith(_MARKS) for one, path in self.requests)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.requests.append((request.method, request.path_qs))
        of_mark = request.path in (_MARKS, _MARK)
        if of_mark and (status := self.status.get(request.method)):
            return web.json_response({"kind": "Status", "status": "Failure", "code": status}, status=status)
        if request.path == _IDENTITY and self.hides_uid:
            return web.json_response({"kind": "Status", "status": "Failure", "code": 403}, status=403)
        if request.path == _MARK and request.method == "GET" and self.mark:
            return web.Response(body=self.mark, content_type="application/json")
        kept = {name: request.headers[name] for name in ("Accept", "Content-Type") if name in request.headers}
        async with self._session.request(
            request.method,
            self._server.cluster_url(self._cluster) + request.path_qs,
            data=await request.read(),
            headers=kept,
        ) as found:
            if request.path == _IDENTITY and self.uid:
                obj = await found.json(loads=orjson.loads)
                obj["metadata"]["uid"] = self.uid
                return web.json_response(obj)
            response = web.StreamResponse(status=found.status, headers={"Content-Type": found.content_type})
            await response.prepare(request)
            async for piece in found.content.iter_any():
                await response.write(piece)
            return response

    def certify(self, pair: ServingPair, port: int) -> None:
        bundle = base64.b64encode(pair.certificate).decode()
        cluster = {"server": f"https://127.0.0.1:{port}", "certificate-authority-data": bundle}
        self.kubeconfig = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "a", "cluster": cluster}],
            "users": [{"name": "a", "user": {"token": "any"}}],
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
            "current-context": "a",
        }


@asynccontextmanager
async def front(server: TestServer, cluster: str, *, port: int = 0, **lies: Any) -> AsyncIterator[Front]:
    """A server in front of a logical cluster, with an address and an authority of its own; `lies` are its fields."""
    access = from_untrusted(yaml.dump(server.kubeconfig_dict(cluster))).access()
    user = access.credentials
    within = client_context(ca=access.ca, certificate=user.certificate, key=user.key)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=within)) as session:
        made = Front(server, cluster, session)
        for name, value in lies.items():
            setattr(made, name, value)
        app = web.Application(client_max_size=16 << 20)
        app.router.add_route("*", "/{path:.*}", made.answer)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        pair = self_signed(["127.0.0.1"], now=time.time())
        context = server_context(certificate=pair.certificate, key=pair.key)
        await web.TCPSite(runner, "127.0.0.1", port, ssl_context=context).start()
        made.certify(pair, runner.addresses[0][1])
        try:
            yield made
        finally:
            await runner.cleanup()
