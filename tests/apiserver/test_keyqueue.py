"""The server's own loops: no logical cluster holds up another, whatever its keys take."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hortus.apiserver.keyqueue import LONGEST, MOST_WORKERS, QUICK_WORKERS, SLOW, SLOW_WORKERS, KeyQueue
from hortus.apiserver.remarks import REMARKS, remarks
from hortus.testing import FakeClock

Key = tuple[str, int]


class Loop:
    """A queue whose keys of clusters in `hanging` take for ever."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.hanging: set[str] = set()
        self.working: list[Key] = []
        self.done: list[Key] = []
        self.queue: KeyQueue[Key] = KeyQueue("test", self.clock, self._work, lambda key: key[0])

    async def _work(self, key: Key) -> None:
        assert all(each[0] != key[0] for each in self.working), "one key of a cluster at a time"
        self.working.append(key)
        try:
            if key[0] in self.hanging:
                await asyncio.Event().wait()
            await asyncio.sleep(0)
            self.done.append(key)
        finally:
            self.working.remove(key)

    def add(self, *clusters: str) -> None:
        for number, cluster in enumerate(clusters):
            self.queue.add((cluster, number))


@pytest.fixture
async def loop() -> AsyncIterator[Loop]:
    found = Loop()
    await found.queue.start()
    yield found
    await found.queue.stop()


async def test_clusters_take_turns(loop: Loop) -> None:
    loop.add(*["many"] * 50, "few")
    await loop.queue.settled()
    assert loop.done.index(("few", 50)) < 5
    assert [key for key in loop.done if key[0] == "many"] == [("many", number) for number in range(50)]


async def test_keys_that_hang_give_up_their_places(loop: Loop) -> None:
    hostile = [f"hostile-{number}" for number in range(QUICK_WORKERS)]
    loop.hanging.update(hostile)
    loop.add(*hostile)
    await loop.clock.advance(0)
    loop.add("victim")
    await loop.clock.advance(SLOW)
    assert loop.done == [("victim", 0)]


async def test_clusters_that_were_slow_wait_for_each_other_alone(loop: Loop) -> None:
    hostile = [f"hostile-{number}" for number in range(MOST_WORKERS - QUICK_WORKERS)]
    loop.hanging.update(hostile)
    loop.add(*hostile)
    await loop.clock.advance(MOST_WORKERS / QUICK_WORKERS * SLOW + LONGEST)
    for _ in range(100):
        await loop.clock.advance(SLOW)
        assert len(loop.working) <= SLOW_WORKERS
        loop.done.clear()
        loop.add("victim")
        await loop.clock.advance(0)
        assert loop.done == [("victim", 0)]


async def test_a_key_that_is_cut_off_comes_back(loop: Loop) -> None:
    loop.hanging.add("a")
    loop.add("a")
    await loop.clock.advance(LONGEST)
    assert not loop.working
    loop.hanging.clear()
    await loop.clock.advance(SLOW)
    assert loop.done == [("a", 0)]


async def test_work_belongs_to_no_request(loop: Loop) -> None:
    remarks().warn("reported to somebody else")
    seen = []

    async def look(key: Key) -> None:
        seen.append(REMARKS.get())

    queue: KeyQueue[Key] = KeyQueue("test", loop.clock, look, lambda key: key[0])
    await queue.start()
    queue.add(("a", 0))
    await queue.settled()
    await queue.stop()
    assert seen == [None]


steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.sampled_from("abcdefghijkl")),
        st.tuples(st.sampled_from(["hang", "mend"]), st.sampled_from("abcdefghijkl")),
        st.tuples(st.just("wait"), st.sampled_from(["0", "1", "30"])),
    ),
    max_size=60,
)


@settings(max_examples=60, deadline=None)
@given(steps)
def test_keys_are_processed_once_their_cluster_is_healthy(history: list[tuple[str, str]]) -> None:
    asyncio.run(_expect_all_processed(history))


async def _expect_all_processed(history: list[tuple[str, str]]) -> None:
    loop = Loop()
    await loop.queue.start()
    added = set[str]()
    for step, what in history:
        if step == "add":
            loop.done = [key for key in loop.done if key[0] != what]
            loop.add(what)
            added.add(what)
        elif step == "wait":
            await loop.clock.advance(float(what))
        else:
            (loop.hanging.add if step == "hang" else loop.hanging.discard)(what)
    loop.hanging.clear()
    await loop.clock.advance(10 * LONGEST)
    assert {key[0] for key in loop.done} == added
    await asyncio.wait_for(loop.queue.settled(), 60)
    await loop.queue.stop()
