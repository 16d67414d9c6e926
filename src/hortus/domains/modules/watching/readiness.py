"""Readiness of the agent, as its cluster reports it."""

from __future__ import annotations

from typing import Final

import msgspec

from hortus.kube.objects import Object

_HOPELESS: Final = ("CrashLoopBackOff", "ImagePullBackOff")


class _Waiting(msgspec.Struct, frozen=True):
    reason: str = ""
    message: str = ""


class _ContainerState(msgspec.Struct, frozen=True):
    waiting: _Waiting | None = None


class _ContainerStatus(msgspec.Struct, frozen=True):
    name: str = ""
    state: _ContainerState = _ContainerState()


class _PodStatus(msgspec.Struct, frozen=True, rename="camel"):
    container_statuses: tuple[_ContainerStatus, ...] = ()


class _Named(msgspec.Struct, frozen=True):
    name: str


class _Pod(msgspec.Struct, frozen=True):
    metadata: _Named
    status: _PodStatus = _PodStatus()


class _DeploymentStatus(msgspec.Struct, frozen=True, rename="camel"):
    ready_replicas: int = 0


class _Deployment(msgspec.Struct, frozen=True):
    status: _DeploymentStatus = _DeploymentStatus()


def ready_replicas(deployment: Object) -> int:
    """The replicas that a Deployment reports as ready."""
    return msgspec.convert(deployment, _Deployment).status.ready_replicas


def agent_problem(pod: Object) -> str:
    """The reason for which a pod will not become ready by itself; empty where it may."""
    found = msgspec.convert(pod, _Pod)
    for container in found.status.container_statuses:
        waiting = container.state.waiting
        if waiting is not None and waiting.reason in _HOPELESS:
            return f"pod {found.metadata.name}: container {container.name}: {waiting.reason}"
    return ""
