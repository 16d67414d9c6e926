"""The OpenStackClusterStackRelease controller: node images of a release, shared between releases."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.domains.stacks.openstack.world import (
    EVENTS,
    IMAGE,
    IMAGE_NAME,
    METADATA,
    NODE_IMAGES,
    RELEASE,
    URL,
    World,
    condition,
    is_active,
)
from tests.waiting import until

from hortus.domains.stacks.names import parse_tag
from hortus.domains.stacks.openstack.service import BadNodeImages, object_name, read_node_images
from hortus.domains.stacks.types import OPENSTACK_NODE_IMAGES, OPENSTACK_RELEASES
from hortus.kube.objects import Object, Resource

ASSETS, IMAGES = "ClusterStackReleaseAssetsReady", "OpenStackNodeImageReleasesReady"
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
SECOND = "openstack-ferrol-1-27-v5"


def _reference(owner: Object) -> Object:
    kind = {"apiVersion": "infrastructure.clusterstack.x-k8s.io/v1alpha1", "kind": "OpenStackClusterStackRelease"}
    return {**kind, "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}


async def test_a_release_has_an_object_for_each_node_image(upstream: Path, world: World) -> None:
    """A12: upstream's own release; name, url and options are those of its files."""
    source = upstream / "cso/releases" / RELEASE
    world.write_release({file: (source / file).read_text() for file in ("metadata.yaml", "node-images.yaml")})
    owner = await world.write_oscsr()
    async with world.running():
        found = await world.release(lambda found: condition(found, IMAGES)[0] == "False")
        made = await world.client.get(OPENSTACK_NODE_IMAGES, IMAGE, "default")
        await world.recorded("ClusterStackReleaseAssetsReady", "OpenStackNodeImageReleaseCreated")
    url = read_node_images((source / "node-images.yaml").read_bytes())[0].url
    options = {"name": IMAGE_NAME, "disk_format": "qcow2", "container_format": "bare", "visibility": "shared"}
    assert made["spec"] == {
        "identityRef": {"kind": "Secret", "name": "openstack"},
        "image": {"url": url, "createOpts": options},
    }
    assert made["metadata"]["ownerReferences"] == [_reference(owner)]
    message = f"0 of 1 node images are ready; waiting for {IMAGE}"
    assert condition(found, IMAGES) == ("False", "ProcessOngoing", "Info", message)
    assert condition(found, ASSETS)[0] == "True"


async def test_a_release_is_ready_as_soon_as_its_images_are(world: World) -> None:
    """The change of an image wakes its release: no time passes between the two."""
    world.write_release()
    await world.write_secret()
    await world.write_oscsr()
    async with world.running():
        await world.release(lambda found: condition(found, IMAGES)[0] == "False")
        await world.until(is_active)
        found = await world.release(lambda found: found.status.ready)
        assert [one.type for one in found.status.conditions] == ["Ready", "AssetsClientAPIAvailable", ASSETS, IMAGES]
        assert {one.status for one in found.status.conditions} == {"True"}
        await world.recorded("OpenStackNodeImageReleasesReady")
        await world.client.delete(OPENSTACK_NODE_IMAGES, IMAGE, "default")
        await world.release(lambda found: not found.status.ready)
        await world.release(lambda found: found.status.ready)


async def test_releases_with_the_same_image_share_its_object(world: World) -> None:
    world.write_release()
    world.write_release({"metadata.yaml": METADATA.replace("clusterStack: v4", "clusterStack: v5")}, SECOND)
    await world.write_secret()
    first, second = await world.write_oscsr(), await world.write_oscsr(SECOND)
    other = await world.client.create(CONFIG_MAPS, {"metadata": {"name": "other", "namespace": "default"}})
    foreign = {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": other["metadata"]["uid"]}
    async with world.running():
        found = await world.until(lambda found: len(found.metadata.owner_references) == 2)
        await world.client.patch(
            OPENSTACK_NODE_IMAGES,
            IMAGE,
            {"metadata": {"ownerReferences": [foreign], "labels": {"a": "b"}}},
            "default",
        )
        found = await world.until(lambda found: len(found.metadata.owner_references) == 3)
        assert found.metadata.labels == {"a": "b"}
        raw = await world.client.get(OPENSTACK_NODE_IMAGES, IMAGE, "default")
        references = raw["metadata"]["ownerReferences"]
        assert references[0] == foreign
        assert sorted(references[1:], key=str) == sorted(map(_reference, (first, second)), key=str)
        await world.client.delete(OPENSTACK_RELEASES, RELEASE, "default")
        await world.until(lambda found: RELEASE not in {one.name for one in found.metadata.owner_references})


async def test_a_release_at_rest_writes_nothing(world: World) -> None:
    world.write_release()
    await world.write_secret()
    await world.write_oscsr()
    async with world.running():
        await world.until(is_active)
        await world.release(lambda found: found.status.ready)
        await world.at_rest()
        world.requests.answers.clear()
        calls = len(world.cloud.calls)
        await world.until(lambda _: len(world.cloud.calls) > calls)
        assert world.requests.writes == []


async def test_an_object_that_differs_is_kept_and_reported(world: World) -> None:
    world.write_release()
    await world.write_image(url="https://elsewhere.example.com/image.qcow2")
    await world.write_oscsr()
    async with world.running():
        found = await world.until(lambda found: len(found.metadata.owner_references) == 1)
        assert found.spec.image.url == "https://elsewhere.example.com/image.qcow2"
        await world.release(lambda found: condition(found, IMAGES)[0] == "False")
        await world.recorded("FailedUpdateOpenStackNodeImageRelease")


async def test_a_difference_that_stays_is_announced_once(world: World) -> None:
    world.write_release()
    await world.write_image(url="https://elsewhere.example.com/image.qcow2")
    await world.write_oscsr()
    async with world.running() as manager:
        await world.release_later(lambda found: condition(found, IMAGES)[0] == "False")
        await world.recorded("FailedUpdateOpenStackNodeImageRelease")
        await world.at_rest()
        labels = {"controller": "openstackclusterstackrelease", "result": "success"}
        done = manager.registry.get_sample_value("controller_runtime_reconcile_total", labels)
        assert done
        await world.clock.advance(400.0)
        await until(
            lambda: (manager.registry.get_sample_value("controller_runtime_reconcile_total", labels) or 0) > done
        )
        await world.at_rest()
        events = (await world.client.list(EVENTS, "default")).items
    (event,) = [one for one in events if one["reason"] == "FailedUpdateOpenStackNodeImageRelease"]
    assert event.get("count", 1) == 1


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"metadata.yaml": "versions: {}"}, "versions.kubernetes"),
        ({"metadata.yaml": None}, "has no file metadata.yaml"),
        ({"node-images.yaml": None}, "has no file node-images.yaml; publish it with one"),
        ({"node-images.yaml": "openStackNodeImages: [ubuntu]"}, "openStackNodeImages[0]: must be a mapping"),
        ({"node-images.yaml": NODE_IMAGES.replace("https", "ftp")}, "openStackNodeImages[0].url: is 'ftp://"),
    ],
)
async def test_a_release_that_cannot_be_used_is_named(world: World, files: dict[str, str | None], message: str) -> None:
    world.write_release(files)
    await world.write_oscsr()
    async with world.running():
        found = await world.release(lambda found: condition(found, ASSETS)[1] == "IssueWithReleaseAssets")
        assert message in condition(found, ASSETS)[3]
        assert condition(found, ASSETS)[2] == "Error"
        assert not found.status.ready
        await world.recorded("IssueWithReleaseAssets")
        world.write_release()
        await world.release_later(lambda found: condition(found, IMAGES)[1] == "ProcessOngoing")


async def test_a_release_that_is_not_there_is_waited_for(world: World) -> None:
    await world.write_oscsr()
    async with world.running():
        found = await world.release(lambda found: condition(found, ASSETS)[1] == "ReleaseAssetsNotDownloadedYet")
        assert not found.status.ready
        world.write_release()
        await world.release_later(lambda found: condition(found, IMAGES)[1] == "ProcessOngoing")


def test_documents_with_odd_images_are_refused() -> None:
    image = f"{{url: {URL}, createOpts: {{name: {IMAGE_NAME}}}}}"
    for text, problem in (
        ("openStackNodeImages: [", "node-images.yaml: line"),
        (f"openStackNodeImages: [{image}, {image}]", "stands there twice"),
        (f"openStackNodeImages: [{{url: {URL}, createOpts: {{name: ''}}}}]", "createOpts.name: is missing"),
        (f"openStackNodeImages: [{{url: {URL}, createOpts: {{}}}}]", "name is missing"),
    ):
        with pytest.raises(BadNodeImages, match=problem.replace("[", r"\[")):
            read_node_images(text.encode())
    assert read_node_images(b"") == []


def test_a_release_without_a_version_of_node_images_has_names_without_one() -> None:
    """D10: csctl may leave the version out."""
    (image,) = read_node_images(NODE_IMAGES.encode())
    assert object_name(parse_tag(RELEASE), image, None) == f"openstack-ferrol-1-27-{IMAGE_NAME}"
