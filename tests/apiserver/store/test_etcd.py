"""The etcd store keeps the contract, and several of them on one etcd agree. Needs an etcd binary; says so without."""

from __future__ import annotations

import asyncio
import base64
import itertools
import signal
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, settings
from tests.apiserver.store.contract import (
    PODS,
    SECRETS,
    Opener,
    StoreContract,
    batch,
    body,
    changes,
    fill,
    opening,
    pod,
    put,
)
from tests.apiserver.store.etcdserver import find_etcd, free_port, running_etcd
from tests.apiserver.store.model import StoreMachine

from hortus.apiserver.store import (
    Backend,
    EtcdBackend,
    HistoryLimits,
    Mismatch,
    RevisionCompacted,
    StoredRecord,
    StoreFailed,
    StoreKey,
    Value,
    _etcdindex,
)
from hortus.apiserver.store._etcdindex import _PAGE
from hortus.apiserver.store._storewire import StoreWire, WriteUnsettled
from hortus.etcd.wire import EtcdWire

_roots = (f"/test-{number}/" for number in itertools.count())


_found = find_etcd()
if _found is None:
    pytest.skip(
        "no etcd here: put it on the PATH (Debian: etcd-server) or name it in HORTUS_ETCD", allow_module_level=True
    )
_ETCD: str = _found


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    port = free_port()
    with running_etcd(_ETCD, tmp_path_factory.mktemp("etcd"), port):
        EtcdMachine.endpoint = f"http://127.0.0.1:{port}"
        yield EtcdMachine.endpoint


_RANGE = {"key", "range_end", "revision", "limit"}
_FIELDS: dict[str, set[str]] = {
    "/v3/kv/range": _RANGE,
    "/v3/kv/put": {"key", "value"},
    "/v3/kv/txn": {"compare", "success", "failure"},
    "/v3/kv/compaction": {"revision"},
    "/v3/watch": {"create_request"},
    "compare": {"key", "target", "result", "version", "mod_revision"},
    "success": {"request_put", "request_delete_range", "request_range"},
    "failure": {"request_range"},
    "request_put": {"key", "value"},
    "request_delete_range": {"key", "range_end"},
    "request_range": _RANGE,
    "create_request": {"key", "range_end", "start_revision"},
}
"""Fields of etcd's messages (etcd-io/etcd, api/etcdserverpb/rpc.proto): its gateway ignores others."""


def _check_fields(name: str, message: object) -> None:
    for each in message if isinstance(message, list) else [message]:
        if isinstance(each, dict):
            assert each.keys() <= _FIELDS[name], f"{name} has no {each.keys() - _FIELDS[name]}"
            for field, value in each.items():
                if isinstance(value, dict | list):
                    _check_fields(field, value)


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """Every request of the test, path and body, each with fields that etcd knows."""
    seen: list[tuple[str, dict[str, Any]]] = []
    post = EtcdWire._post

    def checked(self: EtcdWire, path: str, body: dict[str, Any], *rest: Any) -> Any:
        _check_fields(path, body)
        seen.append((path, body))
        return post(self, path, body, *rest)

    monkeypatch.setattr(EtcdWire, "_post", checked)
    return seen


async def test_a_page_of_the_present_is_read_again_without_asking_etcd(
    etcd: str, asked: list[tuple[str, dict[str, Any]]]
) -> None:
    store = EtcdBackend([etcd], root=next(_roots))
    await store.start()
    last = await put(store, "default/a")
    asked.clear()
    assert [record.name for record in (await store.list(PODS, revision=last.revision)).records] == ["default/a"]
    assert (await store.list(PODS, fresh=False)).records == [last]
    assert asked == []
    await store.list(PODS)
    assert len(asked) == 1
    await store.close()


async def test_state_is_loaded_in_pages_of_a_bounded_size(etcd: str, asked: list[tuple[str, dict[str, Any]]]) -> None:
    root = next(_roots)
    store = EtcdBackend([etcd], root=root)
    await store.start()
    await put(store, "default/a")
    await store.close()
    asked.clear()
    again = EtcdBackend([etcd], root=root)
    await again.start()
    pages = [body for path, body in asked if path == "/v3/kv/range" and "range_end" in body]
    assert [body["limit"] for body in pages] == [_PAGE]
    await again.close()


async def test_a_store_that_was_never_written_does_not_look_for_its_past(
    etcd: str, opener: Opener, asked: list[tuple[str, dict[str, Any]]]
) -> None:
    other = await opener()
    await other.compact((await put(other, "default/a")).revision)
    asked.clear()
    store = EtcdBackend([etcd], root=next(_roots))
    await store.start()
    [watch] = [body["create_request"] for path, body in asked if path == "/v3/watch"]
    assert watch["start_revision"] > await other.sync()
    assert (await put(store, "default/a")).revision == store.revision
    await store.close()


async def test_a_watch_that_etcd_ends_or_that_is_silent_is_reported_with_its_reason(
    etcd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = EtcdBackend([etcd], root=next(_roots))
    await store.start()
    with pytest.raises(StoreFailed, match="etcd ended the watch: no quorum"):
        await store._feed._resume({"cancel_reason": "no quorum"})
    with pytest.raises(StoreFailed, match="etcd ended the watch: no reason given"):
        await store._feed._resume({})
    monkeypatch.setattr(_etcdindex, "_DELIVERY_SECONDS", 0.01)
    with pytest.raises(StoreFailed, match=f"etcd has revision 999999999, .* {store.revision}; "):
        await store._feed.reach(999_999_999)
    await store.close()


@pytest.fixture
async def opener(etcd: str) -> AsyncIterator[Opener]:
    async with opening(lambda **options: EtcdBackend([etcd], root=next(_roots), **options)) as made:
        yield made


class TestEtcdBackend(StoreContract):
    pass


class EtcdMachine(StoreMachine):
    endpoint: ClassVar[str]

    def open_store(self) -> Awaitable[Backend]:
        async def opened() -> Backend:
            store = EtcdBackend([self.endpoint], root=next(_roots), history=self.history)
            await store.start()
            return store

        return opened()


@pytest.mark.usefixtures("etcd")
class TestEtcdModel(EtcdMachine.TestCase):  # type: ignore[name-defined,misc]
    settings = settings(max_examples=12, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture
async def two(etcd: str) -> AsyncIterator[tuple[EtcdBackend, EtcdBackend]]:
    """Two servers' stores on the same objects."""
    root = next(_roots)
    stores = EtcdBackend([etcd], root=root), EtcdBackend([etcd], root=root)
    for store in stores:
        await store.start()
    yield stores
    for store in stores:
        await store.close()


async def test_writes_of_one_server_are_read_by_the_other_at_once(
    two: tuple[EtcdBackend, EtcdBackend],
) -> None:
    one, other = two
    for number in range(20):
        record = await put(one, "default/a", str(number))
        assert await other.get(pod("default/a")) == record
        assert [*(await other.list(PODS)).records] == [record]
    await one.delete(pod("default/a"), expected=None)
    assert await other.get(pod("default/a")) is None
    assert await other.count(PODS) == 0


async def test_a_write_is_answered_once_its_own_server_reads_it(
    opener: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await opener()
    assert isinstance(store, EtcdBackend)
    _deliver_late(store, monkeypatch)
    record = await put(store, "default/a")
    assert await store.get(record.key, fresh=False) == record
    gone = await store.delete(record.key, expected=None)
    assert (await store.get(record.key, fresh=False), store.revision) == (None, gone)
    await put(store, "default/a")
    assert await store.drop("root/") == 1
    assert await store.get(record.key, fresh=False) is None


def _deliver_late(store: EtcdBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    """Holds back what the watch delivers while a write is under way, until its caller waits again."""
    held: list[Any] = []
    in_flight = False
    apply, call = store._feed._apply, store._wire.call

    def hold(events: Any) -> bool:
        if not in_flight:
            return apply(events)
        held.extend(events)
        return True

    def release() -> None:
        nonlocal in_flight
        in_flight = False
        apply(held)
        held.clear()

    async def write(path: str, body: dict[str, Any]) -> dict[str, Any]:
        nonlocal in_flight
        in_flight = in_flight or path == "/v3/kv/txn"
        answer = await call(path, body)
        if path == "/v3/kv/txn":
            asyncio.get_running_loop().call_soon(release)
        return answer

    monkeypatch.setattr(store._feed, "_apply", hold)
    monkeypatch.setattr(store._wire, "call", write)


async def test_a_revision_from_another_server_can_be_watched_after_sync(two: tuple[EtcdBackend, EtcdBackend]) -> None:
    one, other = two
    record = await put(one, "default/a")
    assert await other.sync() >= record.revision
    async with aclosing(other.watch(PODS, after=record.revision)) as watch:
        later = await put(one, "default/b")
        assert [change.record for change in await batch(watch)] == [later]


async def test_an_answer_that_the_watch_has_overtaken_is_not_taken_for_a_restored_etcd(
    two: tuple[EtcdBackend, EtcdBackend], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = two
    base = await put(one, "default/a")
    await other.sync()
    real = other._wire.call

    async def slow(path: str, body: dict[str, object]) -> dict[str, object]:
        answer = await real(path, body)
        later = await put(one, "default/b")
        await other._feed.reach(later.revision)
        return answer

    async with aclosing(other.watch(PODS, after=base.revision)) as watch:
        monkeypatch.setattr(other._wire, "call", slow)
        assert await other.sync() > base.revision
        monkeypatch.setattr(other._wire, "call", real)
        last = await put(one, "default/c")
        assert [change.name for change in await changes(watch, 2)] == ["default/b", "default/c"]
        assert await other.sync() == last.revision


async def test_writers_on_two_servers_do_not_overwrite_each_other(two: tuple[EtcdBackend, EtcdBackend]) -> None:
    base = await put(two[0], "default/a", "0")
    results = await asyncio.gather(
        *(put(store, "default/a", "1", expected=base.revision) for store in two for _ in range(8)),
        return_exceptions=True,
    )
    assert sum(isinstance(result, StoredRecord) for result in results) == 1
    assert sum(isinstance(result, Mismatch) for result in results) == 15


async def test_servers_see_the_same_changes_final_states_and_drops(two: tuple[EtcdBackend, EtcdBackend]) -> None:
    one, other = two
    async with (
        aclosing(other.watch(PODS, after=other.revision)) as there,
        aclosing(one.watch(PODS, after=one.revision)) as here,
    ):
        await put(one, "default/a")
        await put(other, "default/a", "2")
        deletion = await one.delete(pod("default/a"), expected=None, final=body("end"))
        seen = await changes(there, 3)
        assert seen == await changes(here, 3)
        assert seen[-1].final == body("end").at(deletion)
        await put(one, "default/b")
        await batch(there)
        assert await one.drop("root/") == 1
        with pytest.raises(RevisionCompacted):
            await batch(there)
    assert await other.count(PODS) == 0


async def test_a_snapshot_begun_on_one_server_is_continued_on_another(etcd: str) -> None:
    root = next(_roots)
    one = EtcdBackend([etcd], root=root)
    await one.start()
    names = await fill(one, 7)
    page = await one.list(PODS, limit=3, prefix="default/")
    await one.delete(pod(names[5]), expected=None)
    await put(one, names[6], "changed")
    other = EtcdBackend([etcd], root=root)
    await other.start()
    rest = await other.list(PODS, limit=3, prefix="default/", after=page.records[-1].name, revision=page.revision)
    assert ([record.name for record in rest.records], rest.remaining, rest.revision) == (names[3:6], 1, page.revision)
    end = await other.list(PODS, prefix="default/", after=names[5], revision=page.revision)
    assert [record.value for record in end.records] == [body("x").at(end.records[0].revision)]
    for store in (one, other):
        await store.compact(one.revision)
    with pytest.raises(RevisionCompacted):
        await other.list(PODS, revision=page.revision)
    await one.close()
    await other.close()


async def test_pages_of_a_time_that_the_index_has_forgotten_are_read_from_etcd(
    opener: Opener, asked: list[tuple[str, dict[str, Any]]]
) -> None:
    store = await opener(history=HistoryLimits(changes=8))
    for name in ("a/1", "a/2", "a/3", "a/4", "ab/1", "b/1"):
        await put(store, name)
    await put(store, "a/1", bucket=f"{PODS}-more")
    whole = await store.list(PODS)
    for number in range(20):
        await put(store, "a/3", str(number))
    await store.delete(pod("a/4"), expected=None)
    assert store.compacted > whole.revision

    async def page(prefix: str, after: str, limit: int) -> tuple[list[StoredRecord], int, int]:
        asked.clear()
        found = await store.list(PODS, prefix=prefix, after=after, limit=limit, revision=whole.revision)
        assert [path for path, sent in asked if sent.get("revision") == whole.revision] == ["/v3/kv/range"]
        return [*found.records], found.remaining, found.revision

    one, two, three, four, other, last = whole.records
    assert await page("", "", 0) == ([*whole.records], 0, whole.revision)
    assert await page("a/", "", 2) == ([one, two], 2, whole.revision)
    assert await page("a/", "a/2", 1) == ([three], 1, whole.revision)
    assert await page("a/", "a/3", 5) == ([four], 0, whole.revision)
    assert await page("", "a/4", 1) == ([other], 1, whole.revision)
    assert await page("b", "a/2", 0) == ([last], 0, whole.revision)


async def test_state_is_loaded_in_pages_and_is_all_there(etcd: str) -> None:
    root = next(_roots)
    one = EtcdBackend([etcd], root=root)
    await one.start()
    await asyncio.gather(*(put(one, f"default/{number:04}") for number in range(1100)))
    await put(one, "default/a", bucket=SECRETS)
    await one.close()
    other = EtcdBackend([etcd], root=root)
    await other.start()
    assert await other.count(PODS) == 1100
    assert await other.count(SECRETS) == 1
    await other.close()


async def test_history_is_there_after_a_restart_as_far_as_etcd_has_kept_it(etcd: str) -> None:
    root = next(_roots)
    one, other = EtcdBackend([etcd], root=root), EtcdBackend([etcd], root=root)
    await one.start()
    await other.start()
    first = await put(one, "default/a")
    await one.close()
    await put(other, "default/a", "2")
    gone = await other.delete(pod("default/a"), expected=None, final=body("end"))
    last = await put(other, "default/b")
    again = EtcdBackend([etcd], root=root)
    await again.start()
    assert again.revision >= last.revision
    async with aclosing(again.watch(PODS, after=first.revision)) as watch:
        seen = await changes(watch, 3)
        assert seen[0].replaced == first
        assert (seen[1].revision, seen[1].final) == (gone, body("end").at(gone))
        assert seen[2].record == last
    assert [*(await again.list(PODS, revision=first.revision)).records] == [first]
    await other.compact(gone)
    await again.close()
    await again.start()
    with pytest.raises(RevisionCompacted):
        again.watch(PODS, after=first.revision)
    async with aclosing(again.watch(PODS, after=gone)) as watch:
        assert [change.record for change in await batch(watch)] == [last]
    assert [*(await again.list(PODS)).records] == [last]
    await again.close()
    await other.close()


@pytest.mark.parametrize("prefix", ["root/", "root/core/"])
async def test_a_dropped_cluster_is_not_read_from_a_past_that_the_history_has_forgotten(etcd: str, prefix: str) -> None:
    store = EtcdBackend([etcd], root=next(_roots), history=HistoryLimits(changes=3))
    await store.start()
    record = await put(store, "default/a")
    await store.drop(prefix)
    for number in range(6):
        await put(store, f"default/{number}", bucket="other/core/pods")
    with pytest.raises(RevisionCompacted):
        await store.list(PODS, revision=record.revision)
    again = await put(store, "default/b")
    for number in range(6):
        await put(store, f"default/{number}", bucket="other/core/pods")
    assert [*(await store.list(PODS, revision=again.revision)).records] == [again]
    await store.close()


async def test_watches_survive_a_compaction_of_delivered_revisions(
    etcd: str, opener: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = next(_roots)
    before = EtcdBackend([etcd], root=root)
    await before.start()
    await put(before, "default/a")
    await before.close()
    await fill(await opener(), 5)  # below another root, so that the new store's watch asks for older revisions
    store = EtcdBackend([etcd], root=root, history=HistoryLimits(changes=3))
    real, compacted, ends = store._wire.watch, asyncio.Event(), list[int]()

    async def late(query: dict[str, object]) -> AsyncIterator[dict[str, object]]:
        if "range_end" in query:  # the store's own, not that which asks where history begins
            await compacted.wait()
        async with aclosing(real(query)) as messages:
            async for message in messages:
                if message.get("canceled"):
                    ends.append(int(message.get("compact_revision", 0)))
                yield message

    monkeypatch.setattr(store._wire, "watch", late)
    await store.start()
    async with aclosing(store.watch(PODS, after=store.revision)) as watch:
        compacted_to = store.revision
        await store.compact(compacted_to)
        compacted.set()
        record = await put(store, "default/a")
        assert [change.record for change in await batch(watch)] == [record]
    assert ends == [compacted_to]
    await store.close()


async def test_a_deletion_that_a_compaction_took_out_of_the_watch_is_noticed(
    two: tuple[EtcdBackend, EtcdBackend], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Older releases keep no tombstone of the revision at which they compact (etcd-io/etcd, issue 18089)."""
    here, there = two
    kept, lost = await put(here, "default/kept"), await put(here, "default/lost")
    here._tasks[0].cancel()
    await asyncio.gather(here._tasks[0], return_exceptions=True)
    deleted = await there.delete(lost.key, expected=None)
    watch = StoreWire.watch

    async def compacted(self: StoreWire, body: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        async for message in watch(self, body):
            events = [event for event in message.get("events", ()) if event.get("type") != "DELETE"]
            yield {**message, "events": events}

    monkeypatch.setattr(StoreWire, "watch", compacted)
    here._tasks[0] = asyncio.create_task(here._feed.follow())
    async with asyncio.timeout(60):
        while here.revision < deleted:
            await here.sync()
        assert (await here.list(PODS)).records == [kept]


async def test_state_of_another_version_is_refused(etcd: str) -> None:
    root = next(_roots)
    one = EtcdBackend([etcd], root=root)
    await one.start()
    await one._wire.call("/v3/kv/put", {"key": text(f"{root}format"), "value": text("9")})
    await one.close()
    with pytest.raises(StoreFailed, match="is of version 9; this Hortus reads version 1"):
        await EtcdBackend([etcd], root=root).start()


async def test_keys_that_others_put_below_the_root_are_passed_over(etcd: str) -> None:
    root = next(_roots)
    store = EtcdBackend([etcd], root=root)
    await store.start()
    for key, value in ((f"{root}objects/{PODS}:default/foreign", "?"), (f"{root}objects/what", "1:ab"), (root, "")):
        await store._wire.call("/v3/kv/put", {"key": text(key), "value": text(value)})
    for raw_key, value in ((b"%s\xff", "1:ab"), (b"%slong", "1" * 5000 + ":ab")):
        key_bytes = raw_key % f"{root}objects/{PODS}:default/".encode()
        await store._wire.call("/v3/kv/put", {"key": base64.b64encode(key_bytes).decode(), "value": text(value)})
    record = await put(store, "default/a")
    assert [*(await store.list(PODS)).records] == [record]
    await store.close()
    again = EtcdBackend([etcd], root=root)
    await again.start()
    assert [*(await again.list(PODS)).records] == [record]
    await again.close()


async def test_an_object_larger_than_etcd_takes_is_refused_and_others_are_kept(opener: Opener) -> None:
    store = await opener()
    with pytest.raises(StoreFailed, match="too large"):
        await store.put(pod("default/huge"), Value(b"z" * 2_000_000, b""), expected=0)
    record = await put(store, "default/a")
    assert [*(await store.list(PODS)).records] == [record]


async def test_a_bucket_with_a_colon_is_refused(opener: Opener) -> None:
    store = await opener()
    with pytest.raises(ValueError, match="has a colon"):
        await store.put(StoreKey("root/co:re/pods", "a"), body("x"), expected=None)


async def test_a_missing_etcd_is_reported_at_start() -> None:
    address = f"http://127.0.0.1:{free_port()}"
    store = EtcdBackend([address])
    with pytest.raises(StoreFailed, match=f"etcd at {address} does not answer"):
        await store.start()


async def test_etcd_may_be_killed_and_come_back(tmp_path: Path) -> None:
    port = free_port()
    with running_etcd(_ETCD, tmp_path / "data", port) as process:
        store = EtcdBackend([f"http://127.0.0.1:{free_port()}", f"http://127.0.0.1:{port}"])
        await store.start()
        kept = await put(store, "default/a")
        watch = store.watch(PODS, after=kept.revision)
        process.send_signal(signal.SIGKILL)
        process.wait()
        with pytest.raises(StoreFailed):
            await put(store, "default/b")
        with pytest.raises(StoreFailed):
            await store.get(pod("default/a"))
    with running_etcd(_ETCD, tmp_path / "data", port):
        later = await put(store, "default/c", expected=0)
        assert [change.record for change in await batch(watch)] == [later]
        assert [*(await store.list(PODS)).records] == [kept, later]
        await store.close()


def text(plain: str) -> str:
    return base64.b64encode(plain.encode()).decode()


@pytest.mark.parametrize("is_carried_out", [True, False])
@pytest.mark.parametrize("is_deletion", [True, False])
async def test_a_write_that_etcd_gave_up_on_is_sent_once_more_and_carried_out_once(
    two: tuple[EtcdBackend, EtcdBackend], monkeypatch: pytest.MonkeyPatch, is_deletion: bool, is_carried_out: bool
) -> None:
    here, there = two
    old = await put(here, "default/a")
    given_up = _give_up(here, monkeypatch, is_carried_out=is_carried_out)
    await there.sync()
    async with aclosing(there.watch(PODS, after=old.revision)) as watch:
        if is_deletion:
            await here.delete(old.key, expected=old.revision)
        else:
            new = await put(here, "default/a", expected=old.revision)
        changes = await batch(watch)
    await there.sync()
    kept = (await there.list(PODS)).records
    assert given_up == ["/v3/kv/txn"]
    assert len(changes) == 1
    assert kept == ([] if is_deletion else [new])


@pytest.mark.parametrize("is_deletion", [True, False])
async def test_a_write_that_etcd_gave_up_on_is_unsettled_where_another_came_between(
    two: tuple[EtcdBackend, EtcdBackend], monkeypatch: pytest.MonkeyPatch, is_deletion: bool
) -> None:
    here, there = two
    old = await put(here, "default/a")
    await put(there, "default/a", expected=old.revision)
    _give_up(here, monkeypatch, is_carried_out=False)
    with pytest.raises(StoreFailed, match="request timed out"):
        if is_deletion:
            await here.delete(old.key, expected=old.revision)
        else:
            await here.put(old.key, Value(b"{", b"}"), expected=old.revision)


async def test_a_write_that_compares_nothing_is_never_sent_again(
    two: tuple[EtcdBackend, EtcdBackend], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, _ = two
    _give_up(here, monkeypatch, is_carried_out=False)
    with pytest.raises(StoreFailed, match="request timed out"):
        await put(here, "default/a", expected=None)


def _give_up(store: EtcdBackend, monkeypatch: pytest.MonkeyPatch, *, is_carried_out: bool) -> list[str]:
    """Lets etcd give up on the next write; returns the paths of such writes."""
    call, given_up = store._wire.call, list[str]()

    async def called(path: str, body: dict[str, Any]) -> Any:
        if path != "/v3/kv/txn" or given_up:
            return await call(path, body)
        given_up.append(path)
        if is_carried_out:
            await call(path, body)
        raise WriteUnsettled("etcd refused: etcdserver: request timed out")

    monkeypatch.setattr(store._wire, "call", called)
    return given_up
