"""Signing in and out, sessions and their cookies, and requests that come from elsewhere."""

from __future__ import annotations

from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from msgspec.structs import replace
from tests.dashboard.conftest import Browser, World, dashboard_of, make_cluster

from hortus.dashboard.guarding import local_path
from hortus.dashboard.server import COOKIE
from hortus.dashboard.viewers import ViewerCredential
from hortus.domains import free_port
from hortus.kube import Access, Secret
from hortus.kube.kubeconfig import load
from hortus.testing import FakeClock


async def test_a_page_without_a_session_leads_to_the_sign_in_and_back(world: World) -> None:
    browser = world.browser()
    reply = await browser.get("/rollouts?namespace=fleet")
    assert (reply.status, reply.headers["Location"]) == (303, "/login?next=/rollouts?namespace%3Dfleet")
    assert (await browser.get("/clusters", Accept="application/json")).status == 401
    signed = await browser.sign_in(world.server.token, next="/rollouts?namespace=fleet")
    assert (signed.status, signed.headers["Location"]) == (303, "/rollouts?namespace=fleet")


async def test_the_cookie_is_for_this_host_alone_and_no_script_reads_it(world: World) -> None:
    reply = await world.browser().sign_in(world.server.token)
    value, *flags = reply.headers["Set-Cookie"].split("; ")
    assert value.startswith(f"{COOKIE}=") and COOKIE.startswith("__Host-") and len(value) > 50
    assert {"HttpOnly", "Secure", "SameSite=Lax", "Path=/"} <= set(flags)
    assert not any(flag.startswith("Domain") for flag in flags)


@pytest.mark.parametrize("token", ["", "  ", "no such token", "nosuchtoken", "a\nb", "ä", "x" * 40_000])
async def test_a_token_that_the_api_server_does_not_know_opens_nothing(world: World, token: str) -> None:
    browser = world.browser()
    reply = await browser.sign_in(token)
    assert reply.status == 401 and "Not signed in" in reply.text and "Set-Cookie" not in reply.headers
    assert not token.strip() or len(token) < 4 or token not in reply.text
    assert (await browser.get("/clusters")).status == 303


@pytest.mark.parametrize("cookie", ["", "x", "a" * 43, "a" * 5000, "%00", '"; Path=/'])
async def test_a_forged_cookie_is_no_session(world: World, cookie: str) -> None:
    browser = world.browser()
    browser.cookie = cookie
    assert (await browser.get("/clusters")).status == 303
    assert (await browser.get("/stream?at=/clusters")).status == 401


async def test_signing_out_ends_the_session_on_the_server(world: World) -> None:
    browser = await world.signed_in()
    page = await browser.get("/clusters")
    assert (await browser.post("/logout", {"csrf": "wrong"})).status == 403
    assert (await browser.get("/clusters")).status == 200
    reply = await browser.post("/logout", {"csrf": page.csrf})
    assert reply.status == 303 and f'{COOKIE}=""' in reply.headers["Set-Cookie"]
    assert (await browser.get("/clusters")).status == 303


async def test_a_session_ends_with_its_day(world: World) -> None:
    clock = FakeClock()
    access = load(world.server.kubeconfig).access()
    async with dashboard_of(access, clock=clock) as (_, base):
        browser = Browser(world.session, base)
        await browser.sign_in(world.server.token)
        assert (await browser.get("/clusters")).status == 200
        await clock.advance(12 * 3600 + 1)
        assert (await browser.get("/clusters")).status == 303


async def test_a_ticket_opens_one_session_with_a_client_certificate(world: World) -> None:
    access = load(world.server.kubeconfig).access()
    ticket = world.dashboard.sessions.issue_ticket(ViewerCredential(access))
    browser = world.browser()
    reply = await browser.get(f"/enter?ticket={ticket}")
    assert (reply.status, reply.headers["Location"]) == (303, "/clusters")
    browser.cookie = reply.headers["Set-Cookie"].partition(";")[0].partition("=")[2]
    assert "kubernetes-admin" in (await browser.get("/clusters")).text
    again = await world.browser().get(f"/enter?ticket={ticket}")
    assert again.status == 401 and "was used before" in again.text


async def test_a_ticket_is_too_old_after_a_minute(world: World) -> None:
    clock = FakeClock()
    access = load(world.server.kubeconfig).access()
    async with dashboard_of(access, clock=clock) as (dashboard, base):
        ticket = dashboard.sessions.issue_ticket(ViewerCredential(access))
        await clock.advance(61)
        assert (await Browser(world.session, base).get(f"/enter?ticket={ticket}")).status == 401


def _other_key(access: Access) -> Access:
    key = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return replace(access, credentials=replace(access.credentials, key=Secret(key.decode())))


@pytest.mark.parametrize(
    "changed",
    [
        _other_key,
        lambda access: replace(access, server=f"https://127.0.0.1:{free_port()}"),
        lambda access: replace(access, ca=b""),
        lambda access: replace(access, tls_server_name="another.example"),
    ],
    ids=["key", "server", "ca", "name"],
)
async def test_a_credential_that_differs_in_any_part_is_verified_for_itself(world: World, changed: Any) -> None:
    genuine = load(world.server.kubeconfig).access()
    for access, status in ((genuine, 303), (changed(genuine), 401)):
        ticket = world.dashboard.sessions.issue_ticket(ViewerCredential(access))
        reply = await world.browser().get(f"/enter?ticket={ticket}")
        assert reply.status == status, reply.text


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "", "http://127.0.0.1:1", "http://localhost.evil"])
async def test_a_form_of_another_site_changes_nothing(world: World, origin: str) -> None:
    browser = await world.signed_in()
    csrf = (await browser.get("/clusters")).csrf
    for path in ("/login", "/logout", "/rollouts/rollout/fleet/x/abort"):
        reply = await browser.post(path, {"csrf": csrf, "token": world.server.token}, Origin=origin)
        assert (reply.status, "another site" in reply.text) == (403, True)
    assert (await browser.get("/clusters")).status == 200


async def test_a_name_that_is_not_ours_is_refused(world: World) -> None:
    browser = await world.signed_in()
    for host in ("evil.example", "127.0.0.1", "localhost:1", "127.0.0.1.nip.io"):
        reply = await browser.get("/clusters", Host=host)
        assert reply.status == 421 and "kubernetes-admin" not in reply.text


async def test_only_get_and_post_are_served(world: World) -> None:
    browser = await world.signed_in()
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS"):
        reply = await browser._ask(method, "/clusters", None, {"Origin": world.base})
        assert reply.status == 405


@pytest.mark.parametrize(
    "path", ["/clusters", "/login", "/nothing", "/static/hortus.js", "/clusters/x/y/z", "/static/..%2Fserver.py"]
)
async def test_every_answer_runs_our_scripts_alone_and_stands_in_no_frame(world: World, path: str) -> None:
    browser = await world.signed_in()
    reply = await browser.get(path)
    policy = reply.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
    assert reply.headers["X-Content-Type-Options"] == "nosniff"
    assert path.startswith("/static/hortus") or reply.headers["Cache-Control"] == "no-store"
    assert "<script>" not in reply.text and " style=" not in reply.text and " onclick" not in reply.text


@pytest.mark.parametrize(
    "target",
    ["//evil.example", "https://evil.example", "/\\evil.example", "\\\\evil", "/a b", "/é", "javascript:x", ""],
)
def test_no_sign_in_ends_on_a_foreign_site(target: str) -> None:
    assert local_path(target) == "/clusters"
    assert local_path("/rollouts?q=a%20b") == "/rollouts?q=a%20b"


async def test_programs_read_the_same_address_with_a_bearer_token(world: World) -> None:
    await make_cluster(world.admin, "one")
    browser = world.browser()
    reply = await browser.get("/clusters", Accept="application/json", Authorization=f"Bearer {world.server.token}")
    assert [row["name"] for row in reply.json["rows"]["items"]] == ["one"]
    refused = await browser.get("/clusters", Accept="application/json", Authorization="Bearer nosuchtoken")
    assert refused.status == 401 and "nosuchtoken" not in refused.text
