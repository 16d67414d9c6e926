"""A full disk: what makes room gets through, what needs room is refused, and all is taken again when there is some."""

from __future__ import annotations

import asyncio
import errno
import os
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.apiserver.store.contract import PODS, body, pod, put

from hortus.apiserver.store import SqliteBackend, StoreFailed
from hortus.apiserver.store import _reserve as reserve
from hortus.apiserver.store._log import connect
from hortus.apiserver.store.backend import Value


class Disk:
    """While `full`, it has no space but what the reserve of `path` gives back."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.full = False
        self._reserve = path.with_name(path.name + ".reserve")
        allocate = reserve._allocate

        def allocated(descriptor: int, size: int) -> None:
            if self.full:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            allocate(descriptor, size)

        monkeypatch.setattr(reserve, "_allocate", allocated)

    def connect(self, path: Path) -> sqlite3.Connection:
        disk = self

        class Connection(sqlite3.Connection):
            def execute(self, statement: str, parameters: Any = ()) -> sqlite3.Cursor:
                if disk.full and statement.startswith("INSERT") and disk._reserve.stat().st_size:
                    error = sqlite3.OperationalError("database or disk is full")
                    error.sqlite_errorcode = sqlite3.SQLITE_FULL
                    raise error
                return super().execute(statement, parameters)

        connect(path).close()
        return sqlite3.connect(path, isolation_level=None, check_same_thread=False, factory=Connection)


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(tmp_path / "store.db", monkeypatch)


@pytest.fixture
async def store(tmp_path: Path, disk: Disk) -> AsyncIterator[SqliteBackend]:
    store = SqliteBackend(tmp_path / "store.db", connect=disk.connect)
    await store.start()
    yield store
    await store.close()


def leaving(text: str) -> Value:
    return body(text)._replace(leaving=True)


async def test_a_deletion_gets_through_as_the_first_write_that_finds_the_disk_full(
    store: SqliteBackend, disk: Disk, tmp_path: Path
) -> None:
    for name in "abc":
        await put(store, f"default/{name}")
    disk.full = True
    await store.delete(pod("default/a"), expected=None, final=body("end"))
    with pytest.raises(StoreFailed, match=r"only deletions are taken until 32 MiB are free"):
        await put(store, "default/d")
    with pytest.raises(StoreFailed):
        await store.check()
    await store.delete(pod("default/b"), expected=None, final=body("end"))
    await store.close()
    again = SqliteBackend(tmp_path / "store.db", connect=disk.connect)
    await again.start()
    assert [record.name for record in (await again.list(PODS)).records] == ["default/c"]
    await again.delete(pod("default/c"), expected=None)
    await again.close()


async def test_after_a_write_was_refused_deletions_marks_and_drops_get_through(
    store: SqliteBackend, disk: Disk
) -> None:
    for name in "abc":
        await put(store, f"default/{name}")
    await put(store, "default/a", bucket="other/core/pods")
    disk.full = True
    with pytest.raises(StoreFailed, match="full"):
        await put(store, "default/d")
    marked = await store.put(pod("default/a"), leaving("deletionTimestamp"), expected=None)
    assert await store.get(pod("default/a")) == marked
    with pytest.raises(StoreFailed):
        await store.put(pod("default/b"), leaving("x" * 20_000), expected=None)
    await asyncio.gather(*(store.delete(pod(f"default/{name}"), expected=None) for name in "abc"))
    assert await store.drop("other/") == 1
    assert not (await store.list(PODS)).records


async def test_everything_is_taken_again_when_there_is_space(store: SqliteBackend, disk: Disk, tmp_path: Path) -> None:
    first = await put(store, "default/a")
    watch = store.watch(PODS, after=first.revision)
    disk.full = True
    with pytest.raises(StoreFailed):
        await put(store, "default/b")
    gone = await store.delete(pod("default/a"), expected=None, final=body("end"))
    disk.full = False
    await store.check()
    back = await put(store, "default/b")
    seen = [*await anext(watch)]
    while len(seen) < 2:
        seen += await anext(watch)
    assert [(change.revision, change.record) for change in seen] == [(gone, None), (back.revision, back)]
    assert (tmp_path / "store.db.reserve").stat().st_size == reserve.RESERVE_BYTES
    await store.close()
    assert (tmp_path / "store.db.reserve").stat().st_size == 0


async def test_space_of_deleted_objects_is_returned(store: SqliteBackend, disk: Disk, tmp_path: Path) -> None:
    for number in range(40):
        await put(store, f"default/{number}", "z" * 100_000)
    disk.full = True
    with pytest.raises(StoreFailed):
        await put(store, "default/more")
    await asyncio.gather(*(store.delete(pod(f"default/{number}"), expected=None) for number in range(40)))
    await store.close()
    assert (tmp_path / "store.db").stat().st_size < 200_000
