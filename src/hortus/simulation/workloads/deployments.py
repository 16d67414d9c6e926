"""A Deployment: its pods by count, one step of its roll-out, and its status. Pure.

As kube-controller-manager does it (pkg/controller/deployment): a Recreate ends all old pods first; a RollingUpdate
starts new ones up to `maxSurge` and ends old ones down to `maxUnavailable`, those that do not work first. Nothing is
started or ended for a new template while the Deployment is paused. Pods of a Deployment are on no node.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from hortus.engine.conditions import find_condition
from hortus.kube.objects import Object, format_time, parse_time
from hortus.simulation.garden.nodes import amount
from hortus.simulation.workloads.behaviour import is_broken, settled
from hortus.simulation.workloads.pods import KubeletPace, Pod, revision_of

Pods = tuple[Pod, ...]
_AVAILABLE: Final = ("MinimumReplicasAvailable", "Deployment has minimum availability.")
_LATE: Final = "ProgressDeadlineExceeded"
_UNAVAILABLE: Final = ("MinimumReplicasUnavailable", "Deployment does not have minimum availability.")


class Deployment(NamedTuple):
    """A Deployment that an API server has defaulted."""

    name: str
    generation: int
    revision: str
    replicas: int
    minimum_ready: float
    recreates: bool
    surge: int
    unavailable: int
    paused: bool
    deadline: float | None
    """Seconds without progress after which it says so."""
    works: bool
    template_works: bool

    def available(self, pod: Pod, now: float) -> bool:
        return self.works and pod.available(now, self.minimum_ready)

    def is_new(self, pod: Pod) -> bool:
        return pod.revision == self.revision


def deployment_of(obj: Object) -> Deployment:
    """The Deployment of an object that an API server has defaulted."""
    spec = obj["spec"]
    strategy = spec.get("strategy") or {}
    rolling = strategy.get("rollingUpdate") or {}
    replicas = 1 if spec.get("replicas") is None else spec["replicas"]
    surge = amount(rolling.get("maxSurge", "25%"), replicas, up=True)
    unavailable = amount(rolling.get("maxUnavailable", "25%"), replicas, up=False)
    return Deployment(
        name=obj["metadata"]["name"],
        generation=obj["metadata"].get("generation", 1),
        revision=revision_of(spec["template"]),
        replicas=replicas,
        minimum_ready=spec.get("minReadySeconds") or 0,
        recreates=strategy.get("type") == "Recreate",
        surge=surge,
        unavailable=unavailable if surge or unavailable else 1,
        paused=bool(spec.get("paused")),
        deadline=spec.get("progressDeadlineSeconds"),
        works=not is_broken(obj),
        template_works=not is_broken(spec["template"]),
    )


def step(deployment: Deployment, pods: Pods, kubelet: KubeletPace, now: float) -> Pods:
    """The pods after everything that is due by now has happened."""
    pods = tuple(kubelet.restarted(pod, now) for pod in pods)
    if deployment.paused and pods:
        more = max(0, deployment.replicas - len(pods))
        return pods[: deployment.replicas] + tuple(_started(deployment, pods[-1].revision, more, kubelet, now))
    new = [pod for pod in pods if deployment.is_new(pod)][: deployment.replicas]
    old = _remaining(deployment, [pod for pod in pods if not deployment.is_new(pod)], new, now)
    if deployment.recreates:
        wanted = 0 if old else deployment.replicas
    else:
        wanted = min(deployment.replicas, deployment.replicas + deployment.surge - len(old))
    return (*old, *new, *_started(deployment, deployment.revision, wanted - len(new), kubelet, now))


def _remaining(deployment: Deployment, old: list[Pod], new: Sequence[Pod], now: float) -> list[Pod]:
    """The old pods that are not ended now."""
    if deployment.recreates:
        return []
    least = deployment.replicas - deployment.unavailable
    starting = sum(not deployment.available(pod, now) for pod in new)
    ended = max(0, len(old) + len(new) - least - starting)
    working = [pod for pod in old if deployment.available(pod, now)]
    failed = [pod for pod in old if not deployment.available(pod, now)][ended:]
    available = len(working) + len(new) - starting
    return [*failed, *working[max(0, min(ended, available - least)) :]]


def _started(deployment: Deployment, revision: str, count: int, kubelet: KubeletPace, now: float) -> list[Pod]:
    broken = not deployment.template_works and revision == deployment.revision
    return [kubelet.run("", revision, now, broken=broken) for _ in range(count)]


def recovered(deployment: Deployment, status: Mapping[str, Any], now: float) -> Pods:
    """The pods of a Deployment whose simulation has begun again, as far as its status says."""
    total, ready = int(status.get("replicas") or 0), int(status.get("readyReplicas") or 0)
    is_current = status.get("observedGeneration") == deployment.generation
    updated = int(status.get("updatedReplicas") or 0) if is_current else 0
    late = now if deployment.template_works else math.inf
    return tuple(
        Pod("", deployment.revision if index < updated else "", now, 0.0 if index < ready else late)
        for index in range(total)
    )


def status_of(deployment: Deployment, pods: Pods, before: Mapping[str, Any], now: float) -> Object:
    """The status as kube-controller-manager writes it; `before` is the one that the object has."""
    available = sum(deployment.available(pod, now) for pod in pods)
    counts = {
        "observedGeneration": deployment.generation,
        "replicas": len(pods),
        "updatedReplicas": sum(map(deployment.is_new, pods)),
        "readyReplicas": sum(pod.ready(now) for pod in pods) if deployment.works else 0,
        "availableReplicas": available,
        "unavailableReplicas": max(0, len(pods) - available),
    }
    has_moved = not settled({"status": dict(before)}, counts)
    enough = available >= deployment.replicas - (0 if deployment.recreates else deployment.unavailable)
    conditions = [
        _condition("Available", *(_AVAILABLE if enough else _UNAVAILABLE), before, now, holds=enough),
        _progressing(deployment, counts, before, now, has_moved=has_moved),
    ]
    return counts | {"conditions": conditions}


def _progressing(
    deployment: Deployment, counts: Mapping[str, int], before: Mapping[str, Any], now: float, *, has_moved: bool
) -> Object:
    subject = f'ReplicaSet "{deployment.name}-{deployment.revision}"'
    wanted = deployment.replicas
    if all(counts[name] == wanted for name in ("replicas", "updatedReplicas", "availableReplicas")):
        done = f"{subject} has successfully progressed."
        return _condition("Progressing", "NewReplicaSetAvailable", done, before, now)
    if deployment.paused:
        return _condition("Progressing", "DeploymentPaused", "Deployment is paused", before, now, holds=None)
    if not has_moved and _is_late(deployment, before, now):
        late = f"{subject} has timed out progressing."
        return _condition("Progressing", _LATE, late, before, now, holds=False)
    moved = _condition("Progressing", "ReplicaSetUpdated", f"{subject} is progressing.", before, now)
    return moved | ({"lastUpdateTime": format_time(now)} if has_moved else {})


def _is_late(deployment: Deployment, status: Mapping[str, Any], now: float) -> bool:
    """True when the deadline of the roll-out is over, or was when the status was written."""
    if (find_condition({"status": dict(status)}, "Progressing") or {}).get("reason") == _LATE:
        return True
    left = late_in(deployment, status, now)
    return left is not None and left <= 0


def late_in(deployment: Deployment, status: Mapping[str, Any], now: float) -> float | None:
    """Seconds until a roll-out without progress exceeds its deadline; None when none is under way."""
    progressing = find_condition({"status": dict(status)}, "Progressing")
    if deployment.deadline is None or progressing is None or progressing.get("reason") != "ReplicaSetUpdated":
        return None
    return parse_time(progressing["lastUpdateTime"]) + deployment.deadline - now


def _condition(
    kind: str, reason: str, message: str, status: Mapping[str, Any], now: float, *, holds: bool | None = True
) -> Object:
    """A condition; its times are those of the present one where it says the same."""
    stamp = format_time(now)
    made = {
        "type": kind,
        "status": "Unknown" if holds is None else str(holds),
        "reason": reason,
        "message": message,
        "lastUpdateTime": stamp,
        "lastTransitionTime": stamp,
    }
    before = find_condition({"status": dict(status)}, kind)
    if before is None or before["status"] != made["status"]:
        return made
    kept = ("lastTransitionTime", "lastUpdateTime") if before["reason"] == reason else ("lastTransitionTime",)
    return made | {name: before[name] for name in kept if name in before}
