"""The SQLite store keeps the contract, over restarts, failing disks and foreign files too."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import rule
from tests.apiserver.store.contract import PODS, Opener, StoreContract, batch, body, changes, fill, opening, pod, put
from tests.apiserver.store.model import StoreMachine

from hortus.apiserver.store import (
    Backend,
    HistoryLimits,
    Mismatch,
    RevisionCompacted,
    SqliteBackend,
    StoredRecord,
    StoreFailed,
)
from hortus.apiserver.store import sqlite as sqlite_module
from hortus.apiserver.store._log import connect


@pytest.fixture
async def opener(tmp_path: Path) -> AsyncIterator[Opener]:
    numbers = itertools.count()

    def make(**options: Any) -> Backend:
        return SqliteBackend(tmp_path / f"{next(numbers)}" / "store.db", **options)

    async with opening(make) as made:
        yield made


class TestSqliteBackend(StoreContract):
    pass


class SqliteMachine(StoreMachine):
    """The model, with restarts."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()

    def open_store(self) -> Awaitable[Backend]:
        async def opened() -> Backend:
            store = SqliteBackend(Path(self.folder.name) / "store.db", history=self.history)
            await store.start()
            return store

        return opened()

    def teardown(self) -> None:
        super().teardown()
        self.folder.cleanup()

    @rule()
    def restart(self) -> None:
        for watch, *_ in self.followers:
            self.run(watch.aclose)
        self.followers.clear()
        compacted = self.store.compacted
        self.run(self.store.close)
        self.store = self.run(self.open_store)
        assert self.store.compacted >= compacted


TestSqliteModel = SqliteMachine.TestCase
TestSqliteModel.settings = settings(
    max_examples=25, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)


class Disk:
    """Connections whose statements fail while `error` is set: before they run, or when `late` after they committed."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.late = False
        self.batches: list[int] = []

    def connect(self, path: Path) -> sqlite3.Connection:
        disk = self

        class Connection(sqlite3.Connection):
            def execute(self, statement: str, parameters: Any = ()) -> sqlite3.Cursor:
                if disk.error is not None and not disk.late:
                    raise disk.error
                if statement.startswith("INSERT INTO log"):
                    disk.batches.append(len(parameters) // 5)
                cursor = super().execute(statement, parameters)
                if disk.error is not None and statement.startswith("INSERT INTO log"):
                    raise disk.error
                return cursor

        real = connect(path)
        real.close()
        return sqlite3.connect(path, isolation_level=None, check_same_thread=False, factory=Connection)


async def reopened(path: Path, store: SqliteBackend, **options: Any) -> SqliteBackend:
    await store.close()
    again = SqliteBackend(path, **options)
    await again.start()
    return again


async def test_everything_is_back_after_a_restart_and_watches_resume_where_they_were(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = SqliteBackend(path)
    await store.start()
    created = await put(store, "default/a", "1")
    updated = await put(store, "default/a", "2")
    gone = await put(store, "default/b")
    deletion = await store.delete(gone.key, expected=None, final=body("end"))
    store = await reopened(path, store)
    assert (store.revision, store.compacted) == (deletion, 0)
    assert [*(await store.list(PODS)).records] == [updated]
    assert [*(await store.list(PODS, revision=gone.revision)).records] == [updated, gone]
    async with aclosing(store.watch(PODS, after=created.revision)) as watch:
        seen = await changes(watch, 3)
    assert [change.record for change in seen] == [updated, gone, None]
    assert seen[-1].final == body("end").at(deletion)
    later = await put(store, "default/b", expected=0)
    assert later.revision == deletion + 1
    await store.close()


async def test_the_revision_never_goes_back_when_all_that_was_last_is_deleted_and_compacted(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = SqliteBackend(path)
    await store.start()
    names = await fill(store, 10)
    for name in names:
        await store.delete(pod(name), expected=None)
    await store.drop("root/")
    last = store.revision
    await store.compact(last)
    store = await reopened(path, store)
    assert (store.revision, store.compacted) == (last, last)
    with pytest.raises(RevisionCompacted):
        store.watch(PODS, after=last - 1)
    await store.close()
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM log").fetchone() == (0,)
    connection.close()


async def test_a_dropped_cluster_stays_dropped_over_restarts(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = SqliteBackend(path)
    await store.start()
    record = await put(store, "default/a", "1", bucket="one/core/pods")
    await put(store, "default/a", "2", bucket="one/core/pods")
    kept = await put(store, "default/a", bucket="two/core/pods")
    assert await store.drop("one/") == 1
    dropped = store.revision
    store = await reopened(path, store)
    assert store.revision == dropped
    assert [*(await store.buckets(""))] == ["two/core/pods"]
    assert await store.get(kept.key) == kept
    with pytest.raises(RevisionCompacted):
        store.watch("one/core/pods", after=record.revision)
    await store.compact(dropped)
    store = await reopened(path, store)
    assert [*(await store.buckets(""))] == ["two/core/pods"]
    await store.close()


async def test_a_write_to_a_cluster_that_is_being_dropped_lands_after_the_drop(tmp_path: Path) -> None:
    store = SqliteBackend(tmp_path / "store.db")
    await store.start()
    await put(store, "default/a", "1", bucket="one/core/pods")
    pending, dropped, again = await asyncio.gather(
        put(store, "default/b", "2", bucket="one/core/pods"),
        store.drop("one/"),
        put(store, "default/b", "3", bucket="one/core/pods", expected=0),
    )
    assert dropped == 2
    assert pending.revision < again.revision
    assert [*(await store.list("one/core/pods")).records] == [again]
    await store.close()


async def test_a_write_is_invisible_until_durable_and_still_guards_against_a_second(tmp_path: Path) -> None:
    store = SqliteBackend(tmp_path / "store.db")
    await store.start()
    base = await put(store, "default/a", "1")
    watch = store.watch(PODS, after=base.revision)
    first = asyncio.create_task(put(store, "default/a", "2", expected=base.revision))
    await asyncio.sleep(0)
    assert await store.get(pod("default/a")) == base
    assert store.revision == watch.seen == base.revision
    with pytest.raises(Mismatch) as caught:
        await put(store, "default/a", "3", expected=base.revision)
    assert first.done()
    assert caught.value.current == await first == await store.get(pod("default/a"))
    assert [change.record for change in await batch(watch)] == [await first]
    await store.close()


async def test_writes_of_one_turn_share_one_transaction(tmp_path: Path) -> None:
    disk = Disk()
    store = SqliteBackend(tmp_path / "store.db", connect=disk.connect)
    await store.start()
    await asyncio.gather(*(put(store, f"default/{number}") for number in range(16)))
    assert disk.batches == [16]
    await asyncio.gather(*(put(store, f"default/{number}") for number in range(1200)))
    assert disk.batches == [16, 500, 500, 200]
    await store.close()


@pytest.mark.parametrize("late", [False, True], ids=["before-the-commit", "after-the-commit"])
async def test_a_failing_disk_fails_the_batch_and_reads_and_recovery_go_on(tmp_path: Path, late: bool) -> None:
    path = tmp_path / "store.db"
    disk = Disk()
    store = SqliteBackend(path, connect=disk.connect)
    await store.start()
    base = await put(store, "default/a", "1")
    watch = store.watch(PODS, after=base.revision)
    disk.error, disk.late = sqlite3.OperationalError("disk I/O error"), late
    results = await asyncio.gather(
        put(store, "default/a", "2", expected=base.revision),
        put(store, "default/b", "2", expected=0),
        store.delete(base.key, expected=None),
        store.drop("root/"),
        return_exceptions=True,
    )
    assert [type(result) for result in results] == [StoreFailed] * 4
    assert "disk I/O error" in str(results[0])
    assert str(path) in str(results[0])
    assert [*(await store.list(PODS)).records] == [base]
    assert store.revision == watch.seen == base.revision
    with pytest.raises(StoreFailed):
        await put(store, "default/c")
    disk.error = None
    after = await put(store, "default/a", "3", expected=base.revision)
    assert [change.record for change in await batch(watch)] == [after]
    store = await reopened(path, store)
    assert [*(await store.list(PODS)).records] == [after]
    async with aclosing(store.watch(PODS, after=base.revision)) as again:
        assert [change.record for change in await batch(again)] == [after]
    await store.close()


async def test_a_writer_waiting_for_a_write_that_fails_gets_its_own_chance(tmp_path: Path) -> None:
    disk = Disk()
    store = SqliteBackend(tmp_path / "store.db", connect=disk.connect)
    await store.start()
    disk.error = sqlite3.OperationalError("database or disk is full")
    create = asyncio.create_task(put(store, "default/a", "1", expected=0))
    await asyncio.sleep(0)
    second = asyncio.create_task(put(store, "default/a", "2", expected=0))
    await asyncio.wait([create])
    disk.error = None
    assert isinstance(create.exception(), StoreFailed)
    assert (await second).value.endswith(b'"2"}')
    await store.close()


async def test_a_really_full_disk_is_survived(tmp_path: Path) -> None:
    def small(path: Path) -> sqlite3.Connection:
        connection = connect(path)
        connection.execute(f"PRAGMA max_page_count = {limit}")
        return connection

    limit = 40
    store = SqliteBackend(tmp_path / "store.db", connect=small)
    await store.start()
    kept: list[StoredRecord] = []
    with pytest.raises(StoreFailed, match="full"):
        while True:
            kept += [await put(store, f"default/{len(kept):03}", "z" * 10_000)]
    assert len(kept) > 5
    assert [*(await store.list(PODS)).records] == kept
    limit = 400
    kept.append(await put(store, "default/999", "z" * 10_000))
    store = await reopened(tmp_path / "store.db", store)
    assert [*(await store.list(PODS)).records] == kept
    await store.close()


async def test_a_name_that_cannot_be_stored_fails_alone(tmp_path: Path) -> None:
    store = SqliteBackend(tmp_path / "store.db")
    await store.start()
    good, bad = await asyncio.gather(put(store, "default/a"), put(store, "default/\ud800"), return_exceptions=True)
    assert isinstance(bad, UnicodeEncodeError)
    assert await store.get(pod("default/a")) == good
    await store.close()


async def test_a_second_store_on_the_same_file_is_refused_with_the_holder(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = SqliteBackend(path)
    await store.start()
    other = SqliteBackend(path)
    with pytest.raises(StoreFailed, match=f"in use by process {os.getpid()}: stop it"):
        await other.start()
    await other.close()
    await put(store, "default/a")
    store = await reopened(path, store)
    assert await store.count(PODS) == 1
    await store.close()


async def test_files_are_for_the_owner_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        store = SqliteBackend(tmp_path / "state" / "store.db")
        await store.start()
        await put(store, "default/a")
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "state").iterdir()}
    assert modes == dict.fromkeys(("store.db", "store.db-wal", "store.db.lock", "store.db.reserve"), 0o600)
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700
    await store.close()


async def refusal(path: Path) -> str:
    store = SqliteBackend(path)
    with pytest.raises(StoreFailed) as caught:
        await store.start()
    await store.close()
    with pytest.raises(StoreFailed):
        await put(store, "default/a")
    return str(caught.value)


async def test_state_of_another_version_is_refused_with_the_fix(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = SqliteBackend(path)
    await store.start()
    await store.close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 7")
    connection.close()
    message = await refusal(path)
    assert "is of version 7; this Hortus reads version 1" in message
    assert f"move {tmp_path} away" in message


async def test_a_database_of_another_program_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE mine (a)")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    assert "another program" in await refusal(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("damage", ["missing", "empty"])
@pytest.mark.parametrize("evidence", ["known", "wal"])
async def test_a_lost_file_is_refused_with_the_fix(tmp_path: Path, damage: str, evidence: str) -> None:
    path = tmp_path / "store.db"
    store = SqliteBackend(path, must_exist=False)
    await store.start()
    await put(store, "default/a")
    wal = path.with_name("store.db-wal").read_bytes()
    await store.close()
    path.unlink()
    if damage == "empty":
        path.touch()
    if evidence == "wal":
        path.with_name("store.db-wal").write_bytes(wal)
    store = SqliteBackend(path, must_exist=evidence == "known")
    with pytest.raises(StoreFailed, match=f"the file is {damage}, and it held objects before. Restore {tmp_path}"):
        await store.start()
    await store.close()
    assert path.exists() is (damage == "empty")


async def test_a_file_that_an_empty_one_replaces_fails_the_writes_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    disk = Disk()
    store = SqliteBackend(path, connect=disk.connect)
    await store.start()
    base = await put(store, "default/a")
    disk.error = sqlite3.OperationalError("disk I/O error")
    with pytest.raises(StoreFailed):
        await put(store, "default/b")
    disk.error = None
    empty = tmp_path / "empty"
    empty.touch()
    empty.replace(path)
    with pytest.raises(StoreFailed, match="the state file is empty; it held objects before"):
        await put(store, "default/c")
    assert (await store.list(PODS)).records == [base]
    await store.close()


async def test_writers_are_answered_when_the_file_becomes_that_of_another_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows wait to be deleted, which fails like the write before it, while the next write is queued."""
    other = tmp_path / "other.db"
    with contextlib.closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE other (key)")
    disk = Disk()
    paths = [tmp_path / "store.db"]
    store = SqliteBackend(paths[0], connect=lambda _: disk.connect(paths[-1]), history=HistoryLimits(changes=1))
    await store.start()
    for _ in range(5):
        await put(store, "default/a")
    disk.error = sqlite3.OperationalError("disk I/O error")
    with pytest.raises(StoreFailed):
        await put(store, "default/b")
    disk.error = None
    paths.append(other)
    monkeypatch.setattr(sqlite_module, "_FORGET_ROWS", 1)
    async with asyncio.timeout(60):
        for name in ("default/c", "default/d"):
            with pytest.raises(StoreFailed, match="is a database of another program"):
                await put(store, name)
    await store.close()


@pytest.mark.parametrize("damage", ["text", "cut"])
async def test_a_damaged_file_is_refused_with_the_fix(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "store.db"
    store = SqliteBackend(path)
    await store.start()
    for number in range(50):
        await put(store, f"default/{number}", "z" * 5_000)
    await store.close()
    data = path.read_bytes()
    path.write_bytes(b"not a database at all" * 400 if damage == "text" else data[:8192] + b"\xff" * (len(data) - 8192))
    message = await refusal(path)
    assert "damaged" in message
    assert str(tmp_path) in message


async def test_a_file_held_by_another_program_is_refused_with_the_fix(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = SqliteBackend(path)
    await store.start()
    await store.close()
    connection = sqlite3.connect(path)
    connection.execute("BEGIN EXCLUSIVE")
    assert "another program has it open" in await refusal(path)
    connection.close()


async def test_rows_that_history_has_forgotten_leave_the_file(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = SqliteBackend(path, history=HistoryLimits(changes=100))
    await store.start()
    for _ in range(40):
        await asyncio.gather(*(put(store, f"default/{number}") for number in range(100)))
    await store.close()
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT count(*) FROM log").fetchone()[0] <= 200
    connection.close()


def test_a_process_that_forgets_to_close_still_ends(tmp_path: Path) -> None:
    script = (
        "import asyncio, sys; from pathlib import Path; from hortus.apiserver.store import SqliteBackend\n"
        "async def main():\n"
        "    store = SqliteBackend(Path(sys.argv[1])); await store.start()\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path / "store.db")], timeout=60, check=False)
    assert done.returncode == 0
