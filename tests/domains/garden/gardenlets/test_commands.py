"""`hortus garden gardenlets`: the difference of a change before it is made, and the state of each in words."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.domains.garden.gardenlets.world import NEW, OLD, GardenWorld, garden_world

from hortus.domains.garden.gardenlets.comparing import GardenletComparison, difference
from hortus.domains.garden.gardenlets.showing import read_facts
from hortus.domains.garden.types import GARDENLETS
from hortus.kube import yaml
from hortus.terminal import CommandError
from hortus.testing.apiserver import TestServer


@pytest.fixture
async def world(server: TestServer, tmp_path: Path) -> AsyncIterator[GardenWorld]:
    async with garden_world(server, tmp_path, "one") as made:
        yield made


async def lines(
    world: GardenWorld, name: str = "one", *, chart: str = "", file: Path | None = None, kubeconfig: Path | None = None
) -> list[str]:
    comparison = GardenletComparison(world.management, world.garden, hosts=f"http://{world.registry}")
    async with comparison:
        return await comparison.lines(name, chart=chart, file=file, kubeconfig=kubeconfig)


def changed(found: list[str]) -> list[str]:
    return [line for line in found if line.startswith(("+ ", "- "))]


async def test_a_change_of_the_chart_is_shown_before_it_is_made(world: GardenWorld) -> None:
    before = await world.add_gardenlet("one")
    assert await lines(world) == []
    found = changed(await lines(world, chart=world.chart(NEW)))
    assert [line.split("gardenlet:")[1] for line in found] == [f"v{OLD}", f"v{NEW}"]
    assert await world.gardenlet("one") == before


async def test_a_file_is_compared_with_what_is_there(world: GardenWorld, tmp_path: Path) -> None:
    made = await world.add_gardenlet("one")
    spec = {**made["spec"], "deployment": {**made["spec"]["deployment"], "replicaCount": 5}}
    file = tmp_path / "gardenlet.yaml"
    file.write_text(yaml.dump({**made, "spec": spec}))
    assert [line.split() for line in changed(await lines(world, file=file))] == [
        ["-", "replicas:", "2"],
        ["+", "replicas:", "5"],
    ]
    file.write_text(yaml.dump({**made, "spec": {**spec, "config": None}}))
    with pytest.raises(CommandError, match=r"would be refused: spec\.config"):
        await lines(world, file=file)
    file.write_text("a: [")
    with pytest.raises(CommandError, match="holds no Gardenlet"):
        await lines(world, file=file)


async def test_a_change_is_compared_with_the_seed_field_by_field(world: GardenWorld) -> None:
    await world.add_gardenlet("one")
    kubeconfig = world.server.kubeconfig_for(world.cluster_of("one"))
    async with world.gardenlets(), world.operating():
        await world.healthy("one")
    assert await lines(world, kubeconfig=kubeconfig) == []
    found = "\n".join(await lines(world, chart=world.chart(NEW), kubeconfig=kubeconfig))
    assert f'.image: "registry.example.org/gardener/gardenlet:v{OLD}" instead of' in found
    assert await world.image("one") == f"v{OLD}"


async def test_a_chart_or_gardenlet_that_is_not_there_is_an_error(world: GardenWorld) -> None:
    with pytest.raises(CommandError, match="no Gardenlet one"):
        await lines(world)
    await world.add_gardenlet("one")
    with pytest.raises(CommandError, match=r"9\.9\.9"):
        await lines(world, chart=world.chart("9.9.9"))


def test_values_of_secrets_are_not_shown() -> None:
    def secret(value: str) -> dict[str, object]:
        return {"kind": "Secret", "metadata": {"name": "s"}, "data": {"key": value}, "stringData": {"other": value}}

    assert difference([secret("b2xk")], [secret("bmV3")]) == []
    assert "bmV3" not in "".join(difference([], [secret("bmV3")]))


async def test_the_state_of_a_gardenlet_names_the_owner_of_the_next_step(world: GardenWorld) -> None:
    await world.add_gardenlet("one")
    facts = await read_facts(world.management, world.garden)
    (found,) = facts.gardenlets
    assert list(facts.lines(found))[-2:] == [
        "There is no Seed of this name.",
        "Next step: the operator of Gardenlets (hortus run --gardenlets), for SeedRegistered",
    ]
    async with world.gardenlets(), world.operating():
        await world.healthy("one")
    facts = await read_facts(world.management, world.garden)
    (found,) = facts.gardenlets
    assert list(facts.lines(found))[-1] == "Next step: nobody: all is well"
    assert facts.row(found) == ("one", world.chart(), f"v{OLD}", "True", "True", "True")
    patch = {"spec": {"config": {"kind": "Pod"}}}
    await world.management.patch(GARDENLETS, "one", patch, "garden")
    facts = await read_facts(world.management, world.garden)
    assert "correct the fields above" in list(facts.lines(facts.gardenlets[0]))[-1]
