from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

import pytest
from structlog.testing import capture_logs
from tests.engine.fake_api import WIDGETS, widget

from hortus.engine.backoff import Backoff
from hortus.engine.cache import Cache
from hortus.engine.controller import Controller
from hortus.engine.metrics import EngineMetrics
from hortus.engine.outcomes import NEVER, Actor, Result, StepError
from hortus.engine.predicates import annotation_changed, annotations_changed, generation_changed
from hortus.engine.queue import FREE_STEPS, Priority
from hortus.engine.scope import current_scope
from hortus.engine.shards import MemberRoster, Permit
from hortus.engine.slots import CLEANUP_SECONDS
from hortus.engine.sources import Every, Source, Trigger, Watch, to_label, to_owner
from hortus.engine.within import within
from hortus.kube.errors import Conflict, TooManyRequests
from hortus.kube.objects import ObjectKey
from hortus.testing import FakeClock

A = ObjectKey("default", "a")
Script = Callable[[ObjectKey], Awaitable[Result | None]]


class Scripted:
    """Answers from a list of results and errors, then with success; notes when it was called."""

    def __init__(self, clock: FakeClock, *answers: Result | Exception | None) -> None:
        self.clock = clock
        self.answers = list(answers)
        self.calls: list[tuple[float, str]] = []
        self.script: Script | None = None

    @property
    def times(self) -> list[float]:
        return [time for time, _ in self.calls]

    async def reconcile(self, key: ObjectKey) -> Result | None:
        self.calls.append((round(self.clock.monotonic() - 1000, 3), key.name))
        if self.script is not None:
            return await self.script(key)
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, Exception):
            raise answer
        return answer


class Stage:
    def __init__(self, *answers: Result | Exception | None, sources: list[Source] | None = None, **options: object):
        self.clock = FakeClock()
        self.trigger = Trigger()
        self.reconciler = Scripted(self.clock, *answers)
        self.metrics = EngineMetrics()
        options = {"backoff": Backoff(first=1, cap=60, jitter=0), "random": Random(0), **options}
        self.controller = Controller(
            "widgets",
            self.reconciler,
            sources=[self.trigger, *(sources or [])],
            clock=self.clock,
            metrics=self.metrics,
            **options,  # type: ignore[arg-type]
        )
        self.meter = self.controller._meter

    async def __aenter__(self) -> Stage:
        await self.controller.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        stopping = asyncio.create_task(self.controller.stop())
        await self.clock.advance(1)
        await stopping
        assert self.clock.sleepers == 0, "a stopped controller leaves no timer behind"


async def test_success_counts_and_asks_for_nothing_more() -> None:
    async with Stage() as stage:
        stage.trigger.fire(A)
        await stage.clock.advance(10_000)
        assert stage.reconciler.times == [0]
        assert stage.meter.results == {"success": 1, "requeue_after": 0, "requeue": 0, "error": 0}


async def test_requeue_after_is_kept_to_the_second() -> None:
    async with Stage(Result(requeue_after=15), Result(requeue_after=0)) as stage:
        stage.trigger.fire(A)
        await stage.clock.advance(100)
        assert stage.reconciler.times == [0, 15, 15]
        assert stage.meter.results["requeue_after"] == 2


async def test_a_reconcile_that_wants_to_be_called_again_at_once_is_slowed_down() -> None:
    again = Result(requeue_after=0.0)
    async with Stage(*[again] * (FREE_STEPS + 6), None, again) as stage:
        stage.trigger.fire(A)
        await stage.clock.advance(100)
        assert stage.reconciler.times == [0] * (FREE_STEPS + 1) + [1, 3, 7, 15, 31, 63]
        stage.trigger.fire(A)
        await stage.clock.advance(10)
        assert stage.reconciler.times[-2:] == [100, 100], "it had asked for nothing in between"
    most = [again] * FREE_STEPS
    async with Stage(*most, Result(requeue_after=5.0), *most) as stage:
        stage.trigger.fire(A)
        await stage.clock.advance(100)
        assert stage.reconciler.times == [0] * (FREE_STEPS + 1) + [5] * (FREE_STEPS + 1), "a pause ends the row"


async def test_a_server_or_a_reconcile_that_asks_for_no_pause_does_not_replace_the_back_off() -> None:
    for error in (TooManyRequests("slow", retry_after=0), StepError("busy", after=0), StepError("busy", after=-3)):
        async with Stage(*[error] * 5) as stage:
            stage.trigger.fire(A)
            await stage.clock.advance(100)
            assert stage.reconciler.times == [0, 1, 3, 7, 15, 31]


async def test_a_short_wish_of_a_server_does_not_stop_the_back_off_from_growing_and_a_reconcile_s_own_does() -> None:
    async with Stage(*[TooManyRequests("slow", retry_after=2)] * 5) as stage:
        stage.trigger.fire(A)
        await stage.clock.advance(100)
        assert stage.reconciler.times == [0, 2, 4, 8, 16, 32]
    async with Stage(*[StepError("busy", after=2)] * 5) as stage:
        stage.trigger.fire(A)
        await stage.clock.advance(100)
        assert stage.reconciler.times == [0, 2, 4, 6, 8, 10]


async def test_a_wait_that_many_failing_keys_are_given_is_spread_and_never_shortened() -> None:
    for error in (StepError("later", after=60), TooManyRequests("slow", retry_after=60)):
        stage = Stage(backoff=Backoff())

        async def crowd(key: ObjectKey, error: Exception = error) -> Result | None:
            raise error

        stage.reconciler.script = crowd
        async with stage:
            for number in range(500):
                stage.trigger.fire(ObjectKey("default", f"n{number}"))
            await stage.clock.settle()
            due = [seconds for _, seconds in stage.controller.queue.next_due(500)]
            assert 60 <= min(due) < 60.5
            assert 65.5 < max(due) <= 66
            assert len({round(seconds) for seconds in due}) == 7


async def test_failures_back_off_until_success_forgives() -> None:
    errors = [ValueError("x"), OSError("y"), StepError("z"), None, StepError("w")]
    async with Stage(*errors) as stage:
        stage.trigger.fire(A)
        await stage.clock.advance(10)
        assert stage.reconciler.times == [0, 1, 3, 7]
        stage.trigger.fire(A)
        await stage.clock.advance(10)
        assert stage.reconciler.times == [0, 1, 3, 7, 10, 11]
        assert (stage.meter.errors, stage.meter.panics, stage.meter.results["success"]) == (4, 1, 2)


async def test_a_retry_or_a_server_may_name_the_delay_and_nobody_may_ask_for_a_year() -> None:
    errors = [
        StepError("busy", after=7),
        TooManyRequests("slow", retry_after=5),
        TooManyRequests("no", retry_after=1e9),
    ]
    async with Stage(*errors) as stage:
        stage.trigger.fire(A)
        await stage.clock.advance(1000)
        assert stage.reconciler.times == [0, 7, 12, 312]


async def test_a_terminal_error_rests_until_the_object_changes() -> None:
    async with Stage(
        StepError("spec.kind 'x' is unknown: use 'y'", reason="BadSpec", actor=Actor.USER, after=NEVER)
    ) as stage:
        with capture_logs() as logs:
            stage.trigger.fire(A)
            await stage.clock.advance(100_000)
        assert stage.reconciler.times == [0]
        assert (stage.meter.terminal, stage.meter.errors) == (1, 1)
        assert logs[0]["actor"] is Actor.USER
        stage.trigger.fire(A)
        await stage.clock.settle()
        assert len(stage.reconciler.calls) == 2


async def test_a_conflict_is_no_error_in_the_log() -> None:
    async with Stage(Conflict("modified")) as stage:
        with capture_logs() as logs:
            stage.trigger.fire(A)
            await stage.clock.advance(1)
        assert [entry["log_level"] for entry in logs] == ["info"]


async def test_only_the_public_part_and_the_cause_are_logged() -> None:
    stage = Stage()

    async def fail(key: ObjectKey) -> Result | None:
        try:
            raise ValueError("inner")
        except ValueError as error:
            raise StepError("outer", reason="GardenDown", actor=Actor.PROVIDER) from error

    stage.reconciler.script = fail
    async with stage:
        with capture_logs() as logs:
            stage.trigger.fire(A)
            await stage.clock.settle()
    entry = {"event": "reconcile failed", "reason": "GardenDown", "error": "outer", "cause": "inner"}
    assert entry.items() <= logs[0].items()


async def test_an_object_is_never_in_two_workers_and_changes_meanwhile_are_seen_after() -> None:
    stage = Stage(workers=4)
    busy: set[str] = set()

    async def slow(key: ObjectKey) -> Result | None:
        assert key.name not in busy
        busy.add(key.name)
        await stage.clock.sleep(10)
        busy.discard(key.name)
        return None

    stage.reconciler.script = slow
    async with stage:
        stage.trigger.fire(A)
        await stage.clock.advance(5)
        for name in "aaabcde":
            stage.trigger.fire(ObjectKey("default", name))
        await stage.clock.advance(1)
        assert (len(busy), stage.meter.active) == (4, 4)
        await stage.clock.advance(100)
        assert stage.reconciler.calls == [(0, "a"), (5, "b"), (5, "c"), (5, "d"), (10, "e"), (15, "a")]


async def test_a_reconcile_that_hangs_is_cut_off_and_its_worker_lives_on() -> None:
    stage = Stage(deadline=30, workers=1)
    hang = True

    async def script(key: ObjectKey) -> Result | None:
        if hang:
            await asyncio.Event().wait()
        return None

    stage.reconciler.script = script
    async with stage:
        stage.trigger.fire(A)
        await stage.clock.advance(29)
        assert stage.meter.active == 1
        hang = False
        await stage.clock.advance(1.5)
        assert stage.meter.timeouts == 1
        await stage.clock.advance(1)
        assert stage.reconciler.times == [0, 31]
        assert (stage.meter.active, stage.meter.results["success"], stage.meter.panics) == (0, 1, 0)


async def test_a_finally_that_waits_holds_its_worker_no_longer_than_the_time_for_it() -> None:
    stage = Stage(deadline=30, workers=1)
    first, ended = True, 0

    async def script(key: ObjectKey) -> Result | None:
        nonlocal first, ended
        if key != A or not first:
            return None
        first = False
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                ended += 1
                if ended == 3:
                    raise

    stage.reconciler.script = script
    async with stage:
        stage.trigger.fire(A)
        await stage.clock.advance(1)
        stage.trigger.fire(ObjectKey("default", "b"))
        await stage.clock.advance(29)
        assert stage.meter.active == 1
        await stage.clock.advance(CLEANUP_SECONDS + 0.5)
        assert (ended, stage.meter.active) == (2, 1)
        assert stage.reconciler.calls[1:] == [(40, "b")], "another worker stands in"
        await stage.clock.advance(CLEANUP_SECONDS + 5)
        assert (ended, stage.meter.active, stage.meter.timeouts) == (3, 0, 1)
        assert stage.meter.results["success"] == 2, "the one that was cut off came again"


@pytest.mark.parametrize("hidden", [False, True])
async def test_a_cancellation_from_elsewhere_is_a_failure_and_ends_no_worker(hidden: bool) -> None:
    async with Stage() as stage:

        async def script(key: ObjectKey) -> Result | None:
            if len(stage.reconciler.calls) > 1:
                return None
            shared = asyncio.create_task(asyncio.Event().wait())
            asyncio.get_running_loop().call_soon(shared.cancel)
            if hidden:
                await within(stage.clock, 10, shared)
            else:
                await shared
            return None

        stage.reconciler.script = script
        stage.trigger.fire(A)
        await stage.clock.advance(10)
        assert stage.reconciler.times == [0, 1]
        assert (stage.meter.results["error"], stage.meter.results["success"]) == (1, 1)
        assert not any(task.done() for task in stage.controller.tasks)


async def test_each_reconcile_has_the_whole_deadline() -> None:
    stage = Stage(deadline=10, workers=2)

    async def eight_seconds(key: ObjectKey) -> Result | None:
        await stage.clock.sleep(8)
        return None

    stage.reconciler.script = eight_seconds
    async with stage:
        for number in range(20):
            stage.trigger.fire(ObjectKey("default", f"n{number}"))
            await stage.clock.advance(3)
        await stage.clock.advance(100)
        assert (stage.meter.timeouts, stage.meter.results["success"]) == (0, 20)


async def test_a_reconcile_that_shrugs_the_deadline_off_keeps_its_result() -> None:
    stage = Stage(deadline=5, workers=1)

    async def stubborn(key: ObjectKey) -> Result | None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await stage.clock.sleep(1)
        return None

    stage.reconciler.script = stubborn
    async with stage:
        stage.trigger.fire(A)
        await stage.clock.advance(10)
        assert stage.meter.results["success"] == 1
        stage.trigger.fire(A)
        await stage.clock.advance(10)
        assert stage.meter.results["success"] == 2


async def test_stop_lets_workers_finish_within_the_grace_time_and_then_cancels_them() -> None:
    clock_seconds = {"quick": 3.0, "slow": 60.0}
    stage = Stage(workers=2)
    finished: list[str] = []

    async def work(key: ObjectKey) -> Result | None:
        await stage.clock.sleep(clock_seconds[key.name])
        finished.append(key.name)
        return None

    stage.reconciler.script = work
    await stage.controller.start()
    for name in clock_seconds:
        stage.trigger.fire(ObjectKey("default", name))
    await stage.clock.settle()
    stage.trigger.fire(ObjectKey("default", "never begun"))
    stopping = asyncio.create_task(stage.controller.stop(grace=10))
    await stage.clock.advance(9)
    assert not stopping.done()
    await stage.clock.advance(1)
    await stopping
    assert finished == ["quick"]
    assert stage.controller.queue.running == {}


async def test_resync_comes_with_jitter_and_only_for_what_exists() -> None:
    cache = Cache("widgets")
    cache.replace([], 0)
    stage = Stage(sources=[Watch(cache)], resync=100.0, workers=2)
    async with stage:
        for number in range(50):
            cache.put(widget(f"n{number}", metadata={"resourceVersion": "1"}))
        stage.trigger.fire(ObjectKey("default", "gone"))
        await stage.clock.advance(89)
        assert len(stage.reconciler.calls) == 51
        await stage.clock.advance(22)
        assert len(stage.reconciler.calls) == 101
        assert len(set(stage.reconciler.times[51:])) > 40
        for number in range(50):
            cache.drop(ObjectKey("default", f"n{number}"))
        await stage.clock.advance(1000)
        assert stage.controller.queue.delayed == 0


async def test_a_resync_looks_again_at_what_failed_for_good() -> None:
    cache = Cache("widgets")
    cache.replace([], 0)
    async with Stage(StepError("spec is wrong", after=NEVER), sources=[Watch(cache)], resync=100.0) as stage:
        cache.put(widget("a", metadata={"resourceVersion": "1"}))
        await stage.clock.advance(111)
        assert len(stage.reconciler.calls) == 2


async def test_other_kinds_are_mapped_to_their_owner_on_both_sides_of_a_change() -> None:
    secrets = Cache("secrets")
    secrets.replace([], 0)
    owned, labelled = Watch(secrets, to=to_owner(WIDGETS)), Watch(secrets, to=to_label("widget", namespace="home"))
    async with Stage(sources=[owned, labelled]) as stage:
        owner = {"apiVersion": "example.org/v1beta1", "kind": "Widget", "name": "a", "controller": True}
        other = {"apiVersion": "other.org/v1", "kind": "Widget", "name": "b", "controller": True}
        secrets.put(widget("s", metadata={"ownerReferences": [owner, other], "resourceVersion": "1"}))
        await stage.clock.settle()
        assert stage.reconciler.calls == [(0, "a")]
        secrets.put(widget("s", metadata={"labels": {"widget": "c"}, "resourceVersion": "2"}))
        await stage.clock.settle()
        assert sorted(name for _, name in stage.reconciler.calls[1:]) == ["a", "c"]


async def test_an_edit_comes_before_changes_that_concern_many() -> None:
    edits, catalog = Cache("widgets"), Cache("catalog")
    for cache in (edits, catalog):
        cache.replace([], 0)
    many = Watch(
        catalog, to=lambda found: [ObjectKey("", f"w{number}") for number in range(8)], priority=Priority.RETRY
    )
    async with Stage(sources=[Watch(edits), many], workers=1) as stage:
        catalog.put(widget("version", metadata={"resourceVersion": "1"}))
        edits.put(widget("edited", metadata={"resourceVersion": "1"}))
        await stage.clock.settle()
        names = [name for _, name in stage.reconciler.calls]
        assert names == ["edited", *(f"w{number}" for number in range(8))]


async def test_predicates_let_pass_what_matters() -> None:
    cache = Cache("widgets")
    cache.replace([], 0)
    when = generation_changed | annotation_changed("force")

    def put(version: int, generation: int = 1, **annotations: str) -> None:
        metadata = {"resourceVersion": str(version), "generation": generation, "annotations": annotations}
        cache.put(widget("a", metadata=metadata))

    async with Stage(sources=[Watch(cache, when=when)]) as stage:
        reconciled = []
        for version, (generation, annotations) in enumerate(
            [(1, {}), (1, {}), (2, {}), (2, {"other": "x"}), (2, {"force": "now"}), (2, {"force": "now"}), (2, {})]
        ):
            put(version + 1, generation, **annotations)
            await stage.clock.settle()
            reconciled.append(len(stage.reconciler.calls))
        assert reconciled == [1, 1, 2, 2, 3, 3, 4]
        cache.drop(A)
        await stage.clock.settle()
        assert len(stage.reconciler.calls) == 5


def test_predicates_combine() -> None:
    cache = Cache("widgets")
    passed: list[bool] = []
    cache.put(widget("a", metadata={"resourceVersion": "1", "generation": 1}))
    cache.subscribe(lambda change: passed.append((generation_changed & ~annotations_changed)(change)))
    cache.put(widget("a", metadata={"resourceVersion": "2", "generation": 2}))
    cache.put(widget("a", metadata={"resourceVersion": "3", "generation": 3, "annotations": {"x": "y"}}))
    assert passed == [True, True, False]


async def test_what_no_watch_can_tell_is_looked_at_every_so_often() -> None:
    async with Stage(sources=[Every(30, lambda: [A])]) as stage:
        await stage.clock.advance(95)
        assert stage.reconciler.times == [0, 30, 60, 90]


async def test_keys_of_another_shard_are_left_alone() -> None:
    class Even:
        def __init__(self) -> None:
            self.left: list[tuple[str, bool]] = []

        def holds(self, key: ObjectKey) -> bool:
            return int(key.name) % 2 == 0

        def enter(self, key: ObjectKey, interrupt: Callable[[], None]) -> Permit | None:
            roster = MemberRoster("me", renew_deadline=1, settling=1, monotonic=float)
            return Permit(roster, key, interrupt) if self.holds(key) else None

        def leave(self, permit: Permit, *, clean: bool) -> None:
            self.left.append((permit.key.name, clean))

    even = Even()
    async with Stage(assignment=even) as stage:
        for number in range(6):
            stage.trigger.fire(ObjectKey("", str(number)))
        await stage.clock.settle()
        assert [name for _, name in stage.reconciler.calls] == ["0", "2", "4"]
        assert even.left == [("0", True), ("2", True), ("4", True)]


async def test_a_reconcile_knows_whose_it_is() -> None:
    stage = Stage(workers=2)
    seen: list[tuple[str, str]] = []

    async def note(key: ObjectKey) -> Result | None:
        await stage.clock.sleep(1)
        scope = current_scope()
        assert scope is not None and scope.key == key
        seen.append((scope.controller, scope.id))
        return None

    stage.reconciler.script = note
    async with stage:
        stage.trigger.fire(A)
        stage.trigger.fire(ObjectKey("default", "b"))
        await stage.clock.advance(2)
    assert [name for name, _ in seen] == ["widgets", "widgets"]
    assert len({identity for _, identity in seen}) == 2
    assert current_scope() is None


def test_a_controller_that_cannot_work_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one worker"):
        Stage(workers=0)
    with pytest.raises(ValueError, match="no Watch of its own kind"):
        Stage(resync=60.0)
    metrics = EngineMetrics()
    metrics.controller("x", workers=1)
    with pytest.raises(ValueError, match="two controllers are named 'x'"):
        metrics.controller("x", workers=1)


async def test_reconciles_that_wait_for_something_slow_step_aside_and_hold_no_worker() -> None:
    async with Stage(workers=2) as stage:
        slow = asyncio.Event()

        async def script(key: ObjectKey) -> None:
            if key.name.startswith("slow"):
                scope = current_scope()
                assert scope is not None
                assert scope.step_aside is not None
                scope.step_aside()
                scope.step_aside()  # once is enough
                await slow.wait()

        stage.reconciler.script = script
        for number in range(20):
            stage.trigger.fire(ObjectKey("default", f"slow{number}"))
        for number in range(10):
            stage.trigger.fire(ObjectKey("default", f"quick{number}"))
        await stage.clock.settle()
        assert len(stage.reconciler.calls) == 30, "nobody waited for the slow ones"
        assert stage.meter.active == 20

        slow.set()
        await stage.clock.settle()
        assert stage.meter.active == 0

        async def five_seconds(key: ObjectKey) -> None:
            await stage.clock.sleep(5)

        stage.reconciler.script = five_seconds
        for number in range(10):
            stage.trigger.fire(ObjectKey("default", f"later{number}"))
        await stage.clock.settle()
        assert stage.meter.active == 2, "the spare workers have gone again"
        await stage.clock.advance(60)


async def test_a_deadline_holds_for_spare_workers_too() -> None:
    async with Stage(workers=1, deadline=10) as stage:

        async def script(key: ObjectKey) -> None:
            scope = current_scope()
            assert scope is not None
            assert scope.step_aside is not None
            scope.step_aside()
            await stage.clock.sleep(1000)

        stage.reconciler.script = script
        stage.trigger.fire(A)
        stage.trigger.fire(ObjectKey("default", "b"))
        await stage.clock.advance(10.5)
        assert stage.meter.timeouts == 2
