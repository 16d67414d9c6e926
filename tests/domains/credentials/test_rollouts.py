"""Rotations under a RolloutPolicy: spread and paused, and never until a kubeconfig ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

import pytest
from tests.domains.credentials.world import SECRETS, World, condition, content

from hortus.domains.credentials.changes import KUBECONFIG_ROTATION
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.engine.rollouts.types import MOVED, ROLLOUT_POLICIES, ROLLOUTS, WANTS, RolloutPhase
from hortus.kube.objects import Object, format_time

HOUR = 3600.0
DUE = 13.68 * HOUR
"""The age at which a kubeconfig of 24 h is due: 0.95 of 0.6 of its life."""
LATEST = 0.8 * 24 * HOUR
T = TypeVar("T")


@pytest.fixture(autouse=True)
def governed(here: World) -> None:
    here.governed = True


async def ticking(here: World, waiting: Awaitable[T]) -> T:
    """The result of `waiting`, while the clock goes on."""
    task = asyncio.ensure_future(waiting)
    while not task.done():
        await here.clock.advance(1.0)
        await asyncio.wait((task,), timeout=0.02)
    return task.result()


async def set_policy(here: World, **spec: Any) -> None:
    policy: Object = {
        "apiVersion": ROLLOUT_POLICIES.api_version,
        "kind": "RolloutPolicy",
        "metadata": {"name": "nights", "namespace": here.namespace},
        "spec": {"changes": [{"kind": KUBECONFIG_ROTATION}], "stages": [{"name": "all"}], **spec},
    }
    await here.client.apply(ROLLOUT_POLICIES, policy, field_manager="test")


def annotations(cluster: Object) -> dict[str, str]:
    """The annotations about rollouts, without their prefixes' domain."""
    found = (cluster.get("metadata") or {}).get("annotations") or {}
    return {name.partition(".")[0]: value for name, value in found.items() if name.startswith((WANTS, MOVED))}


async def connected(here: World, *names: str) -> None:
    """GardenerClusters with a kubeconfig each."""
    for name in names:
        shoot = f"c-{name}"
        here.garden.shoots.add(shoot)
        await here.create(here.cluster(name, shoot=shoot))
        await here.until_condition("KubeconfigSecretCreated", name)


async def test_a_paused_policy_delays_a_rotation_and_never_lets_a_kubeconfig_end(here: World) -> None:
    await set_policy(here, paused=True)
    async with here.controlled():
        await connected(here, "one")
        begin = here.clock.now()
        await here.advance(DUE + 1)
        waiting = await here.until("GardenerCluster", "one", annotations)
        assert annotations(waiting) == {"wants": format_time(here.clock.now())[:10]}
        assert condition(waiting)["status"] == "True"
        await here.advance(begin + LATEST - 60 - here.clock.now())
        assert len(here.garden.calls) == 1
        await here.advance(61)
        await here.until_condition("KubeconfigSecretRotated", "one")
        rotated = await here.until("GardenerCluster", "one", lambda obj: "moved" in annotations(obj))
        assert annotations(rotated) == {"moved": annotations(waiting)["wants"]}
        assert len(here.garden.calls) == 2


async def test_rotations_follow_the_waves_of_their_rollout(here: World) -> None:
    await set_policy(here)
    async with here.controlled():
        await connected(here, "one", "two", "three")
        follower = asyncio.create_task(here.follow(ROLLOUTS))
        await here.advance(DUE + 1)
        for name in ("one", "two", "three"):
            await ticking(here, here.until("GardenerCluster", name, lambda obj: "moved" in annotations(obj)))
        [rollout] = (await here.client.list(ROLLOUTS, here.namespace)).items
        done = await ticking(
            here, here.until("Rollout", rollout["metadata"]["name"], lambda obj: phase(obj) == RolloutPhase.SUCCEEDED)
        )
        follower.cancel()
        [stage] = [one for one in done["status"]["stages"] if one["name"] == "all"]
        assert stage["clusters"] == stage["succeeded"] == 3
        # One after the other, as a stage without maxConcurrency has it.
        assert sorted(here.garden.calls[3:]) == ["c-one", "c-three", "c-two"]


def phase(rollout: Object) -> str:
    return str((rollout.get("status") or {}).get("phase", ""))


async def test_a_rotation_that_a_person_forces_waits_for_no_rollout(here: World) -> None:
    await set_policy(here, paused=True)
    async with here.controlled():
        await connected(here, "one")
        await here.annotate("one")
        await here.until_condition("KubeconfigSecretRotated", "one")
        assert len(here.garden.calls) == 2


async def test_a_secret_that_is_damaged_waits_for_no_rollout(here: World) -> None:
    await set_policy(here, paused=True)
    async with here.controlled():
        await connected(here, "one")
        await here.advance(DUE + 1)
        before = content(await here.secret("kubeconfig-one"))
        await here.change(SECRETS, "kubeconfig-one", {"data": {"config": "ZWRpdGVk"}})
        await here.until_secret(
            lambda obj: obj and content(obj) not in (before, b"edited"),
            "kubeconfig-one",
        )
        assert len(here.garden.calls) == 2


async def test_without_a_policy_a_rotation_writes_what_it_writes_without_rollouts(here: World) -> None:
    """The same requests, one by one, with the gate and without."""
    writes = []
    for governed in (True, False):
        here.governed = governed
        name = f"c{int(governed)}"
        async with here.controlled():
            await connected(here, name)
            before = here.requests.writes
            await here.advance(DUE + 1)
            found = await here.until_condition("KubeconfigSecretRotated", name)
            assert found["status"] == "True"
            await here.rest(name)
            await here.until_event("KubeconfigSecretRotated", name)
            writes.append(here.requests.writes - before)
            cluster = await here.client.get(GARDENER_CLUSTERS, name, here.namespace)
            assert annotations(cluster) == {}
            await here.client.delete(GARDENER_CLUSTERS, name, here.namespace)
            await here.until_gone("GardenerCluster", name)
    assert writes[0] == writes[1]
