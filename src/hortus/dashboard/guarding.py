"""The guard around every request: host, origin, method, and the headers of every answer.

- A name that is not ours is refused: a foreign name that resolves to this machine reads nothing (DNS rebinding).
- The addresses of loopback are for programs with a bearer token. Browsers send the cookies of 127.0.0.1 to each server
  there, whatever its port, so no session begins or goes on there.
- A request that changes something names our own origin, and carries the token of its session besides.
- Answers load scripts, styles and pictures from us alone, run no inline script, stand in no frame and stay in no cache.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web
from yarl import URL

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

CONTENT_SECURITY_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS: Final = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # With no-referrer, browsers would send the origin `null` with our own forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Server": "hortus",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_SAFE: Final = ("GET", "HEAD")
_LOOPBACK: Final = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:\d+)?")
_FOREIGN: Final = "this server is not known under this name: see --public-url\n"
_FOR_PROGRAMS: Final = (
    "browsers reach this dashboard by a name of its own, so that its cookie is sent to no other server: run "
    "`hortus ui`, or open the address that the dashboard printed when it started. Programs send a bearer token\n"
)


class Guard:
    """The addresses under which this server is known."""

    def __init__(self, origins: frozenset[str]) -> None:
        """`origins` are scheme and authority, such as https://hortus.example.org."""
        self._hosts = {_authority(URL(origin)): origin for origin in origins}

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuses what is not meant for us, and protects the answer."""
        problem = self._problem(request)
        if problem is not None:
            problem.headers.update({**HEADERS, "Cache-Control": "no-store"})
            return problem
        try:
            answer = await handler(request)
        except web.HTTPException as found:
            found.headers.update(HEADERS)
            raise
        if not answer.prepared:
            protect(answer)
        return answer

    def origin_of(self, request: web.Request) -> str:
        """The origin by which a browser came. Raises HTTPMisdirectedRequest at an address that is for programs."""
        origin = self._hosts.get(request.headers.get("Host", "").lower())
        if origin is None:
            raise web.HTTPMisdirectedRequest(text=_FOR_PROGRAMS)
        return origin

    def _problem(self, request: web.Request) -> web.Response | None:
        host = request.headers.get("Host", "").lower()
        if host not in self._hosts and request.path != "/healthz":
            if not _LOOPBACK.fullmatch(host):
                return web.Response(status=421, text=_FOREIGN)
            if not request.headers.get("Authorization", "").startswith("Bearer "):
                return web.Response(status=421, text=_FOR_PROGRAMS)
        if request.method in _SAFE:
            return None
        if request.method != "POST":
            return web.Response(status=405, text="GET and POST are served here\n", headers={"Allow": "GET, HEAD, POST"})
        if request.headers.get("Origin", "").lower() != self._hosts.get(host):
            return web.Response(status=403, text="this request comes from another site, and changes nothing\n")
        return None


def protect(answer: web.StreamResponse) -> None:
    """Sets the headers of an answer; a stream calls it before it begins."""
    for name, value in HEADERS.items():
        answer.headers[name] = value
    answer.headers.setdefault("Cache-Control", "no-store")


def _authority(url: URL) -> str:
    """Host and port as browsers send them in `Host`: without the port that is the scheme's own."""
    host = f"[{url.host}]" if url.host and ":" in url.host else str(url.host)
    return host if url.is_default_port() else f"{host}:{url.port}"


def local_path(text: str) -> str:
    """A path of this server; that of the clusters for anything else, so that no sign-in ends on a foreign site."""
    fine = text.startswith("/") and not text.startswith("//") and text.isascii() and text.isprintable()
    return text if fine and "\\" not in text and " " not in text and len(text) < 2000 else "/clusters"
