"""Ownership after creates, updates and patches."""

from __future__ import annotations

from typing import Any

import pytest
from tests.schema.merge.gizmos import LATER, NOW, SCHEMA, Object, applied, gizmo, owners, updated

from hortus.schema.merge import unchanged, update, validate_managed_fields

LIVE = gizmo({"replicas": 1, "ports": [{"port": 80}]}, uid="u")


def entry(**changes: Any) -> Object:
    sound = {"manager": "m", "operation": "Update", "apiVersion": "hortus.io/v1", "fieldsType": "FieldsV1"}
    return sound | {"fieldsV1": {"f:spec": {"f:replicas": {}}}} | changes


def test_the_creator_owns_all_but_the_identity_of_the_object() -> None:
    obj = updated(None, gizmo({"replicas": 1, "ports": [{"port": 80}]}, namespace="n", labels={"a": "1"}))
    assert owners(obj) == {
        "kubectl-edit Update": {
            "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
            "f:spec": {
                ".": {},
                "f:ports": {".": {}, 'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}}},
                "f:replicas": {},
            },
        }
    }


def test_an_update_takes_over_the_fields_it_changes() -> None:
    live = updated(None, LIVE, "creator")
    live = updated(live, gizmo({"replicas": 3, "ports": [{"port": 80}]}, uid="u"), "scaler", now=LATER)
    assert owners(live)["scaler Update"] == {"f:spec": {"f:replicas": {}}}
    assert "f:replicas" not in owners(live)["creator Update"]["f:spec"]
    assert [entry["time"] for entry in live["metadata"]["managedFields"]] == [
        "2023-11-14T22:13:20Z",
        "2023-11-14T22:14:20Z",
    ]


def test_an_update_that_changes_nothing_gives_back_the_very_list() -> None:
    live = updated(None, LIVE)
    entries = live["metadata"]["managedFields"]
    again = gizmo({"replicas": 1, "ports": [{"port": 80}]}, uid="u")
    assert update(live, again, manager="x", api_version="hortus.io/v1", now=LATER, schema=SCHEMA) is entries


def test_removed_fields_have_no_owner() -> None:
    live = updated(None, LIVE)
    live = updated(live, gizmo({"replicas": 1, "ports": []}, uid="u"), "other", now=LATER)
    assert owners(live) == {"kubectl-edit Update": {"f:spec": {".": {}, "f:ports": {}, "f:replicas": {}}}}


def test_a_status_writer_has_its_own_entry_and_no_part_in_the_spec() -> None:
    live = updated(None, LIVE, "me")
    new = {**live, "spec": {"replicas": 9}, "status": {"phase": "Ready"}}
    live = updated(live, new, "me", now=LATER, subresource="status", reset_fields={"f:spec": {}})
    status = live["metadata"]["managedFields"][-1]
    assert (status["subresource"], status["fieldsV1"]) == ("status", {"f:status": {".": {}, "f:phase": {}}})


@pytest.mark.parametrize("reset", [[], [{}]])
def test_sending_an_empty_list_forgets_all_owners(reset: list[Object]) -> None:
    live = updated(None, LIVE)
    assert owners(updated(live, gizmo({"replicas": 2}, uid="u", managedFields=reset))) == {}


def test_a_client_that_does_not_know_managed_fields_loses_nothing() -> None:
    live = updated(None, LIVE)
    assert owners(updated(live, gizmo(LIVE["spec"], uid="u"))) == owners(live)


def test_an_object_that_was_never_tracked_stays_so() -> None:
    assert owners(updated(LIVE, gizmo({"replicas": 2}, uid="u"))) == {}


def test_a_client_may_hand_ownership_over_as_kubectl_does_when_it_migrates() -> None:
    live = updated(None, LIVE, "kubectl-client-side-apply")
    (ours,) = live["metadata"]["managedFields"]
    handed = {**ours, "manager": "kubectl", "operation": "Apply"}
    live = updated(live, gizmo(LIVE["spec"], uid="u", managedFields=[handed]), "kubectl")
    live = applied(live, gizmo({"replicas": 2}), "kubectl", now=LATER)
    assert live["spec"] == {"replicas": 2}


def test_ownership_from_outside_is_spelled_and_ordered_canonically() -> None:
    live = updated(None, LIVE)
    fields = {"f:spec": {"f:replicas": {}, "f:ports": {'k:{"protocol": "TCP", "port": 80.0}': {"x:y": {}}, ".": {}}}}
    sent = [entry(fieldsV1=fields, time="2023-11-14T23:13:20+01:00")]
    live = updated(live, gizmo(LIVE["spec"], uid="u", managedFields=sent))
    (written,) = live["metadata"]["managedFields"]
    assert repr(written["fieldsV1"]) == repr(
        {"f:spec": {"f:ports": {".": {}, 'k:{"port":80,"protocol":"TCP"}': {}}, "f:replicas": {}}}
    )
    assert written["time"] == "2023-11-14T22:13:20Z"


@pytest.mark.parametrize(
    ("broken", "problem"),
    [
        (entry(operation="Conquer"), "operation must be `Apply` or `Update`"),
        (entry(apiVersion=""), "apiVersion must not be empty"),
        (entry(fieldsType=""), "missing fieldsType in managed fields entry 0"),
        (entry(fieldsType="FieldsV2"), 'invalid fieldsType "FieldsV2" in managed fields entry 0'),
        (entry(fieldsV1={"spec": {}}), "error decoding set: missing colon: spec"),
        (entry(fieldsV1=[]), "error decoding set: expected a map of path elements, got list"),
        (entry(time="yesterday"), "time 'yesterday' of a managed fields entry is not an RFC 3339 time"),
        ("x", "managed fields entry 0 must be an object"),
        (entry(manager=1), "manager and subresource of managed fields entry 0 must be strings"),
    ],
)
def test_broken_ownership_is_named_and_the_known_one_kept(broken: Any, problem: str) -> None:
    assert validate_managed_fields([broken]) == problem
    live = updated(None, LIVE)
    assert owners(updated(live, gizmo(LIVE["spec"], uid="u", managedFields=[broken]))) == owners(live)


def test_ownership_that_is_no_list_is_refused() -> None:
    assert validate_managed_fields("all of it") == "managedFields must be a list"
    assert validate_managed_fields([]) == validate_managed_fields(None) == ""


def test_the_eleventh_updater_folds_the_oldest_two_into_ancient_changes() -> None:
    live = updated(None, gizmo({"selector": {}}, uid="u"), "creator")
    labels: dict[str, str] = {}
    for number in range(11):
        labels = labels | {f"l{number}": "x"}
        new = gizmo({"selector": {}}, uid="u", labels=labels)
        live = updated(live, new, f"updater-{number}", now=NOW + 60 * (number + 1))
    managers = [entry["manager"] for entry in live["metadata"]["managedFields"]]
    assert managers == ["ancient-changes"] + [f"updater-{number}" for number in range(2, 11)]
    assert live["metadata"]["managedFields"][0]["fieldsV1"] == {
        "f:metadata": {"f:labels": {".": {}, "f:l0": {}, "f:l1": {}}},
        "f:spec": {".": {}, "f:selector": {}},
    }


def test_an_update_is_unchanged_when_only_times_moved_and_true_is_not_one() -> None:
    live = updated(None, gizmo({"replicas": 1}))
    moved = [entry | {"time": "2030-01-01T00:00:00Z"} for entry in live["metadata"]["managedFields"]]
    assert unchanged(live, {**live, "metadata": live["metadata"] | {"managedFields": moved}})
    assert not unchanged(live, {**live, "spec": {"replicas": True}})
    assert not unchanged(live, {**live, "metadata": {"name": "x"}})


def test_an_object_of_another_form_is_owned_by_nobody_and_breaks_nothing() -> None:
    deep: Object = {}
    for _ in range(3000):
        deep = {"a": deep}
    assert owners(updated(None, gizmo({"ports": [None]}))) == {}
    assert owners(updated(None, {**gizmo({}), "status": deep})) == {}
