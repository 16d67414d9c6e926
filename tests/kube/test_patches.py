"""JSON patch and merge patch."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hortus.kube.patches import (
    MAX_OPERATIONS,
    PatchError,
    apply_json_patch,
    apply_merge_patch,
    merge_patch_between,
    same,
)

SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "/~"])
KEYS = st.sampled_from(["a", "b", "c/d", "~e", "0"])
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3))
OBJECTS = st.dictionaries(KEYS, JSON, max_size=4)


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls(part) for key, part in value.items() if part is not None}
    return value


@given(OBJECTS.map(without_nulls), OBJECTS.map(without_nulls))
def test_the_patch_between_two_objects_makes_one_of_the_other(old: dict[str, Any], new: dict[str, Any]) -> None:
    patch = merge_patch_between(old, new)
    assert same(apply_merge_patch(old, patch), new)
    assert (patch == {}) == same(old, new)


@given(JSON, JSON)
def test_a_merge_patch_is_idempotent_and_changes_nothing_in_place(document: Any, patch: Any) -> None:
    before = orjson.dumps([document, patch])
    once = apply_merge_patch(document, patch)
    assert same(apply_merge_patch(once, patch), once)
    assert orjson.dumps([document, patch]) == before


POINTERS = st.lists(KEYS | st.sampled_from(["-", "1", "2"]), max_size=3).map(
    lambda parts: "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in parts)
)
OPERATIONS = st.fixed_dictionaries(
    {"op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]), "path": POINTERS},
    optional={"from": POINTERS, "value": JSON},
)


def reference(document: Any, operations: list[dict[str, Any]]) -> Any:
    """RFC 6902 the slow way: everything is copied before each operation."""
    for operation in operations:
        copied, operation = orjson.loads(orjson.dumps([document, operation]))
        document = apply_json_patch(copied, [operation])
    return document


@given(JSON, st.lists(OPERATIONS, max_size=6))
def test_operations_together_do_what_they_do_one_by_one_and_nothing_in_place(
    document: Any, operations: list[dict[str, Any]]
) -> None:
    before = orjson.dumps([document, operations])
    try:
        expected, failed = reference(document, operations), False
    except PatchError:
        expected, failed = None, True
    if failed:
        with pytest.raises(PatchError):
            apply_json_patch(document, operations)
    else:
        assert same(apply_json_patch(document, operations), expected)
    assert orjson.dumps([document, operations]) == before


@pytest.mark.parametrize(
    ("document", "operations", "expected"),
    [
        ({"a": 1}, [{"op": "add", "path": "/b", "value": None}], {"a": 1, "b": None}),
        ({"a": [1, 3]}, [{"op": "add", "path": "/a/1", "value": 2}], {"a": [1, 2, 3]}),
        ({"a": [1]}, [{"op": "add", "path": "/a/-", "value": 2}], {"a": [1, 2]}),
        ({"a": [1, 2]}, [{"op": "remove", "path": "/a/0"}], {"a": [2]}),
        ({"a": 1}, [{"op": "replace", "path": "/a", "value": [2]}], {"a": [2]}),
        ({"a": {"b": 1}}, [{"op": "move", "from": "/a/b", "path": "/c"}], {"a": {}, "c": 1}),
        ({"a": {"b": 1}}, [{"op": "copy", "from": "/a", "path": "/c"}], {"a": {"b": 1}, "c": {"b": 1}}),
        ({"a": 1.0}, [{"op": "test", "path": "/a", "value": 1.0}], {"a": 1.0}),
        ({"": {"~/": 1}}, [{"op": "replace", "path": "//~0~1", "value": 2}], {"": {"~/": 2}}),
        ({"a": 1}, [{"op": "replace", "path": "", "value": [3]}], [3]),
        ({"a": 1}, [{"op": "replace", "path": "", "value": 3}], {"a": 1}),
        ({"0": 1}, [{"op": "remove", "path": "/0"}], {}),
        ({"a": 1}, [{"op": "replace", "path": "/b", "value": 2}], {"a": 1, "b": 2}),
        ({"a": [1, 3]}, [{"op": "add", "path": "/a/-2", "value": 2}], {"a": [1, 2, 3]}),
        ({"a": [1, 2]}, [{"op": "replace", "path": "/a/-1", "value": 3}], {"a": [1, 3]}),
        ({"a": [1, 2]}, [{"op": "remove", "path": "/a/+01"}], {"a": [1]}),
        ({"a": 1}, [{"op": "copy", "from": "/b", "path": "/c"}], {"a": 1, "c": None}),
        ({"a": 1}, [{"op": "test", "path": "/b", "value": None}], {"a": 1}),
        ({"a": 1}, [{"op": "add", "path": "any/b"}], {"a": 1, "b": None}),
        ({"a": 1}, [{"op": "add", "path": "/~2", "value": 1}], {"a": 1, "~2": 1}),
        ({"a": 1}, [{"op": "move", "from": "/a", "path": "/a"}], {"a": 1}),
    ],
)
def test_operations(document: Any, operations: list[Any], expected: Any) -> None:
    assert same(apply_json_patch(document, operations), expected)


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "add", "path": "/list/1000000000", "value": 1},
        {"op": "add", "path": "/list/3", "value": 1},
        {"op": "add", "path": "/list/1e0", "value": 1},
        {"op": "replace", "path": "/list/-", "value": 1},
        {"op": "replace", "path": "/list/2", "value": 1},
        {"op": "remove", "path": "/new"},
        {"op": "remove", "path": ""},
        {"op": "add", "path": "", "value": {}},
        {"op": "replace", "path": ""},
        {"op": "add", "path": "/list/-4", "value": 1},
        {"op": "remove", "path": "/list/-3"},
        {"op": "move", "from": "/new", "path": "/b"},
        {"op": "test", "path": "/list", "value": [1.0, 1]},
        {"op": "test", "path": "/new"},
        {"op": "test", "path": "/list/9", "value": None},
        {"op": "add", "path": "/a/b/c", "value": 1},
        {"op": "add", "path": "/text/b", "value": 1},
        {"op": "add", "path": "a", "value": 1},
        {"op": "add", "value": 1},
        {"op": "move", "from": "/obj", "path": "/obj/inner"},
        {"op": "move", "path": "/b"},
        {"op": "test", "path": "/list", "value": [1, True]},
        {"op": "spoil", "path": "/list"},
        {"op": {}, "path": "/list"},
        "remove",
        None,
    ],
)
def test_an_operation_that_does_not_fit_is_refused_by_its_place(operation: Any) -> None:
    document = {"list": [1, 1], "text": "x", "obj": {"x": 1}}
    before = orjson.dumps(document)
    with pytest.raises(PatchError, match=r"^operation 1: "):
        apply_json_patch(document, [{"op": "add", "path": "/z", "value": 1}, operation])
    assert orjson.dumps(document) == before


def test_a_failed_test_operation_has_its_own_error() -> None:
    with pytest.raises(PatchError) as caught:
        apply_json_patch({"a": 1}, [{"op": "test", "path": "/a", "value": 2}])
    assert caught.value.test_failed


def test_a_copy_bomb_is_stopped() -> None:
    document = {"a": {"text": "x" * 1000}}
    bomb = [{"op": "copy", "from": "/a", "path": f"/a/{index}"} for index in range(40)]
    with pytest.raises(PatchError, match="copies more"):
        apply_json_patch(document, bomb)


def test_too_many_operations_are_refused() -> None:
    with pytest.raises(PatchError, match=str(MAX_OPERATIONS)):
        apply_json_patch({}, [{"op": "test", "path": "", "value": {}}] * (MAX_OPERATIONS + 1))


def test_nesting_beyond_reason_is_refused() -> None:
    deep: Any = {}
    for _ in range(5000):
        deep = {"a": deep}
    with pytest.raises(PatchError, match="deep"):
        apply_merge_patch({}, deep)
    with pytest.raises(PatchError, match="deep"):
        apply_json_patch({"a": deep}, [{"op": "test", "path": "/a", "value": {"a": deep["a"].copy()} | deep}])


def test_a_null_that_a_merge_patch_cannot_say_is_an_error() -> None:
    for new in ({"a": None}, {"a": {"b": None}}, {"a": {"b": {"c": None}}}):
        with pytest.raises(PatchError, match="null"):
            merge_patch_between({}, new)
    assert merge_patch_between({"a": None}, {"a": None}) == {}
    assert merge_patch_between({}, {"a": [None]}) == {"a": [None]}
