"""One plan: the fork, the controllers in it, the change, and the run until everything rests.

The controllers first come to rest without the change: what they do then, they would do anyhow, and it is no part of the
plan. Then the change is applied, and they run on until nothing new has been written for a while, until the horizon or
until the budget is spent.
"""

from __future__ import annotations

import asyncio
import gc
import signal
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from random import Random
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from hortus.cli.plan.memory import require_memory
from hortus.cli.plan.progress import PlanProgress
from hortus.cli.plan.stacks import own_releases, without_clouds
from hortus.cli.plan.world import DURATIONS, simulated
from hortus.cli.program import program
from hortus.domains import all_domains
from hortus.engine import Manager
from hortus.engine.hosting import HostWorld
from hortus.engine.manager import StalledKind
from hortus.engine.process import GC_THRESHOLDS
from hortus.engine.rollouts.types import ROLLOUTS, Rollout, RolloutPhase
from hortus.engine.typed import read
from hortus.kube import Access
from hortus.kube.errors import KubeError
from hortus.kube.kubeconfig import Trust
from hortus.kube.objects import Object
from hortus.simulation.fork import Fork, ForkSettings, LiveClusters, VirtualClock, VirtualLoop
from hortus.simulation.fork.naming import NOWHERE
from hortus.simulation.plan.activity import Activity
from hortus.simulation.plan.choosing import ClusterChoice, choose
from hortus.simulation.plan.composing import PlanRun
from hortus.simulation.plan.snapshot import ForkSnapshot
from hortus.simulation.plan.texts import duration
from hortus.terminal import CommandError

SETTLE: Final = 3600.0
"""Seconds without a write after which the fleet rests before the change."""
QUIET: Final = 3600.0
"""Seconds without a write after which it rests after the change."""
_LOOK: Final = 60.0
_STEP: Final = 10.0
"""Seconds after the change until a replica fails: it is at work by then."""
_TAKEOVER: Final = 15.0
"""Seconds until others have its leases: the default of --shard-lease-duration."""


class PlanRequest(NamedTuple):
    management: Access
    garden: Access | None
    values: Mapping[str, Any]
    """The flags of the controllers."""
    change: Callable[[Fork], Awaitable[None]]
    """Applies the change to the fork."""
    labels: str = ""
    """A selector of the clusters that the plan is about; empty for all."""
    offline: bool = False
    """Refuse servers outside of the fleet, such as registries."""
    until: float = 30 * 86400.0
    """The horizon, in seconds after the change."""
    whole: bool = False
    """Run up to the horizon, also when everything rests before."""
    budget: float = 1800.0
    """Seconds of the machine."""
    seed: int = 0
    replica_fails: bool = False
    """The controllers stop once the change is applied, and others take over when their leases have ended."""
    now: float = 0.0
    """The wall time at which the fork begins."""


T = TypeVar("T")


def run_plan(request: PlanRequest, finish: Callable[[PlanRun], T], progress: PlanProgress | None = None) -> T:
    """Runs a plan on a loop of its own and returns what `finish` makes of its end. Raises CommandError, KubeError."""
    loop = VirtualLoop()
    if request.offline:
        loop.go_offline()
    asyncio.set_event_loop(loop)
    thresholds = gc.get_threshold()
    gc.set_threshold(*GC_THRESHOLDS)
    try:
        with LiveClusters() as live, _Budget(loop, request.budget) as budget:
            work = _run(request, live, loop, finish, budget, progress or PlanProgress())
            return _completed(loop, loop.create_task(budget.kept(work)))
    finally:
        gc.set_threshold(*thresholds)
        loop.run_until_complete(loop.drain())
        asyncio.set_event_loop(None)
        loop.close()


def _completed(loop: VirtualLoop, work: asyncio.Task[T]) -> T:
    """The result of a task, which ends in order after Ctrl-C. Raises KeyboardInterrupt then."""
    try:
        with _interrupting(loop, work):
            return loop.run_until_complete(work)
    except KeyboardInterrupt:
        work.cancel()
        with suppress(asyncio.CancelledError):
            loop.run_until_complete(work)
        raise


@contextmanager
def _interrupting(loop: VirtualLoop, work: asyncio.Task[Any]) -> Iterator[None]:
    """Has the first Ctrl-C cancel `work`, and raises KeyboardInterrupt when that has ended it.

    As it comes, it would be raised in the task that runs, and end that one: a part of the API server or a controller,
    for which the others would wait.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    interrupted = False

    def interrupt(number: int, frame: object) -> None:
        nonlocal interrupted
        interrupted = True
        signal.signal(signal.SIGINT, former)
        if loop.is_blocked:
            raise KeyboardInterrupt
        loop.call_soon_threadsafe(work.cancel)

    former = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    except asyncio.CancelledError:
        if interrupted:
            raise KeyboardInterrupt from None
        raise
    finally:
        signal.signal(signal.SIGINT, former)


async def _run(
    request: PlanRequest,
    live: LiveClusters,
    loop: VirtualLoop,
    finish: Callable[[PlanRun], T],
    budget: _Budget,
    progress: PlanProgress,
) -> T:
    clock = VirtualClock(loop, began=request.now or time.time())
    project = str(request.values["gardener-project-name"])
    settings = ForkSettings(
        management=request.management,
        garden=request.garden,
        simulation=msgspec.structs.replace(DURATIONS, project=project),
        trust=Trust(plain_http=request.values["allow-plain-http"]),
        kubeconfigs=",".join(filter(None, (domain.kubeconfig_selector() for domain in all_domains()))),
    )
    progress.phase, progress.lists = "reading the fleet", live.reads.total
    async with AsyncExitStack() as stack:
        fork = await stack.enter_async_context(Fork.opened(settings, live, clock))
        choice = await _chosen(fork, request.labels)
        require_memory(len(fork.kubeconfigs()))
        activity, controllers = await stack.enter_async_context(_world(request, fork))
        progress.phase, progress.passed = "waiting for rest before the change", clock.monotonic
        pace = _Pace(activity, clock, budget)
        settled = await pace.rest(SETTLE, horizon=4 * SETTLE) == "Rest"
        budget.begin()
        before = ForkSnapshot.of(fork)
        activity.begin()
        fork.counts.calls.clear()
        fork.counts.writes.clear()
        began = clock.monotonic()
        progress.phase, progress.passed = "after the change", lambda: clock.monotonic() - began
        progress.writes = lambda: activity.writes
        await request.change(fork)
        changed = ForkSnapshot.of(fork)
        if request.replica_fails:
            await clock.sleep(_STEP)
            await controllers.stop()
            await clock.sleep(_TAKEOVER)
            await controllers.start()
        ended = await pace.rest(QUIET, horizon=request.until, whole=request.whole, fork=fork)
        progress.phase = "comparing"
        run = PlanRun(
            before=before,
            changed=changed,
            after=ForkSnapshot.of(fork),
            activity=activity,
            fork=fork,
            ended=ended,
            settled=settled,
            began=began,
            stalled=controllers.stalled,
            approved=tuple(pace.approved),
            choice=choice,
        )
        return finish(run)


async def _chosen(fork: Fork, labels: str) -> ClusterChoice | None:
    """The clusters with these labels, without which the fork is left; None for all. Raises CommandError."""
    if not labels:
        return None
    choice = await choose(fork, labels)
    if not choice.chosen:
        raise CommandError(f"-l {labels}: no Runtime or ClusterProfile has these labels")
    return choice


@asynccontextmanager
async def _world(request: PlanRequest, fork: Fork) -> AsyncIterator[tuple[Activity, _Controllers]]:
    """The controllers and the simulated world at work."""
    activity, random = Activity(fork), Random(request.seed)  # noqa: S311 - the same seed, the same plan
    own = fork.settings.management.server if fork.is_embedded else NOWHERE
    garden = fork.access("garden") if request.garden is not None else None
    world = HostWorld(fork.clock, random, fork.access("root"), garden)
    with own_releases(request.values) as values:
        controllers = _Controllers(without_clouds(values), world)
        async with simulated(fork, activity, server_url=own, random=random, values=values):
            try:
                await controllers.start()
                yield activity, controllers
            finally:
                await controllers.stop()


class _Controllers:
    """The controllers of one replica after the other."""

    def __init__(self, values: Mapping[str, Any], world: HostWorld) -> None:
        self._values = values
        self._world = world
        self._running = AsyncExitStack()
        self._manager: Manager | None = None

    async def start(self) -> None:
        """Returns at once: controllers wait for a kind whose CRD is missing, as in a cluster. Raises FlagError."""
        manager = await self._running.enter_async_context(program(self._values, grace=0.0, world=self._world))
        self._manager = manager
        self._running.push_async_callback(_ended, manager, asyncio.create_task(manager.run(), name="controllers"))

    @property
    def stalled(self) -> Sequence[StalledKind]:
        """The kinds for which they wait."""
        return self._manager.stalled if self._manager is not None else ()

    async def stop(self) -> None:
        """Raises what made a part of the controllers fail."""
        await self._running.aclose()


async def _ended(manager: Manager, work: asyncio.Task[None]) -> None:
    manager.stop()
    await work


class _Budget:
    """The time of the machine that a plan may take.

    It ends also where virtual time stands still, but not before lists that are awaited were answered or timed out.
    """

    def __init__(self, loop: VirtualLoop, seconds: float) -> None:
        self._loop = loop
        self._seconds = seconds
        self._timer = threading.Timer(seconds, self._ring)
        self._timer.daemon = True
        self._work: asyncio.Task[Any] | None = None
        self._begun = False
        self.spent = asyncio.Event()

    def __enter__(self) -> _Budget:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self._timer.join()

    def _ring(self) -> None:
        self._loop.call_soon_threadsafe(self._end)

    def _end(self) -> None:
        self.spent.set()
        if not self._begun and self._work is not None:
            self._work.cancel()

    def begin(self) -> None:
        """The change comes now. From here on a plan that is cut short says something."""
        self._begun = True

    async def kept(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of a plan. Raises CommandError where the budget is spent before the change."""
        self._work = asyncio.current_task()
        try:
            return await work
        except asyncio.CancelledError:
            if self._begun or not self.spent.is_set():
                raise
        raise CommandError(
            f"the budget of {duration(self._seconds)} was spent before the change was made: the fleet was still being "
            "read, or did not come to rest; give more with --budget"
        )


class _Pace:
    """Waits in virtual time until nothing happens any more."""

    def __init__(self, activity: Activity, clock: VirtualClock, budget: _Budget) -> None:
        self._activity = activity
        self._clock = clock
        self._budget = budget
        self.approved: list[str] = []

    async def rest(self, quiet: float, *, horizon: float, whole: bool = False, fork: Fork | None = None) -> str:
        """Returns Rest, Horizon or Budget. With a `fork` its rollouts are waited for, and approved where they wait."""
        end = self._clock.monotonic() + horizon
        while True:
            now = self._clock.monotonic()
            if now >= end:
                return "Horizon"
            if self._budget.spent.is_set():
                return "Budget"
            if not whole and now - self._activity.last >= quiet and not (fork is not None and await self._waits(fork)):
                return "Rest"
            with suppress(TimeoutError):
                async with asyncio.timeout(min(_LOOK, end - now)):
                    await self._budget.spent.wait()

    async def _waits(self, fork: Fork) -> bool:
        """True while a rollout is under way that continues by itself, or after an approval."""
        try:
            found = await fork.server.local("root").list(ROLLOUTS)
        except KubeError:
            return False
        waits = False
        for rollout in (read(Rollout, one) for one in found):
            if rollout.status.phase not in (RolloutPhase.PENDING, RolloutPhase.PROGRESSING):
                continue
            waits |= await self._goes_on(fork, rollout)
        return waits

    async def _goes_on(self, fork: Fork, rollout: Rollout) -> bool:
        progressing = next((one for one in rollout.status.conditions if one.type == "Progressing"), None)
        stage = rollout.status.stage
        if progressing is None or "waits for approval" not in progressing.message or not stage:
            return rollout.status.phase == RolloutPhase.PROGRESSING
        if stage in rollout.spec.approved:
            return False
        patch: Object = {"spec": {"approved": [*rollout.spec.approved, stage]}}
        metadata = rollout.metadata
        await fork.server.local("root", manager="hortus-plan").patch(ROLLOUTS, metadata.name, patch, metadata.namespace)
        self.approved.append(f"{metadata.name}/{stage}")
        return True
