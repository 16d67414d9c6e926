"""The workload that shows that a module is installed: its version and its state, as they are in the cluster. Pure."""

from __future__ import annotations

from typing import Final

import msgspec

from hortus.domains.modules.types import ModuleTemplate
from hortus.domains.modules.using.installed import UNKNOWN
from hortus.engine.conditions import find_condition, has_condition
from hortus.kube.objects import Object, shaped

VERSION_LABEL: Final = "app.kubernetes.io/version"
_MANAGER: Final = "manager"
"""Part of the name of the container whose image has the version."""


class _Container(msgspec.Struct):
    name: str = ""
    image: str = ""


class _PodSpec(msgspec.Struct):
    containers: list[_Container] = []


class _Pod(msgspec.Struct):
    spec: _PodSpec = msgspec.field(default_factory=_PodSpec)


class _WorkloadSpec(msgspec.Struct):
    template: _Pod = msgspec.field(default_factory=_Pod)


class _Meta(msgspec.Struct):
    labels: dict[str, str] = {}


class _WorkloadStatus(msgspec.Struct, rename="camel"):
    state: str = ""
    ready_replicas: int = -1


class _Workload(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    spec: _WorkloadSpec = msgspec.field(default_factory=_WorkloadSpec)
    status: _WorkloadStatus = msgspec.field(default_factory=_WorkloadStatus)


def version_of(workload: Object) -> str:
    """The version of a module's workload, by its label or the tag of its manager's image; empty if neither says."""
    found = shaped(workload, _Workload) or _Workload()
    if version := found.metadata.labels.get(VERSION_LABEL, ""):
        return version.removeprefix("v")
    for container in found.spec.template.spec.containers:
        if _MANAGER in container.name:
            _, separator, tag = container.image.partition("@")[0].rpartition(":")
            return tag.removeprefix("v") if separator and "/" not in tag else ""
    return ""


def is_of(template: ModuleTemplate, workload: Object, *, alone: bool) -> bool:
    """Reports whether a workload is that of this version of the module; `alone` is one that has no other versions."""
    version = version_of(workload)
    return version == template.spec.version if version else alone


def workload_state(workload: Object) -> str:
    """The state of a workload: its own, or by its condition Available, or by its replicas."""
    found = shaped(workload, _Workload) or _Workload()
    if found.status.state:
        return found.status.state
    if find_condition(workload, "Available") is not None:
        return _ready(ready=has_condition(workload, "Available"))
    return UNKNOWN if found.status.ready_replicas < 0 else _ready(ready=found.status.ready_replicas > 0)


def _ready(*, ready: bool) -> str:
    return "Ready" if ready else "NotReady"
