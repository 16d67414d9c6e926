"""The connections of one process to all remote clusters.

`at(place)` is free: nothing is read, connected or kept before the first call. One timer (`hortus.engine.delays`) serves
all that is due later: probes of open breakers, probes of watched clusters that fell silent, closing what is idle. Per
cluster there is one small object and no task.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from random import Random
from typing import Any, Self, cast

import structlog
from prometheus_client import CollectorRegistry

from hortus.engine.backoff import spread
from hortus.engine.delays import Delays
from hortus.engine.remote.budget import Budget
from hortus.engine.remote.connection import Remote
from hortus.engine.remote.credentials import Credentials, Place
from hortus.engine.remote.metrics import Anonymous, RemoteMetrics
from hortus.engine.remote.settings import RemoteSettings
from hortus.engine.remote.states import IDLE, Phase, RemoteState
from hortus.engine.scope import current_scope
from hortus.engine.within import within
from hortus.kube import Access, Answer, Client, ConnectionSettings, RequestObserver
from hortus.kube.clock import Clock, SystemClock
from hortus.kube.connection import Reader
from hortus.kube.dialing import Memory
from hortus.kube.errors import RequestTimedOut
from hortus.kube.tls import Contexts

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

Listener = Callable[[Place, RemoteState, RemoteState], None]
"""Hears of a state: place, before, after."""


class RemotePool:
    """Hands out clients of remote clusters. `async with` or `close()`."""

    def __init__(
        self,
        credentials: Credentials,
        *,
        settings: RemoteSettings | None = None,
        clock: Clock | None = None,
        registry: CollectorRegistry | None = None,
        observer: RequestObserver | None = None,
        random: Random | None = None,
    ) -> None:
        """`observer` hears of calls to all clusters under one host, "remote": a series for each would be too many."""
        self.credentials = credentials
        self.settings = settings or RemoteSettings()
        self.clock: Clock = clock or SystemClock()
        self.random = random or Random()  # noqa: S311 - jitter, not secrecy
        self.contexts = Contexts()
        self.memory = Memory(self.settings.memory)
        self.observer = Anonymous(observer) if observer is not None else None
        chosen = self.settings
        self.budget = Budget(
            sockets=chosen.sockets, watch_share=chosen.watch_share, handshakes=chosen.handshakes, clock=self.clock
        )
        self.connection_settings: ConnectionSettings = chosen.connection()
        self._remotes: dict[Place, Remote] = {}
        self._by_secret: dict[tuple[str, str], set[Place]] = {}
        self._due: Delays[Place] = Delays(self.clock, self._on_due)
        self._probes = asyncio.Semaphore(chosen.probes)
        self._tasks: set[asyncio.Task[object]] = set()
        self._listeners: list[Listener] = []
        self._recreated: list[Callable[[Place], None]] = []
        self._unsubscribe = credentials.subscribe(self._secret_changed)
        self._closed = False
        self.metrics = RemoteMetrics(self.budget, registry)

    # For callers.

    def at(self, place: Place) -> Client:
        """A client of the cluster whose kubeconfig lies at `place`.

        Its calls end within `settings.deadline` and raise RemoteUnavailable at once while the breaker is open.
        """
        return Client.over(_Transport(self, place, patient=False))

    def patient(self, place: Place) -> Client:
        """The same for what runs in the background: calls wait until the cluster can be reached, however long."""
        return Client.over(_Transport(self, place, patient=True))

    def state(self, place: Place) -> RemoteState:
        """What is known of that cluster."""
        remote = self._remotes.get(place)
        return remote.state if remote is not None else IDLE

    def identity(self, place: Place) -> str:
        """The uid of the cluster's namespace kube-system, when it is known."""
        remote = self._remotes.get(place)
        return remote.identity if remote is not None else ""

    @asynccontextmanager
    async def held(self, place: Place) -> AsyncIterator[Client]:
        """Keep the cluster connected, and probed when it falls silent; gives its patient client."""
        self.hold(place)
        try:
            yield self.patient(place)
        finally:
            self.release(place)

    def hold(self, place: Place) -> None:
        """Say that somebody wants the cluster watched, until `release`."""
        self.remote(place).holders += 1
        self._due.add(place, spread(self.settings.probe_every, 0.2, random=self.random), 0)

    def release(self, place: Place) -> None:
        remote = self._remotes.get(place)
        if remote is not None:
            remote.holders -= 1
            self.used(remote)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Have `listener` called for each change of a state; returns the way to stop it. It must be quick."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def on_recreated(self, listener: Callable[[Place], None]) -> Callable[[], None]:
        """Have `listener` called when another cluster answers at a place; returns the way to stop it."""
        self._recreated.append(listener)
        return lambda: self._recreated.remove(listener)

    def places(self) -> Iterable[Place]:
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

    def remote(self, place: Place) -> Remote:
        found = self._remotes.get(place)
        if found is None:
            found = self._remotes[place] = Remote(place, self)
            self._by_secret.setdefault((place.namespace, place.name), set()).add(place)
            self.metrics.phases[Phase.IDLE] += 1
        return found

    def changed(self, remote: Remote, before: RemoteState) -> None:
        self.metrics.phases[before.phase] -= 1
        self.metrics.phases[remote.state.phase] += 1
        if before.usable and not remote.state.usable:
            self.metrics.opened += 1
        for listener in tuple(self._listeners):
            try:
                listener(remote.place, before, remote.state)
            except Exception:
                _log.exception("a listener failed on a remote cluster's state", place=str(remote.place))

    def recreated(self, remote: Remote) -> None:
        for listener in tuple(self._recreated):
            listener(remote.place)

    def rotated(self) -> None:
        self.metrics.rotations += 1

    def probe_in(self, remote: Remote, seconds: float) -> None:
        if self._closed:
            return
        self._due.cancel(remote.place)
        self._due.add(remote.place, seconds, 1)

    def used(self, remote: Remote) -> None:
        if not remote.holders and not self._closed:
            self._due.add(remote.place, self.settings.idle, 0)

    def spawn(self, step: Callable[[], Awaitable[object]], name: str) -> None:
        task: asyncio.Task[object] = asyncio.get_running_loop().create_task(
            cast(Coroutine[Any, Any, object], step()), name=name
        )
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # What is due.

    def _on_due(self, place: Place, wants_probe: int) -> None:
        remote = self._remotes.get(place)
        if remote is None:
            return
        now, idle = self.clock.monotonic(), self.settings.idle
        quiet, unasked = now - remote.heard, now - max(remote.heard, remote.asked)
        if unasked >= idle and not (remote.holders or remote.waited_for or remote.account.uses):
            self._forget(remote)
        elif wants_probe or (remote.holders and remote.connected and quiet >= self.settings.probe_every / 2):
            self.spawn(lambda: self._probe(remote), f"probe {place}")
        else:
            self._look_again(remote)

    async def _probe(self, remote: Remote) -> None:
        async with self._probes:
            await remote.probe()
        self._look_again(remote)

    def _look_again(self, remote: Remote) -> None:
        if self._closed or remote.place in self._due:
            return
        period = self.settings.probe_every if remote.holders else self.settings.idle
        self._due.add(remote.place, spread(period, 0.2, random=self.random), 0)

    def _forget(self, remote: Remote) -> None:
        """Nobody has used it for long: close it and know nothing of it any more."""
        place = remote.place
        del self._remotes[place]
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
    """What a `Client` stands on: one cluster, with a deadline for each call or, when patient, without."""

    def __init__(self, pool: RemotePool, place: Place, *, patient: bool) -> None:
        self._pool = pool
        self._place = place
        self._patient = patient
        self.settings = pool.connection_settings
        self.clock = pool.clock

    @property
    def host(self) -> str:
        return self._pool.remote(self._place).host

    @property
    def access(self) -> Access:
        found = self._pool.remote(self._place).access
        if found is None:
            raise self._pool.remote(self._place).unavailable()
        return found

    def become(self, access: Access) -> None:
        raise TypeError(f"{self._place} decides how this cluster is reached: change the Secret")

    async def close(self) -> None:
        """Nothing: the pool closes what is idle."""

    async def call(
        self,
        method: str,
        target: str,
        body: bytes | None = None,
        *,
        content_type: str = "application/json",
        accept: str = "application/json",
        repeatable: bool | None = None,
        timeout: float | None = None,
    ) -> Answer:
        remote, pool = self._pool.remote(self._place), self._pool
        step = remote.call(
            method,
            target,
            body,
            content_type=content_type,
            accept=accept,
            repeatable=repeatable,
            timeout=timeout,
            patient=self._patient,
        )
        if self._patient:
            return await step
        scope = current_scope()
        aside = scope.step_aside if scope is not None else None
        timer = self.clock.call_later(pool.settings.patience, aside) if aside is not None else None
        deadline = max(pool.settings.deadline, timeout or 0.0)
        try:
            return await within(self.clock, deadline, step)
        except TimeoutError:
            raise RequestTimedOut(remote.host, f"{method} was not done within {deadline:g} s") from None
        finally:
            if timer is not None:
                timer.cancel()

    def stream(
        self, target: str, *, accept: str = "application/json", idle_timeout: float | None = None
    ) -> AbstractAsyncContextManager[Reader]:
        remote = self._pool.remote(self._place)
        return remote.stream(target, accept=accept, idle_timeout=idle_timeout, patient=self._patient)
