"""Watches of objects that other servers have, on servers that end them early or lose events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

import orjson
import pytest
from tests.waiting import until

from hortus.apiserver.aggregation.apiservices import RemoteApi, ServiceReference
from hortus.apiserver.aggregation.content import RemoteContent, RemoteResource
from hortus.apiserver.aggregation.documents import RemoteAnswer, RemoteDocuments, RemoteRequests
from hortus.apiserver.aggregation.servers import Unreachable
from hortus.apiserver.aggregation.watching import RemoteChange, RemoteWatches
from hortus.apiserver.registrations import CUSTOM
from hortus.kube.objects import Object
from hortus.testing import FakeClock

API = RemoteApi("g.example.com", "v1", ServiceReference("default", "behind", 443), b"", True, CUSTOM, True)
THINGS = RemoteResource(API, "things", "Thing", True, frozenset({"delete", "list", "watch"}))


def thing(name: str, uid: str) -> Object:
    return {"metadata": {"namespace": "default", "name": name, "uid": uid}}


class Server(RemoteContent, RemoteRequests, RemoteDocuments):
    """One resource whose objects are `objects`. A watch lasts until the test has put None, or an exception, into
    `events`."""

    def __init__(self) -> None:
        self.objects: list[Object] = []
        self.served = [THINGS]
        self.registered = True
        self.lists = self.watches = 0
        self.events: asyncio.Queue[Object | Exception | None] = asyncio.Queue()

    def on_change(self, listener: Callable[[str], None]) -> None:
        """Has no effect: tests call `follow`."""

    def resources(self, cluster: str) -> Iterator[RemoteResource]:
        return iter(self.served)

    def serves(self, cluster: str, group: str, version: str) -> bool:
        return self.registered

    async def ask(self, *args: Any, **options: Any) -> RemoteAnswer:
        self.lists += 1
        return RemoteAnswer(200, {}, orjson.dumps({"metadata": {"resourceVersion": "5"}, "items": self.objects}))

    async def lines(self, *args: Any, **options: Any) -> AsyncIterator[bytes]:
        self.watches += 1
        while (event := await self.events.get()) is not None:
            if isinstance(event, Exception):
                raise event
            yield orjson.dumps(event)


class Watching:
    def __init__(self, server: Server) -> None:
        self.clock = FakeClock()
        self.changes: list[tuple[str, str, bool]] = []
        self.ended: list[str] = []
        self.watches = RemoteWatches(
            server, server, server, self._look, lambda cluster, resource: self.ended.append(resource.plural), self.clock
        )

    def _look(self, change: RemoteChange) -> None:
        self.changes.append((change.metadata["name"], change.metadata["uid"], change.gone))

    def taken(self) -> Sequence[tuple[str, str, bool]]:
        """The changes since the last call."""
        found, self.changes = self.changes, []
        return found


@pytest.fixture
async def server() -> Server:
    return Server()


@pytest.fixture
async def watching(server: Server) -> AsyncIterator[Watching]:
    found = Watching(server)
    yield found
    await found.watches.stop()


async def test_a_watch_that_ends_at_once_is_begun_again_ever_more_slowly(server: Server, watching: Watching) -> None:
    for _ in range(100):
        server.events.put_nowait(None)
    watching.watches.follow("root")
    await watching.clock.settle()
    assert (server.lists, server.watches) == (1, 1)
    await watching.clock.advance(60)
    assert server.lists == server.watches
    assert 6 <= server.watches <= 9


async def test_a_watch_that_lasted_goes_on_at_once_from_its_last_revision(server: Server, watching: Watching) -> None:
    watching.watches.follow("root")
    for _ in range(3):
        await watching.clock.advance(300)
        server.events.put_nowait(None)
    await watching.clock.settle()
    assert (server.lists, server.watches) == (1, 4)


async def test_objects_that_went_while_there_was_no_watch_are_shown_as_gone(server: Server, watching: Watching) -> None:
    server.objects = [thing("kept", "1"), thing("gone", "2"), thing("replaced", "3")]
    watching.watches.follow("root")
    server.events.put_nowait({"type": "ADDED", "object": thing("added", "4")})
    server.events.put_nowait({"type": "DELETED", "object": thing("seen", "5")})
    await watching.clock.settle()
    assert watching.taken() == [
        ("kept", "1", False),
        ("gone", "2", False),
        ("replaced", "3", False),
        ("added", "4", False),
        ("seen", "5", True),
    ]
    server.objects = [thing("kept", "1"), thing("replaced", "6")]
    server.events.put_nowait(Unreachable("EOF"))
    await watching.clock.advance(1)
    found = watching.taken()
    assert sorted(found[:2]) == [("added", "4", True), ("gone", "2", True)]
    assert found[2:] == [("kept", "1", False), ("replaced", "3", True), ("replaced", "6", False)]


async def test_objects_that_went_while_their_server_was_unavailable_are_shown_as_gone(
    server: Server, watching: Watching
) -> None:
    server.objects = [thing("gone", "1")]
    watching.watches.follow("root")
    await watching.clock.settle()
    server.served = []
    watching.watches.follow("root")
    assert watching.ended == ["things"]
    server.objects, server.served = [], [THINGS]
    watching.taken()
    watching.watches.follow("root")
    await watching.clock.settle()
    assert watching.taken() == [("gone", "1", True)]


async def test_nothing_is_kept_of_a_version_that_has_no_apiservice(server: Server, watching: Watching) -> None:
    server.objects = [thing("gone", "1")]
    watching.watches.follow("root")
    await watching.clock.settle()
    server.served, server.registered = [], False
    watching.watches.follow("root")
    server.objects, server.served, server.registered = [], [THINGS], True
    watching.taken()
    watching.watches.follow("root")
    await until(lambda: server.lists == 2)
    assert watching.taken() == []


async def test_a_watch_that_outlasts_its_time_is_given_up(
    server: Server, watching: Watching, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hortus.apiserver.aggregation.watching._WATCH_SECONDS", 1)
    monkeypatch.setattr("hortus.apiserver.aggregation.watching._MORE_SECONDS", -1)
    watching.watches.follow("root")
    await until(lambda: watching.clock.sleepers == 1)
    await watching.clock.advance(1)
    assert (server.lists, server.watches) == (2, 2)
