"""Bookmarks for the streams to one cluster: one stream has them, for all.

A bookmark a minute shows that a stream lives. A server that hangs sends none to any of its streams, and the kernel
finds out about a connection whose other end is gone (`hortus.kube.dialing`). So one stream has bookmarks, and those
that begin next to it ask for none: in a fleet at rest bookmarks are what costs processor time. When a stream falls
silent, all others of its connection end in good order and go on where they stopped. When the one with bookmarks ends,
the next that begins has them; when none begins within a period, the others are ended, so that one does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hortus.engine.remote.context import PoolContext
from hortus.engine.remote.credentials import KubeconfigRef
from hortus.kube.transport import Absorb

_ASKED: Final = "allowWatchBookmarks=true"
_INITIAL: Final = "sendInitialEvents=true"
"""A stream that asks for this needs the bookmark at the end of its first events."""
_GRACE: Final = 30.0
"""Seconds beyond the longest time of a stream after which one without bookmarks is given up."""


class Beat:
    """The part that one stream has."""

    __slots__ = ("idle_timeout", "target", "tell")

    def __init__(self, target: str, idle_timeout: float | None, tell: Absorb | None = None) -> None:
        self.target = target
        self.idle_timeout = idle_timeout
        self.tell = tell
        """The reader of a stream without bookmarks."""


class Pulse:
    """The streams to one cluster that could have bookmarks."""

    __slots__ = ("_interrupt", "_leader", "_place", "_pool", "_quiet", "_waiting")

    def __init__(self, place: KubeconfigRef, pool: PoolContext, interrupt: Callable[[], None]) -> None:
        """`interrupt` ends all streams to the cluster in good order, so that their readers begin new ones."""
        self._place = place
        self._pool = pool
        self._interrupt = interrupt
        self._leader: Beat | None = None
        self._quiet: set[Beat] = set()
        self._waiting: set[Beat] = set()

    def join(self, target: str, idle_timeout: float | None, absorb: Absorb | None) -> Beat:
        """The target and the longest silence with which a stream is to begin. It owes a `leave`."""
        if absorb is None or _ASKED not in target or _INITIAL in target:
            return Beat(target, idle_timeout)
        if self._leader is None:
            self._leader = beat = Beat(target, idle_timeout)
            return beat
        bare = target.replace(f"&{_ASKED}", "").replace(f"{_ASKED}&", "")
        beat = Beat(bare, 2 * self._pool.settings.watch_period + _GRACE, absorb)
        self._quiet.add(beat)
        return beat

    def begun(self, beat: Beat) -> None:
        """The server has begun to answer."""
        if beat in self._quiet:
            self._waiting.add(beat)

    def heard(self, beat: Beat) -> None:
        """Something has come to `beat`: readers of streams that began next to it hear, once, that theirs live."""
        if beat is self._leader and self._waiting:
            waiting, self._waiting = self._waiting, set()
            for other in waiting:
                if other.tell is not None:
                    other.tell(b"")

    def leave(self, beat: Beat) -> None:
        """The stream of `beat` has ended, or did not begin."""
        if beat is self._leader:
            self._leader = None
            if self._quiet:
                self._pool.spawn(self._succeed, f"bookmarks of {self._place}")
        self._quiet.discard(beat)
        self._waiting.discard(beat)

    async def _succeed(self) -> None:
        """Most often the same reader begins its next stream at once."""
        await self._pool.clock.sleep(self._pool.settings.bookmark_period)
        if self._leader is None and self._quiet:
            self._interrupt()
