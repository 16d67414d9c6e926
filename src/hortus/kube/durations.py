"""Go durations: the texts of `time.Duration`, in whole nanoseconds.

API fields and flags of Go systems (`metav1.Duration`) have this form. The bounds are those of a signed 64-bit count of
nanoseconds, about 292 years; a text that Go refuses is refused here.
"""

from __future__ import annotations

import re

NANOSECOND = 1
MICROSECOND = 1_000
MILLISECOND = 1_000_000
SECOND = 1_000_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE

_UNITS = {
    "ns": NANOSECOND,
    "us": MICROSECOND,
    "µs": MICROSECOND,  # U+00B5, micro sign
    "μs": MICROSECOND,  # U+03BC, Greek letter mu
    "ms": MILLISECOND,
    "s": SECOND,
    "m": MINUTE,
    "h": HOUR,
}
_PART = re.compile(r"([0-9]*)(?:(\.)([0-9]*))?([^0-9.]*)")
_LARGEST = 2**63 - 1
_FITTING = 19
"""Digits that may fit into 63 bits."""


class DurationError(ValueError):
    """A text that is no Go duration, or one beyond 292 years."""


def parse(text: str) -> int:
    """Nanoseconds of a duration such as `1h15m30.5s`, `-1.5h` or `0`. Raises DurationError."""
    negative, rest = text.startswith("-"), text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return 0
    total, at = 0, 0
    while at < len(rest):
        found = _PART.match(rest, at)
        assert found is not None
        total += _part(found, text)
        at = found.end()
        if total > _LARGEST + negative:
            raise DurationError(f"invalid duration {_quoted(text)}: longer than 292 years")
    if not rest:
        raise DurationError(f"invalid duration {_quoted(text)}: a number and a unit are needed, as in 10s or 1h30m")
    return -total if negative else total


def _part(found: re.Match[str], text: str) -> int:
    whole, _, fraction, unit = found.groups()
    if not whole and not fraction:
        raise DurationError(f"invalid duration {_quoted(text)}: a number is missing")
    if not unit:
        raise DurationError(f"missing unit in duration {_quoted(text)}: one of ns, us, ms, s, m, h")
    size = _UNITS.get(unit)
    if size is None:
        raise DurationError(f"unknown unit {_quoted(unit)} in duration {_quoted(text)}: one of ns, us, ms, s, m, h")
    if len(whole.lstrip("0")) > _FITTING:
        raise DurationError(f"invalid duration {_quoted(text)}: longer than 292 years")
    part = int(whole or 0) * size
    return part + (_fraction(fraction, size) if fraction else 0)


def _fraction(digits: str, size: int) -> int:
    """Computed in floating point from the digits that fit into 63 bits, as in Go: `0.3333333333333333333h` is 20m."""
    kept = digits[: _FITTING if int(digits[:_FITTING]) <= _LARGEST else _FITTING - 1]
    return int(float(int(kept)) * (float(size) / 10.0 ** len(kept)))


def _quoted(text: str) -> str:
    return '"' + text[:100].replace('"', '\\"') + ('…"' if len(text) > 100 else '"')


def format(nanoseconds: int) -> str:
    """The text Go prints: `24h0m0s`, `1.5s`, `250ms`, `0s`. Raises DurationError beyond 64 bits."""
    size = abs(nanoseconds)
    if size > _LARGEST + (nanoseconds < 0):
        raise DurationError(f"{nanoseconds} ns is longer than 292 years")
    sign = "-" if nanoseconds < 0 else ""
    if size == 0:
        return "0s"
    for unit, scale in (("ns", NANOSECOND), ("µs", MICROSECOND), ("ms", MILLISECOND)):
        if size < scale * 1000:
            return sign + _decimal(size, scale) + unit
    hours, rest = divmod(size, HOUR)
    minutes, rest = divmod(rest, MINUTE)
    shown = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{sign}{shown}{_decimal(rest, SECOND)}s"


def _decimal(value: int, scale: int) -> str:
    whole, rest = divmod(value, scale)
    digits = len(str(scale)) - 1
    return f"{whole}.{rest:0{digits}d}".rstrip("0") if rest else str(whole)


def seconds(text: str) -> float:
    """Seconds of a duration's text. Raises DurationError."""
    return parse(text) / SECOND


def from_seconds(amount: float) -> str:
    """The text of so many seconds, to the nearest nanosecond."""
    return format(round(amount * SECOND))
