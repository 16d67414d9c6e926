"""The HTTP side of the simulated cloud: Keystone at /identity/v3, Glance at /image/v2."""

from __future__ import annotations

import re
import ssl
from collections.abc import Awaitable, Callable
from typing import Any, Final, Self
from urllib.parse import urlencode

import orjson
from aiohttp import web

from hortus.engine.health import Address
from hortus.engine.serving.listening import HttpListener
from hortus.kube import Clock, SystemClock
from hortus.kube.listeners import LIMITS, ListenerLimits
from hortus.kube.objects import format_time
from hortus.simulation.glance.images import GlanceRefusal, Images, StoredImage
from hortus.simulation.glance.tokens import LIFETIME, CloudUsers, Tokens

_IMAGES: Final = re.compile(r"/image/v2/images(?:/(?P<id>[^/]+)(?:/(?P<part>import|tasks))?)?")
_TOKENS: Final = "/identity/v3/auth/tokens"
_PAGE: Final = 25
"""Images a page unless the request says otherwise, as Glance's default limit."""

Intercept = Callable[[web.BaseRequest], Awaitable[web.StreamResponse | None]]
"""Answers a request in place of the cloud, or None to let it answer."""


class CloudServer:
    """The running cloud."""

    def __init__(
        self,
        users: CloudUsers | None = None,
        *,
        clock: Clock | None = None,
        tls: ssl.SSLContext | None = None,
        page: int = _PAGE,
        port: int = 0,
        limits: ListenerLimits = LIMITS,
    ) -> None:
        """With `port` it listens there, if the port is free."""
        self.users = users or CloudUsers()
        self.images = Images()
        self.tokens = Tokens(self.users)
        self.intercept: Intercept | None = None
        self.regions = ("RegionOne",)
        self.interfaces = ("public", "internal")
        self.calls: list[tuple[str, str]] = []
        """Method and path of each request."""
        self.has_tasks = True
        """False answers as a Glance before API version 2.12."""
        self._clock = clock or SystemClock()
        self._tls = tls
        self._page = page
        self._limits = limits
        self._listener: HttpListener | None = None
        self._port = port

    @property
    def url(self) -> str:
        return f"{'https' if self._tls is not None else 'http'}://127.0.0.1:{self._port}"

    @property
    def auth_url(self) -> str:
        return f"{self.url}/identity/v3"

    async def __aenter__(self) -> Self:
        try:
            self._listener = await self._listening(self._port)
        except OSError:
            if not self._port:
                raise
            self._listener = await self._listening(0)
        self._port = self._listener.port
        return self

    async def _listening(self, port: int) -> HttpListener:
        listener = HttpListener(Address("127.0.0.1", port), self._answer, tls=self._tls, limits=self._limits)
        await listener.start()
        return listener

    async def __aexit__(self, *reason: object) -> None:
        if self._listener is not None:
            await self._listener.stop()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self.calls.append((request.method, request.path))
        if self.intercept is not None and (answer := await self.intercept(request)) is not None:
            return answer
        body = await request.read()
        try:
            document = orjson.loads(body) if body else None
            if request.path == _TOKENS and request.method == "POST":
                return self._token(document)
            if self.tokens.living.get(request.headers.get("X-Auth-Token", ""), 0.0) <= self._clock.now():
                return _fault(401, "The request you have made requires authentication.")
            if (found := _IMAGES.fullmatch(request.path)) is not None:
                return self._image(request, found["id"], found["part"], document)
        except orjson.JSONDecodeError:
            return _fault(400, "Malformed JSON in request body.")
        except GlanceRefusal as error:
            return _fault(error.status, str(error))
        return _fault(404, "The resource could not be found.")

    def _token(self, document: Any) -> web.Response:
        token = self.tokens.issue(document, self._clock.now())
        if token is None:
            return _fault(401, "The request you have made requires authentication.")
        endpoints = [
            {"interface": interface, "region": region, "region_id": region, "url": f"{self.url}/image"}
            for region in self.regions
            for interface in self.interfaces
        ]
        catalog = [{"type": "image", "name": "glance", "endpoints": endpoints}, {"type": "compute", "endpoints": []}]
        shown = {"expires_at": format_time(self._clock.now() + LIFETIME), "catalog": catalog}
        return _json({"token": shown}, 201, {"X-Subject-Token": token})

    def _image(self, request: web.BaseRequest, image: str | None, part: str | None, document: Any) -> web.Response:
        match request.method, image, part:
            case "GET", None, None:
                return self._list(request)
            case "POST", None, None:
                return _json(self.images.create(document, self._clock.now()).document(), 201)
            case "GET", str(), None:
                return _json(self._looked(image).document())
            case "DELETE", str(), None:
                self.images.delete(image)
                return web.Response(status=204)
            case "POST", str(), "import":
                self.images.start_import(image, document)
                return web.Response(status=202)
            case "GET", str(), "tasks" if self.has_tasks:
                stored = self.images.known(image)
                return _json({"tasks": [stored.import_task()] if stored.task else []})
        return _fault(404, "The resource could not be found.")

    def _looked(self, image: str) -> StoredImage:
        stored = self.images.known(image)
        stored.look()
        return stored

    def _list(self, request: web.BaseRequest) -> web.Response:
        """One page; the address of the next one is relative, as Glance gives it."""
        query = request.query
        found = self.images.find(query, query.getall("tag", []))
        ids = [image.id for image in found]
        start = ids.index(query["marker"]) + 1 if query.get("marker") in ids else 0
        size = min(int(query.get("limit", self._page)), self._page)
        shown = {"images": [image.document() for image in found[start : start + size]], "first": "/v2/images"}
        if len(found) > start + size:
            kept = [(name, value) for name, value in query.items() if name != "marker"]
            shown["next"] = f"/v2/images?{urlencode([*kept, ('marker', ids[start + size - 1])])}"
        return _json(shown)


def _json(document: Any, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(status=status, body=orjson.dumps(document), headers=headers, content_type="application/json")


def _fault(status: int, message: str) -> web.Response:
    return _json({"error": {"code": status, "title": "Error", "message": message}}, status)
