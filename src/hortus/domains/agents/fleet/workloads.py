"""The workloads of an agent: the outlines that watches keep of them, and their state in numbers."""

from __future__ import annotations

from typing import Final, NamedTuple

from hortus.domains.agents.operating.availability import daemon_set_available, deployment_available
from hortus.domains.agents.types import NodeCounts, SensorCounts
from hortus.engine import Change, metadata_of
from hortus.kube.objects import Object, Resource, shaped
from hortus.schema import Fields

DAEMON_SETS: Final = Resource("apps", "v1", "daemonsets", "DaemonSet")
DEPLOYMENTS: Final = Resource("apps", "v1", "deployments", "Deployment")

Generations = dict[tuple[str, str], int]
"""By kind and name of a workload, its generation."""


class _NodeStatus(Fields, frozen=True):
    desired_number_scheduled: int = 0
    number_available: int = 0
    updated_number_scheduled: int = 0


class _DaemonSet(Fields, frozen=True):
    status: _NodeStatus = _NodeStatus()


class _SensorStatus(Fields, frozen=True):
    replicas: int = 0
    available_replicas: int = 0


class _Deployment(Fields, frozen=True):
    status: _SensorStatus = _SensorStatus()


class AgentWorkloads(NamedTuple):
    """The workloads of one agent as the watches show them."""

    generations: Generations
    nodes: NodeCounts
    sensors: SensorCounts
    available: bool
    """All of them run with their present templates."""


def workloads_of(daemon_sets: list[Object], deployments: list[Object]) -> AgentWorkloads:
    generations = {
        (resource.kind, metadata.name): metadata.generation
        for resource, objects in ((DAEMON_SETS, daemon_sets), (DEPLOYMENTS, deployments))
        for metadata in map(metadata_of, objects)
    }
    nodes = [one.status for obj in daemon_sets if (one := shaped(obj, _DaemonSet)) is not None]
    sensors = [found.status for obj in deployments if (found := shaped(obj, _Deployment)) is not None]
    return AgentWorkloads(
        generations,
        NodeCounts(
            desired=sum(one.desired_number_scheduled for one in nodes),
            available=sum(one.number_available for one in nodes),
            updated=sum(one.updated_number_scheduled for one in nodes),
        ),
        SensorCounts(
            desired=sum(one.replicas for one in sensors), available=sum(one.available_replicas for one in sensors)
        ),
        available=all(map(daemon_set_available, daemon_sets)) and all(map(deployment_available, deployments)),
    )


def outline(obj: Object) -> Object:
    """The parts of a workload that are kept."""
    metadata = metadata_of(obj)
    kept = {
        "name": metadata.name,
        "namespace": metadata.namespace,
        "resourceVersion": metadata.resource_version,
        "uid": metadata.uid,
        "generation": metadata.generation,
        "labels": metadata.labels,
    }
    return {"metadata": kept, "status": obj.get("status") or {}}


def matters(change: Change) -> bool:
    """Reports whether more than the version of an object differs."""
    if change.old is None or change.new is None:
        return True
    before, after = metadata_of(change.old), metadata_of(change.new)
    return change.old["status"] != change.new["status"] or (before.generation, before.labels, before.uid) != (
        after.generation,
        after.labels,
        after.uid,
    )


def without_owner(obj: Object) -> Object:
    """A built object without its owner, the InstanaAgent, which is in no cluster."""
    return {**obj, "metadata": {name: value for name, value in obj["metadata"].items() if name != "ownerReferences"}}
