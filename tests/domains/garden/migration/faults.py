"""Faults of a real migration: members that are killed or frozen, a link that is cut, a leadership that flaps back."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import aiohttp
from tests.domains.garden.migration.load import Clients, assert_nothing_was_lost, running_load
from tests.domains.garden.migration.observing import Observer
from tests.domains.garden.migration.sites import MemberProcess
from tests.domains.garden.migration.world import RealPlane, real_plane
from tests.waiting import until

from hortus.gardener.livemigration import MigrationRecord, StepRefused, steps
from hortus.gardener.livemigration.steps import Action
from hortus.kube.clock import SystemClock

DOWN = 2.0
"""Seconds for which a fault lasts."""


class FaultyWalk:
    """One migration under load, with what a test needs to strike it."""

    def __init__(self, plane: RealPlane, record: MigrationRecord, clients: Clients, observer: Observer) -> None:
        self.plane = plane
        self.record = record
        self.clients = clients
        self.observer = observer
        self._faults: set[asyncio.Task[None]] = set()

    async def reach(self, kind: type, *, aborting: bool = False) -> None:
        """Walk until a step of this kind is due."""
        await self.plane.walk(self.record, aborting=aborting, until=lambda step: isinstance(step, kind))

    async def end(self, *, aborting: bool = False) -> None:
        """Walk to the end, after which all faults are over."""
        try:
            async with asyncio.timeout(180):
                await self.plane.walk(self.record, aborting=aborting)
        except TimeoutError:
            raise AssertionError(f"the walk has not ended: {self.plane.story()}") from None
        await asyncio.gather(*self._faults)

    def begin(self, fault: Callable[[], AsyncIterator[None]]) -> None:
        """Let a fault last for a while, besides the walk."""

        async def last() -> None:
            # The observer's clock has half a second of patience, and elections take one.
            self.observer.faults += 1
            async with asynccontextmanager(fault)():
                await asyncio.sleep(DOWN)
            await until(self._has_majority)
            self.observer.faults -= 1

        self._faults.add(asyncio.create_task(last(), name="fault"))

    async def _has_majority(self) -> bool:
        try:
            state = await self.plane.etcd.state()
        except StepRefused:
            return False
        voters = [one for one in state.members if not one.is_learner]
        return 2 * sum(one.is_healthy for one in voters) > len(voters)

    async def leader(self) -> MemberProcess:
        for _ in range(50):
            try:
                state = await self.plane.etcd.state()
            except StepRefused:
                await asyncio.sleep(0.2)
                continue
            name = next(one.name for one in state.members if one.is_leader)
            return next(one for one in self.plane.members if one.name == name)
        raise AssertionError("etcd has no leader")

    # Faults: each is undone at its end.

    def kill(self, member: MemberProcess) -> Callable[[], AsyncIterator[None]]:
        async def fault() -> AsyncIterator[None]:
            member.kill()
            yield
            if member.folder.exists() and await self._is_listed(member):
                member.start()

        return fault

    def freeze(self, *members: MemberProcess) -> Callable[[], AsyncIterator[None]]:
        async def fault() -> AsyncIterator[None]:
            frozen = [one for one in members if one.is_running]
            for one in frozen:
                one.signal(signal.SIGSTOP)
            yield
            for one in frozen:
                if one.is_running:
                    one.signal(signal.SIGCONT)

        return fault

    async def cut(self) -> AsyncIterator[None]:
        self.plane.links.cut()
        yield
        self.plane.links.heal()

    async def flap(self) -> None:
        """Move the leadership to the other site."""
        leader = await self.leader()
        state = await self.plane.etcd.state()
        here = {one.name for one in self.plane.members if one.site == leader.site}
        voters = [one for one in state.members if not one.is_learner and one.is_healthy]
        others = [one for one in voters if one.name not in here]
        if others:
            led = next(one.id for one in state.members if one.is_leader)
            move = steps.TransferLeadership(leader_id=led, target_id=others[0].id, target_name=others[0].name)
            await self.plane.etcd.act(move)

    async def _is_listed(self, member: MemberProcess) -> bool:
        for _ in range(50):
            try:
                return any(one.name == member.name for one in (await self.plane.etcd.state()).members)
            except StepRefused:
                await asyncio.sleep(0.2)
        return True

    async def alarm(self, action: str) -> None:
        member = self.plane.source.members[0]
        url = f"{member.client_url}/v3/maintenance/alarm"
        body = {"action": action, "alarm": "CORRUPT", "memberID": self.record.members[0].id}
        async with aiohttp.ClientSession() as session, session.post(url, json=body) as answer:
            assert answer.status == 200, await answer.text()


@asynccontextmanager
async def faulty_walk(folder: Path) -> AsyncIterator[FaultyWalk]:
    """A migration under load; at its end nothing that was acknowledged is lost, and no invariant was broken."""
    # Real time: a leader whose renewal hangs in a fault has to step down while it hangs.
    real = real_plane(folder, servers=1, elections=SystemClock())
    async with real as plane, plane.observed() as observer:
        record = await plane.record()
        load = running_load(plane.router.port, plane.token, plane.tls(), writers=2, readers=1, watchers=1, retries=1)
        async with load as clients:
            yield FaultyWalk(plane, record, clients, observer)
        assert_nothing_was_lost(clients.load)
        assert observer.broken == []
        assert plane.controllers.broken == []


async def random_walk(folder: Path, seed: int) -> list[str]:
    """A migration with a fault now and then, and a coordinator that is killed in the middle of steps.

    Returns the faults. Fails where the walk does not come to its end, as `faulty_walk` where a write is lost, an
    invariant broken, or two controllers lead.
    """
    random, names = Random(seed), []

    async with faulty_walk(folder) as walk:
        plane = walk.plane
        act = plane.act

        async def interrupted(step: Action) -> None:
            """One step in three is cut short: the coordinator does not know whether it was carried out."""
            task = asyncio.ensure_future(act(step))
            if random.random() < 0.3:
                names.append(f"killed in {type(step).__name__}")
                await asyncio.sleep(random.random() * 0.05)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                raise StepRefused("the coordinator was killed", seconds=0.1)
            await task

        plane.act = interrupted  # type: ignore[method-assign]
        ending = asyncio.create_task(walk.end())
        try:
            while not ending.done():
                await asyncio.wait((ending,), timeout=random.uniform(DOWN * 2, DOWN * 4))
                if ending.done():
                    break
                running = [one for one in plane.members if one.is_running]
                name, fault = random.choice(
                    [
                        ("kill", walk.kill(random.choice(running))),
                        ("freeze", walk.freeze(random.choice(running))),
                        ("cut", walk.cut),
                    ]
                )
                names.append(name)
                walk.begin(fault)
            await ending
        finally:
            ending.cancel()
            await asyncio.gather(ending, return_exceptions=True)
        state = await plane.etcd.state()
        assert {(one.name, one.is_learner) for one in state.members} == {(f"dst-{n}", False) for n in range(3)}
    return names
