"""Releases from a simulated GitHub, from a registry, and from folders."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from tests.domains.stacks.releasing import release_files, write_release

from hortus.domains.stacks.names import parse_tag
from hortus.domains.stacks.releases import (
    BadRelease,
    GitHubSource,
    LocalLibrary,
    OciSource,
    ReleaseCache,
    ReleaseFolder,
    ReleaseMissing,
    RemoteLibrary,
    SourceFailed,
    SourceUnusable,
)
from hortus.kube import Secret
from hortus.kube.clock import SystemClock
from hortus.render.artifacts import digest_of
from hortus.render.oci import OCI_MANIFEST, Descriptor, manifest_bytes
from hortus.simulation.registry import RegistryFolder, RegistryServer
from hortus.simulation.releases import GitHubServer
from hortus.testing import FakeClock

V1, V2 = parse_tag("docker-ferrol-1-27-v1"), parse_tag("docker-ferrol-1-27-v2")
TOKEN = "canary-token-of-github"


class Fixed:
    """A library with its server and clock."""

    def __init__(self, library: RemoteLibrary, github: GitHubServer, clock: FakeClock) -> None:
        self.library = library
        self.github = github
        self.clock = clock


@asynccontextmanager
async def github_library(folder: Path, cache: Path, **options: object) -> AsyncIterator[Fixed]:
    clock, waiting = FakeClock(), SystemClock()
    async with GitHubServer(folder, owner="example", repository="stacks", **options) as server:  # type: ignore[arg-type]
        kept = ReleaseCache(cache)
        source = GitHubSource(
            "example", "stacks", url=server.url, token=Secret(TOKEN), cache=kept.artifacts, clock=waiting
        )
        library = RemoteLibrary(source, kept, clock=clock)
        try:
            yield Fixed(library, server, clock)
        finally:
            await library.close()


async def test_every_page_is_listed_by_tag_without_drafts_and_releases_without_files(tmp_path: Path) -> None:
    folder = tmp_path / "published"
    for number in range(1, 36):
        write_release(folder, f"docker-ferrol-1-27-v{number}")
    (folder / "docker-ferrol-1-27-v99").mkdir()
    (folder / "not-a-release").mkdir()
    (folder / "not-a-release" / "file").write_bytes(b"")
    async with github_library(folder, tmp_path / "cache", page=10) as made:
        made.github.drafts = {"docker-ferrol-1-27-v35"}
        listing = await made.library.listing()
    assert {name.version.major for name in listing.names} == set(range(1, 35))
    assert len(listing.unknown) == 1
    assert "'not-a-release'" in listing.unknown[0]


async def test_a_list_that_has_not_changed_costs_nothing_of_the_allowance(published: Path, tmp_path: Path) -> None:
    async with github_library(published, tmp_path / "cache", allowance=5) as made:
        for _ in range(20):
            assert len((await made.library.listing()).names) == 2
            made.clock.skip(31)
        assert made.github.spent == 1


async def test_one_list_serves_all_who_ask_within_its_age(published: Path, tmp_path: Path) -> None:
    asked: list[str] = []

    async def count(request: web.BaseRequest) -> None:
        asked.append(request.path)

    async with github_library(published, tmp_path / "cache") as made:
        made.github.intercept = count
        for _ in range(200):
            await made.library.listing()
    assert len(asked) == 1


async def test_a_used_up_allowance_is_reported_with_its_wait_and_nothing_more_is_asked(
    published: Path, tmp_path: Path
) -> None:
    async with github_library(published, tmp_path / "cache", allowance=1) as made:
        await made.library.listing()
        write_release(published, "docker-ferrol-1-27-v3")
        made.clock.skip(31)
        with pytest.raises(SourceFailed, match="allowance is used up") as found:
            await made.library.listing()
        assert found.value.retry_after == 600
        spent = made.github.spent
        made.clock.skip(31)
        with pytest.raises(SourceFailed):
            await made.library.listing()
        assert made.github.spent == spent


async def test_a_wrong_token_makes_the_source_unusable_and_is_not_shown(published: Path, tmp_path: Path) -> None:
    async with github_library(published, tmp_path / "cache", token="another") as made:
        with pytest.raises(SourceUnusable, match="does not accept the token") as found:
            await made.library.listing()
        assert TOKEN not in str(found.value)


@pytest.mark.parametrize("with_digests", [True, False])
async def test_a_release_is_downloaded_once_and_read_from_disk(
    published: Path, tmp_path: Path, with_digests: bool
) -> None:
    async with github_library(published, tmp_path / "cache", token=TOKEN) as made:
        made.github.with_digests = with_digests
        with pytest.raises(ReleaseMissing, match="not downloaded yet"):
            await made.library.get(V1)
        release = await made.library.fetch(V1)
        assert release.versions.kubernetes == "v1.27.3"
        spent = made.github.spent
        assert (await made.library.fetch(V1)).revision == release.revision
        assert made.github.spent == spent
    async with github_library(published, tmp_path / "cache") as made:
        again = await made.library.get(V1)
        assert await again.class_chart() == release_files(V1)["docker-ferrol-1-27-cluster-class-v1.tgz"]


async def test_a_tag_without_files_is_missing(published: Path, tmp_path: Path) -> None:
    (published / "docker-ferrol-1-27-v3").mkdir()
    async with github_library(published, tmp_path / "cache") as made:
        with pytest.raises(ReleaseMissing, match="docker-ferrol-1-27-v3: has no files"):
            await made.library.fetch(parse_tag("docker-ferrol-1-27-v3"))
        with pytest.raises(ReleaseMissing, match="docker-ferrol-1-27-v4"):
            await made.library.fetch(parse_tag("docker-ferrol-1-27-v4"))


async def test_a_download_that_breaks_off_leaves_no_release(published: Path, tmp_path: Path) -> None:
    async def cut(request: web.BaseRequest) -> web.StreamResponse | None:
        if not request.path.startswith("/storage/") or not request.path.endswith("class-v1.tgz"):
            return None
        answer = web.StreamResponse(headers={"Content-Length": "100000"})
        await answer.prepare(request)
        await answer.write(b"half")
        assert request.transport is not None
        request.transport.close()
        return answer

    async with github_library(published, tmp_path / "cache") as made:
        made.github.intercept = cut
        with pytest.raises(SourceFailed, match="docker-ferrol-1-27-v1"):
            await made.library.fetch(V1)
        with pytest.raises(ReleaseMissing):
            await made.library.get(V1)
        made.github.intercept = None
        assert (await made.library.fetch(V1)).name == V1


async def test_content_without_the_stated_digest_is_refused(published: Path, tmp_path: Path) -> None:
    async def meddle(request: web.BaseRequest) -> web.StreamResponse | None:
        if not request.path.endswith("class-v1.tgz"):
            return None
        size = (published / request.path.removeprefix("/storage/")).stat().st_size
        return web.Response(body=b"x" * size)

    async with github_library(published, tmp_path / "cache") as made:
        made.github.intercept = meddle
        with pytest.raises(SourceFailed, match="sha256"):
            await made.library.fetch(V1)


async def test_a_bad_release_is_downloaded_again_only_when_its_files_differ(published: Path, tmp_path: Path) -> None:
    write_release(published, "docker-ferrol-1-27-v3", changed={"metadata.yaml": b"versions: [1]"})
    name = parse_tag("docker-ferrol-1-27-v3")
    async with github_library(published, tmp_path / "cache") as made:
        for _ in range(2):
            with pytest.raises(BadRelease, match=r"docker-ferrol-1-27-v3: metadata\.yaml"):
                await made.library.fetch(name)
            spent = made.github.spent
        for _ in range(5):
            with pytest.raises(BadRelease):
                await made.library.fetch(name)
        assert made.github.spent == spent
        write_release(published, "docker-ferrol-1-27-v3")
        assert (await made.library.fetch(name)).name == name


async def test_a_damaged_file_has_the_release_downloaded_again(published: Path, tmp_path: Path) -> None:
    async with github_library(published, tmp_path / "cache") as made:
        release = await made.library.fetch(V1)
        for blob in (tmp_path / "cache/artifacts/blobs").rglob("*"):
            if blob.is_file():
                blob.write_bytes(b"rot")
        with pytest.raises(ReleaseMissing, match="gone or damaged"):
            await release.class_chart()
        with pytest.raises(ReleaseMissing, match="not downloaded yet"):
            await made.library.get(V1)
        again = await made.library.fetch(V1)
        assert await again.class_chart() == release_files(V1)["docker-ferrol-1-27-cluster-class-v1.tgz"]


async def test_a_damaged_chart_alone_has_the_release_downloaded_again(published: Path, tmp_path: Path) -> None:
    chart = release_files(V1)["docker-ferrol-1-27-cluster-class-v1.tgz"]
    async with github_library(published, tmp_path / "cache") as made:
        release = await made.library.fetch(V1)
        digest = digest_of(chart).removeprefix("sha256:")
        next((tmp_path / "cache/artifacts/blobs").rglob(digest)).write_bytes(b"rot")
        with pytest.raises(ReleaseMissing, match="gone or damaged"):
            await release.class_chart()
        with pytest.raises(ReleaseMissing, match="not downloaded yet"):
            await made.library.get(V1)
        assert await (await made.library.fetch(V1)).class_chart() == chart


@asynccontextmanager
async def oci_library(tmp_path: Path) -> AsyncIterator[tuple[RemoteLibrary, RegistryServer]]:
    folder = RegistryFolder(tmp_path / "registry")
    async with RegistryServer(folder) as registry:
        cache = ReleaseCache(tmp_path / "cache")
        clock = FakeClock()
        source = OciSource(
            f"{registry.address}/stacks/ferrol", credentials=None, plain_http=True, cache=cache.artifacts, clock=clock
        )
        library = RemoteLibrary(source, cache, clock=clock)
        try:
            yield library, registry
        finally:
            await library.close()


def push(registry: RegistryServer, tag: str, files: dict[str, bytes], created: str = "") -> None:
    layers = tuple(
        Descriptor("application/octet-stream", digest_of(data), len(data), annotations={_TITLE: name})
        for name, data in files.items()
    )
    config = Descriptor("application/vnd.oci.empty.v1+json", digest_of(b"{}"), 2)
    annotations = {"org.opencontainers.image.created": created} if created else {}
    raw = manifest_bytes(config, layers, artifact_type="application/vnd.scs.cluster-stacks.v1", annotations=annotations)
    registry.folder.add("stacks/ferrol", tag, raw, [b"{}", *files.values()], media_type=OCI_MANIFEST)


_TITLE = "org.opencontainers.image.title"


async def test_layers_of_a_tag_are_the_files_of_a_release(tmp_path: Path) -> None:
    async with oci_library(tmp_path) as (library, registry):
        push(registry, V1.tag, {**release_files(V1), "docker-ferrol-node-image-x.tgz": b"unused"})
        assert (await library.listing()).names == {V1}
        release = await library.fetch(V1)
        assert set(release.files) == set(release_files(V1))
        assert await release.values_template() == b"values: |\n  a: b\n"


async def test_hashes_are_ordered_by_the_time_of_their_publication(tmp_path: Path) -> None:
    one, other = parse_tag("docker-ferrol-1-27-v0-sha-aaaaaaa"), parse_tag("docker-ferrol-1-27-v0-sha-bbbbbbb")
    async with oci_library(tmp_path) as (library, registry):
        push(registry, one.tag, release_files(one), "2026-01-02T00:00:00Z")
        push(registry, other.tag, release_files(other), "2026-01-01T00:00:00Z")
        times = await library.published([one, other])
    assert times[one] > times[other] > 0


@pytest.mark.parametrize("title", ["../metadata.yaml", "a/b", "", ".."])
async def test_a_layer_whose_title_is_a_path_is_refused(tmp_path: Path, title: str) -> None:
    async with oci_library(tmp_path) as (library, registry):
        push(registry, V1.tag, {**release_files(V1), title: b"evil"})
        with pytest.raises(BadRelease, match="no name of a file"):
            await library.fetch(V1)


async def test_folders_are_listed_and_read(published: Path, tmp_path: Path) -> None:
    published.rename(tmp_path / "cluster-stacks")
    library = LocalLibrary(ReleaseFolder(tmp_path), clock=FakeClock())
    assert (await library.listing()).names == {V1, V2}
    release = await library.fetch(V1)
    assert release.versions.addon.dot == "v1"
    shutil.rmtree(tmp_path / "cluster-stacks" / V1.tag)
    with pytest.raises(ReleaseMissing, match=r"class-v1\.tgz is gone"):
        await release.class_chart()
    with pytest.raises(ReleaseMissing, match="does not exist; create it"):
        await library.get(V1)
