"""Compiles a schema document to checks: references, properties, items, and the keywords one by one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import msgspec

from hortus.schema.jsonschema.keywords import KEYWORDS, PLACES, STOPPING, mapping
from hortus.schema.jsonschema.violations import (
    DEEPEST,
    MOST_STEPS,
    Check,
    JsonSchemaError,
    ValidationState,
    Violation,
    anything,
    grouped,
    listed,
)
from hortus.schema.patterns import PatternError, matcher

_REFUSED = ("unevaluatedProperties", "unevaluatedItems", "$dynamicRef", "$recursiveRef")
_SAME_CHECK = {"patternProperties": "properties", "additionalProperties": "properties", "prefixItems": "items"}
_OLD_DRAFTS = ("draft-04", "draft-06", "draft-07", "draft-03")


class Compiler:
    """Compiles schemas to checks, each schema once."""

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
            return anything
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
        stopping: list[Check] = []
        checks: list[Check] = []
        self.compiled[id(schema)] = check = _all_of(stopping, checks)
        self.depth += 1
        if self.depth > DEEPEST:
            raise JsonSchemaError(f"schema at '{place}' is nested deeper than {DEEPEST} levels")
        for name in _REFUSED:
            if name in schema:
                raise JsonSchemaError(f"schema at '{place}' uses {name}, which is not supported")
        if "$ref" in schema and self.is_old:
            checks.append(self._reference(schema["$ref"], place))
        else:
            self._fill(schema, place, stopping, checks)
        self.depth -= 1
        return check

    def _fill(self, schema: dict[str, Any], place: str, stopping: list[Check], checks: list[Check]) -> None:
        """The checks of the keywords that are there, in their order; those that stop the others come separately."""
        own = {
            "$ref": lambda: self._reference(schema["$ref"], place),
            "properties": lambda: self._properties(schema, place),
            "items": lambda: self._items(schema, place),
            "contains": lambda: self._contains(schema, place),
            "if": lambda: self._condition(schema, place),
        }
        present = {_SAME_CHECK.get(name, name) for name in schema}
        for name in sorted(present & PLACES.keys(), key=PLACES.__getitem__):
            make = own.get(name)
            check = make() if make else KEYWORDS[name](self, schema, schema[name], f"{place}/{name}")
            (stopping if name in STOPPING else checks).append(check)

    def _reference(self, reference: Any, place: str) -> Check:
        if not isinstance(reference, str):
            raise JsonSchemaError(f"schema at '{place}': $ref must be a string")
        if reference.startswith("urn:"):
            # Helm treats a reference that it cannot resolve as a schema that allows everything.
            return anything
        local = reference.removeprefix(self.identifier) if self.identifier else reference
        if local and not local.startswith("#"):
            raise JsonSchemaError(
                f"schema at '{place}' refers to {reference!r}: other documents are not fetched; copy it into $defs"
            )
        target = self._target(local.removeprefix("#"), reference, place)
        compiled: list[Check] = []

        def check(value: Any, path: str, state: ValidationState) -> list[Violation]:
            if not compiled:
                compiled.append(self.schema(target, local))
            # Violations behind a reference are reported as one group; it is not split where it ends.
            return [msgspec.structs.replace(one, is_group=False) for one in compiled[0](value, path, state)]

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
            for key, part in mapping(schema.get("properties", {}), place).items()
        }
        patterns = [
            (self.pattern(key, place), self.schema(part, f"{place}/patternProperties/{key}"))
            for key, part in mapping(schema.get("patternProperties", {}), place).items()
        ]
        more = schema.get("additionalProperties", True)
        others = None if more is True or more == {} else self.schema(more, f"{place}/additionalProperties")

        def check(value: Any, path: str, state: ValidationState) -> list[Violation]:
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
                found.append(Violation(path, f"additional properties {listed(extra)} not allowed"))
            return found

        return check

    def _items(self, schema: dict[str, Any], place: str) -> Check:
        first = schema.get("prefixItems")
        rest = schema.get("items", True)
        if first is None and isinstance(rest, list):
            first, rest = rest, schema.get("additionalItems", True)
        each = [self.schema(part, f"{place}/items/{number}") for number, part in enumerate(first or [])]
        others = self.schema(rest, f"{place}/items")

        def check(value: Any, path: str, state: ValidationState) -> list[Violation]:
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
        least = schema.get("minContains")
        most = schema.get("maxContains", math.inf)

        def check(value: Any, path: str, state: ValidationState) -> list[Violation]:
            if not isinstance(value, list):
                return []
            results = [inner(part, f"{path}/{number}", state) for number, part in enumerate(value)]
            fitting = [number for number, problems in enumerate(results) if not problems]
            causes = tuple(cause for problems in results for cause in problems)
            if least is None and not fitting:
                return [Violation(path, "no items match contains schema", causes)]
            shown = f"{len(fitting)} items at {' '.join(map(str, fitting))}"
            found = []
            if least is not None and len(fitting) < least:
                counted = f"matched {shown}" if fitting else "none matched"
                found.append(
                    Violation(path, f"min {least:,} items required to match contains schema, but {counted}", causes)
                )
            if len(fitting) > most:
                text = f"max {most:,} items required to match contains schema, but matched {shown}"
                found.append(Violation(path, text))
            return found

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
    if depth > DEEPEST:
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


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _all_of(stopping: list[Check], checks: list[Check]) -> Check:
    def check(value: Any, path: str, state: ValidationState) -> list[Violation]:
        state.steps += 1
        state.depth += 1
        if state.steps > MOST_STEPS or state.depth > DEEPEST:
            raise JsonSchemaError(f"validation at '{path}' takes more than {MOST_STEPS} steps or {DEEPEST} levels")
        found: list[Violation] = []
        for one in stopping:
            found = one(value, path, state)
            if found:
                break
        else:
            for one in checks:
                found += one(value, path, state)
        state.depth -= 1
        return grouped(found, path)

    return check
