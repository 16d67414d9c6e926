"""The keywords of JSON Schema that look at a value by themselves."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from hortus.schema import formats
from hortus.schema.jsonschema.violations import Check, JsonSchemaError, State, Violation, anything

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
    shown = " or ".join(names)

    def check(value: Any, path: str, _state: State) -> list[Violation]:
        if any(test(value) for test in tests):
            return []
        return [Violation(path, f"got {_type_of(value)}, want {shown}")]

    return check


def _enum(_compiler: Compiler, _schema: Any, allowed: Any, place: str) -> Check:
    if not isinstance(allowed, list):
        raise JsonSchemaError(f"schema at '{place}' must be a list")
    shown = ", ".join(repr(part) for part in allowed[:20])
    return lambda value, path, _state: (
        [] if any(_same(value, part) for part in allowed) else [Violation(path, f"value must be one of {shown}")]
    )


def _const(_compiler: Compiler, _schema: Any, wanted: Any, _place: str) -> Check:
    return lambda value, path, _state: [] if _same(value, wanted) else [Violation(path, f"value must be {wanted!r}")]


def _simple(
    test: Callable[[Any], bool], broken: Callable[[Any, Any], bool], message: str
) -> Callable[[Compiler, Any, Any, str], Check]:
    """A keyword with a number: which values it is for, when it is broken, and what is then said."""

    def make(_compiler: Compiler, _schema: Any, bound: Any, place: str) -> Check:
        if not _is_number(bound):
            raise JsonSchemaError(f"schema at '{place}' must be a number")

        def check(value: Any, path: str, _state: State) -> list[Violation]:
            return [Violation(path, message.format(bound))] if test(value) and broken(value, bound) else []

        return check

    return make


def _bound(keyword: str) -> Callable[[Compiler, Any, Any, str], Check]:
    """minimum and maximum, which in draft 4 a boolean beside them makes exclusive."""
    is_low = keyword == "minimum"

    def make(compiler: Compiler, schema: Any, bound: Any, place: str) -> Check:
        exclusive = schema.get("exclusiveMinimum" if is_low else "exclusiveMaximum") is True
        if exclusive:
            return KEYWORDS["exclusiveMinimum" if is_low else "exclusiveMaximum"](compiler, {}, bound, place)
        if is_low:
            return _simple(_is_number, lambda value, low: value < low, "must be at least {}")(
                compiler, {}, bound, place
            )
        return _simple(_is_number, lambda value, high: value > high, "must be at most {}")(compiler, {}, bound, place)

    return make


def _exclusive(broken: Callable[[Any, Any], bool], message: str) -> Callable[[Compiler, Any, Any, str], Check]:
    simple = _simple(_is_number, broken, message)

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
    broken = _simple(_is_number, lambda value, bound: not _is_multiple(value, bound), "must be a multiple of {}")
    return broken(compiler, schema, step, place)


def _pattern(compiler: Compiler, _schema: Any, text: Any, place: str) -> Check:
    matches = compiler.pattern(text, place)
    return lambda value, path, _state: (
        [Violation(path, f"{value!r} does not match pattern {text!r}")]
        if isinstance(value, str) and not matches(value)
        else []
    )


def _format(compiler: Compiler, _schema: Any, name: Any, _place: str) -> Check:
    # From draft 2019-09 on a format is a remark unless a vocabulary says otherwise.
    test = formats.check_for(name) if compiler.is_old and isinstance(name, str) else None
    if test is None:
        return anything
    known = test
    return lambda value, path, _state: (
        [Violation(path, f"{value!r} is not a valid {name}")] if isinstance(value, str) and not known(value) else []
    )


def _unique(_compiler: Compiler, _schema: Any, wanted: Any, _place: str) -> Check:
    def check(value: Any, path: str, state: State) -> list[Violation]:
        if not wanted or not isinstance(value, list):
            return []
        state.steps += len(value) * len(value) // 8
        for number, part in enumerate(value):
            if any(_same(part, other) for other in value[:number]):
                return [Violation(path, f"items are not unique: item {number} is there before")]
        return []

    return check


def _required(_compiler: Compiler, _schema: Any, names: Any, place: str) -> Check:
    if isinstance(names, bool):
        # Draft 3 wrote it beside the property; nothing newer knows it so.
        return anything
    if not isinstance(names, list):
        raise JsonSchemaError(f"schema at '{place}' must be a list of names")

    def check(value: Any, path: str, _state: State) -> list[Violation]:
        missing = [name for name in names if name not in value] if isinstance(value, dict) else []
        if not missing:
            return []
        return [Violation(path, "missing propert" + ("y " if len(missing) == 1 else "ies ") + _quoted(missing))]

    return check


def _quoted(names: list[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _names(compiler: Compiler, _schema: Any, schema: Any, place: str) -> Check:
    inner = compiler.schema(schema, place)

    def check(value: Any, path: str, state: State) -> list[Violation]:
        if not isinstance(value, dict):
            return []
        return [
            Violation(path, f"invalid propertyName '{key}': {problem.message}")
            for key in value
            for problem in inner(key, path, state)
        ]

    return check


def _dependent(compiler: Compiler, _schema: Any, dependencies: Any, place: str) -> Check:
    """dependencies, dependentRequired and dependentSchemas: what a property asks for."""
    wanted = {
        key: _required(compiler, {}, part, place) if isinstance(part, list) else compiler.schema(part, f"{place}/{key}")
        for key, part in mapping(dependencies, place).items()
    }

    def check(value: Any, path: str, state: State) -> list[Violation]:
        if not isinstance(value, dict):
            return []
        return [found for key, inner in wanted.items() if key in value for found in inner(value, path, state)]

    return check


def _every(compiler: Compiler, _schema: Any, schemas: Any, place: str) -> Check:
    checks = compiler.several(schemas, place)
    return lambda value, path, state: [found for check in checks for found in check(value, path, state)]


def _some(compiler: Compiler, _schema: Any, schemas: Any, place: str) -> Check:
    checks = compiler.several(schemas, place)

    def check(value: Any, path: str, state: State) -> list[Violation]:
        problems: list[Violation] = []
        for one in checks:
            found = one(value, path, state)
            if not found:
                return []
            problems += found[:3]
        return [Violation(path, "anyOf failed: " + "; ".join(map(str, problems[:5])))]

    return check


def _one(compiler: Compiler, _schema: Any, schemas: Any, place: str) -> Check:
    checks = compiler.several(schemas, place)

    def check(value: Any, path: str, state: State) -> list[Violation]:
        fitting = [number for number, one in enumerate(checks) if not one(value, path, state)]
        if len(fitting) == 1:
            return []
        told = f"subschemas {', '.join(map(str, fitting))} matched" if fitting else "none matched"
        return [Violation(path, f"oneOf failed, {told}")]

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


KEYWORDS: dict[str, Callable[[Compiler, Any, Any, str], Check]] = {
    "type": _type,
    "enum": _enum,
    "const": _const,
    "minimum": _bound("minimum"),
    "maximum": _bound("maximum"),
    "exclusiveMinimum": _exclusive(lambda value, bound: value <= bound, "must be more than {}"),
    "exclusiveMaximum": _exclusive(lambda value, bound: value >= bound, "must be less than {}"),
    "multipleOf": _multiple,
    "minLength": _simple(_has_length, _fewer, "must be at least {} characters long"),
    "maxLength": _simple(_has_length, _more, "must be at most {} characters long"),
    "pattern": _pattern,
    "format": _format,
    "minItems": _simple(_is_array, _fewer, "must have at least {} items"),
    "maxItems": _simple(_is_array, _more, "must have at most {} items"),
    "uniqueItems": _unique,
    "minProperties": _simple(_is_object, _fewer, "must have at least {} properties"),
    "maxProperties": _simple(_is_object, _more, "must have at most {} properties"),
    "required": _required,
    "propertyNames": _names,
    "dependencies": _dependent,
    "dependentRequired": _dependent,
    "dependentSchemas": _dependent,
    "allOf": _every,
    "anyOf": _some,
    "oneOf": _one,
    "not": _not,
}
