"""The type view of a schema."""

from __future__ import annotations

from typing import Any

import orjson

from hortus.schema.merge import MergeSchema, compare, fields_of
from hortus.schema.merge.types import type_of

Object = dict[str, Any]


def test_a_schema_dict_that_two_kinds_share_is_one_type() -> None:
    shared: Object = {"type": "object", "properties": {"a": {"type": "string"}}}
    one = MergeSchema.compile({"type": "object", "properties": {"spec": shared}})
    two = MergeSchema.compile({"type": "object", "properties": {"template": shared}})
    assert one.root.field("spec") is two.root.field("template")
    assert one.root.field("metadata") is two.root.field("metadata")


def test_a_recursive_schema_ends() -> None:
    props: Object = {"type": "object", "properties": {"title": {"type": "string"}}}
    props["properties"]["not"] = props
    root = type_of(props)
    assert fields_of({"not": {"not": {"title": "x"}}}, root) == {"f:not": {"f:not": {"f:title": {}}}}


def test_an_embedded_object_has_the_metadata_of_any_other() -> None:
    template = {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-preserve-unknown-fields": True,
    }
    root = MergeSchema.compile({"type": "object", "properties": {"template": template}}).root
    obj = {"template": {"kind": "A", "metadata": {"finalizers": ["a/b"]}, "spec": {"x": [1]}}}
    assert fields_of(obj, root) == {
        "f:template": {
            "f:kind": {},
            "f:metadata": {"f:finalizers": {'v:"a/b"': {}}},
            "f:spec": {".": {}, "f:x": {}},
        }
    }


def test_a_single_all_of_equals_its_content() -> None:
    inner = {"type": "object", "additionalProperties": {"type": "string"}}
    root = type_of({"type": "object", "properties": {"a": {"allOf": [inner], "x-kubernetes-map-type": "atomic"}}})
    assert fields_of({"a": {"b": "c"}}, root) == {"f:a": {}}


def test_patch_strategies_serve_where_list_types_are_missing() -> None:
    items = {"type": "object", "properties": {"name": {"type": "string"}}}
    listed = {
        "type": "array",
        "items": items,
        "x-kubernetes-patch-strategy": "merge,retainKeys",
        "x-kubernetes-patch-merge-key": "name",
    }
    root = type_of({"type": "object", "properties": {"volumes": listed}})
    assert fields_of({"volumes": [{"name": "a"}]}, root) == {"f:volumes": {'k:{"name":"a"}': {".": {}, "f:name": {}}}}


def test_true_and_one_differ_wherever_they_stand() -> None:
    root = MergeSchema.compile(None).root
    assert compare({"a": {"b": 1}}, {"a": {"b": True}}, root).modified == {"f:a": {"f:b": {}}}
    assert compare({"a": [1]}, {"a": [True]}, root).modified == {"f:a": {}}
    assert compare({"a": 1}, {"a": 1.0}, root).modified == {}


def test_the_creator_does_not_own_the_fields_of_an_empty_object() -> None:
    schema: Object = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}},
    }
    empty = MergeSchema.compile(schema, empty={"spec": {}})
    assert orjson.dumps(compare(empty.empty, {"spec": {"a": "x"}}, empty.root).added) == b'{"f:spec":{"f:a":{}}}'
