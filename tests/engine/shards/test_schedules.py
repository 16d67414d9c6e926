"""No object is reconciled by two replicas at once, whatever befalls them, and each is held by one in the end.

What they share in the background, the watches and connections of remote clusters, is in order then, too.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest
import structlog
from tests.engine.shards import world
from tests.engine.shards.schedules import Blow, pause, play, watch_hangs

from hortus.engine import delays
from hortus.engine.remote import KubeconfigRef, RemotePool, pool, watching
from hortus.engine.remote.budget import WatchSlot
from hortus.engine.remote.health import Health
from hortus.engine.shards import LeaseRecord, MemberRoster, Permit
from hortus.engine.shards.leasing import MemberLeases
from hortus.kube.clock import Clock, Timer
from hortus.kube.errors import KubeError

QUICK = 60
"""Schedules of `make test`; those of `make soak` begin after them."""
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


def _first_broken(*, first: int = 0, blows: Sequence[Blow] = ()) -> list[str]:
    """Returns the violations of the first of 400 schedules that finds any; `first` skips those known to find none."""
    outcomes = (play(seed, blows=blows) for seed in range(first, first + 400))
    return next((outcome.broken for outcome in outcomes if outcome.broken), [])


def test_without_the_fence_in_the_client_the_schedules_find_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Permit, "check", lambda permit: None)
    assert "replica" in str(_first_broken())


def test_without_acknowledgements_the_schedules_find_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemberRoster, "joined", property(lambda roster: roster.looked))
    assert "is at it" in str(_first_broken())


def test_without_the_drain_the_schedules_find_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemberRoster, "_claims", lambda roster, name, key: False)
    assert "replica" in str(_first_broken())


def test_without_waiting_for_requests_that_were_given_up_the_schedules_find_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def leave(roster: MemberRoster, permit: Permit, *, clean: bool = True) -> None:
        roster._permits.discard(permit)

    monkeypatch.setattr(MemberRoster, "leave", leave)
    assert "arrives after" in str(_first_broken(first=170))


def test_without_asking_the_server_about_the_silent_the_schedules_find_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def believe(leases: MemberLeases, record: LeaseRecord) -> None:
        return None

    monkeypatch.setattr(MemberLeases, "delete_unchanged", believe)
    # Rare among all blows: it takes a replica without news of another one whose lease changes late.
    assert "is at it" in str(_first_broken(first=70, blows=(pause, pause, watch_hangs)))


def _of_the_caller(step: Coroutine[Any, Any, object], *, name: str) -> asyncio.Task[object]:
    """`start_shared` as it must not be: the task inherits the fence of its creator."""
    return asyncio.get_running_loop().create_task(step, name=name)


def test_when_watches_carry_the_fence_of_the_reconcile_that_began_them_the_schedules_find_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watching, "start_shared", _of_the_caller)
    assert "is not watched: Fenced" in str(_first_broken())


def test_when_probes_carry_the_fence_of_the_reconcile_that_asked_first_the_schedules_find_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def of_the_caller(clock: Clock, seconds: float, callback: Callable[[], object]) -> Timer:
        return clock.call_later(seconds, callback)

    monkeypatch.setattr(delays, "call_shared_later", of_the_caller)
    monkeypatch.setattr(pool, "start_shared", _of_the_caller)
    assert "is not called: RemoteState(phase=<Phase.UNREACHABLE" in str(_first_broken(first=40))


def test_when_a_watch_does_not_count_the_schedules_find_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def take(slot: WatchSlot) -> None:
        if not slot.taken:
            slot.taken = True
            slot._budget.watches += 1

    monkeypatch.setattr(WatchSlot, "free", True)
    monkeypatch.setattr(WatchSlot, "take", take)
    assert "watches open" in str(_first_broken())


def test_when_a_watch_waits_unseen_the_schedules_find_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Health, "watch_waits", lambda health: None)
    monkeypatch.setattr(Health, "watch_waits_no_more", lambda health: None)
    assert "is not watched" in str(_first_broken())


def test_when_a_check_takes_the_place_of_a_probe_the_schedules_find_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def probe_in(made: RemotePool, place: KubeconfigRef, seconds: float) -> None:
        made._due.cancel((place, pool._Due.CHECK))
        made._due.add((place, pool._Due.CHECK), seconds, 1)

    def on_due(made: RemotePool, due: tuple[KubeconfigRef, pool._Due], wants_probe: int) -> None:
        judge(made, (due[0], pool._Due.PROBE if wants_probe else pool._Due.CHECK), 0)

    judge = RemotePool._on_due
    monkeypatch.setattr(RemotePool, "probe_in", probe_in)
    monkeypatch.setattr(RemotePool, "_on_due", on_due)
    assert "object-" in str(_first_broken())


def test_when_a_secret_that_cannot_be_read_is_blamed_on_its_cluster_the_schedules_find_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Health, "was_not_read", lambda health, error: health.open_breaker(error))
    assert "alone, which is well: etcdserver" in str(_first_broken())


def test_when_a_rotation_that_could_not_be_made_is_forgotten_the_schedules_find_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def was_not_read(health: Health, error: KubeError) -> None:
        note(health, error)
        health.reread = False

    note = Health.was_not_read
    monkeypatch.setattr(Health, "was_not_read", was_not_read)
    assert "is called with a former credential" in str(_first_broken())


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
