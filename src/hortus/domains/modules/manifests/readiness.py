"""The state of a module from its workloads. Pure.

By the contract the first Deployment or StatefulSet is the module's manager, and its state that of the module. By
`--module-readiness` all workloads count, or the one that spec.manager names, or the state of the module's resource too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from hortus.domains.modules.manifests.transforms import is_manager, workloads
from hortus.domains.modules.names import State
from hortus.domains.modules.types import ModuleManager
from hortus.engine.conditions import find_condition
from hortus.kube.objects import Object, parse_time

SETTLING: Final = 60.0
"""Seconds for which a new workload without any status counts as Processing: its controller has not seen it yet."""
_ROLLING_OUT: Final = frozenset(("FoundNewReplicaSet", "NewReplicaSetCreated", "ReplicaSetUpdated"))
_COMPLETE: Final = "NewReplicaSetAvailable"
_WORST: Final = (State.ERROR, State.PROCESSING, State.WARNING, State.DELETING, State.READY)


def judged(objects: Iterable[Object], *, readiness: str, manager: ModuleManager | None) -> list[Object]:
    """The workloads whose states count, in rendered order."""
    found = list(workloads(objects))
    if readiness == "workloads":
        return found
    if readiness in ("manager", "resource") and manager is not None:
        return [obj for obj in found if is_manager(obj, manager)]
    return found[:1]


def worst(states: Iterable[State]) -> State:
    """The state of a whole; Ready for one without parts."""
    return min(states, key=_WORST.index, default=State.READY)


def deployment_state(deployment: Object, *, now: float) -> State:
    """The state of a Deployment by its conditions."""
    progressing = find_condition(deployment, "Progressing") or {}
    available = find_condition(deployment, "Available") or {}
    reason = progressing.get("reason")
    if not progressing and not available and _age(deployment, now) < SETTLING:
        return State.PROCESSING
    if progressing.get("status") != "True":
        return State.ERROR
    if available.get("status") == "True" and reason == _COMPLETE:
        return State.READY
    return State.PROCESSING if reason == _COMPLETE or reason in _ROLLING_OUT else State.ERROR


def stateful_set_state(stateful_set: Object, pods: Sequence[Object], *, now: float) -> State:
    """The state of a StatefulSet by its replicas, else by the first container of its first pod."""
    spec, status = stateful_set.get("spec") or {}, stateful_set.get("status") or {}
    replicas = spec.get("replicas")
    if replicas is not None and replicas == (status.get("readyReplicas") or 0):
        return State.READY
    if not pods and _age(stateful_set, now) < SETTLING:
        return State.PROCESSING
    found: Any = ((pods[0].get("status") or {}).get("containerStatuses") or ()) if pods else ()
    if not found or not found[0].get("started"):
        return State.ERROR
    return State.READY if found[0].get("ready") else State.PROCESSING


def pod_selector(workload: Object) -> str:
    """The label selector of a workload's pods, by its matchLabels; empty where it has none."""
    labels = ((workload.get("spec") or {}).get("selector") or {}).get("matchLabels") or {}
    return ",".join(f"{name}={value}" for name, value in sorted(labels.items()))


def resource_state(resource: Object | None) -> State:
    """The state that a module's resource reports; Processing for one that is absent or silent."""
    if resource is None:
        return State.PROCESSING
    try:
        return State((resource.get("status") or {}).get("state") or State.PROCESSING)
    except (ValueError, AttributeError):
        return State.PROCESSING


def _age(obj: Object, now: float) -> float:
    created = obj["metadata"].get("creationTimestamp")
    return now - parse_time(created) if created else 0.0
