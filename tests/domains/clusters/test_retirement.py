"""A Runtime's end: nothing stays, nothing of others goes, a deletion that the infrastructure blocks can be forced."""

from __future__ import annotations

import asyncio
from itertools import count

import pytest
from tests.domains.clusters.world import CONFIG_MAPS, World, condition, said, world
from tests.domains.killing import Killer, killed_at

from hortus.domains.clusters.garden import SHOOTS
from hortus.domains.clusters.types import FINALIZER, Annotation
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.engine import read
from hortus.engine.leftovers.types import LEFTOVERS, Leftover
from hortus.kube.errors import ConnectionFailed, Forbidden
from hortus.kube.objects import Object
from hortus.schema import crd
from hortus.simulation.garden.workload import CRDS
from hortus.testing.apiserver import TestServer

FORCED = "confirmation.gardener.cloud/force-deletion"


async def expect_nothing_left(here: World) -> None:
    assert (await here.garden.list(SHOOTS, here.garden_namespace)).items == []
    assert (await here.garden.list(CONFIG_MAPS, here.garden_namespace)).items == []
    assert (await here.client.list(GARDENER_CLUSTERS, here.namespace)).items == []


async def deleting(here: World) -> Object:
    return await here.until("Shoot", "c-1", lambda found: found["metadata"].get("deletionTimestamp"))


async def test_a_runtime_takes_everything_along(here: World) -> None:
    async with here.controlled():
        await here.grow()
        assert len((await here.garden.list(CONFIG_MAPS, here.garden_namespace)).items) == 1
        await here.delete()
        shoot = await deleting(here)
        assert shoot["metadata"]["annotations"]["confirmation.gardener.cloud/deletion"] == "true"
        assert FORCED not in shoot["metadata"]["annotations"]
        await here.vanish()
        await here.until_gone()
        await expect_nothing_left(here)
        assert [line for line in here.metrics() if "runtime_state{" in line] == []


async def test_so_does_one_whose_shoot_is_gone_already(here: World) -> None:
    """The Go system leaves the GardenerCluster behind here."""
    async with here.controlled():
        await here.grow()
    await here.garden.patch(
        SHOOTS,
        "c-1",
        {"metadata": {"finalizers": None, "annotations": {"confirmation.gardener.cloud/deletion": "true"}}},
        here.garden_namespace,
    )
    await here.garden.delete(SHOOTS, "c-1", here.garden_namespace)
    await here.delete()
    async with here.controlled():
        await here.until_gone()
    await expect_nothing_left(here)


async def test_and_one_that_never_had_a_shoot(here: World) -> None:
    here.failures["create", "shoots"] = Forbidden("no")
    async with here.controlled():
        await here.create()
        await here.until_state("Failed")
        assert len((await here.garden.list(CONFIG_MAPS, here.garden_namespace)).items) == 1
        await here.delete()
        await here.until_gone()
        await expect_nothing_left(here)


async def test_a_runtime_deleted_while_its_shoot_is_made_goes_with_it(here: World) -> None:
    async with here.controlled():
        await here.create()
        await here.until_said("Shoot is pending")
        await here.operate("Create", "Processing")
        await here.delete()
        await deleting(here)
        await here.vanish()
        await here.until_gone()
        await expect_nothing_left(here)


async def test_while_the_garden_is_away_the_runtime_stays(here: World) -> None:
    async with here.controlled():
        await here.create()
        await here.until_said("Shoot is pending")
        here.failures["get", "shoots"] = ConnectionFailed("garden.example.org", "connection refused")
        await here.garden.patch(
            SHOOTS,
            "c-1",
            {"metadata": {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}},
            here.garden_namespace,
        )
        await here.garden.delete(SHOOTS, "c-1", here.garden_namespace)
        await here.until_gone("Shoot", "c-1")
        await here.delete()
        await here.rest()
        await here.advance(30)
        found = await here.until("Runtime", "rt-1", lambda found: found)
        assert FINALIZER in found["metadata"]["finalizers"]
        here.failures.clear()
        await here.advance(15)
        await here.until_gone()


async def test_a_deletion_that_the_garden_refuses_is_said_and_tried_again(here: World) -> None:
    async with here.controlled():
        await here.grow()
        here.failures["delete", "shoots"] = Forbidden("locked")
        await here.delete()
        found = await here.until_state("Failed")
        expected = ("Deprovisioned", "False", "GardenerShootDeleted", "Gardener API shoot delete error")
        assert said(condition(found, "Deprovisioned")) == expected
        here.failures.clear()
        await here.advance(91)
        await deleting(here)
        await here.vanish()
        await here.until_gone()


@pytest.mark.parametrize(
    ("codes", "asked", "forced"),
    [
        (("ERR_INFRA_DEPENDENCIES",), True, True),
        (("ERR_INFRA_DEPENDENCIES",), False, False),
        (("ERR_INFRA_RATE_LIMITS_EXCEEDED",), True, False),
    ],
)
async def test_a_deletion_is_forced_when_asked_for_and_admitted(
    here: World, codes: tuple[str, ...], asked: bool, forced: bool
) -> None:
    async with here.controlled():
        await here.grow()
        if asked:
            await here.annotate(Annotation.FORCE_DELETION)
        await here.delete()
        await deleting(here)
        await here.operate("Delete", "Failed", codes=codes)
        if forced:
            await here.until("Shoot", "c-1", lambda found: FORCED in found["metadata"]["annotations"])
        await here.rest()
        assert (FORCED in (await here.shoot())["metadata"]["annotations"]) is forced
        await here.vanish()
        await here.until_gone()
        if forced:
            await here.until_event("ShootDeletionForced")
    forcings = [event for event in await here.events() if event["reason"] == "ShootDeletionForced"]
    assert [event["type"] for event in forcings] == (["Warning"] if forced else [])


async def test_asked_for_later_the_deletion_is_forced_then(here: World) -> None:
    async with here.controlled():
        await here.grow()
        await here.delete()
        await deleting(here)
        await here.operate("Delete", "Failed", codes=("ERR_INFRA_UNAUTHORIZED",))
        assert FORCED not in (await here.shoot())["metadata"]["annotations"]
        await here.annotate(Annotation.FORCE_DELETION)
        shoot = await here.until("Shoot", "c-1", lambda found: FORCED in found["metadata"]["annotations"])
        assert shoot["metadata"]["annotations"][FORCED] == "true"


async def test_a_forced_deletion_is_recorded_before_the_shoot_is_gone(here: World) -> None:
    await here.client.apply(CRDS, crd(Leftover), field_manager="tests")
    here.leftovers = True
    async with here.controlled():
        await here.grow()
        await here.annotate(Annotation.FORCE_DELETION)
        await here.delete()
        await deleting(here)
        await here.operate("Delete", "Failed", codes=("ERR_INFRA_DEPENDENCIES",))
        await here.until("Shoot", "c-1", lambda found: FORCED in found["metadata"]["annotations"])
        [found] = [read(Leftover, one) for one in (await here.client.list(LEFTOVERS, here.namespace)).items]
        await here.vanish()
        await here.until_gone()
    assert (found.spec.reason, found.spec.source.name, found.spec.cluster.shoot) == ("DeletionForced", "rt-1", "c-1")
    [item] = found.spec.items
    assert (item.where, item.actor) == ("Infrastructure", "Operator")
    assert f"shoot--{here.project}--c-1" in item.look


async def test_killed_at_any_call_a_forced_deletion_is_recorded_before_the_garden_is_asked(server: TestServer) -> None:
    for calls in count():
        async with world(server) as here:
            if not await forced_by_a_killed_process(here, calls):
                break
    assert calls >= 2, "the record, the annotation of the Shoot"


async def forced_by_a_killed_process(here: World, calls: int) -> bool:
    """Force a deletion, killed after so many calls; returns False when it made no more."""
    await here.client.apply(CRDS, crd(Leftover), field_manager="tests")
    here.leftovers = True
    async with here.controlled():
        await here.grow()
        await here.delete()
        await deleting(here)
    await here.annotate(Annotation.FORCE_DELETION)
    await here.operate("Delete", "Failed", codes=("ERR_INFRA_DEPENDENCIES",))

    async def witness() -> int:
        await here.until("Shoot", "c-1", lambda found: FORCED in found["metadata"]["annotations"])
        return len((await here.client.list(LEFTOVERS, here.namespace)).items)

    killer = Killer("runtime-controller", here.requests, here.garden_requests)
    forced = asyncio.create_task(witness())
    struck = await killed_at(killer, calls, here.controlled(), forced)
    killer.rest()
    async with here.controlled():
        assert await forced == 1, f"killed after {calls} calls"
        await here.vanish()
        await here.until_gone()
    assert len((await here.client.list(LEFTOVERS, here.namespace)).items) == 1
    return struck


async def test_a_forced_deletion_that_the_garden_refuses_leaves_no_record(here: World) -> None:
    await here.client.apply(CRDS, crd(Leftover), field_manager="tests")
    here.leftovers = True
    async with here.controlled():
        await here.grow()
        await here.annotate(Annotation.FORCE_DELETION)
        await here.delete()
        await deleting(here)
        here.failures["patch", "shoots"] = Forbidden("no")
        await here.operate("Delete", "Failed", codes=("ERR_INFRA_DEPENDENCIES",))
        await here.until_event("ShootForceDeletionRefused")
        await here.rest()
        assert (await here.client.list(LEFTOVERS, here.namespace)).items == []
