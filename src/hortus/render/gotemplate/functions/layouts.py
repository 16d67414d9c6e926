"""Read a moment by one of Go's layouts."""

from __future__ import annotations

import calendar
import datetime
import re

from hortus.render.gotemplate.errors import FunctionError
from hortus.render.gotemplate.functions.moments import DAYS, LOCAL, MONTHS, PARTS, YEAR_ONE, Moment, shown_offset
from hortus.schema.quoting import quote

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
    "January": "(" + "|".join(MONTHS[1:]) + ")",
    "Jan": "(" + "|".join(name[:3] for name in MONTHS[1:]) + ")",
    "Monday": "(" + "|".join(DAYS) + ")",
    "Mon": "(" + "|".join(name[:3] for name in DAYS) + ")",
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
    for found in PARTS.finditer(layout):
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
            return [name[:3].lower() for name in MONTHS].index(values[key][:3].lower())
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
    return Moment(wall - offset, nanoseconds, zone, name=name or shown_offset("-0700", offset))


def to_date(layout: str, text: str) -> Moment:
    try:
        return must_to_date(layout, text)
    except FunctionError:
        return Moment(YEAR_ONE, 0, datetime.UTC)
