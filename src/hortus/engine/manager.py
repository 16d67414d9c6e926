"""One process of controllers, put together: caches, election, controllers, servers, and the order of start and stop.

Start: the servers, so that probes are answered from the first moment; then the caches, also while standing by, so that
a take-over needs no list; then, when this process leads, the controllers and what only the leader runs. Stop goes the
other way: no new work, the workers end within the grace time, the lease is given back when all of them have, the caches
and servers close. When leadership is lost all work is cancelled at once, because another process may have begun, and
the fence stops its requests even before: `run` raises `LeadershipLost`. With shards in place of an election every
replica works, each on its own objects; one that loses its lease stops its work and joins again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from random import Random
from typing import Any, NamedTuple, Protocol

import structlog
from prometheus_client import CollectorRegistry

from hortus.engine.backoff import Backoff
from hortus.engine.cache import Cache, Transform
from hortus.engine.caches import Caches
from hortus.engine.controller import DEFAULT_DEADLINE, Assignment, Controller, Reconciler
from hortus.engine.health import Checks
from hortus.engine.lanes import Flows
from hortus.engine.metrics import EngineMetrics
from hortus.engine.reflector import ListerWatcher
from hortus.engine.rivals import RivalLeases
from hortus.engine.runnables import Election, Leadership, PartEnded, Runnable, Runnables, on_one_replica
from hortus.engine.shards import Shards
from hortus.engine.shards.records import LEASES
from hortus.engine.sources import Source, Watch
from hortus.engine.tracing import TracedReconciler, Tracing
from hortus.kube.clock import Clock, SystemClock
from hortus.kube.errors import NotServed
from hortus.kube.objects import ObjectKey, Resource

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

DEFAULT_GRACE = 30.0
"""Seconds for workers to end: Kubernetes' own grace period for a pod."""


class Server(Protocol):
    """The part of `hortus.engine.health.HealthServer` that the manager uses."""

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


class StalledKind(NamedTuple):
    """A kind that cannot be listed or watched now."""

    resource: Resource
    is_own: bool
    """True for one of the manager's own cluster."""
    is_missing: bool
    """True where the API server does not serve it: its CRD is missing."""
    controllers: frozenset[str]
    """The controllers that do not begin, or do not see changes, before it is there."""


class Manager:
    """Holds what the controllers of a process share, and runs them."""

    def __init__(
        self,
        client: ListerWatcher,
        *,
        clock: Clock | None = None,
        registry: CollectorRegistry | None = None,
        election: Election | None = None,
        shards: Shards | None = None,
        grace: float = DEFAULT_GRACE,
        random: Random | None = None,
        tracing: Tracing | None = None,
    ) -> None:
        """An `election`, `shards`, or neither: then this process is taken to be the only one."""
        if election is not None and shards is not None:
            raise ValueError("either one replica leads or all of them share: not an election and shards at once")
        self.clock: Clock = clock or SystemClock()
        self.registry = registry if registry is not None else CollectorRegistry()
        self.metrics = EngineMetrics(self.registry)
        self.readiness = Checks()
        """The checks behind /readyz; parts of the process add theirs."""
        self._random = random or Random()  # noqa: S311 - jitter, not secrecy
        self.caches = Caches(client, clock=self.clock, random=self._random)
        self.metrics.watching(self.caches)
        self._other_caches: list[Caches] = []
        self._leadership = Leadership(election)
        self._runnables = Runnables(self._leadership, shards)
        if election is not None:
            self.metrics.leader(election.name, lambda: election.leading)
        self.shards = shards
        if shards is not None:
            shards.watch(self.cache(LEASES, namespace=shards.namespace, labels=shards.selector))
            shards.held = self._count_held
            shards.on_gain(self._take_over)
            self.metrics.sharded(shards.group, shards)
        self._rivals: list[RivalLeases] = []
        self._excluding: RivalLeases | None = None
        """The rivals without which the controllers work that are being added."""
        self._ended: list[RivalLeases] = []
        """Rivals whose Leases are given back at the stop."""
        self._cuts: list[Callable[[], None]] = []
        self._held: dict[Controller, tuple[int, int, int]] = {}
        self._grace = grace
        self.tracing = tracing
        self._controllers: list[Controller] = []
        self._optional: list[Controller] = []
        """The controllers whose start is not awaited."""
        self._starting: list[asyncio.Task[None]] = []
        """The starts of these that are not complete."""
        self._servers: list[Server] = [] if tracing is None else [tracing]
        self._closers: list[Callable[[], Awaitable[object]]] = []
        self._stopping = asyncio.Event()
        self._undo = AsyncExitStack()
        self._has_started = asyncio.Event()

    # Putting together.

    def cache(
        self,
        resource: Resource,
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        transform: Transform | None = None,
    ) -> Cache:
        """The shared cache of this selection of the manager's own cluster."""
        return self.caches.get(resource, namespace=namespace, labels=labels, fields=fields, transform=transform)

    def caches_of(self, client: ListerWatcher) -> Caches:
        """Caches of another API server, started and stopped with the rest."""
        caches = Caches(client, clock=self.clock, random=self._random)
        self._other_caches.append(caches)
        self.metrics.watching(caches)
        return caches

    def controller(
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
        optional: bool = False,
    ) -> Controller:
        """Add a controller; see `Controller` for the options. Its name is the label of its metrics.

        One that is `optional` watches kinds that not every cluster has. The start of the others does not wait for it,
        and this process is ready without it; it begins when its kinds are there.
        """
        made = Controller(
            name,
            reconciler if self.tracing is None else TracedReconciler(self.tracing, name, reconciler),
            sources=sources,
            workers=workers,
            deadline=deadline,
            backoff=backoff,
            resync=resync,
            flows=flows,
            assignment=assignment or self._excluding or self.shards,
            clock=self.clock,
            metrics=self.metrics,
            random=self._random,
        )
        if self._leadership.election is not None:
            made.fence = self._leadership.check
        if self.shards is not None:
            self.metrics.held(name, lambda: self._held_by(made))
        if self._excluding is not None:
            self._excluding.on_gain(made.take_over)
        self._controllers.append(made)
        if optional:
            self._optional.append(made)
            for source in sources:
                if isinstance(source, Watch):
                    self.caches.allow_unserved(source.cache)
        return made

    def add(self, name: str, run: Runnable, *, leader_only: bool = True) -> None:
        """Run something next to the controllers until stop. When it ends by itself or fails, the manager stops.

        With `leader_only` it runs where this process leads, or on one replica of all, its requests are fenced like a
        reconcile's, and it has ended when the lease is given back.
        """
        if leader_only and self._excluding is not None:
            run = partial(self._excluding.while_free, run)
        self._runnables.add(name, run, leader_only=leader_only)

    @contextmanager
    def excluding(self, rivals: RivalLeases) -> Iterator[None]:
        """Let the controllers, and what only the leader runs, that are added meanwhile work only while no rival does.

        The Leases of the rivals are held from the start to the stop, by one replica.
        """
        rivals.join(shards=self.shards, fence=self._leadership.fence)
        for name in rivals.names:
            rivals.watch(name, self.cache(LEASES, fields=f"metadata.name={name}"))
            self.metrics.rival(name, partial(rivals.is_held_by_others, name))
        self._rivals.append(rivals)
        before, self._excluding = self._excluding, rivals
        try:
            yield
        finally:
            self._excluding = before

    def add_server(self, server: Server) -> None:
        """Started before everything, stopped after everything."""
        self._servers.append(server)

    def on_stop(self, close: Callable[[], Awaitable[object]]) -> None:
        """Call `close` at the very end, last added first: clients, recorders."""
        self._closers.append(close)

    def on_resume(self, cut: Callable[[], None]) -> None:
        """Call `cut` when this process goes on after it was stopped and another may work in its place by now.

        For `Client.cut` of each client with which reconciles write.
        """
        self._cuts.append(cut)

    def holds(self, key: ObjectKey) -> bool:
        """True when this process works on the object; without shards on each."""
        return self.shards is None or self.shards.holds(key)

    def on_handover(self, shed: Callable[[Callable[[ObjectKey], bool]], object]) -> None:
        """Call `shed` when objects may have become another replica's.

        It is given `holds`, and drops what is remembered, watched or measured of other objects.
        """

        def look(gained: Callable[[ObjectKey], bool]) -> int:
            shed(self.holds)
            return 0

        if self.shards is not None:
            self.shards.on_gain(look)

    @property
    def controllers(self) -> Sequence[Controller]:
        return self._controllers

    @property
    def all_caches(self) -> Sequence[Caches]:
        """The caches of the manager's own cluster, then those of other API servers."""
        return (self.caches, *self._other_caches)

    @property
    def stalled(self) -> Sequence[StalledKind]:
        """The kinds that cannot be listed or watched now, without those that are only for optional controllers."""
        found: dict[tuple[Resource, bool, bool], set[str]] = {}
        for caches in self.all_caches:
            for resource, cache, problem in caches.stalled():
                waiting = {one.name for one in self._controllers if cache in one.awaited}
                key = resource, caches is self.caches, isinstance(problem, NotServed)
                found.setdefault(key, set()).update(waiting)
        return [StalledKind(*key, frozenset(names)) for key, names in found.items()]

    # Running.

    def resumed(self) -> None:
        """This process was stopped and goes on: for a handler of SIGCONT, before anything else has a turn."""
        working = self.shards.joined if self.shards is not None else self._leadership.held
        if not working:
            for cut in self._cuts:
                cut()

    def stop(self) -> None:
        """Ask `run` to end gracefully; may be called more than once."""
        self._stopping.set()

    @property
    def started(self) -> bool:
        """True when the caches are complete and the controllers are at work; not so while standing by."""
        return self._has_started.is_set() and not self._stopping.is_set()

    async def wait_started(self) -> None:
        """Return when `started` has become true."""
        await self._has_started.wait()

    @property
    def stopping(self) -> bool:
        return self._stopping.is_set()

    async def run(self) -> None:
        """Start, work until `stop`, and stop. Raises LeadershipLost, or what made a part of it fail."""
        starter = asyncio.create_task(self._start(), name="start")
        try:
            await self._until_over(starter)
        except PartEnded as error:
            _log.warning("stopping", reason=str(error))
        finally:
            starter.cancel()
            await asyncio.gather(starter, return_exceptions=True)
            await self._shut_down()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Manager]:
        """Everything started on entry, stopped on exit: for tests and for programs with several managers on a loop.

        When a part fails meanwhile, or leadership is lost, the body is cancelled and that error raised.
        """
        body = asyncio.current_task()
        assert body is not None, "an async context is entered in a task"
        guard: asyncio.Task[None] | None = None

        def interrupt(done: asyncio.Task[None]) -> None:
            if guard is not None and _failed(done):
                body.cancel()

        try:
            await self._start()
            guard = asyncio.create_task(self._until_over(), name="guard")
            guard.add_done_callback(interrupt)
            yield self
            if _failed(guard):
                guard.result()
        except asyncio.CancelledError:
            if guard is not None and _failed(guard) and body.uncancel() == 0:
                guard.result()
            raise
        finally:
            watched, guard = guard, None
            if watched is not None:
                watched.cancel()
            await self._shut_down()

    async def _start(self) -> None:
        for close in self._closers:
            self._undo.push_async_callback(close)
        for server in self._servers:
            self._undo.push_async_callback(server.stop)
            await server.start()
        for caches in self.all_caches:
            self._undo.push_async_callback(caches.stop)
            caches.start()
        self._undo.push_async_callback(self._runnables.stop)
        self._runnables.start(leader_only=False)
        for rivals in self._rivals:
            self._undo.push_async_callback(self._give_back, rivals)
        election = self._leadership.election
        if election is not None:
            self._undo.push_async_callback(election.release)
            await election.acquire()
            self._runnables.follow("leadership", self._leadership.until_lost())
        if self.shards is not None:
            self._undo.push_async_callback(self.shards.leave_group)
            self._runnables.follow("shards", self.shards.run())
            await self.shards.has_joined()
        for rivals in self._rivals:
            name = f"rivals {', '.join(rivals.names)}"
            hold = rivals.hold() if self.shards is None else on_one_replica(self.shards, name, rivals.hold)
            self._undo.push_async_callback(self._end_holding, rivals, self._runnables.follow(name, hold))
        self._undo.push_async_callback(self._stop_work)
        self._starting = [asyncio.create_task(one.start(), name=f"start {one.name}") for one in self._optional]
        awaited = [controller for controller in self._controllers if controller not in self._optional]
        await asyncio.gather(*(controller.start() for controller in awaited))
        self._runnables.start(leader_only=True)
        self._has_started.set()
        _log.info("started", controllers=[controller.name for controller in self._controllers])

    async def _until_over(self, starter: asyncio.Task[None] | None = None) -> None:
        """Return when asked to stop; raise when a part failed or leadership is lost."""
        stop = asyncio.create_task(self._stopping.wait(), name="stop")
        try:
            while True:
                workers = [task for controller in self._controllers for task in controller.tasks]
                waited = {stop, *self._runnables.tasks, *workers, *self._starting} | (
                    {starter} if starter and not starter.done() else set()
                )
                done, _ = await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
                if stop in done:
                    return
                for task in done:
                    task.result()
                    if task in self._starting:
                        self._starting = [one for one in self._starting if one is not task]
                    elif task is not starter:
                        raise PartEnded(f"{task.get_name()} ended by itself")
        finally:
            stop.cancel()

    async def _shut_down(self) -> None:
        self._stopping.set()
        _log.info("stopping")
        await self._undo.aclose()
        _log.info("stopped")

    async def _stop_work(self) -> None:
        """End all that must not run any more when another process begins."""
        grace = self._grace if self._leadership.held else 0.0
        for task in self._starting:
            task.cancel()
        await asyncio.gather(*self._starting, return_exceptions=True)
        await asyncio.gather(
            self._runnables.stop_led(), *(controller.stop(grace=grace) for controller in self._controllers)
        )

    async def _end_holding(self, rivals: RivalLeases, holding: asyncio.Task[None]) -> None:
        """Renew the Leases of rivals no more; they are given back unless another replica goes on."""
        alone = len(self.shards.members) <= 1 if self.shards is not None else self._leadership.held
        if alone:
            self._ended.append(rivals)
        holding.cancel()
        await asyncio.gather(holding, return_exceptions=True)

    async def _give_back(self, rivals: RivalLeases) -> None:
        """Empty the Leases of rivals, once this process leads no more: one that follows it takes them before."""
        if rivals in self._ended:
            await rivals.give_back(to_successor=self._leadership.election is not None)

    def _take_over(self, gained: Callable[[ObjectKey], bool]) -> int:
        return sum(controller.take_over(gained) for controller in self._controllers)

    def _count_held(self) -> int:
        return sum(map(self._held_by, self._controllers))

    def _held_by(self, controller: Controller) -> int:
        """The number of its objects that this replica holds, counted again when shards or objects have changed."""
        if self.shards is None:
            return 0
        size, version = controller.size, self.shards.version
        known = self._held.get(controller)
        if known is None or known[:2] != (size, version):
            known = self._held[controller] = (size, version, controller.count(self.shards.holds))
        return known[2]


def _failed(task: asyncio.Task[None]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is not None
