"""Known faults of etcd's watches and revisions, class by class; this file tests those that no other one does.

lost under starvation (etcd 17529)           here; slow watchers: contract.py duplicated (17247)
here; test_histories.py (replay), crash/test_kill.py back in time after a reconnect (15271)       here;
crash/test_kill.py deletion lost at the compacted revision      here (18089, 19179) progress ahead of data (15220)
here; contract.py (`seen` never runs ahead), several/ stale read after a pause (20418)             here revision
backwards after a crash (17780)     store/test_crash.py, store/test_sqlite.py, crash/test_kill.py a write lost by a
crash (14370)              store/test_crash.py, crash/test_kill.py
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import signal
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path

import pytest
from tests.apiserver.crash import serving
from tests.apiserver.store.contract import PODS, body, changes, pod, put
from tests.apiserver.store.etcdserver import find_etcd, free_port, running_etcd
from tests.apiserver.wire import Wire, configmap, connected, names

from hortus.apiserver.store import Backend, EtcdBackend, MemoryBackend, RevisionCompacted, SqliteBackend
from hortus.testing.apiserver import running_apiserver

MAPS = "/api/v1/namespaces/default/configmaps"
STORES = ["memory", "sqlite", *(["etcd"] if find_etcd() else [])]
_ROOTS = (f"/faults-{number}/" for number in itertools.count())


def etcd_binary() -> str:
    found = find_etcd()
    if found is None:
        pytest.skip("no etcd here: put it on the PATH (Debian: etcd-server) or name it in HORTUS_ETCD")
    return found


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    port = free_port()
    with running_etcd(etcd_binary(), tmp_path_factory.mktemp("etcd"), port):
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(params=STORES)
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Backend:
    """A store that is not opened yet."""
    if request.param == "etcd":
        return EtcdBackend([request.getfixturevalue("etcd")], root=next(_ROOTS))
    return SqliteBackend(tmp_path / "state.db") if request.param == "sqlite" else MemoryBackend()


async def test_a_watch_next_to_many_lists_loses_and_repeats_nothing(backend: Backend) -> None:
    async with running_apiserver(backend=backend) as server, connected(server.url, server.token, server.tls()) as wire:
        for number in range(15):
            await wire.post(MAPS, configmap(f"fill{number}", {"a": "x" * 20_000}))
        listed = (await wire.get(MAPS)).body["metadata"]["resourceVersion"]
        quiet = asyncio.Event()

        async def storm() -> None:
            while not quiet.is_set():
                await wire.get(MAPS)

        storms = [asyncio.create_task(storm()) for _ in range(4)]
        path = f"{MAPS}?watch=true&resourceVersion={listed}&allowWatchBookmarks=true"
        async with wire.watch(path) as first, wire.watch(path) as second:
            answers = [await wire.post(MAPS, configmap(f"m{number}")) for number in range(30)]
            quiet.set()
            written = [("ADDED", answer.body["metadata"]["name"]) for answer in answers]
            assert await first.take(30) == written
            assert await second.take(30) == written
        await asyncio.gather(*storms)


async def test_a_deletion_at_the_compacted_revision_is_shown_or_expired(backend: Backend) -> None:
    await backend.start()
    first = await put(backend, "default/a")
    open_watch = backend.watch(PODS, after=first.revision)
    gone = await backend.delete(pod("default/a"), expected=None, final=body("end"))
    await backend.compact(gone)
    [seen] = await changes(open_watch, 1)
    assert (seen.revision, seen.record) == (gone, None)
    await open_watch.aclose()
    for after in (first.revision, gone - 1):
        with pytest.raises(RevisionCompacted):
            await anext(backend.watch(PODS, after=after))
    later = await put(backend, "default/b")
    async with aclosing(backend.watch(PODS, after=gone)) as watch:
        assert [change.record for change in await changes(watch, 1)] == [later]
    await backend.close()


async def test_events_that_come_again_after_a_reconnect_change_nothing(etcd: str) -> None:
    store = EtcdBackend([etcd], root=next(_ROOTS))
    await store.start()
    reported: list[int] = []
    store.follow(lambda change: reported.append(change.revision), lambda prefix: None)
    batches: list[list[dict[str, object]]] = []
    feed = store._feed
    apply = feed._apply
    feed._apply = lambda events: (batches.append([*events]), apply(batches[-1]))[1]  # type: ignore[method-assign]
    records = [await put(store, f"default/{number % 2}", str(number)) for number in range(6)]
    async with aclosing(store.watch(PODS, after=records[-1].revision)) as watch:
        for events in [*batches, *reversed(batches)]:
            apply(events)
        assert store.revision == records[-1].revision == watch.seen
        last = await put(store, "default/last")
        assert [change.record for change in await changes(watch, 1)] == [last]
    assert reported == [*(record.revision for record in records), last.revision]
    assert {record.name: record.revision for record in (await store.list(PODS)).records} == {
        record.name: record.revision for record in [*records[-2:], last]
    }
    await store.close()


async def test_a_bookmark_is_never_ahead_of_the_delivered_events(etcd: str) -> None:
    """Writes of a second server are in this one's index before `seen` includes them, in every interleaving."""
    root = next(_ROOTS)
    here, there = EtcdBackend([etcd], root=root), EtcdBackend([etcd], root=root)
    await here.start()
    await there.start()
    async with aclosing(here.watch(PODS, after=here.revision)) as watch:
        writing = asyncio.create_task(_write(there, 50))
        shown: list[int] = []
        while len(shown) < 50:
            await here.sync()
            ahead = watch.seen
            assert all(revision > ahead for revision in [change.revision for change in watch._pending])  # type: ignore[attr-defined]
            shown += [change.revision for change in await anext(watch)]
            assert shown[-1] <= watch.seen
        assert shown == await writing
    await here.close()
    await there.close()


async def _write(store: Backend, count: int) -> list[int]:
    return [(await put(store, f"default/{number}")).revision for number in range(count)]


@contextlib.asynccontextmanager
async def serving_process(folder: Path, etcd: str) -> AsyncIterator[tuple[Wire, subprocess.Popen[bytes]]]:
    folder.mkdir()
    port = free_port()
    command = [sys.executable, "-m", serving.__name__, str(folder), str(port), "the-token", etcd]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]) as process:
        assert process.stdout is not None
        try:
            assert await asyncio.to_thread(process.stdout.readline) == b"ready\n"
            tls = ssl.create_default_context(cafile=str(folder / "ca.pem"))
            async with connected(f"https://127.0.0.1:{port}", "the-token", tls) as wire:
                yield wire, process
        finally:
            process.kill()


async def test_a_server_that_was_paused_shows_nothing_stale_when_it_resumes(tmp_path: Path) -> None:
    port = free_port()
    with running_etcd(etcd_binary(), tmp_path / "etcd", port):
        address = f"http://127.0.0.1:{port}"
        async with (
            serving_process(tmp_path / "one", address) as (one, _),
            serving_process(tmp_path / "other", address) as (other, process),
        ):
            made = (await one.post(MAPS, configmap("a", {"v": "old"}))).body
            assert (await other.get(f"{MAPS}/a")).body == made
            async with other.watch(
                f"{MAPS}?watch=true&resourceVersion={made['metadata']['resourceVersion']}"
            ) as events:
                process.send_signal(signal.SIGSTOP)
                waiting = [asyncio.create_task(other.get(path)) for path in (f"{MAPS}/a", MAPS)]
                changed = (await one.merge(f"{MAPS}/a", {"data": {"v": "new"}})).body
                added = [await one.post(MAPS, configmap(f"b{number}")) for number in range(20)]
                process.send_signal(signal.SIGCONT)
                assert names(await other.get(MAPS)) == sorted(["a", *(f"b{number}" for number in range(20))])
                assert (await other.get(f"{MAPS}/a")).body == changed
                stale = await other.put(f"{MAPS}/a", {**made, "data": {"v": "mine"}})
                assert (stale.code, stale.body["reason"]) == (409, "Conflict")
                seen = [("MODIFIED", "a"), *(("ADDED", answer.body["metadata"]["name"]) for answer in added)]
                assert await events.take(21) == seen
            assert {(await answer).code for answer in waiting} == {200}
