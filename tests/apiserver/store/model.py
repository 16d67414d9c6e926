"""Random histories against a model: what the store, its lists of now and then, and its watches say must agree."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from hortus.apiserver.store import (
    Backend,
    Commit,
    HistoryLimits,
    Mismatch,
    RevisionCompacted,
    StoredRecord,
    StoreKey,
    StoreWatch,
    Value,
)

BUCKETS = ("one/core/pods", "one/apps/deployments", "two/core/pods")
NAMES = ("a/1", "a/2", "ab/1", "b/1", "/c")
PREFIXES = ("", "a/", "b/")

buckets, names, prefixes = st.sampled_from(BUCKETS), st.sampled_from(NAMES), st.sampled_from(PREFIXES)
Follower = tuple[StoreWatch, str, str, int, dict[str, StoredRecord]]


class StoreMachine(RuleBasedStateMachine):
    """Subclass with `open_store`, which gives an empty store; a store that restarts also gives `reopen`."""

    history: ClassVar[HistoryLimits] = HistoryLimits(changes=12)

    def open_store(self) -> Awaitable[Backend]:
        raise NotImplementedError

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.state: dict[StoreKey, StoredRecord] = {}
        self.log: list[Commit] = []
        self.dropped: dict[str, int] = dict.fromkeys(BUCKETS, 0)
        self.followers: list[Follower] = []
        self.last = 0

    def run(self, work: Callable[[], Any]) -> Any:
        async def call() -> Any:
            return await work()

        return self.runner.run(call())

    @initialize()
    def begin(self) -> None:
        self.store = self.run(self.open_store)
        self.last = self.first = self.store.revision

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.run(self.store.close)
        self.runner.close()

    def committed(self, change: Commit) -> None:
        assert change.revision > self.last
        self.last = change.revision
        self.log.append(change)
        if change.record is None:
            del self.state[change.key]
        else:
            self.state[change.key] = change.record

    @rule(bucket=buckets, name=names, text=st.binary(max_size=8), stale=st.integers(0, 3))
    def put(self, bucket: str, name: str, text: bytes, stale: int) -> None:
        key, before = StoreKey(bucket, name), self.state.get(StoreKey(bucket, name))
        right = before.revision if before else 0
        expected = {0: None, 1: right, 2: right}.get(stale, right + 1)
        try:
            record = self.run(lambda: self.store.put(key, Value(text, b"!"), expected=expected))
        except Mismatch as mismatch:
            assert stale == 3
            assert mismatch.current == before
            return
        assert stale != 3
        assert record == StoredRecord(bucket, name, Value(text, b"!").at(record.revision), record.revision)
        self.committed(Commit(record.revision, record, before))

    @rule(bucket=buckets, name=names, exact=st.booleans())
    def delete(self, bucket: str, name: str, exact: bool) -> None:
        key, before = StoreKey(bucket, name), self.state.get(StoreKey(bucket, name))
        expected = before.revision if before and exact else None
        try:
            revision = self.run(lambda: self.store.delete(key, expected=expected, final=Value(b"bye", b"")))
        except Mismatch as mismatch:
            assert before is None
            assert mismatch.current is None
            return
        assert before is not None
        self.committed(Commit(revision, None, before, b"bye%d" % revision))

    @rule(several=st.lists(st.tuples(buckets, names), min_size=2, max_size=6))
    def put_at_once(self, several: list[tuple[str, str]]) -> None:
        async def gather() -> list[StoredRecord]:
            return await asyncio.gather(
                *(self.store.put(StoreKey(*where), Value(b"many", b""), expected=None) for where in several)
            )

        for record in sorted(self.run(gather), key=lambda kept: kept.revision):
            self.committed(Commit(record.revision, record, self.state.get(record.key)))

    @rule(prefix=st.sampled_from(["one/", "two/", "one/apps/"]))
    def drop(self, prefix: str) -> None:
        gone = [key for key in self.state if key.bucket.startswith(prefix)]
        assert self.run(lambda: self.store.drop(prefix)) == len(gone)
        for key in gone:
            del self.state[key]
        self.last = self.store.revision
        for bucket in BUCKETS:
            if bucket.startswith(prefix):
                self.dropped[bucket] = self.last
        self.log = [change for change in self.log if not change.bucket.startswith(prefix)]

    @rule(back=st.integers(0, 5))
    def compact(self, back: int) -> None:
        self.run(lambda: self.store.compact(max(self.first, self.last - back)))

    @rule(bucket=buckets, prefix=prefixes, back=st.integers(0, 15))
    def follow(self, bucket: str, prefix: str, back: int) -> None:
        after = max(self.first, self.last - back)
        view = {key.name: record for key, record in self.at(bucket, after).items() if key.name.startswith(prefix)}

        async def watch() -> StoreWatch:
            return self.store.watch(bucket, after=after, prefix=prefix)

        try:
            self.followers.append((self.run(watch), bucket, prefix, after, view))
        except RevisionCompacted:
            assert after < max(self.store.compacted, self.dropped[bucket])

    @rule(bucket=buckets, prefix=prefixes, back=st.integers(0, 15), limit=st.integers(0, 3))
    def page_through(self, bucket: str, prefix: str, back: int, limit: int) -> None:
        revision, after, got, remaining = max(self.first, self.last - back), "", [], 1
        while remaining:
            try:
                page = self.run(
                    lambda: self.store.list(bucket, prefix=prefix, after=after, limit=limit, revision=revision)  # noqa: B023
                )
            except RevisionCompacted:
                assert revision < max(self.store.compacted, self.dropped[bucket])
                return
            assert page.revision == revision or not revision
            got += page.records
            remaining, after, revision = page.remaining, got[-1].name if got else "", page.revision
        state = self.at(bucket, revision)
        assert got == [state[key] for key in sorted(state) if key.name.startswith(prefix)]

    @precondition(lambda self: self.followers)
    @rule(data=st.data())
    def catch_up(self, data: st.DataObject) -> None:
        which = data.draw(st.integers(0, len(self.followers) - 1))
        watch, bucket, prefix, after, view = self.followers.pop(which)
        wanted = [
            change
            for change in self.log
            if change.bucket == bucket and change.revision > after and change.name.startswith(prefix)
        ]
        got: list[Commit] = []
        while len(got) < len(wanted):
            try:
                got += self.run(lambda: anext(watch))
            except RevisionCompacted:
                assert after < self.dropped[bucket]
                self.run(watch.aclose)
                return
        if after >= self.dropped[bucket]:
            assert got == wanted
            for change in got:
                view[change.name] = change.record  # type: ignore[assignment]
            alive = {name: record for name, record in view.items() if record is not None}
            assert alive == {key.name: kept for key, kept in self.now(bucket).items() if key.name.startswith(prefix)}
        self.run(watch.aclose)

    def now(self, bucket: str) -> dict[StoreKey, StoredRecord]:
        return {key: record for key, record in self.state.items() if key.bucket == bucket}

    def at(self, bucket: str, revision: int) -> dict[StoreKey, StoredRecord]:
        state = self.now(bucket)
        for change in reversed(self.log):
            if change.bucket == bucket and change.revision > revision:
                state.pop(change.key, None)
                if change.replaced is not None:
                    state[change.key] = change.replaced
        return state

    @invariant()
    def store_and_lists_agree_with_the_model(self) -> None:
        if not hasattr(self, "store"):
            return
        assert self.store.revision == self.last
        for bucket in BUCKETS:
            state = self.now(bucket)
            page = self.run(lambda: self.store.list(bucket))  # noqa: B023
            assert [*page.records] == [state[key] for key in sorted(state)]
            assert self.run(lambda: self.store.count(bucket)) == len(state)  # noqa: B023
        held = {key.bucket for key in self.state}
        assert [*self.run(lambda: self.store.buckets(""))] == sorted(held)
        assert self.run(lambda: self.store.usage("one/")) == (
            sum(key.bucket.startswith("one/") for key in self.state),
            sum(len(record.value) for key, record in self.state.items() if key.bucket.startswith("one/")),
        )
