"""One budget of sockets, watches and handshakes for the connections to all clusters.

A cluster's share is what it holds: its open sockets, or its calls and streams under way where these are more, since
each of them is about to open one. Who needs a socket when there is none takes one that is unused, from the cluster
where that was so the longest; when none is unused it waits in line. A watch keeps its socket for minutes, so it needs a
slot besides, from its list on: there are fewer slots than sockets, and what is left is for calls. Making a connection
costs CPU, so only so many are made at once; one that takes longer than a second waits for the network and counts no
more. Watches line up for them a few at a time, so that a call is never behind all of them.
"""

from __future__ import annotations

import asyncio
import socket
from collections import OrderedDict, deque
from collections.abc import Callable
from contextlib import suppress

from hortus.kube.clock import Clock, Timer

SLOW_HANDSHAKE = 1.0
"""Seconds. On one core a handshake costs some milliseconds of CPU; the rest of a long one is waiting."""
_PATIENT_SHARE = 0.75
"""The most of the connections being made that watches may have. Thousands of them begin with their process; in one line
with them a call would wait for its whole deadline."""


class _Socket(socket.socket):
    """A socket that reports to its account when it is closed, by whichever way an event loop does that."""

    account: Account | None = None

    def close(self) -> None:
        super().close()
        self._gone()

    def detach(self) -> int:
        number = super().detach()
        self._gone()
        return number

    def _gone(self) -> None:
        if self.account is not None and self.fileno() == -1:
            account, self.account = self.account, None
            account.closed_socket()


class Account:
    """The share of one cluster. `close_idle` closes its unused sockets and returns how many that were."""

    __slots__ = ("_budget", "_closing", "_handshakes", "_held", "close_idle", "sockets", "uses")

    def __init__(self, budget: Budget, close_idle: Callable[[], int]) -> None:
        self._budget = budget
        self.close_idle = close_idle
        self.sockets = 0
        self.uses = 0
        self._held = 0
        self._closing = 0
        self._handshakes: list[_Handshake] = []

    @property
    def unused(self) -> int:
        """The number of open sockets that nobody uses."""
        return self.sockets - self._closing - self.uses

    async def enter(self, *, patient: bool = False) -> SocketUse:
        """Begin a call or stream: return when it may use a socket, and, unless one is unused, open one."""
        if self.unused > 0:
            self.uses += 1
            self._settle()
            return SocketUse(self)
        await self._budget.room()
        self.uses += 1
        self._settle()
        try:
            handshake = await self._budget.handshake(patient=patient)
        except BaseException:
            self.leave(None)
            raise
        self._handshakes.append(handshake)
        return SocketUse(self, handshake)

    def leave(self, handshake: _Handshake | None) -> None:
        """End a call or stream, and the place for its connection: it may have got one that was open already."""
        self.uses -= 1
        if handshake is not None:
            handshake.over()
            self._forget_ended()
        self._settle()

    def opened(self) -> None:
        """An attempt to connect is over."""
        self._forget_ended()
        if self._handshakes:
            self._handshakes.pop(0).over()

    def _forget_ended(self) -> None:
        self._handshakes = [one for one in self._handshakes if one.counts]

    def make_socket(self, family: int, kind: int, protocol: int) -> socket.socket:
        """Makes the sockets of `hortus.kube.Dialing`."""
        made = _Socket(family, kind, protocol)
        made.account = self
        self.opened_socket()
        return made

    def opened_socket(self) -> None:
        self.sockets += 1
        self._settle()

    def closed_socket(self) -> None:
        self.sockets -= 1
        self._closing = max(0, self._closing - 1)
        self._settle()

    def evict(self) -> int:
        """Close what is unused; returns how many sockets that will be. They count until they are closed."""
        before = self.sockets
        closing = self.close_idle()
        still_open = max(0, closing - (before - self.sockets))
        self._closing = min(self.sockets, self._closing + still_open)
        return closing

    def _settle(self) -> None:
        held = max(self.sockets, self.uses)
        change, self._held = held - self._held, held
        self._budget.moved(self, change)


class SocketUse:
    """The leave of one call or stream to use a socket."""

    __slots__ = ("_account", "_handshake")

    def __init__(self, account: Account, handshake: _Handshake | None = None) -> None:
        self._account = account
        self._handshake = handshake

    def end(self) -> None:
        """Give it back; to be called once."""
        self._account.leave(self._handshake)


class WatchSlot:
    """One watch's leave to hold a socket: taken before its list, given back when its stream has ended."""

    __slots__ = ("_budget", "taken")

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self.taken = False

    @property
    def free(self) -> bool:
        """True when `take` returns at once."""
        return self.taken or self._budget.has_slot

    async def take(self) -> None:
        """Return when this watch may go on; harmless when it has its slot."""
        if not self.taken:
            await self._budget.slot()
            self.taken = True

    def give(self) -> None:
        """Let another watch have it; harmless when it has none."""
        if self.taken:
            self.taken = False
            self._budget.slot_over()


class _Handshake:
    """Places among the connections being made; given back once."""

    __slots__ = ("_before", "_free", "_timer")

    def __init__(self, free: Callable[[], None], clock: Clock, before: _Handshake | None = None) -> None:
        """`before` is a place that was taken on the way to this one."""
        self._free: Callable[[], None] | None = free
        self._before = before
        self._timer: Timer = clock.call_later(SLOW_HANDSHAKE, self.over)

    @property
    def counts(self) -> bool:
        """True until it was given back."""
        return self._free is not None

    def over(self) -> None:
        free, self._free = self._free, None
        if free is not None:
            self._timer.cancel()
            free()
            if self._before is not None:
                self._before.over()


class _Line:
    """Callers that wait for one of a number of places; first come, first served."""

    __slots__ = ("_granted", "_room", "_waiting")

    def __init__(self, room: Callable[[], int]) -> None:
        self._room = room
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._granted = 0
        """The waiters that were chosen and have not run since."""

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def passes(self) -> bool:
        """True when somebody who comes now need not wait."""
        return not self._waiting and self._room() > self._granted

    async def turn(self) -> None:
        """Return when it is the caller's turn, who takes his share before the loop goes on."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            await waiter
        except BaseException:
            with suppress(ValueError):
                self._waiting.remove(waiter)
            if waiter.done() and not waiter.cancelled():
                self._granted -= 1
            self.move_on()
            raise
        self._granted -= 1

    def move_on(self) -> None:
        """Let those pass for whom there is room."""
        while self._waiting and self._room() > self._granted:
            waiter = self._waiting.popleft()
            if not waiter.done():
                self._granted += 1
                waiter.set_result(None)


class Budget:
    """The limits of all connections together."""

    def __init__(self, *, sockets: int, watch_share: float, handshakes: int, clock: Clock) -> None:
        self._limit = sockets
        self.watch_limit = max(1, int(sockets * watch_share))
        """Most watches that may be open at once."""
        self._clock = clock
        self._handshakes = asyncio.Semaphore(handshakes)
        self._patient = asyncio.Semaphore(max(1, int(handshakes * _PATIENT_SHARE)))
        self._unused: OrderedDict[Account, None] = OrderedDict()
        self._sockets = _Line(lambda: self._limit - self.held)
        self._slots = _Line(lambda: self.watch_limit - self.watches)
        self.held = 0
        """Sockets that are open or about to be."""
        self.watches = 0
        """Watches that have a slot."""
        self.evicted = 0
        """The number of unused connections that were closed to make room."""

    @property
    def waiting(self) -> int:
        """Calls and watches that wait for a socket or a slot."""
        return len(self._sockets) + len(self._slots)

    async def room(self) -> None:
        """Return when one more socket may be opened."""
        if not self._sockets.passes:
            self._evict()
        if not self._sockets.passes:  # a socket may be closed at once, or in the next turn of the loop
            await self._sockets.turn()

    @property
    def has_slot(self) -> bool:
        """True when one more watch may begin now."""
        return self._slots.passes

    @property
    def crowded(self) -> bool:
        """True when four of five slots are taken."""
        return 5 * self.watches > 4 * self.watch_limit

    async def slot(self) -> None:
        """Return when one more watch may begin; the caller owes a `slot_over`."""
        if not self._slots.passes:
            await self._slots.turn()
        self.watches += 1

    def slot_over(self) -> None:
        """A watch has ended."""
        self.watches -= 1
        self._slots.move_on()

    async def handshake(self, *, patient: bool = False) -> _Handshake:
        """Return when one more connection may be made; `patient` for one that no call with a deadline waits for."""
        before = await self.patience() if patient else None
        try:
            await self._handshakes.acquire()
        except BaseException:
            if before is not None:
                before.over()
            raise
        return _Handshake(self._handshakes.release, self._clock, before)

    async def patience(self) -> _Handshake:
        """Return when one more of those that have no deadline may line up for a connection."""
        await self._patient.acquire()
        return _Handshake(self._patient.release, self._clock)

    def moved(self, account: Account, change: int) -> None:
        """`account` holds `change` more sockets than before, or has become used or unused."""
        self.held += change
        self._unused.pop(account, None)
        if account.unused > 0:
            self._unused[account] = None
            if self._sockets:
                self._evict()
        if change < 0:
            self._sockets.move_on()

    def _evict(self) -> None:
        while self._unused:
            account, _ = self._unused.popitem(last=False)
            if account.evict():
                self.evicted += 1
                return
