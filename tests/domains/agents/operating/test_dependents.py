"""The history of dependents: keys, entries of the Go operator, and that no object is ever forgotten."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from hortus.domains.agents.operating.dependents import (
    Dependent,
    decode,
    encode,
    entries_of,
    history_key,
    members_of,
    recorded,
    settled,
)

KEY = history_key("v2.2.16", 3)


def dependent(name: str, kind: str = "ConfigMap", namespace: str = "monitoring") -> Dependent:
    return Dependent("", kind, namespace, name)


def one(name: str) -> dict[Dependent, str]:
    return {dependent(name): "v1"}


def test_a_key_names_the_version_as_it_is_written_and_the_generation() -> None:
    assert KEY == "v2.2.16_3"


def test_an_entry_has_the_form_of_the_go_operator() -> None:
    objects = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one", "namespace": "monitoring", "labels": {}}},
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "one"}},
    ]
    data = encode({KEY: entries_of(objects)}, {})
    assert json.loads(data[KEY]) == [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one", "namespace": "monitoring"}},
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "one"}},
    ]


def test_the_go_operators_order_and_spacing_are_no_reason_to_write() -> None:
    text = (
        '[{"kind":"ConfigMap","apiVersion":"v1","metadata":{"namespace":"monitoring","name":"two"}}, '
        '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one","namespace":"monitoring"}}]'
    )
    history = decode({KEY: text}).history
    assert encode(recorded(history, KEY, {**one("one"), **one("two")}), {KEY: text}) == {KEY: text}


def test_keys_of_releases_without_a_version_are_pruned_like_others() -> None:
    old = {"v0.0.1-dev_2": one("old"), "v0.0.1-dev_2-dirty": one("older")}
    history = recorded(old, KEY, one("new"))
    assert members_of(history) == {dependent("old"), dependent("older"), dependent("new")}
    assert settled(history, KEY, ()) == {KEY: one("new")}


def test_a_set_that_changes_twice_before_it_is_pruned_keeps_both_former_ones() -> None:
    """The Go operator overwrites the dirty copy, which forgets the first set for ever."""
    history = recorded(recorded({KEY: one("first")}, KEY, one("second")), KEY, one("third"))
    assert members_of(history) == {dependent("first"), dependent("second"), dependent("third")}


def test_an_unreadable_key_is_named_and_hides_no_other() -> None:
    found = decode({"broken": "{", "half": '[{"kind": 1}]', KEY: "[]"})
    assert (found.history, found.unreadable) == ({KEY: {}}, ("broken", "half"))


def test_an_object_whose_kind_moved_to_another_version_is_the_same_object() -> None:
    old = {Dependent("policy", "PodDisruptionBudget", "monitoring", "one"): "policy/v1beta1"}
    new = {Dependent("policy", "PodDisruptionBudget", "monitoring", "one"): "policy/v1"}
    assert members_of({"v1_1": old, KEY: new}) == set(new)


def test_a_key_stays_while_one_of_its_objects_remains() -> None:
    history = {"v1_1": {**one("held"), **one("gone")}, "v1_2": one("gone"), KEY: one("new")}
    assert settled(history, KEY, [dependent("held")]) == {"v1_1": history["v1_1"], KEY: one("new")}


NAMES = st.sampled_from("abcdef")
ROUNDS = st.lists(
    st.tuples(
        st.sampled_from(["v1", "v2", "v0.0.1-dev"]),
        st.integers(1, 2),
        st.sets(NAMES),
        st.sampled_from(["recorded", "applied", "pruned", "stored"]),
        st.sets(NAMES),
    ),
    max_size=12,
)
"""Reconciles: version, generation, wanted objects, the last step before a kill, and objects that finalizers hold."""


@settings(deadline=None, max_examples=200)
@given(ROUNDS)
def test_an_object_that_exists_is_recorded_however_often_reconciles_are_killed(
    rounds: list[tuple[str, int, set[str], str, set[str]]],
) -> None:
    stored: dict[str, str] = {}
    existing: set[str] = set()
    for version, generation, names, end, held in rounds:
        key = history_key(version, generation)
        wanted = {dependent(name): "v1" for name in names}
        history = recorded(decode(stored).history, key, wanted)
        stored = encode(history, stored)
        if end != "recorded":
            existing |= names
        if end in ("pruned", "stored"):
            leaving = {one.name for one in members_of(history)} - names
            existing -= leaving - held
            if end == "stored":
                stored = encode(settled(history, key, [dependent(name) for name in leaving & held]), stored)
        assert existing <= {one.name for one in members_of(decode(stored).history)}
    for _ in range(2):  # nobody interrupts any more, and nothing is held
        history = recorded(decode(stored).history, "last", {})
        assert existing <= {one.name for one in members_of(history)}
        stored = encode(settled(history, "last", ()), stored)
        existing = set()
    assert decode(stored).history == {"last": {}}


@settings(deadline=None, max_examples=100)
@given(st.dictionaries(st.sampled_from(["v1_1", "v1_1-dirty", "v2_1"]), st.sets(NAMES)))
def test_a_history_survives_its_text(sets: dict[str, set[str]]) -> None:
    history = {key: {dependent(name): "v1" for name in names} for key, names in sets.items()}
    data = encode(history, {})
    assert decode(data).history == history
    assert encode(decode(data).history, data) == data
