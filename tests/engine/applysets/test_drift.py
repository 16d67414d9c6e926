"""Drift by field: none after an apply, the very field after a change by any client."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from hortus.engine.applysets import drift
from hortus.kube.objects import Object
from hortus.schema.merge import MergeSchema, apply, update

SCHEMA = MergeSchema.compile(
    {
        "type": "object",
        "properties": {
            "metadata": {"type": "object"},
            "spec": {
                "type": "object",
                "properties": {
                    "fields": {"type": "object", "additionalProperties": {"type": "integer"}},
                    "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
                    "whole": {"type": "array", "items": {"type": "integer"}, "x-kubernetes-list-type": "atomic"},
                    "parts": {
                        "type": "array",
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["name"],
                        "items": {
                            "type": "object",
                            "properties": {"name": {"type": "string"}, "size": {"type": "integer"}},
                        },
                    },
                },
            },
        },
    }
)
WORD = st.sampled_from(("a", "b", "c"))
SIZE = st.integers(0, 3)
SPEC = st.fixed_dictionaries(
    {},
    optional={
        "fields": st.dictionaries(WORD, SIZE, min_size=1),
        "tags": st.lists(WORD, unique=True, min_size=1),
        "whole": st.lists(SIZE, min_size=1),
        "parts": st.dictionaries(WORD, SIZE, min_size=1).map(
            lambda parts: [{"name": name, "size": size} for name, size in parts.items()]
        ),
    },
)


def thing(spec: Any) -> Object:
    return {"apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": spec}


def applied(live: Object | None, config: Object, manager: str) -> Object:
    options: dict[str, Any] = {"api_version": "example.org/v1", "now": 1.0, "schema": SCHEMA}
    return apply(live, config, manager=manager, force=True, **options)


def edited(live: Object, new: Object, manager: str) -> Object:
    entries = update(live, new, manager=manager, api_version="example.org/v1", now=2.0, schema=SCHEMA)
    return {**new, "metadata": {**new["metadata"], "managedFields": entries}}


@settings(max_examples=60, deadline=None)
@given(SPEC, SPEC)
def test_after_an_apply_nothing_differs_whatever_others_added(ours: Any, theirs: Any) -> None:
    live = applied(applied(None, thing(theirs), "them"), thing(ours), "us")
    assert drift(live, thing(ours), field_manager="us") == []


@settings(max_examples=60, deadline=None)
@given(SPEC, SPEC)
def test_a_change_by_others_is_reported_with_their_name_and_reverted_by_an_apply(ours: Any, theirs: Any) -> None:
    live = applied(None, thing(ours), "us")
    changed = edited(live, {**thing(theirs), "metadata": live["metadata"]}, "them")
    found = drift(changed, thing(ours), field_manager="us")
    for part, wanted in ours.items():
        now = theirs.get(part)
        same = wanted == now if part == "whole" else _same(wanted, now)
        assert same == (not any(one.path.startswith(f".spec.{part}") for one in found)), (part, found)
    mended = applied(changed, thing(ours), "us")
    assert drift(mended, thing(ours), field_manager="us") == []


def _same(wanted: Any, now: Any) -> bool:
    """Returns True if `now` contains everything that is wanted; it may contain more."""
    if isinstance(wanted, dict):
        return isinstance(now, dict) and all(now.get(key) == value for key, value in wanted.items())
    return isinstance(now, list) and all(item in now for item in wanted)


def test_the_owner_of_a_changed_field_is_named() -> None:
    live = applied(None, thing({"fields": {"a": 1}, "parts": [{"name": "a", "size": 1}]}), "us")
    theirs = thing({"fields": {"a": 2}, "parts": [{"name": "a", "size": 5}]})
    changed = edited(live, {**theirs, "metadata": live["metadata"]}, "kubectl-edit")
    config = thing({"fields": {"a": 1}, "parts": [{"name": "a", "size": 1}]})
    assert [str(one) for one in drift(changed, config, field_manager="us")] == [
        ".spec.fields.a: 2 instead of 1, set by kubectl-edit",
        ".spec.parts[name=a].size: 5 instead of 1, set by kubectl-edit",
    ]
