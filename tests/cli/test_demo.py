"""The demo objects of `hortus up`: created where they do not exist, left to people, followed until they are Ready."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from hortus.cli.up.demo import FIRST, Demo
from hortus.domains import DemoFleet, all_domains
from hortus.domains.access.types import CLUSTER_ACCESSES
from hortus.domains.clusters.shoot.providers import PROVIDERS
from hortus.domains.clusters.types import RUNTIMES
from hortus.domains.modules.types import KYMAS
from hortus.domains.stacks.types import CLUSTER_STACKS
from hortus.kube import Client, Resource
from hortus.kube.clock import SystemClock
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object
from hortus.schema import crd
from hortus.testing.apiserver import running_apiserver

CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
PLACE = "kcp-system"


class HurriedClock(SystemClock):
    """A clock whose waits end at once."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    """A management cluster with the kinds of all domains, and nothing else."""
    async with running_apiserver() as server, Client.from_kubeconfig(server.kubeconfig) as made:
        for domain in all_domains():
            for resource, kind in domain.kinds().items():
                await made.apply(CRDS, crd(kind), field_manager="test")
                await _served(made, resource)
        yield made


async def _served(client: Client, resource: Resource) -> None:
    async with asyncio.timeout(60):
        while True:
            try:
                await client.list(resource)
                return
            except NotFound:
                continue


def demo(client: Client, clusters: int) -> Demo:
    names = [f"demo-{number}" for number in range(1, clusters + 1)]
    return Demo(client, DemoFleet(names, "binding"), HurriedClock())


async def names(client: Client, resource: Resource) -> list[str]:
    return [obj["metadata"]["name"] for obj in (await client.list(resource, PLACE)).items]


class Reports:
    def __init__(self) -> None:
        self.said: list[tuple[str, bool]] = []
        self._grown = asyncio.Event()

    def __call__(self, progress: str, is_last: bool) -> None:
        self.said.append((progress, is_last))
        self._grown.set()

    async def until(self, progress: str, *, is_last: bool = False) -> None:
        async with asyncio.timeout(60):
            while (progress, is_last) not in self.said:
                self._grown.clear()
                await self._grown.wait()


async def become(client: Client, resource: Resource, name: str, status: Object) -> None:
    await client.patch(resource, name, {"status": status}, PLACE, subresource="status")


async def test_each_provider_has_a_cluster_in_the_default_fleet(client: Client) -> None:
    await demo(client, 5).begin()
    runtimes = (await client.list(RUNTIMES, PLACE)).items
    assert {one["spec"]["shoot"]["provider"]["type"] for one in runtimes} == set(PROVIDERS)
    assert {one["spec"]["shoot"]["secretBindingName"] for one in runtimes} == {"binding"}
    assert await names(client, CLUSTER_ACCESSES) == ["demo-1-reader"]


async def test_what_people_edit_stays_and_what_they_delete_returns(client: Client) -> None:
    await demo(client, 2).begin()
    await client.patch(RUNTIMES, "demo-1", {"metadata": {"annotations": {"mine": "yes"}}}, PLACE)
    await client.delete(RUNTIMES, "demo-2", PLACE)
    await demo(client, 2).begin()
    assert (await client.get(RUNTIMES, "demo-1", PLACE))["metadata"]["annotations"] == {"mine": "yes"}
    assert await names(client, RUNTIMES) == ["demo-1", "demo-2"]


async def test_a_fleet_of_no_clusters_has_the_namespace_alone(client: Client) -> None:
    fleet, reports = demo(client, 0), Reports()
    await fleet.begin()
    await fleet.complete(reports)
    assert await names(client, RUNTIMES) == await names(client, CLUSTER_ACCESSES) == []
    assert reports.said == []


async def test_a_large_fleet_is_created_after_the_start_was_reported(client: Client) -> None:
    fleet, reports = demo(client, 60), Reports()
    await fleet.begin()
    assert len(await names(client, RUNTIMES)) < FIRST
    following = asyncio.create_task(fleet.complete(reports))
    await reports.until("runtimes 0/60, kymas 0/60, clusteraccesses 0/1, clusterstacks 0/1")
    following.cancel()
    assert len(await names(client, RUNTIMES)) == 60


async def test_progress_ends_when_every_object_is_ready(client: Client) -> None:
    fleet, reports = demo(client, 2), Reports()
    await fleet.begin()
    following = asyncio.create_task(fleet.complete(reports))
    await reports.until("runtimes 0/2, kymas 0/2, clusteraccesses 0/1, clusterstacks 0/1")
    await become(client, RUNTIMES, "demo-1", {"state": "Ready"})
    await reports.until("runtimes 1/2, kymas 0/2, clusteraccesses 0/1, clusterstacks 0/1")
    await become(client, RUNTIMES, "demo-1", {"state": "Failed"})
    await become(client, RUNTIMES, "demo-2", {"state": "Ready"})
    ready = {"type": "Ready", "status": "True", "reason": "Issued", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    await become(client, CLUSTER_ACCESSES, "demo-1-reader", {"conditions": [{**ready, "message": ""}]})
    await reports.until("runtimes 1/2, kymas 0/2, clusteraccesses 1/1, clusterstacks 0/1")
    for name in ("demo-1", "demo-2"):
        await become(client, KYMAS, name, {"state": "Ready"})
    await reports.until("runtimes 1/2, kymas 2/2, clusteraccesses 1/1, clusterstacks 0/1")
    await become(client, RUNTIMES, "demo-1", {"state": "Ready"})
    (stack,) = (await client.list(CLUSTER_STACKS, "stacks")).items
    await client.patch(
        CLUSTER_STACKS, stack["metadata"]["name"], {"status": {"conditions": [ready]}}, "stacks", subresource="status"
    )
    await reports.until("runtimes 2/2, kymas 2/2, clusteraccesses 1/1, clusterstacks 1/1", is_last=True)
    async with asyncio.timeout(60):
        await following
    assert [progress for progress, is_last in reports.said if is_last] == [
        "runtimes 2/2, kymas 2/2, clusteraccesses 1/1, clusterstacks 1/1"
    ]


async def test_objects_that_the_server_refuses_for_a_while_are_created_later(client: Client) -> None:
    """The namespaces are missing until the first pause: every object in them is refused."""
    pauses: list[float] = []

    class Clock(SystemClock):
        async def sleep(self, seconds: float) -> None:
            if not pauses:
                for name in (PLACE, "stacks"):
                    await client.create(NAMESPACES, {"metadata": {"name": name}})
            pauses.append(seconds)

    reports = Reports()
    fleet = Demo(client, DemoFleet([f"demo-{number}" for number in range(1, 41)], "binding"), Clock())
    following = asyncio.create_task(fleet.complete(reports))
    await reports.until("runtimes 0/40, kymas 0/40, clusteraccesses 0/1, clusterstacks 0/1")
    following.cancel()
    found = await names(client, RUNTIMES)
    assert "demo-40" in found
    assert "demo-1" not in found  # one of the first, which `begin` creates
