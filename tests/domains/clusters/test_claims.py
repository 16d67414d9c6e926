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
    machine = {"type": "m6i.large", "image": {"name": "gardenlinux", "version": "1592.1.0"}}
    pool = {"name": "w", "machine": machine, "minimum": 1, "maximum": 1, "zones": ["eu-central-1a"]}
    return {
        "apiVersion": SHOOTS.api_version,
        "kind": SHOOTS.kind,
        "metadata": {"name": name, "namespace": here.garden_namespace, "annotations": annotations},
        "spec": {
            "region": "eu-central-1",
            "secretBindingName": "sb-1",
            "cloudProfile": {"name": "aws"},
            "dns": {"domain": f"{name}.example.org"},
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


async def test_of_two_runtimes_that_name_one_shoot_the_older_has_it_and_the_other_reports_it(here: World) -> None:
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


# An edit cannot take these from a Runtime.

LABEL = "kyma-project.io/runtime-id"


async def relabel(here: World, value: str) -> None:
    await here.change({"metadata": {"labels": {LABEL: value}}})


async def disown(here: World, owner: str | None = None) -> None:
    await here.garden.patch(SHOOTS, "c-1", {"metadata": {"annotations": {OWNER: owner}}}, here.garden_namespace)


async def test_a_runtime_whose_label_was_changed_says_so_and_recovers_once_it_is_set_back(here: World) -> None:
    async with here.controlled():
        await here.grow()
        before = await here.shoot()
        await relabel(here, "rt-9")
        found = condition(await here.until_state("Failed"))
        assert found["reason"] == "ProcessingErr"
        assert found["message"] == (
            "Shoot cannot be managed: label kyma-project.io/runtime-id cannot be changed: shoot and kubeconfig are "
            "those of rt-1. Set the label back to rt-1"
        )
        assert await here.shoot() == before
        await relabel(here, "rt-1")
        await here.until_state("Ready")


async def test_a_runtime_whose_label_was_changed_takes_everything_along(here: World) -> None:
    here.automatic = True
    async with here.controlled():
        await here.create()
        await here.until_state("Ready")
        await relabel(here, "rt-9")
        await here.until_state("Failed")
        await here.delete()
        await here.until_gone("GardenerCluster", "rt-1")
        await here.until("Shoot", "c-1", lambda found: (found or {"metadata": {}})["metadata"].get("deletionTimestamp"))
        await here.until_gone()
    assert (await here.garden.list(SHOOTS, here.garden_namespace)).items == []


async def test_a_shoot_that_lost_its_annotation_stays_its_runtimes_and_gets_it_back(here: World) -> None:
    async with here.controlled():
        await here.grow()
        await disown(here)
        shoot = await here.until("Shoot", "c-1", owned)
        assert shoot["metadata"]["annotations"][OWNER] == "rt-1"
        await here.until_state("Ready")


async def test_a_runtime_is_held_while_its_shoot_says_that_it_is_somebody_elses(here: World) -> None:
    """Until that is undone; then both go."""
    async with here.controlled():
        await here.grow()
        await disown(here, "rt-nobody")
        assert "belongs to the Runtime with label" in condition(await here.until_state("Failed"))["message"]
        await here.delete()
        said = await here.until_reason("ConversionErr", "Deprovisioned")
        assert "shoot c-1 was this Runtime's" in said["message"] and "set it back to rt-1" in said["message"]
        assert not (await here.shoot())["metadata"].get("deletionTimestamp")
        await disown(here, "rt-1")
        await here.until_gone("GardenerCluster", "rt-1")
        await here.until("Shoot", "c-1", lambda found: found["metadata"].get("deletionTimestamp"))


async def test_a_runtime_goes_without_its_shoot_only_when_its_owner_says_so(here: World) -> None:
    async with here.controlled():
        await here.grow()
        await disown(here, "rt-nobody")
        await here.until_state("Failed")
        await here.delete()
        said = await here.until_reason("ConversionErr", "Deprovisioned")
        uid = (await here.shoot())["metadata"]["uid"]
        assert said["message"].endswith(f"annotate this Runtime with {Annotation.LEAVE}={uid}")
        await here.annotate(Annotation.LEAVE, uid)
        await here.until_gone()
        await here.until_gone("GardenerCluster", "rt-1")
    assert not (await here.shoot())["metadata"].get("deletionTimestamp")


async def test_a_runtime_that_names_another_shoot_is_held_until_it_names_its_own(here: World) -> None:
    async with here.controlled():
        await here.grow()
        await here.change({"spec": {"shoot": {"name": "c-2"}}})
        assert condition(await here.until_state("Failed"))["reason"] == "ProcessingErr"
        await here.delete()
        said = await here.until_reason("ConversionErr", "Deprovisioned")
        assert "shoot c-1 is this Runtime's: set spec.shoot.name back to c-1 to delete both" in said["message"]
        await here.change({"spec": {"shoot": {"name": "c-1"}}})
        await here.until("Shoot", "c-1", lambda found: found["metadata"].get("deletionTimestamp"))


async def test_a_runtime_of_the_go_system_is_held_too(here: World) -> None:
    """It was Ready there, and nothing is recorded on it."""
    made = foreign(here, "rt-1")
    await here.garden.create(SHOOTS, made)
    await here.operate("Create", "Succeeded")
    runtime = await here.create()
    status = {"status": {"state": "Ready", "provisioningCompleted": True, "conditions": []}}
    await here.client.patch(RUNTIMES, "rt-1", status, here.namespace, subresource="status")
    assert runtime["metadata"]["uid"]
    await relabel(here, "rt-9")
    async with here.controlled():
        await here.until_said("Shoot cannot be managed: shoot c-1 exists and belongs to the Runtime")
        await here.delete()
        await here.until_reason("ConversionErr", "Deprovisioned")
    assert not (await here.shoot())["metadata"].get("deletionTimestamp")


async def test_a_copy_of_a_runtime_has_nothing_of_what_the_first_one_has(here: World) -> None:
    async with here.controlled():
        await here.grow()
        record = (await here.client.get(RUNTIMES, "rt-1", here.namespace))["metadata"]["annotations"]
        copy = here.runtime("rt-2", shoot="c-2")
        copy["metadata"]["annotations"] = record
        await here.create(copy)
        await here.until_said("Shoot is pending", name="rt-2")
        assert (await here.shoot("c-2"))["metadata"]["annotations"][OWNER] == "rt-2"


async def test_of_two_runtimes_with_one_id_the_younger_builds_nothing(here: World) -> None:
    async with here.controlled():
        await here.create()
        await here.until_said("Shoot is pending")
        twin = here.runtime("rt-2", shoot="c-2")
        twin["metadata"]["labels"][LABEL] = "rt-1"
        await here.create(twin)
        found = condition(await here.until_state("Failed", "rt-2"))
        assert found["message"].startswith(
            f"Shoot creation failed: label {LABEL}=rt-1 is that of Runtime {here.namespace}/rt-1, which is older"
        )
        shoots = (await here.garden.list(SHOOTS, here.garden_namespace)).items
        assert [one["metadata"]["name"] for one in shoots] == ["c-1"]
        await here.delete()
        await here.until_gone()
        await here.until_said("Shoot is pending", name="rt-2")


# A kubeconfig that somebody deletes.


async def test_the_gardener_cluster_of_a_ready_runtime_comes_back(here: World) -> None:
    here.automatic = True
    async with here.controlled():
        await here.create()
        await here.until_state("Ready")
        here.automatic = False
        await here.client.delete(GARDENER_CLUSTERS, "rt-1", here.namespace)
        found = await here.until_reason("GardenerClusterCRCreated", "KubeconfigReady")
        assert found["status"] == "Unknown"
        await here.until_state("Pending")
        await here.connect()
        await here.until_state("Ready")


async def test_a_failed_runtime_gets_its_gardener_cluster_back_and_stays_as_it_is(here: World) -> None:
    async with here.controlled():
        await here.grow()
        await here.resize(5)
        await here.until_patched(2)
        await here.operate("Reconcile", "Failed", codes=("ERR_INFRA_UNAUTHENTICATED",))
        failed = await here.until_state("Failed")
        await here.client.delete(GARDENER_CLUSTERS, "rt-1", here.namespace)
        await here.until("GardenerCluster", "rt-1", lambda found: not (found.get("status") or {}) and found)
        await here.rest()
        assert (await here.client.get(RUNTIMES, "rt-1", here.namespace))["status"] == failed["status"]
