"""A store that fails: writes are 503 and say when to try again, reads go on, and all is well when it is back."""

from __future__ import annotations

import asyncio
import io
import signal
import sqlite3
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.apiserver.store.etcdserver import find_etcd, free_port, pause, running_etcd
from tests.apiserver.wire import Answer, Wire, configmap, connected, names

from hortus.apiserver.store import EtcdBackend, SqliteBackend
from hortus.apiserver.store._log import connect
from hortus.testing.apiserver import TestServer, running_apiserver, started_apiserver

MAPS = "/api/v1/namespaces/default/configmaps"


def refused(answer: Answer) -> None:
    assert (answer.code, answer.body["reason"]) == (503, "ServiceUnavailable"), answer.body
    assert answer.headers["Retry-After"] == "1"
    assert answer.body["details"] == {"retryAfterSeconds": 1}
    assert answer.message.startswith("the store failed: ")


async def ready(wire: Wire) -> tuple[int, str]:
    answer = await wire.get("/readyz")
    return answer.code, answer.body.decode()


NOT_READY = (500, "[+]ping ok\n[-]store failed: reason withheld\nreadyz check failed\n")


async def until_ready(wire: Wire) -> None:
    """A store that is back is found by asking."""
    async with asyncio.timeout(60):
        while (await ready(wire))[0] != 200:
            continue


async def test_a_full_disk_stops_writes_and_nothing_else_until_there_is_space(tmp_path: Path) -> None:
    pages = [200]

    def small(path: Path) -> sqlite3.Connection:
        connection = connect(path)
        connection.execute(f"PRAGMA max_page_count = {pages[0]}")
        return connection

    backend = SqliteBackend(tmp_path / "state.db", connect=small)
    async with running_apiserver(backend=backend) as server, connected(server.url, server.token, server.tls()) as wire:
        assert await ready(wire) == (200, "ok")
        kept = []
        async with wire.watch(f"{MAPS}?watch=true") as events:
            for number in range(1000):
                answer = await wire.post(MAPS, configmap(f"m{number}", {"fill": "x" * 20_000}))
                if answer.code != 201:
                    break
                kept.append(f"m{number}")
            refused(answer)
            assert "full" in answer.message
            assert await ready(wire) == NOT_READY
            assert (await wire.get("/livez")).body == b"ok"
            assert (await wire.get("/readyz/ping")).body == b"ok"
            assert (await wire.get("/readyz/nothing")).code == 404
            assert (await wire.get("/readyz?exclude=store")).body == b"ok"
            assert sorted(names(await wire.get(MAPS))) == sorted(kept)
            assert (await wire.get(f"{MAPS}/m0")).code == 200
            refused(await wire.merge(f"{MAPS}/m0", {"data": {"fill": "y" * 20_000}}))
            refused(await wire.apply(f"{MAPS}/new", configmap("new", {"fill": "z" * 20_000})))
            pages[0] = 100_000
            assert await ready(wire) == (200, "ok")
            verbose = (await wire.get("/readyz?verbose")).body
            assert verbose == b"[+]ping ok\n[+]store ok\nreadyz check passed\n"
            assert (await wire.post(MAPS, configmap("after"))).code == 201
            assert await events.take(len(kept) + 1) == [("ADDED", name) for name in [*kept, "after"]]
    with started_apiserver(backend=SqliteBackend(tmp_path / "state.db")) as server:
        async with connected(server.url, server.token, server.tls()) as wire:
            assert sorted(names(await wire.get(MAPS))) == sorted([*kept, "after"])


def etcd_binary() -> str:
    found = find_etcd()
    if found is None:
        pytest.skip("no etcd here: put it on the PATH (Debian: etcd-server) or name it in HORTUS_ETCD")
    return found


async def test_an_etcd_that_dies_stops_writes_and_fresh_reads_until_it_is_back(tmp_path: Path) -> None:
    binary, port = etcd_binary(), free_port()

    async def meanwhile(wire: Wire, before: Any) -> None:
        refused(await wire.post(MAPS, configmap("lost")))
        refused(await wire.get(f"{MAPS}/a"))
        refused(await wire.get(MAPS))
        assert (await wire.get(f"{MAPS}/a?resourceVersion=0")).body == before
        assert names(await wire.get(f"{MAPS}?resourceVersion=0")) == ["a"]
        assert (await wire.get("/version")).code == 200
        assert (await wire.get("/livez")).body == b"ok"
        assert await ready(wire) == NOT_READY

    with running_etcd(binary, tmp_path / "data", port, sync=True) as process:
        manager = started_apiserver(backend=EtcdBackend([f"http://127.0.0.1:{port}"]))
        server: TestServer = await asyncio.to_thread(manager.__enter__)
        wires = connected(server.url, server.token, server.tls())
        wire = await wires.__aenter__()
        before = (await wire.post(MAPS, configmap("a"))).body
        watching = wire.watch(f"{MAPS}?watch=true&resourceVersion={before['metadata']['resourceVersion']}")
        events = await watching.__aenter__()
        process.send_signal(signal.SIGKILL)
        process.wait()
        await meanwhile(wire, before)
    with running_etcd(binary, tmp_path / "data", port, sync=True):
        await until_ready(wire)
        assert (await wire.get(f"{MAPS}/a")).body == before
        assert (await wire.post(MAPS, configmap("b"))).code == 201
        assert await events.take(1) == [("ADDED", "b")]
        await watching.__aexit__(None, None, None)
        await wires.__aexit__(None, None, None)
        await asyncio.to_thread(manager.__exit__, None, None, None)


async def test_a_paused_etcd_fails_the_store_until_it_resumes(tmp_path: Path) -> None:
    binary, port = etcd_binary(), free_port()
    with running_etcd(binary, tmp_path / "data", port) as process:
        async with (
            running_apiserver(backend=EtcdBackend([f"http://127.0.0.1:{port}"])) as server,
            connected(server.url, server.token, server.tls()) as wire,
        ):
            before = (await wire.post(MAPS, configmap("a"))).body
            pause(process)
            assert await ready(wire) == NOT_READY
            assert (await wire.get(f"{MAPS}/a?resourceVersion=0")).body == before
            process.send_signal(signal.SIGCONT)
            await until_ready(wire)
            assert (await wire.get(f"{MAPS}/a")).body == before
            assert (await wire.post(MAPS, configmap("b"))).code == 201


async def test_an_object_too_large_for_etcd_is_413_and_not_to_be_tried_again(tmp_path: Path) -> None:
    binary, port = etcd_binary(), free_port()
    with running_etcd(binary, tmp_path / "data", port):
        async with (
            running_apiserver(backend=EtcdBackend([f"http://127.0.0.1:{port}"])) as server,
            connected(server.url, server.token, server.tls()) as wire,
        ):
            huge = {"a": "x" * 1_000_000}
            big = await wire.post(MAPS, stream(configmap("big", huge, annotations={"b": "y" * 200_000})))
            assert big.code == 201, big.body
            # JSON escapes make stored bytes larger than the strings that were judged.
            larger = await wire.merge(f"{MAPS}/big", stream({"data": {"a": "\\" * 1_000_000}}))
            assert (larger.code, larger.body["reason"]) == (413, "RequestEntityTooLarge"), larger.body
            assert "Retry-After" not in larger.headers
            assert names(await wire.get(MAPS)) == ["big"]


def stream(body: Any) -> io.BytesIO:
    """The client warns of large bodies that are handed over whole."""
    return io.BytesIO(orjson.dumps(body))
