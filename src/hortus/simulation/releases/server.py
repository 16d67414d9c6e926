"""The HTTP side of the simulated GitHub."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, Self

import orjson
from aiohttp import web

from hortus.engine.health import Address
from hortus.engine.serving.listening import HttpListener
from hortus.kube.listeners import LIMITS, ListenerLimits
from hortus.kube.objects import format_time

_ROUTE: Final = re.compile(r"/repos/(?P<owner>[^/]+)/(?P<repository>[^/]+)(?:/releases(?P<rest>/.*)?)?")
_MOST: Final = 100
"""Releases a page, as GitHub limits them."""
_DEFAULT: Final = 30
_STORAGE: Final = "/storage/"

Intercept = Callable[[web.BaseRequest], Awaitable[web.StreamResponse | None]]
"""Answers a request in place of the server, or None to let it answer."""


class GitHubServer:
    """The running server. `intercept` stands for faults."""

    def __init__(
        self,
        folder: Path,
        *,
        owner: str,
        repository: str,
        token: str = "",
        allowance: int = 0,
        page: int = _MOST,
        limits: ListenerLimits = LIMITS,
    ) -> None:
        """With `token`, every call needs it. `allowance` limits calls that are not answered by 304; 0 does not."""
        self.folder = folder
        self.intercept: Intercept | None = None
        self.drafts: set[str] = set()
        """Tags of releases that are drafts."""
        self.with_digests = True
        """False serves assets as GitHub did before June 2025, without a digest."""
        self.spent = 0
        """Calls counted against the allowance."""
        self._owner, self._repository, self._token = owner, repository, token
        self._allowance, self._page = allowance, page
        self._limits = limits
        self._listener: HttpListener | None = None
        self._port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def __aenter__(self) -> Self:
        # Entered again it has its former port, as a server that was down.
        self._listener = HttpListener(Address("127.0.0.1", self._port), self._answer, limits=self._limits)
        await self._listener.start()
        self._port = self._listener.port
        return self

    async def __aexit__(self, *reason: object) -> None:
        if self._listener is not None:
            await self._listener.stop()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if self.intercept is not None and (answer := await self.intercept(request)) is not None:
            return answer
        if request.path.startswith(_STORAGE):
            return self._storage(request.path.removeprefix(_STORAGE))
        if self._token and not hmac.compare_digest(request.headers.get("Authorization", ""), f"Bearer {self._token}"):
            return _problem(401, "Bad credentials")
        found = _ROUTE.fullmatch(request.path)
        if found is None or (found["owner"], found["repository"]) != (self._owner, self._repository):
            return _problem(404, "Not Found")
        return self._api(request, found["rest"])

    def _api(self, request: web.BaseRequest, rest: str | None) -> web.StreamResponse:
        if request.path.endswith(f"/repos/{self._owner}/{self._repository}"):
            return self._tagged(request, {"full_name": f"{self._owner}/{self._repository}"})
        parts = (rest or "").strip("/").split("/")
        match parts:
            case [""]:
                return self._list(request)
            case ["tags", tag] if self._is_published(tag):
                return self._tagged(request, self._release(tag))
            case ["assets", number]:
                return self._asset(number)
        return _problem(404, "Not Found")

    def _list(self, request: web.BaseRequest) -> web.StreamResponse:
        size = min(int(request.query.get("per_page", _DEFAULT)), _MOST, self._page)
        page = int(request.query.get("page", 1))
        tags = self._tags()
        shown = tags[(page - 1) * size : page * size]
        headers = {}
        if page * size < len(tags):
            headers["Link"] = f'<{self.url}{request.path}?per_page={size}&page={page + 1}>; rel="next"'
        return self._tagged(request, [self._release(tag) for tag in shown], headers)

    def _tagged(self, request: web.BaseRequest, content: Any, headers: dict[str, str] | None = None) -> web.Response:
        """A JSON answer with its ETag; one that has not changed costs nothing of the allowance."""
        body = orjson.dumps(content)
        etag = f'"{hashlib.sha256(body).hexdigest()[:20]}"'
        named = {"ETag": etag, "Content-Type": "application/json", **(headers or {})}
        if request.headers.get("If-None-Match") == etag:
            return web.Response(status=304, headers=named)
        self.spent += 1
        if self._allowance:
            left = max(self._allowance - self.spent, 0)
            named |= {"X-RateLimit-Limit": str(self._allowance), "X-RateLimit-Remaining": str(left)}
            if self.spent > self._allowance:
                return _problem(403, "API rate limit exceeded", named | {"Retry-After": "600"})
        return web.Response(body=body, headers=named)

    def _asset(self, number: str) -> web.StreamResponse:
        for tag in self._tags():
            for path in self._files(tag):
                if str(_number(tag, path.name)) == number:
                    self.spent += 1
                    return web.Response(status=302, headers={"Location": f"{self.url}{_STORAGE}{tag}/{path.name}"})
        return _problem(404, "Not Found")

    def _storage(self, place: str) -> web.StreamResponse:
        tag, _, name = place.partition("/")
        if tag in self._tags() and (self.folder / tag / name) in self._files(tag):
            return web.FileResponse(self.folder / tag / name)
        return _problem(404, "Not Found")

    def _tags(self) -> list[str]:
        """The newest first, by the change of their folders."""
        folders = [path for path in self.folder.iterdir() if path.is_dir()]
        return [path.name for path in sorted(folders, key=lambda path: (-path.stat().st_mtime, path.name))]

    def _files(self, tag: str) -> list[Path]:
        return sorted(path for path in (self.folder / tag).iterdir() if path.is_file())

    def _is_published(self, tag: str) -> bool:
        return tag in self._tags() and tag not in self.drafts

    def _release(self, tag: str) -> dict[str, Any]:
        return {
            "id": _number(tag, ""),
            "tag_name": tag,
            # A title that people give; it is no name of a release.
            "name": f"Release {tag}",
            "draft": tag in self.drafts,
            "prerelease": False,
            "published_at": None if tag in self.drafts else format_time((self.folder / tag).stat().st_mtime),
            "assets": [self._described(tag, path) for path in self._files(tag)],
        }

    def _described(self, tag: str, path: Path) -> dict[str, Any]:
        data = path.read_bytes()
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}" if self.with_digests else None
        return {"id": _number(tag, path.name), "name": path.name, "size": len(data), "digest": digest}


def _number(tag: str, name: str) -> int:
    return int(hashlib.sha256(f"{tag}/{name}".encode()).hexdigest()[:12], 16)


def _problem(status: int, message: str, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(status=status, body=orjson.dumps({"message": message}), headers=headers)
