"""Versions that Runtimes leave open: a changed default, with a policy and without."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.domains.clusters.shoot import samples
from tests.domains.clusters.world import World, is_ready

from hortus.domains.clusters.changes import CHANGE_KINDS, KUBERNETES_VERSION, MACHINE_IMAGE
from hortus.domains.clusters.defaults import held_back, moves
from hortus.domains.clusters.outline import outline_of
from hortus.domains.clusters.shoot import LiveShoot, patch_for, shoot_for
from hortus.domains.clusters.types import RUNTIMES, Runtime
from hortus.domains.rollouts.changekinds import CompiledKind
from hortus.engine.rollouts.types import MOVED, ROLLOUT_POLICIES, ROLLOUTS, WANTS, RolloutPhase
from hortus.kube.clock import SystemClock
from hortus.kube.objects import Object
from hortus.schema import decode

NEW = "1.32.3"
KINDS = {kind.metadata.name: CompiledKind(kind) for kind in CHANGE_KINDS}


@pytest.fixture
async def fleet(here: World) -> AsyncIterator[World]:
    """Two Runtimes that are Ready at the first default; then the default differs, and rollouts are served."""
    async with here.controlled():
        for name in ("rt-1", "rt-2"):
            await here.grow(here.runtime(name, shoot=f"c-{name}"), name, f"c-{name}")
    here.governed, here.automatic, here.clock = True, True, SystemClock()  # type: ignore[assignment]
    choose(here, version=NEW)
    follower = asyncio.create_task(here.follow(here.client, ROLLOUTS, here.namespace))
    yield here
    follower.cancel()


def choose(here: World, *, version: str = "1.31", image: str = "1592.1.0") -> None:
    here.choices["configuration"] = samples.configuration(
        gardener__projectName=here.project,
        maintenanceWindow=None,
        auditLogging__policyConfigMapName="audit",
        kubernetes__defaultVersion=version,
        machineImage__defaultVersion=image,
    )


async def set_policy(here: World, kind: str = KUBERNETES_VERSION, **spec: Any) -> None:
    policy: Object = {
        "apiVersion": ROLLOUT_POLICIES.api_version,
        "kind": "RolloutPolicy",
        "metadata": {"name": "waves", "namespace": here.namespace},
        "spec": {"changes": [{"kind": kind}], "stages": [{"name": "all"}], **spec},
    }
    await here.client.apply(ROLLOUT_POLICIES, policy, field_manager="test")


def annotations(runtime: Object) -> dict[str, str]:
    found = (runtime.get("metadata") or {}).get("annotations") or {}
    return {name: value for name, value in found.items() if name.startswith((WANTS, MOVED))}


def version_of(shoot: Object) -> str:
    return str(shoot["spec"]["kubernetes"]["version"])


def image_of(shoot: Object) -> str:
    return str(shoot["spec"]["provider"]["workers"][0]["machine"]["image"]["version"])


def phase(rollout: Object) -> str:
    return str((rollout.get("status") or {}).get("phase", ""))


def stage(rollout: Object) -> Object:
    """The only stage of the policy."""
    found = (rollout.get("status") or {}).get("stages") or ()
    return next((one for one in found if one["name"] == "all"), {})


async def test_a_changed_default_reaches_the_clusters_in_the_waves_of_its_rollout(fleet: World) -> None:
    await set_policy(fleet)
    fleet.automatic = False
    async with fleet.controlled():
        await fleet.until("Shoot", "c-rt-1", lambda obj: version_of(obj) == NEW)
        [rollout] = (await fleet.client.list(ROLLOUTS, fleet.namespace)).items
        name = rollout["metadata"]["name"]
        await fleet.until("Rollout", name, lambda obj: stage(obj).get("running") == 1)
        assert version_of(await fleet.shoot("c-rt-2")) == "1.31", "one after the other"
        fleet.automatic = True
        await fleet.operate("Reconcile", "Succeeded", name="c-rt-1")
        for runtime in ("rt-1", "rt-2"):
            shoot = await fleet.until("Shoot", f"c-{runtime}", lambda obj: version_of(obj) == NEW)
            assert image_of(shoot) == "1592.1.0"
            moved = await fleet.until("Runtime", runtime, lambda o: f"{MOVED}{KUBERNETES_VERSION}" in annotations(o))
            assert annotations(moved) == {f"{MOVED}{KUBERNETES_VERSION}": NEW}
        done = await fleet.until("Rollout", name, lambda obj: phase(obj) == RolloutPhase.SUCCEEDED)
        assert stage(done)["clusters"] == stage(done)["succeeded"] == 2


async def test_a_cluster_that_waits_keeps_its_version_through_other_patches(fleet: World) -> None:
    await set_policy(fleet, paused=True)
    async with fleet.controlled():
        await fleet.until("Runtime", "rt-1", annotations)
        await fleet.resize(7)
        shoot = await fleet.until("Shoot", "c-rt-1", lambda obj: obj["spec"]["provider"]["workers"][0]["maximum"] == 7)
        runtime = await fleet.until("Runtime", "rt-1", is_ready)
        assert version_of(shoot) == "1.31"
        assert annotations(runtime) == {f"{WANTS}{KUBERNETES_VERSION}": NEW}


async def test_an_owner_who_chooses_a_version_waits_for_no_rollout(fleet: World) -> None:
    await set_policy(fleet, paused=True)
    async with fleet.controlled():
        await fleet.until("Runtime", "rt-1", annotations)
        await fleet.change({"spec": {"shoot": {"kubernetes": {"version": "1.32.1"}}}}, "rt-1")
        await fleet.until("Shoot", "c-rt-1", lambda obj: version_of(obj) == "1.32.1")
        await fleet.until("Runtime", "rt-1", lambda obj: is_ready(obj) and not annotations(obj))
        assert version_of(await fleet.shoot("c-rt-2")) == "1.31", "the others wait"


async def test_a_new_cluster_begins_with_the_default_whatever_a_policy_says(fleet: World) -> None:
    await set_policy(fleet, paused=True)
    async with fleet.controlled():
        await fleet.create(fleet.runtime("rt-3", shoot="c-rt-3"))
        assert version_of(await fleet.until("Shoot", "c-rt-3", lambda obj: obj)) == NEW


async def test_without_a_policy_a_default_arrives_with_the_next_patch(fleet: World) -> None:
    async with fleet.controlled():
        await fleet.rest("rt-1")
        assert version_of(await fleet.shoot("c-rt-1")) == "1.31"
        await fleet.resize(7)
        await fleet.until("Shoot", "c-rt-1", lambda obj: version_of(obj) == NEW)
        runtime = await fleet.until("Runtime", "rt-1", is_ready)
        assert annotations(runtime) == {}
        assert version_of(await fleet.shoot("c-rt-2")) == "1.31"


async def test_the_default_machine_image_waits_as_well(fleet: World) -> None:
    choose(fleet, image="1600.2.0")
    await set_policy(fleet, MACHINE_IMAGE)
    async with fleet.controlled():
        for name in ("rt-1", "rt-2"):
            await fleet.until("Shoot", f"c-{name}", lambda obj: image_of(obj) == "1600.2.0")
            moved = await fleet.until("Runtime", name, lambda obj: f"{MOVED}{MACHINE_IMAGE}" in annotations(obj))
            assert annotations(moved)[f"{MOVED}{MACHINE_IMAGE}"] == "1600.2.0"


@pytest.mark.parametrize(
    ("kind", "pool", "to"),
    [
        (KUBERNETES_VERSION, samples.pool(), NEW),
        (MACHINE_IMAGE, samples.pool(machine={"type": "m", "image": {"name": "gardenlinux"}}), "1600.2.0"),
    ],
)
async def test_a_rollout_that_sets_objects_writes_the_version_into_the_runtimes(
    here: World, kind: str, pool: Object, to: str
) -> None:
    here.governed, here.automatic, here.clock = True, True, SystemClock()  # type: ignore[assignment]
    follower = asyncio.create_task(here.follow(here.client, ROLLOUTS, here.namespace))
    pool = {**pool, "zones": samples.ZONES["aws"]}
    async with here.controlled():
        await here.create(here.runtime(pool=pool))
        await here.until("Runtime", "rt-1", is_ready)
        rollout: Object = {
            "apiVersion": ROLLOUTS.api_version,
            "kind": "Rollout",
            "metadata": {"name": "by-hand", "namespace": here.namespace},
            "spec": {
                "change": {"kind": kind, "subject": KINDS[kind].identify(await one(here)).subject, "to": to},  # type: ignore[union-attr]
                "execute": "Patch",
            },
        }
        await here.client.create(ROLLOUTS, rollout)
        await here.until("Rollout", "by-hand", lambda obj: phase(obj) == RolloutPhase.SUCCEEDED)
        runtime, shoot = await one(here), await here.shoot()
        assert (version_of(shoot) if kind == KUBERNETES_VERSION else image_of(shoot)) == to
        assert KINDS[kind].view(runtime, to).version == to
    follower.cancel()


def test_a_rollout_of_images_has_nothing_to_set_in_a_runtime_that_names_none() -> None:
    runtime: Object = {
        "metadata": {"name": "rt-1", "namespace": "kcp-system"},
        "spec": {"shoot": {"provider": {"workers": [{"name": "a", "machine": {"type": "m"}}]}}},
    }
    assert not KINDS[MACHINE_IMAGE].sets(runtime, "1600.2.0")
    assert KINDS[KUBERNETES_VERSION].sets(runtime, NEW)


async def one(here: World) -> Object:
    return await here.client.get(RUNTIMES, "rt-1", here.namespace)


VERSIONS = st.sampled_from(["1.31.9", "1.31", "1.31.4", "1.32.0", "1.32"])
IMAGES = st.sampled_from(["1500.1.0", "1592.1.0", "1592.2.0", "1700"])


@given(
    st.none() | VERSIONS,
    st.lists(st.none() | IMAGES, min_size=1, max_size=3),
    VERSIONS,
    VERSIONS,
    IMAGES,
    IMAGES,
    st.sets(st.sampled_from([KUBERNETES_VERSION, MACHINE_IMAGE])),
)
def test_a_move_that_is_held_back_is_the_only_difference(
    own: str | None,
    images: list[str | None],
    first: str,
    second: str,
    first_image: str,
    second_image: str,
    held: set[str],
) -> None:
    """A kind that is held keeps its present version; all else is as the new defaults would have it."""
    before = samples.configuration(kubernetes__defaultVersion=first, machineImage__defaultVersion=first_image)
    after = samples.configuration(kubernetes__defaultVersion=second, machineImage__defaultVersion=second_image)
    runtime = decode(Runtime, _document(own, images))
    live = shoot_for(runtime, before, samples.CONTEXT)
    live["metadata"] |= {"uid": "u", "generation": 1, "resourceVersion": "1"}
    shoot, kinds = outline_of(live), [KUBERNETES_VERSION, MACHINE_IMAGE]
    free = patch_for(runtime, LiveShoot(live), after, samples.CONTEXT).shoot
    patched = patch_for(held_back(runtime, shoot, held), LiveShoot(live), after, samples.CONTEXT).shoot
    for kind, part in zip(kinds, (_version, _images), strict=True):
        assert moves(kind, runtime, shoot, after) == (part(free) != part(live))
        assert part(patched) == part(live if kind in held else free)
    assert _rest(patched) == _rest(free)


def _document(own: str | None, images: list[str | None]) -> Object:
    pools = [
        samples.pool(
            f"pool-{number}",
            zones=samples.ZONES["aws"],
            machine={"type": "m", **({"image": {"name": "gardenlinux", "version": image}} if image else {})},
        )
        for number, image in enumerate(images)
    ]
    kubernetes = {"kubernetes": {"version": own}} if own else {}
    return samples.runtime(pool=pools[0], further=pools[1:], **kubernetes)


def _version(shoot: Object) -> Any:
    return shoot["spec"]["kubernetes"]["version"]


def _images(shoot: Object) -> Any:
    return [pool["machine"]["image"] for pool in shoot["spec"]["provider"]["workers"]]


def _rest(shoot: Object) -> Any:
    """A Shoot without versions, and without the fields that follow from the Kubernetes version."""
    spec = {name: part for name, part in shoot["spec"].items() if name not in ("kubernetes", "cloudProfile")}
    spec.pop("cloudProfileName", None)
    pools = [{**pool, "machine": None} for pool in spec["provider"]["workers"]]
    return {**shoot, "spec": {**spec, "provider": {**spec["provider"], "workers": pools}}}
