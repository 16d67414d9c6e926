"""The dashboard in a real browser: every page at three sizes, light and dark, by keys alone, and while things change.

The browser is Debian's Chromium (`apt-get install chromium`). HORTUS_SCREENSHOTS names a folder for the pictures, and
HORTUS_AXE the axe.min.js of axe-core, which judges each page by WCAG 2.2 AA.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest
from playwright.async_api import Browser, Page, async_playwright, expect
from tests.dashboard.conftest import FLEET, HOME, World, make_cluster, make_rollout, set_state

from hortus.dashboard.server import COOKIE
from hortus.dashboard.viewers import ViewerCredential, token_credential
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.kube.kubeconfig import load

CHROMIUM: Final = shutil.which("chromium")
SIZES: Final = {"phone": (320, 700), "laptop": (1280, 900), "wall": (3840, 2160)}
PAGES: Final = (
    "/clusters",
    f"/clusters/gardenercluster/{HOME}/ill",
    f"/clusters/gardenercluster/{HOME}/none",
    "/clusters?q=nothing",
    "/rollouts",
    f"/rollouts/rollout/{FLEET}/spring",
    "/modules",
    "/stacks",
    "/agents",
    "/access",
    "/leftovers",
    "/audit",
    "/plans",
    "/health",
)
_RULES: Final = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt-get install chromium")


@pytest.fixture
async def chromium() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        await browser.close()


async def open_page(
    chromium: Browser, world: World, path: str, *, size: str = "laptop", scheme: str = "light", token: str = ""
) -> Page:
    """A signed-in page that fails the test for any error of a script or of the content security policy."""
    width, height = SIZES[size]
    context = await chromium.new_context(
        viewport={"width": width, "height": height}, color_scheme="dark" if scheme == "dark" else "light"
    )
    page = await context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
    page.problems = problems  # type: ignore[attr-defined]
    access = load(world.server.kubeconfig).access()
    credential = token_credential(access, token) if token else ViewerCredential(access)
    ticket = world.dashboard.sessions.issue_ticket(credential)
    await page.goto(f"{world.base}/enter?ticket={ticket}")
    if path != "/clusters":
        await page.goto(world.base + path)
    return page


def problems_of(page: Page) -> list[str]:
    """The errors of a page, without the 404 that a tour asks for."""
    return [one for one in page.problems if "404" not in one]  # type: ignore[attr-defined]


async def judged(page: Page) -> list[str]:
    """The serious findings of axe-core, where it is here."""
    script = os.environ.get("HORTUS_AXE", "")
    if not script:
        return []
    # By the protocol and not by a script element, which the policy of the page would refuse.
    await page.evaluate(Path(script).read_text())
    found = await page.evaluate("rules => axe.run(document, {runOnly: {type: 'tag', values: rules}})", _RULES)
    assert found["passes"], "axe-core judged nothing"
    return [
        f"{one['id']}: {one['help']}: {one['nodes'][0]['html'][:120]}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
    ]


async def excess_of(page: Page) -> int:
    """The pixels by which a page is wider than the window."""
    return int(await page.evaluate("document.documentElement.scrollWidth - window.innerWidth"))


@pytest.mark.parametrize(
    ("size", "scheme"),
    [
        ("phone", "light"),
        ("laptop", "dark"),
        ("wall", "light"),
        pytest.param("phone", "dark", marks=pytest.mark.soak),
        pytest.param("laptop", "light", marks=pytest.mark.soak),
        pytest.param("wall", "dark", marks=pytest.mark.soak),
    ],
)
async def test_every_page_fits_is_legible_and_runs_without_an_error(
    world: World, chromium: Browser, tmp_path: Path, size: str, scheme: str
) -> None:
    await make_cluster(world.admin, "well", region="one")
    await make_cluster(world.admin, "ill", "Error", "shoot ill is gone: the garden answers no more " + "x" * 200)
    await make_rollout(world.admin, "spring")
    folder = Path(os.environ.get("HORTUS_SCREENSHOTS", "") or tmp_path)
    page = await open_page(chromium, world, "/clusters", size=size, scheme=scheme)
    findings = {}
    for path in PAGES:
        await page.goto(world.base + path)
        await expect(page.locator("#main h1")).to_be_visible()
        name = path.strip("/").replace("/", "_").replace("?", "_")
        await page.screenshot(path=folder / f"{name}-{size}-{scheme}.png")
        wide = await excess_of(page)
        found = await judged(page) + ([f"{wide} pixels too wide"] if wide > 0 else [])
        if found:
            findings[path] = found
    assert findings == {}
    assert problems_of(page) == []


async def test_words_longer_than_a_line_fit_a_phone(world: World, chromium: Browser) -> None:
    """Kinds in notes, which a page has also while they are being read, the viewer, names, states and problems."""
    name = "n" * 200
    await make_cluster(world.admin, name, "S" * 90)
    nobody = await world.account("u" * 60)
    visits = {
        "/audit": nobody,
        f"/clusters?labels={name}": nobody,
        "/clusters": "",
        f"/clusters/gardenercluster/{HOME}/{name}": "",
    }
    wide = {}
    for path, token in visits.items():
        page = await open_page(chromium, world, path, size="phone", token=token)
        await expect(page.locator("h1")).to_be_visible()
        wide[path] = await excess_of(page)
        await page.context.close()
    assert wide == dict.fromkeys(wide, 0)


async def test_the_sign_in_is_legible_and_takes_a_token(world: World, chromium: Browser) -> None:
    page = await chromium.new_page()
    await page.goto(world.base + "/rollouts?q=x")
    assert await judged(page) == []
    # The focus comes with the first frame, which may be later than the load.
    await expect(page.get_by_label("Bearer token")).to_be_focused()
    await page.keyboard.type("nosuchtoken")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("alert")).to_contain_text("Not signed in")
    await page.get_by_label("Bearer token").fill(world.server.token)
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(world.base + "/rollouts?q=x")
    assert [cookie["name"] for cookie in await page.context.cookies()] == [COOKIE]
    assert await page.evaluate("document.cookie") == ""
    await page.close()


async def test_keys_alone_filter_move_open_and_go_back(world: World, chromium: Browser) -> None:
    for name in ("a", "b", "c"):
        await make_cluster(world.admin, f"one-{name}")
    await make_cluster(world.admin, "other")
    page = await open_page(chromium, world, "/clusters")
    await page.keyboard.press("/")
    await page.keyboard.type("one")
    await expect(page.locator("table.rows tbody tr")).to_have_count(3)
    await expect(page.locator("#filter")).to_be_focused()
    assert page.url.endswith("/clusters")
    await page.keyboard.press("Escape")
    for key in "jjjjk":
        await page.keyboard.press(key)
    await expect(page.locator("tr:nth-child(2) th a")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.locator("h1")).to_contain_text("one-b")
    await page.keyboard.press("u")
    await expect(page.locator("h1")).to_have_text("Clusters")
    await page.keyboard.press("?")
    await expect(page.locator("#keys")).to_be_visible()
    await page.keyboard.press("Escape")
    await page.keyboard.press("g")
    await page.keyboard.press("2")
    await expect(page.locator("h1")).to_have_text("Rollouts")
    assert problems_of(page) == []


async def test_a_change_is_seen_without_loading_and_the_focus_stays_on_its_row(world: World, chromium: Browser) -> None:
    for name in ("a", "b", "c"):
        await make_cluster(world.admin, name)
    page = await open_page(chromium, world, "/clusters")
    await page.evaluate("window.sameDocument = true")
    for key in "jj":
        await page.keyboard.press(key)
    await expect(page.get_by_role("link", name="b", exact=True)).to_be_focused()
    await set_state(world.admin, "c", "Error", "shoot c is gone")
    await expect(page.locator("tbody tr").first).to_contain_text("shoot c is gone")
    await expect(page.get_by_role("link", name="b", exact=True)).to_be_focused()
    await world.admin.delete(GARDENER_CLUSTERS, "b", HOME)
    await expect(page.locator("table.rows tbody tr")).to_have_count(2)
    await expect(page.get_by_role("link", name="a", exact=True)).to_be_focused()
    await expect(page.locator("#spoken")).to_have_text("The row is gone.")
    assert await page.evaluate("window.sameDocument") is True
    assert problems_of(page) == []


async def test_an_order_that_cannot_be_undone_is_asked_for_and_the_others_are_not(
    world: World, chromium: Browser
) -> None:
    await make_rollout(world.admin, "spring")
    page = await open_page(chromium, world, f"/rollouts/rollout/{FLEET}/spring")
    asked: list[str] = []

    async def refuse(dialog: object) -> None:
        asked.append(dialog.message)  # type: ignore[attr-defined]
        await dialog.dismiss()  # type: ignore[attr-defined]

    page.on("dialog", refuse)
    await page.get_by_role("button", name="Abort").click()
    assert asked == ["Abort rollout spring? It cannot be resumed."]
    await page.get_by_role("button", name="Pause").click()
    await expect(page.locator(".said")).to_have_text("rollout spring paused: clusters that have begun finish")
    assert len(asked) == 1 and problems_of(page) == []


async def test_the_dashboard_works_without_scripts(world: World, chromium: Browser) -> None:
    await make_cluster(world.admin, "one")
    await make_cluster(world.admin, "two")
    context = await chromium.new_context(java_script_enabled=False)
    page = await context.new_page()
    await page.goto(world.base)
    await page.get_by_label("Bearer token").fill(world.server.token)
    await page.get_by_role("button", name="Sign in").click()
    await page.get_by_label("Filter").first.fill("two")
    await page.get_by_role("button", name="Show").click()
    await expect(page.locator("table.rows tbody tr")).to_have_count(1)
    await page.get_by_role("link", name="two", exact=True).click()
    await expect(page.locator("h1")).to_contain_text("two")
    await context.close()
