"""Writes that an SQLite store has acknowledged survive kill -9, at any moment, many times over."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from pathlib import Path

import pytest
from tests.apiserver.store import crashing

from hortus.apiserver.store import Backend, RevisionCompacted, SqliteBackend, StoreKey

ABSENT = 0
State = dict[StoreKey, int]
"""Objects by key: the revision of the last write, or ABSENT."""


class Account:
    """The output of the killed process: the writes that must be there, and the one step of each writer that may be."""

    def __init__(self) -> None:
        self.state: State = {}
        self.last = 0
        self._begun: dict[str, tuple[str, StoreKey]] = {}

    def hear(self, line: str) -> None:
        match line.split():
            case ["begin", writer, op, bucket, name]:
                self._begun[writer] = (op, StoreKey(bucket, name))
            case ["done", writer, revision]:
                op, key = self._begun.pop(writer)
                self.last = max(self.last, int(revision))
                if op == "put":
                    self.state[key] = int(revision)
                elif op == "delete":
                    self.state[key] = ABSENT
                else:
                    self._drop(key.bucket)

    def _drop(self, bucket: str) -> None:
        cluster = bucket.partition("/")[0] + "/"
        for key in self.state:
            if key.bucket.startswith(cluster):
                self.state[key] = ABSENT

    async def settle(self, store: Backend) -> None:
        """Compare with the store, and take over from it the steps that were not acknowledged."""
        assert store.revision >= self.last
        found = {
            record.key: record.revision
            for bucket in await store.buckets("")
            for record in (await store.list(bucket)).records
        }
        for key in self.state.keys() | found.keys():
            acknowledged, kept = self.state.get(key, ABSENT), found.get(key, ABSENT)
            assert kept == acknowledged or self._allowed(key, kept), f"{key}: {kept} instead of {acknowledged}"
        self.state, self.last = found, store.revision
        self._begun.clear()

    def _allowed(self, key: StoreKey, kept: int) -> bool:
        writer = key.bucket.partition("/")[0].removeprefix("cluster-")
        op, touched = self._begun.get(writer, ("", key))
        if op == "drop":
            return kept == ABSENT
        return touched == key and (
            kept == ABSENT if op == "delete" else op == "put" and kept > self.state.get(key, ABSENT)
        )


def crash(path: Path, account: Account, seed: int, after: int) -> None:
    """Run writers on the file, kill them when they have said `after` lines, and hear all they said until then."""
    command = [sys.executable, "-m", crashing.__name__, str(path), str(seed)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[3], text=True) as process:
        assert process.stdout is not None
        ready = process.stdout.readline().split()
        assert ready[0] == "ready"
        assert int(ready[1]) >= account.last
        for count, line in enumerate(process.stdout):
            account.hear(line)
            if count == after:
                process.kill()
    assert process.returncode == -9


async def replayed(store: Backend, bucket: str, revision: int) -> State:
    """The bucket's state, from a list at `revision` and all changes since."""
    state = {record.key: record.revision for record in (await store.list(bucket, revision=revision)).records}
    watch = store.watch(bucket, after=revision)
    last = max([record.revision for record in (await store.list(bucket)).records], default=0)
    seen = revision
    while watch.seen < store.revision or seen < last:
        for change in await anext(watch):
            assert change.revision > seen
            seen = change.revision
            state[change.key] = change.revision
            if change.record is None:
                del state[change.key]
    await watch.aclose()
    return state


@pytest.mark.parametrize("seed", [1, 2])
def test_nothing_acknowledged_is_lost_by_kill_9_and_the_revision_never_goes_back(tmp_path: Path, seed: int) -> None:
    path, account, chance = tmp_path / "store.db", Account(), random.Random(seed)

    async def inspect() -> None:
        store = SqliteBackend(path)
        await store.start()
        await account.settle(store)
        for bucket in await store.buckets(""):
            now = {record.key: record.revision for record in (await store.list(bucket)).records}
            for revision in (store.compacted, (store.compacted + store.revision) // 2):
                try:
                    assert await replayed(store, bucket, revision) == now
                except RevisionCompacted:
                    assert any(bucket.startswith(prefix) for prefix in dropped(store, revision))
        await store.close()

    for _ in range(4):
        crash(path, account, chance.randrange(1 << 30), chance.choice([5, 200, 3_000, 9_000]))
        asyncio.run(inspect())
    assert account.last > 1_000


def dropped(store: SqliteBackend, revision: int) -> list[str]:
    return [drop.prefix for drop in store._index.history._drops if drop.revision > revision]
