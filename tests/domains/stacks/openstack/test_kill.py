"""Controllers that are killed in the middle of an image, and objects that the Go provider left."""

from __future__ import annotations

import asyncio

import pytest
from tests.domains.killing import MOST_CALLS, Killer, killed_at
from tests.domains.stacks.openstack.world import (
    IMAGE,
    IMAGE_NAME,
    URL,
    World,
    condition,
    head,
    is_active,
)

from hortus.domains.stacks.openstack.composition import IMAGES
from hortus.domains.stacks.openstack.service import IMAGE_ANNOTATION
from hortus.domains.stacks.openstack.settings import OpenStackSettings
from hortus.domains.stacks.types import OPENSTACK_NODE_IMAGES, OpenStackNodeImageRelease
from hortus.kube.objects import Object, format_time
from hortus.testing import wait_for, wait_gone

pytestmark = pytest.mark.timeout(300)
FIELDS = {"name": IMAGE_NAME, "disk_format": "qcow2", "container_format": "bare"}


async def _activated(world: World) -> None:
    time = asyncio.create_task(world.passing())
    try:
        await wait_for(world.client, OpenStackNodeImageRelease, IMAGE, until=lambda found: found.status.ready)
    finally:
        time.cancel()


async def test_an_image_that_is_killed_at_any_request_ends_the_same(world: World) -> None:
    """After each answer of the management cluster, of Keystone and of Glance, one by one."""
    world.cloud.images.script = ["queued", "importing", "active"]
    await world.write_secret()
    killer = Killer(IMAGES, world.requests)
    kills = 0
    for calls in range(MOST_CALLS):
        await world.write_image()
        done = asyncio.create_task(_activated(world))
        was_killed = await killed_at(killer, calls, world.running(), done)
        kills += was_killed
        killer.rest()
        async with world.running():
            await asyncio.wait_for(done, 60)
            found = await world.until(lambda found: IMAGE_ANNOTATION in found.metadata.annotations)
        (image,) = world.cloud.images.values()
        assert (image.imports, found.metadata.annotations[IMAGE_ANNOTATION]) == (1, image.id)
        assert {one.status for one in found.status.conditions} == {"True"}
        await world.client.delete(OPENSTACK_NODE_IMAGES, IMAGE, "default")
        world.cloud.images.delete(image.id)
        if not was_killed:
            break
    assert 8 < kills < MOST_CALLS


async def _gone(world: World) -> None:
    time = asyncio.create_task(world.passing())
    try:
        await wait_gone(world.client, OPENSTACK_NODE_IMAGES, IMAGE)
    finally:
        time.cancel()


async def test_a_deletion_that_is_killed_at_any_request_ends_the_same(world: World) -> None:
    settings = OpenStackSettings(deletes_images=True)
    await world.write_secret()
    killer = Killer(IMAGES, world.requests)
    kills = 0
    for calls in range(MOST_CALLS):
        killer.rest()
        await world.write_image()
        async with world.running(settings):
            await world.until(lambda found: is_active(found) and IMAGE_ANNOTATION in found.metadata.annotations)
        await world.client.delete(OPENSTACK_NODE_IMAGES, IMAGE, "default")
        done = asyncio.create_task(_gone(world))
        was_killed = await killed_at(killer, calls, world.running(settings), done)
        kills += was_killed
        killer.rest()
        async with world.running(settings):
            await asyncio.wait_for(done, 60)
        assert len(world.cloud.images) == 0
        if not was_killed:
            break
    assert 2 < kills < MOST_CALLS


def _left(world: World, started: str, reason: str) -> Object:
    """An object as the Go provider writes it: its conditions, no annotation, no finalizer."""
    at = format_time(world.clock.now() - 60.0)

    def marked(kind: str, status: str, **more: str) -> Object:
        return {"type": kind, "status": status, "lastTransitionTime": at, **more}

    waits = {"severity": "Info", "reason": reason}
    not_started = {"severity": "Info", "reason": "OpenStackImageImportNotStartReason"}
    conditions = [
        marked("Ready", "False", **waits),
        marked("CloudAvailable", "True"),
        marked("OpenStackImageActive", "False", **waits),
        marked("OpenStackImageImportStarted", started, **({} if started == "True" else not_started)),
        marked("OpenStackImageServiceClientAvailable", "True"),
    ]
    return {"ready": False, "conditions": conditions}


@pytest.mark.parametrize("started", ["True", "False"])
@pytest.mark.parametrize("imported", [True, False])
async def test_work_of_the_go_provider_is_continued(world: World, started: str, imported: bool) -> None:
    """A Go process was stopped before or after the import, and before or after it wrote the condition."""
    left = world.cloud.images.create(dict(FIELDS), world.clock.now())
    if imported:
        world.cloud.images.start_import(left.id, {"method": {"name": "web-download", "uri": URL}})
    await world.write_secret()
    await world.write_image()
    status = _left(world, started, "OpenStackImageNotImportedYet" if imported else "OpenStackImageNotCreateYet")
    body = {**head(OPENSTACK_NODE_IMAGES, IMAGE), "status": status}
    await world.client.patch(OPENSTACK_NODE_IMAGES, IMAGE, body, "default", subresource="status")
    async with world.running():
        found = await world.until(is_active)
    assert (list(world.cloud.images), left.imports) == ([left.id], 1)
    assert condition(found, "OpenStackImageImportStarted")[0] == "True"


async def test_the_go_provider_finds_nothing_that_it_does_not_know(world: World) -> None:
    """Going back: conditions of the contract alone, no finalizer, the image by name and tags."""
    await world.write_secret()
    await world.write_image()
    async with world.running():
        found = await world.until(is_active)
    kinds = {"CloudAvailable", "OpenStackImageServiceClientAvailable", "OpenStackImageImportStarted"}
    assert {one.type for one in found.status.conditions} == kinds | {"OpenStackImageActive", "Ready"}
    assert found.metadata.finalizers == ()
    (image,) = world.cloud.images.values()
    assert image.fields == FIELDS
