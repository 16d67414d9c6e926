"""A garden that spells pools in its own way, and adds fields, is followed: one change, and nothing more after it."""

from __future__ import annotations

import pytest
from tests.domains.clusters.shoot import samples
from tests.domains.clusters.world import World, is_ready

from hortus.domains.clusters.garden import SHOOTS
from hortus.domains.clusters.types import Annotation
from hortus.kube.objects import Object

ZONES = samples.ZONES["aws"][:1]
VARIANTS: dict[str, tuple[Object, Object]] = {
    "duration": (
        {"machineControllerManager": {"machineDrainTimeout": "10m"}},
        {"machineControllerManager": {"machineDrainTimeout": "10m0s"}},
    ),
    "autoscaler": (
        {"clusterAutoscaler": {"scaleDownUnneededTime": "30m"}},
        {"clusterAutoscaler": {"scaleDownUnneededTime": "30m0s"}},
    ),
    "quantity": (
        {"kubernetes": {"kubelet": {"kubeReserved": {"cpu": "0.1"}}}},
        {"kubernetes": {"kubelet": {"kubeReserved": {"cpu": "100m"}}}},
    ),
    "version": ({"kubernetes": {"version": "1.33"}}, {"kubernetes": {"version": "1.33.5"}}),
    "default of a webhook": ({}, {"kubernetes": {"kubelet": {"failSwapOn": True}}}),
}


@pytest.mark.parametrize("variant", VARIANTS)
async def test_a_change_of_a_pool_that_the_garden_spells_otherwise_is_carried_through(
    here: World, variant: str
) -> None:
    sent, answered = VARIANTS[variant]
    pool = samples.pool(zones=ZONES, volume={"size": "50Gi"}, **sent)
    async with here.controlled():
        await here.grow(here.runtime(kubernetes={"version": "1.33.5"}, pool=pool))
        shoot = await here.shoot()
        [worker] = shoot["spec"]["provider"]["workers"]
        workers = [{**{key: value for key, value in worker.items() if key not in sent}, **answered}]
        await here.garden.patch(SHOOTS, "c-1", {"spec": {"provider": {"workers": workers}}}, here.garden_namespace)
        await here.operate("Reconcile", "Succeeded")
        await here.update(7)
        shoot = await here.shoot()
        [worker] = shoot["spec"]["provider"]["workers"]
        assert worker["maximum"] == 7
        assert shoot["metadata"]["annotations"]["infrastructuremanager.kyma-project.io/runtime-generation"] == "2"
    before = await here.revision()
    async with here.controlled():
        await here.rest()
        assert await here.revision() == before
        generation = (await here.shoot())["metadata"]["generation"]
        await here.annotate(Annotation.FORCE_PATCH)
        await here.until("Runtime", "rt-1", lambda found: is_ready(found) and not _forced(found))
        assert (await here.shoot())["metadata"]["generation"] == generation


def _forced(runtime: Object) -> bool:
    return Annotation.FORCE_PATCH in (runtime["metadata"].get("annotations") or {})
