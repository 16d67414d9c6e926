"""The availability of agents and sensors, judged from the status of their workloads.

The rules are those of instana/instana-agent-operator (`pkg/k8s/operator/status/helpers.go`).
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from hortus.kube.objects import Object, shaped


class _Metadata(msgspec.Struct):
    generation: int = 0


class _DaemonSetStatus(msgspec.Struct, rename="camel"):
    observed_generation: int = 0
    number_misscheduled: int = 0
    desired_number_scheduled: int = 0
    number_available: int = 0
    updated_number_scheduled: int = 0


class _DaemonSet(msgspec.Struct):
    metadata: _Metadata
    status: _DaemonSetStatus | None = None


class _Condition(msgspec.Struct):
    type: str = ""
    status: str = ""
    reason: str = ""


class _DeploymentStatus(msgspec.Struct, rename="camel"):
    observed_generation: int = 0
    conditions: tuple[_Condition, ...] = ()


class _Deployment(msgspec.Struct):
    metadata: _Metadata
    status: _DeploymentStatus = msgspec.field(default_factory=_DeploymentStatus)


def daemon_set_available(live: Object) -> bool:
    """Reports whether every node that should have an agent has one of the present template that is available."""
    found = shaped(live, _DaemonSet)
    if found is None or found.status is None or found.status == _DaemonSetStatus():
        return False
    status = found.status
    return (
        status.observed_generation == found.metadata.generation
        and status.number_misscheduled == 0
        and status.desired_number_scheduled == status.number_available == status.updated_number_scheduled
    )


def deployment_available(live: Object) -> bool:
    """Reports whether the Deployment has rolled out its present template and has its replicas."""
    found = shaped(live, _Deployment)
    if found is None or found.status.observed_generation != found.metadata.generation:
        return False
    held = {(one.type, one.status) for one in found.status.conditions}
    return (
        ("Available", "True") in held
        and ("ReplicaFailure", "True") not in held
        and any(
            (one.type, one.status, one.reason) == ("Progressing", "True", "NewReplicaSetAvailable")
            for one in found.status.conditions
        )
    )


def all_available(kind: str, workloads: Iterable[Object]) -> bool:
    """Reports whether all workloads of a kind, DaemonSet or Deployment, are available; none count as such."""
    judge = daemon_set_available if kind == "DaemonSet" else deployment_available
    return all(map(judge, workloads))
