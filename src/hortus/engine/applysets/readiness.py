"""The progress of an object, from the object alone: the rules of kstatus (sigs.k8s.io/cli-utils, pkg/kstatus).

First what holds for every kind: deletion, an old `observedGeneration`, the conditions Stalled and Reconciling. Then the
rules of the kind, for those that Kubernetes brings along; else the condition Ready, where there is one. An object of
which nothing is known is Current: it exists.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any, NamedTuple

from hortus.engine.conditions import find_condition
from hortus.kube.objects import Object


class ObjectStatus(StrEnum):
    """The states of kstatus."""

    CURRENT = "Current"
    IN_PROGRESS = "InProgress"
    FAILED = "Failed"
    TERMINATING = "Terminating"
    NOT_FOUND = "NotFound"
    UNKNOWN = "Unknown"


class Readiness(NamedTuple):
    status: ObjectStatus
    message: str = ""

    @property
    def ready(self) -> bool:
        return self.status is ObjectStatus.CURRENT


CURRENT = Readiness(ObjectStatus.CURRENT)
NOT_FOUND = Readiness(ObjectStatus.NOT_FOUND, "the object does not exist")


def readiness(obj: Object | None) -> Readiness:
    """The state of one object as it was read; never raises, whatever stands in its status."""
    if obj is None:
        return NOT_FOUND
    try:
        return _readiness(obj)
    except (TypeError, ValueError, AttributeError, KeyError):
        return Readiness(ObjectStatus.UNKNOWN, "its status has an unexpected shape")


def _readiness(obj: Object) -> Readiness:
    metadata, status = obj["metadata"], obj.get("status") or {}
    if metadata.get("deletionTimestamp"):
        return Readiness(ObjectStatus.TERMINATING, "it is being deleted")
    observed, generation = status.get("observedGeneration"), metadata.get("generation")
    if observed is not None and generation is not None and observed < generation:
        return _progress(f"generation {generation} is not looked at yet, only {observed}")
    if (found := _is_true(obj, "Stalled")) is not None:
        return Readiness(ObjectStatus.FAILED, _words(found))
    if (found := _is_true(obj, "Reconciling")) is not None:
        return _progress(_words(found))
    group = obj.get("apiVersion", "").rpartition("/")[0]
    rule = _RULES.get((group, obj.get("kind", "")))
    return rule(obj, obj.get("spec") or {}, status) if rule is not None else _by_ready(obj)


def _progress(message: str) -> Readiness:
    return Readiness(ObjectStatus.IN_PROGRESS, message)


def _is_true(obj: Object, kind: str, value: str = "True") -> Object | None:
    found = find_condition(obj, kind)
    return found if found is not None and found.get("status") == value else None


def _words(condition: Object) -> str:
    return str(condition.get("message") or condition.get("reason") or condition.get("type"))


def _by_ready(obj: Object) -> Readiness:
    found = find_condition(obj, "Ready")
    if found is None or found.get("status") == "True":
        return CURRENT
    return _progress(_words(found))


def _deployment(obj: Object, spec: Object, status: Object) -> Readiness:
    progressing = find_condition(obj, "Progressing")
    if progressing is not None and progressing.get("reason") == "ProgressDeadlineExceeded":
        return Readiness(ObjectStatus.FAILED, _words(progressing))
    if (failed := _is_true(obj, "ReplicaFailure")) is not None:
        return Readiness(ObjectStatus.FAILED, _words(failed))
    wanted = spec.get("replicas", 1)
    counts = {name: status.get(name) or 0 for name in ("replicas", "updatedReplicas", "readyReplicas")}
    counts["availableReplicas"] = status.get("availableReplicas") or 0
    for name in ("replicas", "updatedReplicas"):
        if counts[name] < wanted:
            return _progress(f"{name}: {counts[name]} of {wanted}")
    if counts["replicas"] > wanted:
        return _progress(f"{counts['replicas'] - wanted} old replicas still to go")
    for name in ("availableReplicas", "readyReplicas"):
        if counts[name] < wanted:
            return _progress(f"{name}: {counts[name]} of {wanted}")
    return CURRENT


def _replica_set(obj: Object, spec: Object, status: Object) -> Readiness:
    if (failed := _is_true(obj, "ReplicaFailure")) is not None:
        return Readiness(ObjectStatus.FAILED, _words(failed))
    wanted = spec.get("replicas", 1)
    for name in ("fullyLabeledReplicas", "availableReplicas", "readyReplicas"):
        if (status.get(name) or 0) < wanted:
            return _progress(f"{name}: {status.get(name) or 0} of {wanted}")
    if (status.get("replicas") or 0) > wanted:
        return _progress(f"{status['replicas'] - wanted} replicas still to go")
    return CURRENT


def _stateful_set(obj: Object, spec: Object, status: Object) -> Readiness:
    strategy = spec.get("updateStrategy") or {}
    if strategy.get("type") == "OnDelete":
        return CURRENT
    wanted = spec.get("replicas", 1)
    for name in ("replicas", "readyReplicas", "currentReplicas"):
        # With a partition, or in the middle of an update, replicas are counted as updated instead.
        count = status.get(name) or 0
        if name == "currentReplicas":
            count = max(count, status.get("updatedReplicas") or 0)
        if count < wanted:
            return _progress(f"{name}: {count} of {wanted}")
    if (status.get("replicas") or 0) > wanted:
        return _progress(f"{status['replicas'] - wanted} replicas still to go")
    partition = (strategy.get("rollingUpdate") or {}).get("partition") or 0
    updated = status.get("updatedReplicas") or 0
    if partition:
        enough = max(wanted - partition, 0)
        return CURRENT if updated >= enough else _progress(f"updatedReplicas: {updated} of {enough}")
    if status.get("currentRevision") != status.get("updateRevision"):
        return _progress("not every replica has the new revision")
    return CURRENT


def _daemon_set(obj: Object, spec: Object, status: Object) -> Readiness:
    if "desiredNumberScheduled" not in status or "observedGeneration" not in status:
        return _progress("its controller has not observed it yet")
    wanted = status["desiredNumberScheduled"]
    for name in ("currentNumberScheduled", "updatedNumberScheduled", "numberAvailable", "numberReady"):
        if (status.get(name) or 0) < wanted:
            return _progress(f"{name}: {status.get(name) or 0} of {wanted}")
    return CURRENT


def _job(obj: Object, spec: Object, status: Object) -> Readiness:
    """A Job that runs is Current: whether it succeeds is another question than whether it was taken up."""
    if (failed := _is_true(obj, "Failed")) is not None:
        return Readiness(ObjectStatus.FAILED, _words(failed))
    if _is_true(obj, "Complete") is not None or _is_true(obj, "Suspended") is not None or "startTime" in status:
        return CURRENT
    return _progress("it has not started")


def _pod(obj: Object, spec: Object, status: Object) -> Readiness:
    phase = status.get("phase")
    if phase == "Succeeded":
        return CURRENT
    if phase == "Failed":
        return Readiness(
            ObjectStatus.FAILED, str(status.get("message") or status.get("reason") or "the pod has failed")
        )
    if phase == "Running" and _is_true(obj, "Ready") is not None:
        return CURRENT
    states: list[Any] = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    for container in states:
        waiting = (container.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") == "CrashLoopBackOff":
            return Readiness(ObjectStatus.FAILED, f"container {container.get('name')} crashes again and again")
    scheduled = _is_true(obj, "PodScheduled", "False")
    return _progress(_words(scheduled) if scheduled is not None else f"phase {phase or 'Pending'}, not ready")


def _claim(obj: Object, spec: Object, status: Object) -> Readiness:
    phase = status.get("phase")
    return CURRENT if phase == "Bound" else _progress(f"phase {phase or 'Pending'}, not Bound")


def _service(obj: Object, spec: Object, status: Object) -> Readiness:
    if spec.get("type") == "LoadBalancer" and not (status.get("loadBalancer") or {}).get("ingress"):
        return _progress("it has no address of a load balancer")
    return CURRENT


def _definition(obj: Object, spec: Object, status: Object) -> Readiness:
    refused = _is_true(obj, "NamesAccepted", "False")
    if refused is not None:
        return Readiness(ObjectStatus.FAILED, _words(refused))
    established = find_condition(obj, "Established")
    if established is not None and established.get("status") == "True":
        return CURRENT
    return _progress("it is not Established")


def _budget(obj: Object, spec: Object, status: Object) -> Readiness:
    return CURRENT if "observedGeneration" in status else _progress("its controller has not observed it yet")


def _namespace(obj: Object, spec: Object, status: Object) -> Readiness:
    phase = status.get("phase", "Active")
    return CURRENT if phase == "Active" else Readiness(ObjectStatus.TERMINATING, f"phase {phase}")


_RULES: dict[tuple[str, str], Callable[[Object, Object, Object], Readiness]] = {
    ("apps", "Deployment"): _deployment,
    ("apps", "ReplicaSet"): _replica_set,
    ("apps", "StatefulSet"): _stateful_set,
    ("apps", "DaemonSet"): _daemon_set,
    ("batch", "Job"): _job,
    ("", "Pod"): _pod,
    ("", "PersistentVolumeClaim"): _claim,
    ("", "Service"): _service,
    ("", "Namespace"): _namespace,
    ("policy", "PodDisruptionBudget"): _budget,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _definition,
}
