"""JSON Schema, draft 4 to 2020-12, as charts and modules ship it: validation alone, and nothing is ever fetched.

A schema is compiled once to closures over the value and its path. What is not supported (`unevaluatedProperties`,
`$dynamicRef`, references to other documents) is refused by name when compiling, never passed over. Recursion is bounded
by depth and the whole validation by a number of steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any
from urllib.parse import unquote

import msgspec

from hortus.schema import formats
from hortus.schema.patterns import PatternError, matcher

_DEEPEST = 200
_MOST_STEPS = 2_000_000
_MOST_PROBLEMS = 50
_REFUSED = ("unevaluatedProperties", "unevaluatedItems", "$dynamicRef", "$recursiveRef")
_OLD_DRAFTS = ("draft-04", "draft-06", "draft-07", "draft-03")


class JsonSchemaError(ValueError):
    """A schema that cannot be used; the message names the place and the keyword."""


class Violation(msgspec.Struct, frozen=True):
    """One value that breaks the schema; `path` as a JSON pointer, empty for the whole."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"at '{self.path}': {self.message}"


class _State:
    """One validation: what was found and what it has cost."""

    __slots__ = ("depth", "steps")

    def __init__(self) -> None:
        self.steps = 0
        self.depth = 0


Check = Callable[[Any, str, _State], list[Violation]]


class JsonSchema:
    """A compiled schema."""

    def __init__(self, check: Check) -> None:
        self._check = check

    @classmethod
    def compile(cls, document: Any) -> JsonSchema:
        """A schema from its document (dict or boolean). Raises JsonSchemaError."""
        try:
            return cls(_Compiler(document).schema(document, ""))
        except RecursionError:
            raise JsonSchemaError("the schema is nested too deeply") from None

    def validate(self, value: Any) -> list[Violation]:
        """What is wrong with the value, nothing when it fits. Raises JsonSchemaError when it takes too long."""
        return self._check(value, "", _State())[:_MOST_PROBLEMS]


class _Compiler:
    def __init__(self, document: Any) -> None:
        self.document = document
        draft = str(document.get("$schema", "")) if isinstance(document, dict) else ""
        self.is_old = any(name in draft for name in _OLD_DRAFTS)
        self.identifier = str(document.get("$id", "")) if isinstance(document, dict) else ""
        self.anchors: dict[str, Any] = {}
        self.compiled: dict[int, Check] = {}
        self.depth = 0
        _collect(document, self.anchors, 0)

    def schema(self, schema: Any, place: str) -> Check:
        if schema is True or schema == {}:
            return _anything
        if schema is False:
            return lambda _value, path, _state: [Violation(path, "false schema")]
        if not isinstance(schema, dict):
            raise JsonSchemaError(f"schema at '{place}' must be an object or a boolean, not {type(schema).__name__}")
        known = self.compiled.get(id(schema))
        if known is not None:
            return known
        return self._object(schema, place)

    def _object(self, schema: dict[str, Any], place: str) -> Check:
        # A reference may come back to this schema while it is being compiled.
        checks: list[Check] = []
        self.compiled[id(schema)] = check = _all_of(checks)
        self.depth += 1
        if self.depth > _DEEPEST:
            raise JsonSchemaError(f"schema at '{place}' is nested deeper than {_DEEPEST} levels")
        for name in _REFUSED:
            if name in schema:
                raise JsonSchemaError(f"schema at '{place}' uses {name}, which is not supported")
        if "$ref" in schema and self.is_old:
            checks.append(self._reference(schema["$ref"], place))
        else:
            checks += self._keywords(schema, place)
        self.depth -= 1
        return check

    def _keywords(self, schema: dict[str, Any], place: str) -> list[Check]:
        found: list[Check] = []
        for name, value in schema.items():
            make = _KEYWORDS.get(name)
            if make is not None:
                found.append(make(self, schema, value, f"{place}/{name}"))
        if "$ref" in schema:
            found.append(self._reference(schema["$ref"], place))
        if any(key in schema for key in ("properties", "patternProperties", "additionalProperties")):
            found.append(self._properties(schema, place))
        if "items" in schema or "prefixItems" in schema:
            found.append(self._items(schema, place))
        if "if" in schema:
            found.append(self._condition(schema, place))
        if "contains" in schema:
            found.append(self._contains(schema, place))
        return found

    def _reference(self, reference: Any, place: str) -> Check:
        if not isinstance(reference, str):
            raise JsonSchemaError(f"schema at '{place}': $ref must be a string")
        if reference.startswith("urn:"):
            # Helm takes what it cannot look up as a schema that allows everything.
            return _anything
        local = reference.removeprefix(self.identifier) if self.identifier else reference
        if local and not local.startswith("#"):
            raise JsonSchemaError(
                f"schema at '{place}' refers to {reference!r}: other documents are not fetched; copy it into $defs"
            )
        target = self._target(local.removeprefix("#"), reference, place)
        compiled: list[Check] = []

        def check(value: Any, path: str, state: _State) -> list[Violation]:
            if not compiled:
                compiled.append(self.schema(target, local))
            return compiled[0](value, path, state)

        self.schema(target, local)
        return check

    def _target(self, pointer: str, reference: str, place: str) -> Any:
        if pointer and not pointer.startswith("/"):
            if pointer in self.anchors:
                return self.anchors[pointer]
            raise JsonSchemaError(f"schema at '{place}' refers to {reference!r}, which is not there")
        found = self.document
        for part in pointer.split("/")[1:]:
            key = unquote(part).replace("~1", "/").replace("~0", "~")
            if isinstance(found, dict) and key in found:
                found = found[key]
            elif isinstance(found, list) and key.isdigit() and int(key) < len(found):
                found = found[int(key)]
            else:
                raise JsonSchemaError(f"schema at '{place}' refers to {reference!r}, which is not there")
        return found

    def _properties(self, schema: dict[str, Any], place: str) -> Check:
        named = {
            key: self.schema(part, f"{place}/properties/{key}")
            for key, part in _mapping(schema.get("properties", {}), place).items()
        }
        patterns = [
            (self.pattern(key, place), self.schema(part, f"{place}/patternProperties/{key}"))
            for key, part in _mapping(schema.get("patternProperties", {}), place).items()
        ]
        more = schema.get("additionalProperties", True)
        others = None if more is True or more == {} else self.schema(more, f"{place}/additionalProperties")

        def check(value: Any, path: str, state: _State) -> list[Violation]:
            if not isinstance(value, dict):
                return []
            found: list[Violation] = []
            extra: list[str] = []
            for key, part in value.items():
                checks = [named[key]] if key in named else []
                checks += [inner for matches, inner in patterns if matches(key)]
                if not checks and others is not None:
                    if more is False:
                        extra.append(key)
                        continue
                    checks = [others]
                for inner in checks:
                    found += inner(part, f"{path}/{_escaped(key)}", state)
            if extra:
                shown = ", ".join(f"'{key}'" for key in extra)
                found.append(Violation(path, f"additional properties {shown} not allowed"))
            return found

        return check

    def _items(self, schema: dict[str, Any], place: str) -> Check:
        first = schema.get("prefixItems")
        rest = schema.get("items", True)
        if first is None and isinstance(rest, list):
            first, rest = rest, schema.get("additionalItems", True)
        each = [self.schema(part, f"{place}/items/{number}") for number, part in enumerate(first or [])]
        others = self.schema(rest, f"{place}/items")

        def check(value: Any, path: str, state: _State) -> list[Violation]:
            if not isinstance(value, list):
                return []
            found: list[Violation] = []
            for number, part in enumerate(value):
                inner = each[number] if number < len(each) else others
                found += inner(part, f"{path}/{number}", state)
            return found

        return check

    def _condition(self, schema: dict[str, Any], place: str) -> Check:
        test = self.schema(schema["if"], f"{place}/if")
        yes = self.schema(schema.get("then", True), f"{place}/then")
        no = self.schema(schema.get("else", True), f"{place}/else")
        return lambda value, path, state: (no if test(value, path, state) else yes)(value, path, state)

    def _contains(self, schema: dict[str, Any], place: str) -> Check:
        inner = self.schema(schema["contains"], f"{place}/contains")
        least = schema.get("minContains", 1)
        most = schema.get("maxContains", math.inf)

        def check(value: Any, path: str, state: _State) -> list[Violation]:
            if not isinstance(value, list):
                return []
            count = sum(not inner(part, path, state) for part in value)
            if count < least:
                return [Violation(path, f"at least {least} items must match the contains schema, {count} do")]
            return [Violation(path, f"at most {most} items may match the contains schema")] if count > most else []

        return check

    def pattern(self, text: Any, place: str) -> Callable[[str], bool]:
        if not isinstance(text, str):
            raise JsonSchemaError(f"schema at '{place}': a pattern must be a string")
        try:
            return matcher(text)
        except PatternError as error:
            raise JsonSchemaError(f"schema at '{place}': pattern {text!r} cannot be used: {error}") from None

    def several(self, schemas: Any, place: str) -> list[Check]:
        if not isinstance(schemas, list) or not schemas:
            raise JsonSchemaError(f"schema at '{place}' must be a list of schemas")
        return [self.schema(part, f"{place}/{number}") for number, part in enumerate(schemas)]


def _collect(schema: Any, anchors: dict[str, Any], depth: int) -> None:
    if depth > _DEEPEST:
        raise JsonSchemaError("the schema is nested too deeply")
    if isinstance(schema, dict):
        for key in ("$anchor", "$id", "id"):
            name = schema.get(key)
            if isinstance(name, str) and (key == "$anchor" or name.startswith("#")):
                anchors[name.removeprefix("#")] = schema
        for part in schema.values():
            _collect(part, anchors, depth + 1)
    elif isinstance(schema, list):
        for part in schema:
            _collect(part, anchors, depth + 1)


def _mapping(value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise JsonSchemaError(f"schema at '{place}' must be an object of schemas")
    return value


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _anything(_value: Any, _path: str, _state: _State) -> list[Violation]:
    return []


def _all_of(checks: list[Check]) -> Check:
    def check(value: Any, path: str, state: _State) -> list[Violation]:
        state.steps += 1
        state.depth += 1
        if state.steps > _MOST_STEPS or state.depth > _DEEPEST:
            raise JsonSchemaError(f"validation at '{path}' takes more than {_MOST_STEPS} steps or {_DEEPEST} levels")
        found: list[Violation] = []
        for one in checks:
            found += one(value, path, state)
        state.depth -= 1
        return found

    return check


# Keywords


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


def _type(_compiler: _Compiler, _schema: Any, wanted: Any, place: str) -> Check:
    names = wanted if isinstance(wanted, list) else [wanted]
    if any(name not in _TYPES for name in names):
        raise JsonSchemaError(f"schema at '{place}': unknown type {wanted!r}")
    tests = [_TYPES[name] for name in names]
    shown = " or ".join(names)

    def check(value: Any, path: str, _state: _State) -> list[Violation]:
        if any(test(value) for test in tests):
            return []
        return [Violation(path, f"got {_type_of(value)}, want {shown}")]

    return check


def _enum(_compiler: _Compiler, _schema: Any, allowed: Any, place: str) -> Check:
    if not isinstance(allowed, list):
        raise JsonSchemaError(f"schema at '{place}' must be a list")
    shown = ", ".join(repr(part) for part in allowed[:20])
    return lambda value, path, _state: (
        [] if any(_same(value, part) for part in allowed) else [Violation(path, f"value must be one of {shown}")]
    )


def _const(_compiler: _Compiler, _schema: Any, wanted: Any, _place: str) -> Check:
    return lambda value, path, _state: [] if _same(value, wanted) else [Violation(path, f"value must be {wanted!r}")]


def _simple(
    test: Callable[[Any], bool], broken: Callable[[Any, Any], bool], message: str
) -> Callable[[_Compiler, Any, Any, str], Check]:
    """A keyword with a number: which values it is for, when it is broken, and what is then said."""

    def make(_compiler: _Compiler, _schema: Any, bound: Any, place: str) -> Check:
        if not _is_number(bound):
            raise JsonSchemaError(f"schema at '{place}' must be a number")

        def check(value: Any, path: str, _state: _State) -> list[Violation]:
            return [Violation(path, message.format(bound))] if test(value) and broken(value, bound) else []

        return check

    return make


def _bound(keyword: str) -> Callable[[_Compiler, Any, Any, str], Check]:
    """minimum and maximum, which in draft 4 a boolean beside them makes exclusive."""
    is_low = keyword == "minimum"

    def make(compiler: _Compiler, schema: Any, bound: Any, place: str) -> Check:
        exclusive = schema.get("exclusiveMinimum" if is_low else "exclusiveMaximum") is True
        if exclusive:
            return _KEYWORDS["exclusiveMinimum" if is_low else "exclusiveMaximum"](compiler, {}, bound, place)
        if is_low:
            return _simple(_is_number, lambda value, low: value < low, "must be at least {}")(
                compiler, {}, bound, place
            )
        return _simple(_is_number, lambda value, high: value > high, "must be at most {}")(compiler, {}, bound, place)

    return make


def _exclusive(broken: Callable[[Any, Any], bool], message: str) -> Callable[[_Compiler, Any, Any, str], Check]:
    simple = _simple(_is_number, broken, message)

    def make(compiler: _Compiler, schema: Any, bound: Any, place: str) -> Check:
        return _anything if isinstance(bound, bool) else simple(compiler, schema, bound, place)

    return make


def _is_multiple(value: Any, step: Any) -> bool:
    if isinstance(value, float) and not math.isfinite(value):
        return False
    return (Fraction(str(value)) / Fraction(str(step))).denominator == 1


def _multiple(compiler: _Compiler, schema: Any, step: Any, place: str) -> Check:
    if not _is_number(step) or step <= 0:
        raise JsonSchemaError(f"schema at '{place}' must be a number above 0")
    broken = _simple(_is_number, lambda value, bound: not _is_multiple(value, bound), "must be a multiple of {}")
    return broken(compiler, schema, step, place)


def _pattern(compiler: _Compiler, _schema: Any, text: Any, place: str) -> Check:
    matches = compiler.pattern(text, place)
    return lambda value, path, _state: (
        [Violation(path, f"{value!r} does not match pattern {text!r}")]
        if isinstance(value, str) and not matches(value)
        else []
    )


def _format(compiler: _Compiler, _schema: Any, name: Any, _place: str) -> Check:
    # From draft 2019-09 on a format is a remark unless a vocabulary says otherwise.
    test = formats.check_for(name) if compiler.is_old and isinstance(name, str) else None
    if test is None:
        return _anything
    known = test
    return lambda value, path, _state: (
        [Violation(path, f"{value!r} is not a valid {name}")] if isinstance(value, str) and not known(value) else []
    )


def _unique(_compiler: _Compiler, _schema: Any, wanted: Any, _place: str) -> Check:
    def check(value: Any, path: str, state: _State) -> list[Violation]:
        if not wanted or not isinstance(value, list):
            return []
        state.steps += len(value) * len(value) // 8
        for number, part in enumerate(value):
            if any(_same(part, other) for other in value[:number]):
                return [Violation(path, f"items are not unique: item {number} is there before")]
        return []

    return check


def _required(_compiler: _Compiler, _schema: Any, names: Any, place: str) -> Check:
    if isinstance(names, bool):
        # Draft 3 wrote it beside the property; nothing newer knows it so.
        return _anything
    if not isinstance(names, list):
        raise JsonSchemaError(f"schema at '{place}' must be a list of names")

    def check(value: Any, path: str, _state: _State) -> list[Violation]:
        missing = [name for name in names if name not in value] if isinstance(value, dict) else []
        if not missing:
            return []
        return [Violation(path, "missing propert" + ("y " if len(missing) == 1 else "ies ") + _quoted(missing))]

    return check


def _quoted(names: list[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _names(compiler: _Compiler, _schema: Any, schema: Any, place: str) -> Check:
    inner = compiler.schema(schema, place)

    def check(value: Any, path: str, state: _State) -> list[Violation]:
        if not isinstance(value, dict):
            return []
        return [
            Violation(path, f"invalid propertyName '{key}': {problem.message}")
            for key in value
            for problem in inner(key, path, state)
        ]

    return check


def _dependent(compiler: _Compiler, _schema: Any, dependencies: Any, place: str) -> Check:
    """dependencies, dependentRequired and dependentSchemas: what a property asks for."""
    wanted = {
        key: _required(compiler, {}, part, place) if isinstance(part, list) else compiler.schema(part, f"{place}/{key}")
        for key, part in _mapping(dependencies, place).items()
    }

    def check(value: Any, path: str, state: _State) -> list[Violation]:
        if not isinstance(value, dict):
            return []
        return [found for key, inner in wanted.items() if key in value for found in inner(value, path, state)]

    return check


def _every(compiler: _Compiler, _schema: Any, schemas: Any, place: str) -> Check:
    checks = compiler.several(schemas, place)
    return lambda value, path, state: [found for check in checks for found in check(value, path, state)]


def _some(compiler: _Compiler, _schema: Any, schemas: Any, place: str) -> Check:
    checks = compiler.several(schemas, place)

    def check(value: Any, path: str, state: _State) -> list[Violation]:
        problems: list[Violation] = []
        for one in checks:
            found = one(value, path, state)
            if not found:
                return []
            problems += found[:3]
        return [Violation(path, "anyOf failed: " + "; ".join(map(str, problems[:5])))]

    return check


def _one(compiler: _Compiler, _schema: Any, schemas: Any, place: str) -> Check:
    checks = compiler.several(schemas, place)

    def check(value: Any, path: str, state: _State) -> list[Violation]:
        fitting = [number for number, one in enumerate(checks) if not one(value, path, state)]
        if len(fitting) == 1:
            return []
        told = f"subschemas {', '.join(map(str, fitting))} matched" if fitting else "none matched"
        return [Violation(path, f"oneOf failed, {told}")]

    return check


def _not(compiler: _Compiler, _schema: Any, schema: Any, place: str) -> Check:
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


_KEYWORDS: dict[str, Callable[[_Compiler, Any, Any, str], Check]] = {
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
