"""`hortus migrate`, in a whole simulated garden: the plan, refusals by admission, the progress, and the way back."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from tests.simulation.garden import NAMESPACE, simulated, started_garden
from tests.simulation.shoots import small_shoot

from hortus.domains.garden.migration.asking import NO_COORDINATOR, MigrationRequests
from hortus.domains.garden.migration.coordinator import add_coordinator
from hortus.domains.garden.migration.showing import MigrationProgress
from hortus.engine import Manager
from hortus.gardener.livemigration import ABORT, ALLOW_DISTANT, COORDINATOR_MAP, LIVE_MIGRATE
from hortus.kube import Client
from hortus.kube.clock import SystemClock
from hortus.kube.errors import Forbidden
from hortus.kube.objects import Object, Resource
from hortus.simulation.garden.kinds import SEEDS, SHOOTS
from hortus.simulation.garden.livemigration.planes import SimulatedPlanes
from hortus.simulation.settings import GardenSettings
from hortus.terminal import CommandError
from hortus.testing.apiserver import TestServer

SETTINGS = GardenSettings(time_factor=50.0, sync_period=1e6)
HA = {"highAvailability": {"failureTolerance": {"type": "node"}}}
FAR = {ALLOW_DISTANT: "true"}
_CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
_numbers = itertools.count(3, 3)
"""Numbers of Shoots of the first provider."""


@pytest.fixture(scope="module")
def server() -> Iterator[TestServer]:
    with started_garden(SETTINGS) as running, simulated(running, SETTINGS):
        yield running


@pytest.fixture
async def garden(server: TestServer) -> AsyncIterator[Client]:
    async with Client.from_kubeconfig(server.kubeconfig_for("garden")) as client:
        manager = Manager(client)
        add_coordinator(manager, client=client, planes=SimulatedPlanes(SETTINGS, manager.clock))
        async with manager.running():
            yield client


async def created(garden: Client, **spec: Any) -> str:
    """Create a Shoot on aws-1; returns its name once it is there."""
    shoot = small_shoot("demo", next(_numbers))
    shoot["metadata"]["namespace"] = NAMESPACE
    shoot["spec"] |= {"controlPlane": HA, **spec}
    name = str(shoot["metadata"]["name"])
    await garden.create(SHOOTS, shoot)
    async for found in MigrationRequests(garden, name, NAMESPACE).states():
        if (found.get("status") or {}).get("lastOperation", {}).get("state") == "Succeeded":
            assert found["spec"]["seedName"] == "aws-1"
            return name
    raise AssertionError("the watch ended")


async def followed(requests: MigrationRequests) -> tuple[MigrationProgress, list[str]]:
    progress, lines = MigrationProgress(SystemClock()), []
    async for shoot in requests.states():
        if line := progress.note(shoot):
            lines.append(line)
        if progress.ended:
            break
    return progress, lines


async def test_a_shoot_moves_there_and_back_with_a_picture_of_its_members(garden: Client) -> None:
    requests = MigrationRequests(garden, await created(garden), NAMESPACE)
    await requests.ask("aws-2", FAR)
    progress, lines = await followed(requests)
    assert progress.succeeded
    assert any("DestinationEtcdPeersJoined" in line for line in lines)
    rows = {line.split()[0]: line.split()[1] for line in progress.picture()[:-1]}
    assert set(rows) == {f"aws-{seed}-etcd-main-{n}" for seed in (1, 2) for n in range(3)}
    for name, row in rows.items():
        is_new = name.startswith("aws-2")
        assert (row[0], row[-1]) in ({(".", "#"), (".", "L")} if is_new else {("#", "."), ("L", ".")}), (
            progress.picture()
        )
        assert ("o" in row) is is_new
    assert all(column.count("L") == 1 for column in zip(*rows.values(), strict=True))
    assert [one["phase"] for one in progress.document()["phases"]][-1] == "Succeeded"
    await requests.ask("aws-1", FAR)
    assert (await followed(requests))[0].succeeded


async def test_a_plan_names_everything_that_speaks_against_it_and_changes_nothing(garden: Client) -> None:
    name = await created(garden, controlPlane={})
    before = await garden.get(SHOOTS, name, NAMESPACE)
    requests = MigrationRequests(garden, name, NAMESPACE)
    plan = await requests.plan("aws-2", {})
    assert (plan.source, plan.destination, plan.distance, plan.limit) == ("aws-1", "aws-2", 220, 180)
    assert [one.rpartition(": ")[2] for one in plan.problems] == [
        "set spec.controlPlane.highAvailability",
        f"choose a nearer seed, or allow it with the annotation {ALLOW_DISTANT}=true",
    ]
    assert plan.lines()[-2] == "The garden would refuse it."
    assert await garden.get(SHOOTS, name, NAMESPACE) == before
    with pytest.raises(CommandError, match="is on seed aws-1 already"):
        await requests.plan("aws-1", {})
    with pytest.raises(CommandError, match="no Seed nowhere"):
        await requests.plan("nowhere", {})
    with pytest.raises(CommandError, match="choose a project with --namespace"):
        await MigrationRequests(garden, "nobody", NAMESPACE).plan("aws-2", {})


async def test_a_garden_without_a_coordinator_is_asked_for_nothing(garden: Client) -> None:
    name = await created(garden)
    before = await garden.get(SHOOTS, name, NAMESPACE)
    namespace, coordinator = COORDINATOR_MAP
    shown = await garden.get(_CONFIG_MAPS, coordinator, namespace)
    await garden.delete(_CONFIG_MAPS, coordinator, namespace)
    requests = MigrationRequests(garden, name, NAMESPACE)
    try:
        with pytest.raises(CommandError, match="would migrate with downtime"):
            await requests.ask("aws-2", FAR)
        assert (await requests.plan("aws-2", FAR)).problems == (NO_COORDINATOR,)
    finally:
        metadata = {"name": coordinator, "namespace": namespace}
        await garden.create(_CONFIG_MAPS, {**shown, "metadata": metadata})
    assert await garden.get(SHOOTS, name, NAMESPACE) == before
    assert (await requests.plan("aws-2", FAR)).problems == ()


@pytest.mark.parametrize(
    ("seed", "spec", "wishes", "why"),
    [
        ("aws-2", {"controlPlane": {}}, FAR, "shoot control plane must be configured for high availability"),
        ("aws-2", {"hibernation": {"enabled": True}}, FAR, "is not supported for hibernated or waking-up shoots"),
        ("azure-1", {}, FAR, "source and destination seeds must use the same provider type (aws -> azure)"),
        (
            "aws-2",
            {},
            {},
            "distance 220 from source region eu-central-1 to destination region us-east-1 exceeds threshold 180",
        ),
        ("nowhere", {}, FAR, "there is no such Seed"),
        ("old", {}, FAR, "must run the same gardenlet version (aws-1: v1.120.0, old: v1.119.0)"),
        ("silent", {}, FAR, 'gardenlet version not reported for destination seed "silent"'),
    ],
)
async def test_the_garden_refuses_a_move_that_its_admission_forbids(
    garden: Client, seed: str, spec: Object, wishes: dict[str, str], why: str
) -> None:
    known = {one["metadata"]["name"]: one for one in (await garden.list(SEEDS)).items}
    for name, version in (("old", "v1.119.0"), ("silent", "")):
        if name not in known:
            like = {field: known["aws-2"][field] for field in ("apiVersion", "kind", "spec")}
            status = {**known["aws-2"]["status"], "gardener": {"version": version}}
            hidden = {**like["spec"], "settings": {"scheduling": {"visible": False}}}
            await garden.create(SEEDS, {**like, "spec": hidden, "metadata": {"name": name}, "status": status})
    name = await created(garden, **spec)
    with pytest.raises(CommandError) as refused:
        await MigrationRequests(garden, name, NAMESPACE).ask(seed, wishes)
    assert why in str(refused.value)
    left = await garden.get(SHOOTS, name, NAMESPACE)
    assert left["spec"]["seedName"] == "aws-1"
    assert "migration.gardener.cloud/live-migrate" not in left["metadata"].get("annotations", {})


async def test_a_new_shoot_may_not_ask_to_move(garden: Client) -> None:
    shoot = small_shoot("demo", next(_numbers))
    shoot["metadata"] |= {"namespace": NAMESPACE, "annotations": {LIVE_MIGRATE: "T"}}
    with pytest.raises(Forbidden, match="annotation must not be set on shoot creation"):
        await garden.create(SHOOTS, shoot)


async def test_an_abort_turns_a_migration_back_and_is_refused_without_one(garden: Client) -> None:
    requests = MigrationRequests(garden, await created(garden), NAMESPACE)
    with pytest.raises(CommandError, match="is on no way to another seed"):
        await requests.turn({ABORT: "true"})
    await requests.ask("aws-2", FAR)
    with pytest.raises(CommandError, match="is on its way to seed aws-2: abort that first"):
        await requests.ask("aws-1", FAR)
    await requests.turn({ABORT: "true"})
    progress, _ = await followed(requests)
    assert not progress.succeeded
    assert progress.outcome == "The migration was aborted, the control plane is on its former seed"
