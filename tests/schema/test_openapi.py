"""Claims about schemas as OpenAPI documents publish them."""

from __future__ import annotations

from typing import Any

from hortus.schema.openapi import META_SCHEMAS, Published, published, published_list, schema_name

FOO = Published("example.org", "v1", "Foo", "FooList", "foos")
OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


def v2(spec: dict[str, Any]) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"spec": spec}}
    shown: dict[str, Any] = published(schema, FOO, v2=True)["properties"]["spec"]
    return shown


def test_a_kind_is_named_by_its_group_turned_around() -> None:
    assert FOO.name == "org.example.v1.Foo"
    assert schema_name("apps", "v1", "Deployment") == "io.k8s.api.apps.v1.Deployment"
    assert schema_name("", "v1", "Pod") == "io.k8s.api.core.v1.Pod"


def test_the_root_names_its_kind_and_shares_its_metadata() -> None:
    shown = published({"type": "object", "properties": {"metadata": {"type": "object"}}}, FOO)
    assert shown["x-kubernetes-group-version-kind"] == [{"group": "example.org", "version": "v1", "kind": "Foo"}]
    assert shown["properties"]["metadata"]["allOf"] == [{"$ref": f"#/components/schemas/{OBJECT_META}"}]
    assert OBJECT_META in META_SCHEMAS
    assert shown["properties"]["kind"]["type"] == "string"


def test_version_3_keeps_keywords_that_version_2_lacks() -> None:
    spec = {"type": "object", "properties": {"a": {"type": "string"}}, "oneOf": [{"required": ["a"]}]}
    schema = {"type": "object", "properties": {"spec": spec}}
    assert published(schema, FOO)["properties"]["spec"] == spec
    assert v2(spec) == {"type": "object", "properties": {"a": {"type": "string"}}}


def test_in_version_2_values_of_unknown_content_have_no_type_and_no_fields() -> None:
    inner = {"properties": {"a": {"type": "string"}}}
    keeps = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    assert v2({**keeps, **inner}) == {"x-kubernetes-preserve-unknown-fields": True}
    assert v2({"type": "object", "nullable": True, **inner}) == {}
    assert v2({"type": "object", "properties": {"a": {"type": "string", "nullable": True}}, "required": ["a"]}) == {
        "type": "object",
        "properties": {"a": {}},
    }
    whole = published({**keeps, **inner}, FOO, v2=True)
    assert "properties" not in whole


def test_an_embedded_resource_shows_a_type_and_metadata() -> None:
    spec = {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"spec": {"type": "object"}}}
    shown = v2(spec)
    assert sorted(shown["properties"]) == ["apiVersion", "kind", "metadata", "spec"]
    assert shown["required"] == ["kind", "apiVersion"]


def test_a_list_refers_to_its_kind_in_the_way_of_the_document() -> None:
    assert published_list(FOO)["properties"]["items"]["items"] == {"$ref": "#/components/schemas/org.example.v1.Foo"}
    assert published_list(FOO, v2=True)["properties"]["items"]["items"] == {"$ref": "#/definitions/org.example.v1.Foo"}


def test_publishing_changes_nothing_that_it_was_given() -> None:
    spec = {"type": "object", "nullable": True, "required": ["a"], "properties": {"a": {"type": "string"}}}
    schema = {"type": "object", "properties": {"spec": spec}}
    before = repr(schema)
    published(schema, FOO, v2=True)
    published(schema, FOO)
    assert repr(schema) == before
