"""The reconcile loop: takes keys from a queue, hands each to a reconciler, and does what its answer or error asks for.

A fixed number of long-lived workers share one loop. For an object they cost a few microseconds: no task, timer, label
lookup or copy is made for each of them. Deadlines are kept by one timer for all workers of a controller (`slots`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any, Protocol, TypeVar

import structlog

from hortus.engine.backoff import Backoff, spread
from hortus.engine.cache import Cache
from hortus.engine.lanes import Flows
from hortus.engine.metrics import EngineMetrics
from hortus.engine.outcomes import DeadlineExceeded, HandedOver, Result, StepError
from hortus.engine.queue import Priority, Queue, QueueClosed
from hortus.engine.scope import Scope, enter_scope, start_shared
from hortus.engine.slots import Deadlines, Slot
from hortus.engine.sources import CacheSource, Detach, Source, Watch
from hortus.engine.within import Interrupted, being_cancelled
from hortus.kube.clock import Clock, SystemClock
from hortus.kube.errors import ApiError, Conflict, KubeError, TransportError
from hortus.kube.fencing import Fenced, set_fence
from hortus.kube.objects import ObjectKey

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

SLICE_SECONDS = 0.01
"""The time that workers go on without yielding to the loop when no reconcile ever waits."""

DEFAULT_DEADLINE = 120.0
"""Seconds. Longer than any chain of requests that each have their own timeout should take."""

RESYNC_JITTER = 0.1
"""A resync comes within +-10 % of its period, so that what was created together is not looked at together for ever."""

LONGEST_ASKED_DELAY = 300.0
"""Seconds: a server that asks for more (a year, say) is asked again all the same."""

SPARE_WORKERS = 1000
"""The most workers that stand in for those that wait for something slow; one costs a few kilobytes."""

SLOWEST = 32
"""The number of slowest reconciles that are kept for debugging."""


class Reconciler(Protocol):
    async def reconcile(self, key: ObjectKey) -> Result | None:
        """Look at the object of this key and the world, and move the world one step.

        Safe to repeat and to be cancelled at any await. An object that is gone is a key like any other.
        """


class WorkPermit(Protocol):
    """The right to work on one key."""

    def check(self) -> None:
        """Raises Fenced when this work must not act any more: asked right before each request."""


P = TypeVar("P", bound=WorkPermit)


class Assignment(Protocol[P]):
    """The keys that this process may work on, and until when: the seam for `engine.shards` and `engine.rivals`."""

    def holds(self, key: ObjectKey) -> bool:
        """True when work on `key` may begin here now."""

    def enter(self, key: ObjectKey, interrupt: Callable[[], None]) -> P | None:
        """The right to work on `key`, or None when it is not ours; `interrupt` is called when the work has to end."""

    def leave(self, permit: P, /, *, clean: bool) -> None:
        """The work is over; `clean` when it came to its end without any failure."""


class Controller:
    """One reconciler with its sources, queue and workers. Made by `Manager.controller`."""

    def __init__(
        self,
        name: str,
        reconciler: Reconciler,
        *,
        sources: Sequence[Source],
        workers: int = 1,
        deadline: float | None = DEFAULT_DEADLINE,
        backoff: Backoff | None = None,
        resync: float | None = None,
        flows: Flows[ObjectKey] | None = None,
        assignment: Assignment[Any] | None = None,
        clock: Clock | None = None,
        metrics: EngineMetrics | None = None,
        random: Random | None = None,
    ) -> None:
        """`deadline` and `resync` are seconds; `resync` needs a `Watch` of the controller's own kind as a source."""
        if workers < 1:
            raise ValueError(f"controller {name!r} needs at least one worker, not {workers}")
        self.name = name
        self._reconciler = reconciler
        self._sources = sources
        self._own = next((source.cache for source in sources if isinstance(source, Watch) and source.to is None), None)
        if resync is not None and self._own is None:
            raise ValueError(f"controller {name!r} has a resync but no Watch of its own kind that says what exists")
        self._resync = resync
        self._assignment = assignment
        self.clock = clock or SystemClock()
        self._random = random or Random()  # noqa: S311 - jitter, not secrecy
        metrics = metrics or EngineMetrics()
        self._meter = metrics.controller(name, workers=workers)
        self.queue: Queue[ObjectKey] = Queue(
            clock=self.clock, backoff=backoff, flows=flows, meter=metrics.queue(name), random=self._random
        )
        self._slots = [Slot(self._step_aside) for _ in range(workers)]
        self._spares: list[Slot] = []
        self._deadlines = Deadlines(deadline, self.clock, lambda: (*self._slots, *self._spares))
        self._excess = 0
        self.fence: Callable[[], None] | None = None
        """Called before each reconcile; raises when this process may not work any more, which ends the worker."""
        self._detachers: list[Detach] = []
        self._last_yield = 0.0
        self.workers = workers
        """The number of objects that may be in work at once."""
        self.slowest: dict[ObjectKey, float] = {}
        """Seconds of the longest reconciles since the start, of up to `SLOWEST` objects."""
        self._slow = 0.0

    async def start(self) -> None:
        """Fill the queue from the sources, wait until they are complete, then let the workers begin."""
        for source in self._sources:
            self._detachers.append(source.attach(self.queue.add_at, self.clock))
        for source in self._sources:
            await source.ready()
        for number, slot in enumerate(self._slots):
            slot.task = asyncio.create_task(self._work(slot), name=f"{self.name} worker {number}")

    async def stop(self, *, grace: float = 0.0) -> None:
        """Take no more work; let the workers finish for `grace` seconds, then cancel them."""
        while self._detachers:
            self._detachers.pop()()
        self.queue.close()
        tasks = [slot.task for slot in (*self._slots, *self._spares) if slot.task is not None]
        if grace > 0:
            timer = self.clock.call_later(grace, lambda: _cancel(tasks))
            await asyncio.gather(*tasks, return_exceptions=True)
            timer.cancel()
        else:
            _cancel(tasks)
            await asyncio.gather(*tasks, return_exceptions=True)
        self._deadlines.stop()

    def take_over(self, gained: Callable[[ObjectKey], bool]) -> int:
        """Enqueue all keys that pass `gained`; returns the number of objects of the own kind among them.

        Besides those objects, what the other sources know: remains of an object that is gone are work, too, and the
        replica that had it may have died before it was done.
        """
        found = [key for key in self._own if gained(key)] if self._own is not None else []
        self.enqueue_all(found, priority=Priority.INITIAL)
        if self._detachers:  # what has not begun is filled from all sources when it does
            self._replay(gained)
        return len(found)

    def _replay(self, gained: Callable[[ObjectKey], bool]) -> None:
        looked_at: set[ObjectKey] = set()

        def add(key: ObjectKey, _: int) -> None:
            if key not in looked_at:
                looked_at.add(key)
                if gained(key):
                    self.queue.add_at(key, Priority.INITIAL)

        for source in self._sources:
            source.attach(add, self.clock)()

    @property
    def awaited(self) -> set[Cache]:
        """The caches that are complete when the workers begin."""
        return {cache for one in self._sources if isinstance(one, CacheSource) for cache in one.awaited}

    @property
    def size(self) -> int:
        """The number of objects of the own kind."""
        return len(self._own) if self._own is not None else 0

    def count(self, chosen: Callable[[ObjectKey], bool]) -> int:
        """The number of objects of the own kind that pass `chosen`."""
        return sum(map(chosen, self._own)) if self._own is not None else 0

    def enqueue_all(self, keys: Iterable[ObjectKey] | None = None, *, priority: Priority = Priority.RESYNC) -> None:
        """Enqueue all objects of the controller's own kind, or `keys`."""
        chosen = keys if keys is not None else self._own.keys() if self._own is not None else ()
        for key in chosen:
            self.queue.add_at(key, priority)

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        """The running workers; they end only when stopped."""
        return [slot.task for slot in self._slots if slot.task is not None]

    async def _work(self, slot: Slot) -> None:
        queue, monotonic = self.queue, self.clock.monotonic
        if self.fence is not None:
            set_fence(self._guard)
        while True:
            key = queue.take()
            if key is None:
                slot.idle = True
                try:
                    key = await queue.get()
                except QueueClosed:
                    return
                finally:
                    slot.idle = False
            elif (now := monotonic()) - self._last_yield > SLICE_SECONDS:
                self._last_yield = now
                try:
                    await asyncio.sleep(0)
                except asyncio.CancelledError:
                    queue.done(key)
                    raise
            if self.fence is not None:
                self._check(self.fence, key)
            if self._assignment is None:
                await self._attempt(slot, key)
            else:
                await self._attempt_ours(slot, key, self._assignment)
            if self._excess and slot in self._spares:
                self._excess -= 1
                self._spares.remove(slot)
                return

    async def _attempt_ours(self, slot: Slot, key: ObjectKey, assignment: Assignment[Any]) -> None:
        """Reconcile `key` if it is this replica's, and act only as long as it is."""
        permit = assignment.enter(key, slot.interrupt)
        if permit is None:
            self.queue.done(key)
            self.queue.discard(key)
            return
        set_fence(permit.check)
        clean = False
        try:
            clean = await self._attempt(slot, key)
        finally:
            assignment.leave(permit, clean=clean)

    def _step_aside(self, slot: Slot) -> None:
        """The reconcile in `slot` waits for something slow: until it is over another worker does what is due."""
        if not slot.aside and len(self._spares) < SPARE_WORKERS and not self.queue.closed:
            slot.aside = True
            spare = Slot(self._step_aside)
            self._spares.append(spare)
            spare.task = start_shared(self._work(spare), name=f"{self.name} spare worker")

    def _step_back(self, slot: Slot) -> None:
        slot.aside = False
        idle = next((spare for spare in self._spares if spare.idle), None)
        if idle is None or idle.task is None:
            self._excess += 1
        else:
            self._spares.remove(idle)
            idle.task.cancel()

    def _check(self, fence: Callable[[], None], key: ObjectKey) -> None:
        try:
            fence()
        except Exception:
            self.queue.done(key)
            raise

    def _guard(self) -> None:
        """The fence as the clients ask it, before each request of a reconcile."""
        try:
            if self.fence is not None:
                self.fence()
        except Exception as error:
            raise Fenced(str(error)) from error

    async def _attempt(self, slot: Slot, key: ObjectKey) -> bool:
        """Reconcile `key` once; whether that came to its end without any failure."""
        meter = self._meter
        enter_scope(Scope(self.name, key, slot.step_aside))
        meter.active += 1
        self._deadlines.begin(slot)
        try:
            result = await self._reconciler.reconcile(key)
            if slot.cut is not None:
                slot.outlived(None)
        except asyncio.CancelledError:
            if slot.cut is None:
                if being_cancelled():
                    raise
                self._failed(key, Interrupted())
            else:
                self._failed(key, slot.outlived(None))
        except Exception as error:
            self._failed(key, slot.outlived(error) if slot.cut is not None else error)
        else:
            self._succeeded(key, result)
            return True
        finally:
            slot.end()
            if slot.aside:
                self._step_back(slot)
            meter.active -= 1
            seconds = self.queue.done(key)
            meter.reconciled.observe(seconds)
            if seconds > self._slow:
                self._remember_slow(key, seconds)
        return False

    def _remember_slow(self, key: ObjectKey, seconds: float) -> None:
        slowest = self.slowest
        slowest[key] = max(seconds, slowest.get(key, 0.0))
        if len(slowest) > SLOWEST:
            del slowest[min(slowest, key=slowest.__getitem__)]
            self._slow = min(slowest.values())

    def _succeeded(self, key: ObjectKey, result: Result | None) -> None:
        if result is not None and result.requeue_after is not None:
            self._meter.results["requeue_after"] += 1
            self.queue.repeat(key, result.requeue_after)
        else:
            self._meter.results["success"] += 1
            self.queue.forget(key)
        self._resync_later(key)

    def _resync_later(self, key: ObjectKey) -> None:
        if self._resync is not None and self._own is not None and key in self._own:
            delay = spread(self._resync, RESYNC_JITTER, random=self._random)
            self.queue.add(key, priority=Priority.RESYNC, after=delay)

    def _failed(self, key: ObjectKey, error: Exception) -> None:
        meter, queue = self._meter, self.queue
        if isinstance(error, HandedOver | Fenced) and self._assignment is not None and not self._assignment.holds(key):
            queue.discard(key)
            _log.info("reconcile ended, the object is another process's")
            return
        meter.results["error"] += 1
        meter.errors += 1
        if isinstance(error, StepError) and error.is_final:
            meter.terminal += 1
            queue.forget(key)
            self._resync_later(key)
            _log.error("reconcile failed for good", reason=error.reason, error=str(error), actor=error.actor)
            return
        delay = queue.retry(key, after=_asked_delay(error), firm=isinstance(error, StepError))
        self._report(error, delay)

    def _report(self, error: Exception, delay: float) -> None:
        again = round(delay, 3)
        match error:
            case DeadlineExceeded():
                self._meter.timeouts += 1
                _log.error("reconcile took too long", deadline=error.seconds, again_in=again)
            case Fenced():
                _log.info("reconcile was stopped before a request", error=str(error), again_in=again)
            case Conflict():
                _log.info("reconcile met a newer object", error=str(error), again_in=again)
            case StepError():
                cause = str(error.__cause__) if error.__cause__ is not None else None
                _log.warning("reconcile failed", reason=error.reason, error=str(error), cause=cause, again_in=again)
            case KubeError() | OSError():
                _log.warning("reconcile failed", error=str(error), again_in=again)
            case _:
                self._meter.panics += 1
                _log.error("reconcile failed unexpectedly", exc_info=error, again_in=again)


def _cancel(tasks: Iterable[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()


def _asked_delay(error: Exception) -> float | None:
    if isinstance(error, StepError):
        return error.after
    if isinstance(error, ApiError | TransportError) and error.retry_after is not None:
        return min(error.retry_after, LONGEST_ASKED_DELAY)
    return None
