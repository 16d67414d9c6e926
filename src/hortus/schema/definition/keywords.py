"""Keywords of a CRD's schema, one node after the other: allowed keywords, list types, and CEL rules.

Source: apiextensions.k8s.io/v1, JSONSchemaProps. Rules are compiled and their worst cost is bounded here, so that a
definition which could block the server is never served.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from typing import Any, NamedTuple

from hortus.schema import fieldpath
from hortus.schema.cel.binding import CompileError
from hortus.schema.cel.program import MAX_EXPRESSIONS, RULE_BUDGET, SCHEMA_BUDGET, Program
from hortus.schema.cel.shapes import MAX_REQUEST, CelShape
from hortus.schema.nodes import SchemaError, SchemaNode, compile_node
from hortus.schema.problems import FieldError, forbidden, invalid, json_text, not_supported, required
from hortus.schema.rules import compile_rule

Schema = Mapping[str, Any]

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_UNSUPPORTED = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_META = ("metadata", "kind", "apiVersion")
_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")


class SchemaPlace(NamedTuple):
    """The place of a schema and the restrictions there."""

    path: str
    root: bool = False
    no_defaults: str = ""
    """The reason why there can be no defaults, or empty."""
    in_metadata: bool = False
    uncorrelated: str = ""
    """The path below which members have no old selves, or empty."""

    def below(self, step: str, **changes: Any) -> SchemaPlace:
        return self._replace(path=f"{self.path}.{step}", root=False, **changes)


def check_keywords(schema: Schema, path: str) -> list[FieldError]:
    """Reports the keywords anywhere in `schema` that a CRD may not use."""
    return list(_node(schema, SchemaPlace(path, root=True)))


def _node(schema: Schema, place: SchemaPlace) -> Iterator[FieldError]:
    yield from _unsupported(schema, place)
    yield from _additional(schema, place)
    yield from _properties(schema, place)
    if isinstance(schema.get("not"), Mapping):
        yield from _node(schema["not"], place.below("not"))
    for keyword in ("allOf", "oneOf", "anyOf"):
        for number, branch in enumerate(schema.get(keyword) or []):
            yield from _node(branch, place.below(f"{keyword}[{number}]"))
    yield from _items(schema, place)
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        yield invalid(f"{place.path}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined")
    yield from _map_type(schema, place.path)
    yield from _list_type(schema, place.path)
    yield from _list_map(schema, place.path)
    yield from _list_members(schema, place.path)
    for number, rule in enumerate(schema.get("x-kubernetes-validations") or []):
        yield from _rule(rule, schema, f"{place.path}.x-kubernetes-validations[{number}]")


def _unsupported(schema: Schema, place: SchemaPlace) -> Iterator[FieldError]:
    path, kind = place.path, schema.get("type") or ""
    if kind and kind not in _TYPES:
        yield not_supported(f"{path}.type", kind, _TYPES)
    if schema.get("default") is not None and place.no_defaults:
        yield forbidden(f"{path}.default", f"must not be set {place.no_defaults}")
    for name in _UNSUPPORTED:
        if schema.get(name):
            yield forbidden(f"{path}.{name}", f"{name} is not supported")
    if kind == "null":
        yield forbidden(f"{path}.type", "type cannot be set to null, use nullable as an alternative")
    if isinstance(schema.get("items"), list):
        yield forbidden(f"{path}.items", "items must be a schema object and not an array")
    if place.in_metadata and schema.get("x-kubernetes-embedded-resource"):
        yield forbidden(f"{path}.x-kubernetes-embedded-resource", "must not be used inside of resource meta")
    if schema.get("uniqueItems"):
        text = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden(f"{path}.uniqueItems", text)


def _additional(schema: Schema, place: SchemaPlace) -> Iterator[FieldError]:
    additional = schema.get("additionalProperties")
    if additional is None:
        return
    if schema.get("properties") and additional is not True:
        yield forbidden(
            f"{place.path}.additionalProperties", "additionalProperties and properties are mutual exclusive"
        )
    if isinstance(additional, Mapping):
        reason = "inside additionalProperties applying to object metadata" if place.in_metadata else place.no_defaults
        yield from _node(additional, place.below("additionalProperties", no_defaults=reason))


def _properties(schema: Schema, place: SchemaPlace) -> Iterator[FieldError]:
    resource = place.root or bool(schema.get("x-kubernetes-embedded-resource"))
    for name, child in (schema.get("properties") or {}).items():
        below = place.below(f"properties[{name}]")
        if resource and name in _META:
            reason = f"in top-level {name}" if place.root else place.no_defaults
            below = below._replace(in_metadata=True, no_defaults=reason)
        yield from _node(child, below)


def _items(schema: Schema, place: SchemaPlace) -> Iterator[FieldError]:
    items = schema.get("items")
    if isinstance(items, Mapping):
        yield from _node(items, place.below("items"))


def _map_type(schema: Schema, path: str) -> Iterator[FieldError]:
    map_type = schema.get("x-kubernetes-map-type")
    if map_type is None:
        return
    kind = schema.get("type") or ""
    if kind != "object":
        text = "must be object if x-kubernetes-map-type is specified"
        yield invalid(f"{path}.type", kind, text) if kind else required(f"{path}.type", text)
    if map_type not in ("atomic", "granular"):
        yield not_supported(f"{path}.x-kubernetes-map-type", map_type, ("atomic", "granular"))


def _list_type(schema: Schema, path: str) -> Iterator[FieldError]:
    list_type = schema.get("x-kubernetes-list-type")
    keys = schema.get("x-kubernetes-list-map-keys") or []
    where = f"{path}.x-kubernetes-list-type"
    if list_type is not None:
        kind = schema.get("type") or ""
        if kind != "array":
            text = "must be array if x-kubernetes-list-type is specified"
            yield invalid(f"{path}.type", kind, text) if kind else required(f"{path}.type", text)
        elif list_type == "set":
            items = schema.get("items")
            yield from _set_items(items if isinstance(items, Mapping) else {}, f"{path}.items")
        if list_type not in ("atomic", "set", "map"):
            yield not_supported(where, list_type, ("atomic", "set", "map"))
    if keys and list_type != "map":
        text = "must be map if x-kubernetes-list-map-keys is non-empty"
        yield required(where, text) if list_type is None else invalid(where, list_type, text)


def _set_items(items: Schema, path: str) -> Iterator[FieldError]:
    """Members of a set are compared as wholes, so they must be atomic."""
    text = "must be atomic as item of a list with x-kubernetes-list-type=set"
    inner = items.get("x-kubernetes-list-type")
    if items.get("type") == "array" and inner not in (None, "atomic"):
        yield invalid(f"{path}.x-kubernetes-list-type", inner, text)
    if items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
        yield invalid(f"{path}.x-kubernetes-map-type", inner, text)


def _list_map(schema: Schema, path: str) -> Iterator[FieldError]:
    if schema.get("x-kubernetes-list-type") != "map":
        return
    keys = schema.get("x-kubernetes-list-map-keys") or []
    items = schema.get("items")
    if not keys:
        yield required(f"{path}.x-kubernetes-list-map-keys", "must not be empty if x-kubernetes-list-type is map")
    if items is None:
        yield required(f"{path}.items", "must have a schema if x-kubernetes-list-type is map")
    if not isinstance(items, Mapping):
        return
    kind = items.get("type") or ""
    if kind != "object":
        text = "must be object if parent array's x-kubernetes-list-type is map"
        yield invalid(f"{path}.items.type", kind, text)
        return
    yield from _map_keys(keys, items, path)


def _map_keys(keys: list[str], items: Schema, path: str) -> Iterator[FieldError]:
    properties = items.get("properties") or {}
    where = f"{path}.x-kubernetes-list-map-keys"
    for number, key in enumerate(keys):
        if key not in properties:
            yield invalid(where, keys, "entries must all be names of item properties")
        elif properties[key].get("type") in ("array", "object"):
            text = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            yield invalid(f"{path}.items.properties[{key}].type", items.get("type"), text)
        if key in keys[:number]:
            yield invalid(where, keys, "must not contain duplicate entries")


def _list_members(schema: Schema, path: str) -> Iterator[FieldError]:
    """Members that are merged one by one must be declared, each with a key."""
    list_type, items = schema.get("x-kubernetes-list-type"), schema.get("items")
    if list_type not in ("set", "map") or not isinstance(items, Mapping):
        return
    if items.get("nullable"):
        yield forbidden(f"{path}.items.nullable", f"cannot be nullable when x-kubernetes-list-type is {list_type}")
    if list_type != "map":
        return
    properties, needed = items.get("properties") or {}, items.get("required") or ()
    for key in schema.get("x-kubernetes-list-map-keys") or []:
        if key not in properties:
            continue
        where = f"{path}.items.properties[{key}]"
        if key not in needed and properties[key].get("default") is None:
            text = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
            yield required(f"{where}.default", text)
        if properties[key].get("nullable"):
            text = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable"
            yield forbidden(f"{where}.nullable", text)


def _rule(rule: Schema, schema: Schema, path: str) -> Iterator[FieldError]:
    """The form of a rule; `check_rules` compiles it."""
    text, message = str(rule.get("rule") or ""), str(rule.get("message") or "")
    if not text.strip():
        yield required(f"{path}.rule", "rule is not specified")
    elif message and not message.strip():
        yield invalid(f"{path}.message", message, "must be non-empty if specified")
    elif _broken(message.strip()):
        yield invalid(f"{path}.message", message, "must not contain line breaks")
    elif _broken(text.strip()) and not message.strip():
        yield required(f"{path}.message", "message must be specified if rule contains line breaks")
    computed = rule.get("messageExpression")
    if computed and not computed.strip():
        yield required(f"{path}.messageExpression", "messageExpression must be non-empty if specified")
    reason = rule.get("reason")
    if reason is not None and reason not in _REASONS:
        yield not_supported(f"{path}.reason", reason, _REASONS)
    field = rule.get("fieldPath") or ""
    if field and not field.strip():
        yield invalid(f"{path}.fieldPath", field, "must be non-empty if specified")
    if _broken(field):
        yield invalid(f"{path}.fieldPath", field, "must not contain line breaks")
    if field and not _leads_somewhere(field, schema):
        yield invalid(f"{path}.fieldPath", field, "must be a valid path")


def _leads_somewhere(field: str, schema: Schema) -> bool:
    try:
        return fieldpath.normalized(field, compile_node(schema)) is not None
    except SchemaError:
        return True  # other problems of the schema are reported instead


def _broken(text: str) -> bool:
    return "\n" in text or "\r" in text


# CEL rules


class _Total:
    """The worst cost of all rules of a schema, and their length."""

    def __init__(self) -> None:
        self.cost = 0.0
        self._length = 0
        self.rules: list[tuple[float, str]] = []

    def add(self, cost: float, path: str) -> None:
        self.cost += cost
        self.rules.append((cost, path))

    def admits(self, text: str) -> bool:
        """Reports whether one more expression may be compiled."""
        self._length += len(text)
        return self._length <= MAX_EXPRESSIONS


_TOO_LONG = f"the expressions of the schema may have {MAX_EXPRESSIONS} characters together"


def check_rules(node: SchemaNode, path: str) -> list[FieldError]:
    """Compile every rule below `node` and bound its cost; for schemas without other problems."""
    total = _Total()
    found = list(_rules(node, SchemaPlace(path, root=True), 1, total))
    if total.cost > SCHEMA_BUDGET:
        text = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
        found += [forbidden(where, text) for _, where in sorted(total.rules, reverse=True)[:4]]
        name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        found.append(forbidden(path, _over(name, total.cost, SCHEMA_BUDGET)))
    return found


def _rules(node: SchemaNode, place: SchemaPlace, often: float | None, total: _Total) -> Iterator[FieldError]:
    """`often` is how many such values an object can hold, None when only the size of a request bounds the number."""
    if not node.has_rules_below:
        return
    shape = CelShape(node, root=place.root or node.embedded)
    times = often if often is not None else MAX_REQUEST // max(1, shape.least_bytes)
    for number, rule in enumerate(node.rules):
        where = f"{place.path}.x-kubernetes-validations[{number}]"
        yield from _compiled(rule, shape, where, place.uncorrelated, times, total)
    for name, child in node.properties.items():
        yield from _rules(child, place.below(f"properties[{name}]"), often, total)
    if node.additional is not None:
        most = node.schema.get("maxProperties")
        yield from _rules(node.additional, place.below("additionalProperties"), _times(often, most), total)
    if node.items is not None:
        lost = place.uncorrelated or ("" if node.list_type == "map" else place.path)
        most = node.schema.get("maxItems")
        yield from _rules(node.items, place.below("items", uncorrelated=lost), _times(often, most), total)


def _times(often: float | None, most: int | None) -> float | None:
    return None if often is None or most is None else often * most


def _compiled(
    rule: Schema, shape: CelShape, path: str, uncorrelated: str, times: float, total: _Total
) -> Iterator[FieldError]:
    program = yield from _checked(rule, "rule", shape, path, times, total)
    if program is None:
        return
    if rule.get("messageExpression"):
        yield from _checked(rule, "messageExpression", shape, path, 1, total)
    if "oldSelf" in program.reads:
        if uncorrelated:
            text = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelated}"
            yield invalid(f"{path}.rule", rule.get("rule"), text)
    elif rule.get("optionalOldSelf") is not None:
        text = "may not be set if oldSelf is not used in rule"
        yield invalid(f"{path}.optionalOldSelf", rule["optionalOldSelf"], text)


def _checked(
    rule: Schema, field: str, shape: CelShape, path: str, times: float, total: _Total
) -> Generator[FieldError, None, Program | None]:
    """Yields the problems of one expression of a rule, and returns its program, if there is one."""
    text, where, name = str(rule.get(field)), f"{path}.{field}", f"estimated {field} cost"
    if not total.admits(text):
        yield forbidden(where, _TOO_LONG)
        return None
    returns = "bool" if field == "rule" else "string"
    try:
        program = compile_rule(text, shape, returns=returns, optional=bool(rule.get("optionalOldSelf")))
    except CompileError as error:
        if error.cost * times > RULE_BUDGET:
            yield from _afforded(error.cost, name, where, times, total)
        else:
            yield _internal(rule, where, str(error))
        return None
    yield from _afforded(program.cost, name, where, times, total)
    return program


def _afforded(once: float, name: str, path: str, times: float, total: _Total) -> Iterator[FieldError]:
    cost = once * times
    total.add(cost, path)
    if cost > RULE_BUDGET:
        yield forbidden(path, _over(name, cost, RULE_BUDGET))


def _over(name: str, cost: float, budget: float) -> str:
    ratio = cost / budget
    factor = "more than 100x" if ratio > 100 else f"{ratio:f}x" if ratio < 1.5 else f"{ratio:.1f}x"
    advice = (
        "try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings"
    )
    return f"{name} exceeds budget by factor of {factor} ({advice} are declared)"


def _internal(rule: Schema, path: str, text: str) -> FieldError:
    """An error with the rule as kube-apiserver prints its internal form."""
    copy = {
        "Rule": rule.get("rule", ""),
        "Message": rule.get("message", ""),
        "MessageExpression": rule.get("messageExpression", ""),
        "Reason": rule.get("reason"),
        "FieldPath": rule.get("fieldPath", ""),
        "OptionalOldSelf": rule.get("optionalOldSelf"),
    }
    members = ",".join(f'"{name}":{json_text(value)}' for name, value in copy.items())
    return FieldError(path, f"Invalid value: {{{members}}}: {text}")
