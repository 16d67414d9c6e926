"""2.2.4: the state of a module from its workloads."""

from __future__ import annotations

from typing import Any

import pytest
from tests.domains.modules.manifests.world import config_map, deployment

from hortus.domains.modules.manifests.readiness import (
    SETTLING,
    deployment_state,
    judged,
    resource_state,
    stateful_set_state,
    worst,
)
from hortus.domains.modules.names import State
from hortus.domains.modules.types import ModuleManager
from hortus.kube.objects import Object, format_time

NOW = 1_700_000_000.0


def reported(progressing: str | None, reason: str, available: str | None) -> Object:
    conditions = [
        {"type": kind, "status": status, "reason": reason}
        for kind, status in (("Progressing", progressing), ("Available", available))
        if status is not None
    ]
    return {**deployment(), "status": {"conditions": conditions}}


@pytest.mark.parametrize(
    ("progressing", "reason", "available", "state"),
    [
        ("True", "NewReplicaSetAvailable", "True", State.READY),
        ("True", "FoundNewReplicaSet", "True", State.PROCESSING),
        ("True", "NewReplicaSetCreated", "True", State.PROCESSING),
        ("True", "ReplicaSetUpdated", "True", State.PROCESSING),
        ("True", "NewReplicaSetAvailable", "False", State.PROCESSING),
        ("True", "FoundNewReplicaSet", "False", State.PROCESSING),
        ("True", "NewReplicaSetCreated", None, State.PROCESSING),
        ("True", "ReplicaSetUpdated", "False", State.PROCESSING),
        ("True", "SomethingElse", "True", State.ERROR),
        ("True", "SomethingElse", "False", State.ERROR),
        ("False", "ProgressDeadlineExceeded", "False", State.ERROR),
        ("False", "NewReplicaSetAvailable", "True", State.ERROR),
        (None, "NewReplicaSetAvailable", "True", State.ERROR),
    ],
)
def test_a_deployment_is_judged_by_two_conditions(
    progressing: str | None, reason: str, available: str | None, state: State
) -> None:
    assert deployment_state(reported(progressing, reason, available), now=NOW) is state


def aged(obj: Object, seconds: float) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "creationTimestamp": format_time(NOW - seconds)}}


def test_a_deployment_without_conditions_is_an_error_once_its_controller_had_time() -> None:
    assert deployment_state(aged(deployment(), 1.0), now=NOW) is State.PROCESSING
    assert deployment_state(aged(deployment(), SETTLING), now=NOW) is State.ERROR


def replicas(wanted: int | None, ready: int | None) -> Object:
    return {
        **deployment(),
        "spec": {} if wanted is None else {"replicas": wanted},
        "status": {} if ready is None else {"readyReplicas": ready},
    }


def pod(**status: Any) -> Object:
    return {"status": {"containerStatuses": [status]}}


@pytest.mark.parametrize(
    ("wanted", "ready", "pods", "state"),
    [
        (2, 2, [], State.READY),
        (0, None, [], State.READY),
        (None, 1, [pod(started=True, ready=True)], State.READY),
        (2, 1, [pod(started=True, ready=True), pod(started=False)], State.READY),
        (2, 1, [pod(started=True, ready=False)], State.PROCESSING),
        (2, 1, [pod(started=False, ready=True)], State.ERROR),
        (2, 1, [{"status": {}}], State.ERROR),
        (2, 1, [], State.ERROR),
    ],
)
def test_a_stateful_set_is_judged_by_replicas_then_by_its_first_pod(
    wanted: int | None, ready: int | None, pods: list[Object], state: State
) -> None:
    assert stateful_set_state(aged(replicas(wanted, ready), SETTLING), pods, now=NOW) is state


def test_the_first_workload_counts_by_the_contract() -> None:
    objects = [config_map("x"), deployment("one"), {**deployment("two"), "kind": "StatefulSet"}]
    manager = ModuleManager(group="apps", version="v1", kind="StatefulSet", name="two", namespace="kyma-system")

    def names(readiness: str, given: ModuleManager | None = manager) -> list[str]:
        return [obj["metadata"]["name"] for obj in judged(objects, readiness=readiness, manager=given)]

    assert names("contract") == ["one"]
    assert names("workloads") == ["one", "two"]
    assert names("manager") == names("resource") == ["two"]
    assert names("manager", None) == ["one"], "a module without a manager"


def test_a_whole_is_as_bad_as_its_worst_part() -> None:
    assert worst([]) is State.READY
    assert worst([State.READY, State.PROCESSING]) is State.PROCESSING
    assert worst([State.PROCESSING, State.ERROR, State.READY]) is State.ERROR


@pytest.mark.parametrize(
    ("resource", "state"),
    [
        (None, State.PROCESSING),
        ({}, State.PROCESSING),
        ({"status": {"state": "Ready"}}, State.READY),
        ({"status": {"state": "Warning"}}, State.WARNING),
        ({"status": {"state": "Nonsense"}}, State.PROCESSING),
        ({"status": "text"}, State.PROCESSING),
    ],
)
def test_a_module_resource_reports_its_state(resource: Any, state: State) -> None:
    assert resource_state(resource) is state
