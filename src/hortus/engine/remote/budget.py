"""One budget of sockets and handshakes for the connections to all clusters.

A cluster's share is what it holds: its open sockets, or its calls and streams under way where these are more, since
each of them is about to open one. Who needs a socket when there is none takes it from the cluster that was unused the
longest; when none is unused it waits in line, calls before watches. Making a connection costs CPU, so only so many are
made at once; one that takes longer than a second waits for the network and counts no more.
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


class _Socket(socket.socket):
    """Tells its account when it is closed, by whichever way an event loop does that."""

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
    """The share of one cluster. `close_idle` is called to give its unused sockets back."""

    __slots__ = ("_budget", "_handshakes", "_held", "close_idle", "sockets", "uses")

    def __init__(self, budget: Budget, close_idle: Callable[[], None]) -> None:
        self._budget = budget
        self.close_idle = close_idle
        self.sockets = 0
        self.uses = 0
        self._held = 0
        self._handshakes: list[_Handshake] = []

    async def enter(self, *, watch: bool = False) -> None:
        """Begin a call or stream: return when it may use a socket, and, unless one is unused, open one."""
        if self.sockets > self.uses:
            self.uses += 1
            self._settle()
            return
        await self._budget.room(watch=watch)
        self.uses += 1
        self._settle()
        try:
            self._handshakes.append(await self._budget.handshake())
        except BaseException:
            self.leave()
            raise

    def leave(self) -> None:
        """End a call or stream."""
        self.uses -= 1
        if self._handshakes and len(self._handshakes) > self.uses:
            self._handshakes.pop(0).over()
        self._settle()

    def opened(self) -> None:
        """An attempt to connect is over."""
        if self._handshakes:
            self._handshakes.pop(0).over()

    def make_socket(self, family: int, kind: int, protocol: int) -> socket.socket:
        """For `hortus.kube.Dialing`."""
        made = _Socket(family, kind, protocol)
        made.account = self
        self.sockets += 1
        self._settle()
        return made

    def closed_socket(self) -> None:
        self.sockets -= 1
        self._settle()

    def _settle(self) -> None:
        held = max(self.sockets, self.uses)
        change, self._held = held - self._held, held
        self._budget.moved(self, change)


class _Handshake:
    """A place among the connections being made; given back once."""

    __slots__ = ("_free", "_timer")

    def __init__(self, free: Callable[[], None], clock: Clock) -> None:
        self._free: Callable[[], None] | None = free
        self._timer: Timer = clock.call_later(SLOW_HANDSHAKE, self.over)

    def over(self) -> None:
        free, self._free = self._free, None
        if free is not None:
            self._timer.cancel()
            free()


class Budget:
    """What all connections may hold together."""

    def __init__(self, *, sockets: int, watch_share: float, handshakes: int, clock: Clock) -> None:
        self._limit = sockets
        self._watch_limit = max(1, int(sockets * watch_share))
        self._clock = clock
        self._handshakes = asyncio.Semaphore(handshakes)
        self._unused: OrderedDict[Account, None] = OrderedDict()
        self._calls: deque[asyncio.Future[None]] = deque()
        self._watches: deque[asyncio.Future[None]] = deque()
        self.held = 0
        """Sockets that are open or about to be."""
        self.evicted = 0
        """How often an unused connection was closed to make room."""

    @property
    def waiting(self) -> int:
        """Calls and watches that wait for a socket."""
        return len(self._calls) + len(self._watches)

    async def room(self, *, watch: bool) -> None:
        """Return when one more socket may be opened."""
        limit, line = (self._watch_limit, self._watches) if watch else (self._limit, self._calls)
        while self.held >= limit:
            self._evict()
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            line.append(turn)
            try:
                await turn
            except BaseException:
                with suppress(ValueError):
                    line.remove(turn)
                if turn.done() and not turn.cancelled():
                    self._wake()
                raise

    async def handshake(self) -> _Handshake:
        """Return when one more connection may be made."""
        await self._handshakes.acquire()
        return _Handshake(self._handshakes.release, self._clock)

    def moved(self, account: Account, change: int) -> None:
        """`account` holds `change` more sockets than before, or has become used or unused."""
        self.held += change
        self._unused.pop(account, None)
        if account.sockets and not account.uses:
            self._unused[account] = None
            if self._calls or self._watches:
                self._evict()
        if change < 0:
            self._wake()

    def _evict(self) -> None:
        if self._unused:
            account, _ = self._unused.popitem(last=False)
            self.evicted += 1
            account.close_idle()

    def _wake(self) -> None:
        for line, limit in ((self._calls, self._limit), (self._watches, self._watch_limit)):
            while line and self.held < limit:
                turn = line.popleft()
                if not turn.done():
                    turn.set_result(None)
                    return
