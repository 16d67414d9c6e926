"""`/livez`, `/readyz` and `/healthz` as probes know them from kube-apiserver (Kubernetes docs, "API health endpoints").

A process that answers is alive. A process whose store accepts writes is ready: a server that cannot write is removed
from a load balancer but must not be restarted, because another process would find the same disk or the same etcd.
`?verbose` lists all checks, `?exclude=NAME` omits one, `/readyz/NAME` runs one. The cause of a failed check is only
logged.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping

from hortus.apiserver.http import Reply
from hortus.apiserver.store.backend import StoreFailed
from hortus.kube.errors import NotFound

Check = Callable[[], Awaitable[None]]
"""Raises StoreFailed when the check fails."""

_PATHS = ("/livez", "/readyz", "/healthz")

_log = logging.getLogger("hortus.apiserver.health")


async def _ping() -> None:
    """Always passes: the process answers."""


class HealthChecks:
    def __init__(self, readiness: Mapping[str, Check]) -> None:
        self._checks: dict[str, Mapping[str, Check]] = {path: {"ping": _ping} for path in _PATHS}
        self._checks["/readyz"] = {"ping": _ping, **readiness}

    @staticmethod
    def answers(path: str) -> bool:
        return path.startswith(_PATHS)

    async def answer(self, path: str, *, verbose: bool, exclude: frozenset[str]) -> Reply:
        """200 or 500 in plain text. Raises NotFound for a check that does not exist."""
        base, _, name = path[1:].partition("/")
        checks = self._checks.get(f"/{base}")
        if checks is None or (name and name not in checks):
            raise NotFound("the server could not find the requested resource")
        chosen = [name] if name else [each for each in checks if each not in exclude]
        lines = [await _line(each, checks[each]) for each in chosen]
        if any(line.startswith("[-]") for line in lines):
            return _text("\n".join([*lines, f"{base} check failed\n"]), 500)
        return _text("\n".join([*lines, f"{base} check passed\n"]) if verbose else "ok", 200)


async def _line(name: str, check: Check) -> str:
    try:
        await check()
    except StoreFailed as error:
        _log.warning("a check failed", extra={"check": name, "error": str(error)})
        return f"[-]{name} failed: reason withheld"
    return f"[+]{name} ok"


def _text(words: str, code: int) -> Reply:
    return Reply(words.encode(), code=code, content_type="text/plain; charset=utf-8")
