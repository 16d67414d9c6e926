"""The connections of one process to all remote clusters.

`at(place)` is free: nothing is read, connected or kept before the first call. One timer (`hortus.engine.delays`) serves
all that is due later: probes, and a check now and then of every known cluster, which is given up when nobody wants it
and probed when it is watched and fell silent. A cluster whose calls are refused always has a probe to come. Per cluster
there is one small object and no task.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from random import Random
from typing import Any, Self, Unpack, cast

import msgspec
import structlog
from prometheus_client import CollectorRegistry

from hortus.engine.backoff import spread
from hortus.engine.delays import Delays
from hortus.engine.remote.budget import Budget, WatchSlot
from hortus.engine.remote.connection import Remote
from hortus.engine.remote.context import Connect
from hortus.engine.remote.credentials import KubeconfigRef, KubeconfigSource
from hortus.engine.remote.identity import MemberIdentity
from hortus.engine.remote.metrics import Anonymous, RemoteMetrics
from hortus.engine.remote.settings import RemoteSettings
from hortus.engine.remote.states import IDLE, Phase, RemoteState
from hortus.engine.remote.strain import Strain
from hortus.engine.scope import current_scope, start_shared
from hortus.engine.within import within
from hortus.kube import Access, Answer, Client, Connection, ConnectionSettings, RequestObserver
from hortus.kube.clock import Clock, SystemClock
from hortus.kube.dialing import Memory
from hortus.kube.errors import ApiError, RequestTimedOut
from hortus.kube.tls import Contexts
from hortus.kube.transport import Absorb, CallOptions, Reader

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

Listener = Callable[[KubeconfigRef, RemoteState, RemoteState], None]
"""Hears of a state: place, before, after. They are equal where another credential took over."""


class _Due(enum.Enum):
    """The purpose for which a cluster is looked at later; each has a time of its own."""

    PROBE = "probe"
    CHECK = "check"


class RemotePool:
    """Hands out clients of remote clusters. `async with` or `close()`."""

    def __init__(
        self,
        credentials: KubeconfigSource,
        *,
        settings: RemoteSettings | None = None,
        clock: Clock | None = None,
        registry: CollectorRegistry | None = None,
        observer: RequestObserver | None = None,
        random: Random | None = None,
        connect: Connect = Connection,
    ) -> None:
        """`observer` hears of calls to all clusters under one host, "remote": a series for each would be too many."""
        self.connect = connect
        self.credentials = credentials
        self.settings = settings or RemoteSettings()
        self.clock: Clock = clock or SystemClock()
        self.random = random or Random()  # noqa: S311 - jitter, not secrecy
        self.contexts = Contexts()
        self.strain = Strain()
        self.memory = Memory(self.settings.memory)
        self.observer = Anonymous(observer) if observer is not None else None
        chosen = self.settings
        self.budget = Budget(
            sockets=chosen.sockets, watch_share=chosen.watch_share, handshakes=chosen.handshakes, clock=self.clock
        )
        self.connection_settings: ConnectionSettings = chosen.connection()
        self.crowded_settings = msgspec.structs.replace(self.connection_settings, watch_period=chosen.watch_turn)
        """Settings of watches while other watches wait for a slot, or soon will."""
        self._remotes: dict[KubeconfigRef, Remote] = {}
        self._by_secret: dict[tuple[str, str], set[KubeconfigRef]] = {}
        self._due: Delays[tuple[KubeconfigRef, _Due]] = Delays(self.clock, self._on_due)
        self._probes = asyncio.Semaphore(chosen.probes)
        self._tasks: set[asyncio.Task[object]] = set()
        self._listeners: list[Listener] = []
        self._recreated: list[Callable[[KubeconfigRef], None]] = []
        self._unsubscribe = credentials.subscribe(self._secret_changed)
        self._closed = False
        self.metrics = RemoteMetrics(self.budget, registry)

    # For callers.

    def at(self, place: KubeconfigRef) -> Client:
        """A client of the cluster whose kubeconfig lies at `place`.

        Its calls end within `settings.deadline` and raise RemoteUnavailable at once while the breaker is open.
        """
        return Client.over(_Transport(self, place, patient=False))

    def patient(self, place: KubeconfigRef) -> Client:
        """The same for what runs in the background: calls wait until the cluster can be reached, however long."""
        return Client.over(_Transport(self, place, patient=True))

    def watcher(self, place: KubeconfigRef) -> Client:
        """A patient client for one list and the watch that follows it, which count as one of the watches there may be.

        Its `close` gives that up when the watch was never begun.
        """
        return Client.over(_WatchTransport(self, place, patient=True))

    def state(self, place: KubeconfigRef) -> RemoteState:
        """The known state of that cluster."""
        remote = self._remotes.get(place)
        return remote.state if remote is not None else IDLE

    def identity(self, place: KubeconfigRef) -> MemberIdentity:
        """The cluster that answered there last, as long as it is known."""
        remote = self._remotes.get(place)
        return remote.identity if remote is not None else MemberIdentity()

    @asynccontextmanager
    async def held(self, place: KubeconfigRef) -> AsyncIterator[Client]:
        """Keep the cluster connected, and probed when it falls silent; gives its patient client."""
        self.hold(place)
        try:
            yield self.patient(place)
        finally:
            self.release(place)

    def hold(self, place: KubeconfigRef) -> None:
        """Say that somebody wants the cluster watched, until `release`."""
        self.remote(place).holders += 1

    def release(self, place: KubeconfigRef) -> None:
        remote = self._remotes.get(place)
        if remote is not None:
            remote.holders -= 1
            self.used(remote)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` for each change of a state; returns the way to stop it. It must be quick."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def on_recreated(self, listener: Callable[[KubeconfigRef], None]) -> Callable[[], None]:
        """Call `listener` when another cluster answers at a place; returns the way to stop it."""
        self._recreated.append(listener)
        return lambda: self._recreated.remove(listener)

    def places(self) -> Iterable[KubeconfigRef]:
        """The clusters that are known: connected, watched, or with an open breaker."""
        return tuple(self._remotes)

    async def close(self) -> None:
        """Drop all connections; calls and watches in flight fail."""
        self._closed = True
        self._unsubscribe()
        self._due.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for remote in list(self._remotes.values()):
            await remote.close()
        self._remotes.clear()
        self._by_secret.clear()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # For the remotes.

    def remote(self, place: KubeconfigRef) -> Remote:
        found = self._remotes.get(place)
        if found is None:
            found = self._remotes[place] = Remote(place, self)
            self._by_secret.setdefault((place.namespace, place.name), set()).add(place)
            self.metrics.phases[Phase.IDLE] += 1
            self._check_later(found)
        return found

    def changed(self, place: KubeconfigRef, before: RemoteState, after: RemoteState) -> None:
        self.metrics.phases[before.phase] -= 1
        self.metrics.phases[after.phase] += 1
        if before.usable and not after.usable:
            self.metrics.opened += 1
        for listener in tuple(self._listeners):
            try:
                listener(place, before, after)
            except Exception:
                _log.exception("a listener failed on a remote cluster's state", place=str(place))

    def recreated(self, place: KubeconfigRef) -> None:
        for listener in tuple(self._recreated):
            listener(place)

    def rotated(self) -> None:
        self.metrics.rotations += 1

    def probe_in(self, place: KubeconfigRef, seconds: float) -> None:
        if not self._closed:
            self._due.add((place, _Due.PROBE), seconds, 0)

    def used(self, remote: Remote) -> None:
        if not remote.holders and not self._closed:
            self._due.add((remote.place, _Due.CHECK), self.settings.idle, 0)

    def spawn(self, step: Callable[[], Awaitable[object]], name: str) -> None:
        task = start_shared(cast(Coroutine[Any, Any, object], step()), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # Timers.

    def _on_due(self, due: tuple[KubeconfigRef, _Due], _: int) -> None:
        place, purpose = due
        remote = self._remotes.get(place)
        if remote is None:
            return
        now, heard = self.clock.monotonic(), remote.health.heard
        if not remote.wanted and now - max(heard, remote.asked) >= self.settings.idle:
            self._forget(remote)
            return
        silent = remote.holders and remote.connected and now - heard >= self.settings.probe_every / 2
        if purpose is _Due.PROBE or silent:
            self.spawn(lambda: self._probe(remote), f"probe {place}")
        self._check_later(remote)

    async def _probe(self, remote: Remote) -> None:
        try:
            async with self._probes:
                await remote.probe()
        except Exception:
            _log.exception("a probe failed unexpectedly", place=str(remote.place))
        finally:
            # As long as calls are refused another probe follows, also after one that failed unexpectedly.
            if remote.health.closed_off and (remote.place, _Due.PROBE) not in self._due:
                self.probe_in(remote.place, self.settings.breaker.cap)

    def _check_later(self, remote: Remote) -> None:
        if self._closed or (remote.place, _Due.CHECK) in self._due:
            return
        period = self.settings.probe_every if remote.holders else self.settings.idle
        self._due.add((remote.place, _Due.CHECK), spread(period, 0.2, random=self.random), 0)

    def _forget(self, remote: Remote) -> None:
        """Closes a connection that was not used for long, and drops all that is known of it."""
        place = remote.place
        del self._remotes[place]
        for purpose in _Due:
            self._due.cancel((place, purpose))
        places = self._by_secret[place.namespace, place.name]
        places.discard(place)
        if not places:
            del self._by_secret[place.namespace, place.name]
        self.metrics.phases[remote.state.phase] -= 1
        self.spawn(remote.close, f"close {place}")

    def _secret_changed(self, namespace: str, name: str) -> None:
        for place in tuple(self._by_secret.get((namespace, name), ())):
            self._remotes[place].credential_changed()


class _Transport:
    """The transport of a `Client`: one cluster, with a deadline for each call or, when patient, without."""

    def __init__(self, pool: RemotePool, place: KubeconfigRef, *, patient: bool) -> None:
        self._pool = pool
        self._place = place
        self._patient = patient
        self.clock = pool.clock

    @property
    def settings(self) -> ConnectionSettings:
        return self._pool.connection_settings

    @property
    def _remote(self) -> Remote:
        return self._pool.remote(self._place)

    @property
    def host(self) -> str:
        return self._remote.host

    @property
    def access(self) -> Access:
        found = self._remote.access
        if found is None:
            raise self._remote.unavailable()
        return found

    def become(self, access: Access) -> None:
        raise TypeError(f"{self._place} decides how this cluster is reached: change the Secret")

    async def close(self) -> None:
        """Has no effect: the pool closes what is idle."""

    async def call(self, method: str, target: str, body: bytes | None = None, **options: Unpack[CallOptions]) -> Answer:
        remote, pool = self._remote, self._pool
        if self._patient:
            return await remote.call(method, target, body, options, patient=True)
        remote.health.check_pause(f"{remote.host}: {method} {target}")  # the cluster is not asked: no answer of it
        step = remote.call(method, target, body, options, patient=False)
        began, patience = self.clock.monotonic(), pool.settings.patience
        scope = current_scope()
        aside = scope.step_aside if scope is not None else None
        timer = self.clock.call_later(patience, partial(self._lose_patience, aside)) if aside is not None else None
        deadline = max(pool.settings.deadline, options.get("timeout") or 0.0)
        try:
            answer = await within(self.clock, deadline, step)
        except TimeoutError:
            raise RequestTimedOut(remote.host, f"{method} was not done within {deadline:g} s") from None
        except ApiError:
            self._answered(began)
            raise
        finally:
            if timer is not None:
                timer.cancel()
        self._answered(began)
        return answer

    def _answered(self, began: float) -> None:
        """The cluster has answered a call, perhaps by refusing it."""
        late = self.clock.monotonic() - began > self._pool.settings.patience
        self._pool.strain.answered(self._place, late=late)

    def _lose_patience(self, aside: Callable[[], None]) -> None:
        if not self._pool.strain.is_general:
            aside()

    def stream(
        self,
        target: str,
        *,
        accept: str = "application/json",
        idle_timeout: float | None = None,
        absorb: Absorb | None = None,
    ) -> AbstractAsyncContextManager[Reader]:
        slot = WatchSlot(self._pool.budget)
        return self._remote.stream(
            target, accept=accept, idle_timeout=idle_timeout, patient=self._patient, slot=slot, absorb=absorb
        )


class _WatchTransport(_Transport):
    """A patient one whose calls are the list before a watch: it keeps the watch's slot until its stream is over."""

    def __init__(self, pool: RemotePool, place: KubeconfigRef, *, patient: bool) -> None:
        super().__init__(pool, place, patient=patient)
        self._slot = WatchSlot(pool.budget)

    @property
    def settings(self) -> ConnectionSettings:
        return self._pool.crowded_settings if self._pool.budget.crowded else self._pool.connection_settings

    async def close(self) -> None:
        self._slot.give()

    async def call(self, method: str, target: str, body: bytes | None = None, **options: Unpack[CallOptions]) -> Answer:
        try:
            return await self._remote.call(method, target, body, options, patient=True, slot=self._slot)
        except BaseException:
            self._slot.give()
            raise

    def stream(
        self,
        target: str,
        *,
        accept: str = "application/json",
        idle_timeout: float | None = None,
        absorb: Absorb | None = None,
    ) -> AbstractAsyncContextManager[Reader]:
        return self._remote.stream(
            target, accept=accept, idle_timeout=idle_timeout, patient=True, slot=self._slot, absorb=absorb
        )
