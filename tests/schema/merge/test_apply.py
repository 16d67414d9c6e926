"""Server-side apply: who owns what afterwards, what is taken away, and what is refused."""

from __future__ import annotations

import pytest
from tests.schema.merge.gizmos import LATER, Object, applied, gizmo, owners, updated

from hortus.schema.merge import ApplyConflict, InvalidConfig, TypeMismatch


def test_a_first_apply_owns_leaves_and_items_but_not_the_fields_that_hold_them() -> None:
    obj = applied(
        None, gizmo({"ports": [{"port": 443}, {"port": 80, "name": "web"}], "args": ["a"]}, labels={"a": "1"})
    )
    assert obj["metadata"]["managedFields"] == [
        {
            "manager": "me",
            "operation": "Apply",
            "apiVersion": "hortus.io/v1",
            "time": "2023-11-14T22:13:20Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:metadata": {"f:labels": {"f:a": {}}},
                "f:spec": {
                    "f:args": {},
                    "f:ports": {
                        'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:name": {}, "f:port": {}},
                        'k:{"port":443,"protocol":"TCP"}': {".": {}, "f:port": {}},
                    },
                },
            },
        }
    ]


def test_applying_the_same_again_gives_back_the_very_object() -> None:
    config = gizmo({"replicas": 1, "ports": [{"port": 80}], "zones": ["a"]}, labels={"a": "1"})
    live = applied(None, config)
    assert applied(live, config, now=LATER) is live


def test_a_conflict_names_field_manager_and_operation_as_kube_apiserver_does() -> None:
    live = updated(None, gizmo({"replicas": 1}), "kubectl-client-side-apply")
    with pytest.raises(ApplyConflict) as caught:
        applied(live, gizmo({"replicas": 2}))
    assert caught.value.message == (
        'Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using hortus.io/v1: .spec.replicas'
    )
    assert caught.value.causes() == [
        {
            "reason": "FieldManagerConflict",
            "message": 'conflict with "kubectl-client-side-apply" using hortus.io/v1',
            "field": ".spec.replicas",
        }
    ]


def test_several_conflicts_are_listed_by_manager() -> None:
    live = applied(None, gizmo({"replicas": 1, "args": ["a"]}), "first")
    live = applied(live, gizmo({"ports": [{"port": 80, "name": "web"}]}), "second")
    with pytest.raises(ApplyConflict) as caught:
        applied(live, gizmo({"replicas": 2, "args": ["b"], "ports": [{"port": 80, "name": "api"}]}), "third")
    assert caught.value.message == (
        'Apply failed with 3 conflicts: conflicts with "first":\n- .spec.args\n- .spec.replicas\n'
        'conflicts with "second":\n- .spec.ports[port=80,protocol="TCP"].name'
    )


def test_force_takes_the_field_over() -> None:
    live = applied(None, gizmo({"replicas": 1, "args": ["a"]}), "first")
    live = applied(live, gizmo({"replicas": 2}), "second", force=True, now=LATER)
    assert live["spec"] == {"replicas": 2, "args": ["a"]}
    assert owners(live) == {
        "first Apply": {"f:spec": {"f:args": {}}},
        "second Apply": {"f:spec": {"f:replicas": {}}},
    }


def test_a_field_that_is_no_longer_applied_is_removed_unless_another_owns_it() -> None:
    live = applied(None, gizmo({"replicas": 1, "zones": ["a", "b"]}), "first")
    live = applied(live, gizmo({"zones": ["b", "c"]}), "second")
    live = applied(live, gizmo({"zones": []}), "first", now=LATER)
    assert live["spec"] == {"zones": ["b", "c"]}
    assert owners(live) == {"second Apply": {"f:spec": {"f:zones": {'v:"b"': {}, 'v:"c"': {}}}}}


def test_an_atomic_map_is_owned_and_replaced_as_a_whole() -> None:
    live = applied(None, gizmo({"selector": {"a": "1", "b": "2"}}))
    live = applied(live, gizmo({"selector": {"c": "3"}}), now=LATER)
    assert live["spec"] == {"selector": {"c": "3"}}
    assert owners(live) == {"me Apply": {"f:spec": {"f:selector": {}}}}


def test_an_object_without_owners_gets_before_first_apply() -> None:
    live = applied(gizmo({"replicas": 1}, uid="u"), gizmo({"args": ["a"]}))
    assert owners(live) == {
        "me Apply": {"f:spec": {"f:args": {}}},
        "before-first-apply Update": {"f:spec": {".": {}, "f:replicas": {}}},
    }


def test_kubectl_takes_over_fields_of_its_client_side_apply() -> None:
    last = '{"apiVersion":"hortus.io/v1","kind":"Gizmo","metadata":{"name":"x"},"spec":{"replicas":1}}'
    notes = {"kubectl.kubernetes.io/last-applied-configuration": last}
    live = updated(None, gizmo({"replicas": 1}, annotations=notes), "kubectl-client-side-apply")
    with pytest.raises(ApplyConflict):
        applied(live, gizmo({"replicas": 2}), "other")
    live = applied(live, gizmo({"replicas": 2}), "kubectl", now=LATER)
    assert live["spec"] == {"replicas": 2}
    assert live["metadata"]["annotations"] == {
        "kubectl.kubernetes.io/last-applied-configuration": (
            '{"apiVersion":"hortus.io/v1","kind":"Gizmo","metadata":{"name":"x"},"spec":{"replicas":2}}\n'
        )
    }


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"replicas": "1"}, ".spec.replicas: expected numeric (int or float), got string"),
        ({"nothing": 1}, ".spec.nothing: field not declared in schema"),
        ({"ports": [{"port": 1}, {"port": 1}]}, '.spec.ports: duplicate entries for key [port=1,protocol="TCP"]'),
    ],
)
def test_a_configuration_of_another_form_is_refused(spec: Object, message: str) -> None:
    with pytest.raises(TypeMismatch) as caught:
        applied(None, gizmo(spec))
    assert caught.value.message == f"failed to create typed patch object (/x; hortus.io/v1, Kind=Gizmo): {message}"


def test_a_configuration_must_not_carry_managed_fields() -> None:
    with pytest.raises(InvalidConfig, match=r"metadata\.managedFields must be nil"):
        applied(None, gizmo({}, managedFields=[{"manager": "me"}]))
