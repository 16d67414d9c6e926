"""Claims about compiled structural schemas: pruning, defaulting, validation."""

from __future__ import annotations

from typing import Any

import pytest

from hortus.schema import SchemaError, Structural
from hortus.schema.checks import number_checks
from hortus.schema.problems import invalid


def structural(spec: dict[str, Any], **root: Any) -> Structural:
    return Structural.compile({"type": "object", "properties": {"spec": spec}, **root})


def complaints(schema: Structural, obj: Any, old: Any = None) -> list[str]:
    return [str(problem) for problem in schema.validate(obj, old)]


def errors(spec: dict[str, Any], value: Any, old: Any = None) -> list[str]:
    """The complaints about `spec: value`; `old` is a whole old spec."""
    return complaints(structural(spec), {"spec": value}, None if old is None else {"spec": old})


@pytest.mark.parametrize(
    ("spec", "value", "sentence"),
    [
        ({"type": "integer"}, "x", 'spec: Invalid value: "string": spec in body must be of type integer: "string"'),
        ({"type": "integer"}, True, 'spec: Invalid value: "boolean": spec in body must be of type integer: "boolean"'),
        ({"type": "integer"}, 1.5, 'spec: Invalid value: "number": spec in body must be of type integer: "number"'),
        ({"type": "string"}, None, 'spec: Invalid value: "null": spec in body must be of type string: "null"'),
        ({"type": "string", "maxLength": 2}, "abc", "spec: Too long: may not be more than 2 bytes"),
        (
            {"type": "string", "minLength": 2},
            "a",
            'spec: Invalid value: "a": spec in body should be at least 2 chars long',
        ),
        ({"type": "string", "pattern": "^a$"}, "b", "spec: Invalid value: \"b\": spec in body should match '^a$'"),
        ({"type": "string", "enum": ["a", "b"]}, "c", 'spec: Unsupported value: "c": supported values: "a", "b"'),
        ({"type": "integer", "enum": [1, 2]}, 3, 'spec: Unsupported value: 3: supported values: "1", "2"'),
        (
            {"type": "integer", "minimum": 1},
            0,
            "spec: Invalid value: 0: spec in body should be greater than or equal to 1",
        ),
        (
            {"type": "number", "maximum": 1.5, "exclusiveMaximum": True},
            1.5,
            "spec: Invalid value: 1.5: spec in body should be less than 1.5",
        ),
        ({"type": "integer", "multipleOf": 5}, 7, "spec: Invalid value: 7: spec in body should be a multiple of 5"),
        (
            {"type": "array", "items": {"type": "string"}, "maxItems": 1},
            ["a", "b"],
            "spec: Too many: 2: must have at most 1 item",
        ),
        (
            {"type": "array", "items": {"type": "string"}, "minItems": 1},
            [],
            "spec: Invalid value: 0: spec in body should have at least 1 items",
        ),
        (
            {"type": "object", "additionalProperties": {"type": "string"}, "minProperties": 1},
            {},
            "spec: Invalid value: 0: spec in body should have at least 1 properties",
        ),
        (
            {"type": "string", "format": "date-time"},
            "yesterday",
            'spec: Invalid value: "yesterday": spec in body must be of type date-time: "yesterday"',
        ),
        (
            {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            ["a", "b", "a"],
            'spec[2]: Duplicate value: "a"',
        ),
    ],
)
def test_a_broken_rule_is_reported_in_the_words_of_kubernetes(spec: dict[str, Any], value: Any, sentence: str) -> None:
    assert errors(spec, value) == [sentence]


def test_a_missing_field_is_reported_at_its_own_path() -> None:
    spec = {"type": "object", "required": ["shoot"], "properties": {"shoot": {"type": "object"}}}
    [problem] = structural(spec).validate({"spec": {}})
    assert (str(problem), problem.reason) == ("spec.shoot: Required value", "FieldValueRequired")


def test_a_whole_float_counts_as_an_integer() -> None:
    assert errors({"type": "integer"}, 2.0) == []


def test_numbers_with_a_32_bit_format_keep_their_range_only_for_native_kinds() -> None:
    schema = {"type": "object", "properties": {"spec": {"type": "integer", "format": "int32"}}}
    assert Structural.compile(schema).validate({"spec": 2**40}) == []
    assert Structural.compile(schema, native=True).validate({"spec": 2**40}) != []


def test_an_int_or_string_takes_both_and_nothing_else() -> None:
    spec = {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}
    assert errors(spec, 1) == errors(spec, "50%") == []
    assert 'spec: Invalid value: "boolean": spec in body must be of type integer,string: "boolean"' in errors(
        spec, True
    )


def test_alternatives_that_all_fail_name_the_field_and_the_closest_complaint() -> None:
    spec = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}
    spec |= {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}
    assert errors(spec, {}) == [
        '<nil>: Invalid value: "": "spec" must validate one and only one schema (oneOf). Found none valid',
        "spec.a: Required value",
    ]
    assert errors(spec, {"a": "", "b": ""}) == [
        '<nil>: Invalid value: "": "spec" must validate one and only one schema (oneOf). Found 2 valid alternatives'
    ]


def test_members_of_a_keyed_list_are_duplicates_by_their_keys() -> None:
    item = {"type": "object", "properties": {"type": {"type": "string"}, "status": {"type": "string"}}}
    spec = {"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
    value = [{"type": "Ready", "status": "True"}, {"type": "Ready", "status": "False"}]
    assert errors(spec, value) == ['spec[1]: Duplicate value: {"type":"Ready"}']


def test_pruning_drops_and_names_undeclared_fields() -> None:
    schema = structural(
        {
            "type": "object",
            "properties": {
                "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "map": {"type": "object", "additionalProperties": {"type": "string"}},
            },
        }
    )
    obj = {
        "apiVersion": "v1",
        "kind": "X",
        "metadata": {"name": "x", "colour": "red"},
        "spec": {"list": [{"a": "", "b": ""}], "free": {"any": {"thing": 1}}, "map": {"k": "v"}, "odd": 1},
        "status": {},
    }
    assert schema.prune(obj) == ["metadata.colour", "spec.list[0].b", "spec.odd", "status"]
    assert obj == {
        "apiVersion": "v1",
        "kind": "X",
        "metadata": {"name": "x"},
        "spec": {"list": [{"a": ""}], "free": {"any": {"thing": 1}}, "map": {"k": "v"}},
    }


def test_pruning_reaches_known_fields_below_preserved_ones() -> None:
    known = {"type": "object", "properties": {"a": {"type": "string"}}}
    schema = structural(
        {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"known": known}}
    )
    obj = {"spec": {"other": {"b": 1}, "known": {"a": "", "b": 1}}}
    assert schema.prune(obj) == ["spec.known.b"]


def test_an_embedded_resource_keeps_its_type_and_metadata_and_must_have_a_type() -> None:
    schema = structural(
        {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"spec": {"type": "object"}}}
    )
    obj = {"spec": {"apiVersion": "v1", "metadata": {"name": "a/b", "bogus": 1}, "data": {}}}
    assert schema.prune(obj) == ["spec.data", "spec.metadata.bogus"]
    assert complaints(schema, obj) == [
        "spec.kind: Required value",
        "spec.metadata.name: Invalid value: \"a/b\": may not contain '/'",
    ]


def test_defaults_reach_into_present_parents_only() -> None:
    inner = {"type": "object", "properties": {"size": {"type": "string", "default": "10Gi"}}}
    schema = structural(
        {
            "type": "object",
            "properties": {
                "volume": inner,
                "tls": {"type": "object", "default": {}, "properties": {"on": {"type": "boolean", "default": True}}},
                "list": {"type": "array", "items": inner},
            },
        }
    )
    obj: dict[str, Any] = {"spec": {"list": [{}]}}
    schema.default(obj)
    assert obj == {"spec": {"tls": {"on": True}, "list": [{"size": "10Gi"}]}}


def test_a_null_is_defaulted_or_dropped_unless_the_field_is_nullable() -> None:
    schema = structural(
        {
            "type": "object",
            "properties": {
                "gone": {"type": "string"},
                "kept": {"type": "string", "nullable": True, "default": "x"},
                "filled": {"type": "string", "default": "x"},
            },
        }
    )
    obj = {"spec": {"gone": None, "kept": None, "filled": None}}
    schema.default(obj)
    assert obj == {"spec": {"kept": None, "filled": "x"}}


def test_defaults_are_never_shared_between_objects() -> None:
    schema = structural({"type": "object", "default": {"list": []}})
    first: dict[str, Any] = {}
    second: dict[str, Any] = {}
    schema.default(first)
    schema.default(second)
    first["spec"]["list"].append(1)
    assert second == {"spec": {"list": []}}


def test_an_update_may_keep_but_not_change_an_invalid_value() -> None:
    spec = {"type": "object", "properties": {"a": {"type": "string", "maxLength": 1}, "b": {"type": "string"}}}
    assert errors(spec, {"a": "long", "b": "new"}, {"a": "long", "b": "old"}) == []
    assert errors(spec, {"a": "longer"}, {"a": "long"}) == ["spec.a: Too long: may not be more than 1 bytes"[:-1]]


def test_members_of_a_keyed_list_ratchet_wherever_they_moved() -> None:
    item = {"type": "object", "properties": {"name": {"type": "string"}, "v": {"type": "string", "maxLength": 2}}}
    spec = {"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
    old = [{"name": "a", "v": "long"}]
    assert errors(spec, [{"name": "b", "v": "ok"}, {"name": "a", "v": "long"}], old) == []
    plain = {"type": "array", "items": item}
    assert errors(plain, [{"name": "b", "v": "ok"}, {"name": "a", "v": "long"}], old) != []


def test_equal_sub_schemas_share_one_node_whatever_their_descriptions() -> None:
    def shaped(text: str) -> dict[str, Any]:
        return {"type": "object", "description": text, "properties": {"a": {"type": "string", "maxLength": 77}}}

    schema = structural({"type": "object", "properties": {"x": shaped("one"), "y": shaped("two")}})
    spec = schema.node.properties["spec"]
    assert spec.properties["x"] is spec.properties["y"]


@pytest.mark.parametrize("schema", [{"type": "text"}, {"type": "object", "properties": ["a"]}, {"items": 3}])
def test_a_malformed_schema_is_refused_with_its_place(schema: dict[str, Any]) -> None:
    with pytest.raises(SchemaError, match="openAPIV3Schema"):
        Structural.compile(schema)


def test_a_schema_nested_beyond_reason_is_refused() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(300):
        schema = {"type": "object", "properties": {"a": schema}}
    with pytest.raises(SchemaError, match="nested"):
        Structural.compile(schema)


class Counted(float):
    """A number that counts its comparisons."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        type(self).compared += 1
        return float(self) == other

    def __le__(self, other: float) -> bool:
        type(self).compared += 1
        return float(self) <= other

    def __ge__(self, other: float) -> bool:
        type(self).compared += 1
        return float(self) >= other

    __hash__ = float.__hash__


def test_a_fraction_is_compared_with_the_bounds_of_an_int32_and_with_nothing_between() -> None:
    (fits,) = number_checks({"type": "integer", "format": "int32"}, native=True)
    assert fits(Counted(1.5), "spec") is None  # of another type, which the check of types reports
    assert Counted.compared <= 2
    assert fits(3e9, "spec") == invalid("spec", 3e9, "spec in body must fit into 32 bits")


def test_a_fraction_in_an_int32_is_of_another_type() -> None:
    schema = {"type": "object", "properties": {"spec": {"type": "integer", "format": "int32"}}}
    (found,) = Structural.compile(schema, native=True).validate({"spec": 1.5})
    assert (found.path, found.reason) == ("spec", "FieldValueTypeInvalid")
