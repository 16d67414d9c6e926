"""A fleet seen from outside: its AgentPlacements over time."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import NamedTuple

from tests.benchmarks.agentfleets.catalog import FLEET

from hortus.domains.agents.types import AGENT_PLACEMENTS, AgentPlacement
from hortus.engine import read
from hortus.kube import Client
from hortus.kube.objects import Object

_REPORT = 30.0
"""Seconds between two lines about the progress of a long phase."""


class Seen(NamedTuple):
    """The last state of one AgentPlacement."""

    version: str
    """The version that is in place."""
    ready: bool
    nodes: int
    """Nodes on which the agent is available."""


class PlacementTimes:
    """Follows all AgentPlacements: when each had a version in place, and ran it on all nodes."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._changed = asyncio.Event()
        self.placed: dict[tuple[str, str], float] = {}
        """By cluster and version; seconds of the monotonic clock."""
        self.ran: dict[tuple[str, str], float] = {}
        self.seen: dict[str, Seen] = {}
        """By cluster."""

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self._run())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def until(self, count: int, *, other_than: str = "") -> str:
        """Return the version that so many clusters run, once they do; it is another one than that."""
        began, shown = time.monotonic(), 0
        while True:
            self._changed.clear()
            running = [one.version for one in self.seen.values() if one.ready and one.version != other_than]
            if len(running) >= count and len(set(running)) == 1:
                return running[0]
            if (seconds := time.monotonic() - began) > (shown + 1) * _REPORT:
                shown = int(seconds / _REPORT)
                print(f"{len(running)} of {count} after {seconds:.0f} s", flush=True)
            await self._changed.wait()
            # One count for the many events of a moment, so that counting does not take the CPU that is measured.
            await asyncio.sleep(0.1)

    @property
    def nodes(self) -> int:
        return sum(one.nodes for one in self.seen.values())

    def after(self, began: float, version: str) -> tuple[list[float], list[float]]:
        """Seconds from a moment until each cluster had a version in place, and until it ran it."""
        return tuple(  # type: ignore[return-value]
            [at - began for (_, found), at in times.items() if found == version] for times in (self.placed, self.ran)
        )

    async def _run(self) -> None:
        async with contextlib.aclosing(self._client.watch(AGENT_PLACEMENTS, FLEET, initial_events=True)) as events:
            async for event in events:
                if event.type in ("ADDED", "MODIFIED"):
                    self._see(event.object)

    def _see(self, obj: Object) -> None:
        placement, now = read(AgentPlacement, obj), time.monotonic()
        cluster, status = placement.spec.cluster, placement.status
        ready = any(one.type == "Ready" and one.status == "True" for one in status.conditions)
        self.seen[cluster] = Seen(status.version, ready, status.nodes.available)
        if status.version:
            self.placed.setdefault((cluster, status.version), now)
            if ready:
                self.ran.setdefault((cluster, status.version), now)
        self._changed.set()
