"""Objects that clusters are born with behave as if each cluster had stored them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hortus.apiserver.store import Backend, MemoryBackend, Mismatch, StoreKey, Value
from hortus.apiserver.store.overlay import BORN_REVISION, Overlay

BUCKET = "a/core/namespaces"
NAMES = ["/b", "/d", "/x"]


def value(text: str) -> Value:
    return Value(b'{"text":"%s","revision":"' % text.encode(), b'"}')


BORN = {"core/namespaces": {name: value("born").at(BORN_REVISION) for name in ("/b", "/d")}}


@pytest.fixture
async def overlay() -> AsyncIterator[Overlay]:
    memory = MemoryBackend()
    await memory.start()
    await memory.put(StoreKey("_server/keys", "/keys"), value("keys"), expected=0)
    yield Overlay(memory, BORN)
    await memory.close()


async def names(overlay: Backend, bucket: str = BUCKET, **options: Any) -> list[str]:
    return [record.name for record in (await overlay.list(bucket, **options)).records]


async def test_every_cluster_has_the_born_objects(overlay: Overlay) -> None:
    for cluster in ("a", "b"):
        bucket = f"{cluster}/core/namespaces"
        assert await names(overlay, bucket) == ["/b", "/d"]
        assert await overlay.count(bucket) == 2
        assert await overlay.buckets(f"{cluster}/") == [bucket]
        record = await overlay.get(StoreKey(bucket, "/b"))
        assert record is not None and record.key == StoreKey(bucket, "/b") and record.revision == BORN_REVISION
    assert await names(overlay, "a/core/secrets") == []


async def test_a_write_over_a_born_object_is_the_clusters_own(overlay: Overlay) -> None:
    key = StoreKey(BUCKET, "/b")
    with pytest.raises(Mismatch) as refused:
        await overlay.put(key, value("new"), expected=0)
    assert refused.value.current is not None and refused.value.current.revision == BORN_REVISION
    record = await overlay.put(key, value("new"), expected=BORN_REVISION)
    assert await overlay.get(key) == record
    with pytest.raises(Mismatch):
        await overlay.put(key, value("newer"), expected=BORN_REVISION)
    other = await overlay.get(StoreKey("b/core/namespaces", "/b"))
    assert other is not None and b"born" in other.value


async def test_the_deletion_of_a_born_object_whose_last_state_nobody_gave_shows_none(overlay: Overlay) -> None:
    async with aclosing(overlay.watch(BUCKET, after=overlay.revision)) as watch:
        await overlay.delete(StoreKey(BUCKET, "/b"), expected=BORN_REVISION)
        (seen,) = await anext(watch)
    assert (seen.record, seen.final) == (None, None)


async def test_a_deleted_born_object_stays_deleted_until_it_is_created(overlay: Overlay) -> None:
    key = StoreKey(BUCKET, "/b")
    await overlay.delete(key, expected=BORN_REVISION, final=value("gone"))
    assert await overlay.get(key) is None
    assert await names(overlay) == ["/d"]
    with pytest.raises(Mismatch) as refused:
        await overlay.delete(key, expected=None)
    assert refused.value.current is None
    created = await overlay.put(key, value("again"), expected=0)
    assert await overlay.get(key) == created
    assert await names(overlay) == ["/b", "/d"]


async def test_watchers_see_a_change_and_a_deletion_of_a_born_object(overlay: Overlay) -> None:
    async with aclosing(overlay.watch(BUCKET, after=overlay.revision)) as watch:
        first = await overlay.put(StoreKey(BUCKET, "/b"), value("new"), expected=BORN_REVISION)
        removed = await overlay.delete(StoreKey(BUCKET, "/d"), expected=BORN_REVISION, final=value("gone"))
        seen: list[Any] = []
        async with asyncio.timeout(60):
            while len(seen) < 2:
                seen += await anext(watch)
    assert (seen[0].record, seen[0].previous) == (first, BORN["core/namespaces"]["/b"])
    assert (seen[1].record, seen[1].previous) == (None, BORN["core/namespaces"]["/d"])
    assert seen[1].final == value("gone").at(removed)


async def test_a_dropped_cluster_is_as_it_was_born(overlay: Overlay) -> None:
    await overlay.delete(StoreKey(BUCKET, "/b"), expected=None)
    await overlay.put(StoreKey(BUCKET, "/c"), value("new"), expected=0)
    await overlay.drop("a/")
    assert await names(overlay) == ["/b", "/d"]


steps = st.lists(
    st.tuples(st.sampled_from(["put", "delete"]), st.sampled_from(NAMES), st.sampled_from(["right", "zero", "any"])),
    max_size=12,
)


@settings(max_examples=60, deadline=None)
@given(steps)
def test_an_overlay_behaves_as_a_store_that_holds_the_objects(history: list[tuple[str, str, str]]) -> None:
    asyncio.run(_expect_the_same(history))


async def _expect_the_same(history: list[tuple[str, str, str]]) -> None:
    plain, beneath = MemoryBackend(), MemoryBackend()
    overlay = Overlay(beneath, BORN)
    for name in BORN["core/namespaces"]:
        await plain.put(StoreKey(BUCKET, name), value("born"), expected=0)
    await beneath.put(StoreKey("_server/keys", "/keys"), value("keys"), expected=0)
    start = plain.revision, overlay.revision
    watches = plain.watch(BUCKET, after=start[0]), overlay.watch(BUCKET, after=start[1])
    for number, (verb, name, expectation) in enumerate(history):
        outcomes = [await _step(store, verb, name, expectation, str(number)) for store in (plain, overlay)]
        assert outcomes[0] == outcomes[1]
        assert await _texts(plain) == await _texts(overlay)
    for limit, after in ((0, ""), (1, ""), (2, "/b")):
        one, other = [await store.list(BUCKET, limit=limit, after=after) for store in (plain, overlay)]
        assert [record.name for record in one.records] == [record.name for record in other.records]
        assert one.remaining == other.remaining
    seen = [await _seen(watch, store) for watch, store in zip(watches, (plain, overlay), strict=True)]
    assert seen[0] == seen[1]
    await plain.close()
    await beneath.close()


async def _step(store: Backend, verb: str, name: str, expectation: str, text: str) -> str:
    key = StoreKey(BUCKET, name)
    current = await store.get(key)
    expected = {"right": current.revision if current else 0, "zero": 0, "any": None}[expectation]
    try:
        if verb == "put":
            await store.put(key, value(text), expected=expected)
        elif expected == 0 and current is None:
            return "skipped"
        else:
            await store.delete(key, expected=expected, final=value(f"final {text}"))
    except Mismatch as problem:
        return "mismatch with something" if problem.current else "mismatch with nothing"
    return "done"


def _text(encoded: bytes | None) -> bytes | None:
    return encoded and encoded.partition(b'"revision"')[0]


async def _texts(store: Backend) -> dict[str, bytes | None]:
    return {record.name: _text(record.value) for record in (await store.list(BUCKET)).records}


async def _seen(watch: Any, store: Backend) -> list[Any]:
    """All changes so far: a last write marks the end."""
    await store.put(StoreKey(BUCKET, "/zz"), value("end"), expected=0)
    found: list[Any] = []
    async with aclosing(watch), asyncio.timeout(60):
        while not found or found[-1][0].name != "/zz":
            batch = await anext(watch)
            found += [(c.key, _text(c.value), _text(c.previous), _text(c.final)) for c in batch]
    return found
