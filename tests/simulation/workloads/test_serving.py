"""Workloads of simulated clusters run, and operators of modules do their work, over real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from hortus.domains.modules.manifests.readiness import deployment_state, stateful_set_state
from hortus.domains.modules.names import State
from hortus.domains.modules.samples import sample_modules
from hortus.kube import Client, ConnectionSettings, Resource, SystemClock, yaml
from hortus.kube.access import Access, Credentials, Secret
from hortus.kube.objects import Object
from hortus.simulation.garden.kinds import LOGICAL_CLUSTERS
from hortus.simulation.garden.workload import CRDS
from hortus.simulation.settings import GardenSettings
from hortus.simulation.workloads import (
    BEHAVIOUR,
    DEPLOYMENTS,
    STATEFUL_SETS,
    SimulatedWorkloads,
    follow,
    settled,
)
from hortus.testing import FakeClock, wait_for
from hortus.testing.apiserver import TestServer, started_apiserver

SAMPLES = Resource("operator.kyma-project.io", "v1alpha1", "samples", "Sample")
CLUSTER = "shoot--demo--one"
NOW = "2026-01-01T00:00:00Z"


@pytest.fixture(scope="module")
def server() -> Iterator[TestServer]:
    with started_apiserver() as running:
        yield running


@pytest.fixture
async def management(server: TestServer) -> AsyncIterator[Client]:
    """The management cluster, and workloads at work in all clusters."""
    credentials = Credentials(token=Secret(server.token_everywhere))
    access = Access(server=server.url, ca=server.ca, credentials=credentials)
    async with Client(access, settings=ConnectionSettings(connections=16)) as client:
        settings = GardenSettings(workload_duration=0.0, workload_clusters=2)
        task = asyncio.create_task(SimulatedWorkloads(client, settings=settings, clock=SystemClock()).run())
        yield client
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
async def cluster(server: TestServer, management: Client) -> AsyncIterator[Client]:
    obj = {"apiVersion": LOGICAL_CLUSTERS.api_version, "kind": LOGICAL_CLUSTERS.kind, "metadata": {"name": CLUSTER}}
    await management.apply(LOGICAL_CLUSTERS, obj, field_manager="test")
    access = Access(
        server=server.cluster_url(CLUSTER), ca=server.ca, credentials=Credentials(token=Secret(server.token_everywhere))
    )
    async with Client(access) as client:
        yield client


def workload(resource: Resource, name: str, replicas: int = 2, **annotations: str) -> Object:
    labels = {"app": name}
    container = {"name": "manager", "image": "example.com/a:1"}
    spec: dict[str, Any] = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
    }
    if resource is STATEFUL_SETS:
        spec["serviceName"] = name
    metadata = {"name": name, "namespace": "default", "annotations": annotations}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": spec}


async def test_workloads_run_and_follow_their_changes(cluster: Client) -> None:
    await cluster.create(DEPLOYMENTS, workload(DEPLOYMENTS, "web"))
    await cluster.create(STATEFUL_SETS, workload(STATEFUL_SETS, "db"))
    ready = await wait_for(cluster, DEPLOYMENTS, "web", "default", until=_replicas(2))
    assert deployment_state(ready, now=0.0) is State.READY
    ready = await wait_for(cluster, STATEFUL_SETS, "db", "default", until=_replicas(2))
    assert stateful_set_state(ready, (), now=0.0) is State.READY
    await cluster.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 3}}, "default")
    await wait_for(cluster, DEPLOYMENTS, "web", "default", until=_replicas(3))


async def test_a_broken_workload_never_becomes_available(cluster: Client) -> None:
    await cluster.create(DEPLOYMENTS, workload(DEPLOYMENTS, "bad", **{BEHAVIOUR: "broken"}))
    found = await wait_for(cluster, DEPLOYMENTS, "bad", "default", until=lambda obj: "conditions" in _status(obj))
    assert deployment_state(found, now=0.0) is State.PROCESSING
    assert "availableReplicas" not in _status(found)


async def test_an_object_that_is_as_it_should_be_costs_no_write(cluster: Client) -> None:
    await cluster.create(DEPLOYMENTS, workload(DEPLOYMENTS, "calm"))
    await cluster.create(DEPLOYMENTS, workload(DEPLOYMENTS, "calm-and-broken", **{BEHAVIOUR: "broken"}))
    await wait_for(cluster, DEPLOYMENTS, "calm", "default", until=_replicas(2))
    reported = await wait_for(
        cluster, DEPLOYMENTS, "calm-and-broken", "default", until=lambda obj: "conditions" in _status(obj)
    )
    for number in range(3):
        await cluster.create(DEPLOYMENTS, workload(DEPLOYMENTS, f"later-{number}"))
        await wait_for(cluster, DEPLOYMENTS, f"later-{number}", "default", until=_replicas(2))
    found = await cluster.get(DEPLOYMENTS, "calm-and-broken", "default")
    assert found["metadata"]["resourceVersion"] == reported["metadata"]["resourceVersion"]


async def test_a_module_s_resource_becomes_ready(cluster: Client) -> None:
    module = next(one for one in sample_modules() if one.config.module == "template-operator")
    crd = next(obj for obj in yaml.load_all(module.contents["raw-manifest"]) if obj["kind"] == CRDS.kind)
    await cluster.apply(CRDS, crd, field_manager="test")
    sample = yaml.load(module.contents["default-cr"])
    sample["metadata"]["namespace"] = "default"
    await wait_for(cluster, CRDS, crd["metadata"]["name"], "", until=_established)
    await cluster.apply(SAMPLES, sample, field_manager="test")
    found = await wait_for(cluster, SAMPLES, "sample", "default", until=lambda obj: "state" in _status(obj))
    assert _status(found)["state"] == "Ready"


def test_a_status_is_written_once() -> None:
    status = {"replicas": 0, "conditions": [{"type": "Available", "lastUpdateTime": NOW}]}
    deployment = workload(DEPLOYMENTS, "web")
    assert not settled(deployment, status)
    later = {"replicas": 0, "conditions": [{"type": "Available", "lastUpdateTime": "2027-01-01T00:00:00Z"}]}
    assert settled(deployment | {"status": {"conditions": status["conditions"]}}, later)


async def test_a_cluster_that_does_not_answer_is_asked_less_and_less() -> None:
    """A hibernated cluster refuses connections for days."""
    clock = FakeClock()

    async def unused(resource: Resource, obj: Object, gone: bool) -> None: ...

    async with Client(Access(server="https://127.0.0.1:1")) as client:
        task = asyncio.create_task(follow(client, DEPLOYMENTS, unused, clock))
        pauses = []
        for _ in range(6):
            await until(lambda: clock.next_due is not None)
            pauses.append(clock.next_due or 0.0)
            await clock.advance(pauses[-1])
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert [round(pause) for pause in pauses[:3]] == [1, 2, 4]
    assert all(9.0 <= pause <= 11.0 for pause in pauses[4:])


async def until(holds: Callable[[], bool]) -> None:
    """Let the loop run until a condition holds."""
    async with asyncio.timeout(60):
        while not holds():
            await asyncio.sleep(0)


def _status(obj: Object) -> dict[str, Any]:
    return obj.get("status") or {}


def _replicas(number: int) -> Any:
    return lambda obj: _status(obj).get("readyReplicas") == number


def _established(crd: Object) -> bool:
    return any(one["type"] == "Established" for one in _status(crd).get("conditions", ()))
