"""Sprig's arithmetic. Integers are int64 and overflow as in Go; the float functions go through decimals."""

from __future__ import annotations

import decimal
import math
import secrets
from collections.abc import Callable
from typing import Any

from hortus.render.gotemplate.calls import Functions, table
from hortus.render.gotemplate.errors import FunctionError
from hortus.render.gotemplate.formatting import text_of
from hortus.render.gotemplate.functions.conversions import to_float, to_integer
from hortus.render.gotemplate.values import Int64, Ints, wrap_int64

_LONGEST = 1_000_000
"""Entries of a list that `until` and `seq` may make."""
_EXACT = decimal.Context(prec=800, Emin=-decimal.MAX_EMAX, Emax=decimal.MAX_EMAX)
_SIXTEEN_PLACES = decimal.Decimal("1e-16")


def _int64(value: int) -> Int64:
    return Int64(wrap_int64(value))


def add(*values: Any) -> Int64:
    return _int64(sum(map(to_integer, values)))


def subtract(first: Any, second: Any) -> Int64:
    return _int64(to_integer(first) - to_integer(second))


def _divided(first: Any, second: Any) -> tuple[int, int]:
    a, b = to_integer(first), to_integer(second)
    if b == 0:
        raise FunctionError("runtime error: integer divide by zero")
    quotient = abs(a) // abs(b)
    if (a < 0) != (b < 0):
        quotient = -quotient
    return quotient, a - quotient * b


def divide(first: Any, second: Any) -> Int64:
    return _int64(_divided(first, second)[0])


def modulo(first: Any, second: Any) -> Int64:
    return _int64(_divided(first, second)[1])


def multiply(first: Any, *others: Any) -> Int64:
    found = to_integer(first)
    for other in others:
        found = wrap_int64(found * to_integer(other))
    return Int64(found)


def largest(first: Any, *others: Any) -> Int64:
    return Int64(max(map(to_integer, (first, *others))))


def smallest(first: Any, *others: Any) -> Int64:
    return Int64(min(map(to_integer, (first, *others))))


def _extreme(choose: Callable[[list[float]], float], first: Any, others: tuple[Any, ...]) -> float:
    values = [to_float(value) for value in (first, *others)]
    return math.nan if any(map(math.isnan, values)) else choose(values)


def largest_float(first: Any, *others: Any) -> float:
    return _extreme(max, first, others)


def smallest_float(first: Any, *others: Any) -> float:
    return _extreme(min, first, others)


def _decimal(value: Any) -> decimal.Decimal:
    number = to_float(value)
    if not math.isfinite(number):
        raise FunctionError(f"Cannot create a Decimal from {text_of(number)}")
    return decimal.Decimal(repr(number))


def _folded(first: Any, others: tuple[Any, ...], operate: Callable[[Any, Any], decimal.Decimal]) -> float:
    found = _decimal(first)
    for other in others:
        found = operate(found, _decimal(other))
    # sprig's decimals know no negative zero.
    return float(found) + 0.0


def _quotient(first: decimal.Decimal, second: decimal.Decimal) -> decimal.Decimal:
    if not second:
        raise FunctionError("decimal division by 0")
    return _EXACT.divide(first, second).quantize(_SIXTEEN_PLACES, decimal.ROUND_HALF_UP, _EXACT)


def until(count: int) -> Ints:
    return until_step(0, count, -1 if count < 0 else 1)


def until_step(start: int, stop: int, step: int) -> Ints:
    if stop < start and step >= 0:
        return Ints()
    if stop >= start and step <= 0:
        return Ints()
    numbers = range(start, stop, step)
    if len(numbers) > _LONGEST:
        raise FunctionError(f"a list of more than {_LONGEST} numbers is not made")
    return Ints(numbers)


def sequence(*bounds: int) -> str:
    """seq: 1..end, start..end or start..end by step, with blanks in between."""
    if not 1 <= len(bounds) <= 3:
        return ""
    start, end = (1, bounds[0]) if len(bounds) == 1 else (bounds[0], bounds[-1])
    direction = -1 if end < start else 1
    step = bounds[1] if len(bounds) == 3 else direction
    if direction < 0 and step > 0:
        return ""
    return " ".join(map(str, until_step(start, end + direction, step)))


def _rounded(value: float, function: Callable[[float], int]) -> float:
    if not math.isfinite(value) or abs(value) >= 2.0**53:
        return value
    return math.copysign(float(function(value)), value)


def floor(value: Any) -> float:
    return _rounded(to_float(value), math.floor)


def ceil(value: Any) -> float:
    return _rounded(to_float(value), math.ceil)


def round_to(value: Any, places: int, *on: float) -> float:
    """round: up from `on` (0.5), which for negative numbers is never reached."""
    try:
        power = math.pow(10, places)
    except OverflowError:
        power = math.inf
    digit = power * to_float(value)
    fraction = math.modf(digit)[0]
    up = fraction >= (on[0] if on else 0.5)
    whole = _rounded(digit, math.ceil if up else math.floor)
    try:
        return whole / power
    except ZeroDivisionError:
        return math.nan if whole == 0 or math.isnan(whole) else math.copysign(math.inf, whole)


def to_decimal(value: Any) -> Int64:
    """Octal digits as a number; 0 for anything else."""
    text = text_of(value)
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits or any(char not in "01234567" for char in digits):
        return Int64(0)
    number = int(digits, 8) * (-1 if text[0] == "-" else 1)
    return Int64(number) if number == wrap_int64(number) else Int64(0)


def random_integer(low: int, high: int) -> int:
    if high <= low:
        raise FunctionError("invalid argument to Intn")
    return low + secrets.randbelow(high - low)


def atoi(text: str) -> int:
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()):
        return 0
    number = int(text) if len(text) < 4000 else 1 << 64
    return max(min(number, (1 << 63) - 1), -(1 << 63))


MATHS: Functions = table(
    ("atoi", "string", atoi),
    ("int64", "any", lambda value: Int64(to_integer(value))),
    ("int", "any", to_integer),
    ("float64", "any", to_float),
    ("seq", "...int", sequence),
    ("toDecimal", "any", to_decimal),
    ("until", "int", until),
    ("untilStep", "int, int, int", until_step),
    ("add1", "any", lambda value: _int64(to_integer(value) + 1)),
    ("add", "...any", add),
    ("sub", "any, any", subtract),
    ("div", "any, any", divide),
    ("mod", "any, any", modulo),
    ("mul", "any, ...any", multiply),
    ("randInt", "int, int", random_integer),
    ("add1f", "any", lambda value: _folded(value, (1,), _EXACT.add)),
    ("addf", "...any", lambda *values: _folded(0.0, values, _EXACT.add)),
    ("subf", "any, ...any", lambda first, *others: _folded(first, others, _EXACT.subtract)),
    ("divf", "any, ...any", lambda first, *others: _folded(first, others, _quotient)),
    ("mulf", "any, ...any", lambda first, *others: _folded(first, others, _EXACT.multiply)),
    ("biggest", "any, ...any", largest),
    ("max", "any, ...any", largest),
    ("min", "any, ...any", smallest),
    ("maxf", "any, ...any", largest_float),
    ("minf", "any, ...any", smallest_float),
    ("ceil", "any", ceil),
    ("floor", "any", floor),
    ("round", "any, int, ...float64", round_to),
)
