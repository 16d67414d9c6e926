"""The contract of every store, as tests: a store's own test file subclasses these with a fixture `opener`.

`opener(history=..., watches=..., clock=...)` opens an empty store; the fixture closes what it opened.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Protocol

import pytest

from hortus.apiserver.store import (
    Backend,
    Commit,
    HistoryLimits,
    Mismatch,
    RevisionCompacted,
    RevisionInFuture,
    StoredRecord,
    StoreKey,
    StoreWatch,
    Value,
    WatchLimits,
)
from hortus.kube.clock import Clock
from hortus.testing import FakeClock

PODS = "root/core/pods"
SECRETS = "root/core/secrets"


class Opener(Protocol):
    def __call__(
        self,
        *,
        history: HistoryLimits | None = None,
        watches: WatchLimits | None = None,
        clock: Clock | None = None,
    ) -> Awaitable[Backend]: ...


@asynccontextmanager
async def opening(make: Callable[..., Backend]) -> AsyncIterator[Opener]:
    """An `Opener` of the stores that `make` returns for its options; they are closed at the end."""
    opened: list[Backend] = []

    async def open_store(
        *, history: HistoryLimits | None = None, watches: WatchLimits | None = None, clock: Clock | None = None
    ) -> Backend:
        store = make(history=history, watches=watches, clock=clock)
        await store.start()
        opened.append(store)
        return store

    yield open_store
    for store in opened:
        await store.close()


def pod(name: str) -> StoreKey:
    return StoreKey(PODS, name)


def body(text: str) -> Value:
    return Value(b'{"metadata":{"resourceVersion":"', b'"},"data":"%s"}' % text.encode())


async def put(
    store: Backend, name: str, text: str = "x", *, expected: int | None = None, bucket: str = PODS
) -> StoredRecord:
    return await store.put(StoreKey(bucket, name), body(text), expected=expected)


async def fill(store: Backend, count: int) -> Sequence[str]:
    names = [f"default/pod-{number:03}" for number in range(count)]
    for name in reversed(names):
        await put(store, name)
    return names


async def batch(watch: StoreWatch) -> Sequence[Commit]:
    async with asyncio.timeout(60):
        return await anext(watch)


async def changes(watch: StoreWatch, count: int) -> list[Commit]:
    got: list[Commit] = []
    while len(got) < count:
        got += await batch(watch)
    assert len(got) == count
    return got


def reported(seen: Sequence[Commit]) -> list[tuple[str, int, bool]]:
    return [(change.name, change.revision, change.value is None) for change in seen]


class WritesContract:
    async def test_a_write_returns_the_object_with_its_revision_spliced_in(self, opener: Opener) -> None:
        store = await opener()
        record = await put(store, "default/a", "hello", expected=0)
        assert record.value == body("hello").at(record.revision)
        assert await store.get(pod("default/a")) == record
        assert record.revision == store.revision
        assert record.key == pod("default/a")

    async def test_revisions_grow_over_all_buckets(self, opener: Opener) -> None:
        store = await opener()
        first = await put(store, "default/a")
        other = await put(store, "default/a", bucket=SECRETS)
        gone = await store.delete(pod("default/a"), expected=None)
        again = await put(store, "default/a", expected=0)
        assert first.revision < other.revision < gone < again.revision == store.revision

    async def test_create_refuses_an_existing_key_and_returns_it(self, opener: Opener) -> None:
        store = await opener()
        record = await put(store, "default/a", "old", expected=0)
        with pytest.raises(Mismatch) as caught:
            await put(store, "default/a", "new", expected=0)
        assert caught.value.current == record
        assert caught.value.key == pod("default/a")
        assert store.revision == record.revision

    async def test_update_refuses_a_stale_revision_and_an_absent_object(self, opener: Opener) -> None:
        store = await opener()
        stale = await put(store, "default/a", "1")
        current = await put(store, "default/a", "2", expected=stale.revision)
        with pytest.raises(Mismatch) as caught:
            await put(store, "default/a", "3", expected=stale.revision)
        assert caught.value.current == current
        with pytest.raises(Mismatch) as caught:
            await put(store, "default/absent", expected=current.revision)
        assert caught.value.current is None

    async def test_delete_checks_its_preconditions(self, opener: Opener) -> None:
        store = await opener()
        record = await put(store, "default/a")
        with pytest.raises(Mismatch) as caught:
            await store.delete(pod("default/a"), expected=record.revision + 1)
        assert caught.value.current == record
        with pytest.raises(Mismatch):
            await store.delete(pod("default/a"), expected=0)
        await store.delete(pod("default/a"), expected=record.revision)
        for expected in (None, record.revision, 0):
            with pytest.raises(Mismatch) as caught:
                await store.delete(pod("default/a"), expected=expected)
            assert caught.value.current is None
        assert await store.get(pod("default/a")) is None
        assert await store.count(PODS) == 0

    async def test_an_object_made_again_is_not_taken_for_the_deleted_one(self, opener: Opener) -> None:
        store = await opener()
        first = await put(store, "default/a")
        await store.delete(first.key, expected=None)
        again = await put(store, "default/a")
        for attempt in (
            put(store, "default/a", "late", expected=first.revision),
            store.delete(first.key, expected=first.revision),
        ):
            with pytest.raises(Mismatch) as caught:
                await attempt
            assert caught.value.current == again
        assert await store.get(first.key) == again

    async def test_of_many_deletions_one_wins(self, opener: Opener) -> None:
        store = await opener()
        record = await put(store, "default/a")
        results = await asyncio.gather(
            *(store.delete(record.key, expected=expected) for expected in (record.revision, None) * 5),
            return_exceptions=True,
        )
        assert [result for result in results if isinstance(result, int)] == [store.revision]
        lost = [result for result in results if isinstance(result, Mismatch)]
        assert [mismatch.current for mismatch in lost] == [None] * 9

    async def test_of_many_writers_with_the_same_expectation_one_wins(self, opener: Opener) -> None:
        store = await opener()
        base = await put(store, "default/a")
        results = await asyncio.gather(
            *(put(store, "default/a", str(number), expected=base.revision) for number in range(20)),
            return_exceptions=True,
        )
        won = [result for result in results if isinstance(result, StoredRecord)]
        lost = [result for result in results if isinstance(result, Mismatch)]
        assert len(won) == 1
        assert len(lost) == 19
        assert await store.get(pod("default/a")) == won[0]
        assert all(mismatch.current == won[0] for mismatch in lost)

    async def test_a_refused_writer_can_read_the_state_that_refused_it(self, opener: Opener) -> None:
        store = await opener()
        await put(store, "default/deleted")

        async def refused(work: Awaitable[object], name: str) -> bool:
            try:
                await work
            except Mismatch as refusal:
                assert await store.get(pod(name), fresh=False) == refusal.current
                return True
            return False

        creations = [refused(put(store, "default/a", expected=0), "default/a") for _ in range(5)]
        deletions = [refused(store.delete(pod("default/deleted"), expected=None), "default/deleted") for _ in range(5)]
        assert sum(await asyncio.gather(*creations, *deletions)) == 8

    async def test_concurrent_writes_are_all_kept_and_each_has_its_own_revision(self, opener: Opener) -> None:
        store = await opener()
        records = await asyncio.gather(*(put(store, f"default/{number}", expected=0) for number in range(50)))
        assert len({record.revision for record in records}) == 50
        assert sorted((await store.list(PODS)).records, key=lambda kept: kept.revision) == sorted(
            records, key=lambda kept: kept.revision
        )
        assert store.revision == max(record.revision for record in records)

    async def test_a_writer_that_is_cancelled_leaves_the_store_consistent(self, opener: Opener) -> None:
        store = await opener()
        task = asyncio.create_task(put(store, "default/a", expected=0))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        after = await put(store, "default/b")
        listed = (await store.list(PODS)).records
        assert listed[-1] == after
        assert [record.name for record in listed] in (["default/b"], ["default/a", "default/b"])

    async def test_values_are_kept_byte_for_byte(self, opener: Opener) -> None:
        store = await opener()
        for value in (Value(b"", b""), Value(b"\x00\xff", b"\xfe" * 1_000_000), Value("ü".encode(), b"\n")):
            record = await store.put(pod("default/a"), value, expected=None)
            assert record.value == value.at(record.revision)
            assert await store.get(pod("default/a")) == record


class ReadsContract:
    async def test_a_list_is_sorted_by_name_and_of_one_bucket(self, opener: Opener) -> None:
        store = await opener()
        await put(store, "default/a", bucket=SECRETS)
        names = await fill(store, 9)
        page = await store.list(PODS)
        assert [record.name for record in page.records] == names
        assert (page.revision, page.remaining) == (store.revision, 0)
        assert (await store.list("root/core/nothing")).records == () or not (await store.list("root/core/no")).records

    async def test_names_sort_as_their_utf8_bytes(self, opener: Opener) -> None:
        store = await opener()
        names = ["a", "a-b/c", "a/b", "a/é", "a/\U0001f331", "a/\U0010ffff", "b", "/z", "ä/ö"]
        for name in names:
            await put(store, name)
        assert [record.name for record in (await store.list(PODS)).records] == sorted(names, key=str.encode)
        assert [record.name for record in (await store.list(PODS, prefix="a/")).records] == [
            "a/b", "a/é", "a/\U0001f331", "a/\U0010ffff",
        ]  # fmt: skip
        assert [record.name for record in (await store.list(PODS, prefix="a/\U0010ffff")).records] == ["a/\U0010ffff"]

    async def test_prefix_after_and_limit_cut_the_list(self, opener: Opener) -> None:
        store = await opener()
        for name in ("a/1", "a/2", "a/3", "ab/1", "b/1"):
            await put(store, name)
        page = await store.list(PODS, prefix="a/", limit=2)
        assert ([record.name for record in page.records], page.remaining) == (["a/1", "a/2"], 1)
        page = await store.list(PODS, prefix="a/", after="a/2", limit=2)
        assert ([record.name for record in page.records], page.remaining) == (["a/3"], 0)
        assert not (await store.list(PODS, prefix="a/", after="a/3")).records
        assert not (await store.list(PODS, prefix="a/", after="b")).records
        assert len((await store.list(PODS, prefix="b", after="a/3")).records) == 1
        assert len((await store.list(PODS, limit=5)).records) == 5

    async def test_a_list_before_and_after_writes_stays_in_order(self, opener: Opener) -> None:
        store = await opener()
        await fill(store, 5)
        await store.list(PODS)
        await put(store, "default/pod-001a")
        await store.delete(pod("default/pod-003"), expected=None)
        await put(store, "default/pod-002", "again")
        assert [record.name for record in (await store.list(PODS)).records] == [
            "default/pod-000", "default/pod-001", "default/pod-001a", "default/pod-002", "default/pod-004",
        ]  # fmt: skip

    async def test_pages_are_one_snapshot_while_others_write(self, opener: Opener) -> None:
        store = await opener()
        names = await fill(store, 10)
        whole = (await store.list(PODS)).records
        page = await store.list(PODS, limit=3)
        got = [*page.records]
        for step in range(4):
            await store.delete(pod(names[step]), expected=None)
            await store.delete(pod(names[-1 - step]), expected=None)
            await put(store, names[4], f"changed {step}")
            await put(store, f"default/pod-00{step + 3}-new")
            if step == 2:
                await put(store, names[0], "is back")
            if page.remaining:
                assert page.remaining == 10 - len(got)
                page = await store.list(PODS, limit=3, after=got[-1].name, revision=page.revision)
                got += page.records
        assert got == [*whole]
        assert (page.remaining, page.revision) == (0, whole[0].revision)

    async def test_a_list_at_any_revision_is_the_state_of_then(self, opener: Opener) -> None:
        store = await opener()
        then = {store.revision: [*(await store.list(PODS)).records]}
        for text in "abcab":
            if text == "c":
                await store.delete(pod("default/a"), expected=None)
            await put(store, f"default/{text}", text)
            then[store.revision] = [*(await store.list(PODS)).records]
        for revision, records in then.items():
            if revision:
                page = await store.list(PODS, revision=revision)
                assert ([*page.records], page.revision) == (records, revision)

    async def test_the_future_cannot_be_read_or_watched(self, opener: Opener) -> None:
        store = await opener()
        await put(store, "default/a")
        with pytest.raises(RevisionInFuture):
            await store.list(PODS, revision=store.revision + 1)
        with pytest.raises(RevisionInFuture):
            store.watch(PODS, after=store.revision + 1)
        with pytest.raises(RevisionInFuture):
            await store.compact(store.revision + 1)

    async def test_counts_usage_and_bucket_names_follow_the_objects(self, opener: Opener) -> None:
        store = await opener()
        assert [*(await store.buckets(""))] == []
        sizes = [len((await put(store, f"default/{number}", "y" * number)).value) for number in range(3)]
        await put(store, "default/a", bucket="other/core/pods")
        assert [*(await store.buckets(""))] == ["other/core/pods", PODS]
        assert [*(await store.buckets("root/"))] == [PODS]
        assert [*(await store.buckets("oth"))] == ["other/core/pods"]
        assert [*(await store.buckets("root/apps/"))] == []
        assert await store.usage("root/") == (3, sum(sizes))
        grown = await put(store, "default/0", "bigger")
        await store.delete(pod("default/2"), expected=None)
        assert await store.usage("root/") == (2, len(grown.value) + sizes[1])
        assert await store.count(PODS) == 2
        for name in ("default/0", "default/1"):
            await store.delete(pod(name), expected=None)
        assert [*(await store.buckets("root/"))] == []
        assert await store.usage("root/") == (0, 0)


class WatchContract:
    async def test_a_watch_from_any_revision_replays_exactly_the_later_changes(self, opener: Opener) -> None:
        store = await opener()
        begin = store.revision
        created = await put(store, "default/a", "1")
        await put(store, "default/a", bucket=SECRETS)
        updated = await put(store, "default/a", "2")
        deleted = await store.delete(pod("default/a"), expected=None, final=body("last words"))
        back = await put(store, "default/a", "3")
        expected = [
            Commit(created.revision, created, None),
            Commit(updated.revision, updated, created),
            Commit(deleted, None, updated, body("last words").at(deleted)),
            Commit(back.revision, back, None),
        ]
        for after in range(begin, store.revision + 1):
            async with aclosing(store.watch(PODS, after=after)) as watch:
                rest = [change for change in expected if change.revision > after]
                assert await changes(watch, len(rest)) == rest
                assert watch.seen == store.revision

    async def test_a_watch_continues_with_later_writes(self, opener: Opener) -> None:
        store = await opener()
        first = await put(store, "default/a")
        async with aclosing(store.watch(PODS, after=first.revision - 1)) as watch:
            assert reported(await changes(watch, 1)) == [("default/a", first.revision, False)]
            waiting = asyncio.create_task(batch(watch))
            second = await put(store, "default/b")
            assert reported(await waiting) == [("default/b", second.revision, False)]

    async def test_changes_come_in_batches_and_seen_never_runs_ahead(self, opener: Opener) -> None:
        store = await opener()
        async with aclosing(store.watch(PODS, after=store.revision)) as watch:
            assert watch.seen == store.revision
            records = [await put(store, f"default/{number}") for number in range(10)]
            assert watch.seen == records[0].revision - 1
            assert [change.record for change in await batch(watch)] == records
            assert watch.seen == store.revision
            other = await put(store, "default/a", bucket=SECRETS)
            assert watch.seen == other.revision

    async def test_a_watch_with_prefix_sees_only_that(self, opener: Opener) -> None:
        store = await opener()
        start = store.revision
        await put(store, "a/1")
        await put(store, "ab/1")
        async with (
            aclosing(store.watch(PODS, after=start, prefix="a/")) as one,
            aclosing(store.watch(PODS, after=start, prefix="a")) as both,
        ):
            await put(store, "b/1")
            await put(store, "a/2")
            assert [change.name for change in await changes(one, 2)] == ["a/1", "a/2"]
            assert [change.name for change in await changes(both, 3)] == ["a/1", "ab/1", "a/2"]

    async def test_watch_order_is_commit_order_for_concurrent_writers(self, opener: Opener) -> None:
        store = await opener()
        async with aclosing(store.watch(PODS, after=store.revision)) as watch:
            await asyncio.gather(*(put(store, f"default/{number % 7}", str(number)) for number in range(100)))
            seen = await changes(watch, 100)
        revisions = [change.revision for change in seen]
        assert revisions == sorted(set(revisions))
        last: dict[str, StoredRecord | None] = {}
        for change in seen:
            assert change.replaced == last.get(change.name)
            last[change.name] = change.record

    async def test_a_race_of_writers_and_deletions_is_watched_as_one_history(self, opener: Opener) -> None:
        store = await opener()
        start = store.revision

        async def race(number: int) -> None:
            key = pod(f"default/{number % 3}")
            with suppress(Mismatch):
                if number % 2:
                    await store.delete(key, expected=None, final=body(f"final {number}"))
                else:
                    await store.put(key, body(str(number)), expected=None)

        async with aclosing(store.watch(PODS, after=start)) as watch:
            await asyncio.gather(*(race(number) for number in range(60)))
            seen = await batch(watch)
            while watch.seen < store.revision:
                seen = [*seen, *await batch(watch)]
        state: dict[str, StoredRecord | None] = {}
        for change in seen:
            assert change.replaced == state.get(change.name)
            assert change.record is not None or (change.final or b"").startswith(body("").head)
            state[change.name] = change.record
        assert [*(await store.list(PODS)).records] == [state[name] for name in sorted(state) if state[name]]
        async with aclosing(store.watch(PODS, after=start)) as replay:
            assert await changes(replay, len(seen)) == seen

    async def test_cancelling_a_wait_loses_nothing(self, opener: Opener) -> None:
        store = await opener()
        async with aclosing(store.watch(PODS, after=store.revision)) as watch:
            waiting = asyncio.create_task(anext(watch))
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            record = await put(store, "default/a")
            assert [change.record for change in await batch(watch)] == [record]

    async def test_a_closed_watch_ends_and_a_closed_store_ends_its_watches(self, opener: Opener) -> None:
        store = await opener()
        one, two = (store.watch(PODS, after=store.revision) for _ in range(2))
        waiting = asyncio.create_task(anext(one, None))
        await asyncio.sleep(0)
        await one.aclose()
        assert await waiting is None
        await one.aclose()
        await put(store, "default/a")
        await store.close()
        assert [[change.name for change in got] async for got in two] == [["default/a"]]

    async def test_a_slow_watcher_is_dropped_and_others_are_not(self, opener: Opener) -> None:
        store = await opener(watches=WatchLimits(changes=10))
        async with (
            aclosing(store.watch(PODS, after=store.revision)) as slow,
            aclosing(store.watch(PODS, after=store.revision)) as quick,
        ):
            for number in range(11):
                record = await put(store, "default/a", str(number))
                assert [change.record for change in await batch(quick)] == [record]
            with pytest.raises(RevisionCompacted):
                await batch(slow)
            with pytest.raises(RevisionCompacted):
                await batch(slow)
            record = await put(store, "default/b")
            assert [change.record for change in await batch(quick)] == [record]

    async def test_a_slow_watcher_is_also_bounded_in_bytes(self, opener: Opener) -> None:
        store = await opener(watches=WatchLimits(bytes=10_000))
        async with aclosing(store.watch(PODS, after=store.revision)) as slow:
            await put(store, "default/a", "z" * 6_000)
            await put(store, "default/a", "z" * 6_000)
            with pytest.raises(RevisionCompacted):
                await batch(slow)


class HistoryContract:
    async def test_compaction_ends_old_reads_and_watches_and_keeps_the_present(self, opener: Opener) -> None:
        store = await opener()
        first = await put(store, "default/a", "1")
        second = await put(store, "default/a", "2")
        third = await put(store, "default/b")
        await store.compact(second.revision)
        assert store.compacted == second.revision
        for revision in (first.revision - 1, first.revision):
            with pytest.raises(RevisionCompacted):
                store.watch(PODS, after=revision)
            if revision:
                with pytest.raises(RevisionCompacted):
                    await store.list(PODS, revision=revision)
        assert [*(await store.list(PODS, revision=second.revision)).records] == [second]
        async with aclosing(store.watch(PODS, after=second.revision)) as watch:
            assert [change.record for change in await batch(watch)] == [third]
        assert [*(await store.list(PODS)).records] == [second, third]
        assert await store.get(pod("default/a")) == second

    async def test_compacting_twice_or_backwards_changes_nothing(self, opener: Opener) -> None:
        store = await opener()
        await fill(store, 5)
        await store.compact(store.revision)
        await store.compact(1)
        assert store.compacted == store.revision

    async def test_history_is_bounded_by_count(self, opener: Opener) -> None:
        store = await opener(history=HistoryLimits(changes=16))
        first = await put(store, "default/a", "first")
        for number in range(100):
            await put(store, "default/a", str(number))
        assert first.revision < store.compacted
        assert 8 <= store.revision - store.compacted <= 16
        with pytest.raises(RevisionCompacted):
            store.watch(PODS, after=first.revision)
        async with aclosing(store.watch(PODS, after=store.compacted)) as watch:
            await changes(watch, store.revision - store.compacted)

    async def test_history_is_bounded_by_the_bytes_of_replaced_values(self, opener: Opener) -> None:
        store = await opener(history=HistoryLimits(bytes=100_000))
        start = store.revision
        for number in range(50):
            await put(store, f"default/{number}", "z" * 10_000)
        async with aclosing(store.watch(PODS, after=start)) as watch:
            await changes(watch, 50)
        for _ in range(20):
            await put(store, "default/0", "z" * 10_000)
        assert 5 <= store.revision - store.compacted <= 10

    async def test_history_is_bounded_by_age(self, opener: Opener) -> None:
        clock = FakeClock()
        store = await opener(history=HistoryLimits(seconds=160), clock=clock)
        first = await put(store, "default/a", "1")
        await clock.advance(100)
        second = await put(store, "default/a", "2")
        await clock.advance(75)
        async with aclosing(store.watch(PODS, after=first.revision)) as watch:
            assert [change.record for change in await batch(watch)] == [second]
        with pytest.raises(RevisionCompacted):
            store.watch(SECRETS, after=first.revision - 1)
        assert first.revision <= store.compacted < second.revision

    async def test_a_quiet_bucket_can_be_resumed_when_others_were_busy(self, opener: Opener) -> None:
        store = await opener(history=HistoryLimits(changes=8))
        quiet = await put(store, "default/a", bucket=SECRETS)
        for number in range(50):
            await put(store, "default/a", str(number))
        assert store.compacted > quiet.revision
        async with aclosing(store.watch(SECRETS, after=quiet.revision)) as watch:
            later = await put(store, "default/a", bucket=SECRETS)
            assert [change.record for change in await batch(watch)] == [later]
        await store.compact(later.revision)
        with pytest.raises(RevisionCompacted):
            store.watch(SECRETS, after=quiet.revision)

    async def test_a_forgotten_deletion_is_not_resumed_over(self, opener: Opener) -> None:
        store = await opener(history=HistoryLimits(changes=8))
        record = await put(store, "default/a", bucket=SECRETS)
        await store.delete(record.key, expected=None)
        for number in range(50):
            await put(store, "default/a", str(number))
        with pytest.raises(RevisionCompacted):
            store.watch(SECRETS, after=record.revision)
        await put(store, "default/a", bucket=SECRETS)
        with pytest.raises(RevisionCompacted):
            store.watch(SECRETS, after=record.revision)


class DropContract:
    async def test_drop_takes_the_buckets_below_a_prefix_and_no_other(self, opener: Opener) -> None:
        store = await opener()
        for cluster in ("one", "one-more", "two"):
            for plural in ("pods", "secrets"):
                await put(store, "default/a", bucket=f"{cluster}/core/{plural}")
        before = store.revision
        assert await store.drop("one/") == 2
        assert store.revision > before
        assert [*(await store.buckets(""))] == [
            "one-more/core/pods", "one-more/core/secrets", "two/core/pods", "two/core/secrets",
        ]  # fmt: skip
        assert await store.get(StoreKey("one/core/pods", "default/a")) is None
        assert await store.count("one/core/pods") == 0
        assert await store.drop("one/") == 0
        again = await put(store, "default/a", bucket="one/core/pods", expected=0)
        assert [*(await store.list("one/core/pods")).records] == [again]

    async def test_drop_ends_its_watches_and_leaves_others(self, opener: Opener) -> None:
        store = await opener()
        record = await put(store, "default/a", bucket="one/core/pods")
        async with (
            aclosing(store.watch("one/core/pods", after=record.revision)) as dropped,
            aclosing(store.watch("one/core/empty", after=record.revision)) as empty,
            aclosing(store.watch("two/core/pods", after=record.revision)) as other,
        ):
            waiting = asyncio.create_task(batch(dropped))
            await asyncio.sleep(0)
            await store.drop("one/")
            for ended in (waiting, batch(empty)):
                with pytest.raises(RevisionCompacted):
                    await ended
            later = await put(store, "default/a", bucket="two/core/pods")
            assert [change.record for change in await batch(other)] == [later]

    async def test_nothing_of_a_dropped_bucket_can_be_read_from_the_past(self, opener: Opener) -> None:
        store = await opener()
        record = await put(store, "default/a", bucket="one/core/pods")
        await store.drop("one/")
        dropped = store.revision
        await put(store, "default/b", bucket="one/core/pods")
        with pytest.raises(RevisionCompacted):
            await store.list("one/core/pods", revision=record.revision)
        with pytest.raises(RevisionCompacted):
            store.watch("one/core/pods", after=record.revision)
        async with aclosing(store.watch("one/core/pods", after=dropped)) as watch:
            assert [change.name for change in await batch(watch)] == ["default/b"]

    async def test_a_drop_with_a_guard_happens_only_while_the_guard_stands(self, opener: Opener) -> None:
        store = await opener()
        await put(store, "default/a", bucket="one/core/pods")
        guard = await put(store, "one", bucket="root/hortus/clusters")
        for expected in (0, guard.revision - 1, guard.revision + 1):
            with pytest.raises(Mismatch) as caught:
                await store.drop("one/", guard=guard.key, expected=expected)
            assert (caught.value.key, caught.value.current) == (guard.key, guard)
        with pytest.raises(Mismatch) as caught:
            await store.drop("one/", guard=StoreKey(guard.bucket, "two"), expected=guard.revision)
        assert caught.value.current is None
        assert (await store.count("one/core/pods"), store.revision) == (1, guard.revision)
        assert await store.drop("one/", guard=guard.key, expected=guard.revision) == 1
        await put(store, "default/a", bucket="one/core/pods")
        await store.delete(guard.key, expected=None)
        assert await store.drop("one/", guard=guard.key, expected=0) == 1


class ServingContract:
    """The parts that the API server's own caches, health and full disks stand on."""

    async def test_followers_see_each_change_before_its_writer_and_before_watches(self, opener: Opener) -> None:
        store = await opener()
        order: list[Commit | str | int] = []
        await put(store, "default/before")
        store.follow(lambda change: order.append(change), order.append)

        async def write(work: Awaitable[StoredRecord | int]) -> None:
            done = await work
            order.append(done if isinstance(done, int) else done.revision)

        async def read(watch: StoreWatch) -> None:
            for change in await batch(watch):
                assert change in order

        async with aclosing(store.watch(PODS, after=store.revision)) as watch:
            reading = asyncio.create_task(read(watch))
            await write(put(store, "default/a", "1"))
            await reading
            await write(put(store, "default/a", "2"))
            await write(put(store, "default/a", bucket=SECRETS))
            await write(store.delete(pod("default/a"), expected=None, final=body("last words")))
            heard = [change for change in order if isinstance(change, Commit)]
            assert [change for change in order if not isinstance(change, Commit)] == [each.revision for each in heard]
            assert order[1::2] == [change.revision for change in order[::2] if isinstance(change, Commit)]
            assert await changes(watch, 2) == [heard[1], heard[3]]
        await put(store, "default/a", bucket="one/core/pods")
        await store.drop("one/")
        assert order[-1] == "one/"

    async def test_followers_hear_concurrent_writers_in_order_of_revision(self, opener: Opener) -> None:
        store = await opener()
        heard: list[int] = []
        store.follow(lambda change: heard.append(change.revision), lambda prefix: None)
        records = await asyncio.gather(*(put(store, f"default/{number % 7}") for number in range(50)))
        assert heard == sorted(record.revision for record in records)

    async def test_what_was_acknowledged_is_known_without_asking(self, opener: Opener) -> None:
        store = await opener()
        record = await put(store, "default/a")
        assert await store.get(record.key, fresh=False) == record
        assert [*(await store.list(PODS, fresh=False)).records] == [record]
        assert await store.sync() == store.revision == record.revision
        gone = await store.delete(record.key, expected=None)
        assert await store.get(record.key, fresh=False) is None
        assert not (await store.list(PODS, fresh=False)).records
        assert await store.sync() == store.revision == gone

    async def test_a_token_of_a_list_stands_for_its_content(self, opener: Opener) -> None:
        store = await opener()
        record = await put(store, "a/1")
        await put(store, "b/1")
        states = [(await store.list(PODS)).state]
        await put(store, "a/1", bucket=SECRETS)
        assert states == [(await store.list(PODS)).state]
        assert (await store.list(PODS, prefix="a/")).state is states[0]
        for options in ({"limit": 5}, {"after": "a/1"}):
            assert (await store.list(PODS, **options)).state is None  # type: ignore[arg-type]
        for change in (put(store, "a/2"), put(store, "a/1", "new"), store.delete(record.key, expected=None)):
            await change
            states.append((await store.list(PODS)).state)
        assert (await store.list(PODS, revision=record.revision)).state is None
        assert None not in states
        assert len({id(state) for state in states}) == len(states)

    async def test_a_healthy_store_passes_its_check_and_takes_the_last_writes_of_leaving_objects(
        self, opener: Opener
    ) -> None:
        store = await opener()
        await store.check()
        record = await store.put(pod("default/a"), body("going")._replace(leaving=True), expected=0)
        assert record.value == body("going").at(record.revision)
        await store.check()


class StoreContract(WritesContract, ReadsContract, WatchContract, HistoryContract, DropContract, ServingContract):
    """All of it."""
