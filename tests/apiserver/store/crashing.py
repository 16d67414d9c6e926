"""The process that `test_crash` kills: eight writers with keys of their own, who say what they begin and what they get.

A line is one `write` call, so the reader sees whole lines up to the kill. `begin WRITER OP BUCKET NAME` goes before the
call to the store, `done WRITER REVISION` after the store has acknowledged.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
from pathlib import Path

from hortus.apiserver.store import HistoryLimits, Mismatch, SqliteBackend, StoreKey, Value

WRITERS = 8


def say(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


async def writer(store: SqliteBackend, number: int, chance: random.Random) -> None:
    cluster = f"cluster-{number}"
    while True:
        key = StoreKey(f"{cluster}/core/{chance.choice(['pods', 'secrets'])}", f"default/{chance.randrange(6)}")
        op = chance.choices(["put", "delete", "drop"], [80, 19, 1])[0]
        say("begin", number, op, key.bucket, key.name)
        try:
            if op == "put":
                revision = (await store.put(key, Value(b"v", b"x" * chance.randrange(2000)), expected=None)).revision
            elif op == "delete":
                revision = await store.delete(key, expected=None, final=Value(b"gone", b""))
            else:
                await store.drop(cluster + "/")
                revision = 0
        except Mismatch:
            revision = 0
        say("done", number, revision)


async def main(path: Path, seed: int) -> None:
    store = SqliteBackend(path, history=HistoryLimits(changes=300))
    await store.start()
    say("ready", store.revision)
    chance = random.Random(seed)
    await asyncio.gather(*(writer(store, number, random.Random(chance.random())) for number in range(WRITERS)))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
