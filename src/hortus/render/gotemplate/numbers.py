"""Go's number literals, and floats written as strconv writes them."""

from __future__ import annotations

import math
import re
import struct

_INTEGER = re.compile(r"[+-]?(?:0[xX](?:_?[0-9a-fA-F])+|0[bB](?:_?[01])+|0[oO]?(?:_?[0-7])+|[1-9](?:_?[0-9])*|0)")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_HEX_FLOAT = re.compile(r"[+-]?0[xX][0-9a-fA-F]*\.?[0-9a-fA-F]*[pP][+-]?[0-9]+")
_BETWEEN_DIGITS = re.compile(r"(?<=[0-9a-fA-FxX])_(?=[0-9a-fA-F])")
INT64_MIN, INT64_MAX, UINT64_MAX = -(1 << 63), (1 << 63) - 1, (1 << 64) - 1


def parse_integer(text: str) -> int | None:
    """strconv.ParseInt with base 0, without the bounds; None for what is no integer literal."""
    if not _INTEGER.fullmatch(text):
        return None
    sign = -1 if text[0] == "-" else 1
    digits = text.lstrip("+-").replace("_", "").lower()
    for prefix, base in (("0x", 16), ("0b", 2), ("0o", 8)):
        if digits.startswith(prefix):
            return sign * int(digits[2:], base)
    return sign * int(digits, 8 if digits[0] == "0" and len(digits) > 1 else 10)


def parse_float(text: str) -> float | None:
    """strconv.ParseFloat of finite numbers; None for what is no number or too large."""
    if _DECIMAL.fullmatch(text):
        value = float(text)
    elif _HEX_FLOAT.fullmatch(text):
        try:
            value = float.fromhex(text)
        except (ValueError, OverflowError):
            return None
    else:
        plain = _BETWEEN_DIGITS.sub("", text)
        return parse_float(plain) if plain != text and "_" not in plain else None
    return value if math.isfinite(value) else None


def shortest(value: float, *, single: bool = False) -> tuple[str, str, int]:
    """Sign, digits and decimal exponent of the shortest text that reads back as `value`: 0.d1d2d3 x 10^exponent."""
    text = _shortest_single(value) if single else repr(value)
    sign = "-" if text[0] == "-" else ""
    mantissa, _, power = text.lstrip("-").partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(power or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    if not digits:
        return sign, "0", 1
    return sign, digits, point


def _shortest_single(value: float) -> str:
    single = struct.unpack("f", struct.pack("f", value))[0]
    for precision in range(1, 10):
        text = f"{single:.{precision}g}"
        if struct.unpack("f", struct.pack("f", float(text)))[0] == single:
            return text
    return repr(single)


def special(value: float, plus: str = "+") -> str | None:
    """NaN and infinities as Go writes them."""
    if value != value:
        return "NaN"
    if math.isinf(value):
        return f"{plus}Inf" if value > 0 else "-Inf"
    return None


def exponential(sign: str, digits: str, point: int) -> str:
    """d.ddde±dd"""
    power = point - 1 if digits != "0" else 0
    fraction = "." + digits[1:] if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{fraction}e{'-' if power < 0 else '+'}{abs(power):02d}"


def positional(sign: str, digits: str, point: int) -> str:
    """ddd.ddd without an exponent."""
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}" if digits != "0" else f"{sign}0"
    if len(digits) <= point:
        return sign + digits + "0" * (point - len(digits))
    return f"{sign}{digits[:point]}.{digits[point:]}"


def general(value: float, *, high: int = 6, single: bool = False) -> str:
    """strconv.FormatFloat(value, 'g', -1, 64): an exponent below 1e-4 and from 10^high on (JSON: 21)."""
    found = special(value)
    if found:
        return found
    sign, digits, point = shortest(value, single=single)
    power = point - 1
    if digits != "0" and (power < -4 or power >= high):
        return exponential(sign, digits, point)
    return positional(sign, digits, point)
