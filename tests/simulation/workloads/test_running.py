"""DaemonSets and Deployments of one cluster run, over real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from tests.waiting import until

from hortus.kube import Client, SystemClock
from hortus.kube.objects import Object, Resource
from hortus.simulation.workloads import (
    BEHAVIOUR,
    BROKEN,
    DAEMON_SETS,
    DEPLOYMENTS,
    NODES,
    PODS,
    KubeletPace,
    RunningWorkloads,
)
from hortus.testing import FakeClock, wait_for
from hortus.testing.apiserver import running_apiserver

NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)


@asynccontextmanager
async def simulated(client: Client, kubelet: KubeletPace | None = None, *, pods: bool = False) -> AsyncIterator[None]:
    workloads = RunningWorkloads(client, kubelet or KubeletPace(), clock=SystemClock(), pod_objects=pods)
    task = asyncio.create_task(workloads.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def cluster() -> AsyncIterator[Client]:
    async with running_apiserver() as server, Client.from_kubeconfig(server.kubeconfig) as client:
        yield client


def daemon_set(name: str = "agent", image: str = "agent:1", **template: Any) -> Object:
    labels = {"app": name}
    return {
        "apiVersion": DAEMON_SETS.api_version,
        "kind": DAEMON_SETS.kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "agent", "image": image}], **template},
            },
        },
    }


def node(name: str, **labels: str) -> Object:
    return {"apiVersion": "v1", "kind": NODES.kind, "metadata": {"name": name, "labels": labels}}


def counted(desired: int, updated: int, ready: int) -> Callable[[Object], bool]:
    names = ("desiredNumberScheduled", "updatedNumberScheduled", "numberReady")

    def holds(obj: Object) -> bool:
        status = obj.get("status") or {}
        known = status.get("observedGeneration") == obj["metadata"]["generation"]
        return known and tuple(status.get(name, 0) for name in names) == (desired, updated, ready)

    return holds


async def pods_of(client: Client, name: str) -> dict[str, Object]:
    listed = await client.list(PODS, namespace="default", labels=f"app={name}")
    return {pod["metadata"]["name"]: pod for pod in listed.items}


async def test_a_daemon_set_follows_nodes_and_its_own_changes() -> None:
    async with cluster() as client, simulated(client):
        await client.create(NODES, node("n1"))
        await client.create(NODES, node("n2", pool="gpu"))
        await client.create(DAEMON_SETS, daemon_set())
        found = await wait_for(client, DAEMON_SETS, "agent", "default", until=counted(2, 2, 2))
        assert found["status"] == {
            "observedGeneration": 1,
            "desiredNumberScheduled": 2,
            "currentNumberScheduled": 2,
            "numberMisscheduled": 0,
            "numberReady": 2,
            "updatedNumberScheduled": 2,
            "numberAvailable": 2,
        }
        await client.create(NODES, node("n3"))
        await wait_for(client, DAEMON_SETS, "agent", "default", until=counted(3, 3, 3))
        await client.delete(NODES, "n1")
        await wait_for(client, DAEMON_SETS, "agent", "default", until=counted(2, 2, 2))
        template = {"template": {"spec": {"nodeSelector": {"pool": "gpu"}}}}
        await client.patch(DAEMON_SETS, "agent", {"spec": template}, "default")
        await wait_for(client, DAEMON_SETS, "agent", "default", until=counted(1, 1, 1))
        broken = {"metadata": {"annotations": {BEHAVIOUR: BROKEN}}}
        await client.patch(NODES, "n2", broken)
        await wait_for(client, DAEMON_SETS, "agent", "default", until=counted(1, 1, 0))


async def test_workloads_at_rest_cost_no_write_and_heartbeats_of_nodes_none_either() -> None:
    async with cluster() as client, simulated(client):
        await client.create(NODES, node("n1"))
        await client.create(DAEMON_SETS, daemon_set())
        at_rest = await wait_for(client, DAEMON_SETS, "agent", "default", until=counted(1, 1, 1))
        for number in range(3):
            beat = {"type": "Ready", "status": "True", "lastHeartbeatTime": f"2026-01-01T00:00:0{number}Z"}
            await client.patch(NODES, "n1", {"status": {"conditions": [beat]}}, subresource="status")
        await client.create(DAEMON_SETS, daemon_set("later"))
        await wait_for(client, DAEMON_SETS, "later", "default", until=counted(1, 1, 1))
        found = await client.get(DAEMON_SETS, "agent", "default")
        assert found["metadata"]["resourceVersion"] == at_rest["metadata"]["resourceVersion"]


async def test_a_cluster_without_daemon_sets_has_no_watch_of_nodes_and_no_timer() -> None:
    clock = FakeClock()
    async with cluster() as client:
        watched: list[str] = []
        watch = client.watch
        client.watch = lambda resource, *more, **options: (
            watched.append(resource.plural),
            watch(resource, *more, **options),
        )[1]  # type: ignore[method-assign,func-returns-value]
        workloads = RunningWorkloads(client, KubeletPace(start=5.0), clock=clock)
        task = asyncio.create_task(workloads.run())
        await until(lambda: {"deployments", "daemonsets"} <= set(watched))
        assert set(watched) == {"deployments", "daemonsets"}
        await client.create(NODES, node("n1"))
        await client.create(DAEMON_SETS, daemon_set())
        await wait_for(client, DAEMON_SETS, "agent", "default", until=counted(1, 1, 0))
        assert "nodes" in watched
        await until(lambda: _starting(clock))  # The status is written before the timer of the pod is set.
        await clock.advance(5.0)
        await wait_for(client, DAEMON_SETS, "agent", "default", until=counted(1, 1, 1))
        await until(lambda: not _starting(clock))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _starting(clock: FakeClock) -> bool:
    """True while a timer of a pod that starts is set: there are timers of watches, too, which are longer."""
    return clock.next_due is not None and clock.next_due <= 5.0


async def test_pods_are_objects_that_can_be_deleted_and_come_back() -> None:
    async with cluster() as client, simulated(client, pods=True):
        await client.create(NODES, node("n1"))
        await client.create(NODES, node("n2"))
        await client.create(DAEMON_SETS, daemon_set())
        await wait_for(client, DAEMON_SETS, "agent", "default", until=counted(2, 2, 2))
        before = await pods_of(client, "agent")
        assert sorted(pod["spec"]["nodeName"] for pod in before.values()) == ["n1", "n2"]
        ready = {"type": "Ready", "status": "True"}
        for pod in before.values():
            assert any(ready.items() <= one.items() for one in pod["status"]["conditions"])
        gone = next(iter(before))
        await client.delete(PODS, gone, "default")

        async def replaced() -> bool:
            found = await pods_of(client, "agent")
            return gone not in found and len(found) == 2

        await until(replaced)
        await client.patch(
            DAEMON_SETS, "agent", {"spec": {"template": {"metadata": {"annotations": {"v": "2"}}}}}, "default"
        )
        await wait_for(client, DAEMON_SETS, "agent", "default", until=counted(2, 2, 2))
        assert not set(await pods_of(client, "agent")) & set(before)


async def test_pods_are_found_again_after_a_restart_of_the_simulation() -> None:
    async with cluster() as client:
        async with simulated(client, pods=True):
            await client.create(NODES, node("n1"))
            await client.create(DAEMON_SETS, daemon_set())
            await wait_for(client, DAEMON_SETS, "agent", "default", until=counted(1, 1, 1))
        before = await pods_of(client, "agent")
        async with simulated(client, pods=True):
            await client.create(NODES, node("n2"))
            await wait_for(client, DAEMON_SETS, "agent", "default", until=counted(2, 2, 2))
        after = await pods_of(client, "agent")
        assert before.keys() < after.keys()


async def test_a_deployment_reports_as_kubectl_rollout_reads_it() -> None:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}
    obj = {
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": 3, "selector": {"matchLabels": labels}, "template": template},
    }
    async with cluster() as client, simulated(client):
        await client.create(DEPLOYMENTS, obj)
        found = await wait_for(
            client, DEPLOYMENTS, "web", "default", until=lambda obj: (obj.get("status") or {}).get("readyReplicas") == 3
        )
    counts = {name: value for name, value in found["status"].items() if name != "conditions"}
    assert counts == {
        "observedGeneration": 1,
        "replicas": 3,
        "updatedReplicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 3,
    }
    assert [(one["type"], one["status"], one["reason"]) for one in found["status"]["conditions"]] == [
        ("Available", "True", "MinimumReplicasAvailable"),
        ("Progressing", "True", "NewReplicaSetAvailable"),
    ]
