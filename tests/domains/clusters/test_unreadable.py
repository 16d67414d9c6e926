"""Runtimes that another release of the Go system wrote: reported and deleted, though their spec cannot be read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.domains.clusters.world import World, said, world
from tests.simulation.garden import started_garden

from hortus.domains.clusters.types import RUNTIMES, Annotation, Runtime
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.kube.errors import Invalid
from hortus.kube.objects import Object
from hortus.schema import crd
from hortus.simulation.garden.workload import CRDS
from hortus.simulation.settings import GardenSettings

REGION: Object = {"spec": {"shoot": {"region": 7}}}
MESSAGE = "Runtime conversion error spec: Expected `str`, got `int` - at `$.shoot.region`"


@pytest.fixture
async def here() -> AsyncIterator[World]:
    """A world of its own, whose definition of Runtimes admits any spec and any status."""
    with started_garden(GardenSettings()) as server:
        async with world(server) as made:
            definition = crd(Runtime)
            properties = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
            for part in ("spec", "status"):
                properties[part] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
            await made.client.apply(CRDS, definition, field_manager="tests", force=True)
            await _until_loose(made)
            yield made


async def _until_loose(here: World) -> None:
    runtime = here.runtime("probe")
    runtime["spec"] = {"any": "thing"}
    while True:
        try:
            await here.client.create(RUNTIMES, runtime)
            break
        except Invalid:
            await asyncio.sleep(0)
    await here.delete("probe")


async def test_a_spec_that_cannot_be_read_is_reported_and_counts_again_once_it_can(here: World) -> None:
    runtime = here.runtime()
    runtime["spec"]["shoot"]["region"] = 7
    async with here.controlled():
        await here.create(runtime)
        assert said(await here.until_reason("ConversionErr")) == ("Provisioned", "False", "ConversionErr", MESSAGE)
        await here.rest()
        assert here.stops() > 0
        await here.change({"spec": {"shoot": {"region": "eu-central-1"}}})
        await here.until_said("Shoot is pending")


async def test_a_runtime_that_became_unreadable_is_deleted_with_its_shoot(here: World) -> None:
    async with here.controlled():
        await here.grow()
        await here.change(REGION)
        await here.until_said(MESSAGE)
        assert not (await here.shoot())["metadata"].get("deletionTimestamp")
        await here.delete()
        await here.until("Shoot", "c-1", lambda found: found["metadata"].get("deletionTimestamp"))
        await here.vanish()
        await here.until_gone()
        assert (await here.client.list(GARDENER_CLUSTERS, here.namespace)).items == []


async def test_one_that_names_no_shoot_is_held_until_its_owner_says_that_its_shoot_stays(here: World) -> None:
    async with here.controlled():
        await here.grow()
        await here.change({"spec": {"shoot": {"name": 7}}})
        await here.until_reason("ConversionErr")
        await here.delete()
        await here.until_said("shoot c-1 is this Runtime's", kind="Deprovisioned")
        await here.annotate(Annotation.LEAVE, (await here.shoot())["metadata"]["uid"])
        await here.until_gone()
    assert not (await here.shoot())["metadata"].get("deletionTimestamp")


async def test_an_unreadable_runtime_keeps_the_shoot_that_it_names(here: World) -> None:
    async with here.controlled():
        await here.grow()
        await here.change(REGION)
        await here.create(here.runtime("rt-2"))
        found = await here.until_said("Shoot creation failed", name="rt-2")
        assert "shoot c-1 exists and belongs to the Runtime" in found["message"]


async def test_a_status_that_cannot_be_read_is_written_again(here: World) -> None:
    async with here.controlled():
        await here.grow()
    body: Object = {"status": {"state": "Dreaming"}}
    broken = await here.client.patch(RUNTIMES, "rt-1", body, here.namespace, subresource="status")
    assert broken["status"]["state"] == "Dreaming"
    async with here.controlled():
        await here.until_state("Ready")
