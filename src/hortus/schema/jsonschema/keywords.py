"""The keywords of JSON Schema that judge a value alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from hortus.schema import formats
from hortus.schema.jsonschema.violations import (
    Check,
    JsonSchemaError,
    ValidationState,
    Violation,
    anything,
    listed,
    quoted,
)

if TYPE_CHECKING:
    from hortus.schema.jsonschema.compiler import Compiler


def mapping(value: Any, place: str) -> dict[str, Any]:
    """The value as an object of schemas. Raises JsonSchemaError."""
    if not isinstance(value, dict):
        raise JsonSchemaError(f"schema at '{place}' must be an object of schemas")
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_integer(value: Any) -> bool:
    return _is_number(value) and (isinstance(value, int) or value.is_integer())


_TYPES: dict[str, Callable[[Any], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "number": _is_number,
    "integer": _is_integer,
}


_ORDER = ("null", "boolean", "number", "integer", "string", "array", "object")
"""Types in the order of messages."""


def _type_of(value: Any) -> str:
    return next(name for name, test in _TYPES.items() if test(value))


def _same(first: Any, second: Any) -> bool:
    """Equal as JSON: 1 is 1.0, true is not 1."""
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(_same(part, second[key]) for key, part in first.items())
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(_same, first, second))
    return bool(first == second)


def _type(_compiler: Compiler, _schema: Any, wanted: Any, place: str) -> Check:
    names = wanted if isinstance(wanted, list) else [wanted]
    if any(name not in _TYPES for name in names):
        raise JsonSchemaError(f"schema at '{place}': unknown type {wanted!r}")
    tests = [_TYPES[name] for name in names]
    shown = " or ".join(name for name in _ORDER if name in names)

    def check(value: Any, path: str, _state: ValidationState) -> list[Violation]:
        if any(test(value) for test in tests):
            return []
        return [Violation(path, f"got {_type_of(value)}, want {shown}")]

    return check


def _enum(_compiler: Compiler, _schema: Any, allowed: Any, place: str) -> Check:
    if not isinstance(allowed, list):
        raise JsonSchemaError(f"schema at '{place}' must be a list")
    if any(isinstance(part, dict | list) for part in allowed):
        message = "'enum' failed"
    else:
        message = f"value must be {'one of ' * (len(allowed) != 1)}{', '.join(map(_shown, allowed))}"
    return lambda value, path, _state: [] if any(_same(value, part) for part in allowed) else [Violation(path, message)]


def _const(_compiler: Compiler, _schema: Any, wanted: Any, _place: str) -> Check:
    message = "'const' failed" if isinstance(wanted, dict | list) else f"value must be {_shown(wanted)}"
    return lambda value, path, _state: [] if _same(value, wanted) else [Violation(path, message)]


def _shown(value: Any) -> str:
    """A scalar as messages show it."""
    if isinstance(value, str):
        return quoted(value)
    return "<nil>" if value is None else str(value).lower()


def _number(value: float) -> str:
    """A number as messages show it: digits in threes, powers of ten from a million on."""
    power = Decimal(repr(value)).adjusted() if value else 0
    if -5 < power < 6:
        return f"{int(value):,}" if float(value).is_integer() else f"{Decimal(repr(value)):,f}"
    digits = Decimal(repr(value)).scaleb(-power).normalize()
    return f"{digits:f}×10" + (f"{power:03d}" if power < 0 else f"{power:02d}").translate(_RAISED)


_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def _simple(
    name: str, test: Callable[[Any], bool], broken: Callable[[Any, Any], bool]
) -> Callable[[Compiler, Any, Any, str], Check]:
    """A keyword with a number: the values it applies to, and the condition under which it is violated."""

    def make(_compiler: Compiler, _schema: Any, bound: Any, place: str) -> Check:
        if not _is_number(bound):
            raise JsonSchemaError(f"schema at '{place}' must be a number")
        wanted = _number(bound) if test is _is_number else f"{bound:,}"

        def check(value: Any, path: str, _state: ValidationState) -> list[Violation]:
            if not test(value) or not broken(value, bound):
                return []
            got = _number(value) if test is _is_number else f"{len(value):,}"
            return [Violation(path, f"{name}: got {got}, want {wanted}")]

        return check

    return make


def _bound(keyword: str) -> Callable[[Compiler, Any, Any, str], Check]:
    """minimum and maximum; in draft 4 a boolean next to them makes them exclusive."""
    is_low = keyword == "minimum"
    exclusive = "exclusiveMinimum" if is_low else "exclusiveMaximum"

    def make(compiler: Compiler, schema: Any, bound: Any, place: str) -> Check:
        if schema.get(exclusive) is True:
            return KEYWORDS[exclusive](compiler, {}, bound, place)
        if is_low:
            return _simple(keyword, _is_number, lambda value, low: value < low)(compiler, {}, bound, place)
        return _simple(keyword, _is_number, lambda value, high: value > high)(compiler, {}, bound, place)

    return make


def _exclusive(name: str, broken: Callable[[Any, Any], bool]) -> Callable[[Compiler, Any, Any, str], Check]:
    simple = _simple(name, _is_number, broken)

    def make(compiler: Compiler, schema: Any, bound: Any, place: str) -> Check:
        return anything if isinstance(bound, bool) else simple(compiler, schema, bound, place)

    return make


def _is_multiple(value: Any, step: Any) -> bool:
    if isinstance(value, float) and not math.isfinite(value):
        return False
    return (Fraction(str(value)) / Fraction(str(step))).denominator == 1


def _multiple(compiler: Compiler, schema: Any, step: Any, place: str) -> Check:
    if not _is_number(step) or step <= 0:
        raise JsonSchemaError(f"schema at '{place}' must be a number above 0")
    broken = _simple("multipleOf", _is_number, lambda value, bound: not _is_multiple(value, bound))
    return broken(compiler, schema, step, place)


def _pattern(compiler: Compiler, _schema: Any, text: Any, place: str) -> Check:
    matches = compiler.pattern(text, place)
    return lambda value, path, _state: (
        [Violation(path, f"{quoted(value)} does not match pattern {quoted(text)}")]
        if isinstance(value, str) and not matches(value)
        else []
    )


def _format(compiler: Compiler, _schema: Any, name: Any, _place: str) -> Check:
    # From draft 2019-09 on a format is an annotation unless a vocabulary makes it a check.
    test = formats.check_for(name) if compiler.is_old and isinstance(name, str) else None
    if test is None:
        return anything
    known = test
    return lambda value, path, _state: (
        [Violation(path, f"{quoted(value)} is not valid {name}")] if isinstance(value, str) and not known(value) else []
    )


def _unique(_compiler: Compiler, _schema: Any, wanted: Any, _place: str) -> Check:
    def check(value: Any, path: str, state: ValidationState) -> list[Violation]:
        if not wanted or not isinstance(value, list):
            return []
        state.steps += len(value) * len(value) // 8
        for number, part in enumerate(value):
            known = next((place for place, other in enumerate(value[:number]) if _same(part, other)), None)
            if known is not None:
                return [Violation(path, f"items at {known} and {number} are equal")]
        return []

    return check


def _required(_compiler: Compiler, _schema: Any, names: Any, place: str) -> Check:
    if isinstance(names, bool):
        # Draft 3 has it next to the property; newer drafts do not know this form.
        return anything
    if not isinstance(names, list):
        raise JsonSchemaError(f"schema at '{place}' must be a list of names")

    def check(value: Any, path: str, _state: ValidationState) -> list[Violation]:
        missing = [name for name in names if name not in value] if isinstance(value, dict) else []
        if not missing:
            return []
        return [Violation(path, "missing propert" + ("y " if len(missing) == 1 else "ies ") + listed(missing))]

    return check


def _names(compiler: Compiler, _schema: Any, schema: Any, place: str) -> Check:
    inner = compiler.schema(schema, place)

    def check(value: Any, path: str, state: ValidationState) -> list[Violation]:
        if not isinstance(value, dict):
            return []
        found = []
        for key in value:
            problems = inner(key, "", state)
            if problems:
                causes = problems[0].causes if problems[0].is_group else tuple(problems)
                found.append(Violation(path, f"invalid propertyName {quoted(key)}", causes))
        return found

    return check


def _dependent(compiler: Compiler, _schema: Any, dependencies: Any, place: str) -> Check:
    """dependencies, dependentRequired and dependentSchemas: the requirements of a property."""
    wanted = {
        key: _asked(key, part, place) if isinstance(part, list) else compiler.schema(part, f"{place}/{key}")
        for key, part in mapping(dependencies, place).items()
    }

    def check(value: Any, path: str, state: ValidationState) -> list[Violation]:
        if not isinstance(value, dict):
            return []
        return [found for key, inner in wanted.items() if key in value for found in inner(value, path, state)]

    return check


def _asked(key: str, names: list[Any], place: str) -> Check:
    if not all(isinstance(name, str) for name in names):
        raise JsonSchemaError(f"schema at '{place}' must be a list of names")

    def check(value: Any, path: str, _state: ValidationState) -> list[Violation]:
        missing = [name for name in names if name not in value]
        return [Violation(path, f"properties {listed(missing)} required, if {quoted(key)} exists")] if missing else []

    return check


def _every(compiler: Compiler, _schema: Any, schemas: Any, place: str) -> Check:
    checks = compiler.several(schemas, place)

    def check(value: Any, path: str, state: ValidationState) -> list[Violation]:
        causes = tuple(found for one in checks for found in one(value, path, state))
        return [Violation(path, "'allOf' failed", causes)] if causes else []

    return check


def _some(compiler: Compiler, _schema: Any, schemas: Any, place: str) -> Check:
    checks = compiler.several(schemas, place)

    def check(value: Any, path: str, state: ValidationState) -> list[Violation]:
        causes: list[Violation] = []
        for one in checks:
            found = one(value, path, state)
            if not found:
                return []
            causes += found
        return [Violation(path, "'anyOf' failed", tuple(causes))]

    return check


def _one(compiler: Compiler, _schema: Any, schemas: Any, place: str) -> Check:
    checks = compiler.several(schemas, place)

    def check(value: Any, path: str, state: ValidationState) -> list[Violation]:
        results = [one(value, path, state) for one in checks]
        fitting = [number for number, found in enumerate(results) if not found]
        if len(fitting) == 1:
            return []
        if fitting:
            return [Violation(path, f"'oneOf' failed, subschemas {fitting[0]}, {fitting[1]} matched")]
        return [Violation(path, "'oneOf' failed, none matched", tuple(cause for found in results for cause in found))]

    return check


def _not(compiler: Compiler, _schema: Any, schema: Any, place: str) -> Check:
    inner = compiler.schema(schema, place)
    return lambda value, path, state: [] if inner(value, path, state) else [Violation(path, "'not' failed")]


def _has_length(value: Any) -> bool:
    return isinstance(value, str)


def _is_array(value: Any) -> bool:
    return isinstance(value, list)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _fewer(value: Any, bound: Any) -> bool:
    return bool(len(value) < bound)


def _more(value: Any, bound: Any) -> bool:
    return bool(len(value) > bound)


STOPPING = ("type", "const", "enum", "format")
"""Keywords of which the first broken one is the only one reported for a schema."""
KEYWORDS: dict[str, Callable[[Compiler, Any, Any, str], Check]] = {
    "type": _type,
    "const": _const,
    "enum": _enum,
    "format": _format,
    "minProperties": _simple("minProperties", _is_object, _fewer),
    "maxProperties": _simple("maxProperties", _is_object, _more),
    "required": _required,
    "dependencies": _dependent,
    "propertyNames": _names,
    "dependentSchemas": _dependent,
    "dependentRequired": _dependent,
    "minItems": _simple("minItems", _is_array, _fewer),
    "maxItems": _simple("maxItems", _is_array, _more),
    "uniqueItems": _unique,
    "minLength": _simple("minLength", _has_length, _fewer),
    "maxLength": _simple("maxLength", _has_length, _more),
    "pattern": _pattern,
    "minimum": _bound("minimum"),
    "maximum": _bound("maximum"),
    "exclusiveMinimum": _exclusive("exclusiveMinimum", lambda value, bound: value <= bound),
    "exclusiveMaximum": _exclusive("exclusiveMaximum", lambda value, bound: value >= bound),
    "multipleOf": _multiple,
    "not": _not,
    "allOf": _every,
    "anyOf": _some,
    "oneOf": _one,
}
"""Keywords that look at a value by themselves."""
PLACES = {
    name: place
    for place, name in enumerate(
        [
            *STOPPING,
            "$ref",
            *("minProperties", "maxProperties", "required", "dependencies", "properties", "propertyNames"),
            *("dependentSchemas", "dependentRequired", "minItems", "maxItems", "uniqueItems", "items", "contains"),
            *("minLength", "maxLength", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
            *("multipleOf", "not", "allOf", "anyOf", "oneOf", "if"),
        ]
    )
}
"""The order in which broken keywords are reported."""
