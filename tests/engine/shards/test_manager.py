"""Two managers on a real API server: what they report of themselves, and a handover between them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import generate_latest
from tests.engine.shards.replica import CONFIGMAPS, NAMESPACE

from hortus.engine import (
    Cache,
    EventRecorder,
    KindController,
    Manager,
    ReconcileContext,
    Result,
    Steps,
    Trigger,
    Watch,
    sources_of,
    wire,
)
from hortus.engine.leases import Elector, LeaseTimes
from hortus.engine.shards import Shards
from hortus.kube import Client, ObjectKey, SystemClock
from hortus.schema import Kind, kind
from hortus.testing.apiserver import running_apiserver

COUNT = 20
TIMES = LeaseTimes(duration=60.0, renew_deadline=50.0, retry_period=0.4)
"""No process stops here: a lease that is lost is a defect, and not a busy machine."""


class Census:
    """Counts what it was asked to look at."""

    def __init__(self) -> None:
        self.seen: set[ObjectKey] = set()
        self.changed = asyncio.Event()

    async def reconcile(self, key: ObjectKey) -> Result | None:
        self.seen.add(key)
        self.changed.set()
        return None

    async def until(self, count: int) -> None:
        async with asyncio.timeout(60):
            while len(self.seen) < count:
                self.changed.clear()
                await self.changed.wait()


def manager_of(client: Client) -> tuple[Manager, Census]:
    clock = SystemClock()
    manager = Manager(
        client, clock=clock, shards=Shards(client, group="trial", namespace=NAMESPACE, clock=clock, times=TIMES)
    )
    objects: Cache = manager.cache(CONFIGMAPS, namespace=NAMESPACE, labels="trial=yes")
    census = Census()
    manager.controller("trial", census, sources=[Watch(objects)], workers=4)
    return manager, census


def metric(manager: Manager, name: str) -> float:
    lines = generate_latest(manager.registry).decode().splitlines()
    return float(next(line.rpartition(" ")[2] for line in lines if line.startswith(name)))


async def test_a_manager_with_shards_works_on_its_part_and_reports_it(tmp_path: Path) -> None:
    async with running_apiserver() as server, Client.from_kubeconfig(server.kubeconfig) as client:
        for number in range(COUNT):
            metadata = {"name": f"object-{number}", "namespace": NAMESPACE, "labels": {"trial": "yes"}}
            await client.create(CONFIGMAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
        first, all_of_them = manager_of(client)
        assert first.shards is not None
        with pytest.raises(RuntimeError, match="no valid lease"):
            first.shards.check()
        async with first.running():
            first.shards.check()
            await all_of_them.until(COUNT)
            assert metric(first, "hortus_shard_objects{") == COUNT
            second, part = manager_of(client)
            async with second.running():
                shares = [metric(manager, "hortus_shard_objects{") for manager in (first, second)]
                assert sum(shares) == COUNT
                await part.until(int(shares[1]))
                assert metric(second, "hortus_shard_members{") == 2
                assert metric(second, "hortus_shard_objects_gained_total{") == shares[1]
                all_of_them.seen.clear()
            # It gave its part back; the first looks at that, and at nothing that it held all the time.
            await all_of_them.until(int(shares[1]))
            assert all_of_them.seen == part.seen
            assert metric(first, "hortus_shard_leases_lost_total{") == 0


@kind(group="", version="v1", name="ConfigMap")
class Note(Kind, frozen=True):
    """A ConfigMap."""


class Measuring(KindController[ReconcileContext[Note]]):
    """Measures each object that it reconciles."""

    kind = Note

    def __init__(self, wiring: Any) -> None:
        super().__init__(wiring)
        self.measured: set[ObjectKey] = set()
        self.changed = asyncio.Event()

    def steps(self, context: ReconcileContext[Note]) -> Steps:
        return ()

    def observe(self, context: ReconcileContext[Note]) -> None:
        self.measured.add(context.key)
        self.changed.set()

    def shed(self, holds: Callable[[ObjectKey], bool]) -> None:
        self.measured = {key for key in self.measured if holds(key)}
        self.changed.set()


def measuring(client: Client) -> tuple[Manager, Measuring]:
    manager, _ = manager_of(client)
    events = EventRecorder(client, component="trial", clock=manager.clock)
    wiring = wire(manager, Measuring, client=client, events=events, namespace=NAMESPACE, labels="trial=yes")
    found = Measuring(wiring)
    manager.on_handover(found.shed)
    manager.controller("measuring", found, sources=sources_of(wiring))
    return manager, found


async def until(says: Callable[[], bool], *found: Measuring) -> None:
    while not says():
        for one in found:
            one.changed.clear()
        news = [asyncio.ensure_future(one.changed.wait()) for one in found]
        try:
            await asyncio.wait(news, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in news:
                one.cancel()


async def test_an_object_that_moves_is_measured_by_its_new_owner_alone() -> None:
    async with running_apiserver() as server, Client.from_kubeconfig(server.kubeconfig) as client:
        for number in range(COUNT):
            metadata = {"name": f"object-{number}", "namespace": NAMESPACE, "labels": {"trial": "yes"}}
            await client.create(CONFIGMAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
        (first, before), (second, after) = measuring(client), measuring(client)
        async with first.running(), asyncio.timeout(60):
            await until(lambda: len(before.measured) == COUNT, before)
            async with second.running():
                await until(
                    lambda: len(before.measured) + len(after.measured) == COUNT and bool(after.measured), before, after
                )
                assert not before.measured & after.measured
            await until(lambda: len(before.measured) == COUNT, before)


async def test_an_election_and_shards_at_once_are_refused() -> None:
    async with running_apiserver() as server, Client.from_kubeconfig(server.kubeconfig) as client:
        clock = SystemClock()
        shards = Shards(client, group="trial", namespace=NAMESPACE, clock=clock)
        election = Elector(client, name="trial", namespace=NAMESPACE, clock=clock)
        with pytest.raises(ValueError, match="not an election and shards at once"):
            Manager(client, clock=clock, shards=shards, election=election)


async def test_a_process_that_goes_on_without_a_lease_cuts_its_clients() -> None:
    async with running_apiserver() as server, Client.from_kubeconfig(server.kubeconfig) as client:
        manager, _ = manager_of(client)
        manager.controller("other", Census(), sources=[Trigger()])
        cuts: list[bool] = []
        manager.on_resume(lambda: cuts.append(True))
        manager.resumed()
        assert cuts == [True]
        async with manager.running():
            manager.resumed()
            assert cuts == [True], "it was not stopped for long"
