"""Moments: Go's time.Time, its zones, its layouts (`2006-01-02 15:04:05 MST`) and its methods.

A moment is a `Struct` of type time.Time whose fields a template cannot read, with the methods that are of use in one.
"""

from __future__ import annotations

import calendar
import datetime
import re
import time
import zoneinfo
from collections.abc import Callable
from typing import Any

from hortus.kube import durations
from hortus.render.gotemplate.calls import Function
from hortus.render.gotemplate.errors import FunctionError
from hortus.render.gotemplate.values import Int64, Struct, wrap_int64

MONTHS = list(calendar.month_name)
DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
PARTS = re.compile(
    r"January|Jan|Monday|Mon|MST|2006|002|__2|_2|01|02|03|04|05|06|15"
    r"|Z070000|Z07:00:00|Z0700|Z07:00|Z07(?![0-9])|-070000|-07:00:00|-0700|-07:00|-07|PM|pm|[.,]0+(?![0-9])|[.,]9+(?![0-9])|1|2|3|4|5"
)
_EPOCH = datetime.datetime(1970, 1, 1)
YEAR_ONE = -62135596800
"""Seconds from 1970 to Go's zero time."""
_LARGEST = 253402300800


class Moment(Struct):
    """time.Time: seconds since 1970, nanoseconds, and where its clock stands."""

    __slots__ = ("name", "nanoseconds", "offset", "seconds", "zone")

    def __init__(self, seconds: int, nanoseconds: int, zone: datetime.tzinfo | None, *, name: str = "") -> None:
        super().__init__("time.Time", {}, text=self._text, state=(seconds, nanoseconds, zone))
        if not YEAR_ONE <= seconds < _LARGEST:
            raise FunctionError("a date outside the years 1 to 9999")
        self.encoded = self._encoded
        self.seconds = seconds
        self.nanoseconds = nanoseconds
        self.zone = zone
        local = datetime.datetime.fromtimestamp(max(seconds, -62135510400), tz=zone) if zone else None
        delta = local.utcoffset() if local else None
        self.offset = int(delta.total_seconds()) if delta else 0
        self.name = name or ((local.tzname() if local else None) or "UTC")
        self.methods = _methods(self)

    @property
    def clock(self) -> datetime.datetime:
        """The wall clock, without a zone."""
        return _EPOCH + datetime.timedelta(seconds=self.seconds + self.offset)

    def _text(self) -> str:
        return format_moment(self, "2006-01-02 15:04:05.999999999 -0700 MST")

    def _encoded(self) -> str:
        return format_moment(self, "2006-01-02T15:04:05.999999999Z07:00")

    def moved(self, nanoseconds: int) -> Moment:
        """The moment so many nanoseconds later."""
        seconds, rest = divmod(self.nanoseconds + nanoseconds, durations.SECOND)
        return Moment(self.seconds + seconds, rest, self.zone)

    def within(self, zone: datetime.tzinfo) -> Moment:
        """The same moment elsewhere."""
        return Moment(self.seconds, self.nanoseconds, zone)


class _Local(datetime.tzinfo):
    """The zone of this process."""

    def utcoffset(self, moment: datetime.datetime | None) -> datetime.timedelta:
        return datetime.timedelta(seconds=self._known(moment).tm_gmtoff)

    def dst(self, moment: datetime.datetime | None) -> datetime.timedelta:
        return datetime.timedelta(hours=1 if self._known(moment).tm_isdst > 0 else 0)

    def tzname(self, moment: datetime.datetime | None) -> str:
        return self._known(moment).tm_zone

    def fromutc(self, moment: datetime.datetime) -> datetime.datetime:
        return moment + datetime.timedelta(
            seconds=time.localtime(calendar.timegm(moment.replace(tzinfo=None).timetuple())).tm_gmtoff
        )

    def _known(self, moment: datetime.datetime | None) -> time.struct_time:
        if moment is None:
            return time.localtime()
        guess = calendar.timegm(moment.replace(tzinfo=None).timetuple())
        return time.localtime(guess - time.localtime(guess).tm_gmtoff)


LOCAL = _Local()


def now() -> Moment:
    seconds, nanoseconds = divmod(time.time_ns(), durations.SECOND)
    return Moment(seconds, nanoseconds, LOCAL)


def format_moment(moment: Moment, layout: str) -> str:
    """time.Time.Format."""
    clock = moment.clock
    return PARTS.sub(lambda found: _shown(found[0], moment, clock), layout)


def _shown(part: str, moment: Moment, clock: datetime.datetime) -> str:
    simple: dict[str, Callable[[], str]] = {
        "January": lambda: MONTHS[clock.month],
        "Jan": lambda: MONTHS[clock.month][:3],
        "Monday": lambda: DAYS[clock.isoweekday() % 7],
        "Mon": lambda: DAYS[clock.isoweekday() % 7][:3],
        "MST": lambda: moment.name,
        "2006": lambda: f"{clock.year:04d}",
        "06": lambda: f"{clock.year % 100:02d}",
        "01": lambda: f"{clock.month:02d}",
        "1": lambda: str(clock.month),
        "02": lambda: f"{clock.day:02d}",
        "_2": lambda: f"{clock.day:2d}",
        "2": lambda: str(clock.day),
        "002": lambda: f"{clock.timetuple().tm_yday:03d}",
        "__2": lambda: f"{clock.timetuple().tm_yday:3d}",
        "15": lambda: f"{clock.hour:02d}",
        "03": lambda: f"{clock.hour % 12 or 12:02d}",
        "3": lambda: str(clock.hour % 12 or 12),
        "04": lambda: f"{clock.minute:02d}",
        "4": lambda: str(clock.minute),
        "05": lambda: f"{clock.second:02d}",
        "5": lambda: str(clock.second),
        "PM": lambda: "PM" if clock.hour >= 12 else "AM",
        "pm": lambda: "pm" if clock.hour >= 12 else "am",
    }
    found = simple.get(part)
    if found:
        return found()
    return _fraction(part, moment.nanoseconds) if part[0] in ".," else shown_offset(part, moment.offset)


def _fraction(part: str, nanoseconds: int) -> str:
    digits = f"{nanoseconds:09d}"[: len(part) - 1]
    if part[1] == "9":
        digits = digits.rstrip("0")
        return part[0] + digits if digits else ""
    return part[0] + digits


def shown_offset(part: str, offset: int) -> str:
    if part[0] == "Z" and offset == 0:
        return "Z"
    sign, size = ("-", -offset) if offset < 0 else ("+", offset)
    hours, minutes, seconds = size // 3600, size // 60 % 60, size % 60
    shape = part[1:]
    shown = {
        "07": f"{hours:02d}",
        "0700": f"{hours:02d}{minutes:02d}",
        "07:00": f"{hours:02d}:{minutes:02d}",
        "070000": f"{hours:02d}{minutes:02d}{seconds:02d}",
        "07:00:00": f"{hours:02d}:{minutes:02d}:{seconds:02d}",
    }
    return sign + shown[shape]


def zone_named(name: str) -> datetime.tzinfo:
    if name == "Local":
        return LOCAL
    if name in ("", "UTC"):
        return datetime.UTC
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return datetime.UTC


def _named(type_name: str, names: list[str], number: int) -> Struct:
    return Struct(type_name, {}, text=lambda: names[number], state=number)


def _duration_value(nanoseconds: int) -> Struct:
    return Struct("time.Duration", {}, text=lambda: durations.format(nanoseconds), state=nanoseconds)


def _methods(moment: Moment) -> dict[str, Function]:
    """Made only when a template asks, one by one."""
    return _Methods(moment)


class _Methods(dict[str, Function]):
    def __init__(self, moment: Moment) -> None:
        super().__init__()
        self._moment = moment

    def get(self, name: str, default: Any = None) -> Any:
        found = _METHODS.get(name)
        if found is None:
            return default
        signature, call = found
        return Function(name, signature, lambda *arguments: call(self._moment, *arguments))


_METHODS: dict[str, tuple[str, Any]] = {
    "Format": ("string", format_moment),
    "Unix": ("", lambda m: Int64(m.seconds)),
    "UnixNano": ("", lambda m: Int64(wrap_int64(m.seconds * durations.SECOND + m.nanoseconds))),
    "UnixMilli": ("", lambda m: Int64(m.seconds * 1000 + m.nanoseconds // 1_000_000)),
    "Year": ("", lambda m: m.clock.year),
    "Month": ("", lambda m: _named("time.Month", MONTHS, m.clock.month)),
    "Weekday": ("", lambda m: _named("time.Weekday", DAYS, m.clock.isoweekday() % 7)),
    "Day": ("", lambda m: m.clock.day),
    "YearDay": ("", lambda m: m.clock.timetuple().tm_yday),
    "Hour": ("", lambda m: m.clock.hour),
    "Minute": ("", lambda m: m.clock.minute),
    "Second": ("", lambda m: m.clock.second),
    "Nanosecond": ("", lambda m: m.nanoseconds),
    "UTC": ("", lambda m: m.within(datetime.UTC)),
    "Local": ("", lambda m: m.within(LOCAL)),
    "IsZero": ("", lambda m: m.seconds == YEAR_ONE and m.nanoseconds == 0),
    "String": ("", lambda m: m.text()),
    "Before": ("time", lambda m, other: (m.seconds, m.nanoseconds) < (other.seconds, other.nanoseconds)),
    "After": ("time", lambda m, other: (m.seconds, m.nanoseconds) > (other.seconds, other.nanoseconds)),
    "Equal": ("time", lambda m, other: (m.seconds, m.nanoseconds) == (other.seconds, other.nanoseconds)),
    "Sub": (
        "time",
        lambda m, other: _duration_value(
            (m.seconds - other.seconds) * durations.SECOND + m.nanoseconds - other.nanoseconds
        ),
    ),
}
