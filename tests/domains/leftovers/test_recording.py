"""A process releases nothing silently: the record comes before the object is gone, once, however it is killed."""

from __future__ import annotations

import asyncio

from tests.domains.access.test_kill import killer_of, lives_until
from tests.domains.access.world import World, name_of
from tests.domains.leftovers.world import Ledger

from hortus.domains.access.manifests import KINDS
from hortus.domains.access.types import CLUSTER_ACCESSES
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.kube.objects import Object


async def issued(access: World) -> Object:
    """A request that is served."""
    await access.cluster()
    made = await access.ask(namespaces=["default"])
    async with access.controlled():
        await access.until_reason("Issued")
    return made


async def witness(here: Ledger) -> int:
    """The number of Leftovers at the moment at which the next request is gone."""
    async with here.client.watch(CLUSTER_ACCESSES, here.namespace, initial_events=True) as events:
        async for event in events:
            if event.type == "DELETED":
                return len(await here.leftovers())
    raise AssertionError("the watch ended")


async def test_killed_at_writes_of_a_detach_there_is_one_record_before_the_request_is_gone(here: Ledger) -> None:
    access = here.access
    made = await issued(access)
    await here.lead()
    access.flags, access.real_time = ["--access-detach-after=1s"], True
    watching = asyncio.create_task(witness(here))
    await access.delete()
    gone = asyncio.create_task(access.until_gone("ClusterAccess", "reader"))
    assert await lives_until(access, gone, killer_of(access)) >= 2
    assert await watching == 1
    found = await here.only()
    assert (found.spec.source.name, found.spec.source.uid) == ("reader", made["metadata"]["uid"])
    assert (found.spec.cluster.name, found.spec.cluster.shoot) == ("tulip", "tulip")
    assert found.spec.reason == "ClusterUnreachable"
    assert {item.object.name for item in found.spec.items if item.object} == {name_of(made)}
    assert len(found.spec.items) == 3, "account, role and binding"
    assert all(item.object.uid for item in found.spec.items if item.object)


async def test_what_was_recorded_is_seen_when_the_cluster_is_back_and_settled_when_it_is_removed(
    here: Ledger,
) -> None:
    await here.plant()
    access = here.access
    await issued(access)
    before = await here.lead()
    access.flags = ["--access-detach-after=1s"]
    await access.delete()
    access.real_time = True
    async with access.controlled():
        await access.until_gone()
    async with here.controlled():
        await here.lead(before)
        found = await here.until(lambda one: {item.state for item in one.status.items} == {"Left"})
        for item in found.spec.items:
            assert item.object is not None
            [resource] = [kind for kind in KINDS if kind.kind == item.object.kind]
            async with access.inside() as inside:
                await inside.delete(resource, item.object.name, item.object.namespace)
        await here.until(lambda one: one.status.phase == "Settled")


async def test_a_request_whose_cluster_is_gone_first_is_recorded_with_its_shoot(here: Ledger) -> None:
    await here.plant()
    access = here.access
    await issued(access)
    await here.client.delete(GARDENER_CLUSTERS, "tulip", here.namespace)
    await access.delete()
    async with access.controlled():
        await access.until_gone()
    found = await here.only()
    assert (found.spec.reason, found.spec.cluster.shoot) == ("ClusterGone", "tulip")
    async with here.controlled():
        await here.fell()
        await here.until(lambda one: one.status.phase == "Settled")


async def test_a_deletion_that_leaves_nothing_records_nothing(here: Ledger) -> None:
    access = here.access
    await issued(access)
    await access.delete()
    async with access.controlled():
        await access.until_gone()
    assert await here.leftovers() == []


async def test_without_the_kind_a_request_is_released_as_before(here: Ledger) -> None:
    access = here.access
    access.leftovers = False
    await issued(access)
    await here.lead()
    access.flags = ["--access-detach-after=1s"]
    await access.delete()
    access.real_time = True
    async with access.controlled():
        await access.until_gone()
        assert "Objects that may be left there" in str((await access.until_event("Detached"))["message"])
    assert await here.leftovers() == []
