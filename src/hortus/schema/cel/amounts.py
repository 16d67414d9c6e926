"""Quantities and semantic versions in expressions: exact, comparable, canonical."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from hortus.schema.cel.binding import CelFunction, Overload
from hortus.schema.cel.tagged import Tagged, body, parses

_SUFFIXES: Mapping[str, Fraction] = {
    **{suffix: Fraction(1000) ** power for power, suffix in enumerate(("", "k", "M", "G", "T", "P", "E"))},
    **{suffix: Fraction(1024) ** (power + 1) for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"))},
    **{suffix: Fraction(1, 1000) ** (power + 1) for power, suffix in enumerate(("m", "u", "n"))},
}
_QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:[eE]([+-]?\d{1,3})|([KMGTPE]i|[kMGTPEmun])?)", re.ASCII)


def _quantity(text: str) -> Tagged:
    found = _QUANTITY.fullmatch(text)
    if found is None:
        raise ValueError("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")
    number, exponent, suffix = found.groups()
    value = Fraction(number) * (Fraction(10) ** int(exponent) if exponent else _SUFFIXES[suffix or ""])
    return _of_fraction(value)


def _of_fraction(value: Fraction) -> Tagged:
    return {"@quantity": str(value)}


def _amount(value: Tagged) -> Fraction:
    return Fraction(body(value, "@quantity"))


def _as_integer(value: Tagged) -> int:
    amount = _amount(value)
    if amount.denominator != 1 or not -(2**63) <= amount < 2**63:
        raise ValueError("cannot convert value to integer")
    return int(amount)


def _sign(value: Tagged) -> int:
    amount = _amount(value)
    return (amount > 0) - (amount < 0)


def _is_integer(value: Tagged) -> bool:
    amount = _amount(value)
    return amount.denominator == 1 and -(2**63) <= amount < 2**63


_SEMVER = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z.-]+)?", re.ASCII
)


def _semver(text: str) -> Tagged:
    found = _SEMVER.fullmatch(text)
    if found is None:
        raise ValueError(f"Invalid semantic version {text!r}")
    return {"@semver": text}


def _normal_semver(text: str, normalize: bool) -> Tagged:
    if normalize:
        core, dash, rest = text.removeprefix("v").partition("-")
        numbers = [number.lstrip("0") or "0" for number in core.split(".")]
        text = ".".join(numbers + ["0"] * (3 - len(numbers))) + dash + rest
    return _semver(text)


def _version(value: Tagged) -> tuple[Any, ...]:
    """A key that orders as semver.org says: numbers, then pre-releases before the release."""
    major, minor, patch, pre = _SEMVER.fullmatch(body(value, "@semver")).groups()  # type: ignore[union-attr]
    parts = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in (pre or "").split("."))
    return int(major), int(minor), int(patch), (not pre and 1) or 0, parts


def _order(left: Tagged, right: Tagged) -> int:
    if "@semver" in left:
        return _sign_of(_version(left), _version(right))
    return _sign_of(_amount(left), _amount(right))


def _sign_of(before: Any, after: Any) -> int:
    return int(before > after) - int(before < after)


AMOUNTS = (
    CelFunction("quantity", (Overload(("string",), "map", _quantity, member=False),)),
    CelFunction("isQuantity", (Overload(("string",), "bool", parses(_quantity), member=False),)),
    CelFunction("sign", (Overload(("map",), "int", _sign),)),
    CelFunction("isInteger", (Overload(("map",), "bool", _is_integer),)),
    CelFunction("asInteger", (Overload(("map",), "int", _as_integer),)),
    CelFunction("asApproximateFloat", (Overload(("map",), "double", lambda value: float(_amount(value))),)),
    CelFunction(
        "add",
        (
            Overload(("map", "map"), "map", lambda a, b: _of_fraction(_amount(a) + _amount(b))),
            Overload(("map", "int"), "map", lambda a, b: _of_fraction(_amount(a) + b)),
        ),
    ),
    CelFunction(
        "sub",
        (
            Overload(("map", "map"), "map", lambda a, b: _of_fraction(_amount(a) - _amount(b))),
            Overload(("map", "int"), "map", lambda a, b: _of_fraction(_amount(a) - b)),
        ),
    ),
    CelFunction(
        "semver",
        (
            Overload(("string",), "map", _semver, member=False),
            Overload(("string", "bool"), "map", _normal_semver, member=False),
        ),
    ),
    CelFunction(
        "isSemver",
        (
            Overload(("string",), "bool", parses(_semver), member=False),
            Overload(
                ("string", "bool"), "bool", lambda text, n: parses(lambda t: _normal_semver(t, n))(text), member=False
            ),
        ),
    ),
    CelFunction("major", (Overload(("map",), "int", lambda value: _version(value)[0]),)),
    CelFunction("minor", (Overload(("map",), "int", lambda value: _version(value)[1]),)),
    CelFunction("patch", (Overload(("map",), "int", lambda value: _version(value)[2]),)),
    CelFunction("compareTo", (Overload(("map", "map"), "int", _order),)),
    CelFunction("isGreaterThan", (Overload(("map", "map"), "bool", lambda a, b: _order(a, b) > 0),)),
    CelFunction("isLessThan", (Overload(("map", "map"), "bool", lambda a, b: _order(a, b) < 0),)),
)
