"""Sprig's functions on dates."""

from __future__ import annotations

import re
import time
from typing import Any

from hortus.kube import durations
from hortus.render.gotemplate.calls import Functions, table
from hortus.render.gotemplate.errors import FunctionError
from hortus.render.gotemplate.functions.layouts import must_to_date, to_date
from hortus.render.gotemplate.functions.moments import LOCAL, Moment, format_moment, now, zone_named
from hortus.render.gotemplate.values import Int64, wrap_int64
from hortus.schema.quoting import quote


def _moment_of(value: Any) -> Moment:
    if isinstance(value, Moment):
        return value
    if type(value) in (int, Int64):
        return Moment(int(value), 0, LOCAL)
    return now()


def date_inzone_named(layout: str, value: Any, zone: str) -> str:
    return format_moment(_moment_of(value).within(zone_named(zone)), layout)


def date(layout: str, value: Any) -> str:
    return date_inzone_named(layout, value, "Local")


def date_in_zone(layout: str, value: Any, zone: str) -> str:
    return format_moment(_moment_of(value).within(zone_named(zone)), layout)


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
