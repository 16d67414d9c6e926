"""Availability and conditions, case by case."""

from __future__ import annotations

from typing import Any

import pytest

from hortus.domains.agents.operating import verdicts
from hortus.domains.agents.operating.availability import daemon_set_available, deployment_available
from hortus.domains.agents.operating.verdicts import AGENT, REMOTE, AgentCondition, Workload
from hortus.kube.objects import Object


def daemon_set(**status: Any) -> Object:
    good = {
        "observedGeneration": 3,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 5,
        "numberAvailable": 5,
        "updatedNumberScheduled": 5,
    }
    return {"metadata": {"name": "agent", "generation": 3}, "status": good | status}


AVAILABLE = {"type": "Available", "status": "True"}
ROLLED_OUT = {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}


def deployment(*conditions: Object, observed: int = 3) -> Object:
    status = {"observedGeneration": observed, "conditions": list(conditions)}
    return {"metadata": {"name": "sensor", "generation": 3}, "status": status}


@pytest.mark.parametrize(
    ("live", "expected"),
    [
        (daemon_set(), True),
        ({"metadata": {"name": "agent"}}, False),
        ({"metadata": {"name": "agent"}, "status": {}}, False),
        (daemon_set(observedGeneration=2), False),
        (daemon_set(numberMisscheduled=1), False),
        (daemon_set(numberAvailable=4), False),
        (daemon_set(updatedNumberScheduled=4), False),
        (daemon_set(desiredNumberScheduled=0, numberAvailable=0, updatedNumberScheduled=0), True),
    ],
)
def test_a_daemon_set_is_available_when_every_node_has_the_present_pod(live: Object, expected: bool) -> None:
    assert daemon_set_available(live) is expected


@pytest.mark.parametrize(
    ("live", "expected"),
    [
        (deployment(AVAILABLE, ROLLED_OUT), True),
        (deployment(AVAILABLE, ROLLED_OUT, {"type": "ReplicaFailure", "status": "False"}), True),
        (deployment(AVAILABLE, ROLLED_OUT, {"type": "ReplicaFailure", "status": "True"}), False),
        (deployment(AVAILABLE, ROLLED_OUT, observed=2), False),
        (deployment(ROLLED_OUT), False),
        (deployment(AVAILABLE), False),
        (deployment({"type": "Available", "status": "False"}, ROLLED_OUT), False),
        (deployment(AVAILABLE, ROLLED_OUT | {"reason": "ReplicaSetUpdated"}), False),
        (deployment(AVAILABLE, ROLLED_OUT | {"status": "Unknown"}), False),
        ({"metadata": {"name": "sensor", "generation": 1}}, False),
    ],
)
def test_a_deployment_is_available_when_its_present_template_is_rolled_out(live: Object, expected: bool) -> None:
    assert deployment_available(live) is expected


GOOD, BAD = deployment(AVAILABLE, ROLLED_OUT), deployment()


def test_without_daemon_sets_all_agents_count_as_available_and_a_remote_does_not() -> None:
    assert verdicts.agents_available(AGENT, ()).status == "True"
    assert verdicts.agents_available(REMOTE, ()).status == "False"


def test_a_workload_that_is_not_found_makes_the_availability_unknown() -> None:
    assert verdicts.agents_available(AGENT, (Workload("one", daemon_set()), Workload("two", None))) == AgentCondition(
        "AllAgentsAvailable",
        "Unknown",
        "AgentDaemonsetInfoUnavailable",
        "failed to retrieve status of Agent Daemonset: two due to error: not found",
    )
    assert verdicts.agents_available(REMOTE, (Workload("one", None),)).reason == "AgentDeploymentInfoUnavailable"
    assert verdicts.sensors_available((Workload("one", None),), enabled=True).reason == (
        "K8sensorDeploymentInfoUnavailable"
    )


@pytest.mark.parametrize(("first", "last"), [(GOOD, BAD), (BAD, GOOD)])
def test_the_sensors_of_all_backends_count_and_not_the_last_alone(first: Object, last: Object) -> None:
    workloads = (Workload("agent-k8sensor", first), Workload("agent-k8sensor-1", last))
    assert verdicts.sensors_available(workloads, enabled=True).status == "False"


def test_sensors_that_are_switched_off_lose_their_condition_and_fail_nothing() -> None:
    assert verdicts.sensors_available((), enabled=False) == AgentCondition("AllK8sSensorsAvailable", None)
    assert verdicts.sensors_available((), enabled=True).reason == "K8sensorDeploymentNotConfigured"


def test_a_reconcile_reports_the_words_of_its_kind() -> None:
    assert verdicts.reconciled(REMOTE, "") == AgentCondition(
        "ReconcileSucceeded",
        "True",
        "ReconcileSucceeded",
        "most recent reconcile of instana agent remote CR completed without issue",
    )
    assert verdicts.reconciled(AGENT, "boom") == AgentCondition(
        "ReconcileSucceeded", "False", "ReconcileFailed", "boom"
    )


def test_problems_of_a_spec_are_one_condition_which_goes_with_them() -> None:
    found = verdicts.configured({"KeyMissing": "no key", "NameShared": "two"})
    assert found == AgentCondition("ConfigurationComplete", "False", "KeyMissing", "no key; two")
    assert verdicts.configured({}) == AgentCondition("ConfigurationComplete", None)


@pytest.mark.parametrize(
    ("before", "observed", "seen", "running", "expected"),
    [
        (False, None, "", "v2.2.16", False),
        (False, 3, "2.2.16", "v2.2.16", False),
        (False, 2, "2.2.16", "v2.2.16", True),
        (False, 3, "2.2.15", "v2.2.16", True),
        (False, 3, "v2.2.16", "v2.2.16", False),
        (False, 3, "2.2.16", "main", True),
        (True, 3, "2.2.16", "v2.2.16", True),
    ],
)
def test_old_versions_are_updated_once_another_generation_or_operator_was_there(
    before: bool, observed: int | None, seen: str, running: str, expected: bool
) -> None:
    found = verdicts.old_versions_updated(before=before, observed=observed, generation=3, seen=seen, running=running)
    assert found is expected


@pytest.mark.parametrize(
    ("raw", "shown"), [("v2.2.16", "2.2.16"), ("2.2.16-rc.1+5", "2.2.16-rc.1+5"), ("main", ""), ("v2.2", "")]
)
def test_the_version_of_the_status_is_semantic_or_none(raw: str, shown: str) -> None:
    assert verdicts.semantic_version(raw) == shown


def test_an_object_that_is_not_there_has_an_empty_name_and_uid() -> None:
    assert verdicts.info_of(None) == {"name": "", "uid": ""}
    assert verdicts.info_of({"metadata": {"name": "one", "uid": "u"}}) == {"name": "one", "uid": "u"}
