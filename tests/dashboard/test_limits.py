"""Limits of one viewer, so that none takes from others: sessions, credentials, namespaces."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest
from tests.dashboard.conftest import ACCOUNTS, FLEET, HOME, NAMESPACES, Browser, World
from tests.dashboard.test_streams import event_with
from tests.waiting import until

from hortus.dashboard import server, sessions, viewers
from hortus.kube import Client, Resource
from hortus.kube.errors import ServiceUnavailable
from hortus.kube.objects import Object

EVERYTHING = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}]


async def another_token(world: World, account: str) -> str:
    made = await world.admin.create_subresource(ACCOUNTS, account, "token", {"spec": {"expirationSeconds": 3600}}, HOME)
    return str(made["status"]["token"])


async def use_tokens(world: World, account: str, count: int) -> None:
    for _ in range(count):
        token = await another_token(world, account)
        reply = await world.browser().get("/clusters", Accept="application/json", Authorization=f"Bearer {token}")
        assert reply.status == 200


async def is_open(browser: Browser) -> bool:
    return (await browser.get("/clusters")).status == 200


async def test_sign_ins_of_one_user_end_the_oldest_session_of_that_user_alone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "_MOST_OF_USER", 4)
    other = await world.signed_in()
    first = await world.signed_in(await world.account("eve"))
    second = await world.signed_in(await another_token(world, "eve"))
    assert await is_open(first)  # so it is used last
    for _ in range(3):
        last = await world.signed_in(await another_token(world, "eve"))
    assert [await is_open(one) for one in (other, first, second, last)] == [True, True, False, True]


async def test_where_there_are_too_many_sessions_one_of_whoever_has_most_ends(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "_MOST", 6)
    alone = await world.signed_in(await world.account("alone"))
    token = await world.account("eve")
    crowd = [await world.signed_in(token) for _ in range(4)]
    more = [await world.signed_in(await world.account(name)) for name in ("ann", "bob", "cy")]
    assert [await is_open(one) for one in (alone, *crowd, *more)] == [True, False, False, True, True, True, True, True]


async def test_tokens_of_one_user_keep_few_viewers(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(viewers, "_MOST_OF_USER", 3)
    signed = await world.signed_in(await world.account("eve", EVERYTHING))
    await use_tokens(world, "eve", 6)
    assert len(world.dashboard._viewers._known) == 4  # that of the session, and the latest three
    assert await is_open(signed)


async def test_two_who_make_room_at_once_end_each_viewer_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    await world.account("eve", EVERYTHING)
    await use_tokens(world, "eve", 4)
    monkeypatch.setattr(viewers, "_MOST_OF_USER", 2)
    known = world.dashboard._viewers
    (user,) = {one.username for one in known._known.values()}
    await asyncio.gather(known._make_room(user), known._make_room(user))
    assert len(known._known) == 1


async def test_two_sweeps_at_once_end_each_viewer_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    await world.account("eve", EVERYTHING)
    await use_tokens(world, "eve", 3)
    monkeypatch.setattr(viewers, "IDLE", 0.0)
    known = world.dashboard._viewers
    await asyncio.gather(known.sweep(), known.sweep())
    assert known._known == {}


async def test_a_viewer_watches_few_namespaces_at_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(viewers, "MOST_NAMESPACES", 3)
    browser = await world.signed_in()
    (viewer,) = world.dashboard._viewers._known.values()
    places = [HOME, FLEET, "default", "kube-system", "kube-public"]
    for place in places:
        assert (await browser.get(f"/clusters?namespace={place}")).status == 200
    assert list(viewer._watches) == places[-3:]
    async with AsyncExitStack() as open_pages:
        for place in places[:3]:
            events = await open_pages.enter_async_context(browser.stream(f"/clusters?namespace={place}"))
            await event_with(events, "Clusters")
        late = await browser.get("/clusters?namespace=kube-system", Accept="application/json")
        assert late.status == 429 and "close a page" in late.json["error"]
        assert (await browser.get("/stream?at=/clusters?namespace%3Dkube-system")).status == 429
        assert (await browser.get(f"/clusters?namespace={HOME}")).status == 200
    assert await until(lambda: is_open(browser))  # once the server has seen that the pages are closed


async def test_a_user_has_many_pages_open_and_not_any_number(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_MOST_PAGES", 3)
    browser, other = await world.signed_in(await world.account("eve")), await world.signed_in()
    async with AsyncExitStack() as open_pages:
        for _ in range(3):
            events = await open_pages.enter_async_context(browser.stream("/clusters"))
            await event_with(events, "Clusters")
        late = await browser.get("/stream?at=/clusters")
        assert late.status == 429 and "close a page" in late.text
        async with other.stream("/clusters") as events:
            await event_with(events, "Clusters")
        assert await is_open(browser)


@pytest.mark.parametrize("namespace", ["nowhere", "x" * 63])
async def test_a_namespace_that_does_not_exist_is_not_watched(world: World, namespace: str) -> None:
    browser = await world.signed_in()
    document = await browser.document(f"/clusters?namespace={namespace}")
    (viewer,) = world.dashboard._viewers._known.values()
    kinds = {kind.resource.kind: kind for kind in viewer._watches[namespace]._running}
    assert not any(kind.resource.namespaced for kind in kinds.values())
    assert f"there is no namespace {namespace}" in " ".join(document["notes"])
    await world.admin.create(NAMESPACES, {"metadata": {"name": namespace}})
    again = await world.signed_in(await another_token_of_an_admin(world))
    assert (await again.document(f"/clusters?namespace={namespace}"))["notes"] == []
    await world.admin.delete(NAMESPACES, namespace)


async def another_token_of_an_admin(world: World) -> str:
    return await world.account("second-admin", [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}])


@pytest.mark.parametrize("namespace", ["UPPER", "a b", "a/b", "..", "x" * 64, "-x"])
async def test_a_text_that_names_no_namespace_is_refused(world: World, namespace: str) -> None:
    reply = await (await world.signed_in()).get(f"/clusters?namespace={namespace}".replace(" ", "%20"))
    assert reply.status == 400 and "namespace" in reply.text


async def test_a_viewer_who_may_not_read_the_namespace_itself_sees_what_is_in_it(world: World) -> None:
    rules = [{"apiGroups": ["*"], "resources": ["gardenerclusters"], "verbs": ["list", "watch"]}]
    browser = await world.signed_in(await world.account("narrow", rules, namespace=HOME))
    notes = (await browser.document(f"/clusters?namespace={HOME}"))["notes"]
    assert notes and not any("gardenerclusters" in note or "there is no namespace" in note for note in notes)


async def test_a_namespace_that_cannot_be_read_is_taken_to_exist(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    browser, get, asked = await world.signed_in(), Client.get, list[str]()

    async def fails(client: Client, resource: Resource, name: str, *rest: Any, **options: Any) -> Object:
        if resource.kind == "Namespace":
            asked.append(name)
            raise ServiceUnavailable("the storage is away")
        return await get(client, resource, name, *rest, **options)

    monkeypatch.setattr(Client, "get", fails)
    for _ in range(2):
        assert (await browser.document(f"/clusters?namespace={HOME}"))["notes"] == []
    assert asked == [HOME]  # the kinds are settled by the first answer


async def test_few_contents_of_pages_that_are_read_are_held_for_a_viewer(world: World) -> None:
    browser = await world.signed_in()
    for number in range(6):
        assert (await browser.get(f"/health?q=text-{number}")).status == 200
    (held,) = world.dashboard._composer._read_last.values()
    assert len(held) == 4
