"""The simulated cloud keeps the rules of Glance, which the client of the domain meets here."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.domains.stacks.openstack.test_clouds import AUTH
from yarl import URL

from hortus.domains.stacks.openstack.clouds import AuthMethod, CloudAccess, KeystoneDomain
from hortus.domains.stacks.openstack.errors import RequestRefused
from hortus.domains.stacks.openstack.glance import GlanceService
from hortus.domains.stacks.openstack.transport import CloudLimits, CloudTransport
from hortus.domains.stacks.types import ImageOptions
from hortus.kube import Secret
from hortus.kube.clock import SystemClock
from hortus.simulation.glance import CloudServer

OPTIONS = ImageOptions(name="ubuntu", disk_format="qcow2", container_format="bare")


@pytest.fixture
async def cloud() -> AsyncIterator[CloudServer]:
    async with CloudServer(page=2) as found:
        yield found


@pytest.fixture
async def glance(cloud: CloudServer) -> AsyncIterator[GlanceService]:
    access = CloudAccess(
        name="openstack",
        auth_url=URL(cloud.auth_url),
        method=AuthMethod.PASSWORD,
        username=AUTH["username"],
        user_domain=KeystoneDomain(name="Default"),
        secret=Secret(AUTH["password"]),
    )
    service = GlanceService(access, CloudTransport(access, CloudLimits(local=True)), SystemClock())
    yield service
    await service.close()


async def test_a_list_is_read_to_its_last_page(cloud: CloudServer, glance: GlanceService) -> None:
    made = {(await glance.create(OPTIONS)).id for _ in range(5)}
    await glance.create(ImageOptions(name="other"))
    assert {image.id for image in await glance.find(OPTIONS)} == made
    assert cloud.calls.count(("GET", "/image/v2/images")) == 3


async def test_an_import_needs_formats_and_an_image_without_data(glance: GlanceService) -> None:
    bare = await glance.create(ImageOptions(name="bare"))
    with pytest.raises(RequestRefused, match="disk_format, container_format must be set"):
        await glance.start_import(bare.id, "https://images.example.com/a.qcow2")
    image = await glance.create(OPTIONS)
    with pytest.raises(RequestRefused, match="Unknown import method or address"):
        await glance.start_import(image.id, "file:///etc/passwd")
    assert await glance.start_import(image.id, "https://images.example.com/a.qcow2")
    assert not await glance.start_import(image.id, "https://images.example.com/a.qcow2")
    (task,) = await glance.tasks(image.id)
    assert (task.status, task.uri) == ("pending", "https://images.example.com/a.qcow2")


@pytest.mark.parametrize(
    ("options", "status"),
    [
        (ImageOptions(name="a", disk_format="floppy"), 400),
        (ImageOptions(name="a", visibility="everybody"), 400),
        (ImageOptions(name="a", properties={"os_hash_value": "00"}), 403),
        (ImageOptions(name="a", properties={"os_glance_import_task": "x"}), 403),
    ],
)
async def test_fields_that_glance_refuses_are_refused(
    glance: GlanceService, options: ImageOptions, status: int
) -> None:
    with pytest.raises(RequestRefused) as found:
        await glance.create(options)
    assert found.value.status == status


async def test_an_id_is_given_once(glance: GlanceService) -> None:
    options = ImageOptions(name="a", id="0d5b6d9e-0000-4000-8000-000000000001")
    await glance.create(options)
    with pytest.raises(RequestRefused, match="already exists"):
        await glance.create(options)
    await glance.delete(options.id)
    await glance.delete(options.id)
    await glance.create(options)
