"""Events are deleted an hour after their last write, on each store, and watchers see it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from tests.apiserver.store.etcdserver import find_etcd, free_port, running_etcd
from tests.apiserver.wire import Wire, connected, names

from hortus.apiserver import ApiServerSettings
from hortus.apiserver.expiry import EventExpiry
from hortus.apiserver.resources.storage import Storage
from hortus.apiserver.store import (
    Backend,
    EtcdBackend,
    MemoryBackend,
    SqliteBackend,
    StoredRecord,
    StoreFailed,
    StoreKey,
    Value,
)
from hortus.apiserver.store.encoding import encode
from hortus.kube.objects import format_time
from hortus.testing import FakeClock
from hortus.testing.apiserver import started_apiserver

EVENTS = "root/core/events"
HOUR = 3600.0
STORES = ["memory", "sqlite", *(["etcd"] if find_etcd() else [])]

_ROOTS = (f"/expiry-{number}/" for number in itertools.count())

Opener = Callable[[], Awaitable[Backend]]


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    binary = find_etcd()
    assert binary is not None
    port = free_port()
    with running_etcd(binary, tmp_path_factory.mktemp("etcd"), port):
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(params=STORES)
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    """Opens the same store again and again."""
    root, memory = next(_ROOTS), MemoryBackend()

    async def opened() -> Backend:
        backend: Backend = memory
        if request.param == "sqlite":
            backend = SqliteBackend(tmp_path / "state.db")
        elif request.param == "etcd":
            backend = EtcdBackend([request.getfixturevalue("etcd")], root=root)
        await backend.start()
        return backend

    return opened


async def record(storage: Storage, clock: FakeClock, name: str, bucket: str = EVENTS, note: str = "") -> StoredRecord:
    key = StoreKey(bucket, f"default/{name}")
    metadata = {"name": name, "namespace": "default", "creationTimestamp": format_time(clock.now())}
    obj = {"apiVersion": "v1", "kind": "Event", "metadata": metadata, "message": note}
    return await storage.put(key, encode(obj), replaced=await storage.get(key))


async def gone(storage: Storage, after: int, count: int) -> list[str]:
    """The names of the next deleted objects, as a watch reports them."""
    found: list[str] = []
    async with asyncio.timeout(60), aclosing(storage.watch(EVENTS, after=after)) as watch:
        while len(found) < count:
            for change in await anext(watch):
                if change.record is None:
                    assert change.final is not None and b'"resourceVersion":"%d"' % change.revision in change.final
                    found.append(change.name)
    return found


async def test_an_event_is_deleted_an_hour_after_its_last_write_and_nothing_else_is(opener: Opener) -> None:
    clock, backend = FakeClock(), await opener()
    storage = Storage(backend)
    expiry = EventExpiry(storage, clock, HOUR)
    await expiry.start()
    first = await record(storage, clock, "old")
    await record(storage, clock, "renewed")
    await record(storage, clock, "other", "root/core/configmaps")
    await clock.advance(HOUR / 2)
    await record(storage, clock, "renewed", note="again")
    await record(storage, clock, "young", "elsewhere/core/events")
    await clock.advance(HOUR / 2 + 2)
    assert await gone(storage, first.revision, 1) == ["default/old"]
    assert [kept.name for kept in (await storage.list(EVENTS)).records] == ["default/renewed"]
    await clock.advance(HOUR / 2)
    assert await gone(storage, first.revision, 2) == ["default/old", "default/renewed"]
    assert await storage.count("root/core/configmaps") == 1
    await expiry.stop()
    await backend.close()


async def test_a_restart_neither_forgets_nor_restarts_the_hour(opener: Opener) -> None:
    clock, backend = FakeClock(), await opener()
    storage = Storage(backend)
    for name in ("a", "b", "c"):
        last = await record(storage, clock, name)
        await clock.advance(600)
    await backend.close()
    backend = await opener()
    storage = Storage(backend)
    expiry = EventExpiry(storage, clock, HOUR)
    await expiry.start()
    await clock.advance(HOUR - 1800 + 2)
    if backend.compacted < last.revision:
        assert await gone(storage, last.revision, 1) == ["default/a"]
    assert {kept.name for kept in (await storage.list(EVENTS)).records} == {"default/b", "default/c"}
    await expiry.stop()
    await backend.close()


async def test_a_deletion_that_the_store_refuses_is_repeated_later() -> None:
    class Failing(MemoryBackend):
        broken = False

        async def delete(self, key: StoreKey, **options: Any) -> int:
            if self.broken:
                raise StoreFailed("disk full")
            return await super().delete(key, **options)

    clock, backend = FakeClock(), Failing()
    storage = Storage(backend)
    expiry = EventExpiry(storage, clock, HOUR)
    await expiry.start()
    last = await record(storage, clock, "a")
    backend.broken = True
    await clock.advance(HOUR + 2)
    assert await storage.count(EVENTS) == 1
    backend.broken = False
    await clock.advance(10)
    assert await gone(storage, last.revision, 1) == ["default/a"]
    await expiry.stop()


async def test_a_watcher_sees_deleted_and_both_groups_are_one_collection() -> None:
    with started_apiserver(settings=ApiServerSettings(event_ttl=0.2)) as server:
        async with connected(server.url, server.token, server.tls()) as wire:
            events = "/api/v1/namespaces/default/events"
            newer = "/apis/events.k8s.io/v1/namespaces/default/events"
            async with wire.watch(f"{newer}?watch=true") as seen:
                made = await wire.post(events, an_event())
                assert made.code == 201, made.body
                assert await seen.take(2) == [("ADDED", "e"), ("DELETED", "e")]
            assert names(await wire.get(events)) == []


async def test_the_default_is_an_hour_and_0_keeps_events() -> None:
    assert ApiServerSettings().event_ttl == HOUR
    with started_apiserver(settings=ApiServerSettings(event_ttl=0)) as server:
        async with connected(server.url, server.token, server.tls()) as wire:
            assert (await post(wire)).code == 201
        assert not any(isinstance(part, EventExpiry) for part in server.server._parts)


async def post(wire: Wire) -> Any:
    return await wire.post("/api/v1/namespaces/default/events", an_event())


def an_event() -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "default"},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"},
        "reason": "Tested",
        "type": "Normal",
    }


async def test_an_event_that_cannot_be_deleted_stops_no_others(caplog: pytest.LogCaptureFixture) -> None:
    clock, memory = FakeClock(), MemoryBackend()
    await memory.start()
    storage = Storage(memory)
    expiry = EventExpiry(storage, clock, HOUR)
    await expiry.start()
    await storage.put(StoreKey("b/core/events", "default/odd"), Value(b'{"revision":', b"}"), replaced=None)
    await clock.advance(2.0)
    sound = await record(storage, clock, "sound")
    going = asyncio.create_task(gone(storage, sound.revision, 1))
    await clock.advance(HOUR + 2.0)
    assert await going == ["default/sound"]
    assert "an event cannot be deleted" in caplog.text
    await expiry.stop()
    await memory.close()
