"""Runtimes that ask for what the garden does not have: refused with what it has instead, and no Shoot comes of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from tests.bad_inputs.test_runtimes import POOL, changed
from tests.domains.clusters.world import World, condition, world
from tests.simulation.garden import started_garden

from hortus.domains.clusters.garden import SHOOTS
from hortus.simulation.garden.content import ensure_content
from hortus.simulation.settings import GardenSettings
from hortus.testing.apiserver import TestServer

BINDING = "demo-binding"


@pytest.fixture(scope="module")
def server() -> Iterator[TestServer]:
    with started_garden(GardenSettings(require_bindings=True)) as running:
        yield running


@pytest.fixture
async def here(server: TestServer) -> AsyncIterator[World]:
    async with world(server) as made:
        await ensure_content(made.garden, made.project, made.clock.now())
        yield made


IMAGE = f"{POOL}.machine.image"


@pytest.mark.parametrize(
    ("path", "value", "field", "instead"),
    [
        (f"{POOL}.machine.type", "m0.none", "workers[0].machine.type", '"m6i.large"'),
        (IMAGE, {"name": "minix"}, "workers[0].machine.image.name", '"gardenlinux"'),
        (IMAGE, {"name": "gardenlinux", "version": "1.0.0"}, "workers[0].machine.image.version", '"15'),
        (f"{POOL}.volume", {"size": "50Gi", "type": "tape"}, "workers[0].volume.type", '"gp3"'),
        (f"{POOL}.zones", ["eu-central-1z"], "workers[0].zones[0]", '"eu-central-1a"'),
        (f"{POOL}.zones", ["us-east-1a"], "workers[0].zones[0]", "zone of region eu-central-1"),
        ("spec.shoot.kubernetes", {"version": "1.9.0"}, "kubernetes.version", '"1.3'),
    ],
)
async def test_what_the_garden_does_not_offer_is_refused_with_what_it_does(
    here: World, path: str, value: Any, field: str, instead: str
) -> None:
    async with here.controlled():
        await here.create(changed(here.runtime(secretBindingName=BINDING), path, value))
        found = condition(await here.until_state("Failed"))
        assert found["reason"] == "ConversionErr"
        assert field in found["message"] and instead in found["message"]
        assert str(list(value.values())[-1] if isinstance(value, dict) else value[0]) in found["message"]
        await here.rest()
        assert here.garden_requests.writes == 0
        assert (await here.garden.list(SHOOTS, here.garden_namespace)).items == []


async def test_a_missing_binding_is_reported_by_the_garden_and_waited_for(here: World) -> None:
    async with here.controlled():
        await here.create(here.runtime(secretBindingName="sb-2", kubernetes={"version": "1.33"}))
        found = condition(await here.until_state("Failed"))
        assert found["reason"] == "GardenerErr"
        assert 'secretbinding.core.gardener.cloud "sb-2" not found' in found["message"]
        assert (await here.garden.list(SHOOTS, here.garden_namespace)).items == []
        await here.change({"spec": {"shoot": {"secretBindingName": BINDING}}})
        await here.until_said("Shoot is pending")


async def test_a_version_is_not_taken_back_and_an_event_says_so(here: World) -> None:
    async with here.controlled():
        await here.create(here.runtime(secretBindingName=BINDING, kubernetes={"version": "1.33"}))
        before = await here.until("Shoot", "c-1", lambda found: found)
        await here.operate("Create", "Succeeded")
        await here.change({"spec": {"shoot": {"kubernetes": {"version": "1.32"}}}})
        after = await here.until_patched(2)
        assert after["spec"]["kubernetes"]["version"] == before["spec"]["kubernetes"]["version"]
        event = await here.until_event("NotApplied")
        assert event["type"] == "Warning"
        assert event["message"].startswith('spec.shoot.kubernetes.version: Invalid value: "1.32": the cluster has 1.33')
