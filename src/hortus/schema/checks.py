"""One closure per keyword of a schema: `(value, path) -> FieldError | None`.

Built once when a schema is compiled, so that validating reads no schema. The messages are those of kube-openapi's
validator, as clients of kube-apiserver know them (k8s.io/kube-openapi, pkg/validation/errors).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hortus.schema import formats, problems
from hortus.schema.patterns import PatternError, matcher
from hortus.schema.problems import FieldError, number_text
from hortus.schema.quoting import quote

Check = Callable[[Any, str], FieldError | None]

INT64_MAX = 2**63 - 1
_INT32_MIN, _INT32_MAX = -(2**31), 2**31 - 1
_SAFE_FLOAT = float(2**53 - 1)
"""Largest float that Kubernetes accepts as a JSON integer."""

_NAMES = {str: "string", bool: "boolean", int: "integer", float: "number", dict: "object", list: "array"}
_ACCEPTED: Mapping[str, frozenset[type]] = {
    "string": frozenset({str}),
    "boolean": frozenset({bool}),
    "integer": frozenset({int}),
    "number": frozenset({int, float}),
    "object": frozenset({dict}),
    "array": frozenset({list}),
}


def accepted_types(names: Sequence[str]) -> frozenset[type]:
    """The Python types that JSON values of these schema types decode to."""
    return frozenset().union(*(_ACCEPTED[name] for name in names))


def type_name(value: object) -> str:
    return "number" if type(value) is int and value > INT64_MAX else _NAMES[type(value)]


def is_whole(value: float) -> bool:
    """Reports whether a float counts as a JSON integer: whole within a relative 1e-9 and exactly representable."""
    if not abs(value) <= _SAFE_FLOAT:
        return False
    return value.is_integer() or (value != 0 and abs(value - round(value)) / abs(value + round(value)) < 1e-9)


def type_check(names: Sequence[str], format_name: str) -> Check:
    """The slow path of a type mismatch: applies Kubernetes' exceptions and words the error."""
    numeric = bool({"integer", "number"} & set(names))
    if not names and not format_name:
        return lambda value, path: None

    def check(value: Any, path: str) -> FieldError | None:
        actual = type_name(value)
        if actual in names or (actual == "integer" and "number" in names):
            return None
        if actual == "number" and "integer" in names and is_whole(value):
            return None
        if format_name and actual not in ("string", "array"):
            return _type_error(path, format_name, _DATA_FORMATS.get(actual, ""))
        if format_name and not numeric:
            return None  # with a format, kube-apiserver looks at strings and lists no further
        return _type_error(path, ",".join(names), actual)

    return check


_DATA_FORMATS = {"integer": "int64", "number": "float64"}


def _type_error(path: str, expected: str, actual: str) -> FieldError:
    return problems.type_invalid(path, actual, f"{path} in body must be of type {expected}: {quote(actual)}")


def null_error(names: Sequence[str], path: str) -> FieldError:
    return _type_error(path, ",".join(names), "null")


def string_checks(schema: Mapping[str, Any]) -> tuple[Check, ...]:
    """Checks of length and pattern; only the first failure is reported. Raises PatternError."""
    found: list[Check] = []
    if (longest := schema.get("maxLength")) is not None:
        found.append(lambda value, path: problems.too_long(path, longest) if len(value) > longest else None)
    if shortest := schema.get("minLength"):
        found.append(
            lambda value, path: (
                _invalid(path, value, f"should be at least {shortest} chars long") if len(value) < shortest else None
            )
        )
    if pattern := schema.get("pattern"):
        found.append(_pattern(pattern))
    return tuple(found)


def _pattern(pattern: str) -> Check:
    try:
        search = matcher(pattern)
    except PatternError as error:
        text = f"should match '{pattern}, but pattern is invalid: {error}'"
        return lambda value, path: _invalid(path, value, text)
    return lambda value, path: None if search(value) else _invalid(path, value, f"should match '{pattern}'")


def format_check(name: str) -> Check | None:
    holds = formats.check_for(name)
    if holds is None:
        return None

    def check(value: Any, path: str) -> FieldError | None:
        if holds(value):
            return None
        text = f"{path} in body must be of type {name}: {quote(value)}"
        return problems.type_invalid(path, value, text)

    return check


def number_checks(schema: Mapping[str, Any], *, native: bool) -> tuple[Check, ...]:
    """Checks of multipleOf, maximum and minimum, in the order of their messages; for native kinds the range of `int32`
    too."""
    found: list[Check] = []
    if (factor := schema.get("multipleOf")) is not None:
        found.append(_multiple_of(factor))
    if (top := schema.get("maximum")) is not None:
        found.append(_bound(top, "less than", exclusive=bool(schema.get("exclusiveMaximum")), upper=True))
    if (bottom := schema.get("minimum")) is not None:
        found.append(_bound(bottom, "greater than", exclusive=bool(schema.get("exclusiveMinimum")), upper=False))
    if native and schema.get("format") == "int32":
        found.append(_fits_int32)
    return tuple(found)


def _fits_int32(value: Any, path: str) -> FieldError | None:
    # Compared and not looked up: a range is searched from its beginning for a float.
    if _INT32_MIN <= value <= _INT32_MAX:
        return None
    return _invalid(path, value, "must fit into 32 bits")


def _bound(limit: float, words: str, *, exclusive: bool, upper: bool) -> Check:
    words = words if exclusive else f"{words} or equal to"

    def check(value: Any, path: str) -> FieldError | None:
        against = int(limit) if type(value) is int else limit
        over = value > against if upper else value < against
        if over or (exclusive and value == against):
            return _invalid(path, value, f"should be {words} {number_text(against)}")
        return None

    return check


def _multiple_of(factor: float) -> Check:
    def check(value: Any, path: str) -> FieldError | None:
        whole = type(value) is int
        step = int(factor) if whole else factor
        if step <= 0:
            text = f"factor MultipleOf declared for {path} must be positive: {number_text(step)}"
            return problems.invalid(path, step, text)
        if (value % step == 0) if whole else is_whole(value / factor if factor >= 1 else 1 / factor * value):
            return None
        return _invalid(path, value, f"should be a multiple of {number_text(step)}")

    return check


def size_checks(schema: Mapping[str, Any], least: str, most: str, noun: str) -> tuple[Check, ...]:
    """minItems/maxItems or minProperties/maxProperties."""
    found: list[Check] = []
    if minimum := schema.get(least):
        found.append(
            lambda value, path: (
                _invalid(path, len(value), f"should have at least {minimum} {noun}") if len(value) < minimum else None
            )
        )
    if (maximum := schema.get(most)) is not None:
        found.append(lambda value, path: problems.too_many(path, len(value), maximum) if len(value) > maximum else None)
    return tuple(found)


def unique_items(value: Any, path: str) -> FieldError | None:
    texts = {problems.json_text(item) for item in value}
    if len(texts) == len(value):
        return None
    return problems.invalid(path, "", f"{path} in body shouldn't contain duplicates")


def enum_check(allowed: Sequence[Any]) -> Check:
    members = frozenset(item for item in allowed if isinstance(item, str))
    others = [item for item in allowed if not isinstance(item, str)]

    def member(value: Any) -> bool:
        if type(value) is str:
            return value in members
        if value is None:
            return False  # never a member, though the list may name it
        return any(value == item and isinstance(value, bool) == isinstance(item, bool) for item in others)

    return lambda value, path: None if member(value) else problems.not_supported(path, value, allowed)


def _invalid(path: str, value: object, sentence: str) -> FieldError:
    return problems.invalid(path, value, f"{path} in body {sentence}")
