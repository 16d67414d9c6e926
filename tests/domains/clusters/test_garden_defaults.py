"""A garden writes pools in its own words and adds its defaults: clusters get there all the same, and then rest."""

from __future__ import annotations

import pytest
from tests.domains.clusters.world import World, is_ready

from hortus.kube.objects import Object

POOLS: dict[str, tuple[Object, Object]] = {
    "a duration of its own form": (
        {"machineControllerManager": {"machineDrainTimeout": "10m"}},
        {"machineControllerManager": {"machineDrainTimeout": "10m0s"}},
    ),
    "quantities": (
        {"kubernetes": {"kubelet": {"kubeReserved": {"cpu": "0.1", "memory": "1024Mi"}}}},
        {"kubernetes": {"kubelet": {"kubeReserved": {"cpu": "100m", "memory": "1Gi"}, "failSwapOn": True}}},
    ),
    "durations of kubelet": (
        {"kubernetes": {"kubelet": {"evictionSoftGracePeriod": {"memoryAvailable": "90s"}}}},
        {"kubernetes": {"kubelet": {"evictionSoftGracePeriod": {"memoryAvailable": "1m30s"}, "failSwapOn": True}}},
    ),
    "durations of the autoscaler": (
        {"clusterAutoscaler": {"scaleDownUnneededTime": "60m"}},
        {"clusterAutoscaler": {"scaleDownUnneededTime": "1h0m0s"}},
    ),
}
"""Parts of a pool as a Runtime has them, and as the garden stores them."""


@pytest.mark.parametrize("what", POOLS)
async def test_a_garden_that_rewrites_a_pool_costs_no_write_at_rest_nor_after_a_restart(here: World, what: str) -> None:
    sent, stored = POOLS[what]
    runtime = here.runtime()
    [pool] = runtime["spec"]["shoot"]["provider"]["workers"]
    pool |= sent
    async with here.controlled():
        await here.grow(runtime)
        found = await here.update(7)
        assert is_ready(found)
        [worker] = (await here.shoot())["spec"]["provider"]["workers"]
        assert {key: worker[key] for key in stored} == stored
        assert worker["maximum"] == 7
        before = here.garden_requests.writes
        await here.rest()
        assert here.garden_requests.writes == before
    before = here.garden_requests.writes
    async with here.controlled():
        await here.rest()
    assert here.garden_requests.writes == before
