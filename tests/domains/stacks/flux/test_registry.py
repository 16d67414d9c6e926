"""The registry of charts on the wire: one password for each namespace, content by digest alone."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from tests.domains.stacks.addons.releases import DirectRenderer, ReleaseShelf, config_map
from tests.domains.stacks.addons.test_stages import AFTER, ONE, applied
from tests.domains.stacks.flux.world import PAIR

from hortus.domains.stacks.addons.rendering import AddonRendering
from hortus.domains.stacks.flux.artifacts import CONTENT, ChartBundles
from hortus.domains.stacks.flux.registry import ChartRegistry
from hortus.domains.stacks.names import parse_tag
from hortus.domains.stacks.releases.library import LocalLibrary
from hortus.domains.stacks.releases.stores import ReleaseFolder
from hortus.engine.serving import self_signed
from hortus.kube import SystemClock
from hortus.render.archive import read_archive
from hortus.render.helm import ChartError, ChartSource

FILES = {"Chart.yaml": b"apiVersion: v2\nname: cni\nversion: 1.2.3\n", "templates/a.yaml": b"kind: A\n", "x": b"\xff"}


class Login(NamedTuple):
    user: str
    password: str

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Basic {base64.b64encode(f'{self.user}:{self.password}'.encode()).decode()}"}


class Here(NamedTuple):
    registry: ChartRegistry
    client: TestClient[web.Request, web.Application]
    auth: Login
    digest: str

    async def get(self, path: str, auth: Login | None = None, method: str = "GET") -> tuple[int, bytes]:
        async with self.client.request(method, path, headers=auth.headers if auth is not None else {}) as answer:
            return answer.status, await answer.read()


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Here]:
    shelf = ReleaseShelf(tmp_path)
    shelf.staged(ONE, {"cni": [config_map("cni")]}, {AFTER: applied("cni")})
    library = LocalLibrary(ReleaseFolder(tmp_path), clock=SystemClock())
    rendering = AddonRendering(DirectRenderer())
    registry = ChartRegistry("charts.example", releases=library, rendering=rendering)
    registry.identify(PAIR)
    access = registry.access("team")
    assert access is not None
    app = web.Application()
    app.router.add_get("/v2{rest:.*}", registry.answer)
    charts = (await rendering.staged(await library.fetch(parse_tag(ONE)))).charts
    digest = registry.bundles.of(charts["cni"]).digest
    async with TestClient(TestServer(app)) as client:
        yield Here(registry, client, Login(access.username, access.password.reveal()), digest)


async def test_a_chart_is_fetched_by_the_digest_of_its_manifest(here: Here) -> None:
    path = f"/v2/team/{ONE}/cni"
    assert (await here.get("/v2/", here.auth))[0] == 200
    async with here.client.get(f"{path}/manifests/{here.digest}", headers=here.auth.headers) as answer:
        assert answer.content_type == "application/vnd.oci.image.manifest.v1+json"
        assert answer.headers["Docker-Content-Digest"] == here.digest
        manifest = await answer.json(content_type=None)
    (layer,) = manifest["layers"]
    assert layer["mediaType"] == CONTENT
    status, content = await here.get(f"{path}/blobs/{layer['digest']}", here.auth)
    assert (status, f"sha256:{hashlib.sha256(content).hexdigest()}") == (200, layer["digest"])
    assert "cni/Chart.yaml" in read_archive(content)
    assert await here.get(f"{path}/manifests/{here.digest}", here.auth, "HEAD") == (200, b"")


@pytest.mark.parametrize(
    "path",
    [
        f"/v2/team/{ONE}/cni/manifests/latest",
        f"/v2/team/{ONE}/cni/manifests/sha256:{'0' * 64}",
        f"/v2/team/{ONE}/cni/blobs/sha256:{'0' * 64}",
        f"/v2/team/{ONE}/csi/manifests/sha256:{'0' * 64}",
        f"/v2/team/{ONE}/addons/manifests/sha256:{'0' * 64}",
        f"/v2/team/docker-none-1-33-v1/cni/manifests/sha256:{'0' * 64}",
        f"/v2/team/no-release/cni/manifests/sha256:{'0' * 64}",
        f"/v2/other/{ONE}/cni/manifests/sha256:{'0' * 64}",
        "/v2/_catalog",
        f"/v2/team/{ONE}/cni/tags/list",
        f"/v2/team/..%2f..%2f/cni/manifests/sha256:{'0' * 64}",
    ],
)
async def test_nothing_else_is_served(here: Here, path: str) -> None:
    assert (await here.get(path, here.auth))[0] == 404


@pytest.mark.parametrize("user", ["team", "other", ""])
async def test_a_password_opens_its_own_namespace_alone(here: Here, user: str) -> None:
    path = f"/v2/other/{ONE}/cni/manifests/{here.digest}"
    assert (await here.get(path))[0] == 401
    wrong = Login(user, here.auth.password if user != "team" else "wrong")
    assert (await here.get(path, wrong))[0] == 401
    assert (await here.get(path, here.auth))[0] == 404


async def test_another_key_of_the_server_is_another_password(here: Here) -> None:
    calls: list[str] = []
    here.registry.on_identity(lambda: calls.append("changed"))
    here.registry.identify(self_signed(["127.0.0.1"], now=SystemClock().now()))
    assert calls == ["changed"]
    assert (await here.get("/v2/", here.auth))[0] == 401


def test_equal_charts_have_equal_digests_in_every_process() -> None:
    one, other = (ChartBundles().of(ChartSource.from_files(dict(files))) for files in (FILES, reversed(FILES.items())))
    assert one == other
    changed = ChartBundles().of(ChartSource.from_files({**FILES, "x": b"other"}))
    assert changed.digest != one.digest


@pytest.mark.parametrize("document", [b"version: 1.0.0", b"name: a/b", b"name: ''", b"[]", b"name: 3"])
def test_a_chart_without_a_name_is_refused(document: bytes) -> None:
    with pytest.raises(ChartError, match=r"Chart.yaml: .*"):
        ChartBundles().of(ChartSource.from_files({"Chart.yaml": document}))
