"""Our own ChangeKinds, kept as the domains declare them.

The process that asks for a change creates its ChangeKind, so that both are of one release. A chart could not: Helm
knows no kind whose CRD it installs in the same release.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import structlog

from hortus.engine.rollouts.types import CHANGE_KINDS, ChangeKind
from hortus.kube import Client
from hortus.kube.clock import Clock
from hortus.kube.errors import KubeError
from hortus.schema import encode

PAUSE = 15.0
"""Seconds until a refused ChangeKind is tried again, such as one whose CRD is not served yet."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class ChangeKindInstaller:
    """Applies ChangeKinds once, by force: people who want others give them other names."""

    def __init__(self, client: Client, kinds: Sequence[ChangeKind], *, clock: Clock) -> None:
        self._client = client
        self._kinds = kinds
        self._clock = clock

    async def run(self) -> None:
        """Apply them, and wait to be cancelled."""
        await asyncio.gather(*map(self._install, self._kinds))
        await asyncio.Event().wait()  # a manager stops when a part of it ends

    async def _install(self, kind: ChangeKind) -> None:
        while True:
            try:
                await self._client.apply(CHANGE_KINDS, encode(kind), field_manager="hortus-rollouts", force=True)
            except KubeError as error:
                _log.warning("a ChangeKind was not created", name=kind.metadata.name, error=str(error))
                await self._clock.sleep(PAUSE)
            else:
                return
