"""Objects that are paused, and those of another watch filter, are left alone."""

from __future__ import annotations

from tests.domains.stacks.catalog.world import HOME, CatalogWorld

from hortus.domains.stacks.types import CLUSTER_STACK_RELEASES, CLUSTER_STACKS

PAUSED, FILTER = "cluster.x-k8s.io/paused", "cluster.x-k8s.io/watch-filter"
V1, V2 = "docker-ferrol-1-27-v1", "docker-ferrol-1-27-v2"


async def test_a_paused_stack_waits_until_it_goes_on(here: CatalogWorld) -> None:
    for tag in (V1, V2):
        here.release(tag)
    await here.stack("v1", name="paused")
    await here.client.patch(CLUSTER_STACKS, "paused", {"metadata": {"annotations": {PAUSED: "true"}}}, HOME)
    await here.stack("v2", name="other")
    async with here.controllers():
        await here.ready(V2)
        assert await here.names() == [V2]
        await here.client.patch(CLUSTER_STACKS, "paused", {"metadata": {"annotations": {PAUSED: None}}}, HOME)
        await here.ready(V1)


async def test_only_objects_with_the_value_of_the_watch_filter_are_served(here: CatalogWorld) -> None:
    here.flags = ("--watch-filter=ours",)
    for tag in (V1, V2):
        here.release(tag)
    await here.stack("v1", name="theirs")
    await here.stack("v2", name="mine")
    await here.client.patch(CLUSTER_STACKS, "mine", {"metadata": {"labels": {FILTER: "ours"}}}, HOME)
    async with here.controllers():
        await here.until(CLUSTER_STACK_RELEASES, V2)
        assert await here.names() == [V2]
