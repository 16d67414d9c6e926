"""Times of cron schedules in a time zone, as Gardener computes them (robfig/cron 1.2, five fields).

Hours are counted as they pass: a time that a change of the clocks leaves out does not come, one that it repeats comes
twice. A day matches by either of its fields where both are restricted, else by both.
"""

from __future__ import annotations

import functools
import zoneinfo
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Final, NamedTuple

from hortus.kube import durations

_YEARS: Final = 5
"""Years that are searched for the next time."""
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_WORDS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY: Final = "@every "


class Cron(NamedTuple):
    """A schedule in a zone; with `every` it comes at an interval of so many seconds instead."""

    zone: tzinfo
    minutes: frozenset[int] = frozenset()
    hours: frozenset[int] = frozenset()
    days: frozenset[int] = frozenset()
    months: frozenset[int] = frozenset()
    weekdays: frozenset[int] = frozenset()
    any_day: bool = True
    """A field for days is `*`: both must match."""
    every: int = 0

    def following(self, after: float) -> float | None:
        """The first time after a time, in seconds since the epoch; None where there is none in some years."""
        if self.every:
            return int(after) + self.every
        at, limit = int(after) + 1, datetime.fromtimestamp(after, self.zone).year + _YEARS
        while True:
            local = datetime.fromtimestamp(at, self.zone)
            if local.year > limit:
                return None
            if local.month not in self.months:
                at = self._midnight((local.date().replace(day=1) + timedelta(days=32)).replace(day=1))
            elif not self._is_day(local):
                at = self._midnight(local.date() + timedelta(days=1))
            elif local.hour not in self.hours:
                at += 3600 - local.minute * 60 - local.second
            elif local.minute not in self.minutes or local.second:
                at += 60 - local.second
            else:
                return at

    def latest(self, after: float, until: float) -> float | None:
        """The last time after one and not after another."""
        found, at = None, self.following(after)
        while at is not None and at <= until:
            found, at = at, self.following(at)
        return found

    def _midnight(self, day: date) -> int:
        return int(datetime(day.year, day.month, day.day, tzinfo=self.zone).timestamp())

    def _is_day(self, local: datetime) -> bool:
        of_month, of_week = local.day in self.days, local.isoweekday() % 7 in self.weekdays
        return of_month and of_week if self.any_day else of_month or of_week


@functools.lru_cache(maxsize=512)
def cron(text: str, location: str = "") -> Cron:
    """The schedule of a valid text (`schedules.cron_problem`) in a known zone, by default UTC."""
    zone = UTC if location in ("", "UTC", "Local") else zoneinfo.ZoneInfo(location)
    if text.startswith(_EVERY):
        return Cron(zone, every=max(1, durations.parse(text.removeprefix(_EVERY)) // durations.SECOND))
    minutes, hours, days, months, weekdays = _WORDS.get(text, text).split()
    return Cron(
        zone,
        _numbers(minutes, 0, 59),
        _numbers(hours, 0, 23),
        _numbers(days, 1, 31),
        _numbers(months, 1, 12, _MONTHS),
        _numbers(weekdays, 0, 6, _DAYS),
        any(_is_open(field) for field in (days, weekdays)),
    )


def _is_open(field: str) -> bool:
    return any(part.split("/")[0].split("-")[0] in ("*", "?") for part in field.split(","))


def _numbers(field: str, low: int, high: int, names: tuple[str, ...] = ()) -> frozenset[int]:
    found: set[int] = set()
    for part in filter(None, field.split(",")):
        span, _, step = part.partition("/")
        first, _, last = span.partition("-")
        if first in ("*", "?"):
            begin, end = low, high
        else:
            begin = _number(first, low, names)
            end = _number(last, low, names) if last else high if step else begin
        found |= set(range(begin, end + 1, int(step) if step else 1))
    return frozenset(found)


def _number(text: str, low: int, names: tuple[str, ...]) -> int:
    word = text.lower()
    return names.index(word) + low if word in names else int(text)
