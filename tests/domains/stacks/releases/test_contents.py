"""Files of a release: versions, charts, and what makes a release bad."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.domains.stacks.releasing import METADATA

from hortus.domains.stacks.names import ReleaseName, StackVersion, parse_tag
from hortus.domains.stacks.releases import BadRelease, LocalLibrary, ReleaseFolder, StackRelease
from hortus.testing import FakeClock

TAG = "docker-ferrol-1-27-v1"
Write = Callable[..., Path]


async def opened(folder: Path, tag: str = TAG) -> StackRelease:
    target = folder.parent / "cluster-stacks"
    folder.rename(target)
    return await LocalLibrary(ReleaseFolder(folder.parent), clock=FakeClock()).get(parse_tag(tag))


@pytest.mark.parametrize("tag", ["docker-ferrol-1-27-v1", "docker-ferrol-1-27-v2"])
async def test_releases_of_the_go_operators_tests_are_read(upstream: Path, tag: str, tmp_path: Path) -> None:
    (tmp_path / "cluster-stacks").symlink_to(upstream / "cso/releases")
    release = await LocalLibrary(ReleaseFolder(tmp_path), clock=FakeClock()).get(parse_tag(tag))
    version = StackVersion(int(tag[-1]))
    assert (release.versions.stack, release.versions.addon) == (version, version)
    assert release.versions.node_image == StackVersion(1)
    assert release.versions.kubernetes == "v1.27.3"
    assert release.class_chart_file == f"docker-ferrol-1-27-cluster-class-{tag[-2:]}.tgz"
    assert release.addon_chart_file == f"docker-ferrol-1-27-cluster-addon-{tag[-2:]}.tgz"
    assert not release.is_multi_stage
    assert "topology-docker.yaml" not in release.files


async def test_metadata_without_node_images_is_no_error(write: Write) -> None:
    folder = write(TAG).parent
    assert (await opened(folder)).versions.node_image is None


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        (b"", "metadata.yaml"),
        (b"versions: text", "metadata.yaml"),
        (b"a: [", "metadata.yaml"),
        (
            METADATA.format(version="v1-alpha-1", kubernetes="v1.27.3").encode(),
            "versions.clusterStack: version 'v1-alph",
        ),
        (METADATA.format(version="v1", kubernetes="").encode(), "versions.kubernetes"),
        (b"versions: {clusterStack: v1, kubernetes: v1.27.3}", "versions.components.clusterAddon"),
    ],
)
async def test_bad_metadata_is_named_with_its_field(write: Write, document: bytes, problem: str) -> None:
    folder = write(TAG, changed={"metadata.yaml": document}).parent
    with pytest.raises(BadRelease, match=f"release {TAG}: .*{problem}"):
        await opened(folder)


async def test_a_release_without_metadata_is_bad(write: Write) -> None:
    folder = write(TAG, changed={"metadata.yaml": None}).parent
    with pytest.raises(BadRelease, match=r"has no file metadata\.yaml"):
        await opened(folder)


@pytest.mark.parametrize("part", ["class", "addon"])
async def test_a_missing_chart_is_named(write: Write, part: str) -> None:
    chart = f"docker-ferrol-1-27-cluster-{part}-v1.tgz"
    release = await opened(write(TAG, changed={chart: None}).parent)
    with pytest.raises(BadRelease, match=f"has no file {chart}"):
        release.check_charts()


async def test_a_chart_with_a_version_of_its_own_is_found_by_its_beginning(write: Write) -> None:
    changed = {"docker-ferrol-1-27-cluster-class-v1.tgz": None, "docker-ferrol-1-27-cluster-class-v9.tgz": b"x"}
    release = await opened(write(TAG, changed=changed).parent)
    assert release.class_chart_file == "docker-ferrol-1-27-cluster-class-v9.tgz"


HASHED = "docker-ferrol-1-27-v0-sha-zceco7o"


@pytest.mark.parametrize(
    ("hashes", "problem"),
    [
        (b'{"clusterStack": "zceco7ologi0wcj1dc5wbiumgj8emk7hwayrntyk4q", "clusterAddonDir": "a"}', ""),
        (b'{"clusterStack": "azlfam7rgn823z07ougej26xmpzsohlj0tvr4s0njis"}', "does not begin with 'zceco7o'"),
        (b'{"clusterAddonDir": "a"}', "clusterStack"),
        (b"{", "hashes.json"),
    ],
)
async def test_a_version_made_of_a_hash_has_the_hashes_of_its_sources(
    write: Write, hashes: bytes, problem: str
) -> None:
    folder = write(HASHED, changed={"hashes.json": hashes}).parent
    if problem:
        with pytest.raises(BadRelease, match=problem):
            await opened(folder, HASHED)
    else:
        assert (await opened(folder, HASHED)).name == ReleaseName(
            "docker", "ferrol", (1, 27), StackVersion(0, "sha", "zceco7o")
        )
