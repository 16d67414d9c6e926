"""`/healthz`, `/readyz` and `/metrics`, as probes, Prometheus and people with curl expect them of a Go controller.

A check is a callable that raises when something is wrong. `?verbose` lists them all, `/readyz/<name>` asks one,
`?exclude=<name>` leaves one out. Addresses are written as Go flags have them: `:8081`, `127.0.0.1:8080`, `0` for off.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence

import msgspec
import structlog
from aiohttp import web
from prometheus_client import CollectorRegistry

from hortus.engine.exposition import exposed
from hortus.engine.redaction import redact_text
from hortus.engine.serving.listening import HttpListener
from hortus.kube.listeners import LIMITS, ListenerLimits

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

Check = Callable[[], Awaitable[None] | None]
"""Returns when all is well, raises when not; the message is logged and not part of the answer."""


class Address(msgspec.Struct, frozen=True):
    """The address that a server listens on; `host` None is every interface."""

    host: str | None
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if self.host and ":" in self.host else self.host or ""
        return f"{host}:{self.port}"


def parse_address(text: str) -> Address | None:
    """`:8081`, `host:8081`, `[::1]:8081`; None for `0` and the empty text, which mean off. Raises ValueError."""
    if text in ("", "0"):
        return None
    host, colon, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535 or (":" in host and not bracketed):
        raise ValueError(f"address {text!r} must be ':port', 'host:port' or '0' for off, as in ':8081'")
    return Address(host.strip("[]") or None, int(port))


class Checks:
    """The named checks behind one of `/healthz` and `/readyz`; `ping` is always there."""

    def __init__(self) -> None:
        self._checks: dict[str, Check] = {"ping": lambda: None}

    def add(self, name: str, check: Check) -> None:
        """Ask `check` as well; raises ValueError when the name is taken."""
        if name in self._checks:
            raise ValueError(f"there is a health check {name!r} already")
        self._checks[name] = check

    def __contains__(self, name: object) -> bool:
        return name in self._checks

    async def run(self, names: Sequence[str] = (), *, without: Sequence[str] = ()) -> dict[str, Exception | None]:
        """The problem of each check, or None; of all checks when no names are given."""
        chosen = [name for name in names or self._checks if name not in without]
        return {name: await _problem(self._checks[name]) for name in chosen}


class HttpServer:
    """One listening address with a few GET routes."""

    def __init__(self, address: Address, *, limits: ListenerLimits = LIMITS) -> None:
        self._app = web.Application()
        self._listener = HttpListener(address, self._app, limits=limits)

    @property
    def port(self) -> int:
        """The port that it listens on; 0 before."""
        return self._listener.port

    def get(self, path: str, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> None:
        self._app.router.add_get(path, handler)

    async def start(self) -> None:
        """Listen. Raises OSError that names the address when it is taken."""
        await self._listener.start()

    async def stop(self) -> None:
        await self._listener.stop()


class HealthServer(HttpServer):
    """Answers `/healthz` and `/readyz` from its `health` and `readiness` checks."""

    def __init__(self, address: Address, *, readiness: Checks | None = None, limits: ListenerLimits = LIMITS) -> None:
        super().__init__(address, limits=limits)
        self.health = Checks()
        self.readiness = Checks() if readiness is None else readiness
        for path, checks in (("/healthz", self.health), ("/livez", self.health), ("/readyz", self.readiness)):
            self._serve(path, checks)

    def _serve(self, path: str, checks: Checks) -> None:
        async def all_of_them(request: web.Request) -> web.Response:
            results = await checks.run(without=request.query.getall("exclude", []))
            return _report(path.strip("/"), results, verbose="verbose" in request.query)

        async def one(request: web.Request) -> web.Response:
            name = request.match_info["name"]
            if name not in checks:
                return web.Response(status=404, text=f"there is no check {name!r}\n")
            return _report(f"{path.strip('/')}/{name}", await checks.run([name]), verbose="verbose" in request.query)

        self.get(path, all_of_them)
        self.get(path + "/{name}", one)


def serve_metrics(server: HttpServer, registry: CollectorRegistry) -> None:
    """Let `server` answer `/metrics` from `registry`, in the format that the scraper asks for."""

    async def metrics(request: web.Request) -> web.Response:
        return await exposed(request, registry)

    server.get("/metrics", metrics)


async def _problem(check: Check) -> Exception | None:
    try:
        answer = check()
        if inspect.isawaitable(answer):
            await answer
    except Exception as error:
        return error
    return None


def _report(path: str, results: dict[str, Exception | None], *, verbose: bool) -> web.Response:
    failed = {name: error for name, error in results.items() if error is not None}
    for name, error in failed.items():
        _log.info("a health check fails", path=path, check=name, error=redact_text(str(error)))
    if not failed and not verbose:
        return web.Response(text="ok")
    lines = [f"[-]{name} failed: reason withheld" if error else f"[+]{name} ok" for name, error in results.items()]
    lines.append(f"{path} check {'failed' if failed else 'passed'}")
    return web.Response(status=500 if failed else 200, text="\n".join(lines) + "\n")
