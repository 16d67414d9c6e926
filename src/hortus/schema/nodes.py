"""A schema compiled into flat nodes, shared between equal sub-schemas.

Descriptions are left out, so the conditions of a hundred kinds are one node. Validating walks value and nodes together;
for a valid value it allocates only the path strings.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any
from weakref import WeakValueDictionary

import orjson

from hortus.schema import checks, formats, problems
from hortus.schema.correlation import NOTHING, same, under_index, under_key
from hortus.schema.problems import FieldError
from hortus.schema.quoting import quote

MAX_DEPTH = 100
"""Levels of nested schemas; real kinds stay below 30. Bounds the recursion here too."""


class SchemaError(ValueError):
    """The schema cannot be compiled; the text names the place and why."""


class SchemaNode:
    """The constraints of one sub-schema."""

    __slots__ = (
        "__weakref__",
        "accepted",
        "additional",
        "all_of",
        "any_of",
        "array_checks",
        "check_type",
        "default",
        "embedded",
        "enum",
        "format",
        "has_default",
        "has_defaults_below",
        "has_embedded_below",
        "has_junctors",
        "has_list_rules_below",
        "has_nulls_to_prune",
        "has_rules_below",
        "items",
        "list_map_keys",
        "list_type",
        "map_type",
        "names",
        "native",
        "negated",
        "nullable",
        "number_checks",
        "object_checks",
        "one_of",
        "preserve",
        "properties",
        "prunes_null",
        "quick",
        "required",
        "rules",
        "schema",
        "string_checks",
    )

    def __init__(self, schema: Mapping[str, Any], children: _Children, *, native: bool) -> None:
        self.schema = schema
        self.native = native
        self.names: tuple[str, ...] = _types(schema)
        # The content of texts and lists of a native kind is validated by its strategy, as in Go.
        known = not native and formats.check_for(schema.get("format") or "") is not None
        format_name = schema["format"] if known else ""
        self.accepted = checks.accepted_types(self.names)
        self.check_type = checks.type_check(self.names, format_name)
        self.nullable = bool(schema.get("nullable")) or native or not self.names
        self.prunes_null = native or not schema.get("nullable")
        self.string_checks = checks.string_checks(schema)
        self.format = checks.format_check(format_name) if known else None
        self.number_checks = checks.number_checks(schema, native=native)
        self.array_checks = checks.size_checks(schema, "minItems", "maxItems", "items")
        if schema.get("uniqueItems"):
            self.array_checks += (checks.unique_items,)
        self.object_checks = checks.size_checks(schema, "minProperties", "maxProperties", "properties")
        self.enum = checks.enum_check(schema["enum"]) if schema.get("enum") else None
        self.required: tuple[str, ...] = tuple(schema.get("required") or ())
        self.properties = children.properties
        self.additional = children.additional
        self.items = children.items
        self.all_of, self.any_of, self.one_of = children.all_of, children.any_of, children.one_of
        self.negated = children.negated
        self.has_junctors = bool(self.all_of or self.any_of or self.one_of or self.negated)
        self.quick: Callable[[Any], bool] | None = None
        """Kept by `quick.predicate`."""
        self._extensions(schema)
        self._summaries(children, unique=not native)

    def _extensions(self, schema: Mapping[str, Any]) -> None:
        self.preserve = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
        self.embedded = bool(schema.get("x-kubernetes-embedded-resource"))
        self.list_type: str = schema.get("x-kubernetes-list-type") or ""
        self.map_type: str = schema.get("x-kubernetes-map-type") or ""
        self.list_map_keys: tuple[str, ...] = tuple(schema.get("x-kubernetes-list-map-keys") or ())
        self.rules: tuple[Mapping[str, Any], ...] = tuple(schema.get("x-kubernetes-validations") or ())
        self.default = schema.get("default")
        self.has_default = self.default is not None

    def _summaries(self, children: _Children, *, unique: bool) -> None:
        """Sets the flags of everything below, so that walks skip whole branches."""
        below = children.structural()
        self.has_defaults_below: bool = any(node.has_default or node.has_defaults_below for node in below)
        self.has_embedded_below: bool = self.embedded or any(node.has_embedded_below for node in below)
        keyed = unique and self.list_type in ("set", "map")
        self.has_list_rules_below: bool = keyed or any(node.has_list_rules_below for node in below)
        self.has_rules_below: bool = bool(self.rules) or any(node.has_rules_below for node in (*below, *self.all_of))
        self.has_nulls_to_prune: bool = any(node.prunes_null or node.has_nulls_to_prune for node in below)

    def check(self, value: Any, path: str, found: list[FieldError], old: Any = NOTHING) -> None:
        """Append every problem of `value`. With `old`, parts that are bad but unchanged are tolerated (KEP-4008)."""
        if old is NOTHING:
            self._check(value, path, found, NOTHING)
            return
        mine: list[FieldError] = []
        self._check(value, path, mine, old)
        if mine and not same(self, value, old):
            found.extend(mine)

    def _check(self, value: Any, path: str, found: list[FieldError], old: Any) -> None:
        if value is None:
            self._check_null(path, found)
            return
        kind = type(value)
        if kind not in self.accepted or (kind is int and value > checks.INT64_MAX):
            self._add(self.check_type(value, path), found)
        if self.has_junctors:
            self._check_junctors(value, path, found)
        if kind is str:
            self._check_string(value, path, found)
        elif kind is int or kind is float:
            for check in self.number_checks:
                self._add(check(value, path), found)
        elif kind is list:
            self._check_array(value, path, found, old)
        if self.enum is not None:
            self._add(self.enum(value, path), found)
        if kind is dict:
            self._check_object(value, path, found, old)

    def _check_null(self, path: str, found: list[FieldError]) -> None:
        if not self.nullable:
            found.append(checks.null_error(self.names, path))
        if self.enum is not None:
            self._add(self.enum(None, path), found)

    def _check_string(self, value: str, path: str, found: list[FieldError]) -> None:
        for check in self.string_checks:
            if (problem := check(value, path)) is not None:
                found.append(problem)
                break
        if self.format is not None:
            self._add(self.format(value, path), found)

    def _check_array(self, value: list[Any], path: str, found: list[FieldError], old: Any) -> None:
        items = self.items
        if items is not None:
            for index, item in enumerate(value):
                before = NOTHING if old is NOTHING else under_index(self, item, old)
                items.check(item, f"{path}[{index}]", found, before)
        for check in self.array_checks:
            self._add(check(value, path), found)

    def _check_object(self, value: dict[str, Any], path: str, found: list[FieldError], old: Any) -> None:
        for check in self.object_checks:
            self._add(check(value, path), found)
        properties = self.properties
        additional = self.additional
        for name, item in value.items():
            child = properties.get(name)
            if child is None:
                if additional is None:
                    continue
                child = additional
            before = NOTHING if old is NOTHING else under_key(name, old, at_root=not path)
            child.check(item, f"{path}.{name}" if path else name, found, before)
        missing = [name for name in self.required if name not in value or (self.native and value[name] is None)]
        found.extend(problems.required(f"{path}.{name}" if path else name) for name in missing)

    def _check_junctors(self, value: Any, path: str, found: list[FieldError]) -> None:
        if self.any_of:
            failures = _failures(self.any_of, value, path)
            if all(failures):
                found.append(_composite(f"{_name(path)} must validate at least one schema (anyOf)"))
                found.extend(_best(self.any_of, failures, value))
        if self.one_of:
            self._check_one_of(value, path, found)
        if self.all_of:
            failures = _failures(self.all_of, value, path)
            for failure in failures:
                found.extend(failure)
            if any(failures):
                tail = ". None validated" if all(failures) else ""
                found.append(_composite(f"{_name(path)} must validate all the schemas (allOf){tail}"))
        if self.negated is not None and not _failures((self.negated,), value, path)[0]:
            found.append(_composite(f"{_name(path)} must not validate the schema (not)"))

    def _check_one_of(self, value: Any, path: str, found: list[FieldError]) -> None:
        failures = _failures(self.one_of, value, path)
        valid = sum(not failure for failure in failures)
        if valid == 1:
            return
        tail = f"Found {valid} valid alternatives" if valid else "Found none valid"
        found.append(_composite(f"{_name(path)} must validate one and only one schema (oneOf). {tail}"))
        if not valid:
            found.extend(_best(self.one_of, failures, value))

    @staticmethod
    def _add(problem: FieldError | None, found: list[FieldError]) -> None:
        if problem is not None:
            found.append(problem)


def _failures(nodes: tuple[SchemaNode, ...], value: Any, path: str) -> list[list[FieldError]]:
    answers: list[list[FieldError]] = []
    for node in nodes:
        found: list[FieldError] = []
        node.check(value, path, found)
        answers.append(found)
    return answers


def _composite(text: str) -> FieldError:
    return problems.invalid(problems.NO_PATH, "", text)


def _name(path: str) -> str:
    return quote(path)


def _best(nodes: tuple[SchemaNode, ...], failures: list[list[FieldError]], value: Any) -> list[FieldError]:
    """The problems of the alternative that came closest, the first of equals."""
    scores = [_matches(node, value) for node in nodes]
    return failures[scores.index(max(scores))]


def _matches(node: SchemaNode, value: Any) -> int:
    """The number of kube-openapi's validators that would accept `value`; only its order matters."""
    if value is None:
        return 1 if node.nullable else 0
    kind = type(value)
    score = 3 + (1 if node.names and node.check_type(value, "") is None else 0) + (1 if node.names else 0)
    for branch in (node.any_of, node.one_of, node.all_of):
        score += sum(_matches(child, value) for child in branch) + len(branch)
    if kind is str:
        score += 1 + (1 if node.format is not None else 0)
    elif kind is int or kind is float:
        score += 2
    elif kind is list:
        score += 2 + sum(_matches(node.items, item) for item in value if node.items is not None)
    elif kind is dict:
        score += 1 + sum(
            _matches(child, item)
            for name, item in value.items()
            if (child := node.properties.get(name) or node.additional) is not None
        )
    return score


class _Children:
    """The compiled sub-schemas of one schema."""

    __slots__ = ("additional", "all_of", "any_of", "items", "negated", "one_of", "properties")

    def __init__(self, schema: Mapping[str, Any], compiler: _Compiler, path: str, depth: int) -> None:
        def child(sub: Any, where: str) -> SchemaNode:
            return compiler.node(sub, f"{path}.{where}", depth + 1)

        def several(keyword: str) -> tuple[SchemaNode, ...]:
            return tuple(child(sub, f"{keyword}[{i}]") for i, sub in enumerate(schema.get(keyword) or ()))

        self.properties = {
            name: child(sub, f"properties[{name}]") for name, sub in (schema.get("properties") or {}).items()
        }
        additional = schema.get("additionalProperties")
        self.additional: SchemaNode | None = None
        if isinstance(additional, Mapping):
            self.additional = child(additional, "additionalProperties")
        elif additional:
            self.additional = child({"x-kubernetes-preserve-unknown-fields": True}, "additionalProperties")
        items = schema.get("items")
        self.items: SchemaNode | None = child(items, "items") if items is not None else None
        self.all_of, self.any_of, self.one_of = several("allOf"), several("anyOf"), several("oneOf")
        negated = schema.get("not")
        self.negated: SchemaNode | None = child(negated, "not") if negated is not None else None

    def structural(self) -> tuple[SchemaNode, ...]:
        rest = (self.additional, self.items)
        return (*self.properties.values(), *(node for node in rest if node is not None))

    def identity(self) -> Hashable:
        return (
            tuple((name, id(node)) for name, node in self.properties.items()),
            id(self.additional),
            id(self.items),
            tuple(map(id, self.all_of)),
            tuple(map(id, self.any_of)),
            tuple(map(id, self.one_of)),
            id(self.negated),
        )


_NESTED = frozenset(
    {"properties", "additionalProperties", "items", "allOf", "anyOf", "oneOf", "not", "description", "title", "example"}
)
_shared: WeakValueDictionary[Hashable, SchemaNode] = WeakValueDictionary()
"""The nodes in use, by their constraints. A child's id may be in the key, because a node references its children."""


class _Compiler:
    def __init__(self, *, native: bool) -> None:
        self._native = native

    def node(self, schema: Any, path: str, depth: int = 0) -> SchemaNode:
        if depth > MAX_DEPTH:
            raise SchemaError(f"{path}: nested more than {MAX_DEPTH} levels")
        if not isinstance(schema, Mapping):
            raise SchemaError(f"{path}: must be an object, is {problems.shown(schema)}")
        try:
            children = _Children(schema, self, path, depth)
            own = {key: value for key, value in schema.items() if key not in _NESTED}
            key = (self._native, orjson.dumps(own, option=orjson.OPT_SORT_KEYS), children.identity())
            found = _shared.get(key)
            if found is None:
                found = _shared[key] = SchemaNode(own, children, native=self._native)
        except (TypeError, AttributeError, KeyError) as error:
            raise SchemaError(f"{path}: malformed schema: {error}") from error
        return found


def compile_node(schema: Mapping[str, Any], *, native: bool = False) -> SchemaNode:
    """The node of a whole schema. Raises SchemaError when it is malformed, not when it is merely unstructural."""
    return _Compiler(native=native).node(schema, "openAPIV3Schema")


def _types(schema: Mapping[str, Any]) -> tuple[str, ...]:
    if schema.get("x-kubernetes-int-or-string"):
        return ("integer", "string")
    name = schema.get("type")
    return (name,) if name else ()
