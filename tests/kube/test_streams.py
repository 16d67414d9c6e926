"""Bookmarks that are taken where they arrive: the same in the end as with each as an event."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import orjson
import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st

from hortus.kube import errors
from hortus.kube.client import Client
from hortus.kube.errors import KubeError
from hortus.kube.objects import Resource
from hortus.kube.streams import sole_line
from hortus.kube.transport import ConnectionSettings

from .feeding import FedTransport, bookmark, chunk
from .scripted import Script, serving

CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap")
SETTINGS = ConnectionSettings(max_event=400)


class Seen(NamedTuple):
    """All that a watch handed out, in order, and what it knew in the end."""

    handed_out: list[tuple[str, str]]
    version: str
    error: str


class Counted(NamedTuple):
    seen: Seen
    absorbed: int


async def watched(pieces: Sequence[bytes], *, absorb: bool, turns: Sequence[int] = ()) -> Counted:
    """A whole watch of these bytes; so many turns of the loop pass after each piece."""
    transport = FedTransport(SETTINGS)
    log: list[tuple[str, str]] = []
    absorbed: list[str] = []

    def note(kind: str, version: str) -> None:
        log.append((kind, version))

    def on_bookmark(version: str) -> None:
        note("BOOKMARK", version)
        absorbed.append(version)

    options: dict[str, Any] = {"on_bookmark": on_bookmark} if absorb else {}
    watch = Client.over(transport).watch(CONFIGMAPS, resource_version="1", **options)

    async def read() -> str:
        try:
            async for event in watch:
                note(event.type, event.object["metadata"]["resourceVersion"])
        except KubeError as error:
            return str(error)
        return ""

    task = asyncio.ensure_future(read())
    await _turn(3)
    for number, piece in enumerate(pieces):
        transport.handler.data_received(piece)
        await _turn(turns[number % len(turns)] if turns else 3)
    await _turn(10)
    version = watch.resource_version
    await transport.close()
    return Counted(Seen(log, version, await task), len(absorbed))


async def _turn(times: int) -> None:
    for _ in range(times):
        await asyncio.sleep(0)


VERSIONS = st.integers(0, 10**20).map(str) | st.sampled_from(["", "x"])
METADATA = st.fixed_dictionaries(
    {"resourceVersion": VERSIONS | st.sampled_from([3, None])},
    optional={
        "name": st.just("one"),
        "annotations": st.sampled_from([{}, None, {"k8s.io/initial-events-end": "true"}]),
        "creationTimestamp": st.none(),
    },
)
EVENTS = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["BOOKMARK", "BOOKMARK", "BOOKMARK", "ADDED", "MODIFIED", "DELETED", "NEWS"]),
        "object": st.fixed_dictionaries(
            {"kind": st.just("ConfigMap"), "metadata": METADATA}, optional={"data": st.just({"x": "ü" * 200})}
        ),
    }
)
REFUSALS = st.sampled_from([410, 403]).map(
    lambda code: {"type": "ERROR", "object": {"kind": "Status", "code": code, "message": "no"}}
)
ODD = st.sampled_from(
    [
        b"\n",
        b"<html>\n",
        b'{"type":"BOOKMARK"}\n',
        b'{"type":"BOOKMARK","object":null}\n',
        b'{"type":"BOOKMARK","object":{"metadata":["resourceVersion"]}}\n',
        b'{"type":"BOOKMARK","type":"ERROR","object":{"code":410}}\n',
        b'{"type":"BOOKMARK","type":"ADDED","object":{"metadata":{"name":"one","resourceVersion":"7"}}}\n',
        b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"5"}}} \n',
        b'{"type":"BOOKMARK","object":' + b"[" * 2000 + b"\n",
        b'{ "type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "6"}} }\n',
    ]
)
LINES = (
    VERSIONS.map(bookmark)
    | EVENTS.map(lambda event: orjson.dumps(event) + b"\n")
    | REFUSALS.map(lambda event: orjson.dumps(event) + b"\n")
    | ODD
)


@st.composite
def wires(draw: st.DrawFn) -> list[bytes]:
    """Lines in chunks, mostly one in each, and the bytes in pieces, mostly one for each chunk."""
    lines = draw(st.lists(VERSIONS.map(bookmark) | LINES, min_size=1, max_size=12))
    pieces: list[bytes] = []
    for line in lines:
        how = draw(st.sampled_from(["alone", "alone", "alone", "joined", "two chunks", "two pieces"]))
        cut = draw(st.integers(1, len(line)))
        if how == "two chunks" and cut < len(line):
            pieces += [chunk(line[:cut]), chunk(line[cut:])]
        elif how == "two pieces":
            whole = chunk(line)
            pieces += [whole[:cut], whole[cut:]]
        elif how == "joined" and pieces:
            pieces[-1] += chunk(line)
        else:
            pieces.append(chunk(line))
    return pieces


@settings(max_examples=400)
@given(wires(), st.lists(st.integers(0, 3), max_size=4))
def test_a_watch_that_absorbs_bookmarks_hands_out_the_same_in_the_same_order(
    pieces: list[bytes], turns: list[int]
) -> None:
    plain = asyncio.run(watched(pieces, absorb=False, turns=turns))
    quick = asyncio.run(watched(pieces, absorb=True, turns=turns))
    assert quick.seen == plain.seen


def test_every_bookmark_after_the_first_is_absorbed_when_it_comes_alone() -> None:
    pieces = [chunk(bookmark(str(version))) for version in range(2, 12)]
    found = asyncio.run(watched(pieces, absorb=True))
    assert found.absorbed == 9
    assert found.seen == Seen([("BOOKMARK", str(version)) for version in range(2, 12)], "11", found.seen.error)


def test_a_bookmark_behind_an_event_that_is_not_read_yet_waits_for_it() -> None:
    event = b'{"type":"ADDED","object":{"metadata":{"name":"one","resourceVersion":"5"}}}\n'
    pieces = [chunk(bookmark("4")), chunk(event), chunk(bookmark("6")), chunk(bookmark("7"))]
    found = asyncio.run(watched(pieces, absorb=True, turns=[3, 0, 3, 3]))
    assert found.seen.handed_out == [("BOOKMARK", "4"), ("ADDED", "5"), ("BOOKMARK", "6"), ("BOOKMARK", "7")]
    assert found.absorbed == 1


@given(st.binary(max_size=40))
def test_a_sole_line_is_what_a_chunk_of_one_line_holds(line: bytes) -> None:
    found = sole_line(chunk(line + b"\n"))
    assert found == (None if b"\n" in line else line)


@pytest.mark.parametrize(
    "data", [b"", b"0\r\n\r\n", b"2\r\na\n", b"3\r\na\n\r\n", b"1\r\na\n\r\n", b"2;x\r\na\n\r\n", b"2\r\nab\r\n"]
)
def test_bytes_of_another_form_are_no_sole_line(data: bytes) -> None:
    assert sole_line(data) is None


class _Timers:
    """An event loop whose time a test moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.set: list[tuple[float, Callable[[], None]]] = []

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, call: Callable[[], None]) -> SimpleNamespace:
        entry = (self.now + delay, call)
        self.set.append(entry)
        return SimpleNamespace(cancel=lambda: self.set.remove(entry) if entry in self.set else None)

    def call_at(self, end: float, call: Callable[[], None]) -> SimpleNamespace:
        return self.call_later(end - self.now, call)

    def create_future(self) -> asyncio.Future[None]:
        return asyncio.get_running_loop().create_future()

    def move(self, seconds: float) -> None:
        self.now += seconds
        for entry in [entry for entry in self.set if entry[0] <= self.now]:
            self.set.remove(entry)
            entry[1]()


async def test_a_stream_is_given_up_after_silence_and_absorbed_bookmarks_are_none() -> None:
    timers = _Timers()
    transport = FedTransport(loop=cast(Any, timers))
    watch = Client.over(transport).watch(CONFIGMAPS, resource_version="1", on_bookmark=lambda _: None)
    task = asyncio.ensure_future(anext(watch))
    await _turn(3)
    transport.handler.data_received(chunk(bookmark("2")))
    assert (await task).type == "BOOKMARK"
    task = asyncio.ensure_future(anext(watch))
    await _turn(3)
    for version in range(3, 33):
        timers.move(60.0)
        transport.handler.data_received(chunk(bookmark(str(version))))
    assert watch.resource_version == "32"
    timers.move(119.0)
    await _turn(3)
    assert not task.done()
    assert len(timers.set) == 1
    timers.move(6.0)
    with pytest.raises(errors.RequestTimedOut, match="120 s"):
        await task


async def test_a_watch_that_ends_goes_on_from_the_bookmark_that_was_absorbed() -> None:
    got = asyncio.Event()

    async def bookmarks(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        for version in ("2", "3", "9"):
            await response.write(bookmark(version))
            await got.wait()
            got.clear()
        return response

    async def event(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        await response.write(b'{"type":"ADDED","object":{"metadata":{"name":"one","resourceVersion":"10"}}}\n')
        return response

    script = Script(bookmarks, event)
    async with serving(script) as access, Client(access) as client:
        watch = client.watch(CONFIGMAPS, resource_version="1", on_bookmark=lambda _: got.set())
        reading = asyncio.ensure_future(anext(watch))
        for _ in range(2):  # the first may come with the head of the answer
            assert (await reading).type == "BOOKMARK"
            reading = asyncio.ensure_future(anext(watch))
            await _turn(3)
            got.set()
        assert (await reading).type == "ADDED"
        await watch.aclose()
    assert [request.query["resourceVersion"] for request in script.requests] == ["1", "9"]


async def test_the_timers_of_many_streams_end_together() -> None:
    timers = _Timers()
    handlers = [FedTransport(loop=cast(Any, timers)).handler for _ in range(10)]
    for handler in handlers:
        handler.start_timeout()
        timers.move(0.3)
    timers.move(60.0)
    for handler in handlers:
        timers.move(0.3)
        handler.data_received(b"")
        handler._reschedule_timeout()
    timers.move(60.0)
    assert len({end for end, _ in timers.set}) <= 2
    assert len(timers.set) == len(handlers)
    assert all(
        0.0 <= end - (handler._heard + 120.0) <= 5.0 for (end, _), handler in zip(timers.set, handlers, strict=True)
    )
