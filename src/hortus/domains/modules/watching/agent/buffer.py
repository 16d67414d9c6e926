"""Events that wait for delivery, in order, each object once, in memory and in a file that survives a kill.

The file is a log of JSON lines: one for each event that came, one for each that was delivered. A line is one write to a
file opened for appending, so a killed process leaves whole lines and at most one cut off, which is skipped. It is not
flushed to the disk: the folder lives no longer than the node. When most lines are of delivered events the file is
written again.

Each manager has a lane of its own: an endpoint that refuses does not hold the others up. A full lane refuses events,
which are counted: those it holds already make their manager reconcile.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import orjson
import structlog

from hortus.domains.modules.watching.events import WatchedEvent

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

FILE = "events.jsonl"
MOST_LANES = 64
"""Managers that events are kept for. A cluster has few; only the API server is meant to name them."""
_SLACK = 256
"""Lines of delivered events that are never worth writing the file again."""


class Buffered(NamedTuple):
    """An event with its number in the file."""

    number: int
    event: WatchedEvent


class _Lane:
    """The events of one manager, oldest first."""

    def __init__(self) -> None:
        self.events: dict[int, WatchedEvent] = {}
        self.waiting: set[WatchedEvent] = set()
        """Events whose delivery has not begun. An event that equals one of them is not added."""


class EventBuffer:
    """The events of all managers. Without a folder, or where it cannot be written, they are in memory alone."""

    def __init__(self, folder: Path | None = None, *, limit: int = 1024) -> None:
        self._limit = limit
        self._lanes: dict[str, _Lane] = {}
        self._next = 0
        self._dead = 0
        self._file: int | None = None
        self._path = folder / FILE if folder is not None else None
        self.dropped = 0
        """Events that were refused because a lane was full."""
        self.problem = ""
        """The reason for which the file is not in use; empty when it is, or when none was asked for."""
        if self._path is not None:
            self._open(self._path)

    def __len__(self) -> int:
        return sum(len(lane.events) for lane in self._lanes.values())

    @property
    def persistent(self) -> bool:
        """True while events outlive the process."""
        return self._file is not None

    @property
    def managers(self) -> tuple[str, ...]:
        """The managers that events are, or were, kept for."""
        return tuple(self._lanes)

    def add(self, manager: str, event: WatchedEvent) -> bool:
        """Keep an event; returns False where it was refused. One that waits already is not kept twice."""
        lane = self._lanes.get(manager)
        if lane is None:
            if len(self._lanes) >= MOST_LANES:
                self.dropped += 1
                return False
            lane = self._lanes[manager] = _Lane()
        if event in lane.waiting:
            return True
        if len(lane.events) >= self._limit:
            self.dropped += 1
            return False
        number = self._next
        self._put(lane, number, event)
        self._write([_added(number, manager, event)])
        return True

    def begin(self, manager: str) -> Buffered | None:
        """The oldest event of a manager, to be delivered now; a change from now on is another event."""
        lane = self._lanes.get(manager)
        if lane is None or not lane.events:
            return None
        number, event = next(iter(lane.events.items()))
        lane.waiting.discard(event)
        return Buffered(number, event)

    def done(self, manager: str, number: int) -> None:
        """Forget a delivered event."""
        lane = self._lanes[manager]
        if lane.events.pop(number, None) is None:
            return
        self._dead += 1
        self._write([[number]])
        if self._dead > _SLACK + len(self):
            self._compact()

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    # The file.

    def _open(self, path: Path) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileNotFoundError):
                self._read(path.read_bytes().splitlines())
        except OSError as error:
            self._give_up(error)
            return
        self._compact()

    def _read(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            try:
                found = orjson.loads(line)
                if len(found) == 1:
                    self._forget(int(found[0]))
                else:
                    number, manager, *texts = found
                    lane = self._lanes.setdefault(str(manager), _Lane())
                    self._put(lane, int(number), WatchedEvent(*(str(text) for text in texts)))
            except (ValueError, TypeError) as error:
                _log.warning("a line of the buffer cannot be read", error=str(error))

    def _put(self, lane: _Lane, number: int, event: WatchedEvent) -> None:
        lane.events[number] = event
        lane.waiting.add(event)
        self._next = max(self._next, number + 1)

    def _forget(self, number: int) -> None:
        for lane in self._lanes.values():
            event = lane.events.pop(number, None)
            if event is not None and event not in lane.events.values():
                lane.waiting.discard(event)

    def _compact(self) -> None:
        """Write the file again, with nothing but what waits."""
        assert self._path is not None, "a buffer without a file has nothing to write again"
        fresh = self._path.with_suffix(".new")
        try:
            fresh.unlink(missing_ok=True)
            file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_EXCL, 0o600)
            lines = [
                _added(number, manager, event)
                for manager, lane in self._lanes.items()
                for number, event in lane.events.items()
            ]
            _write_whole(file, lines)
            fresh.replace(self._path)
        except OSError as error:
            self._give_up(error)
            return
        self.close()
        self._file, self._dead, self.problem = file, 0, ""

    def _write(self, lines: Iterable[list[object]]) -> None:
        if self._file is None:
            if self._path is not None:
                self._compact()  # it may be writable again
            return
        try:
            _write_whole(self._file, lines)
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        self.close()
        problem = f"{self._path}: {error.strerror}"
        if problem != self.problem:
            _log.error("events are kept in memory alone", error=problem)
        self.problem = problem


def _added(number: int, manager: str, event: WatchedEvent) -> list[object]:
    return [number, manager, event.namespace, event.name, event.group, event.version, event.kind]


def _write_whole(file: int, lines: Iterable[list[object]]) -> None:
    text = b"".join(orjson.dumps(line) + b"\n" for line in lines)
    if os.write(file, text) != len(text):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
