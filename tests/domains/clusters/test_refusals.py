"""A request that the garden refuses for good is sent once, and again when something has changed, or after minutes."""

from __future__ import annotations

from typing import Any

import pytest
from tests.domains.clusters.world import World, is_ready, said

from hortus.domains.clusters.garden import CLOUD_PROFILES
from hortus.domains.clusters.types import Annotation, Label
from hortus.kube.errors import Forbidden, Invalid, KubeError
from hortus.simulation.garden.content import cloud_profiles

REFUSED = Invalid("spec.provider.workers[0].sysctls: not allowed here")
CREATE, APPLY = ("create", "shoots"), ("apply", "shoots")
PATCHED_IN_VAIN = f"Gardener API shoot patch error: {REFUSED}"


async def test_a_refused_shoot_is_sent_once_and_again_after_minutes(here: World) -> None:
    here.failures[CREATE] = REFUSED
    async with here.controlled():
        await here.create()
        found = await here.until_reason("GardenerErr")
        assert said(found) == ("Provisioned", "False", "GardenerErr", f"Gardener API create error: {REFUSED}")
        for _ in range(3):
            await here.rest()
        await here.advance(290)
        await here.rest()
        assert here.tried[CREATE] == 1
        before = await here.revision()
        for seconds, tries in ((40, 2), (500, 2), (200, 3), (900, 3), (400, 4), (3600, 6)):
            await here.advance(seconds)
            await here.rest()
            assert here.tried[CREATE] == tries
        assert await here.revision() == before


@pytest.mark.parametrize("change", ["generation", "label", "force"])
async def test_a_change_of_the_runtime_sends_a_refused_shoot_at_once(here: World, change: str) -> None:
    here.failures[CREATE] = REFUSED
    async with here.controlled():
        await here.create()
        await here.until_reason("GardenerErr")
        await here.rest()
        del here.failures[CREATE]
        if change == "generation":
            await here.resize(7)
        elif change == "label":
            await here.change({"metadata": {"labels": {Label.SUBACCOUNT_ID: "another"}}})
        else:
            await here.annotate(Annotation.FORCE_PATCH)
        await here.until_said("Shoot is pending")
        assert here.tried[CREATE] == 2


@pytest.mark.parametrize("refuses", ["garden", "hortus"])
async def test_another_offer_of_the_cloud_profile_tries_a_failed_runtime_again(here: World, refuses: str) -> None:
    here.choices["check_profiles"] = True
    profile: Any = next(one for one in cloud_profiles() if one["metadata"]["name"] == "aws")
    profile["spec"]["kubernetes"]["versions"].append({"version": "1.31"})
    machines = profile["spec"]["machineTypes"]
    if refuses == "hortus":
        profile["spec"]["machineTypes"] = [one for one in machines if one["name"] != "m6i.large"]
    else:
        here.failures[CREATE] = REFUSED
    await here.garden.create(CLOUD_PROFILES, profile)
    try:
        async with here.controlled():
            await here.create()
            await here.until_reason("GardenerErr" if refuses == "garden" else "ConversionErr")
            await here.rest()
            assert here.tried[CREATE] == (refuses == "garden")
            here.failures.clear()
            more = [*machines, {"name": "m99.large", "cpu": "2", "gpu": "0", "memory": "8Gi", "usable": True}]
            await here.garden.patch(CLOUD_PROFILES, "aws", {"spec": {"machineTypes": more}})
            # A garden with CloudProfiles has projects too, and this one lacks ours.
            await here.until_said("no project found")
    finally:
        await here.garden.delete(CLOUD_PROFILES, "aws")


async def test_a_refused_patch_is_sent_once_whatever_the_garden_reports_meanwhile(here: World) -> None:
    async with here.controlled():
        await here.grow()
        here.failures[APPLY] = REFUSED
        before = here.tried[APPLY]
        await here.resize(9)
        found = await here.until_said(PATCHED_IN_VAIN)
        assert said(found)[1:3] == ("False", "ProcessingErr")
        for progress in (10, 60):
            await here.operate("Reconcile", "Processing", progress=progress)
            await here.seen()
            await here.rest()
        await here.advance(200)
        await here.rest()
        # The pools were replaced before, which another read sees: the garden's generation is another one since.
        assert here.tried[APPLY] - before <= 2
        assert (await here.until_state("Failed"))["status"]["state"] == "Failed"
        here.failures.clear()
        runtime = await here.resize(10)
        await here.until_patched(runtime["metadata"]["generation"])
        await here.operate("Reconcile", "Succeeded")
        await here.until("Runtime", "rt-1", is_ready)


async def test_a_forbidden_patch_is_soon_named_with_its_reason(here: World) -> None:
    """The garden forbids now and then for no reason, but its admission plugins do so for good."""
    async with here.controlled():
        await here.grow()
        why: KubeError = Forbidden('credentialsbindings.security.gardener.cloud "sb-1" not found')
        here.failures[APPLY] = why
        await here.resize(9)
        await here.until_said("Shoot is pending for update after forbidden error")
        for seconds in (20, 40, 80):
            await here.advance(seconds)
        found = await here.until_said(f"Gardener API shoot patch error: {why}")
        assert said(found)[1:3] == ("False", "ProcessingErr")
        tries = here.tried[APPLY]
        await here.advance(60)
        await here.rest()
        assert here.tried[APPLY] == tries
        here.failures.clear()
        await here.advance(200)
        await here.until_patched(2)
