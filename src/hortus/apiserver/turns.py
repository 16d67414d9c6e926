"""Fair shares of the event loop: a tenant that has used much of it lately waits for a turn, all others do not.

All requests of all logical clusters run on one thread, so each tenant waits for the work of the others. Three rules
keep the wait short. The time for which each tenant's requests hold the loop is measured (`metered`). A tenant beyond
its share, while another one is active, has one request started at a time; such tenants take turns (`Turns`), and a turn
longer than 10 ms is followed by an equal rest. Long work (selectors over many objects, tables, large bodies,
expressions) is split into pieces, each of which needs a turn.
"""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Hashable
from typing import Any, Generic, TypeVar

T = TypeVar("T")

_NOTICED = 0.01
"""Seconds for which one piece of work may hold the loop without a noticeable delay."""
_LONGEST_REST = 2.0
"""Seconds of rest at most."""
_LONG_ASIDE = 0.1
"""Seconds of work in a thread that need no rest."""
PIECE = 0.002
"""Seconds of work between two turns, for work that can be split."""
_SHARE = 0.25
"""Seconds a second for which a tenant may hold the loop before it has to wait for turns."""
_ALLOWANCE = 0.1
"""Seconds by which a tenant may exceed that share."""
_ENTRY = 0.0005
"""Seconds charged to a request that has just begun, so that many concurrent ones count at once."""
_COMPANY = 1.0
"""Seconds after another tenant's last request in which turns are needed; a single tenant does not wait."""
_KEPT = 4096
"""Tenants with an account; idle ones are dropped first."""


class _Queue:
    """A lock for which holders take turns; the requests of one holder are in order."""

    __slots__ = ("_taken", "_waiting")

    def __init__(self) -> None:
        self._taken = False
        self._waiting: dict[Hashable, deque[asyncio.Future[None]]] = {}

    @property
    def is_wanted(self) -> bool:
        """True while a caller waits for it."""
        return bool(self._waiting)

    def take(self) -> bool:
        """Acquire the lock if it is free; returns False otherwise."""
        if self._taken:
            return False
        self._taken = True
        return True

    async def acquire(self, holder: Hashable) -> None:
        if self.take():
            return
        mine = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(holder, deque()).append(mine)
        try:
            await mine
        except asyncio.CancelledError:
            if mine.done() and not mine.cancelled():
                self.release()
            raise

    def release(self) -> None:
        self._taken = False
        while self._waiting:
            holder = next(iter(self._waiting))
            queue = self._waiting.pop(holder)
            while queue:
                first = queue.popleft()
                if not first.done():
                    if queue:
                        self._waiting[holder] = queue  # behind the others
                    self._taken = True
                    first.set_result(None)
                    return


class Turns:
    """One piece of work at a time on the loop (`wait`, `begin`), and one at a time in a thread (`aside`)."""

    __slots__ = ("_aside", "_began", "_free_at", "_loop")

    def __init__(self) -> None:
        self._loop = _Queue()
        self._aside = _Queue()
        self._began: float | None = None
        """When the present turn began; None between turns."""
        self._free_at = 0.0

    async def begin(self, holder: Hashable) -> None:
        """Returns when the caller may begin work that is usually short: pieces that fit into `PIECE` share a turn.

        With a turn for each, writes that arrived together would reach the store one by one, and a commit of ten writes
        costs little more than a commit of one.
        """
        now = time.monotonic()
        if self._began is not None:
            if now - self._began < PIECE and not self._loop.is_wanted:
                return
        elif self._free_at <= now and self._loop.take():
            self._start(now)
            return
        await self.wait(holder)

    async def wait(self, holder: Hashable = None) -> None:
        """Returns at the caller's turn, which lasts until the caller awaits something."""
        await self._loop.acquire(holder)
        try:
            await asyncio.sleep(max(self._free_at - time.monotonic(), 0.0))
        except asyncio.CancelledError:
            self._loop.release()
            raise
        self._start(time.monotonic())

    def _start(self, now: float) -> None:
        self._began = now
        # Runs when the caller has returned control to the loop.
        asyncio.get_running_loop().call_soon(self._worked, now)

    def _worked(self, began: float) -> None:
        now = time.monotonic()
        self._began = None
        if now - began > _NOTICED:
            self._free_at = now + min(now - began, _LONGEST_REST)
        self._loop.release()

    async def aside(self, holder: Hashable, work: Callable[[], T]) -> T:
        """Runs `work` in a thread, which takes the interpreter from the loop for at most 5 ms at once.

        Long work is followed by an equal rest before the next one. When the caller is cancelled, the thread continues,
        and the next work still waits for its end.
        """
        await self._aside.acquire(holder)
        loop, began = asyncio.get_running_loop(), time.monotonic()
        running = loop.run_in_executor(None, contextvars.copy_context().run, work)

        def ended(_: asyncio.Future[T]) -> None:
            taken = time.monotonic() - began
            loop.call_later(min(taken, _LONGEST_REST) if taken > _LONG_ASIDE else 0.0, self._aside.release)

        running.add_done_callback(ended)
        return await asyncio.shield(running)


class FreeTurns(Turns):
    """Turns of a server that serves one process alone: nobody waits, and nothing depends on how long work takes."""

    async def begin(self, holder: Hashable) -> None:
        return

    async def wait(self, holder: Hashable = None) -> None:
        return

    async def aside(self, holder: Hashable, work: Callable[[], T]) -> T:
        return work()


class TimeAccount:
    """The time for which one tenant's requests held the loop, minus its share of the time since."""

    __slots__ = ("_at", "_used")

    def __init__(self) -> None:
        self._used = 0.0
        self._at = time.perf_counter()

    def add(self, seconds: float) -> None:
        now = time.perf_counter()
        self._used = max(0.0, self._used - (now - self._at) * _SHARE) + seconds
        self._at = now

    @property
    def is_ahead(self) -> bool:
        return self._used - (time.perf_counter() - self._at) * _SHARE > _ALLOWANCE

    @property
    def is_at_rest(self) -> bool:
        return self._used <= (time.perf_counter() - self._at) * _SHARE


class Shares:
    """The accounts of all tenants."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._accounts: dict[Hashable, TimeAccount] = {}
        self._seen: tuple[Hashable, float] = (None, -_COMPANY)
        self._seen_before: tuple[Hashable, float] = (None, -_COMPANY)
        """The last two tenants with a request within their shares, and its time."""

    def of(self, tenant: Hashable) -> TimeAccount:
        account = self._accounts.get(tenant)
        if account is None:
            if len(self._accounts) >= _KEPT:
                self._forget()
            account = self._accounts[tenant] = TimeAccount()
        return account

    async def enter(self, tenant: Hashable) -> TimeAccount:
        """Begins a request of the tenant, which may have to wait for a turn; its time is charged to the account."""
        account = self.of(tenant)
        if account.is_ahead:
            if self._has_company(tenant):
                await self._turns.begin(tenant)
        else:
            if self._seen[0] != tenant:
                self._seen_before = self._seen
            self._seen = (tenant, time.perf_counter())
        account.add(_ENTRY)
        return account

    def _has_company(self, tenant: Hashable) -> bool:
        _, at = self._seen if self._seen[0] != tenant else self._seen_before
        return time.perf_counter() - at < _COMPANY

    def _forget(self) -> None:
        for tenant in [tenant for tenant, account in self._accounts.items() if account.is_at_rest]:
            del self._accounts[tenant]


class metered(Generic[T]):
    """Awaits `work` and charges the account with the time for which it holds the loop, without its waits."""

    __slots__ = ("_account", "_work")

    def __init__(self, work: Coroutine[Any, Any, T], account: TimeAccount) -> None:
        self._work = work
        self._account = account

    def __await__(self) -> Generator[Any, Any, T]:
        work, account = self._work, self._account
        error: BaseException | None = None
        credit = _ENTRY
        while True:
            began = time.perf_counter()
            try:
                waited_for = work.send(None) if error is None else work.throw(error)
            except StopIteration as done:
                result: T = done.value
                return result
            finally:
                account.add(time.perf_counter() - began - credit)
                credit = 0.0
            error = None
            try:
                yield waited_for
            except BaseException as thrown:
                error = thrown


class TurnPace:
    """Splits one tenant's long work into pieces: `if pace.due: await pace.turn()` between two steps of it."""

    __slots__ = ("_tenant", "_turns", "_until")

    def __init__(self, turns: Turns, tenant: Hashable) -> None:
        self._turns = turns
        self._tenant = tenant
        self._until = time.perf_counter() + PIECE

    @property
    def due(self) -> bool:
        return time.perf_counter() >= self._until

    async def turn(self) -> None:
        await self._turns.wait(self._tenant)
        self._until = time.perf_counter() + PIECE

    async def aside(self, work: Callable[[], T]) -> T:
        """The result of `work`, run in a thread on behalf of the tenant."""
        return await self._turns.aside(self._tenant, work)
