"""An observer that shares no code with the decider: it records two watches and replays them in the server's order.

Resource versions of one server count all writes of a logical cluster, so the replay sees each moment as it was.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import NamedTuple

from tests.domains.rollouts.world import APPLIANCES, FLEET

from hortus.engine.rollouts.types import PLACEMENT_DECISIONS
from hortus.kube import Client, Resource
from hortus.kube.objects import Object


class Moment(NamedTuple):
    version: int
    seen: float
    """Seconds, by this process's clock."""
    kind: str
    object: Object


class Observation:
    """All changes of slices and appliances since it began."""

    def __init__(self) -> None:
        self.moments: list[Moment] = []

    @property
    def slices(self) -> int:
        """Writes of slices."""
        return sum(one.kind == "Slice" for one in self.moments)

    def replay(self, to: str, stages: Mapping[str, int]) -> Replay:
        """Check each moment against `stages`, the greatest number in work of each stage."""
        found = Replay()
        stage_of: dict[str, str] = {}
        finished: set[str] = set()
        outcomes: list[float] = []
        for moment in sorted(self.moments, key=lambda one: one.version):
            if moment.kind == "Appliance":
                name, spec = moment.object["metadata"]["name"], moment.object["spec"]
                if spec["version"] == to == moment.object.get("status", {}).get("version") and name not in finished:
                    finished.add(name)
                    outcomes.append(moment.seen)
                if spec["version"] == to and name not in stage_of:
                    found.problems.append(f"{name} changed without being admitted")
                continue
            before = len(stage_of)
            for one in moment.object["decisions"]:
                stage_of.setdefault(one["clusterProfileRef"]["name"], one["reason"].rpartition(" ")[2])
            if len(stage_of) > before:
                found.latencies += [max(0.0, moment.seen - at) for at in outcomes]
                outcomes.clear()
            for stage, most in stages.items():
                working = sum(its == stage and name not in finished for name, its in stage_of.items())
                found.most[stage] = max(found.most.get(stage, 0), working)
                if working > most:
                    found.problems.append(f"{working} clusters of stage {stage} in work, {most} allowed")
        found.admitted = len(stage_of)
        return found


class Replay:
    """The findings of a replay."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.latencies: list[float] = []
        """Seconds from each outcome to the next admission."""
        self.most: dict[str, int] = {}
        self.admitted = 0


@asynccontextmanager
async def observing(client: Client) -> AsyncIterator[Observation]:
    """Records until the end of the block."""
    found = Observation()

    async def follow(resource: Resource, kind: str) -> None:
        async with client.watch(resource, FLEET, initial_events=True) as events:
            async for event in events:
                if event.type not in ("BOOKMARK", "DELETED"):
                    version = int(event.object["metadata"]["resourceVersion"])
                    found.moments.append(Moment(version, time.monotonic(), kind, event.object))

    tasks = [
        asyncio.create_task(follow(APPLIANCES, "Appliance")),
        asyncio.create_task(follow(PLACEMENT_DECISIONS, "Slice")),
    ]
    try:
        yield found
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
