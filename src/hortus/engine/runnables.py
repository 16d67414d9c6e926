"""The parts of a process besides its controllers: leadership, and the tasks that it allows.

A runnable runs in every process, or only where the process leads (or, with shards, on one replica). Requests of the
second kind are fenced: once another process may have begun the same work, they are refused before they are sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, NoReturn, Protocol

from hortus.engine.shards import Permit, Shards
from hortus.kube.fencing import Fenced, set_fence
from hortus.kube.objects import ObjectKey

Runnable = Callable[[], Awaitable[None]]


class LeadershipLost(Exception):
    """Another process may lead now. This one has stopped its workers and should exit."""


class PartEnded(Exception):
    """Something that should run as long as the manager came to its end."""


class Election(Protocol):
    """The part of `hortus.engine.leases.Elector` that the manager uses."""

    @property
    def name(self) -> str: ...

    async def acquire(self) -> None:
        """Return once this process leads."""

    async def lost(self) -> None:
        """Return when it leads no more."""

    async def release(self) -> None:
        """Give leadership back, so that another takes over at once."""

    @property
    def leading(self) -> bool: ...


class Leadership:
    """The permission of this process to work, as an election gives it; without an election it always has it."""

    def __init__(self, election: Election | None) -> None:
        self.election = election

    @property
    def held(self) -> bool:
        return self.election is None or self.election.leading

    def check(self) -> None:
        """Raises LeadershipLost when another process may lead."""
        if not self.held:
            raise LeadershipLost("this process was not able to renew its lease in time")

    def fence(self) -> None:
        """The fence of clients, called before each request. Raises Fenced."""
        try:
            self.check()
        except LeadershipLost as error:
            raise Fenced(str(error)) from error

    async def until_lost(self) -> NoReturn:
        """Raises LeadershipLost when this process leads no more."""
        assert self.election is not None, "leadership is lost to an election"
        await self.election.lost()
        raise LeadershipLost("this process was not able to renew its lease in time")


class Runnables:
    """Starts and stops the tasks of one manager."""

    def __init__(self, leadership: Leadership, shards: Shards | None) -> None:
        self._leadership = leadership
        self._shards = shards
        self._added: list[tuple[str, Runnable, bool]] = []
        self._everywhere: list[asyncio.Task[None]] = []
        self._led: list[asyncio.Task[None]] = []

    def add(self, name: str, run: Runnable, *, leader_only: bool) -> None:
        self._added.append((name, run, leader_only))

    def start(self, *, leader_only: bool) -> None:
        """Start the runnables of one sort."""
        for name, run, wants_leader in self._added:
            if wants_leader == leader_only:
                work = self._as_leader(name, run) if leader_only else _awaiting(run)
                tasks = self._led if leader_only else self._everywhere
                tasks.append(asyncio.create_task(work, name=name))

    def follow(self, name: str, step: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run `step` with those that run in every process; returns its task."""
        task = asyncio.create_task(step, name=name)
        self._everywhere.append(task)
        return task

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        return [*self._everywhere, *self._led]

    async def stop_led(self) -> None:
        await _ended(self._led)

    async def stop(self) -> None:
        await _ended(self._everywhere)

    async def _as_leader(self, name: str, run: Runnable) -> None:
        if self._shards is not None:
            await on_one_replica(self._shards, name, run)
            return
        set_fence(self._leadership.fence)
        try:
            await run()
        except Fenced:
            self._leadership.check()
            raise


async def on_one_replica(shards: Shards, name: str, run: Callable[[], Awaitable[None]]) -> None:
    """Run `run` while `name`, a key like that of an object, belongs to this replica. Ends or fails when `run` does."""
    key = ObjectKey("", name)
    changed = asyncio.Event()

    def look(gained: Callable[[ObjectKey], bool]) -> int:
        changed.set()
        return 0

    shards.on_gain(look)
    while True:
        changed.clear()
        permit = shards.enter(key, changed.set)
        if permit is None:
            await changed.wait()
            continue
        try:
            set_fence(permit.check)
            if await _until_revoked(permit, changed, run):
                return
        except Fenced:
            # Work that meets a lapsed lease before the permit is revoked ends by itself, and begins again elsewhere.
            if permit.active:
                raise
        finally:
            set_fence(None)
            shards.leave(permit, clean=False)


async def _until_revoked(permit: Permit, changed: asyncio.Event, run: Callable[[], Awaitable[None]]) -> bool:
    """Returns True when `run` ended by itself, False when `permit` was revoked before."""
    work = asyncio.ensure_future(run())
    try:
        while not permit.revoked and not work.done():
            changed.clear()
            waiting = asyncio.ensure_future(changed.wait())
            await asyncio.wait({work, waiting}, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
        if work.done():
            await work
            return True
        return False
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)


async def _ended(tasks: Iterable[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _awaiting(run: Runnable) -> None:
    await run()
