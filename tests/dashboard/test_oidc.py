"""Signing in by an OpenID Connect provider: real redirects between a provider, a dashboard and an API server that
accepts the provider's ID tokens."""

from __future__ import annotations

import asyncio
import base64
import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner
from playwright.async_api import async_playwright, expect
from tests.dashboard.conftest import CLUSTER_BINDINGS, Browser, Reply, World, make_cluster
from tests.dashboard.oidc_provider import CLIENT, SECRET, AcceptingFront, OidcServer, serving
from tests.dashboard.test_streams import end_of, event_with
from tests.waiting import until
from yarl import URL

from hortus.dashboard import streams
from hortus.dashboard.main import app
from hortus.dashboard.oidc import OidcProvider, OidcSettings
from hortus.dashboard.server import COOKIE, Dashboard
from hortus.dashboard.serving import listening, origins_of, own_origin, settings_for
from hortus.domains import free_port
from hortus.kube import Access, Secret
from hortus.kube.clock import Clock
from hortus.kube.kubeconfig import load
from hortus.testing import FakeClock

LOGIN = "__Host-hortus-login"


class Realm(NamedTuple):
    world: World
    provider: OidcServer
    front: AcceptingFront
    dashboard: Dashboard
    base: str
    clock: Any

    def browser(self) -> Browser:
        return Browser(self.world.session, self.base)


@asynccontextmanager
async def realm_of(world: World, clock: Clock, *, issuer: str = "", scopes: tuple[str, ...] = ("groups",)) -> Any:
    provider = OidcServer(clock)
    front = AcceptingFront(world.server, load(world.server.kubeconfig).access(), provider)
    who = [{"kind": "User", "name": "oidc:anna", "apiGroup": "rbac.authorization.k8s.io"}]
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    await world.admin.create(CLUSTER_BINDINGS, {"metadata": {"name": "anna"}, "subjects": who, "roleRef": role})
    settings = OidcSettings(issuer or provider.issuer, CLIENT, Secret(SECRET), scopes)
    port = free_port()
    access = Access(server=f"http://127.0.0.1:{front.port}")
    oidc = OidcProvider(settings, clock)
    own = own_origin(port)
    dashboard = Dashboard(settings_for(access, origins_of(own), (), oidc), clock=clock)
    async with (
        serving(provider.app(), provider.port),
        serving(front.app(), front.port),
        listening(dashboard, host="127.0.0.1", port=port),
    ):
        yield Realm(world, provider, front, dashboard, own, clock)
    await world.admin.delete(CLUSTER_BINDINGS, "anna")


@pytest.fixture
async def realm(world: World) -> AsyncIterator[Realm]:
    async with realm_of(world, FakeClock()) as made:
        yield made


def cookie_of(reply: Reply, name: str) -> str:
    found = [text for text in reply.headers.getall("Set-Cookie", []) if text.startswith(f"{name}=")]  # type: ignore[attr-defined]
    return found[0].partition(";")[0].partition("=")[2] if found else ""


async def to_provider(browser: Browser, next: str = "/clusters") -> tuple[URL, str]:
    """The address at the provider to which a browser is sent, and the cookie that it keeps."""
    begun = await browser.get(f"/login/oidc?next={next}")
    assert begun.status == 303, begun.text
    return URL(begun.headers["Location"]), cookie_of(begun, LOGIN)


async def come_back(realm: Realm, browser: Browser, address: URL, cookie: str) -> Reply:
    async with realm.world.session.post(address, allow_redirects=False) as answer:
        back = URL(answer.headers["Location"])
    assert str(back.origin()) == realm.base
    return await returned(browser, str(back.relative()), cookie)


async def returned(browser: Browser, path: str, cookie: str) -> Reply:
    reply = await browser.get(path, Cookie=f"{LOGIN}={cookie}")
    browser.cookie = cookie_of(reply, COOKIE)
    return reply


async def signed_in(realm: Realm, next: str = "/clusters") -> Browser:
    browser = realm.browser()
    reply = await come_back(realm, browser, *await to_provider(browser, next))
    assert reply.status == 303, reply.text
    return browser


async def test_a_person_signs_in_at_the_provider_and_the_api_server_knows_the_name(realm: Realm) -> None:
    browser = realm.browser()
    page = await browser.get("/login?next=/rollouts")
    assert 'href="/login/oidc?next=/rollouts"' in page.text and "Sign in with 127.0.0.1" in page.text
    address, cookie = await to_provider(browser, "/rollouts")
    asked = address.query
    assert str(address).startswith(realm.provider.issuer) and asked["redirect_uri"] == f"{realm.base}/login/callback"
    assert (asked["response_type"], asked["scope"], asked["code_challenge_method"]) == ("code", "openid groups", "S256")
    assert len({asked["state"], asked["nonce"], asked["code_challenge"], cookie}) == 4
    reply = await come_back(realm, browser, address, cookie)
    assert (reply.status, reply.headers["Location"]) == (303, "/rollouts")
    shown = await browser.get("/clusters")
    assert "oidc:anna" in shown.text
    for secret in (*realm.front.tokens, SECRET):
        assert secret not in shown.text and secret not in str(reply.headers) and secret not in str(address)


async def test_sign_ins_that_others_began_end_none_that_is_under_way(realm: Realm) -> None:
    browser = realm.browser()
    address, cookie = await to_provider(browser)
    for _ in range(1001):
        await to_provider(realm.browser())
    assert (await come_back(realm, browser, address, cookie)).status == 303


@pytest.mark.parametrize("broken", ["cut", "flipped", "empty", "text"])
async def test_the_state_of_a_sign_in_is_sealed_in_the_cookie(realm: Realm, broken: str) -> None:
    browser = realm.browser()
    address, cookie = await to_provider(browser, "/rollouts?" + "q" * 1900)
    assert len(cookie) < 4000
    raw = base64.urlsafe_b64decode(cookie + "=" * (-len(cookie) % 4))
    for secret in (address.query["state"], address.query["nonce"], "/rollouts"):
        assert secret.encode() not in raw and secret not in cookie
    at = len(cookie) // 2
    wrong = {"cut": cookie[:-4], "flipped": f"{cookie[:at]}{'B' if cookie[at] == 'A' else 'A'}{cookie[at + 1:]}",
             "empty": "", "text": "é" * 50}[broken]  # fmt: skip
    reply = await come_back(realm, browser, address, wrong)
    assert reply.status == 401 and "is not known" in reply.text and realm.provider.asked == []


async def test_a_forged_state_opens_nothing(realm: Realm) -> None:
    browser = realm.browser()
    for query in ("", "?state=forged&code=x", "?code=x", "?state=", "?state=" + "a" * 5000):
        reply = await returned(browser, f"/login/callback{query}", "x")
        assert reply.status == 401 and "is not known" in reply.text and not browser.cookie
    assert realm.provider.asked == []


async def test_a_sign_in_that_another_browser_began_opens_nothing(realm: Realm) -> None:
    # Otherwise an attacker's page could sign a victim in under the attacker's name.
    attacker, victim = realm.browser(), realm.browser()
    address, cookie = await to_provider(attacker)
    _, own = await to_provider(victim)
    for wrong in ("", own, cookie[:-1]):
        reply = await come_back(realm, victim, address, wrong)
        assert reply.status == 401 and not victim.cookie
    assert realm.provider.asked == []


async def test_a_code_that_was_used_opens_nothing_again(realm: Realm) -> None:
    browser = realm.browser()
    address, cookie = await to_provider(browser)
    async with realm.world.session.post(address, allow_redirects=False) as answer:
        back = str(URL(answer.headers["Location"]).relative())
    assert (await returned(browser, back, cookie)).status == 303
    again = await returned(realm.browser(), back, cookie)
    assert again.status == 401 and "invalid_grant" in again.text
    # With a state of one's own the provider refuses the code, which is bound to another verifier.
    other = realm.browser()
    fresh, own = await to_provider(other)
    stolen = URL(back).update_query(state=fresh.query["state"])
    refused = await returned(other, str(stolen), own)
    assert refused.status == 401 and "invalid_grant" in refused.text


async def test_a_sign_in_that_took_too_long_opens_nothing(realm: Realm) -> None:
    browser = realm.browser()
    address, cookie = await to_provider(browser)
    await realm.clock.advance(601)
    assert (await come_back(realm, browser, address, cookie)).status == 401


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"iss": "https://evil.example"}, "of the issuer https://evil.example"),
        ({"aud": "another"}, "for another client"),
        ({"aud": ["hortus", "another"], "azp": "another"}, "for another client"),
        ({"nonce": "replayed"}, "nonce does not fit"),
        ({"exp": 1.0}, "has expired"),
        ({"sub": None}, "cannot be read"),
    ],
)
async def test_an_id_token_that_is_not_for_this_sign_in_opens_nothing(
    realm: Realm, claims: dict[str, Any], why: str
) -> None:
    realm.provider.claims = claims
    browser = realm.browser()
    reply = await come_back(realm, browser, *await to_provider(browser))
    assert reply.status == 401 and why in reply.text and not browser.cookie


async def test_an_id_token_that_the_api_server_does_not_accept_opens_nothing(realm: Realm) -> None:
    browser = realm.browser()
    address, cookie = await to_provider(browser)
    genuine, realm.provider.accepts = realm.provider.accepts, lambda token: None  # type: ignore[method-assign]
    reply = await come_back(realm, browser, address, cookie)
    realm.provider.accepts = genuine  # type: ignore[method-assign]
    assert reply.status == 401 and "the API server does not accept the ID tokens" in reply.text


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ({"issuer": "https://evil.example"}, "calls itself https://evil.example"),
        ({"token_endpoint": "http://evil.example/token"}, "is no https URL"),
        ({"code_challenge_methods_supported": ["plain"]}, "PKCE"),
        ({"token_endpoint": 5}, "cannot be used"),
    ],
)
async def test_a_provider_that_cannot_be_trusted_is_not_asked(realm: Realm, document: dict[str, Any], why: str) -> None:
    realm.provider.document = document
    reply = await realm.browser().get("/login/oidc")
    assert reply.status == 502 and why in reply.text


async def test_an_answer_in_the_name_of_another_issuer_is_refused(realm: Realm) -> None:
    for issuer in ("", "https://evil.example"):
        browser = realm.browser()
        address, cookie = await to_provider(browser)
        async with realm.world.session.post(address, allow_redirects=False) as answer:
            back = URL(answer.headers["Location"]).relative().update_query(iss=issuer)
        reply = await returned(browser, str(back), cookie)
        assert reply.status == 401 and "another issuer" in reply.text


async def test_the_refusal_of_the_provider_is_shown_as_text(realm: Realm) -> None:
    browser = realm.browser()
    address, cookie = await to_provider(browser)
    query = {"state": address.query["state"], "iss": realm.provider.issuer, "error": "access_denied"}
    back = URL("/login/callback").with_query({**query, "error_description": "<script>alert(1)</script>"})
    reply = await returned(browser, str(back), cookie)
    assert reply.status == 401 and "access_denied" in reply.text and "<script>" not in reply.text


@pytest.mark.parametrize("target", ["//evil.example", "https://evil.example", "/\\evil.example"])
async def test_no_sign_in_by_a_provider_ends_on_a_foreign_site(realm: Realm, target: str) -> None:
    browser = realm.browser()
    reply = await come_back(realm, browser, *await to_provider(browser, target))
    assert (reply.status, reply.headers["Location"]) == (303, "/clusters")


async def test_an_id_token_is_renewed_while_a_page_is_open_and_the_page_goes_on(realm: Realm) -> None:
    browser = await signed_in(realm)
    async with browser.stream("/clusters") as events:
        await event_with(events, "Clusters")
        for _ in range(4):
            await realm.clock.advance(250)
            assert (await browser.get("/clusters")).status == 200
        await make_cluster(realm.world.admin, "later")
        seen = asyncio.create_task(event_with(events, "later"))
        while not seen.done():  # the stream's own pauses are by the clock of the test
            await realm.clock.advance(0.5)
            await asyncio.wait({seen}, timeout=0.02)
        await seen
    assert realm.provider.asked == ["authorization_code", *["refresh_token"] * 4]
    assert len(set(realm.front.tokens)) >= 4


async def test_an_id_token_that_ended_opens_nothing_while_its_session_goes_on_and_after_it(realm: Realm) -> None:
    browser, program = await signed_in(realm), realm.browser()
    first = realm.front.tokens[0]
    bearer = {"Accept": "application/json", "Authorization": f"Bearer {first}"}
    assert (await program.get("/clusters", **bearer)).status == 200
    await realm.clock.advance(250)
    assert (await browser.get("/clusters")).status == 200 and "refresh_token" in realm.provider.asked
    await realm.clock.advance(60)
    assert (await browser.get("/clusters")).status == 200
    assert (await program.get("/clusters", **bearer)).status == 401
    assert (await program.sign_in(first)).status == 401
    await browser.post("/logout", {"csrf": (await browser.get("/clusters")).csrf})
    assert (await program.get("/clusters", **bearer)).status == 401
    assert (await program.sign_in(first)).status == 401


async def test_a_session_of_a_pasted_id_token_ends_with_that_token_and_is_not_renewed(realm: Realm) -> None:
    renewed, pasted = await signed_in(realm), realm.browser()
    assert (await pasted.sign_in(realm.front.tokens[0])).status == 303
    await realm.clock.advance(250)
    await realm.clock.advance(60)
    assert (await renewed.get("/clusters")).status == 200
    assert (await pasted.get("/clusters")).status == 303


async def test_a_session_whose_token_cannot_be_renewed_ends_with_it(
    realm: Realm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "_LOOK", 0.02)
    browser = await signed_in(realm)
    realm.provider.refreshes = False
    async with browser.stream("/clusters") as events:
        await event_with(events, "Clusters")
        await realm.clock.advance(250)
        assert (await browser.get("/clusters")).status == 200
        await realm.clock.advance(60)
        ended = asyncio.create_task(end_of(events))
        while not ended.done():  # the stream's own pauses are by the clock of the test
            await realm.clock.advance(0.5)
            await asyncio.wait({ended}, timeout=0.02)
        assert await ended == "end"
    assert (await browser.get("/clusters")).status == 303
    assert realm.provider.asked.count("refresh_token") == 1


async def test_a_renewed_token_of_another_person_is_not_taken(realm: Realm) -> None:
    browser = await signed_in(realm)
    realm.provider.user = "eve"
    await realm.clock.advance(250)
    assert "oidc:anna" in (await browser.get("/clusters")).text
    await realm.clock.advance(60)
    assert (await browser.get("/clusters")).status == 303


async def test_signing_out_revokes_the_refresh_token_and_offers_the_end_at_the_provider(realm: Realm) -> None:
    browser = await signed_in(realm)
    reply = await browser.post("/logout", {"csrf": (await browser.get("/clusters")).csrf})
    assert reply.status == 303 and len(realm.provider.revoked) == 1
    page = await browser.get(reply.headers["Location"])
    assert f"{realm.provider.issuer}/logout?client_id=hortus" in page.text and "id_token_hint" not in page.text
    assert (await browser.get("/clusters")).status == 303


async def test_signing_out_while_a_token_is_renewed_revokes_the_new_one_too(realm: Realm) -> None:
    browser = await signed_in(realm)
    csrf = (await browser.get("/clusters")).csrf
    realm.provider.answers.clear()
    await realm.clock.advance(250)
    await until(lambda: "refresh_token" in realm.provider.asked)
    assert (await browser.post("/logout", {"csrf": csrf})).status == 303
    realm.provider.answers.set()
    await until(lambda: len(set(realm.provider.revoked)) == 2)
    assert (await browser.get("/clusters")).status == 303


@pytest.mark.parametrize(
    "words",
    [
        ["--oidc-issuer-url", "https://idp.example"],
        ["--oidc-client-id", "x"],
        ["--oidc-issuer-url", "http://idp.example", "--oidc-client-id", "x"],
        ["--oidc-issuer-url", "https://idp.example/?a=b", "--oidc-client-id", "x"],
    ],
)
def test_options_of_a_provider_that_cannot_be_used_end_the_program(world: World, words: list[str]) -> None:
    answer = CliRunner().invoke(app, ["serve", "--kubeconfig", str(world.server.kubeconfig), *words])
    assert answer.exit_code == 2 and "--oidc-" in answer.output


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Chromium: apt-get install chromium")
async def test_a_real_browser_signs_in_by_the_provider_and_out_again(world: World) -> None:
    from hortus.kube.clock import SystemClock

    async with realm_of(world, SystemClock()) as realm, async_playwright() as playwright:
        chromium = await playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = await chromium.new_page()
        await page.goto(f"{realm.base}/rollouts")
        # The focus comes with the first frame, which may be later than the load.
        await expect(page.get_by_role("link", name=re.compile("Sign in with"))).to_be_focused()
        await page.keyboard.press("Enter")
        await page.get_by_role("button", name="I am Anna").click()
        await expect(page).to_have_url(f"{realm.base}/rollouts")
        await expect(page.locator(".user")).to_have_text("oidc:anna")
        assert [one["name"] for one in await page.context.cookies()] == [COOKIE]
        await page.get_by_role("button", name="Sign out").click()
        await page.get_by_role("link", name="Sign out at 127.0.0.1, too").click()
        await expect(page).to_have_url(re.compile(re.escape(f"{realm.provider.issuer}/logout?client_id={CLIENT}&")))
        await chromium.close()
