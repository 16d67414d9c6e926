"""The memory store keeps the contract, and costs what its docstrings say."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import AsyncIterator, Awaitable

import pytest
from hypothesis import HealthCheck, settings
from tests.apiserver.store.contract import Opener, StoreContract, opening, put
from tests.apiserver.store.model import StoreMachine

from hortus.apiserver.store import Backend, MemoryBackend, StoreKey, Value


@pytest.fixture
async def opener() -> AsyncIterator[Opener]:
    async with opening(MemoryBackend) as made:
        yield made


class TestMemoryBackend(StoreContract):
    pass


class MemoryMachine(StoreMachine):
    def open_store(self) -> Awaitable[Backend]:
        async def opened() -> Backend:
            return MemoryBackend(history=self.history)

        return opened()


TestMemoryModel = MemoryMachine.TestCase
TestMemoryModel.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)


async def test_thousands_of_idle_watches_cost_little_and_sleep_through_other_buckets() -> None:
    store = MemoryBackend()
    tracemalloc.start()
    watches = [store.watch(f"cluster-{number % 5000}/core/pods", after=0) for number in range(2000)]
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used / len(watches) < 2_048
    waits = [asyncio.ensure_future(anext(watch)) for watch in watches]
    await asyncio.sleep(0)
    await put(store, "default/a", bucket="cluster-7/core/pods")
    await asyncio.wait([waits[7]])
    assert [index for index, wait in enumerate(waits) if wait.done()] == [7]
    for watch in watches:
        await watch.aclose()
    await asyncio.gather(*waits, return_exceptions=True)


async def test_a_hundred_thousand_small_records_cost_little_beyond_their_bytes() -> None:
    store = MemoryBackend()
    keys = [StoreKey(f"cluster-{number % 1000}/core/configmaps", f"default/name-{number}") for number in range(100_000)]
    value = Value(b"x" * 180, b"")
    tracemalloc.start()
    for key in keys:
        await store.put(key, value, expected=0)
    await store.compact(store.revision)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    kept = (await store.usage("")).bytes
    assert (used - kept) / len(keys) < 300


async def test_buckets_that_are_empty_and_forgotten_are_gone() -> None:
    store = MemoryBackend()
    for number in range(100):
        record = await put(store, "default/a", bucket=f"cluster-{number}/core/pods")
        await store.delete(record.key, expected=None)
    await store.compact(store.revision)
    assert not store._index._buckets
    assert not store._index._clusters
