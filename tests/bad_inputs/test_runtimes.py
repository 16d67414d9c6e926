"""Runtimes that cannot be: refused by the CRD or by the controller, in words that help, and the garden never hears."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from tests.domains.clusters.world import World, condition, world
from tests.simulation.garden import started_garden

from hortus.domains.clusters.types import RUNTIMES
from hortus.kube import PatchKind
from hortus.kube.errors import Invalid
from hortus.kube.objects import Object
from hortus.simulation.settings import GardenSettings
from hortus.testing.apiserver import TestServer


@pytest.fixture(scope="module")
def server() -> Iterator[TestServer]:
    with started_garden(GardenSettings()) as running:
        yield running


@pytest.fixture
async def here(server: TestServer) -> AsyncIterator[World]:
    async with world(server) as made:
        yield made


def changed(runtime: Object, path: str, value: Any) -> Object:
    """The Runtime with another value at a dotted path; ... removes it."""
    found: Object = copy.deepcopy(runtime)
    *parents, name = path.split(".")
    place: Any = found
    for parent in parents:
        place = place[int(parent)] if parent.isdigit() else place.setdefault(parent, {})
    if value is ...:
        del place[name]
    else:
        place[name] = value
    return found


POOL = "spec.shoot.provider.workers.0"


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("spec", {}, "spec.security: Required value"),
        ("spec.shoot.name", ..., "spec.shoot.name: Required value"),
        ("spec.shoot.region", 5, "spec.shoot.region"),
        ("spec.shoot.provider.type", "ibm", 'spec.shoot.provider.type: Unsupported value: "ibm": supported values'),
        ("spec.shoot.enforceSeedLocation", "true", "spec.shoot.enforceSeedLocation"),
        (f"{POOL}.machine", ..., "spec.shoot.provider.workers[0].machine: Required value"),
        (f"{POOL}.minimum", "three", "spec.shoot.provider.workers[0].minimum"),
        ("spec.shoot.networking.nodes", ..., "spec.shoot.networking.nodes: Required value"),
        ("spec.security.administrators", "me", "spec.security.administrators"),
        ("spec.security.networking.filter.egress", ..., "egress: Required value"),
    ],
)
async def test_what_breaks_a_rule_of_the_kind_is_refused_at_once(here: World, path: str, value: Any, says: str) -> None:
    with pytest.raises(Invalid) as refused:
        await here.create(changed(here.runtime(), path, value))
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("spec.shoot.networking.pods", "10.250.0.0/16", "spec.shoot.networking"),
        ("spec.shoot.networking.nodes", "10.250.0.0/30", "spec.shoot.networking.nodes"),
        ("spec.shoot.networking.nodes", "garden", "spec.shoot.networking.nodes"),
        ("spec.shoot.purpose", "pleasure", "supported values"),
        ("spec.shoot.kubernetes", {"version": "one"}, "spec.shoot.kubernetes.version"),
        ("spec.shoot.name", "a-name-that-is-too-long-for-a-garden", "spec.shoot.name"),
        (f"{POOL}.name", "Pool_1", "spec.shoot.provider.workers[0].name"),
        ("spec.shoot.provider.workers", [], "single main worker is required"),
        ("spec.shoot.secretBindingName", "", "spec.shoot.secretBindingName"),
    ],
)
async def test_what_no_shoot_can_be_made_of_fails_with_the_field_and_leaves_the_garden_alone(
    here: World, path: str, value: Any, says: str
) -> None:
    async with here.controlled():
        await here.create(changed(here.runtime(), path, value))
        found = await here.until_state("Failed")
        assert condition(found)["reason"] == "ConversionErr"
        assert says in condition(found)["message"]
        await here.rest()
        assert here.garden_requests.writes == 0
        await here.delete()
        await here.until_gone()


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("spec.shoot.provider.type", "gcp", "spec.shoot.provider.type"),
        ("spec.shoot.region", "us-east-1", "spec.shoot.region"),
        ("spec.shoot.secretBindingName", "another", "spec.shoot.secretBindingName"),
        ("spec.shoot.networking.nodes", "10.180.0.0/16", "spec.shoot.networking.nodes"),
        (f"{POOL}.zones", ["eu-central-1a"], "spec.shoot.provider.workers[0].zones"),
    ],
)
async def test_what_cannot_be_changed_of_a_cluster_fails_and_the_cluster_stays(
    here: World, path: str, value: Any, says: str
) -> None:
    async with here.controlled():
        before = await here.grow()
        shoot = await here.shoot()
        await here.change({"spec": changed(before, path, value)["spec"]})
        found = await here.until_state("Failed")
        assert condition(found)["reason"] == "ConversionErr"
        assert says in condition(found)["message"] and "cannot be" in condition(found)["message"]
        await here.rest()
        assert await here.shoot() == shoot
        await here.change({"spec": before["spec"]})
        generation = (await here.client.get(RUNTIMES, "rt-1", here.namespace))["metadata"]["generation"]
        await here.until_patched(generation)
        await here.until_state("Ready")


async def test_a_spec_that_is_taken_away_costs_nobody_a_cluster(here: World) -> None:
    async with here.controlled():
        before = await here.grow()
        await here.client.patch(RUNTIMES, "rt-1", [{"op": "remove", "path": "/spec"}], here.namespace, PatchKind.JSON)
        await here.until_state("Failed")
        await here.delete()
        await here.until_said("shoot c-1 is this Runtime's", "Deprovisioned")
        assert not (await here.shoot())["metadata"].get("deletionTimestamp")
        await here.change({"spec": before["spec"]})
        await here.until("Shoot", "c-1", lambda shoot: shoot["metadata"].get("deletionTimestamp"))
        await here.vanish()
        await here.until_gone()
