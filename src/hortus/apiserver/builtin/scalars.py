"""Canonical text of the scalars with a form of their own: quantities, times and durations.

A kube-apiserver stores `1000m` as `1` and `2024-01-01T01:00:00+01:00` as `2024-01-01T00:00:00Z`; whoever compares
what it applied with what it reads back counts on that. Arithmetic is on whole numbers, never on floats.
Sources: docs "Quantity" (common definitions), Go's time.Duration.String and RFC 3339.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

_QUANTITY = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eE][+-]?[0-9]+|[numkMGTPE]|[KMGTPE]i|)")
_PATTERN = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX = {bits: suffix for suffix, bits in _BINARY.items()}
_NANO = 10**9
_LARGEST = (2**63 - 1) * _NANO
# More digits than any quantity needs; keeps a hostile number from costing time.
_MOST_CHARACTERS = 100

_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_DURATION_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)")
_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[T]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:\d\d)")


def canonical_quantity(text: str, error: type[ValueError] = ValueError) -> str:
    """The text kube-apiserver shows for a quantity, such as `1500m` for `1.5`; raises `error` for what is none."""
    stripped = text.strip()
    if stripped.isascii() and stripped.isdigit() and len(stripped) < 4 and stripped[0] != "0":
        return stripped
    match = _QUANTITY.fullmatch(stripped) if len(stripped) <= _MOST_CHARACTERS else None
    if match is None or not (match[2] or match[3]):
        raise error(f"quantities must match the regular expression '{_PATTERN}'")
    sign, whole, fraction, suffix = match.groups()
    nanos = _nanos(whole or "", fraction or "", suffix)
    form = "binary" if suffix in _BINARY else "exponent" if suffix[:1] in ("e", "E") and len(suffix) > 1 else "decimal"
    if form == "binary" and nanos < 1024 * _NANO:
        form = "decimal"
    shown = _binary_text(nanos) if form == "binary" else _decimal_text(nanos, exponent=form == "exponent")
    return "-" + shown if sign == "-" and nanos else shown


def _nanos(whole: str, fraction: str, suffix: str) -> int:
    """The amount in billionths, rounded up, capped as kube-apiserver caps it."""
    digits = int(whole + fraction or "0")
    if suffix in _BINARY:
        numerator, denominator = (digits << _BINARY[suffix]) * _NANO, _ten_to(len(fraction))
    else:
        power = _DECIMAL[suffix] if suffix in _DECIMAL else max(-200, min(200, int(suffix[1:])))
        power += 9 - len(fraction)
        numerator, denominator = digits * _ten_to(max(power, 0)), _ten_to(max(-power, 0))
    return min(-(-numerator // denominator), _LARGEST)


def _ten_to(power: int) -> int:
    return int(10**power)


def _decimal_text(nanos: int, *, exponent: bool) -> str:
    if nanos == 0:
        return "0"
    power = -9
    while nanos % 1000 == 0 and (power < 18 or exponent):
        nanos //= 1000
        power += 3
    if exponent:
        return f"{nanos}e{power}" if power else str(nanos)
    return f"{nanos}{_DECIMAL_SUFFIX[power]}"


def _binary_text(nanos: int) -> str:
    amount = -(-nanos // _NANO)
    bits = 0
    while amount % 1024 == 0 and bits < 60:
        amount //= 1024
        bits += 10
    return f"{amount}{_BINARY_SUFFIX[bits]}" if bits else str(amount)


def _moment(text: str, error: type[ValueError]) -> datetime:
    try:
        if _RFC3339.fullmatch(text) is None:
            raise ValueError(text)
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        layout = "2006-01-02T15:04:05Z07:00"
        raise error(f'parsing time "{text}" as "{layout}": cannot parse "{text}" as "2006"') from None


def canonical_time(text: str, error: type[ValueError] = ValueError) -> str:
    """RFC 3339 in UTC with whole seconds."""
    if len(text) == 20 and text[19] == "Z" and _RFC3339.fullmatch(text):
        _moment(text, error)
        return text
    return _moment(text, error).strftime("%Y-%m-%dT%H:%M:%SZ")


def canonical_micro_time(text: str, error: type[ValueError] = ValueError) -> str:
    """RFC 3339 in UTC with six decimals."""
    return _moment(text, error).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def duration_nanos(text: str, error: type[ValueError] = ValueError) -> int:
    """Nanoseconds of a Go duration such as `1h30m`."""
    sign, body = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    if body == "0":
        return 0
    total, place = 0, 0
    while place < len(body):
        part = _DURATION_PART.match(body, place)
        if part is None or not (part[1] or part[2]):
            break
        fraction = part[2] or ""
        total += int((part[1] or "") + fraction) * _UNITS[part[3]] // 10 ** len(fraction)
        place = part.end()
    if not body or place < len(body) or total >= 1 << 63:
        raise error(f'time: invalid duration "{text}"')
    return sign * total


def canonical_duration(text: str, error: type[ValueError] = ValueError) -> str:
    """A Go duration as Go prints it: `90m` becomes `1h30m0s`."""
    return duration_text(duration_nanos(text, error))


def duration_text(nanos: int) -> str:
    """Go's time.Duration.String."""
    if nanos == 0:
        return "0s"
    sign, amount = ("-", -nanos) if nanos < 0 else ("", nanos)
    if amount < 10**9:
        unit = "ns" if amount < 10**3 else "µs" if amount < 10**6 else "ms"
        return sign + _with_fraction(amount, _UNITS[unit]) + unit
    minutes, rest = divmod(amount, 60 * 10**9)
    hours, minutes = divmod(minutes, 60)
    shown = _with_fraction(rest, 10**9) + "s"
    if hours or minutes:
        shown = f"{minutes}m{shown}"
    return sign + (f"{hours}h{shown}" if hours else shown)


def _with_fraction(amount: int, unit: int) -> str:
    whole, rest = divmod(amount, unit)
    if not rest:
        return str(whole)
    width = len(str(unit)) - 1
    return f"{whole}.{rest:0{width}d}".rstrip("0")
