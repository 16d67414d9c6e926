"""Inputs that are large, wrong or late: objects of the largest size, clocks that differ, forms of other sessions."""

from __future__ import annotations

import shutil
import time

import pytest
from playwright.async_api import async_playwright, expect
from tests.dashboard.conftest import FLEET, HOME, World, make_cluster, make_rollout
from tests.dashboard.test_streams import event_with

from hortus.dashboard.server import COOKIE
from hortus.dashboard.viewers import ViewerCredential
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.engine.rollouts.types import ROLLOUTS
from hortus.kube.errors import ApiError
from hortus.kube.kubeconfig import load

MIB = 1 << 20


async def test_an_object_of_a_megabyte_makes_no_page_large_and_no_stream_silent(world: World) -> None:
    await make_cluster(world.admin, "one")
    with pytest.raises(ApiError, match=r"annotations|Too long"):
        await world.admin.patch(GARDENER_CLUSTERS, "one", {"metadata": {"annotations": {"a": "x" * MIB}}}, HOME)
    largest = {"metadata": {"annotations": {"a": "<" * (MIB // 4 - 64)}}}
    await world.admin.patch(GARDENER_CLUSTERS, "one", largest, HOME)
    await make_rollout(world.admin, "spring")
    failures = [{"cluster": f"c{number}", "stage": "one", "message": "<b>" * 10_000} for number in range(20)]
    await world.admin.patch(ROLLOUTS, "spring", {"status": {"failures": failures}}, FLEET, subresource="status")
    browser = await world.signed_in()
    for path in ("/clusters", f"/clusters/gardenercluster/{HOME}/one", "/audit", f"/rollouts/rollout/{FLEET}/spring"):
        reply = await browser.get(path)
        assert reply.status == 200 and len(reply.text) < 400_000 and "<b>" not in reply.text
    async with browser.stream(f"/rollouts/rollout/{FLEET}/spring") as events:
        parts = await event_with(events, "characters)")
        assert sum(map(len, parts.values())) < 400_000


async def test_a_form_with_the_token_of_another_session_changes_nothing(world: World) -> None:
    await make_rollout(world.admin, "spring")
    first, second = await world.signed_in(), await world.signed_in()
    path = f"/rollouts/rollout/{FLEET}/spring"
    foreign = (await first.get(path)).csrf
    for token in (foreign, "", foreign[:-1], "é", "\x00"):
        reply = await second.post(f"{path}/pause", {"csrf": token})
        assert reply.status == 403 and "token of this session" in reply.text
    assert (await world.admin.get(ROLLOUTS, "spring", FLEET))["spec"].get("state", "Run") == "Run"


async def test_of_two_cookies_of_one_name_at_most_one_is_a_session(world: World) -> None:
    browser = await world.signed_in()
    both = await browser.get("/clusters", Cookie=f"{COOKIE}=forged; {COOKIE}={browser.cookie}")
    assert both.status in (200, 303)
    forged = await browser.get("/clusters", Cookie=f"{COOKIE}=forged; {COOKIE}=forged")
    assert forged.status == 303


@pytest.mark.parametrize("hours", [-30, 30])
@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Chromium: apt-get install chromium")
async def test_ages_are_by_the_clock_of_the_server_however_wrong_that_of_the_viewer_is(
    world: World, hours: int
) -> None:
    await make_cluster(world.admin, "one")
    ticket = world.dashboard.sessions.issue_ticket(ViewerCredential(load(world.server.kubeconfig).access()))
    async with async_playwright() as playwright:
        chromium = await playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        context = await chromium.new_context()
        await context.clock.install(time=time.time() + hours * 3600)
        page = await context.new_page()
        await page.goto(f"{world.base}/enter?ticket={ticket}")
        await page.goto(f"{world.base}/audit")
        age = page.locator("tr", has_text=f"GardenerCluster {HOME}/one").locator("time").first
        await expect(age).to_contain_text(" s ago")
        await chromium.close()
