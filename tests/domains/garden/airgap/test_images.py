"""Images from objects and vectors, and their state in a mirror that is a real registry behind a socket."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from hortus.domains.garden.airgap.config import MirrorRegistry
from hortus.domains.garden.airgap.images import (
    MirrorFinding,
    NeededImage,
    check_mirror,
    images_in,
    lacking_images,
    mirrored,
    reference_of,
    registries_of,
)
from hortus.domains.garden.airgap.trying import mirror_client
from hortus.render.oci import BadReference
from hortus.simulation.registry import RegistryFolder, RegistryServer

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"


def digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def image(architecture: str) -> tuple[bytes, bytes]:
    """A manifest and its config."""
    config = orjson.dumps({"architecture": architecture, "os": "linux"})
    described = {"mediaType": CONFIG, "digest": digest(config), "size": len(config)}
    return orjson.dumps({"schemaVersion": 2, "mediaType": MANIFEST, "config": described, "layers": []}), config


def add_image(folder: RegistryFolder, repository: str, tag: str, *held: str, named: tuple[str, ...] = ()) -> str:
    """An index with the manifests of `held` and without those of `named`; the digest of the index."""
    entries = []
    for architecture in (*held, *named):
        manifest, config = image(architecture)
        if architecture in held:
            folder.add(repository, "", manifest, [config], media_type=MANIFEST)
        platform = {"architecture": architecture, "os": "linux"}
        entries.append({"mediaType": MANIFEST, "digest": digest(manifest), "size": len(manifest), "platform": platform})
    index = orjson.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries})
    return folder.add(repository, tag, index, [], media_type=INDEX).digest


@pytest.fixture
async def registry(tmp_path: Path) -> AsyncIterator[RegistryServer]:
    async with RegistryServer(RegistryFolder(tmp_path / "registry")) as server:
        yield server


async def states(server: RegistryServer, *images: str, path: str = "", **more: Any) -> dict[tuple[str, str], str]:
    return {(one.image, one.architecture): one.state for one in await findings(server, *images, path=path, **more)}


async def findings(
    server: RegistryServer,
    *images: str | NeededImage,
    path: str = "",
    architectures: tuple[str, ...] = ("amd64", "arm64"),
) -> list[MirrorFinding]:
    mirror = MirrorRegistry(mirror=f"http://{server.address}{path}")
    needed = [one if isinstance(one, NeededImage) else NeededImage(image=one, source="test") for one in images]
    async with mirror_client(mirror) as client:
        return await check_mirror(client, mirror, needed, architectures)


async def test_an_image_is_checked_for_each_architecture(registry: RegistryServer) -> None:
    add_image(registry.folder, "pause", "3.10", "amd64", "arm64")
    add_image(registry.folder, "team/app", "1", "amd64")
    assert await states(registry, "registry.k8s.io/pause:3.10", "quay.io/team/app:1", "quay.io/team/none:1") == {
        ("registry.k8s.io/pause:3.10", "amd64"): "found",
        ("registry.k8s.io/pause:3.10", "arm64"): "found",
        ("quay.io/team/app:1", "amd64"): "found",
        ("quay.io/team/app:1", "arm64"): "missing",
        ("quay.io/team/none:1", "amd64"): "missing",
        ("quay.io/team/none:1", "arm64"): "missing",
    }


async def test_an_index_that_was_copied_without_its_manifests_is_not_enough(registry: RegistryServer) -> None:
    add_image(registry.folder, "pause", "3.10", "amd64", named=("arm64",))
    found = await states(registry, "registry.k8s.io/pause:3.10")
    assert list(found.values()) == ["found", "missing"]


async def test_a_digest_must_be_there_and_a_tag_is_reported_as_loose(registry: RegistryServer) -> None:
    there = add_image(registry.folder, "pause", "3.10", "amd64", "arm64")
    pinned, other = f"registry.k8s.io/pause:3.10@{there}", f"registry.k8s.io/pause:3.10@{digest(b'other')}"
    found = await findings(registry, pinned, other, "registry.k8s.io/pause:3.10", architectures=("amd64",))
    assert [(one.state, one.pinned) for one in found] == [("found", True), ("missing", True), ("found", False)]
    assert [one.image for one in lacking_images(found)] == [other]
    assert found[0].digest == digest(image("amd64")[0])


async def test_an_image_of_one_manifest_has_the_architecture_of_its_config(registry: RegistryServer) -> None:
    manifest, config = image("arm64")
    registry.folder.add("tool", "1", manifest, [config], media_type=MANIFEST)
    assert list((await states(registry, "quay.io/tool:1")).values()) == ["missing", "found"]


async def test_an_image_is_wanted_only_for_architectures_that_it_is_made_for(registry: RegistryServer) -> None:
    add_image(registry.folder, "tool", "1", "amd64")
    needed = NeededImage(image="quay.io/tool:1", source="vector", architectures=("amd64",))
    assert [(one.architecture, one.state) for one in await findings(registry, needed)] == [("amd64", "found")]


async def test_a_mirror_has_images_of_docker_hub_in_its_folder(registry: RegistryServer) -> None:
    add_image(registry.folder, "all/library/nginx", "latest", "amd64", "arm64")
    assert list((await states(registry, "nginx", path="/all")).values()) == ["found", "found"]


async def test_an_answer_that_is_altered_is_a_problem_in_words(registry: RegistryServer, tmp_path: Path) -> None:
    there = add_image(registry.folder, "pause", "3.10", "amd64")
    blob = tmp_path / "registry/blobs/sha256" / there.removeprefix("sha256:")
    blob.write_bytes(blob.read_bytes() + b" ")
    [found] = await findings(registry, f"registry.k8s.io/pause@{there}", architectures=("amd64",))
    assert found.state not in ("found", "missing")
    assert there[:19] in found.state


async def test_a_mirror_that_does_not_answer_is_a_problem_in_words(registry: RegistryServer) -> None:
    mirror = MirrorRegistry(mirror="http://127.0.0.1:1")
    async with mirror_client(mirror) as client:
        [found] = await check_mirror(client, mirror, [NeededImage(image="quay.io/a:1", source="x")], ["amd64"])
    assert found.state not in ("found", "missing")
    assert "127.0.0.1:1" in found.state


def test_images_come_from_containers_of_all_kinds_and_from_vectors() -> None:
    pod = {
        "containers": [{"name": "a", "image": "quay.io/a:1"}, {"name": "b"}],
        "initContainers": [{"image": "quay.io/init:1"}],
        "ephemeralContainers": [{"image": "quay.io/debug:1"}],
    }
    deployment = {"kind": "Deployment", "metadata": {"name": "web"}, "spec": {"template": {"spec": pod}}}
    cron = {
        "kind": "CronJob",
        "metadata": {"name": "job"},
        "spec": {"jobTemplate": {"spec": {"template": {"spec": pod}}}},
    }
    vector = {
        "images": [
            {"name": "pause", "repository": "registry.k8s.io/pause", "tag": "3.10", "architectures": ["amd64"]},
            {"name": "pause", "repository": "registry.k8s.io/pause", "tag": "3.10", "architectures": ["arm64"]},
            {"name": "pinned", "repository": "quay.io/p", "tag": digest(b"x")},
            {"name": "by-ref", "ref": "quay.io/r:2"},
            {"name": "nothing"},
        ]
    }
    found = images_in([{"kind": "List", "items": [deployment, cron]}, vector, "text", {"kind": "Empty"}, []])
    assert [(one.image, one.architectures, one.source) for one in found] == [
        ("quay.io/a:1", (), "Deployment web"),
        ("quay.io/init:1", (), "Deployment web"),
        ("quay.io/debug:1", (), "Deployment web"),
        ("registry.k8s.io/pause:3.10", ("amd64", "arm64"), "image vector pause"),
        (f"quay.io/p@{digest(b'x')}", (), "image vector pinned"),
        ("quay.io/r:2", (), "image vector by-ref"),
    ]


@pytest.mark.parametrize("document", [{"images": ["x"]}, {"images": [{"name": 7}]}])
def test_a_vector_of_another_form_is_refused(document: Any) -> None:
    with pytest.raises(ValueError, match="image vector cannot be read"):
        images_in([document])


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("nginx", "docker.io/library/nginx:latest"),
        ("team/app:1", "docker.io/team/app:1"),
        ("localhost/app:1", "localhost/app:1"),
        ("registry:5000/app", "registry:5000/app:latest"),
        (f"quay.io/a@{digest(b'x')}", f"quay.io/a@{digest(b'x')}"),
    ],
)
def test_an_image_is_read_as_containerd_reads_it(image: str, expected: str) -> None:
    assert str(reference_of(image)) == expected


def test_a_wrong_image_is_refused() -> None:
    with pytest.raises(BadReference):
        reference_of("quay.io/UPPER:1")


def test_registries_are_listed_once() -> None:
    needed = [NeededImage(image=one, source="x") for one in ("a", "quay.io/b:1", "c/d", "quay.io/e:2")]
    assert registries_of(needed) == ["docker.io", "quay.io"]


def test_an_image_keeps_tag_and_digest_in_the_mirror() -> None:
    found = mirrored(f"quay.io/a/b:1@{digest(b'x')}", MirrorRegistry(mirror="https://m.example.org:5000/x/y"))
    assert str(found) == f"m.example.org:5000/x/y/a/b:1@{digest(b'x')}"
