"""The lastOperation and health of a simulated shoot pass through the same states as Gardener's."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hortus.kube.objects import Object, format_time, parse_time
from hortus.simulation.garden import health, operations
from hortus.simulation.settings import GardenSettings, SettingsError, from_config

NOW = parse_time("2026-01-01T00:00:00Z")
SETTINGS = GardenSettings()


def shoot(*, generation: int = 1, status: Object | None = None, deleted: bool = False, seed: str = "aws-1") -> Object:
    metadata: dict[str, Any] = {"name": "c-1", "namespace": "garden-demo", "uid": "u", "generation": generation}
    if deleted:
        metadata["deletionTimestamp"] = format_time(NOW)
    spec: dict[str, Any] = {"region": "eu", "provider": {"type": "aws", "workers": [{"name": "w"}]}}
    if seed:
        spec["seedName"] = seed
    return {"metadata": metadata, "spec": spec, "status": status or {}}


def last(kind: str, state: str, *, age: float = 0.0, observed: int = 1, **more: Any) -> Object:
    return {
        "lastOperation": {
            "type": kind,
            "state": state,
            "progress": 50,
            "description": "",
            "lastUpdateTime": format_time(NOW - age),
        },
        "observedGeneration": observed,
        **more,
    }


@pytest.mark.parametrize(
    ("subject", "kind"),
    [
        (shoot(), "Create"),
        (shoot(status=last("Create", "Error", age=60)), "Create"),
        (shoot(status=last("Create", "Processing")), "Create"),
        (shoot(status=last("Create", "Succeeded"), generation=2), "Reconcile"),
        (shoot(status=last("Reconcile", "Succeeded", age=3600)), "Reconcile"),
        (shoot(status=last("Create", "Succeeded"), deleted=True), "Delete"),
        (shoot(status=last("Create", "Failed"), generation=2), "Create"),
        (shoot(status=last("Delete", "Error", age=60), deleted=True), "Delete"),
        (shoot(status=last("Create", "Succeeded"), seed=""), None),
        (shoot(seed=""), None),
        (shoot(status=last("Create", "Succeeded")), None),
        (shoot(status=last("Create", "Failed")), None),
        (shoot(status=last("Create", "Error", age=1)), None),
        (shoot(status=last("Reconcile", "Succeeded", age=3599)), None),
        (shoot(status=last("Create", "Succeeded", seedName="aws-1")), None),
        (shoot(status=last("Create", "Succeeded", seedName="aws-2"), generation=2), "Migrate"),
        (shoot(status=last("Create", "Processing", seedName="aws-2"), generation=2), "Migrate"),
        (shoot(status=last("Migrate", "Processing", seedName="aws-2")), "Migrate"),
        (shoot(status=last("Migrate", "Error", age=60, seedName="aws-2")), "Migrate"),
        (shoot(status=last("Migrate", "Failed", seedName="aws-2")), None),
        (shoot(status=last("Migrate", "Failed", seedName="aws-2"), generation=2), "Migrate"),
        (shoot(status=last("Migrate", "Succeeded", seedName="aws-1")), "Restore"),
        (shoot(status=last("Migrate", "Aborted", seedName="aws-1")), "Restore"),
        (shoot(status=last("Restore", "Processing", seedName="aws-1")), "Restore"),
        (shoot(status=last("Restore", "Error", age=60, seedName="aws-1")), "Restore"),
        (shoot(status=last("Restore", "Succeeded", seedName="aws-1"), generation=2), "Reconcile"),
        (shoot(status=last("Restore", "Succeeded", seedName="aws-1")), None),
        (shoot(status=last("Migrate", "Processing", seedName="aws-2"), deleted=True), "Delete"),
    ],
)
def test_the_operation_that_is_due(subject: Object, kind: str | None) -> None:
    found = operations.due_operation(subject, NOW, SETTINGS)
    assert (found.kind if found else None) == kind


@given(st.sampled_from(["Create", "Reconcile", "Delete", "Migrate", "Restore"]), st.floats(0, 1), st.floats(0, 1))
def test_progress_never_falls_and_ends_at_100(kind: str, one: float, two: float) -> None:
    low, high = sorted((one, two))
    assert operations.progress(kind, low)[0] <= operations.progress(kind, high)[0]
    assert operations.progress(kind, 0.0)[0] == 0
    assert operations.progress(kind, 1.0)[0] == 100
    assert operations.progress(kind, high)[1]


def test_the_seed_of_a_shoot_changes_when_its_preparation_for_a_move_has_ended() -> None:
    moving = shoot(status=last("Reconcile", "Succeeded", seedName="aws-2"), generation=2)
    assert operations.home(moving) == "aws-2"
    begun = operations.started(moving, "Migrate", NOW, {})
    assert "seedName" not in begun
    moving["status"] |= begun
    assert operations.home(moving) == "aws-2"
    moving["status"] |= operations.succeeded(moving, "Migrate", NOW)
    assert operations.home(moving) == "aws-1"
    assert operations.operation_kind(moving) == "Restore"


def test_the_start_of_an_operation_observes_the_generation_and_begins_a_retry_cycle() -> None:
    status = operations.started(shoot(generation=3), "Create", NOW, {"technicalID": "shoot--demo--c-1"})
    assert status["observedGeneration"] == 3
    assert status["retryCycleStartTime"] == format_time(NOW)
    assert status["technicalID"] == "shoot--demo--c-1"
    assert status["seedName"] == "aws-1"
    again = operations.started(
        shoot(status=last("Create", "Error", retryCycleStartTime=format_time(NOW - 99))), "Create", NOW, {}
    )
    assert "retryCycleStartTime" not in again


@pytest.mark.parametrize(
    ("codes", "cycle_age", "state"),
    [
        (["ERR_INFRA_RATE_LIMITS_EXCEEDED"], 0, "Error"),
        ([], 0, "Error"),
        (["ERR_INFRA_QUOTA_EXCEEDED"], 0, "Failed"),
        (["ERR_CLEANUP_CLUSTER_RESOURCES", "ERR_INFRA_UNAUTHORIZED"], 0, "Failed"),
        ([], 12 * 3600 + 1, "Failed"),
    ],
)
def test_an_error_is_final_by_its_code_or_by_the_length_of_the_cycle(
    codes: list[str], cycle_age: float, state: str
) -> None:
    subject = shoot(status=last("Create", "Processing", retryCycleStartTime=format_time(NOW - cycle_age)))
    status = operations.failed(subject, "Create", 40, "no quota.", codes, NOW, SETTINGS)
    assert status["lastOperation"]["state"] == state
    assert status["lastOperation"]["progress"] == 40
    assert status["lastErrors"][0]["codes"] == codes
    assert ("retried" in status["lastOperation"]["description"]) == (state == "Error")


def test_after_success_conditions_are_progressing_until_care_has_looked() -> None:
    subject = shoot(status=last("Create", "Succeeded"))
    subject["status"] |= health.after_operation(subject, NOW)
    assert {c["status"] for c in subject["status"]["conditions"]} == {"Progressing"}
    assert health.status_label(subject) == "progressing"
    subject["status"] |= health.after_care(subject, {}, NOW + 1, 60)
    assert {c["status"] for c in subject["status"]["conditions"]} == {"True"}
    assert health.status_label(subject) == "healthy"


def test_a_failing_condition_is_false_only_after_the_threshold() -> None:
    subject = shoot(status=last("Reconcile", "Succeeded"))
    subject["status"] |= health.after_care(subject, {}, NOW, 60)
    bad = {"EveryNodeReady": "one node is gone"}
    states = []
    for second in (1, 30, 62):
        subject["status"] |= health.after_care(subject, bad, NOW + second, 60)
        states.append(next(c["status"] for c in subject["status"]["conditions"] if c["type"] == "EveryNodeReady"))
    assert states == ["Progressing", "Progressing", "False"]
    assert health.status_label(subject) == "unhealthy"


@pytest.mark.parametrize(
    ("status", "label"),
    [
        ({}, "healthy"),
        (last("Create", "Processing"), "healthy"),
        (last("Create", "Error", lastErrors=[{"description": "x"}]), "unhealthy"),
        (last("Delete", "Processing"), "healthy"),
        (last("Reconcile", "Failed"), "unhealthy"),
        (last("Reconcile", "Succeeded", conditions=[{"type": "A", "status": "Unknown"}]), "unknown"),
    ],
)
def test_the_status_label(status: Object, label: str) -> None:
    assert health.status_label(shoot(status=status)) == label


def test_a_workerless_shoot_has_no_node_condition() -> None:
    subject = shoot()
    subject["spec"]["provider"]["workers"] = []
    assert "EveryNodeReady" not in {c["type"] for c in health.after_operation(subject, NOW)["conditions"]}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"simulation": {"tme_factor": 2}}, "tme_factor"),
        ({"simulation": {"time_factor": 0}}, "time_factor"),
        ({"simulation": {"faults": [{"operation": 3}]}}, r"faults\[0\].operation"),
        ({"simulation": {"create_duration": "long"}}, "create_duration"),
    ],
)
def test_a_configuration_that_does_not_fit_is_refused_with_its_place(document: Object, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        from_config(document)


def test_durations_shrink_with_the_time_factor() -> None:
    settings = from_config({"simulation": {"time_factor": 60, "create_duration": 300}})
    assert operations.duration("Create", settings) == 5.0
