"""The speed of the stores alone, without HTTP: writes, lists, watches, start, bytes per object.

Alone: `python -m tests.benchmarks.store`. The SQLite store writes below the working directory and not in the system's
temporary folder, which may be in memory, where a sync costs nothing. etcd is measured when it is installed.
"""

from __future__ import annotations

import asyncio
import gc
import json
import tempfile
import time
import tracemalloc
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path

import uvloop
from tests.apiserver.store.etcdserver import find_etcd, free_port, running_etcd

from hortus.apiserver.store import Backend, EtcdBackend, MemoryBackend, SqliteBackend, StoreKey, StoreWatch, Value

CALLERS = 16
BUCKET = "root/core/configmaps"
VALUE = Value(b'{"metadata":{"resourceVersion":"', b'"},"data":"' + b"x" * 950 + b'"}')

Figures = dict[str, float]


async def writes_per_second(store: Backend, count: int) -> float:
    async def caller(number: int) -> None:
        for step in range(count // CALLERS):
            await store.put(StoreKey(BUCKET, f"default/{number}-{step}"), VALUE, expected=0)

    begin = time.perf_counter()
    await asyncio.gather(*map(caller, range(CALLERS)))
    return count / (time.perf_counter() - begin)


async def list_milliseconds(store: Backend, count: int) -> float:
    for number in range(count):
        await store.put(StoreKey("root/core/secrets", f"default/{number * 7919 % count:06}"), VALUE, expected=None)
    taken = []
    for _ in range(20):
        begin = time.perf_counter()
        assert len((await store.list("root/core/secrets")).records) == count
        taken.append(time.perf_counter() - begin)
    return sorted(taken)[len(taken) // 2] * 1000


async def fan_out_milliseconds(store: Backend, watchers: int, events: int) -> Figures:
    """Milliseconds from before a write until the last of the watchers has the change."""
    left = 0
    all_notified = asyncio.Event()

    async def follow(watch: StoreWatch) -> None:
        nonlocal left
        async with aclosing(watch):
            async for changes in watch:
                left -= len(changes)
                if not left:
                    all_notified.set()

    tasks = [asyncio.create_task(follow(store.watch(BUCKET, after=store.revision))) for _ in range(watchers)]
    taken = []
    for _ in range(events):
        left = watchers
        all_notified.clear()
        begin = time.perf_counter()
        await store.put(StoreKey(BUCKET, "default/watched"), VALUE, expected=None)
        await all_notified.wait()
        taken.append((time.perf_counter() - begin) * 1000)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    taken.sort()
    return {"p50": taken[events // 2], "p99": taken[events * 99 // 100]}


async def recovery_seconds(path: Path, count: int) -> float:
    store = SqliteBackend(path)
    await store.start()
    for start in range(0, count, 5_000):
        keys = [
            StoreKey(f"cluster-{number % 200}/core/configmaps", f"default/{number}")
            for number in range(start, start + 5_000)
        ]
        await asyncio.gather(*(store.put(key, VALUE, expected=0) for key in keys))
    await store.close()
    again = SqliteBackend(path)
    begin = time.perf_counter()
    await again.start()
    taken = time.perf_counter() - begin
    assert (await again.usage("")).objects == count
    await again.close()
    return taken


async def bytes_beyond_values(count: int) -> float:
    """The bytes of one small object without its value, in many buckets, with compacted history."""
    gc.collect()
    tracemalloc.start()
    store = MemoryBackend()
    for number in range(count):
        await store.put(
            StoreKey(f"cluster-{number // 20}/core/configmaps", f"default/name-{number}"), VALUE, expected=0
        )
    await store.compact(store.revision)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return (used - (await store.usage("")).bytes) / count


async def _each(open_store: Callable[[], Awaitable[Backend]], writes: int) -> dict[str, float]:
    store = await open_store()
    figures = {f"puts_per_second_{CALLERS}_callers": await writes_per_second(store, writes)}
    figures["list_5000_ms"] = await list_milliseconds(store, 5_000)
    fan_out = await fan_out_milliseconds(store, 100, 200)
    figures |= {f"fan_out_100_watchers_{name}_ms": value for name, value in fan_out.items()}
    await store.close()
    return figures


async def _etcd(binary: str, folder: Path) -> Figures:
    """On one member, which syncs as in production."""
    port = free_port()

    async def opened() -> Backend:
        store = EtcdBackend([f"http://127.0.0.1:{port}"])
        await store.start()
        return store

    with running_etcd(binary, folder, port, sync=True):
        return await _each(opened, 2_000)


async def measure() -> dict[str, Figures]:
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as folder:

        async def memory() -> Backend:
            return MemoryBackend()

        async def sqlite() -> Backend:
            store = SqliteBackend(Path(folder) / "bench.db")
            await store.start()
            return store

        figures = {"memory": await _each(memory, 32_000), "sqlite": await _each(sqlite, 8_000)}
        binary = find_etcd()
        if binary is not None:
            figures["etcd"] = await _etcd(binary, Path(folder) / "etcd")
        figures["sqlite"]["start_with_100000_objects_s"] = await recovery_seconds(Path(folder) / "start.db", 100_000)
    figures["memory"]["bytes_beside_value_per_object"] = await bytes_beyond_values(20_000)
    return figures


def run() -> dict[str, Figures]:
    """Measure on a fresh loop; figures by store."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(measure())


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
