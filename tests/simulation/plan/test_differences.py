"""The fields in which two states of an object differ."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hortus.simulation.plan.differences import MASKED, FieldDifference, differences

_KEYS = st.text("abcn", min_size=1, max_size=3)
_VALUES = st.recursive(
    st.booleans() | st.integers(min_value=2) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=3),
    max_leaves=8,
)


def _of(before: Any, after: Any, kind: str = "Thing") -> list[FieldDifference]:
    return list(differences({"kind": kind, **before}, {"kind": kind, **after}))


@given(_VALUES)
def test_equal_states_have_no_differences(value: Any) -> None:
    assert _of({"spec": value}, {"spec": value}) == []


@given(_VALUES, _VALUES)
def test_states_that_differ_have_a_difference_and_the_way_back_is_its_mirror(one: Any, other: Any) -> None:
    there, back = _of({"spec": one}, {"spec": other}), _of({"spec": other}, {"spec": one})
    empty = (None, {}, [])
    if one != other and not (one in empty and other in empty):
        assert there or _only_bookkeeping(one, other)
    assert sorted((found.path, str(found.before), str(found.after)) for found in there) == sorted(
        (found.path, str(found.after), str(found.before)) for found in back
    )


def _only_bookkeeping(one: Any, other: Any) -> bool:
    """True for values that differ by an empty part alone."""
    return _pruned(one) == _pruned(other)


def _pruned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: found for key, one in value.items() if (found := _pruned(one)) not in (None, {}, [])} or None
    if isinstance(value, list):
        return [_pruned(one) for one in value] or None
    return value


def test_items_with_names_are_compared_by_name_and_others_by_place() -> None:
    before = {"spec": {"pools": [{"name": "a", "size": 1}, {"name": "b", "size": 2}], "zones": ["x", "y"]}}
    after = {"spec": {"pools": [{"name": "b", "size": 3}, {"name": "a", "size": 1}], "zones": ["x", "z"]}}
    assert _of(before, after) == [
        FieldDifference("spec.pools[b].size", 2, 3),
        FieldDifference("spec.zones[1]", "y", "z"),
    ]


def test_values_of_secrets_are_masked_and_so_are_fields_that_are_called_like_one() -> None:
    before = {"data": {"config": "b2xk"}, "metadata": {"labels": {"a": "1"}}}
    after = {"data": {"config": "bmV3", "more": "eA=="}, "metadata": {"labels": {"a": "2"}}}
    assert _of(before, after, "Secret") == [
        FieldDifference("data.config", MASKED, MASKED),
        FieldDifference("data.more", None, MASKED),
        FieldDifference("metadata.labels.a", "1", "2"),
    ]
    assert _of({"spec": {"agentKey": "k1"}}, {"spec": {"agentKey": "k2"}}) == [
        FieldDifference("spec.agentKey", MASKED, MASKED)
    ]


def test_the_last_applied_configuration_of_kubectl_is_masked_since_it_repeats_secrets() -> None:
    key = "kubectl.kubernetes.io/last-applied-configuration"
    found = _of({"metadata": {"annotations": {key: "old"}}}, {"metadata": {"annotations": {key: "new"}}})
    assert found == [FieldDifference(f"metadata.annotations.{key}", MASKED, MASKED)]


def test_times_and_bookkeeping_are_no_differences() -> None:
    before = {"metadata": {"resourceVersion": "1", "generation": 1}, "status": {"at": "2026-01-01T00:00:00Z"}}
    after = {"metadata": {"resourceVersion": "2", "generation": 2}, "status": {"at": "2026-01-02T00:00:00Z"}}
    assert _of(before, after) == []
