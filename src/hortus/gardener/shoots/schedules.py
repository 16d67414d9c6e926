"""Rules of a Shoot's hibernation and maintenance: cron schedules, time zones, the window of a day.

Source: gardener/gardener, pkg/api/core/validation and pkg/apis/utils/timewindow; schedules are read as robfig/cron 1.2
reads them.
"""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Iterator, Sequence
from typing import Final

from hortus.gardener.shoots.checks import nanoseconds
from hortus.gardener.shoots.components import WORKERLESS
from hortus.gardener.shoots.facts import RuleFacts
from hortus.gardener.shoots.operations import AWAKE, IN_MAINTENANCE, operations_of
from hortus.kube import Object, durations
from hortus.kube.durations import HOUR, MINUTE, SECOND, DurationError
from hortus.schema import FieldError
from hortus.schema.problems import duplicate, forbidden, invalid, required
from hortus.schema.quoting import quote

SHORTEST_WINDOW: Final = 30 * MINUTE
LONGEST_WINDOW: Final = 6 * HOUR
DAY: Final = 24 * HOUR


def hibernation_problems(
    hibernation: Object, metadata: Object, path: str, *, self_hosted: bool
) -> Iterator[FieldError]:
    """Problems of the hibernation of a Shoot with some metadata."""
    if self_hosted:
        yield forbidden(path, "hibernation is not supported for self-hosted shoots")
        return
    for name in operations_of(metadata, IN_MAINTENANCE):
        if name in AWAKE and hibernation.get("enabled"):
            text = f"shoot cannot be hibernated when {IN_MAINTENANCE} annotation contains {name} operation"
            yield forbidden(f"{path}.enabled", text)
    seen: set[str] = set()
    for index, schedule in enumerate(hibernation.get("schedules") or ()):
        yield from _schedule_problems(schedule, f"{path}.schedules[{index}]", seen)


def _schedule_problems(schedule: Object, path: str, seen: set[str]) -> Iterator[FieldError]:
    times = {name: text for name in ("start", "end") if (text := schedule.get(name)) is not None}
    if not times:
        yield required(f"{path}.start/end", "either start or end has to be provided")
    for name, text in times.items():
        if problem := cron_problem(text):
            yield invalid(f"{path}.{name}", text, f"not a valid cron spec: {problem}")
        elif text in seen:
            yield duplicate(f"{path}.{name}", text)
        seen.add(text)
    location = schedule.get("location")
    if location is not None and (problem := location_problem(location)):
        yield invalid(f"{path}.location", location, f"not a valid location: {problem}")


def location_problem(name: str) -> str:
    """The problem of the name of a time zone."""
    if name in ("", "UTC", "Local"):
        return ""
    if ".." in name or name[0] in "/\\":
        return "time: invalid location name"
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return f"unknown time zone {name}"
    return ""


_WORDS = frozenset({"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"})
_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTHS = {name: place + 1 for place, name in enumerate(_MONTH_NAMES)}
_DAYS = {name: place for place, name in enumerate(("sun", "mon", "tue", "wed", "thu", "fri", "sat"))}
_FIELDS: Final[tuple[tuple[int, int, dict[str, int]], ...]] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, _MONTHS),
    (0, 6, _DAYS),
)
"""Bounds and names of minutes, hours, days of the month, months and days of the week."""


class CronError(ValueError):
    """A text that is no cron schedule."""


def cron_problem(text: str) -> str:
    """The problem of a cron schedule."""
    try:
        _read_cron(text)
    except CronError as error:
        return str(error)
    return ""


def _read_cron(text: str) -> None:
    if not text:
        raise CronError("Empty spec string")
    if text.startswith("@"):
        _read_word(text)
        return
    fields = text.split()
    if len(fields) != len(_FIELDS):
        raise CronError(f"Expected exactly {len(_FIELDS)} fields, found {len(fields)}: {text}")
    for field, (low, high, names) in zip(fields, _FIELDS, strict=True):
        for part in filter(None, field.split(",")):
            _read_range(part, low, high, names)


def _read_word(text: str) -> None:
    if text in _WORDS:
        return
    every = text.removeprefix("@every ")
    if every == text:
        raise CronError(f"Unrecognized descriptor: {text}")
    try:
        durations.parse(every)
    except DurationError as error:
        raise CronError(f"Failed to parse duration {text}: time: {error}") from error


def _read_range(text: str, low: int, high: int, names: dict[str, int]) -> None:
    """Reads `*`, a number, a name or `first-last`, and a step after `/`."""
    span, *steps = text.split("/")
    ends = span.split("-")
    if ends[0] in ("*", "?"):
        first, last = low, high
    else:
        if len(ends) > 2:
            _number(ends[0], names)
            raise CronError(f"Too many hyphens: {text}")
        first, last = _number(ends[0], names), _number(ends[-1], names)
    if len(steps) > 1:
        raise CronError(f"Too many slashes: {text}")
    step = _number(steps[0], {}) if steps else 1
    if steps and len(ends) == 1:
        last = high
    if first < low:
        raise CronError(f"Beginning of range ({first}) below minimum ({low}): {text}")
    if last > high:
        raise CronError(f"End of range ({last}) above maximum ({high}): {text}")
    if first > last:
        raise CronError(f"Beginning of range ({first}) beyond end of range ({last}): {text}")
    if step == 0:
        raise CronError(f"Step of range should be a positive number: {text}")


_NUMBER = re.compile(r"[+-]?[0-9]+")


def _number(text: str, names: dict[str, int]) -> int:
    if (named := names.get(text.lower())) is not None:
        return named
    if not _NUMBER.fullmatch(text):
        reason = f"strconv.Atoi: parsing {quote(text)}: invalid syntax"
        raise CronError(f"Failed to parse int from {text}: {reason}")
    return int(text[:20])


def maintenance_problems(maintenance: Object, path: str, facts: RuleFacts) -> Iterator[FieldError]:
    """Problems of the maintenance of a Shoot."""
    images = (maintenance.get("autoUpdate") or {}).get("machineImageVersion")
    if facts.workerless and images is not None:
        yield forbidden(f"{path}.autoUpdate.machineImageVersion", WORKERLESS)
    rotated = (maintenance.get("autoRotation") or {}).get("credentials") or {}
    for name in ("observability", "sshKeypair", "etcdEncryptionKey"):
        if (part := rotated.get(name)) is None:
            continue
        at = f"{path}.autoRotation.credentials.{name}"
        if name == "sshKeypair" and facts.workerless:
            yield forbidden(at, WORKERLESS)
        else:
            yield from _period_problems(part.get("rotationPeriod"), f"{at}.rotationPeriod")
    if (window := maintenance.get("timeWindow")) is not None:
        yield from _window_problems(window, f"{path}.timeWindow")


def _period_problems(period: str | None, path: str) -> Iterator[FieldError]:
    length = nanoseconds(period) if period is not None else 0
    if length != 0 and not 30 * MINUTE <= length <= 90 * DAY:
        yield invalid(path, period, "value must be either 0 to disable rotation or between 30m and 90d")


def rotates_etcd_key(maintenance: Object | None) -> bool:
    """True where the key for etcd is rotated in maintenances."""
    rotated = ((maintenance or {}).get("autoRotation") or {}).get("credentials") or {}
    period = (rotated.get("etcdEncryptionKey") or {}).get("rotationPeriod")
    return period is not None and nanoseconds(period) != 0


def _window_problems(window: Object, path: str) -> Iterator[FieldError]:
    begin, end = window.get("begin") or "", window.get("end") or ""
    for name, text in (("begin", begin), ("end", end)):
        if problem := _clock_problem(text):
            shown = {"Begin": begin, "End": end}
            unread = "could not parse the value into the maintenanceTime format"
            yield invalid(f"{path}.begin/end", shown, f"could not parse {name} time: {unread}: {problem}")
            return
    length = (seconds_of(end) - seconds_of(begin)) * SECOND % DAY or DAY
    if length > LONGEST_WINDOW:
        yield invalid(path, length, f"time window must not be greater than {durations.format(LONGEST_WINDOW)}")
    elif length < SHORTEST_WINDOW:
        yield invalid(path, length, f"time window must not be smaller than {durations.format(SHORTEST_WINDOW)}")


_CLOCK = re.compile(r"([0-9]{1,2})([0-9]{2})([0-9]{2})(?:[.,][0-9]+)?([+-])([0-9]{2})([0-9]{2})")
_LAYOUT = "150405-0700"
_BOUNDS = (("hour", 24), ("minute", 60), ("second", 60))
_PIECES: Final = ((r"[0-9]{1,2}", "15"), (r"[0-9]{2}", "04"), (r"[0-9]{2}", "05"), (r"[+-][0-9]{4}", "-0700"))


def _clock_problem(text: str) -> str:
    """The problem of a time such as `220000+0100`, in the words of Go's time.Parse."""
    found = _CLOCK.fullmatch(text)
    if found is None:
        return _unread(text)
    head = f"parsing time {quote(text)}"
    for value, (name, bound) in zip(found.groups()[:3], _BOUNDS, strict=True):
        if int(value) >= bound:
            return f"{head}: {name} out of range"
    if int(found[5]) > 24:
        return f"{head}: time zone offset hour out of range"
    return f"{head}: time zone offset minute out of range" if int(found[6]) > 60 else ""


def _unread(text: str) -> str:
    rest, head = text, f"parsing time {quote(text)}"
    for pattern, layout in _PIECES:
        found = re.match(pattern, rest)
        if found is None:
            return f"{head} as {quote(_LAYOUT)}: cannot parse {quote(rest)} as {quote(layout)}"
        rest = rest[found.end() :]
    return f"{head}: extra text: {quote(rest)}"


def seconds_of(text: str) -> int:
    """The second of a day in UTC of a valid time such as `220000+0100`."""
    found = _CLOCK.fullmatch(text)
    assert found is not None, text
    hour, minute, second, sign, away, further = found.groups()
    offset = (int(away) * 60 + int(further)) * 60
    local = int(hour) * 3600 + int(minute) * 60 + int(second)
    return (local - (offset if sign == "+" else -offset)) % (24 * 3600)


def problems_of_receivers(addresses: Sequence[str], path: str) -> Iterator[FieldError]:
    """Problems of the addresses that alerts are mailed to."""
    for index, address in enumerate(addresses):
        if not _EMAIL.fullmatch(address):
            yield invalid(f"{path}[{index}]", address, "must provide a valid email")
        if address in addresses[:index]:
            yield duplicate(f"{path}[{index}]", address)


_EMAIL = re.compile(r"[^@]+@(?:[a-zA-Z-0-9]+\.)+[a-zA-Z]{2,}")
