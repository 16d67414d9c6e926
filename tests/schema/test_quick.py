"""The walk finds no problem in values that the predicate accepts, and the predicate accepts plainly valid values."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hortus.schema import Structural
from hortus.schema.lists import check_lists
from hortus.schema.nodes import compile_node
from hortus.schema.problems import FieldError
from hortus.schema.quick import predicate

_NAMES = st.sampled_from(["a", "b", "c", "type"])
_NUMBERS = st.integers(-3, 12) | st.sampled_from([2**31, 2**63, 2**63 - 1, 1.0, 1.5, 2.0**60])
_SCALARS = st.none() | st.booleans() | _NUMBERS | st.sampled_from(["", "a", "ab", "2025-01-01T00:00:00Z", "5", "10Mi"])
VALUES = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=3), max_leaves=8
)


def _with(base: dict[str, Any], **optional: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({key: st.just(value) for key, value in base.items()}, optional=optional)


_FEW = st.integers(0, 3)
_TEXT = _with(
    {"type": "string"},
    maxLength=_FEW,
    minLength=_FEW,
    pattern=st.sampled_from(["^a", "b$", "("]),
    format=st.sampled_from(["date-time", "int-or-string", "unknown", "ipv4"]),
    enum=st.lists(st.sampled_from(["a", "ab", 1, True]), min_size=1, max_size=2),
    nullable=st.booleans(),
)
_NUMBER = st.one_of(
    *(
        _with(
            {"type": name},
            minimum=_FEW,
            maximum=_FEW,
            exclusiveMaximum=st.booleans(),
            multipleOf=st.integers(1, 3),
            format=st.sampled_from(["int32", "int64", "double"]),
            enum=st.just([1, 2]),
        )
        for name in ("integer", "number")
    )
)
_LEAVES = st.one_of(
    _TEXT,
    _NUMBER,
    st.just({"type": "boolean"}),
    st.just({"x-kubernetes-int-or-string": True}),
    st.just({"x-kubernetes-preserve-unknown-fields": True}),
    st.just({}),
)


def _nested(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    several = st.lists(inner, min_size=1, max_size=2)
    listed = _with(
        {"type": "array"},
        items=inner,
        maxItems=_FEW,
        minItems=_FEW,
        uniqueItems=st.booleans(),
        **{
            "x-kubernetes-list-type": st.sampled_from(["set", "map", "atomic"]),
            "x-kubernetes-list-map-keys": st.lists(_NAMES, min_size=1, max_size=2, unique=True),
        },
    )
    keyed = _with(
        {"type": "object"},
        properties=st.dictionaries(_NAMES, inner, max_size=3),
        required=st.lists(_NAMES, max_size=1),
        maxProperties=_FEW,
    )
    mapped = _with({"type": "object"}, additionalProperties=inner, minProperties=_FEW)
    junctors = _with({}, anyOf=several, oneOf=several, allOf=several, **{"not": inner})
    return listed | keyed | mapped | junctors


SCHEMAS = st.recursive(_LEAVES, _nested, max_leaves=6)


def walked(schema: dict[str, Any], value: Any, *, native: bool) -> list[FieldError]:
    found: list[FieldError] = []
    node = compile_node(schema, native=native)
    node.check(value, "", found)
    check_lists(value, node, "", found)
    return found


@given(SCHEMAS, VALUES, st.booleans())
@settings(max_examples=500, deadline=None)
def test_accepted_values_are_valid(schema: dict[str, Any], value: Any, native: bool) -> None:
    if predicate(compile_node(schema, native=native))(value):
        assert not walked(schema, value, native=native)


GOOD = {
    "name": "a",
    "count": 3,
    "share": 0.5,
    "on": True,
    "zones": ["a", "b"],
    "ports": [{"name": "web", "port": "http"}, {"name": "api", "port": 80}],
    "more": {"x": "y"},
}
SCHEMA = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "pattern": "^a$"},
        "count": {"type": "integer", "maximum": 3},
        "share": {"type": "number"},
        "on": {"type": "boolean"},
        "zones": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "ports": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "port": {"x-kubernetes-int-or-string": True}},
            },
        },
        "more": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}


def test_it_vouches_for_an_ordinary_object() -> None:
    assert predicate(compile_node(SCHEMA))(GOOD)
    assert not Structural.compile(SCHEMA).validate(GOOD)


@pytest.mark.parametrize(
    "change",
    [
        {"name": "b"},
        {"count": 4},
        {"count": True},
        {"share": "0.5"},
        {"on": 1},
        {"zones": ["a", "a"]},
        {"zones": ["a", 1]},
        {"ports": [{"name": "web"}, {"name": "web"}]},
        {"more": {"x": None}},
        {"more": ["x"]},
    ],
)
def test_it_does_not_vouch_for_a_bad_one(change: dict[str, Any]) -> None:
    assert not predicate(compile_node(SCHEMA))(GOOD | change)
    assert Structural.compile(SCHEMA).validate(GOOD | change)
