"""Sprig's functions on dates, with Go's layouts (`2006-01-02 15:04:05 MST`).

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
from hortus.render.gotemplate.calls import Function, Functions, table
from hortus.render.gotemplate.errors import FunctionError
from hortus.render.gotemplate.quoting import quote
from hortus.render.gotemplate.values import Int64, Struct, wrap_int64

_MONTHS = list(calendar.month_name)
_DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
_PARTS = re.compile(
    r"January|Jan|Monday|Mon|MST|2006|002|__2|_2|01|02|03|04|05|06|15"
    r"|Z070000|Z07:00:00|Z0700|Z07:00|Z07(?![0-9])|-070000|-07:00:00|-0700|-07:00|-07|PM|pm|[.,]0+(?![0-9])|[.,]9+(?![0-9])|1|2|3|4|5"
)
_EPOCH = datetime.datetime(1970, 1, 1)
_YEAR_ONE = -62135596800
"""Seconds from 1970 to Go's zero time."""
_LARGEST = 253402300800


class Moment(Struct):
    """time.Time: seconds since 1970, nanoseconds, and where its clock stands."""

    __slots__ = ("name", "nanoseconds", "offset", "seconds", "zone")

    def __init__(self, seconds: int, nanoseconds: int, zone: datetime.tzinfo | None, *, name: str = "") -> None:
        super().__init__("time.Time", {}, text=self._text)
        if not _YEAR_ONE <= seconds < _LARGEST:
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
    return _PARTS.sub(lambda found: _shown(found[0], moment, clock), layout)


def _shown(part: str, moment: Moment, clock: datetime.datetime) -> str:
    simple: dict[str, Callable[[], str]] = {
        "January": lambda: _MONTHS[clock.month],
        "Jan": lambda: _MONTHS[clock.month][:3],
        "Monday": lambda: _DAYS[clock.isoweekday() % 7],
        "Mon": lambda: _DAYS[clock.isoweekday() % 7][:3],
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
    return _fraction(part, moment.nanoseconds) if part[0] in ".," else _offset(part, moment.offset)


def _fraction(part: str, nanoseconds: int) -> str:
    digits = f"{nanoseconds:09d}"[: len(part) - 1]
    if part[1] == "9":
        digits = digits.rstrip("0")
        return part[0] + digits if digits else ""
    return part[0] + digits


def _offset(part: str, offset: int) -> str:
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


def _zone(name: str) -> datetime.tzinfo:
    if name == "Local":
        return LOCAL
    if name in ("", "UTC"):
        return datetime.UTC
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return datetime.UTC


def _moment_of(value: Any) -> Moment:
    if isinstance(value, Moment):
        return value
    if type(value) in (int, Int64):
        return Moment(int(value), 0, LOCAL)
    return now()


def date_in_zone(layout: str, value: Any, zone: str) -> str:
    return format_moment(_moment_of(value).within(_zone(zone)), layout)


def date(layout: str, value: Any) -> str:
    return date_in_zone(layout, value, "Local")


def _parsed_duration(text: str) -> int:
    try:
        return durations.parse(text)
    except durations.DurationError:
        raise FunctionError(f"time: invalid duration {quote(text)}") from None


def date_modify(change: str, moment: Moment) -> Moment:
    try:
        return moment.moved(_parsed_duration(change))
    except FunctionError:
        return moment


def must_date_modify(change: str, moment: Moment) -> Moment:
    return moment.moved(_parsed_duration(change))


def _since(moment: Moment) -> int:
    return time.time_ns() - moment.seconds * durations.SECOND - moment.nanoseconds


def ago(value: Any) -> str:
    nanoseconds = _since(_moment_of(value))
    return durations.format(round(nanoseconds / durations.SECOND) * durations.SECOND)


def duration(value: Any) -> str:
    seconds = 0
    if isinstance(value, Int64):
        seconds = int(value)
    elif isinstance(value, str) and re.fullmatch(r"[+-]?[0-9]{1,25}", value):
        seconds = max(min(int(value), (1 << 63) - 1), -(1 << 63))
    return durations.format(wrap_int64(seconds * durations.SECOND))


def duration_round(value: Any) -> str:
    nanoseconds = 0
    if isinstance(value, str):
        try:
            nanoseconds = durations.parse(value)
        except durations.DurationError:
            nanoseconds = 0
    elif isinstance(value, Int64):
        nanoseconds = int(value)
    elif isinstance(value, Moment):
        nanoseconds = _since(value)
    size = abs(nanoseconds)
    day = 24 * durations.HOUR
    units = ((365 * day, "y"), (30 * day, "mo"), (day, "d"), (durations.HOUR, "h"), (durations.MINUTE, "m"))
    for unit, name in (*units, (durations.SECOND, "s")):
        if size > unit:
            return f"{size // unit}{name}"
    return "0s"


# Parsing

_NUMBERS = {
    "2006": r"(\d{4})",
    "06": r"(\d\d)",
    "01": r"(\d\d)",
    "1": r"(\d{1,2})",
    "02": r"(\d\d)",
    "_2": r"( ?\d{1,2})",
    "2": r"(\d{1,2})",
    "002": r"(\d{3})",
    "__2": r"([ \d]{3})",
    "15": r"(\d\d)",
    "03": r"(\d\d)",
    "3": r"(\d{1,2})",
    "04": r"(\d\d)",
    "4": r"(\d{1,2})",
    "05": r"(\d\d)((?:[.,]\d+)?)",
    "5": r"(\d{1,2})((?:[.,]\d+)?)",
    "PM": r"(AM|PM)",
    "pm": r"(am|pm)",
    "MST": r"(UTC|[A-Z]{3,5}|[+-]\d\d)",
    "January": "(" + "|".join(_MONTHS[1:]) + ")",
    "Jan": "(" + "|".join(name[:3] for name in _MONTHS[1:]) + ")",
    "Monday": "(" + "|".join(_DAYS) + ")",
    "Mon": "(" + "|".join(name[:3] for name in _DAYS) + ")",
}
_OFFSETS = {
    "07": r"[+-]\d\d",
    "0700": r"[+-]\d{4}",
    "07:00": r"[+-]\d\d:\d\d",
    "070000": r"[+-]\d{6}",
    "07:00:00": r"[+-]\d\d:\d\d:\d\d",
}


def _pattern(layout: str) -> tuple[re.Pattern[str], list[str]]:
    out: list[str] = []
    names: list[str] = []
    at = 0
    for found in _PARTS.finditer(layout):
        part = found[0]
        out.append(re.escape(layout[at : found.start()]))
        at = found.end()
        if part[0] in ".,":
            if part[1] == "0":
                out.append(rf"([.,]\d{{{len(part) - 1}}})")
                names.append("fraction")
            continue
        if part in _NUMBERS:
            out.append(_NUMBERS[part])
            names.append(part)
            if part in ("05", "5"):
                names.append("fraction")
        else:
            shape = _OFFSETS[part[1:]]
            out.append(f"(Z|{shape})" if part[0] == "Z" else f"({shape})")
            names.append("offset")
    out.append(re.escape(layout[at:]))
    return re.compile("".join(out), re.ASCII | re.IGNORECASE), names


def must_to_date(layout: str, text: str) -> Moment:
    pattern, names = _pattern(layout)
    found = pattern.fullmatch(text)
    if not found:
        raise FunctionError(
            f"parsing time {quote(text)} as {quote(layout)}: cannot parse {quote(text)} as {quote(layout)}"
        )
    values = dict(zip(names, found.groups(), strict=True))
    try:
        return _assembled(values)
    except (ValueError, OverflowError):
        raise FunctionError(f"parsing time {quote(text)}: day out of range") from None


def _month(values: dict[str, str]) -> int:
    for key in ("January", "Jan"):
        if key in values:
            return [name[:3].lower() for name in _MONTHS].index(values[key][:3].lower())
    return int(values.get("01") or values.get("1") or 1)


def _year(values: dict[str, str]) -> int:
    if "2006" in values:
        return int(values["2006"])
    if "06" in values:
        short = int(values["06"])
        return short + (1900 if short >= 69 else 2000)
    return 0


def _hour(values: dict[str, str]) -> int:
    hour = int(values.get("15") or values.get("03") or values.get("3") or 0)
    half = (values.get("PM") or values.get("pm") or "").lower()
    if half == "pm" and hour < 12:
        return hour + 12
    return 0 if half == "am" and hour == 12 else hour


def _assembled(values: dict[str, str]) -> Moment:
    year = _year(values)
    if year == 0:
        # Go's year 0 has no place in Python's calendar.
        raise ValueError
    fraction = (values.get("fraction") or "")[1:10].ljust(9, "0")
    day = int((values.get("02") or values.get("_2") or values.get("2") or "1").strip())
    clock = datetime.datetime(
        year,
        _month(values),
        day,
        _hour(values),
        int(values.get("04") or values.get("4") or 0),
        int(values.get("05") or values.get("5") or 0),
    )
    nanoseconds = int(fraction)
    wall = calendar.timegm(clock.timetuple())
    shift = values.get("offset")
    if shift is None:
        name = values.get("MST")
        if name == "UTC":
            return Moment(wall, nanoseconds, datetime.UTC)
        offset = LOCAL.utcoffset(clock)
        return Moment(wall - int(offset.total_seconds()), nanoseconds, LOCAL)
    if shift.upper() == "Z":
        return Moment(wall, nanoseconds, datetime.UTC)
    return _shifted(wall, nanoseconds, shift, values.get("MST") or "")


def _shifted(wall: int, nanoseconds: int, shift: str, name: str) -> Moment:
    digits = shift[1:].replace(":", "").ljust(6, "0")
    size = int(digits[:2]) * 3600 + int(digits[2:4]) * 60 + int(digits[4:])
    offset = -size if shift[0] == "-" else size
    local = datetime.datetime.fromtimestamp(wall - offset, tz=LOCAL).utcoffset()
    if local is not None and int(local.total_seconds()) == offset:
        return Moment(wall - offset, nanoseconds, LOCAL)
    zone = datetime.timezone(datetime.timedelta(seconds=offset))
    return Moment(wall - offset, nanoseconds, zone, name=name or _offset("-0700", offset))


def to_date(layout: str, text: str) -> Moment:
    try:
        return must_to_date(layout, text)
    except FunctionError:
        return Moment(_YEAR_ONE, 0, datetime.UTC)


# Methods


def _named(type_name: str, names: list[str], number: int) -> Struct:
    return Struct(type_name, {}, text=lambda: names[number])


def _duration_value(nanoseconds: int) -> Struct:
    return Struct("time.Duration", {}, text=lambda: durations.format(nanoseconds))


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
    "Month": ("", lambda m: _named("time.Month", _MONTHS, m.clock.month)),
    "Weekday": ("", lambda m: _named("time.Weekday", _DAYS, m.clock.isoweekday() % 7)),
    "Day": ("", lambda m: m.clock.day),
    "YearDay": ("", lambda m: m.clock.timetuple().tm_yday),
    "Hour": ("", lambda m: m.clock.hour),
    "Minute": ("", lambda m: m.clock.minute),
    "Second": ("", lambda m: m.clock.second),
    "Nanosecond": ("", lambda m: m.nanoseconds),
    "UTC": ("", lambda m: m.within(datetime.UTC)),
    "Local": ("", lambda m: m.within(LOCAL)),
    "IsZero": ("", lambda m: m.seconds == _YEAR_ONE and m.nanoseconds == 0),
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

DATES: Functions = table(
    ("ago", "any", ago),
    ("date", "string, any", date),
    ("date_in_zone", "string, any, string", date_in_zone),
    ("dateInZone", "string, any, string", date_in_zone),
    ("date_modify", "string, time", date_modify),
    ("dateModify", "string, time", date_modify),
    ("must_date_modify", "string, time", must_date_modify),
    ("mustDateModify", "string, time", must_date_modify),
    ("duration", "any", duration),
    ("durationRound", "any", duration_round),
    ("htmlDate", "any", lambda value: date_in_zone("2006-01-02", value, "Local")),
    ("htmlDateInZone", "any, string", lambda value, zone: date_in_zone("2006-01-02", value, zone)),
    ("mustToDate", "string, string", must_to_date),
    ("toDate", "string, string", to_date),
    ("now", "", now),
    ("unixEpoch", "time", lambda moment: str(moment.seconds)),
)
