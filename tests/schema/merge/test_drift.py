"""Conclusions from a cached object alone equal the server's result."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.schema.merge.generators import Schema, schemas, values
from tests.schema.merge.gizmos import LATER, NOW, Object, applied, gizmo, updated

from hortus.schema.merge import ApplyConflict, MergeError, MergeSchema, apply, owned_matches

CONFIG = gizmo(
    {"replicas": 1, "zones": ["a", "b"], "ports": [{"port": 80}, {"port": 443, "name": "tls"}], "selector": {"a": "1"}},
    labels={"x": "y"},
)


def test_an_applied_configuration_matches_next_to_fields_of_others() -> None:
    live = applied(None, CONFIG)
    others = {**live, "spec": live["spec"] | {"args": ["a"]}, "status": {"phase": "Ready"}}
    assert owned_matches(updated(live, others), CONFIG, "me")


@pytest.mark.parametrize(
    "change",
    [
        {"replicas": 2},
        {"args": ["a"]},
        {"zones": ["b", "a"]},
        {"zones": ["a"]},
        {"ports": [{"port": 80}]},
        {"ports": [{"port": 80}, {"port": 443, "name": "http"}]},
        {"ports": [{"port": 80, "protocol": "UDP"}, {"port": 443, "name": "tls"}]},
        {"selector": {"a": "1", "b": "2"}},
        {"selector": None},
    ],
)
def test_any_other_configuration_does_not_match(change: Object) -> None:
    live = applied(None, CONFIG)
    assert not owned_matches(live, {**CONFIG, "spec": CONFIG["spec"] | change}, "me")


def test_a_field_left_out_an_edit_by_hand_and_another_manager_do_not_match() -> None:
    live = applied(None, CONFIG)
    fewer = {key: value for key, value in CONFIG["spec"].items() if key != "replicas"}
    assert not owned_matches(live, {**CONFIG, "spec": fewer}, "me")
    assert not owned_matches(live, CONFIG, "you")
    assert not owned_matches(updated(live, {**live, "spec": live["spec"] | {"replicas": 7}}), CONFIG, "me")
    assert not owned_matches(live, {**CONFIG, "apiVersion": "hortus.io/v2"}, "me")


def kind_of(schema: Schema) -> MergeSchema:
    return MergeSchema.compile({"type": "object", "properties": {"spec": schema}})


def write(live: Object | None, spec: Any, manager: str, schema: MergeSchema, now: float = NOW) -> Object:
    config = {"apiVersion": "hortus.io/v1", "kind": "Gizmo", "metadata": {"name": "x"}, "spec": spec}
    return apply(live, config, manager=manager, api_version="hortus.io/v1", now=now, schema=schema, force=True)


@given(data=st.data())
def test_a_match_means_that_the_apply_changes_no_value(data: st.DataObject) -> None:
    inner = data.draw(schemas(2))
    schema = kind_of(inner)
    first, second, third = (data.draw(values(inner)) for _ in range(3))
    live = write(write(None, first, "me", schema), second, "you", schema)
    for spec in (first, second, third):
        config = {"apiVersion": "hortus.io/v1", "kind": "Gizmo", "metadata": {"name": "x"}, "spec": spec}
        if owned_matches(live, config, "me"):
            assert write(live, spec, "me", schema, LATER)["spec"] == live["spec"]


@given(data=st.data())
def test_applying_again_has_no_effect_and_never_changes_its_arguments(data: st.DataObject) -> None:
    inner = data.draw(schemas(2))
    schema = kind_of(inner)
    live = write(None, data.draw(values(inner)), "me", schema)
    before = repr(live)
    config = {
        "apiVersion": "hortus.io/v1",
        "kind": "Gizmo",
        "metadata": {"name": "x"},
        "spec": data.draw(values(inner)),
    }
    try:
        once = apply(live, config, manager="you", api_version="hortus.io/v1", now=NOW, schema=schema)
    except ApplyConflict:
        return
    assert repr(live) == before
    assert apply(once, config, manager="you", api_version="hortus.io/v1", now=LATER, schema=schema) is once


@given(data=st.data())
def test_any_document_is_applied_or_refused_with_an_error_of_ours(data: st.DataObject) -> None:
    schema = kind_of(data.draw(schemas(2)))
    spec = data.draw(values(data.draw(schemas(2)), repeats=True))
    try:
        write(write(None, None, "me", schema), spec, "me", schema)
    except MergeError as error:
        assert error.code in (400, 500)
