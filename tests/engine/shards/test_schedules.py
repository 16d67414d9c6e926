"""No object is reconciled by two replicas at once, whatever befalls them, and each is held by one in the end."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

import pytest
import structlog
from tests.engine.shards import world
from tests.engine.shards.schedules import play

from hortus.engine.shards import Permit, Record, Roster, Shards

QUICK = 200
SOAK = 10_000


@pytest.fixture(autouse=True, scope="module")
def _quiet() -> Iterator[None]:
    before = structlog.get_config()["wrapper_class"]
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    yield
    structlog.configure(wrapper_class=before)


def _failures(seeds: range) -> list[tuple[int, list[str], list[str]]]:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    outcomes = ((seed, play(seed)) for seed in seeds)
    return [(seed, outcome.broken, outcome.log) for seed, outcome in outcomes if outcome.broken]


def test_random_schedules_of_kills_stops_partitions_and_wrong_clocks_break_nothing() -> None:
    assert _failures(range(QUICK)) == []


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_ten_thousand_random_schedules_break_nothing() -> None:
    """Another ten thousand each time when SHARD_SEED says where to begin."""
    first = int(os.environ.get("SHARD_SEED", str(QUICK)))
    parts = [range(start, start + 100) for start in range(first, first + SOAK, 100)]
    with ProcessPoolExecutor() as pool:
        failures = [failure for part in pool.map(_failures, parts) for failure in part]
    assert failures == []


def test_a_schedule_comes_out_the_same_each_time() -> None:
    assert play("again").log == play("again").log
    assert play("again").reconciles == play("again").reconciles > 0


def _first_broken(*, first: int = 0) -> list[str]:
    """What the first schedule finds that finds anything, of 400; `first` passes over those that are known not to."""
    return next((outcome.broken for outcome in map(play, range(first, first + 400)) if outcome.broken), [])


def test_without_the_fence_in_the_client_the_schedules_find_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Permit, "check", lambda permit: None)
    assert "replica" in str(_first_broken())


def test_without_acknowledgements_the_schedules_find_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Roster, "joined", property(lambda roster: roster.looked))
    assert "is at it" in str(_first_broken())


def test_without_the_drain_the_schedules_find_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Roster, "_claims", lambda roster, name, key: False)
    assert "replica" in str(_first_broken())


def test_without_waiting_for_requests_that_were_given_up_the_schedules_find_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def leave(roster: Roster, permit: Permit, *, clean: bool = True) -> None:
        roster._permits.discard(permit)

    monkeypatch.setattr(Roster, "leave", leave)
    assert "arrives after" in str(_first_broken(first=170))


def test_without_asking_the_server_about_the_silent_the_schedules_find_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def remove(shards: Shards, roster: Roster, record: Record) -> None:
        roster.is_gone(record.member)

    monkeypatch.setattr(Shards, "_remove", remove)
    assert "is at it" in str(_first_broken(first=140))


def test_without_watching_anything_the_world_notices_nothing_wrong_by_itself() -> None:
    """The judge is not the one who makes the mistakes: a quiet world has no broken rule and many reconciles."""

    async def quiet() -> world.World:
        made = world.World("quiet")
        made.join()
        made.join()
        await made.clock.advance(60)
        await made.close()
        return made

    made = asyncio.run(quiet())
    assert made.broken == []
    assert made.begun > 40
