"""What the server gives at most at once, apart from the wire: turns of large bodies, and files for connections."""

from __future__ import annotations

import asyncio
import itertools
import logging
import resource
import time

import pytest

from hortus.apiserver.accepting import connections_within
from hortus.apiserver.limits import Turns


def _spend(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


async def test_who_holds_the_loop_is_followed_by_as_long_a_rest_for_small_requests() -> None:
    turns, ends, small = Turns(), [], 0

    async def large() -> None:
        await turns.wait()
        began = time.monotonic()
        _spend(0.05)
        ends.append((began, time.monotonic()))

    working = asyncio.gather(*[large() for _ in range(4)])
    while not working.done():
        small += 1
        await asyncio.sleep(0)
    rests = [after[0] - before[1] for before, after in itertools.pairwise(ends)]
    assert len(ends) == 4
    assert all(rest >= 0.045 for rest in rests), rests
    assert small > 100, "the loop was free in between"


async def test_short_work_is_followed_by_no_rest() -> None:
    turns = Turns()
    for _ in range(1000):
        await turns.wait()
    assert turns._free_at == 0.0


def test_connections_are_no_more_than_files_may_be_open(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for files, expected in ((1024, 960), (100, 50), (20_000, 10_000), (resource.RLIM_INFINITY, 10_000)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, files=files: (files, files))
        with caplog.at_level(logging.WARNING):
            caplog.clear()
            assert connections_within(10_000) == expected
            assert bool(caplog.records) == (expected < 10_000)
