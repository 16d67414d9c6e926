"""Open pages: what changes is seen at once, and what ends them or keeps them from being current is said."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from tests.dashboard.conftest import (
    ACCOUNTS,
    FLEET,
    HOME,
    PATIENCE,
    Browser,
    World,
    browsers,
    dashboard_of,
    make_cluster,
    make_rollout,
    set_state,
)
from yarl import URL

from hortus.dashboard import streams
from hortus.dashboard.server import Dashboard
from hortus.domains import free_port
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.engine.rollouts.types import ROLLOUTS
from hortus.kube import Access
from hortus.kube.kubeconfig import load
from hortus.testing import FakeClock


async def event_with(events: AsyncIterator[tuple[str, Any]], text: str) -> dict[str, str]:
    """The parts of the first change that shows `text`."""
    async with asyncio.timeout(PATIENCE):
        async for name, data in events:
            if name == "change" and any(text in html for html in data["parts"].values()):
                return dict(data["parts"])
    raise AssertionError(f"the stream ended without {text}")


async def end_of(events: AsyncIterator[tuple[str, Any]]) -> str:
    """The name of the last event."""
    last = ""
    async with asyncio.timeout(PATIENCE):
        async for name, _ in events:
            last = name
    return last


async def test_a_change_is_sent_as_the_one_part_that_changed(world: World) -> None:
    await make_cluster(world.admin, "one")
    browser = await world.signed_in()
    async with browser.stream("/clusters") as events:
        await event_with(events, "one")
        await set_state(world.admin, "one", "Error", "shoot one is gone")
        parts = await event_with(events, "shoot one is gone")
        assert "part-rows" in parts and "part-head" not in parts
        await make_cluster(world.admin, "two")
        assert "part-head" not in await event_with(events, "two")


async def test_an_object_that_is_deleted_under_the_cursor_is_said_to_be_gone(world: World) -> None:
    await make_rollout(world.admin, "spring")
    browser = await world.signed_in()
    path = f"/rollouts/rollout/{FLEET}/spring"
    page = await browser.get(path)
    async with browser.stream(path) as events:
        await event_with(events, "waits for approval")
        await world.admin.delete(ROLLOUTS, "spring", FLEET)
        parts = await event_with(events, "it was deleted")
        assert list(parts) == ["part-head"]
    assert (await browser.get(path)).status == 404
    late = await browser.post(f"{path}/abort", page.form("abort"), Accept="application/json")
    assert late.status == 502 and "not found" in late.json["message"]


async def test_a_page_at_rest_sends_nothing_but_keep_alives(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "KEEP_ALIVE", 0.05)
    await make_cluster(world.admin, "one")
    browser = await world.signed_in()
    url = URL(browser.base).with_path("/stream").with_query(at="/clusters", have="")
    async with world.session.get(url, headers=browser._headers({})) as answer, asyncio.timeout(PATIENCE):
        assert (await answer.content.readline()) == b"event: change\n"
        await answer.content.readline()
        seen = [await answer.content.readline() for _ in range(5)]
    assert set(seen) == {b"\n", b": keep-alive\n"}


async def test_the_end_of_a_token_ends_the_open_page(world: World) -> None:
    clock = FakeClock()
    access = load(world.server.kubeconfig).access()
    async with dashboard_of(access, clock=clock) as (_, base):
        browser = Browser(world.session, base)
        assert (await browser.sign_in(world.server.token)).status == 303
        async with browser.stream("/clusters") as events:
            await event_with(events, "Clusters")
            await clock.advance(12 * 3600 + 1)
            assert await end_of(events) == "end"
        assert (await browser.get("/clusters")).status == 303


async def test_signing_out_in_one_window_ends_the_others(world: World) -> None:
    browser = await world.signed_in()
    page = await browser.get("/clusters")
    async with browser.stream("/clusters") as events:
        await event_with(events, "Clusters")
        await browser.post("/logout", {"csrf": page.csrf})
        assert await end_of(events) == "end"


async def test_a_token_that_is_revoked_reads_nothing_more(world: World) -> None:
    token = await world.account("short")
    browser = await world.signed_in(token)
    await world.admin.delete(ACCOUNTS, "short", HOME)
    reply = await browser.get("/rollouts", Accept="application/json")
    assert reply.status == 401 and "no longer accepts" in reply.json["error"]


class Gate:
    """A way to the API server that can be shut."""

    def __init__(self, target: str) -> None:
        self._target = URL(target)
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self.port = free_port()

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._join, "127.0.0.1", self.port)

    async def shut(self) -> None:
        assert self._server is not None
        self._server.close()
        for writer in list(self._writers):
            writer.transport.abort()
        await self._server.wait_closed()

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(self._target.host, self._target.port)
        self._writers |= {writer, far_writer}
        await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))
        self._writers -= {writer, far_writer}


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


@asynccontextmanager
async def gated(world: World) -> AsyncIterator[tuple[Gate, Browser, Dashboard]]:
    gate = Gate(world.server.url)
    await gate.open()
    access = Access(server=f"https://127.0.0.1:{gate.port}", ca=world.server.ca)
    async with dashboard_of(access) as (dashboard, base):
        browser = Browser(world.session, base)
        assert (await browser.sign_in(world.server.token)).status == 303
        yield gate, browser, dashboard
    await gate.shut()


async def test_while_the_api_server_is_away_the_last_state_is_shown_with_the_reason(world: World) -> None:
    await make_cluster(world.admin, "one")
    async with gated(world) as (gate, browser, _), browser.stream("/clusters") as events:
        await event_with(events, "one")
        await gate.shut()
        parts = await event_with(events, "gardenerclusters:")
        assert "part-rows" not in parts
        rows = (await browser.document("/clusters"))["rows"]["items"]
        assert [row["name"] for row in rows] == ["one"]
        await set_state(world.admin, "one", "Error", "it went on meanwhile")
        await gate.open()
        await event_with(events, "it went on meanwhile")


async def test_without_an_api_server_a_sign_in_and_an_order_report_it(world: World) -> None:
    await make_rollout(world.admin, "spring")
    async with gated(world) as (gate, browser, _):
        path = f"/rollouts/rollout/{FLEET}/spring"
        form = (await browser.get(path)).form("abort")
        await gate.shut()
        late = await browser.post(f"{path}/abort", form, Accept="application/json")
        assert late.status == 502 and late.json["message"].startswith("Not done:")
        other = await Browser(world.session, browser.base).sign_in(world.server.token)
        assert other.status == 502 and world.server.token not in other.text
        await gate.open()


async def test_the_watches_of_a_viewer_end_when_nobody_looks(world: World) -> None:
    clock = FakeClock()
    access = load(world.server.kubeconfig).access()
    async with dashboard_of(access, clock=clock) as (dashboard, base):
        browser = Browser(world.session, base)
        await browser.sign_in(world.server.token)
        await browser.get("/clusters")
        (viewer,) = dashboard._viewers._known.values()
        assert viewer.watching
        await clock.advance(300)
        assert not viewer.watching
        await make_cluster(world.admin, "one")
        assert [row["name"] for row in (await browser.document("/clusters"))["rows"]["items"]] == ["one"]
        await world.admin.delete(GARDENER_CLUSTERS, "one", HOME)


@asynccontextmanager
async def many_windows(browser: Browser) -> AsyncIterator[Browser]:
    """The same browser with as many connections as it likes."""
    async with browsers(limit=0) as session:
        windows = Browser(session, browser.base)
        windows.cookie = browser.cookie
        yield windows


async def test_200_pages_ask_no_more_than_one_when_the_api_server_goes_and_comes_back(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make_cluster(world.admin, "one")
    asked: list[str] = []
    async with gated(world) as (gate, browser, dashboard), many_windows(browser) as windows, AsyncExitStack() as stack:
        pages = [await stack.enter_async_context(windows.stream("/clusters")) for _ in range(200)]
        await asyncio.gather(*(event_with(events, ">one<") for events in pages))
        (viewer,) = dashboard._viewers._known.values()
        kinds = len(viewer.watch("")._caches)
        connection = viewer.client._connection
        call, stream = connection.call, connection.stream
        monkeypatch.setattr(connection, "call", lambda *given, **more: asked.append(given[1]) or call(*given, **more))
        monkeypatch.setattr(connection, "stream", lambda to, **more: asked.append(to) or stream(to, **more))
        await gate.shut()
        await asyncio.gather(*(event_with(events, "gardenerclusters:") for events in pages))
        await set_state(world.admin, "one", "Error", "it went on meanwhile")
        await gate.open()
        await asyncio.gather(*(event_with(events, "it went on meanwhile") for events in pages))
    # The one viewer has one watch of each kind, which goes on where it stopped after a few attempts.
    watches = [target for target in asked if "watch=true" in target]
    assert 0 < len(watches) <= 8 * kinds, asked
    # Permissions are asked for again when half a minute is over; nothing is listed.
    rest = [target for target in asked if target not in watches]
    assert all("reviews" in target for target in rest) and len(rest) <= 8 * kinds, asked
