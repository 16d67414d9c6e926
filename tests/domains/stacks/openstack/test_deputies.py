"""Node images of a namespace that is not trusted need a Secret that the namespace may read."""

from __future__ import annotations

from tests.domains.granting import grant, reads_secret
from tests.domains.stacks.openstack.world import IMAGE, World, condition, is_active

from hortus.domains.stacks.openstack.service import IMAGE_ANNOTATION
from hortus.domains.stacks.openstack.settings import OpenStackSettings
from hortus.domains.stacks.types import OPENSTACK_NODE_IMAGES
from hortus.engine.leftovers.types import LEFTOVERS
from hortus.testing import wait_gone

DELETING = OpenStackSettings(deletes_images=True)
REFUSED = "namespace default may not get secrets/openstack in namespace default"


async def test_a_cloud_is_called_where_the_namespace_may_read_its_secret(world: World) -> None:
    world.trusted = "kcp-system"
    await world.write_secret()
    await world.write_image()
    async with world.running():
        found = await world.until_reason("CloudAvailable", "NotPermitted")
        assert REFUSED in condition(found, "CloudAvailable")[3]
        assert world.cloud.calls == []
        await grant(world.client, "default", reads_secret("default", "openstack"))
        await world.until(is_active)


async def test_an_image_that_may_not_be_deleted_is_recorded(world: World) -> None:
    await world.write_secret()
    await world.write_image()
    async with world.running(DELETING):
        await world.until(is_active)
    image = (await world.image()).metadata.annotations[IMAGE_ANNOTATION]
    world.trusted = "kcp-system"
    async with world.running(DELETING):
        await world.client.delete(OPENSTACK_NODE_IMAGES, IMAGE, "default")
        await wait_gone(world.client, OPENSTACK_NODE_IMAGES, IMAGE, "default")
    assert image in world.cloud.images
    (left,) = (await world.client.list(LEFTOVERS, "default")).items
    assert REFUSED in left["spec"]["message"]
    assert left["spec"]["items"][0]["remove"] == f"openstack image delete {image}"
