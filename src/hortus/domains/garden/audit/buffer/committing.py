"""Group commit: a thread of its own writes all lines that wait as one frame, syncs, and acknowledges all of them.

While a sync is under way new lines gather, so that the slower the disk, the larger the frames. A caller returns from
`commit` when its lines are on the disk.
"""

from __future__ import annotations

import asyncio
import enum
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

import structlog

from hortus.domains.garden.audit.buffer.events import EventLines
from hortus.domains.garden.audit.buffer.spool import Spool, SpoolFull, SpoolReport
from hortus.kube.clock import Clock, Timer

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

_LARGEST_GROUP = 8 * 1024 * 1024
"""Bytes of one frame; a single body may be larger."""
_INTERVAL = 1.0
"""Seconds from a commit to its sync with the policy `interval`."""


class SyncPolicy(enum.Enum):
    ALWAYS = "always"
    """Lines are acknowledged when they are on the disk."""
    INTERVAL = "interval"
    """Lines are acknowledged when the kernel has them; the disk has them a second later."""
    NEVER = "never"
    """The kernel writes them when it likes. They survive the end of the process, not that of the machine."""


class _Waiting(NamedTuple):
    lines: EventLines
    done: asyncio.Future[None]


class Committer:
    """Owns the writing side of `spool` between `start` and `stop`."""

    def __init__(self, spool: Spool, policy: SyncPolicy, *, clock: Clock) -> None:
        self.listeners: Sequence[Callable[[], object]] = ()
        """Called after each commit."""
        self._spool = spool
        self._policy = policy
        self._largest_group = min(_LARGEST_GROUP, spool.largest_payload)
        self._clock = clock
        self._queue: deque[_Waiting] = deque()
        self._reports: deque[SpoolReport] = deque()
        self._changed = threading.Condition()
        self._stopping = False
        self._due = False
        """True where the policy `interval` wants the next write to sync."""
        self._timer: Timer | None = None
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._room = asyncio.Event()

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, name="audit-spool", daemon=True)
        self._thread.start()

    async def stop(self) -> None:
        """Commits what waits and ends the thread."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)
        if self._timer is not None:
            self._timer.cancel()

    async def commit(self, lines: EventLines, *, hold: float = 0.0) -> None:
        """Returns when `lines` are kept as the policy says. Raises SpoolFull, after `hold` seconds, and OSError."""
        end = self._clock.monotonic() + hold
        while True:
            self._room.clear()
            try:
                return await self._commit(lines)
            except SpoolFull:
                left = end - self._clock.monotonic()
                if left <= 0 or not await self._room_within(left):
                    raise

    def report(self, report: SpoolReport) -> None:
        """Adds a report to the chain."""
        with self._changed:
            self._reports.append(report)
            self._changed.notify()

    def made_room(self) -> None:
        """Lets those try again who wait for room: a sink has confirmed lines."""
        self._room.set()

    async def _room_within(self, seconds: float) -> bool:
        timer = self._clock.call_later(seconds, self._room.set)
        try:
            await self._room.wait()
        finally:
            timer.cancel()
        return True

    async def _commit(self, lines: EventLines) -> None:
        assert self._loop is not None, "the committer is started"
        done: asyncio.Future[None] = self._loop.create_future()
        with self._changed:
            if self._stopping:
                raise OSError("the receiver is stopping")
            self._queue.append(_Waiting(lines, done))
            self._changed.notify()
        await done

    # The thread.

    def _run(self) -> None:
        assert self._loop is not None, "the committer is started"
        while (group := self._next_group()) is not None:
            error = self._write(group)
            self._loop.call_soon_threadsafe(self._acknowledge, group, error)
        if self._policy is SyncPolicy.INTERVAL:
            self._due = True
            self._write([])

    def _next_group(self) -> list[_Waiting] | None:
        """The lines of the next frame, none where only reports or a sync wait; None at the end."""
        with self._changed:
            while not (self._queue or self._reports or self._due or self._stopping):
                self._changed.wait()
            while self._reports:
                self._spool.report(self._reports.popleft())
            if self._stopping and not self._queue:
                return None
            group: list[_Waiting] = []
            size = 0
            while self._queue and (not group or size + len(self._queue[0].lines.payload) <= self._largest_group):
                group.append(self._queue.popleft())
                size += len(group[-1].lines.payload)
            return group

    def _write(self, group: list[_Waiting]) -> Exception | None:
        with self._changed:
            durable, self._due = self._due or self._policy is SyncPolicy.ALWAYS, False
        try:
            if group:
                self._spool.append([one.lines.payload for one in group], sum(one.lines.lines for one in group))
            self._spool.sync(durable=durable)
        except (SpoolFull, OSError) as error:
            if not group:
                _log.error("the spool cannot be synced", error=str(error))
            return error
        return None

    def _acknowledge(self, group: list[_Waiting], error: Exception | None) -> None:
        for one in group:
            if one.done.done():
                continue
            if error is None:
                one.done.set_result(None)
            else:
                one.done.set_exception(error)
        for listener in self.listeners:
            listener()
        if self._policy is SyncPolicy.INTERVAL and not self._spool.flushed:
            self._sync_later()

    def _sync_later(self) -> None:
        """Has all that is committed until then synced, also where no commit follows."""
        if self._timer is None and not self._stopping:
            self._timer = self._clock.call_later(_INTERVAL, self._sync_now)

    def _sync_now(self) -> None:
        self._timer = None
        with self._changed:
            self._due = True
            self._changed.notify()
