"""Claims about JSON Schema validation: the same verdicts as a library of others, and nothing fetched or endless."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hortus.schema.jsonschema import JsonSchema, JsonSchemaError

DRAFT_7 = "http://json-schema.org/draft-07/schema#"

_VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-3, 9), st.sampled_from([1.0, 1.5, -2.5]), st.text("ab1 ", max_size=4)
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3)
    ),
    max_leaves=6,
)
_TYPES = st.sampled_from(["null", "boolean", "object", "array", "string", "number", "integer"])


def _keywords(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    small = st.integers(0, 3)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": st.one_of(_TYPES, st.lists(_TYPES, min_size=1, max_size=2, unique=True)),
            "enum": st.lists(_VALUES, min_size=1, max_size=3),
            "const": _VALUES,
            "minimum": small,
            "exclusiveMaximum": st.integers(0, 9),
            "multipleOf": st.sampled_from([1, 2, 0.5]),
            "minLength": small,
            "maxLength": small,
            "pattern": st.sampled_from(["^a", "b$", "[0-9]+"]),
            "minItems": small,
            "maxItems": small,
            "uniqueItems": st.booleans(),
            "minProperties": small,
            "maxProperties": small,
            "required": st.lists(st.sampled_from(["a", "b"]), max_size=2, unique=True),
            "properties": st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2),
            "patternProperties": st.dictionaries(st.sampled_from(["^a", "c"]), inner, max_size=1),
            "additionalProperties": st.one_of(st.booleans(), inner),
            "propertyNames": st.just({"pattern": "^[ab]$"}),
            "items": st.one_of(inner, st.lists(inner, min_size=1, max_size=2)),
            "additionalItems": st.one_of(st.booleans(), inner),
            "contains": inner,
            "allOf": st.lists(inner, min_size=1, max_size=2),
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "oneOf": st.lists(inner, min_size=1, max_size=2),
            "not": inner,
            "if": inner,
            "then": inner,
            "else": inner,
            "dependencies": st.just({"a": ["b"], "b": {"type": "object"}}),
        },
    )


_SCHEMAS = st.recursive(st.one_of(st.booleans(), _keywords(st.booleans())), _keywords, max_leaves=4)


@settings(max_examples=300, deadline=None)
@given(_SCHEMAS, _VALUES)
def test_a_verdict_is_that_of_another_validator(schema: Any, value: Any) -> None:
    document = {"$schema": DRAFT_7, "allOf": [schema]}
    expected = jsonschema_rs.validator_for(document).is_valid(value)
    assert (not JsonSchema.compile(document).validate(value)) is expected


@pytest.mark.parametrize(
    ("schema", "value", "fits"),
    [
        ({"$ref": "#/$defs/x", "$defs": {"x": {"type": "string"}}}, "a", True),
        ({"$ref": "#/$defs/x", "$defs": {"x": {"type": "string"}}}, 1, False),
        ({"properties": {"n": {"$ref": "#"}}, "type": "object"}, {"n": {"n": {}}}, True),
        ({"properties": {"n": {"$ref": "#"}}, "type": "object"}, {"n": {"n": 1}}, False),
        ({"$ref": "#here", "$defs": {"x": {"$anchor": "here", "const": 1}}}, 1, True),
        ({"$ref": "urn:example:x"}, 5, True),
        ({"prefixItems": [{"type": "string"}], "items": False}, ["a"], True),
        ({"prefixItems": [{"type": "string"}], "items": False}, ["a", 1], False),
        ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, False),
        ({"dependentSchemas": {"a": {"minProperties": 2}}}, {"a": 1, "b": 2}, True),
        ({"contains": {"const": 1}, "minContains": 2}, [1, 1], True),
        ({"contains": {"const": 1}, "maxContains": 1}, [1, 1], False),
        ({"format": "ipv4"}, "no", True),
        ({"$schema": DRAFT_7, "format": "ipv4"}, "no", False),
        ({"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 1, "exclusiveMinimum": True}, 1, False),
        ({"const": True}, 1, False),
        ({"multipleOf": 0.1}, 0.3, True),
    ],
)
def test_keywords_of_several_drafts(schema: Any, value: Any, fits: bool) -> None:
    assert (not JsonSchema.compile(schema).validate(value)) is fits


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"unevaluatedProperties": False}, "unevaluatedProperties, which is not supported"),
        ({"$ref": "https://example.com/x.json"}, "not fetched"),
        ({"$ref": "#/nope"}, "not there"),
        ({"properties": {"a": {"type": "strin"}}}, "unknown type"),
        ({"pattern": "("}, "pattern"),
        ({"minimum": "1"}, "must be a number"),
        ({"allOf": {}}, "list of schemas"),
        (5, "must be an object or a boolean"),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused_by_name(schema: Any, problem: str) -> None:
    with pytest.raises(JsonSchemaError, match=problem):
        JsonSchema.compile(schema)


def test_a_schema_that_refers_to_itself_without_end_ends() -> None:
    endless = JsonSchema.compile(
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}
    )
    with pytest.raises(JsonSchemaError, match="levels"):
        endless.validate(1)
    deep: Any = {}
    for _ in range(500):
        deep = {"not": deep}
    with pytest.raises(JsonSchemaError, match="nested"):
        JsonSchema.compile(deep)


def test_a_violation_names_the_place_and_the_expectation() -> None:
    schema = JsonSchema.compile(
        {"properties": {"a/b": {"items": {"type": ["string", "null"]}}}, "required": ["x", "y"]}
    )
    assert list(map(str, schema.validate({"a/b": [1]}))) == [
        "at '': missing properties 'x', 'y'",
        "at '/a~1b/0': got number, want null or string",
    ]
