"""The addresses of a dashboard on this machine: a name of its own for browsers, loopback for programs."""

from __future__ import annotations

import re
import shutil
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from playwright.async_api import async_playwright, expect
from tests.dashboard.conftest import Browser, World, make_cluster
from tests.dashboard.oidc_provider import serving
from yarl import URL

from hortus.dashboard.server import COOKIE, Dashboard
from hortus.dashboard.serving import entrance, listening, origins_of, own_origin, settings_for
from hortus.dashboard.viewers import ViewerCredential
from hortus.domains import free_port
from hortus.kube.kubeconfig import load


@pytest.fixture(params=["127.0.0.1", "localhost"])
def loopback(world: World, request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    yield {"Host": f"{request.param}:{URL(world.base).port}"}


async def test_no_session_begins_or_goes_on_at_an_address_that_other_servers_share(
    world: World, loopback: dict[str, str]
) -> None:
    browser = await world.signed_in()
    ticket = world.dashboard.sessions.issue_ticket(ViewerCredential(load(world.server.kubeconfig).access()))
    bearer = {"Authorization": f"Bearer {world.server.token}", "Accept": "application/json"}
    for path in ("/clusters", "/login", f"/enter?ticket={ticket}", "/stream?at=/clusters"):
        for more in ({}, bearer):
            reply = await browser.get(path, **loopback, **more)
            assert (reply.status, "Set-Cookie" in reply.headers) == (200 if "/login" in path and more else 421, False)
    origin = {"Origin": f"http://{loopback['Host']}"}
    assert (await browser.post("/login", {"token": world.server.token}, **loopback, **origin)).status == 421
    answer = await browser.get("/clusters", **loopback)
    assert "run `hortus ui`" in answer.text and (URL(world.base).host or "?") not in answer.text
    assert (await browser.get("/clusters")).status == 200


async def test_programs_with_a_bearer_token_come_by_loopback(world: World, loopback: dict[str, str]) -> None:
    await make_cluster(world.admin, "one")
    given = {**loopback, "Authorization": f"Bearer {world.server.token}", "Accept": "application/json"}
    reply = await world.browser().get("/clusters", **given)
    assert [row["name"] for row in reply.json["rows"]["items"]] == ["one"] and "Set-Cookie" not in reply.headers


async def test_a_session_is_found_by_the_address_alone_at_which_it_began(world: World) -> None:
    port = free_port()
    own = own_origin(port)
    other = "http://other.localhost:1"
    settings = settings_for(load(world.server.kubeconfig).access(), origins_of(own, [other]))
    async with listening(Dashboard(settings), host="127.0.0.1", port=port):
        browser = Browser(world.session, own)
        assert (await browser.sign_in(world.server.token)).status == 303
        assert (await browser.get("/clusters")).status == 200
        assert (await browser.get("/clusters", Host="other.localhost:1")).status == 303
        assert (await browser.get("/clusters")).status == 200


def test_the_name_is_kept_in_the_state_directory_and_is_another_for_each(tmp_path: Path) -> None:
    first = own_origin(1, tmp_path)
    assert re.fullmatch(r"http://hortus-[0-9a-f]{20}\.localhost:1", first)
    (file,) = tmp_path.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert own_origin(2, tmp_path) == first.removesuffix(":1") + ":2"
    file.write_text("evil.example")
    assert own_origin(1, tmp_path) not in (first, "http://evil.example.localhost:1")
    assert len({own_origin(1) for _ in range(10)}) == 10


@asynccontextmanager
async def another_server() -> AsyncIterator[tuple[int, list[str]]]:
    """A server on another port of loopback, and the cookies that it was sent."""
    sent: list[str] = []

    async def note(request: web.Request) -> web.Response:
        sent.append(request.headers.get("Cookie", ""))
        return web.Response(text="<!doctype html>another", content_type="text/html")

    app, port = web.Application(), free_port()
    app.router.add_get("/", note)
    async with serving(app, port):
        yield port, sent


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Chromium: apt-get install chromium")
async def test_a_real_browser_sends_the_cookie_to_no_other_server_on_this_machine(world: World, tmp_path: Path) -> None:
    credential = ViewerCredential(load(world.server.kubeconfig).access())
    entry = entrance(world.dashboard, world.base, credential, tmp_path)
    async with another_server() as (port, sent), async_playwright() as playwright:
        chromium = await playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = await chromium.new_page()
        await page.goto(Path(entry.page).as_uri())
        await expect(page.locator(".user")).to_have_text("kubernetes-admin")
        assert [one["name"] for one in await page.context.cookies()] == [COOKIE]
        for host in ("127.0.0.1", "localhost", "another.localhost"):
            await page.goto(f"http://{host}:{port}/")
            await expect(page.locator("body")).to_have_text("another")
        assert sent == ["", "", ""]
        # The name is no secret of the cookie, but it must not be guessed: browsers send cookies to all ports of a host.
        await page.goto(str(URL(world.base).with_port(port)))
        assert COOKIE in sent.pop()
        await page.goto(f"{world.base}/clusters")
        await expect(page.locator(".user")).to_have_text("kubernetes-admin")
        await chromium.close()
