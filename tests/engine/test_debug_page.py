"""The debug page: what waits, works, fails and is slow, and the size of caches; keys and nothing of what is in them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest

from hortus.engine import Cache, Manager, Result, StepError, Watch
from hortus.engine.health import parse_address
from hortus.engine.observing.page import DebugServer
from hortus.engine.observing.snapshot import size_of, snapshot
from hortus.kube.objects import ObjectKey, Resource
from hortus.testing import FakeClock

from .fake_api import FakeApi

THINGS = Resource("example.org", "v1", "things", "Thing")


class Reconciler:
    """Hangs on `slow`, fails on `bad`, asks for later on `later`, and is done with the rest."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.gate = asyncio.Event()

    async def reconcile(self, key: ObjectKey) -> Result | None:
        if key.name == "slow":
            self.entered.set()
            await self.gate.wait()
        if key.name == "bad<script>":
            raise StepError("it is bad", after=60.0)
        return Result(requeue_after=300.0) if key.name == "later" else None


def thing(name: str) -> dict[str, object]:
    return {"metadata": {"name": name, "namespace": "ns", "resourceVersion": "1"}, "secret": "c4n4ry"}


@asynccontextmanager
async def working(*names: str) -> AsyncIterator[tuple[Manager, Reconciler]]:
    manager, reconciler = Manager(FakeApi(), clock=FakeClock()), Reconciler()
    cache = Cache("things")
    cache.replace([thing(name) for name in names], 1)
    made = manager.controller("things", reconciler, sources=[Watch(cache)], workers=2)
    async with manager.running():
        if "slow" in names:
            await reconciler.entered.wait()
        else:
            await made.queue.join()
        yield manager, reconciler
        reconciler.gate.set()


async def test_it_shows_what_waits_works_fails_and_comes_later() -> None:
    async with working("slow", "bad<script>", "later", "well") as (manager, _):
        [controller] = manager.controllers
        while controller.queue.waiting:
            await asyncio.sleep(0)
        [queue] = snapshot(manager).queues
        assert [work.key for work in queue.running] == ["ns/slow"]
        [failing] = queue.failing
        assert (failing.key, failing.times) == ("ns/bad<script>", 1)
        assert failing.due_in is not None
        assert 60.0 <= failing.due_in <= 66.0
        due = [("ns/bad<script>", failing.due_in), ("ns/later", 300.0)]
        assert [(work.key, work.seconds) for work in queue.due] == due
        assert (queue.workers, queue.delayed, queue.failing_count) == (2, 2, 1)
        controller.enqueue_all([ObjectKey("ns", "slow")])
        assert "ns/slow" not in snapshot(manager).queues[0].next, "what is in work waits for its end, not for a worker"


async def test_the_slowest_reconciles_are_remembered_and_few_of_them() -> None:
    names = [f"n-{number:03}" for number in range(100)]
    async with working(*names) as (manager, _):
        [controller] = manager.controllers
        for number, name in enumerate(names):
            controller._remember_slow(ObjectKey("ns", name), float(number))
        slowest = snapshot(manager).queues[0].slowest
        assert [work.seconds for work in slowest] == [float(number) for number in range(99, 67, -1)]


async def test_pages_are_escaped_and_hold_nothing_of_the_objects() -> None:
    async with working("slow", "bad<script>") as (manager, _):
        server = DebugServer(parse_address("127.0.0.1:0") or pytest.fail("an address"), manager)
        await server.start()
        try:
            async with aiohttp.ClientSession() as session:
                page = await session.get(f"http://127.0.0.1:{server.port}/debug")
                text = await page.text()
                state = await (await session.get(f"http://127.0.0.1:{server.port}/debug.json")).json()
        finally:
            await server.stop()
    assert "ns/bad&lt;script&gt;" in text
    assert "<script" not in text
    assert "c4n4ry" not in text + str(state)
    assert page.headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert state["queues"][0]["running"][0]["key"] == "ns/slow"


def test_the_size_of_a_cache_grows_with_its_objects() -> None:
    cache = Cache("things")
    assert size_of(cache) == 0
    for number in range(1000):
        cache.put(thing(f"n-{number}"))
    assert 300_000 < size_of(cache) < 1_500_000
