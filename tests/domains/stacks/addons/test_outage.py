"""Sources of releases that stop in the middle of an upgrade of addons, and come back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from tests.domains.stacks.addons.releases import FOLDER, ReleaseShelf, config_map
from tests.domains.stacks.addons.test_stages import AFTER, BEFORE, ONE, TWO, applied, chart
from tests.domains.stacks.addons.world import CONFIG_MAPS, AddonWorld, condition
from tests.domains.stacks.releases.test_sources import push

from hortus.domains.stacks.addons import controller
from hortus.domains.stacks.releases import GitHubSource, OciSource, ReleaseCache, RemoteLibrary
from hortus.domains.stacks.releases.sources import ReleaseSource
from hortus.kube.clock import SystemClock
from hortus.simulation.registry import RegistryFolder, RegistryServer
from hortus.simulation.releases import GitHubServer

Server = GitHubServer | RegistryServer


class Published:
    """The releases of a shelf, at a source that can be stopped and started."""

    def __init__(self, server: Server, library: RemoteLibrary) -> None:
        self.server = server
        self.library = library
        self.downloads = 0
        self.held = asyncio.Event()

    async def hold_second(self, request: web.BaseRequest) -> web.StreamResponse | None:
        """Answers one download, and never the next."""
        self.downloads += request.method == "GET" and ("/storage/" in request.path or "/blobs/" in request.path)
        if self.downloads < 2:
            return None
        self.held.set()
        await asyncio.Event().wait()
        return None

    async def stop_in_a_download(self) -> None:
        """Stop the server while it owes the second file of a release."""
        async with asyncio.timeout(60):
            await self.held.wait()
        await self.server.__aexit__()
        self.server.intercept = None


def source(server: Server, shelf: ReleaseShelf, cache: ReleaseCache) -> ReleaseSource:
    if isinstance(server, GitHubServer):
        kept, clock = cache.artifacts, SystemClock()
        return GitHubSource("example", "stacks", url=server.url, token=None, cache=kept, clock=clock)
    for folder in (shelf.folder / FOLDER).iterdir():
        push(server, folder.name, {file.name: file.read_bytes() for file in folder.iterdir()})
    repository = f"{server.address}/stacks/ferrol"
    return OciSource(repository, credentials=None, plain_http=True, cache=cache.artifacts, clock=SystemClock())


@asynccontextmanager
async def published(server: Server, shelf: ReleaseShelf, folder: Path) -> AsyncIterator[Published]:
    async with server:
        cache = ReleaseCache(folder)
        library = RemoteLibrary(source(server, shelf, cache), cache, clock=SystemClock())
        try:
            yield Published(server, library)
        finally:
            await library.close()


@pytest.mark.parametrize("kind", ["github", "oci"])
async def test_an_upgrade_waits_for_a_source_that_is_down_and_ends_when_it_is_back(
    here: AddonWorld, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controller, "SILENT_AGAIN", 0.1)
    here.shelf.staged(ONE, {"cni": chart("cni", release="one")}, {AFTER: applied("cni")})
    here.shelf.staged(
        TWO, {"cni": chart("cni", release="two"), "csi": [config_map("csi")]}, {BEFORE: applied("cni", "csi")}
    )
    github = GitHubServer(here.shelf.folder / FOLDER, owner="example", repository="stacks")
    server = github if kind == "github" else RegistryServer(RegistryFolder(tmp_path / "registry"))
    await here.cluster(ONE)
    await here.kubeconfig()
    async with published(server, here.shelf, tmp_path / "cache") as made:
        here.library = made.library
        async with here.controllers():
            await here.installed(ONE)
            server.intercept = made.hold_second
            await here.move(TWO)
            await made.stop_in_a_download()
            addon = await here.until(
                lambda obj: condition(obj, "ClusterStackReleaseDownloaded").get("status") == "False"
            )
            found = condition(addon, "ClusterStackReleaseDownloaded")
            assert (found["reason"], found["severity"]) == ("ReleaseAssetsNotDownloadedYet", "Info")
            assert TWO in found["message"]
            assert await here.names_inside() == {"cni"}, "the addons of the release before stay"
            async with server:
                await here.installed(TWO)
    assert await here.names_inside() == {"cni", "csi"}
    changed = await here.inside_object(CONFIG_MAPS, "cni")
    assert changed is not None
    assert changed["data"] == {"release": "two"}
