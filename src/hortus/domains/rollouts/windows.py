"""Maintenance windows of clusters, in the form of the Gardener's `maintenance.timeWindow`: 220000+0100-230000+0100.

Gardener documents the form in docs/usage/shoot/shoot_maintenance.md (gardener/gardener): hours, minutes, seconds, and
the offset from UTC. Days may follow, of the begin in its own offset: `220000+0100-230000+0100 Sat,Sun`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

DAY = 86_400
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_EPOCH_WEEKDAY = 3
"""1970-01-01 was a Thursday."""
_TIME = r"([01][0-9]|2[0-3])([0-5][0-9])([0-5][0-9])([+-])([01][0-9]|2[0-3])([0-5][0-9])"
_FORM = re.compile(rf"{_TIME}-{_TIME}(?: ([A-Za-z,]+))?")


class WindowError(ValueError):
    """A text that is no maintenance window."""


class Window(NamedTuple):
    """A span of time on some days of the week."""

    begin: int
    """Seconds since midnight in the offset of the begin."""
    length: int
    """Seconds."""
    offset: int
    """Seconds by which that offset is ahead of UTC."""
    days: frozenset[int]
    """Days of the begin, Monday being 0."""

    def opens(self, now: float) -> float:
        """When it opens next, in seconds since the epoch: not after `now` while it is open."""
        local = now + self.offset
        today = int(local // DAY)
        starts = (day * DAY + self.begin for day in range(today - 1, today + 9) if self._includes(day))
        return next(start - self.offset for start in starts if start + self.length > local)

    def _includes(self, day: int) -> bool:
        return (day + _EPOCH_WEEKDAY) % 7 in self.days


@lru_cache(maxsize=4096)
def window(text: str) -> Window:
    """The window of a property. Raises WindowError."""
    found = _FORM.fullmatch(text)
    if found is None:
        raise WindowError(f"maintenance window {text[:60]!r} is not like 220000+0100-230000+0100")
    parts = found.groups()
    begin, offset = _seconds(parts[0:6])
    end, end_offset = _seconds(parts[6:12])
    length = (end - end_offset - (begin - offset)) % DAY or DAY
    return Window(begin, length, offset, _days(text, parts[12]))


def _seconds(parts: tuple[str, ...]) -> tuple[int, int]:
    hour, minute, second, sign, offset_hour, offset_minute = parts
    offset = int(offset_hour) * 3600 + int(offset_minute) * 60
    return int(hour) * 3600 + int(minute) * 60 + int(second), -offset if sign == "-" else offset


def _days(text: str, names: str | None) -> frozenset[int]:
    if names is None:
        return frozenset(range(7))
    unknown = [name for name in names.split(",") if name not in _WEEKDAYS]
    if unknown:
        raise WindowError(f"maintenance window {text[:60]!r}: {unknown[0]!r} is none of {', '.join(_WEEKDAYS)}")
    return frozenset(_WEEKDAYS.index(name) for name in names.split(","))
