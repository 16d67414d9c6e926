"""An observer that shares no code with the decider: it records watches and replays them in the server's order.

Resource versions of one server count all writes of a logical cluster, so the replay sees each moment as it was.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

from tests.domains.rollouts.world import APPLIANCES, FLEET

from hortus.engine.rollouts.types import PLACEMENT_DECISIONS, ROLLOUTS
from hortus.kube import Client, Resource
from hortus.kube.objects import Object


class Progress(NamedTuple):
    """The object of a cluster with regard to the new version."""

    cluster: str
    begun: bool
    """It asks for the new version."""
    ended: bool
    """The new version works, or has failed."""


class Slice(NamedTuple):
    name: str
    stages: Mapping[str, str]
    """The stage of each cluster."""


class RolloutState(NamedTuple):
    halted: bool
    """It halted and was not resumed since."""
    resumes: int
    """Number of times that somebody resumed it."""


class Moment(NamedTuple):
    version: int
    seen: float
    """Seconds, by this process's clock."""
    event: Progress | Slice | RolloutState


class Watched(NamedTuple):
    """The objects that change."""

    resource: Resource
    namespace: str
    progress: Callable[[Object], Progress]


def appliances(to: str) -> Watched:
    def progress(obj: Object) -> Progress:
        begun = obj["spec"]["version"] == to
        return Progress(obj["metadata"]["name"], begun, begun and obj.get("status", {}).get("version") == to)

    return Watched(APPLIANCES, FLEET, progress)


class Observation:
    """All changes of slices, objects and rollouts since it began."""

    def __init__(self) -> None:
        self.moments: list[Moment] = []
        self._news = asyncio.Condition()

    async def add(self, moment: Moment) -> None:
        async with self._news:
            self.moments.append(moment)
            self._news.notify_all()

    async def until_more(self, changes: int) -> None:
        """Returns after so many further changes."""
        last = len(self.moments) + changes
        async with self._news:
            await self._news.wait_for(lambda: len(self.moments) >= last)

    @property
    def slices(self) -> int:
        """Writes of slices."""
        return sum(isinstance(one.event, Slice) for one in self.moments)

    @property
    def rollouts(self) -> int:
        """Writes of rollouts."""
        return sum(isinstance(one.event, RolloutState) for one in self.moments)

    def replay(self, stages: Mapping[str, int], *, kills: Sequence[float] = ()) -> Replay:
        """Check each moment against `stages`, the greatest number in work of each stage.

        `kills` are the times at which deciders were killed, on the clock of `Moment.seen`.
        """
        found = Replay(stages, kills)
        for moment in sorted(self.moments, key=lambda one: one.version):
            found.add(moment)
        return found


class Replay:
    """The findings of a replay."""

    def __init__(self, stages: Mapping[str, int], kills: Sequence[float]) -> None:
        self.problems: list[str] = []
        self.latencies: list[float] = []
        """Seconds from each outcome to the next admission; from the resume where a halt lies between. Those that a kill
        of the decider delayed are left out."""
        self.resumes: list[float] = []
        """Seconds from each resume to the next admission."""
        self.restarts: list[float] = []
        """Seconds from each kill to the next admission."""
        self.most: dict[str, int] = {}
        self._stages = stages
        self._kills = sorted(kills)
        self._stage_of: dict[str, str] = {}
        self._working = dict.fromkeys(stages, 0)
        self._finished: set[str] = set()
        self._outcomes: list[float] = []
        self._resumed: list[float] = []
        self._resumes = 0
        self._halted = False

    @property
    def admitted(self) -> int:
        return len(self._stage_of)

    def add(self, moment: Moment) -> None:
        match moment.event:
            case Progress() as progress:
                self._progress(progress, moment.seen)
            case Slice() as part:
                self._admit(part, moment.seen)
            case RolloutState(halted, resumes):
                self._halted = halted
                if resumes > self._resumes:
                    self._resumes = resumes
                    self._outcomes = [moment.seen] * len(self._outcomes)
                    self._resumed = [moment.seen]

    def _progress(self, progress: Progress, seen: float) -> None:
        name = progress.cluster
        if progress.begun and name not in self._stage_of:
            self.problems.append(f"{name} changed without being admitted")
        if progress.ended and name not in self._finished:
            self._finished.add(name)
            self._outcomes.append(seen)
            if name in self._stage_of:
                self._working[self._stage_of[name]] -= 1

    def _admit(self, part: Slice, seen: float) -> None:
        fresh = {name: stage for name, stage in part.stages.items() if name not in self._stage_of}
        self._stage_of |= fresh
        for name, stage in fresh.items():
            self._working[stage] = self._working.get(stage, 0) + (name not in self._finished)
        if not fresh:
            return
        if self._halted:
            self.problems.append(f"{len(fresh)} clusters were admitted while the rollout had halted")
        killed = [at for at in self._kills if at <= seen]
        self._kills = self._kills[len(killed) :]
        self.restarts += [seen - at for at in killed]
        if not killed:
            self.latencies += [max(0.0, seen - at) for at in self._outcomes]
        self.resumes += [max(0.0, seen - at) for at in self._resumed]
        self._outcomes, self._resumed = [], []
        for stage, most in self._stages.items():
            working = self._working[stage]
            self.most[stage] = max(self.most.get(stage, 0), working)
            if working > most:
                self.problems.append(f"{working} clusters of stage {stage} in work, {most} allowed")


def _slice(obj: Object) -> Slice:
    stages = {one["clusterProfileRef"]["name"]: one["reason"].rpartition(" ")[2] for one in obj["decisions"]}
    return Slice(obj["metadata"]["name"], stages)


def _rollout(obj: Object) -> RolloutState:
    resumes = obj["spec"].get("resumes", 0)
    return RolloutState(obj.get("status", {}).get("halts", 0) > resumes, resumes)


@asynccontextmanager
async def observing(client: Client, watched: Watched) -> AsyncIterator[Observation]:
    """Records until the end of the block."""
    found = Observation()

    async def follow(
        resource: Resource, namespace: str, event_of: Callable[[Object], Progress | Slice | RolloutState]
    ) -> None:
        async with client.watch(resource, namespace, initial_events=True) as events:
            async for event in events:
                if event.type not in ("BOOKMARK", "DELETED"):
                    version = int(event.object["metadata"]["resourceVersion"])
                    await found.add(Moment(version, time.monotonic(), event_of(event.object)))

    tasks = [
        asyncio.create_task(follow(*watched)),
        asyncio.create_task(follow(PLACEMENT_DECISIONS, FLEET, _slice)),
        asyncio.create_task(follow(ROLLOUTS, FLEET, _rollout)),
    ]
    try:
        yield found
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
