"""The rules of kstatus, kind by kind."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hortus.engine.applysets import ObjectStatus, readiness
from hortus.kube.objects import Object

DONE, BUSY, FAILED = ObjectStatus.CURRENT, ObjectStatus.IN_PROGRESS, ObjectStatus.FAILED


def condition(kind: str, status: str = "True", **fields: str) -> Object:
    return {"type": kind, "status": status, **fields}


def obj(kind: str, api: str = "v1", *, spec: Any = None, meta: Any = None, **status: Any) -> Object:
    return {
        "apiVersion": api,
        "kind": kind,
        "metadata": {"name": "x", **(meta or {})},
        "spec": spec or {},
        "status": status,
    }


def deployment(wanted: int = 2, **status: Any) -> Object:
    counts = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    return obj("Deployment", "apps/v1", spec={"replicas": wanted}, **{**dict.fromkeys(counts, wanted), **status})


def stateful_set(**status: Any) -> Object:
    counts = {"replicas": 2, "readyReplicas": 2, "currentReplicas": 2, "currentRevision": "a", "updateRevision": "a"}
    return obj("StatefulSet", "apps/v1", spec={"replicas": 2}, **{**counts, **status})


def daemon_set(**status: Any) -> Object:
    names = (
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberReady",
    )
    return obj("DaemonSet", "apps/v1", **{**dict.fromkeys(names, 3), "observedGeneration": 1, **status})


@pytest.mark.parametrize(
    ("found", "status"),
    [
        (None, ObjectStatus.NOT_FOUND),
        (obj("Anything", meta={"deletionTimestamp": "2026-01-01T00:00:00Z"}), ObjectStatus.TERMINATING),
        (obj("Anything", "a.example/v1"), DONE),
        (obj("Anything", "a.example/v1", meta={"generation": 2}, observedGeneration=1), BUSY),
        (obj("Anything", "a.example/v1", meta={"generation": 2}, observedGeneration=2), DONE),
        (obj("Anything", "a.example/v1", conditions=[condition("Ready")]), DONE),
        (obj("Anything", "a.example/v1", conditions=[condition("Ready", "False", message="no")]), BUSY),
        (obj("Anything", "a.example/v1", conditions=[condition("Ready", "Unknown")]), BUSY),
        (obj("Anything", "a.example/v1", conditions=[condition("Ready"), condition("Reconciling")]), BUSY),
        (obj("Anything", "a.example/v1", conditions=[condition("Stalled", message="bad spec")]), FAILED),
        (deployment(), DONE),
        (deployment(0), DONE),
        (deployment(updatedReplicas=1), BUSY),
        (deployment(replicas=3), BUSY),
        (deployment(availableReplicas=1), BUSY),
        (deployment(readyReplicas=1), BUSY),
        (deployment(conditions=[condition("Progressing", "False", reason="ProgressDeadlineExceeded")]), FAILED),
        (deployment(conditions=[condition("ReplicaFailure", message="quota")]), FAILED),
        (stateful_set(), DONE),
        (stateful_set(readyReplicas=1), BUSY),
        (stateful_set(updateRevision="b", updatedReplicas=1), BUSY),
        (stateful_set(replicas=3), BUSY),
        (stateful_set(currentReplicas=0, updatedReplicas=2, currentRevision="b", updateRevision="b"), DONE),
        (daemon_set(), DONE),
        (daemon_set(numberReady=2), BUSY),
        (daemon_set(updatedNumberScheduled=0), BUSY),
        (obj("DaemonSet", "apps/v1"), BUSY),
        (obj("ReplicaSet", "apps/v1", spec={"replicas": 1}, replicas=1, readyReplicas=1, availableReplicas=1), BUSY),
        (obj("Job", "batch/v1"), BUSY),
        (obj("Job", "batch/v1", startTime="2026-01-01T00:00:00Z", active=1), DONE),
        (obj("Job", "batch/v1", conditions=[condition("Complete")]), DONE),
        (obj("Job", "batch/v1", startTime="2026-01-01T00:00:00Z", conditions=[condition("Failed")]), FAILED),
        (obj("Pod"), BUSY),
        (obj("Pod", phase="Succeeded"), DONE),
        (obj("Pod", phase="Failed"), FAILED),
        (obj("Pod", phase="Running", conditions=[condition("Ready")]), DONE),
        (obj("Pod", phase="Running", conditions=[condition("Ready", "False")]), BUSY),
        (
            obj(
                "Pod",
                phase="Running",
                containerStatuses=[{"name": "c", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}],
            ),
            FAILED,
        ),
        (obj("PersistentVolumeClaim", phase="Bound"), DONE),
        (obj("PersistentVolumeClaim", phase="Pending"), BUSY),
        (obj("Service", spec={"type": "ClusterIP"}), DONE),
        (obj("Service", spec={"type": "LoadBalancer"}), BUSY),
        (obj("Service", spec={"type": "LoadBalancer"}, loadBalancer={"ingress": [{"ip": "1.2.3.4"}]}), DONE),
        (obj("PodDisruptionBudget", "policy/v1"), BUSY),
        (obj("PodDisruptionBudget", "policy/v1", observedGeneration=1), DONE),
        (obj("CustomResourceDefinition", "apiextensions.k8s.io/v1"), BUSY),
        (obj("CustomResourceDefinition", "apiextensions.k8s.io/v1", conditions=[condition("Established")]), DONE),
        (
            obj(
                "CustomResourceDefinition", "apiextensions.k8s.io/v1", conditions=[condition("NamesAccepted", "False")]
            ),
            FAILED,
        ),
        (obj("Namespace", phase="Active"), DONE),
        (obj("Namespace", phase="Terminating"), ObjectStatus.TERMINATING),
        (obj("Job", "batch/v1", conditions="what"), BUSY),
        (
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {}, "spec": 3, "status": {"replicas": "x"}},
            ObjectStatus.UNKNOWN,
        ),
    ],
)
def test_the_state_of_an_object(found: Object | None, status: ObjectStatus) -> None:
    answer = readiness(found)
    assert answer.status is status, answer.message
    assert answer.ready == (status is DONE)


def test_messages_say_what_is_missing() -> None:
    assert readiness(deployment(readyReplicas=1)).message == "readyReplicas: 1 of 2"
    stalled = obj("A", "a.example/v1", conditions=[condition("Stalled", message="spec.size is too large")])
    assert readiness(stalled).message == "spec.size is too large"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KINDS = ("apps/v1 Deployment", "apps/v1 StatefulSet", "batch/v1 Job", "v1 Pod", "v1 Service", "a.example/v1 Any")
FIELDS = ("conditions", "replicas", "observedGeneration", "loadBalancer", "containerStatuses", "phase")


@given(st.sampled_from(KINDS), JSON, st.dictionaries(st.sampled_from(FIELDS), JSON) | JSON)
def test_no_status_whatever_it_holds_raises(kind: str, spec: Any, status: Any) -> None:
    api, _, name = kind.partition(" ")
    found = readiness({"apiVersion": api, "kind": name, "metadata": {"generation": 1}, "spec": spec, "status": status})
    assert found.status in ObjectStatus
