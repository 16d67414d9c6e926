"""A Shoot is changed and deleted only for the Runtime it belongs to; a name proves nothing."""

from __future__ import annotations

from typing import Any

from tests.domains.clusters.world import World, condition

from hortus.domains.clusters.garden import SHOOTS
from hortus.domains.clusters.types import RUNTIMES, Annotation
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.kube.objects import Object

OWNER = "infrastructuremanager.kyma-project.io/runtime-id"


def foreign(here: World, owner: str = "", name: str = "c-1") -> Object:
    """A Shoot that somebody else made."""
    annotations: dict[str, Any] = {OWNER: owner} if owner else {}
    pool = {"name": "w", "machine": {"type": "m6i.large"}, "minimum": 1, "maximum": 1, "zones": ["eu-central-1a"]}
    return {
        "apiVersion": SHOOTS.api_version,
        "kind": SHOOTS.kind,
        "metadata": {"name": name, "namespace": here.garden_namespace, "annotations": annotations},
        "spec": {
            "region": "eu-central-1",
            "secretBindingName": "sb-1",
            "networking": {
                "type": "calico",
                "nodes": "10.250.0.0/16",
                "pods": "10.96.0.0/13",
                "services": "10.104.0.0/13",
            },
            "kubernetes": {"version": "1.31.0"},
            "controlPlane": {"highAvailability": {"failureTolerance": {"type": "zone"}}},
            "provider": {"type": "aws", "workers": [pool], "infrastructureConfig": {"networks": {"zones": []}}},
        },
    }


def owned(shoot: Object) -> bool:
    return OWNER in (shoot["metadata"].get("annotations") or {})


async def made(here: World, shoot: Object) -> Object:
    await here.garden.create(SHOOTS, shoot)
    return await here.operate("Create", "Succeeded")


async def test_a_shoot_of_another_runtime_is_neither_adopted_nor_deleted(here: World) -> None:
    shoot = await made(here, foreign(here, "rt-elsewhere"))
    async with here.controlled():
        await here.create()
        found = await here.until_state("Failed")
        text = condition(found)["message"]
        assert "shoot c-1 exists and belongs to the Runtime with label kyma-project.io/runtime-id=rt-elsewhere" in text
        assert condition(found)["reason"] == "CreationErr"
        await here.annotate(Annotation.FORCE_PATCH)
        await here.rest()
        await here.delete()
        await here.until_gone()
    assert await here.shoot() == shoot
    assert here.garden_requests.writes == 0


async def test_a_shoot_of_nobody_is_taken_over_only_by_its_uid(here: World) -> None:
    shoot = await made(here, foreign(here))
    async with here.controlled():
        await here.create(here.runtime(region="eu-central-1"))
        found = await here.until_state("Failed")
        assert f"{Annotation.ADOPT}={shoot['metadata']['uid']}" in condition(found)["message"]
        await here.annotate(Annotation.ADOPT, "another-uid")
        await here.rest()
        assert await here.shoot() == shoot
        await here.annotate(Annotation.ADOPT, shoot["metadata"]["uid"])
        adopted = await here.until("Shoot", "c-1", owned)
        assert adopted["metadata"]["annotations"][OWNER] == "rt-1"


async def test_a_shoot_that_becomes_free_is_created_without_a_hand(here: World) -> None:
    await made(here, foreign(here, "rt-elsewhere"))
    async with here.controlled():
        await here.create()
        await here.until_state("Failed")
        await here.garden.patch(
            SHOOTS,
            "c-1",
            {"metadata": {"finalizers": None, "annotations": {"confirmation.gardener.cloud/deletion": "true"}}},
            here.garden_namespace,
        )
        await here.garden.delete(SHOOTS, "c-1", here.garden_namespace)
        await here.until_said("Shoot is pending")
        assert (await here.shoot())["metadata"]["annotations"][OWNER] == "rt-1"


async def test_of_two_runtimes_that_name_one_shoot_the_older_has_it_and_the_other_is_told(here: World) -> None:
    async with here.controlled():
        await here.grow()
        shoot = await here.shoot()
        await here.create(here.runtime("rt-2"))
        found = await here.until_state("Failed", "rt-2")
        assert "belongs to the Runtime with label kyma-project.io/runtime-id=rt-1" in condition(found)["message"]
        await here.delete("rt-2")
        await here.until_gone(name="rt-2")
        assert await here.shoot() == shoot
        assert (await here.client.get(RUNTIMES, "rt-1", here.namespace))["status"]["state"] == "Ready"


async def test_two_runtimes_with_the_same_id_and_shoot_share_nothing(here: World) -> None:
    async with here.controlled():
        await here.grow()
        twin = here.runtime("rt-2")
        twin["metadata"]["labels"]["kyma-project.io/runtime-id"] = "rt-1"
        await here.create(twin)
        found = await here.until_state("Failed", "rt-2")
        assert f"shoot c-1 belongs to Runtime {here.namespace}/rt-1, which is older" in condition(found)["message"]
        await here.delete("rt-2")
        await here.until_gone(name="rt-2")
        assert await here.client.get(GARDENER_CLUSTERS, "rt-1", here.namespace)
        assert not (await here.shoot())["metadata"].get("deletionTimestamp")


async def test_the_younger_has_the_shoot_once_the_older_is_gone(here: World) -> None:
    async with here.controlled():
        await here.create()
        await here.until_said("Shoot is pending")
        await here.create(here.runtime("rt-2"))
        await here.until_state("Failed", "rt-2")
        await here.delete()
        await here.until_gone()
        await here.until_said("Shoot is pending", name="rt-2")
        assert (await here.shoot())["metadata"]["annotations"][OWNER] == "rt-2"


async def test_a_runtime_cannot_leave_its_shoot_behind_by_naming_another(here: World) -> None:
    async with here.controlled():
        await here.grow()
        await here.change({"spec": {"shoot": {"name": "c-2"}}})
        found = await here.until_state("Failed")
        assert "spec.shoot.name is c-2, but this Runtime has shoot c-1 already" in condition(found)["message"]
        assert [one["metadata"]["name"] for one in (await here.garden.list(SHOOTS, here.garden_namespace)).items] == [
            "c-1"
        ]
        await here.change({"spec": {"shoot": {"name": "c-1"}}})
        await here.until_patched(3)
