"""Files of a module by https, and the commit of its repository however git keeps it."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from tests.domains.modules.publishing.conftest import DEFAULT_CR, MANIFEST
from tests.domains.modules.publishing.test_config import LEAST
from tests.kube.certificates import issue, server_context
from tests.kube.scripted import serving

from hortus.domains.modules.publishing.building import BuildPaths, build
from hortus.domains.modules.publishing.sources import LARGEST_FILE, BadSource, head_commit, read_source
from hortus.kube import yaml
from hortus.render.artifacts import TransferSettings


class Releases:
    """A server of releases, and downloads that are allowed to reach it."""

    def __init__(self, url: str, downloads: TransferSettings) -> None:
        self.url = url
        self.downloads = downloads


@pytest.fixture
async def releases(tmp_path: Path) -> AsyncIterator[Releases]:
    ca = issue("ca", ca=True)
    context = server_context(tmp_path, issue("server", ca, addresses=("127.0.0.1",)))

    async def answer(request: web.Request) -> web.StreamResponse:
        match request.path:
            case "/manifest.yaml":
                return web.Response(text=MANIFEST)
            case "/default-cr.yaml":
                raise web.HTTPFound("/moved.yaml")
            case "/moved.yaml":
                return web.Response(text=DEFAULT_CR)
            case "/huge.yaml":
                return web.Response(body=bytes(LARGEST_FILE + 1))
        return web.Response(status=404)

    async with serving(answer, ssl=context) as access:
        hosts = frozenset((access.server.removeprefix("https://"),))
        yield Releases(
            access.server, TransferSettings(max_document=LARGEST_FILE, ca=ca.pem, local_hosts=hosts, attempts=1)
        )


async def test_a_module_whose_files_have_addresses_is_built(releases: Releases, tmp_path: Path) -> None:
    """Contract 4.2: a manifest that is an address becomes the resource rawManifest."""
    config = tmp_path / "module-config.yaml"
    addresses = {"manifest": f"{releases.url}/manifest.yaml", "defaultCR": f"{releases.url}/default-cr.yaml"}
    config.write_text(yaml.dump(LEAST | addresses))
    template, constructor = tmp_path / "template.yaml", tmp_path / "out" / "constructor.yaml"
    paths = BuildPaths(config=config, template=template, constructor=constructor, sources=None)
    built = await build(paths, downloads=releases.downloads)
    assert built.template["spec"]["resources"] == [{"name": "rawManifest", "link": addresses["manifest"]}]
    assert built.template["spec"]["data"]["kind"] == "Hello"
    assert built.downloads == {"raw-manifest.yaml": MANIFEST.encode(), "default-cr.yaml": DEFAULT_CR.encode()}
    inputs = [one.input for one in built.constructor.components[0].resources if one.input is not None]
    assert [one.include_files for one in inputs] == [("raw-manifest.yaml",), ("default-cr.yaml",), ()]


@pytest.mark.parametrize(
    ("path", "problem"),
    [("/none.yaml", "answered with HTTP status 404; check the address"), ("/huge.yaml", "longer than the allowed")],
)
async def test_a_download_that_fails_names_key_and_address(releases: Releases, path: str, problem: str) -> None:
    with pytest.raises(BadSource, match=problem) as caught:
        await read_source("manifest", releases.url + path, Path(), downloads=releases.downloads)
    assert str(caught.value).startswith(f"manifest: {releases.url}{path}: ")


async def test_an_address_on_this_machine_is_refused(releases: Releases) -> None:
    with pytest.raises(BadSource, match="lies on this machine"):
        await read_source("manifest", f"{releases.url}/manifest.yaml", Path())


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.com"]
    done = subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q", ".")
    git(folder, "commit", "-q", "--allow-empty", "-m", "begin")
    return folder


def test_the_commit_is_git_s(repository: Path) -> None:
    expected = git(repository, "rev-parse", "HEAD")
    (repository / "deep" / "down").mkdir(parents=True)
    assert head_commit(repository / "deep" / "down") == expected
    git(repository, "pack-refs", "--all")
    assert head_commit(repository) == expected
    git(repository, "checkout", "-q", "--detach")
    assert head_commit(repository) == expected


def test_the_commit_of_a_worktree_is_its_own(repository: Path, tmp_path: Path) -> None:
    git(repository, "worktree", "add", "-q", "-b", "other", str(tmp_path / "other"))
    git(tmp_path / "other", "commit", "-q", "--allow-empty", "-m", "more")
    assert head_commit(tmp_path / "other") == git(tmp_path / "other", "rev-parse", "HEAD")


def test_a_repository_without_commits_is_named(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", ".")
    with pytest.raises(BadSource, match="has no commit; commit the module first"):
        head_commit(tmp_path)
