"""Strategic merge patch: lists by merge key, directives, order."""

from __future__ import annotations

from typing import Any

import pytest

from hortus.schema.merge import MergeSchema, StrategicMergeError, strategic_merge

Object = dict[str, Any]
CONTAINER: Object = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "image": {"type": "string"},
        "args": {"type": "array", "items": {"type": "string"}},
    },
}
POD: Object = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "containers": {
                    "type": "array",
                    "items": CONTAINER,
                    "x-kubernetes-patch-strategy": "merge",
                    "x-kubernetes-patch-merge-key": "name",
                },
                "strategy": {
                    "type": "object",
                    "properties": {"type": {"type": "string"}, "rolling": {"type": "object"}},
                    "x-kubernetes-patch-strategy": "retainKeys",
                },
            },
        }
    },
}
SCHEMA = MergeSchema.compile(POD)


def patched(spec: Object, patch: Object) -> Object:
    result: Object = strategic_merge({"spec": spec}, {"spec": patch}, SCHEMA)["spec"]
    return result


def test_items_are_merged_by_their_key_and_new_ones_come_first() -> None:
    current = {"containers": [{"name": "a", "image": "1", "args": ["x"]}, {"name": "b"}]}
    patch = {"containers": [{"name": "c"}, {"name": "a", "image": "2"}]}
    assert patched(current, patch) == {
        "containers": [{"name": "c"}, {"name": "a", "image": "2", "args": ["x"]}, {"name": "b"}]
    }


def test_an_item_is_deleted_by_directive_and_the_operands_stay() -> None:
    current: Object = {"containers": [{"name": "a"}, {"name": "b"}]}
    assert patched(current, {"containers": [{"name": "a", "$patch": "delete"}]}) == {"containers": [{"name": "b"}]}
    assert current == {"containers": [{"name": "a"}, {"name": "b"}]}


def test_replace_drops_the_live_content() -> None:
    current = {"containers": [{"name": "a"}], "strategy": {"type": "x"}}
    assert patched(current, {"containers": [{"name": "c"}, {"$patch": "replace"}]}) == {
        "containers": [{"name": "c"}],
        "strategy": {"type": "x"},
    }
    assert patched(current, {"$patch": "replace", "strategy": {"type": "y"}}) == {"strategy": {"type": "y"}}


def test_retain_keys_clears_the_others() -> None:
    current = {"strategy": {"type": "Rolling", "rolling": {"max": 1}}}
    assert patched(current, {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}) == {
        "strategy": {"type": "Recreate"}
    }


def test_element_order_is_kept() -> None:
    current = {"containers": [{"name": "a"}, {"name": "b"}, {"name": "live"}]}
    patch = {
        "$setElementOrder/containers": [{"name": "b"}, {"name": "c"}, {"name": "a"}],
        "containers": [{"name": "c", "image": "1"}],
    }
    assert patched(current, patch) == {
        "containers": [{"name": "b"}, {"name": "c", "image": "1"}, {"name": "a"}, {"name": "live"}]
    }


def test_finalizers_are_added_and_deleted_one_by_one() -> None:
    current: Object = {"metadata": {"finalizers": ["a", "b"]}}
    added = strategic_merge(current, {"metadata": {"finalizers": ["c"]}}, SCHEMA)
    assert sorted(added["metadata"]["finalizers"]) == ["a", "b", "c"]
    removed = strategic_merge(current, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}, SCHEMA)
    assert removed == {"metadata": {"finalizers": ["b"]}}


@pytest.mark.parametrize(
    ("patch", "code", "message"),
    [
        ({"containers": [{"image": "1"}]}, 500, "map: map[image:1] does not contain declared merge key: name"),
        ({"$patch": "destroy"}, 500, "unknown patch type: destroy in map: map[$patch:destroy]"),
        ({"$wipe": True}, 400, "unknown directive '$wipe' in strategic merge patch"),
        ({"strategy": {"$retainKeys": ["x"], "type": "y"}}, 400, "invalid patch format of retainKeys"),
        ({"$setElementOrder": []}, 400, "invalid patch format of setElementOrder list"),
    ],
)
def test_a_bad_patch_is_refused_with_the_text_of_kube_apiserver(patch: Object, code: int, message: str) -> None:
    current = {"containers": [{"name": "a"}], "strategy": {"type": "x"}}
    with pytest.raises(StrategicMergeError) as caught:
        patched(current, patch)
    assert (caught.value.code, caught.value.message) == (code, message)


def test_a_patch_that_names_an_item_again_and_again_is_refused_when_the_item_is_large() -> None:
    current = {"containers": [{"name": "a", "image": "1", **{f"field{number}": "" for number in range(2000)}}]}
    again = [{"name": "a", "image": str(number)} for number in range(40)]
    assert patched(current, {"containers": again})["containers"][0]["image"] == "39"
    with pytest.raises(StrategicMergeError, match="too often"):
        patched(current, {"containers": again * 2})
