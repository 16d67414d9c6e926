"""An overlay keeps the contract of a store, and its followers and options see born objects as stored ones."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest
from tests.apiserver.store.contract import PODS, Opener, StoreContract, batch, body, opening, put

from hortus.apiserver.store import (
    Backend,
    Commit,
    MemoryBackend,
    StoreFailed,
    StoreKey,
    Value,
)
from hortus.apiserver.store.overlay import BORN_REVISION, Overlay

ROLES = "root/rbac/roles"
BORN = {"rbac/roles": {name: body("born").at(BORN_REVISION) for name in ("a/one", "a/two", "b/one")}}


@pytest.fixture
async def opener() -> AsyncIterator[Opener]:
    async with opening(lambda **options: Overlay(MemoryBackend(**options), {})) as made:
        yield made


@pytest.fixture
async def store() -> AsyncIterator[Overlay]:
    made = Overlay(MemoryBackend(), BORN)
    await put(made, "/first")  # no object is at the revision of the born ones
    yield made
    await made.close()


class TestOverlay(StoreContract):
    """The contract where clusters are born with nothing."""


async def names(store: Backend, bucket: str = ROLES, **options: object) -> tuple[list[str], int]:
    page = await store.list(bucket, **options)  # type: ignore[arg-type]
    return [record.name for record in page.records], page.remaining


async def test_lists_of_born_objects_take_a_prefix_a_place_and_a_limit(store: Overlay) -> None:
    await put(store, "a/own", bucket=ROLES)
    assert await names(store) == (["a/one", "a/own", "a/two", "b/one"], 0)
    assert await names(store, prefix="a/") == (["a/one", "a/own", "a/two"], 0)
    assert await names(store, after="a/one") == (["a/own", "a/two", "b/one"], 0)
    assert await names(store, after="a/one", limit=2) == (["a/own", "a/two"], 1)
    assert await names(store, prefix="a/", limit=1) == (["a/one"], 2)
    revision = store.revision
    await put(store, "c/later", bucket=ROLES)
    assert await names(store, revision=revision) == (["a/one", "a/own", "a/two", "b/one"], 0)
    assert await store.count(ROLES) == 5


async def test_followers_hear_of_visible_changes_and_of_drops(store: Overlay) -> None:
    heard: list[Commit | str] = []
    store.follow(heard.append, heard.append)
    changed = await store.put(StoreKey(ROLES, "a/one"), body("new"), expected=BORN_REVISION)
    await store.delete(StoreKey(ROLES, "a/two"), expected=BORN_REVISION, final=body("final"))
    again = await store.put(StoreKey(ROLES, "a/two"), body("again"), expected=0)
    await put(store, "/pod")
    await store.drop("root/")
    first, second, third, fourth, dropped = heard
    assert isinstance(first, Commit) and isinstance(second, Commit) and isinstance(third, Commit)
    born = BORN["rbac/roles"]["a/one"]
    assert (first.record, first.previous) == (changed, born)
    assert (second.record, second.previous, second.final) == (None, born, body("final").at(second.revision))
    assert (third.record, third.previous) == (again, None)
    assert isinstance(fourth, Commit) and fourth.bucket == PODS
    assert dropped == "root/"


async def test_a_shared_object_is_shown_as_its_cluster_identifies_it(store: Overlay) -> None:
    store.identify(lambda bucket, name, value: value.replace(b"born", f"{bucket} {name}".encode()))
    wanted = body(f"{ROLES} a/one").at(BORN_REVISION)
    found = await store.get(StoreKey(ROLES, "a/one"))
    assert found is not None and found.value == wanted
    assert (await store.list(ROLES)).records[0].value == wanted
    async with aclosing(store.watch(ROLES, after=store.revision)) as watch:
        await store.put(StoreKey(ROLES, "a/one"), body("new"), expected=BORN_REVISION)
        [change] = await batch(watch)
    assert change.previous == wanted


async def test_a_watch_passes_over_what_nobody_sees(store: Overlay) -> None:
    """A cluster's tombstone over a tombstone, as of two servers that delete at once, is no change."""
    beneath = MemoryBackend()
    one = Overlay(beneath, BORN)
    await put(one, "/first")
    revision = await one.delete(StoreKey(ROLES, "a/one"), expected=None)
    stored = await beneath.get(StoreKey(ROLES, "a/one"))
    assert stored is not None
    async with aclosing(one.watch(ROLES, after=revision)) as watch:
        again = await beneath.put(StoreKey(ROLES, "a/one"), Value(b'{"tombstone":', b"}"), expected=stored.revision)
        seen = await put(one, "a/three", bucket=ROLES)
        [change] = await batch(watch)
        assert change.record == seen
        assert watch.seen == seen.revision > again.revision


async def test_buckets_usage_and_tombstones(store: Overlay) -> None:
    assert await store.buckets("other/") == ["other/rbac/roles"]
    assert await store.buckets("other/core") == []
    assert await store.buckets("root/") == [PODS, ROLES]
    assert PODS in await store.buckets("")
    assert (await store.usage("other/")) == (0, 0)
    await store.delete(StoreKey(ROLES, "a/one"), expected=None)
    assert (await store.get(StoreKey(ROLES, "a/one"))) is None
    assert await store.count(ROLES) == 2
    assert (await store.usage("root/")).objects == 2


async def test_what_the_store_beneath_says_of_itself_is_passed_on() -> None:
    class Failing(MemoryBackend):
        async def check(self) -> None:
            raise StoreFailed("no space")

        async def sync(self) -> int:
            return 42

    overlay = Overlay(Failing(), BORN)
    with pytest.raises(StoreFailed, match="no space"):
        await overlay.check()
    assert await overlay.sync() == 42
    record = await put(overlay, "/pod")
    await put(overlay, "/pod", "y")
    assert overlay.compacted < record.revision
    await overlay.compact(record.revision)
    assert overlay.compacted == record.revision
