"""One stream of a cluster has bookmarks for all; what it shows, and what its end brings, the others share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from tests.engine.remote.test_blame import Drawer, pool_on
from tests.engine.remote.world import CONFIGMAPS, listening, place_of, sane_then
from tests.waiting import until

from hortus.engine.cache import Cache
from hortus.engine.reflector import Reflector, Selection
from hortus.engine.remote import RemotePool
from hortus.kube.clock import SystemClock
from hortus.kube.errors import RequestTimedOut
from hortus.kube.objects import Resource
from hortus.kube.watch import Watch

NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
PLACE = place_of("one")
BOOKMARK = b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"%d"}}}\n'
EMPTY = b'{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[]}'


class Server:
    """Answers lists with nothing, keeps the targets of watches, and sends to them what a test wants."""

    def __init__(self) -> None:
        self.targets: list[str] = []
        self.open: dict[str, asyncio.StreamWriter] = {}
        self._ended: dict[str, asyncio.Event] = {}

    async def __call__(self, head: bytes, writer: asyncio.StreamWriter) -> None:
        target = head.split(b" ")[1].decode()
        if "watch=true" not in target:
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(EMPTY)
            )
            writer.write(EMPTY)
            return
        self.targets.append(target)
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        self.open[plural_of(target)] = writer
        ended = self._ended[plural_of(target)] = asyncio.Event()
        await ended.wait()

    def send(self, plural: str, line: bytes) -> None:
        self.open[plural].write(b"%x\r\n%s\r\n" % (len(line), line))

    def end(self, plural: str) -> None:
        """End a stream in good order, as at its time limit."""
        self.open.pop(plural).write(b"0\r\n\r\n")
        self._ended[plural].set()

    def with_bookmarks(self) -> list[bool]:
        """One entry a watch, in their order: True when it asked for bookmarks."""
        return ["allowWatchBookmarks=true" in target for target in self.targets]


def plural_of(target: str) -> str:
    return target.partition("?")[0].rpartition("/")[2]


@asynccontextmanager
async def watched(**options: float) -> AsyncIterator[tuple[Server, RemotePool]]:
    server, drawer = Server(), Drawer()
    async with listening(sane_then(server)) as kubeconfig, pool_on(drawer, **options) as pool:
        drawer.put(PLACE, kubeconfig)
        yield server, pool


@asynccontextmanager
async def reading(
    pool: RemotePool, resource: Resource, noted: Callable[[str], None]
) -> AsyncIterator[asyncio.Task[None]]:
    """A task that reads a watch; `noted` gets the versions of its bookmarks."""
    client = pool.watcher(PLACE)

    async def read(events: Watch) -> None:
        async for event in events:
            noted(event.object["metadata"]["resourceVersion"])

    task = asyncio.create_task(read(client.watch(resource, resource_version="5", on_bookmark=noted)))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await client.close()


async def test_the_second_stream_of_a_cluster_asks_for_no_bookmarks_and_hears_once_that_it_lives() -> None:
    first: list[str] = []
    second: list[str] = []
    async with watched() as (server, pool), reading(pool, CONFIGMAPS, first.append):
        await until(lambda: "configmaps" in server.open)
        async with reading(pool, NAMESPACES, second.append):
            await until(lambda: "namespaces" in server.open)
            assert server.with_bookmarks() == [True, False]
            for version in (6, 7):
                seen = len(first)
                server.send("configmaps", BOOKMARK % version)
                await until(lambda seen=seen: len(first) > seen)
            await until(lambda: second)
            server.send("configmaps", BOOKMARK % 8)
            await until(lambda: "8" in first)
            assert second == ["5"], "the version where it stands, once"


async def test_a_stream_that_falls_silent_ends_the_others_which_go_on_at_once() -> None:
    async with watched(bookmark_period=0.5) as (server, pool), reading(pool, CONFIGMAPS, lambda _: None) as silent:
        await until(lambda: "configmaps" in server.open)
        async with reading(pool, NAMESPACES, lambda _: None) as other:
            await until(lambda: len(server.targets) == 2)
            with pytest.raises(RequestTimedOut):
                await silent
            await until(lambda: len(server.targets) == 3)
            assert not other.done(), "it resumes, without an error for its reader"
            assert plural_of(server.targets[-1]) == "namespaces"
            assert server.with_bookmarks() == [True, False, True], "now it is the one with bookmarks"


async def test_the_reader_that_goes_on_keeps_the_bookmarks() -> None:
    async with watched() as (server, pool), reading(pool, CONFIGMAPS, lambda _: None):
        await until(lambda: "configmaps" in server.open)
        async with reading(pool, NAMESPACES, lambda _: None):
            await until(lambda: "namespaces" in server.open)
            server.send("configmaps", BOOKMARK % 6)
            server.end("configmaps")
            await until(lambda: len(server.targets) == 3)
            assert plural_of(server.targets[-1]) == "configmaps"
            assert server.with_bookmarks() == [True, False, True]


async def test_the_others_begin_again_when_the_one_with_bookmarks_is_gone_for_good() -> None:
    async with watched(bookmark_period=0.5) as (server, pool):
        async with reading(pool, CONFIGMAPS, lambda _: None):
            await until(lambda: "configmaps" in server.open)
            second = reading(pool, NAMESPACES, lambda _: None)
            task = await second.__aenter__()
            await until(lambda: "namespaces" in server.open)
        try:
            await until(lambda: len(server.targets) == 3)
            assert not task.done()
            assert server.with_bookmarks() == [True, False, True]
        finally:
            await second.__aexit__(None, None, None)


async def test_a_cache_whose_watch_failed_is_current_again_with_the_bookmarks_of_another() -> None:
    async with watched() as (server, pool), reading(pool, CONFIGMAPS, lambda _: None):
        await until(lambda: "configmaps" in server.open)
        cache, client = Cache("namespaces"), pool.watcher(PLACE)
        reflector = Reflector(client, Selection(NAMESPACES), cache, clock=SystemClock())
        running = asyncio.create_task(reflector.run())
        try:
            await until(lambda: "namespaces" in server.open)
            server.open.pop("namespaces").transport.abort()
            await until(lambda: reflector.problem is not None)
            await until(lambda: "namespaces" in server.open)
            assert reflector.problem is not None, "an accepted request is no proof"
            server.send("configmaps", BOOKMARK % 6)
            await until(lambda: reflector.problem is None)
            assert cache.has_synced
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await client.close()
