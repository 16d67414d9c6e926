"""Watches against a scripted server on a real socket."""

from __future__ import annotations

import asyncio

import orjson
import pytest
from aiohttp import web

from hortus.kube import errors
from hortus.kube.client import Client
from hortus.kube.objects import Object, Resource
from hortus.kube.transport import ConnectionSettings
from hortus.kube.watch import LineSplitter

from .scripted import Handler, Script, failure, serving

CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap")


def event(kind: str, version: str, **data: str) -> bytes:
    obj: Object = {"kind": "ConfigMap", "metadata": {"name": "one", "resourceVersion": version}, "data": data}
    return orjson.dumps({"type": kind, "object": obj}) + b"\n"


def stream(*pieces: bytes, abort: bool = False, until: asyncio.Event | None = None) -> Handler:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
        if until is not None:
            await until.wait()
        if abort and request.transport is not None:
            request.transport.abort()
        return response

    return answer


async def collect(client: Client, count: int, version: str = "1") -> list[tuple[str, str]]:
    found = []
    async with client.watch(CONFIGMAPS, resource_version=version) as events:
        async for kind, obj in events:
            found.append((kind, obj["metadata"]["resourceVersion"]))
            if len(found) == count:
                break
    return found


async def test_events_come_whatever_the_pieces() -> None:
    text = event("ADDED", "2") + event("MODIFIED", "3", x="ü" * 100) + event("DELETED", "4")
    cut = [text[at : at + 7] for at in range(0, len(text), 7)]
    async with serving(Script(stream(*cut))) as access, Client(access) as client:
        assert await collect(client, 3) == [("ADDED", "2"), ("MODIFIED", "3"), ("DELETED", "4")]


async def test_a_watch_continues_from_the_last_version_when_the_server_ends_the_stream() -> None:
    script = Script(stream(event("ADDED", "2"), event("BOOKMARK", "8")), stream(event("MODIFIED", "9")))
    async with serving(script) as access, Client(access) as client:
        assert await collect(client, 3) == [("ADDED", "2"), ("BOOKMARK", "8"), ("MODIFIED", "9")]
    assert [request.query["resourceVersion"] for request in script.requests] == ["1", "8"]
    assert all(300 <= int(request.query["timeoutSeconds"]) <= 600 for request in script.requests)
    assert script.requests[0].query["allowWatchBookmarks"] == "true"


async def test_a_stream_lasts_one_to_two_watch_periods() -> None:
    script = Script(stream(event("ADDED", "2")))
    settings = ConnectionSettings(watch_period=3600.0)
    async with serving(script) as access, Client(access, settings=settings) as client:
        await collect(client, 1)
    assert 3600 <= int(script.requests[0].query["timeoutSeconds"]) <= 7200


async def test_a_watch_without_a_version_ends_instead_of_skipping_events() -> None:
    script = Script(stream(event("ADDED", "5")))
    async with serving(script) as access, Client(access) as client:
        found = [event.type async for event in client.watch(CONFIGMAPS)]
    assert found == ["ADDED"]


async def test_initial_events_are_asked_for_once() -> None:
    script = Script(stream(event("ADDED", "5"), event("BOOKMARK", "6")), stream(event("MODIFIED", "7")))
    async with serving(script) as access, Client(access) as client:
        events = client.watch(CONFIGMAPS, initial_events=True)
        found = [(await anext(events)).type for _ in range(3)]
        await events.aclose()
    assert found == ["ADDED", "BOOKMARK", "MODIFIED"]
    assert [request.query.get("sendInitialEvents") for request in script.requests] == ["true", None]


GONE = b'{"type":"ERROR","object":{"kind":"Status","status":"Failure","code":410,"reason":"%s","message":"old"}}\n'


@pytest.mark.parametrize("reason", [b"Gone", b"Expired", b""])
async def test_410_in_a_stream_is_expired(reason: bytes) -> None:
    async with serving(Script(stream(event("ADDED", "2"), GONE % reason))) as access, Client(access) as client:
        watch = client.watch(CONFIGMAPS, resource_version="1")
        assert (await anext(watch)).type == "ADDED"
        with pytest.raises(errors.Expired, match="old"):
            await anext(watch)
        assert watch.resource_version == "2"


async def test_410_as_the_answer_is_expired() -> None:
    async with serving(Script(failure(410, "Gone"))) as access, Client(access) as client:
        with pytest.raises(errors.Expired):
            await collect(client, 1)


async def test_other_errors_in_a_stream_keep_their_class() -> None:
    line = b'{"type":"ERROR","object":{"kind":"Status","code":403,"reason":"Forbidden","message":"no more"}}\n'
    async with serving(Script(stream(line))) as access, Client(access) as client:
        with pytest.raises(errors.Forbidden, match="no more"):
            await collect(client, 1)


@pytest.mark.parametrize(
    "text",
    [
        event("ADDED", "2")[:-30],
        b"<html>\n",
        b"[]\n",
        b'{"type":"ADDED"}\n',
        b'{"type":"ADDED","object":3}\n',
        b'{"type":"ADDED","object":{"metadata":{"resourceVersion":3}}}\n',
        b'{"type":"NEWS","object":{"metadata":{"resourceVersion":"3"}}}\n',
        b'{"type":"ERROR","object":null}\n',
    ],
)
async def test_anything_but_events_is_garbage(text: bytes) -> None:
    async with serving(Script(stream(text))) as access, Client(access) as client:
        with pytest.raises(errors.Garbage, match=client.host):
            await collect(client, 1)


async def test_a_broken_connection_is_raised_and_the_version_is_kept() -> None:
    async with serving(Script(stream(event("ADDED", "2"), abort=True))) as access, Client(access) as client:
        watch = client.watch(CONFIGMAPS, resource_version="1")
        with pytest.raises(errors.ConnectionFailed):
            async for _ in watch:
                pass
        assert watch.resource_version == "2"


async def test_an_event_beyond_the_limit_is_refused() -> None:
    settings = ConnectionSettings(max_event=1000)
    script = Script(stream(event("ADDED", "2", x="y" * 1200)[:-1]))
    async with serving(script) as access, Client(access, settings=settings) as client:
        with pytest.raises(errors.ResponseTooLarge, match="1000"):
            await collect(client, 1)


async def test_an_event_of_a_megabyte_is_fine() -> None:
    async with serving(Script(stream(event("ADDED", "2", x="y" * (1 << 20))))) as access, Client(access) as client:
        assert await collect(client, 1) == [("ADDED", "2")]


async def test_watches_do_not_take_the_places_of_calls() -> None:
    until = asyncio.Event()
    one = {"metadata": {"name": "one", "namespace": "default"}}

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.query.get("watch"):
            return await stream(event("ADDED", "2"), until=until)(request)
        return web.Response(body=orjson.dumps(one))

    async with serving(answer) as access, Client(access, settings=ConnectionSettings(connections=1)) as client:
        watches = [client.watch(CONFIGMAPS, resource_version="1") for _ in range(5)]
        for watch in watches:
            await anext(watch)
        assert await client.get(CONFIGMAPS, "one", "default") == one
        until.set()
        for watch in watches:
            await watch.aclose()


async def test_cancelling_a_watch_closes_its_connection() -> None:
    gone = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(event("ADDED", "2"))
        try:
            await asyncio.Event().wait()
        finally:
            gone.set()
        return response

    seen = asyncio.Event()

    async def follow(client: Client) -> None:
        async for _ in client.watch(CONFIGMAPS, resource_version="1"):
            seen.set()

    async with serving(answer) as access, Client(access) as client:
        task = asyncio.create_task(follow(client))
        await seen.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert seen.is_set()


def test_the_splitter_holds_half_a_line_only() -> None:
    splitter = LineSplitter("h", 10)
    assert splitter.feed(b"ab\n\ncd") == [b"ab"]
    assert splitter.feed(b"ef\ngh\n") == [b"cdef", b"gh"]
    splitter.finish()


async def test_a_watch_without_a_byte_for_two_bookmark_periods_is_given_up_and_keeps_its_version() -> None:
    never = asyncio.Event()
    script = Script(stream(event("ADDED", "2"), until=never))
    settings = ConnectionSettings(bookmark_period=1.0)
    async with serving(script) as access, Client(access, settings=settings) as client:
        events = client.watch(CONFIGMAPS, resource_version="1")
        assert (await anext(events)).type == "ADDED"
        with pytest.raises(errors.RequestTimedOut, match=r"within 2 s"):
            async with asyncio.timeout(60):
                await anext(events)
        assert events.resource_version == "2"
        never.set()


async def test_a_watch_that_asked_for_no_bookmarks_may_be_silent() -> None:
    go_on = asyncio.Event()
    script = Script(stream(event("ADDED", "2"), until=go_on), stream(event("ADDED", "3")))
    settings = ConnectionSettings(bookmark_period=0.02)
    async with (
        serving(script) as access,
        Client(access, settings=settings) as client,
        client.watch(CONFIGMAPS, resource_version="1", bookmarks=False) as events,
    ):
        await anext(events)
        waiting = asyncio.ensure_future(anext(events))
        asyncio.get_running_loop().call_later(0.2, go_on.set)
        assert (await waiting).object["metadata"]["resourceVersion"] == "3"
