"""Replicas with shards next to an operator that they replace, on a real API server."""

from __future__ import annotations

import asyncio

from tests.engine.shards.replica import CONFIGMAPS, NAMESPACE
from tests.engine.shards.test_manager import COUNT, TIMES, Census
from tests.waiting import until

from hortus.engine import Manager, Watch
from hortus.engine.leases import LEASES, Elector
from hortus.engine.rivals import RivalLeases
from hortus.engine.shards import Shards
from hortus.kube import Client, ObjectKey, SystemClock
from hortus.testing.apiserver import running_apiserver

NAME, AWAY = "operator.example.org", "kube-system"


def replica_of(client: Client) -> tuple[Manager, Census]:
    clock = SystemClock()
    shards = Shards(client, group="trial", namespace=NAMESPACE, clock=clock, times=TIMES)
    manager, census = Manager(client, clock=clock, shards=shards), Census()
    with manager.excluding(RivalLeases(client, names=[NAME], namespace=NAMESPACE, clock=clock, times=TIMES)):
        objects = manager.cache(CONFIGMAPS, namespace=NAMESPACE, labels="trial=yes")
        manager.controller("trial", census, sources=[Watch(objects)], workers=4)
    return manager, census


async def test_replicas_share_the_objects_while_an_operator_stands_by() -> None:
    async with running_apiserver() as server, Client.from_kubeconfig(server.kubeconfig) as client:
        for number in range(COUNT):
            metadata = {"name": f"object-{number}", "namespace": NAMESPACE, "labels": {"trial": "yes"}}
            await client.create(CONFIGMAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
        await client.create(LEASES, {"metadata": {"name": NAME, "namespace": AWAY}, "spec": {}})
        operator = Elector(client, name=NAME, namespace=AWAY, identity="operator-1", clock=SystemClock(), times=TIMES)
        (first, all_of_them), (second, part) = replica_of(client), replica_of(client)
        async with first.running():
            await all_of_them.until(COUNT)
            standing_by = asyncio.create_task(operator.acquire())
            async with second.running():
                await until(lambda: len(part.seen) > 0)
                mine = {key for key in part.seen if second.holds(key)}
                assert mine
                all_of_them.seen.clear()
            await until(lambda: all_of_them.seen >= mine)
            leases = [await client.get(LEASES, NAME, place) for place in (NAMESPACE, AWAY)]
            assert {lease["spec"]["holderIdentity"] for lease in leases} == {f"hortus/{NAMESPACE}"}
            assert not standing_by.done()
        await standing_by
        assert operator.leading
        third, nothing = replica_of(client)
        async with third.running():
            assert third.shards is not None
            await until(lambda: third.shards is not None and third.shards.joined)
            assert not nothing.seen
            await operator.release()
            await nothing.until(COUNT)
            assert ObjectKey(NAMESPACE, "object-0") in nothing.seen
