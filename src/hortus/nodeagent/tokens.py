"""Copies tokens from Secrets to files of the node. Each Secret is watched, so an hour at rest asks nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import structlog

from hortus.kube import Client, Clock
from hortus.nodeagent.cluster import SecretView
from hortus.nodeagent.node import NodeEvents
from hortus.nodeagent.seams import Files, NodeFault
from hortus.nodeagent.settings import TokenTarget

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

TOKEN_MODE = 0o640
KEY = "token"


class TokenSync:
    """Keeps one file for each target. A token that is missing or empty leaves the file as it is."""

    def __init__(
        self,
        client: Client,
        files: Files,
        clock: Clock,
        targets: Sequence[TokenTarget],
        *,
        period: float,
        event: NodeEvents,
    ) -> None:
        self._files = files
        self._clock = clock
        self._period = period
        self._event = event
        self._views = [(target, SecretView(client, clock, target.secret_name)) for target in targets]

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for target, view in self._views:
                group.create_task(view.run())
                group.create_task(self._follow(target, view))

    @property
    def has_synced(self) -> bool:
        return all(view.has_synced for _, view in self._views)

    @property
    def paths(self) -> list[str]:
        return [target.path for target, _ in self._views]

    def look(self, path: str) -> None:
        """Compare the file at `path` now, for example after a configuration that had it removed it."""
        for target, view in self._views:
            if target.path == path:
                view.changed.set()

    async def _follow(self, target: TokenTarget, view: SecretView) -> None:
        while True:
            timer = self._clock.call_later(self._period, view.changed.set)
            await view.changed.wait()
            timer.cancel()
            view.changed.clear()
            if view.has_synced:
                self._copy(target, view)

    def _copy(self, target: TokenTarget, view: SecretView) -> None:
        secret = view.secret
        token = secret.value(KEY) if secret is not None else b""
        if not token:
            problem = f"Secret kube-system/{target.secret_name} has no {KEY}: {target.path} stays as it is"
            _log.warning("a token is missing", name=target.secret_name, path=target.path)
            self._event("TokenMissing", problem, warning=True)
            return
        try:
            if self._files.write(target.path, token, mode=TOKEN_MODE):
                _log.info("a token was written", name=target.secret_name, path=target.path)
        except NodeFault as error:
            _log.error("a token was not written", path=target.path, error=str(error))
            self._event("TokenNotWritten", str(error), warning=True)
