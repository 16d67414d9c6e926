"""The page of Hortus' own health. Sources by address are read all the time, pods while somebody looks."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from hortus.dashboard.composing import Reading, ReadPage
from hortus.dashboard.health.history import EVERY, HealthHistory, health_blocks
from hortus.dashboard.health.readings import ReplicaReading, reading_of
from hortus.dashboard.health.sources import MetricsSource, SourceRefused
from hortus.dashboard.viewers import Viewer
from hortus.engine.pages import ItemKey
from hortus.kube.clock import Clock
from hortus.kube.errors import KubeError

_FRESH: Final = EVERY - 2.0
"""Seconds for which a reading serves all who look."""
_NO_SOURCE: Final = (
    "metrics: no place of them is configured; `hortus-dashboard serve --help` describes --metrics-from and "
    "--metrics-pods"
)


class HealthPage(ReadPage):
    """Replicas, their queues, and lines over time."""

    name = "health"
    title = "Health"
    order = 95
    intro = "Hortus itself: its replicas, their queues and what they cost."

    def __init__(self, sources: Sequence[MetricsSource], clock: Clock) -> None:
        self._places = [_SourceHistory(source, clock) for source in sources]
        self._clock = clock

    async def read(self, viewer: Viewer, key: ItemKey | None, now: float) -> Reading:
        if key is not None:
            return Reading()
        seen, notes = [], [] if self._places else [_NO_SOURCE]
        for place in self._places:
            try:
                await place.source.check(viewer)
                await place.refresh(viewer)
            except (SourceRefused, KubeError) as problem:
                notes.append(f"metrics: {problem}")
                if isinstance(problem, SourceRefused):
                    continue
            seen.append(place.history)
        return Reading(health_blocks(seen, self._clock.now()) if seen else (), notes)

    async def sample(self) -> None:
        """Reads what needs no viewer."""
        for place in self._places:
            if not place.source.needs_viewer:
                await place.refresh(None)


class _SourceHistory:
    """One source, read once for all who look at the same time."""

    def __init__(self, source: MetricsSource, clock: Clock) -> None:
        self.source = source
        self.history = HealthHistory()
        self._clock = clock
        self._read = float("-inf")
        self._lock = asyncio.Lock()

    async def refresh(self, viewer: Viewer | None) -> None:
        """Reads the source unless that was done just now. Raises KubeError."""
        async with self._lock:
            if self._clock.monotonic() - self._read < _FRESH:
                return
            texts = await self.source.read(viewer)
            self._read, now = self._clock.monotonic(), self._clock.now()
            found = await asyncio.to_thread(lambda: {name: _understood(one, now) for name, one in texts.items()})
            self.history.add(found, now)


def _understood(text: str | Exception, now: float) -> ReplicaReading | str:
    if isinstance(text, Exception):
        return str(text) or type(text).__name__
    try:
        return reading_of(text, now)
    except ValueError as error:
        return f"its metrics cannot be read: {error}"
