"""The OpenStackNodeImageRelease controller against a Glance: states, adoption, foreign images, outages."""

from __future__ import annotations

import asyncio
import hashlib

import pytest
from aiohttp import web
from tests.domains.stacks.openstack.world import IMAGE, IMAGE_NAME, POLL, URL, World, condition, is_active

from hortus.domains.stacks.openstack.nodeimages import FINALIZER
from hortus.domains.stacks.openstack.service import HASH_PROPERTY, IMAGE_ANNOTATION
from hortus.domains.stacks.openstack.settings import OpenStackSettings
from hortus.domains.stacks.types import OPENSTACK_NODE_IMAGES
from hortus.engine.remote import SECRETS
from hortus.testing import wait_gone

ACTIVE = "OpenStackImageActive"
FIELDS = {"name": IMAGE_NAME, "disk_format": "qcow2", "container_format": "bare"}


async def test_an_image_is_created_imported_and_becomes_active(world: World) -> None:
    """A13: properties stand at the top level of the request; the import is a web-download of the url."""
    await world.write_secret()
    await world.write_image(visibility="shared", min_disk=20, properties={"hw_disk_bus": "scsi"}, tags=["k8s"])
    async with world.running():
        found = await world.until(is_active)
        (image,) = world.cloud.images.values()
        assert image.fields == {
            **FIELDS, "visibility": "shared", "min_disk": 20, "tags": ["k8s"], "hw_disk_bus": "scsi"
        }  # fmt: skip
        assert (image.uri, image.imports) == (URL, 1)
        assert found.metadata.annotations[IMAGE_ANNOTATION] == image.id
        kinds = [one.type for one in found.status.conditions]
        names = ("CloudAvailable", "OpenStackImageServiceClientAvailable", "OpenStackImageImportStarted", ACTIVE)
        assert kinds == ["Ready", *sorted(names)]
        assert {one.status for one in found.status.conditions} == {"True"}
        await world.recorded("OpenStackImageImportStarted", "OpenStackImageCreated", "OpenStackImageActive")


@pytest.mark.parametrize("status", ["queued", "importing", "uploading", "saving"])
async def test_the_progress_of_an_import_is_shown(world: World, status: str) -> None:
    world.cloud.images.script = [status]
    await world.write_secret()
    await world.write_image()
    async with world.running():
        found = await world.until(lambda found: "Copied" in condition(found, ACTIVE)[3])
    (image,) = world.cloud.images
    message = f"image {image} is {status} (Copied 15 MiB)"
    assert condition(found, ACTIVE) == ("False", "OpenStackImageNotImportedYet", "Info", message)
    assert not found.status.ready
    assert world.calls("POST", "/import") == 1


async def test_an_image_at_rest_costs_one_request_each_resync(world: World) -> None:
    await world.write_secret()
    await world.write_image()
    async with world.running():
        await world.until(is_active)
        await world.at_rest()
        world.cloud.calls.clear()
        world.requests.answers.clear()
        for _ in range(50):
            await world.at_rest()
            await world.clock.advance(POLL)
        await world.at_rest()
        # 1,550 seconds with a resync every 270 to 330.
        assert 4 <= len(world.cloud.calls) <= 6
        assert set(world.cloud.calls) == {("GET", "/image/v2/images")}
        assert world.requests.writes == []


async def test_an_image_that_somebody_made_and_left_is_adopted(world: World) -> None:
    """D20: a former process created the image, and was killed before the import."""
    left = world.cloud.images.create(dict(FIELDS), world.clock.now())
    await world.write_secret()
    await world.write_image()
    async with world.running():
        found = await world.until(is_active)
    assert list(world.cloud.images) == [left.id]
    assert found.metadata.annotations[IMAGE_ANNOTATION] == left.id


async def test_an_import_that_runs_already_is_not_begun_again(world: World) -> None:
    left = world.cloud.images.create(dict(FIELDS), world.clock.now())
    world.cloud.images.start_import(left.id, {"method": {"name": "web-download", "uri": URL}})
    await world.write_secret()
    await world.write_image()
    async with world.running():
        found = await world.until(is_active)
    assert left.imports == 1
    assert found.metadata.annotations[IMAGE_ANNOTATION] == left.id


async def test_without_a_list_of_tasks_a_conflict_says_that_the_import_runs(world: World) -> None:
    world.cloud.has_tasks = False
    left = world.cloud.images.create(dict(FIELDS), world.clock.now())
    world.cloud.images.script = ["queued", "queued", "queued", "importing", "active"]
    world.cloud.images.start_import(left.id, {"method": {"name": "web-download", "uri": URL}})
    await world.write_secret()
    await world.write_image()
    async with world.running():
        await world.until(is_active)
    assert left.imports == 1


async def test_a_failed_import_is_reported_and_begun_again(world: World) -> None:
    world.cloud.images.script = ["queued", "failed"]
    await world.write_secret()
    await world.write_image()
    async with world.running():
        found = await world.until(lambda found: condition(found, ACTIVE)[1] == "IssueWithOpenStackImage")
        assert "failed (the address does not answer); it is begun again" in condition(found, ACTIVE)[3]
        world.cloud.images.script = ["queued", "active"]
        await world.until(is_active)
    (image,) = world.cloud.images.values()
    assert image.imports == 2
    await world.recorded("OpenStackImageFailedToImport")


async def test_an_import_that_takes_too_long_has_timed_out_until_it_succeeds(world: World) -> None:
    world.cloud.images.script = ["importing"]
    await world.write_secret()
    await world.write_image()
    async with world.running(OpenStackSettings(import_timeout=600.0)):
        found = await world.until(lambda found: condition(found, ACTIVE)[1] == "OpenStackImageImportTimeOutReason")
        (image,) = world.cloud.images.values()
        assert condition(found, ACTIVE)[2:] == ("Error", f"image {image.id} is still importing after 10 minutes")
        image.status = "active"
        await world.until(is_active)
        await world.recorded("OpenStackImageImportTimeout")


@pytest.mark.parametrize(
    ("status", "event", "message"),
    [
        ("killed", "OpenStackImageStatusUnexpected", "is killed; delete it, so that it is created again"),
        ("deactivated", "OpenStackImageStatusUnexpected", "is deactivated; activate it"),
        ("melted", "OpenStackImageStatusUnknown", "has the status 'melted'"),
    ],
)
async def test_an_image_of_no_use_is_reported(world: World, status: str, event: str, message: str) -> None:
    world.cloud.images.script = [status]
    await world.write_secret()
    await world.write_image()
    async with world.running():
        found = await world.until(lambda found: message in condition(found, ACTIVE)[3])
        assert condition(found, ACTIVE)[:3] == ("False", "IssueWithOpenStackImage", "Error")
        assert not found.status.ready
        image = next(iter(world.cloud.images.values()))
        world.cloud.images.delete(image.id)
        world.cloud.images.script = ["active"]
        await world.until(is_active)
        await world.recorded(event)


async def test_an_image_that_vanishes_is_created_again(world: World) -> None:
    await world.write_secret()
    await world.write_image()
    async with world.running():
        await world.until(is_active)
        (first,) = world.cloud.images
        world.cloud.images.delete(first)
        found = await world.until(lambda found: found.metadata.annotations.get(IMAGE_ANNOTATION, first) != first)
        assert not found.status.ready
        await world.until(is_active)


async def test_two_images_of_one_name_are_refused_by_name(world: World) -> None:
    ids = sorted(world.cloud.images.create(dict(FIELDS), world.clock.now()).id for _ in range(2))
    await world.write_secret()
    await world.write_image()
    async with world.running():
        found = await world.until_reason(ACTIVE, "IssueWithOpenStackImage")
    message = f"2 images are named '{IMAGE_NAME}': {', '.join(ids)}; delete or rename all but one"
    assert condition(found, ACTIVE) == ("False", "IssueWithOpenStackImage", "Error", message)
    assert world.calls("POST", "/import") == 0


async def test_images_are_found_by_id_or_by_name_and_all_tags(world: World) -> None:
    world.cloud.images.create({**FIELDS, "tags": ["k8s"]}, world.clock.now())
    wanted = world.cloud.images.create({**FIELDS, "tags": ["k8s", "new"]}, world.clock.now())
    other = world.cloud.images.create({**FIELDS, "id": "0d5b6d9e-0000-4000-8000-000000000001"}, world.clock.now())
    await world.write_secret()
    await world.write_image("by-tags", tags=["k8s", "new"])
    await world.write_image("by-id", id=other.id)
    async with world.running():
        await world.until(is_active, "by-tags")
        await world.until(is_active, "by-id")
    assert (wanted.imports, other.imports, len(world.cloud.images)) == (1, 1, 3)


async def test_a_hidden_image_is_found_again(world: World) -> None:
    await world.write_secret()
    await world.write_image(os_hidden=True)
    async with world.running():
        await world.until(is_active)
    assert len(world.cloud.images) == 1


async def test_a_foreign_image_of_another_format_is_refused(world: World) -> None:
    left = world.cloud.images.create({**FIELDS, "disk_format": "raw"}, world.clock.now())
    left.status = "active"
    await world.write_secret()
    await world.write_image()
    async with world.running():
        found = await world.until_reason(ACTIVE, "IssueWithOpenStackImage")
    assert f"image {left.id} has disk_format 'raw' in place of 'qcow2'" in condition(found, ACTIVE)[3]


async def test_a_foreign_image_of_another_address_is_refused(world: World) -> None:
    left = world.cloud.images.create(dict(FIELDS), world.clock.now())
    left.status, left.task, left.uri = "active", "success", "https://elsewhere.example.com/image.qcow2"
    await world.write_secret()
    await world.write_image()
    async with world.running():
        found = await world.until_reason(ACTIVE, "IssueWithOpenStackImage")
        assert "was imported from another address than spec.image.url" in condition(found, ACTIVE)[3]
        left.uri = URL
        await world.until(is_active)


async def test_a_hash_that_the_release_gives_is_compared(world: World) -> None:
    await world.write_secret()
    await world.write_image(
        "good", tags=["good"], properties={HASH_PROPERTY: f"sha512:{hashlib.sha512(URL.encode()).hexdigest()}"}
    )
    await world.write_image("bad", tags=["bad"], properties={HASH_PROPERTY: "sha512:00"})
    async with world.running():
        await world.until(is_active, "good")
        found = await world.until(lambda found: "has other data than" in condition(found, ACTIVE)[3], "bad")
        assert not found.status.ready


async def test_an_outage_does_not_take_readiness_away(world: World) -> None:
    await world.write_secret()
    await world.write_image()
    async with world.running():
        await world.until(is_active)

        async def down(request: web.BaseRequest) -> web.StreamResponse:
            return web.Response(status=503, body=b'{"message": "maintenance"}')

        world.cloud.intercept = down
        found = await world.until(lambda found: condition(found, ACTIVE)[0] == "False")
        assert "HTTP status 503" in condition(found, ACTIVE)[3]
        assert "(maintenance); the service fails or is busy" in condition(found, ACTIVE)[3]
        assert found.status.ready
        world.cloud.intercept = None
        await world.until(lambda found: condition(found, ACTIVE)[0] == "True")


@pytest.mark.parametrize("answer", ["hang", "garbage", "lies", "closes"])
async def test_a_glance_that_is_slow_or_lies_is_reported_and_asked_again(world: World, answer: str) -> None:
    gate = asyncio.Event()

    async def intercept(request: web.BaseRequest) -> web.StreamResponse | None:
        if not request.path.startswith("/image/v2/images"):
            return None
        if answer == "hang":
            await gate.wait()
        if answer == "closes" and request.transport is not None:
            request.transport.close()
        text = b'{"images": [{"id": 7}]}' if answer == "lies" else b"<html>"
        return web.Response(body=text)

    world.cloud.intercept = intercept
    world.limits = type(world.limits)(local=True, whole=3.0 if answer == "hang" else 60.0)
    await world.write_secret()
    await world.write_image()
    async with world.running():
        found = await world.until_reason(ACTIVE, "IssueWithOpenStackImage")
        assert condition(found, ACTIVE)[2] == "Error"
        await world.recorded("OpenStackImageFailedToFind")
        world.cloud.intercept = None
        gate.set()
        await world.until(is_active)


async def test_a_token_that_ends_is_replaced(world: World) -> None:
    await world.write_secret()
    await world.write_image()
    async with world.running():
        await world.until(is_active)
        world.cloud.tokens.living.clear()
        calls = len(world.cloud.calls)
        await world.until(lambda _: world.cloud.calls[calls + 2 :] != [])
        assert [path for _, path in world.cloud.calls[calls : calls + 3]] == [
            "/image/v2/images",
            "/identity/v3/auth/tokens",
            "/image/v2/images",
        ]
        assert condition(await world.image(), ACTIVE)[0] == "True"


# Deletion.


async def _deleted(world: World, settings: OpenStackSettings) -> None:
    await world.write_secret()
    await world.write_image()
    async with world.running(settings):
        await world.until(is_active)
        await world.client.delete(OPENSTACK_NODE_IMAGES, IMAGE, "default")
        await wait_gone(world.client, OPENSTACK_NODE_IMAGES, IMAGE)


async def test_images_stay_in_the_cloud_unless_the_option_is_set(world: World) -> None:
    await _deleted(world, OpenStackSettings())
    assert len(world.cloud.images) == 1


async def test_with_the_option_an_image_goes_with_its_last_owner(world: World) -> None:
    await _deleted(world, OpenStackSettings(deletes_images=True))
    assert len(world.cloud.images) == 0
    await world.recorded("OpenStackImageDeleted")


async def test_a_foreign_image_is_never_deleted(world: World) -> None:
    left = world.cloud.images.create(dict(FIELDS), world.clock.now())
    left.status = "active"
    await _deleted(world, OpenStackSettings(deletes_images=True))
    assert list(world.cloud.images) == [left.id]


async def test_an_image_with_an_owner_left_is_not_deleted(world: World) -> None:
    owner = await world.write_oscsr()
    reference = {key: owner[key] for key in ("apiVersion", "kind")}
    reference |= {"name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
    await world.write_secret()
    await world.write_image()
    await world.client.patch(OPENSTACK_NODE_IMAGES, IMAGE, {"metadata": {"ownerReferences": [reference]}}, "default")
    async with world.running(OpenStackSettings(deletes_images=True)):
        await world.until(is_active)
        await world.client.delete(OPENSTACK_NODE_IMAGES, IMAGE, "default")
        await wait_gone(world.client, OPENSTACK_NODE_IMAGES, IMAGE)
    assert len(world.cloud.images) == 1


async def test_without_the_option_the_finalizer_goes(world: World) -> None:
    """So that a process without it, and the Go provider, can let an object go."""
    await world.write_secret()
    await world.write_image()
    async with world.running(OpenStackSettings(deletes_images=True)):
        found = await world.until(is_active)
        assert found.metadata.finalizers == (FINALIZER,)
    async with world.running():
        await world.until(lambda found: found.metadata.finalizers == ())


async def test_a_deletion_that_the_cloud_refuses_is_tried_again(world: World) -> None:
    await world.write_secret()
    await world.write_image()
    async with world.running(OpenStackSettings(deletes_images=True)):
        await world.until(is_active)
        (image,) = world.cloud.images.values()
        image.fields["protected"] = True
        await world.client.delete(OPENSTACK_NODE_IMAGES, IMAGE, "default")
        found = await world.until(lambda found: "is protected and cannot be deleted" in condition(found, ACTIVE)[3])
        assert found.metadata.finalizers == (FINALIZER,)
        image.fields["protected"] = False
        time = asyncio.create_task(world.passing())
        await wait_gone(world.client, OPENSTACK_NODE_IMAGES, IMAGE)
        time.cancel()
    assert len(world.cloud.images) == 0


# Secrets.


async def test_a_secret_that_comes_later_wakes_the_controller(world: World) -> None:
    await world.write_image()
    async with world.running():
        found = await world.until_reason("CloudAvailable", "SecretNotFound")
        message = (
            "Secret default/openstack does not exist; create it with the key clouds.yaml, or correct "
            "spec.identityRef.name"
        )
        assert condition(found, "CloudAvailable") == ("False", "SecretNotFound", "Error", message)
        await world.write_secret()
        await world.until_reason(ACTIVE, "OpenStackImageNotImportedYet")


async def test_a_secret_that_is_corrected_wakes_the_controller(world: World) -> None:
    await world.write_secret(world.clouds(auth={"password": "another-password"}))
    await world.write_image()
    async with world.running():
        kind = "OpenStackImageServiceClientAvailable"
        found = await world.until_reason(kind, "OpenStackImageServiceClientNotSet")
        assert "HTTP status 401, asking for a token" in condition(found, kind)[3]
        assert "another-password" not in str(found)
        await world.write_secret()
        await world.until_reason(ACTIVE, "OpenStackImageNotImportedYet")
        await world.recorded("OpenStackProviderClientNotSet")


async def test_a_secret_that_is_deleted_leaves_readiness(world: World) -> None:
    await world.write_secret()
    await world.write_image()
    async with world.running():
        await world.until(is_active)
        await world.client.delete(SECRETS, "openstack", "default")
        found = await world.until_reason("CloudAvailable", "SecretNotFound")
        assert found.status.ready
