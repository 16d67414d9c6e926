"""Replicas in simulated time: processes that are killed, stopped and cut off, a store of Leases, and a network between.

What runs in each process is the product's own: `Shards`, a `Controller`, and a `RemotePool` with a `RemoteWatch` for
what it does in the clusters of its objects (`clusters`). Only time, the network, the store and the clusters are played.
Whatever happens to a process goes through `Process.deliver`, so that a stopped one does nothing at all and has
everything before it when it goes on. A request that was sent arrives, also when its sender is dead by then.

Broken rules are collected in `World.broken`:
- no reconcile begins while another replica's reconcile of that object may still act;
- nothing that a reconcile wrote arrives after another replica's reconcile of that object has begun.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable
from contextvars import Context, copy_context
from functools import partial
from random import Random
from typing import Any, NamedTuple, TypeVar

from tests.engine.shards.clusters import Cluster, Secrets, SimulatedConnection, Tending, settings

from hortus.engine.backoff import Backoff
from hortus.engine.cache import Cache
from hortus.engine.controller import Controller
from hortus.engine.leases import LEASES
from hortus.engine.outcomes import Result, StepError
from hortus.engine.remote import KubeconfigRef, RemotePool
from hortus.engine.shards import Shards
from hortus.engine.sources import Watch
from hortus.kube.clock import Timer
from hortus.kube.errors import (
    AlreadyExists,
    Conflict,
    ConnectionFailed,
    KubeError,
    NotFound,
    RequestTimedOut,
    from_status,
)
from hortus.kube.fencing import Fenced, check_fence
from hortus.kube.objects import Object, ObjectKey, Resource
from hortus.kube.patches import apply_merge_patch
from hortus.testing import FakeClock

NAMESPACE = "kcp-system"
KEYS = [ObjectKey("default", f"object-{number}") for number in range(8)]
REQUEST_TIMEOUT = 30.0
"""Seconds, as the client's."""
SLOWEST = 3.0
"""Seconds a request takes at most to arrive. Less than what a lease leaves to the last ones."""

T = TypeVar("T")


class _GatedTimer:
    __slots__ = ("callback", "context", "inner")

    def __init__(self, callback: Callable[[], object]) -> None:
        self.callback: Callable[[], object] | None = callback
        self.context = copy_context()
        self.inner: Timer | None = None

    def cancel(self) -> None:
        self.callback = None
        if self.inner is not None:
            self.inner.cancel()

    def fire(self) -> None:
        callback, self.callback = self.callback, None
        if callback is not None:
            self.context.run(callback)


class ProcessClock:
    """A process's clocks: monotonic time of its own origin and rate, wall time that is wrong."""

    def __init__(self, base: FakeClock, process: Process, random: Random) -> None:
        self._base = base
        self._process = process
        self._origin = random.uniform(0, 1e6)
        self._rate = random.uniform(0.97, 1.03)
        self._skew = random.uniform(-600, 600)

    def now(self) -> float:
        return self._base.now() + self._skew

    def jump(self, seconds: float) -> None:
        self._skew += seconds

    def monotonic(self) -> float:
        return self._origin + self._base.monotonic() * self._rate

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        timer = _GatedTimer(callback)
        timer.inner = self._base.call_later(seconds / self._rate, lambda: self._process.deliver(timer.fire))
        return timer

    async def sleep(self, seconds: float) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        timer = self.call_later(max(0.0, seconds), lambda: None if woken.done() else woken.set_result(None))
        try:
            await woken
        finally:
            timer.cancel()


class Listing(NamedTuple):
    items: list[Object]


class Server:
    """The Leases, and who watches them. Each operation happens at one instant, all in one order."""

    def __init__(self) -> None:
        self.leases: dict[str, Object] = {}
        self.version = 0
        self.watchers: list[Callable[[str, Object], None]] = []

    def create(self, obj: Object) -> Object:
        name = obj["metadata"]["name"]
        if name in self.leases:
            raise AlreadyExists(name)
        obj = copy.deepcopy(obj)
        obj["metadata"]["uid"] = f"uid-{self.version + 1}"
        return self._store("ADDED", name, obj)

    def patch(self, name: str, patch: Object) -> Object:
        if name not in self.leases:
            raise NotFound(name)
        return self._store("MODIFIED", name, apply_merge_patch(copy.deepcopy(self.leases[name]), patch))

    def get(self, name: str) -> Object:
        if name not in self.leases:
            raise NotFound(name)
        return copy.deepcopy(self.leases[name])

    def list(self) -> Listing:
        return Listing([copy.deepcopy(lease) for lease in self.leases.values()])

    def delete(self, name: str, uid: str, resource_version: str) -> Object:
        if name not in self.leases:
            raise NotFound(name)
        metadata = self.leases[name]["metadata"]
        if resource_version and (metadata["uid"], metadata["resourceVersion"]) != (uid, resource_version):
            raise Conflict(name)
        self._store("DELETED", name, copy.deepcopy(self.leases[name]))
        return self.leases.pop(name)

    def _store(self, kind: str, name: str, obj: Object) -> Object:
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        self.leases[name] = obj
        for watcher in self.watchers:
            watcher(kind, obj)
        return copy.deepcopy(obj)


class Process:
    """One replica: a controller over the same objects as everybody, and what may befall a process."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.random = Random(f"{world.seed} {name}")
        self.clock = ProcessClock(world.clock, self, self.random)
        self.alive = True
        self.paused = False
        self.leaving = False
        self.cut_off = False
        self.watch_hangs = False
        self._backlog: list[Callable[[], object]] = []
        self.faulty_until = float("-inf")
        """When what last befell its network, or itself, was over."""
        self.streams = 0
        """Watches that are open in clusters."""
        self._late: list[Callable[[], object]] = []
        """Events of watches that hang."""
        self._last_event = 0.0
        self.cache = Cache("leases")
        self.shards = Shards(
            self, group="test", namespace=NAMESPACE, identity=name, clock=self.clock, random=self.random
        )
        self.shards.watch(self.cache)
        objects = Cache("objects")
        for key in KEYS:
            objects.put({"metadata": {"name": key.name, "namespace": key.namespace, "resourceVersion": "1"}})
        objects.replace(objects.values(), 1)
        self.secrets = Secrets(self)
        self.pool = RemotePool(
            self.secrets,
            settings=settings(scarce=world.scarce),
            clock=self.clock,
            random=self.random,
            connect=partial(SimulatedConnection, self),
        )
        self.tending = Tending(self)
        self.controller = Controller(
            "test",
            self,
            sources=[Watch(objects), self.tending.watch],
            workers=3,
            deadline=25.0,
            assignment=self.shards,
            backoff=Backoff(cap=5.0),
            clock=self.clock,
            random=self.random,
        )
        self.shards.on_gain(self.controller.take_over)
        self.shards.on_gain(self.tending.shed)
        world.server.watchers.append(self._sees)
        self.tasks = [
            asyncio.create_task(self.shards.run()),
            asyncio.create_task(self._start()),
            asyncio.create_task(self.tending.keep_asking()),
        ]

    async def _start(self) -> None:
        await self.shards.has_joined()
        await self.controller.start()

    # Events in the life of the process.

    def deliver(self, callback: Callable[[], object]) -> None:
        if not self.alive:
            return
        if self.paused:
            self._backlog.append(callback)
        else:
            callback()

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False
        self.fault()
        backlog, self._backlog = self._backlog if self.alive else [], []
        self.random.shuffle(backlog)
        for callback in backlog:
            callback()

    def fault(self) -> None:
        """Something befell this process until now."""
        self.faulty_until = self.world.clock.monotonic()

    def kill(self) -> None:
        self.alive = False
        self.world.server.watchers.remove(self._sees)

    def hang_watch(self, *, hangs: bool) -> None:
        self.watch_hangs = hangs
        if not hangs:
            late, self._late = self._late, []
            for event in late:
                self._receive(event)

    async def leave(self) -> None:
        """Leave as on SIGTERM."""
        self.leaving = True
        await self.controller.stop(grace=5.0)
        await self.shards.leave_group()
        if self.alive:
            self.kill()

    def _sees(self, kind: str, obj: Object) -> None:
        obj = copy.deepcopy(obj)
        self._receive(lambda: self._take(kind, obj))

    def hears_of_secret(self, place: KubeconfigRef) -> None:
        self._receive(lambda: self.secrets.changed(place.namespace, place.name))

    def _receive(self, event: Callable[[], object]) -> None:
        """An event of a watch of the management cluster."""
        if self.watch_hangs or self.cut_off or not self.world.up:
            self._late.append(event)
            return
        # One connection: what comes later never overtakes.
        at = max(self._last_event, self.world.clock.monotonic() + self.random.expovariate(1 / 0.05))
        self._last_event = at
        self.world.clock.call_later(at - self.world.clock.monotonic(), lambda: self.deliver(event))

    def catch_up(self) -> None:
        """The network is back: the watch goes on where it was."""
        self.hang_watch(hangs=self.watch_hangs)

    def _take(self, kind: str, obj: Object) -> None:
        if kind == "DELETED":
            self.cache.drop(ObjectKey(NAMESPACE, obj["metadata"]["name"]), obj)
        else:
            self.cache.observe(obj)

    # Its client.

    async def _call(self, operation: Callable[[], T], *, slow: float = 0.05) -> T:
        """Send a request to the management cluster, and wait for the answer."""
        return await self.exchange(operation, up=lambda: self.world.up, slow=slow)

    async def exchange(
        self,
        operation: Callable[[], T],
        *,
        up: Callable[[], bool],
        answers: Callable[[], bool] | None = None,
        timeout: float = REQUEST_TIMEOUT,
        slow: float = 0.05,
    ) -> T:
        """Send a request, and wait for the answer. It goes on its way also when nobody waits any more.

        A server that is not `up` refuses some and loses others; one that is up and does not answer loses all. `slow`
        is the share of requests that take seconds to arrive, as long as the network is bad.
        """
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        world, random = self.world, self.random

        def answered(result: T | None, error: Exception | None) -> None:
            if answer.done():
                return
            if error is not None:
                answer.set_exception(error)
            else:
                answer.set_result(result)  # type: ignore[arg-type]

        def arrive() -> None:
            if self.cut_off or not up() or (answers is not None and not answers()):
                return
            result, error = None, None
            try:
                result = operation()
            except KubeError as refused:
                error = refused
            back = world.delay(random, 0.05)
            world.clock.call_later(back, lambda: self.deliver(lambda: answered(result, error)))

        def refused() -> None:
            answered(None, ConnectionFailed("api", "connection refused"))

        if (self.cut_off or not up()) and random.random() < 0.5:
            world.clock.call_later(0.01, lambda: self.deliver(refused))
        else:
            world.clock.call_later(world.delay(random, slow), arrive)
        timer = self.clock.call_later(timeout, lambda: answered(None, RequestTimedOut("api", "no answer")))
        try:
            return await answer
        finally:
            timer.cancel()

    async def create(self, resource: Resource, obj: Object) -> Object:
        assert resource == LEASES
        return await self._call(lambda: self.world.server.create(obj))

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Object:
        return await self._call(lambda: self.world.server.get(name))

    async def list(self, resource: Resource, namespace: str = "", labels: object = "") -> Listing:
        return await self._call(self.world.server.list)

    async def patch(self, resource: Resource, name: str, patch: Object, namespace: str = "") -> Object:
        return await self._call(lambda: self.world.server.patch(name, patch))

    async def delete(
        self, resource: Resource, name: str, namespace: str = "", *, uid: str = "", resource_version: str = ""
    ) -> Object:
        return await self._call(lambda: self.world.server.delete(name, uid, resource_version))

    # Its reconciler.

    async def reconcile(self, key: ObjectKey) -> Result | None:
        work = Work(self, key, copy_context())
        self.world.began(work)
        try:
            for _ in range(self.random.randrange(3)):
                check_fence()
                await self._call(lambda: self.world.wrote(work), slow=0.3)
                if self.random.random() < 0.3:
                    await self.clock.sleep(self.random.expovariate(1.0))
            if self.random.random() < 0.02 and self.world.slow:
                await self.clock.sleep(40)
            if self.random.random() < 0.05:
                raise StepError("as it happens")
            await self.tending.tend(key)
        finally:
            if self.alive:
                self.world.ended(work)
        return Result(requeue_after=self.random.uniform(2, 8))


class Work:
    """One reconcile of one object by one process."""

    def __init__(self, process: Process, key: ObjectKey, context: Context) -> None:
        self.process = process
        self.key = key
        self.context = context
        self.number = 0

    @property
    def may_act(self) -> bool:
        if not self.process.alive:
            return False
        try:
            self.context.run(check_fence)
        except Fenced:
            return False
        return True


class World:
    """Time, the server, the processes and the journal."""

    def __init__(self, seed: object) -> None:
        self.seed = seed
        self.random = Random(f"world {seed}")
        self.clock = FakeClock()
        self.server = Server()
        self.up = True
        self.slow = True
        self.secrets_readable = True
        self.scarce = self.random.random() < 0.4
        """True when processes may open fewer watches than there are clusters."""
        self.clusters = {key: Cluster(key, self, watched=number % 2 == 0) for number, key in enumerate(KEYS)}
        self.processes: list[Process] = []
        self.broken: list[str] = []
        self.begun = 0
        self.overlaps = 0
        self._latest: dict[ObjectKey, Work] = {}
        self._running: dict[ObjectKey, list[Work]] = {}
        self.log: list[str] = []

    def join(self) -> Process:
        made = Process(self, f"replica-{len(self.processes)}")
        self.processes.append(made)
        return made

    @property
    def living(self) -> list[Process]:
        return [process for process in self.processes if process.alive]

    @property
    def staying(self) -> list[Process]:
        """The processes that live and have not been asked to stop."""
        return [process for process in self.living if not process.leaving]

    def delay(self, random: Random, slow: float) -> float:
        """Seconds on the way: milliseconds, or seconds in a share of `slow` as long as the network is bad."""
        return random.uniform(0.5, SLOWEST) if self.slow and random.random() < slow else random.expovariate(1 / 0.02)

    def secret(self, place: KubeconfigRef) -> bytes:
        """The answer of the management cluster."""
        if not self.secrets_readable:
            raise from_status(500, {"kind": "Status", "message": "etcdserver: request timed out"})
        return next(cluster.kubeconfig for cluster in self.clusters.values() if cluster.place == place)

    def rotate(self, cluster: Cluster) -> None:
        """A cluster's Secret holds another credential."""
        cluster.rotate()
        for process in self.living:
            process.hears_of_secret(cluster.place)

    def networks_are_back(self) -> None:
        """The watches in clusters send the events that they could not send before."""
        for cluster in self.clusters.values():
            for stream in cluster.streams:
                stream.flush()

    def note(self, text: str) -> None:
        self.log.append(f"{self.clock.monotonic() - 1000:8.3f} {text}")

    def began(self, work: Work) -> None:
        self.begun += 1
        work.number = self.begun
        for other in self._running.get(work.key, []):
            if other.process is not work.process and other.may_act:
                self.breaks(f"{work.process.name} begins {work.key.name} while {other.process.name} is at it")
        self._running.setdefault(work.key, []).append(work)
        self._latest[work.key] = work

    def wrote(self, work: Work) -> None:
        latest = self._latest[work.key]
        if latest.process is not work.process and latest.number > work.number:
            self.breaks(
                f"what {work.process.name} wrote to {work.key.name} arrives after {latest.process.name} has begun"
            )

    def ended(self, work: Work) -> None:
        self._running[work.key].remove(work)

    def breaks(self, text: str) -> None:
        self.note(f"BROKEN {text}")
        self.broken.append(text)

    async def close(self) -> None:
        """End all tasks, those of the dead too."""
        tasks: list[asyncio.Task[Any]] = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
