"""One remote cluster as those who call it and watch it see it: waiting for its turn, sent, judged by its answer.

How the connection is made and renewed is `rotation`'s, what is known of the cluster is `health`'s, how many sockets and
watches it may have is `budget`'s.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from hortus.engine.remote.activelink import ActiveLink
from hortus.engine.remote.budget import Account, SocketUse, WatchSlot
from hortus.engine.remote.context import PoolContext
from hortus.engine.remote.credentials import KubeconfigRef
from hortus.engine.remote.identity import MemberIdentity
from hortus.engine.remote.links import Line, Link
from hortus.engine.remote.pulse import Pulse
from hortus.engine.remote.states import RemoteState, RemoteUnavailable
from hortus.kube import Access, Answer
from hortus.kube.errors import Expired, KubeError, RequestTimedOut, ResponseTooLarge, Unauthorized
from hortus.kube.ratelimit import RateLimiter
from hortus.kube.transport import Absorb, CallOptions, Reader

_PROXIED: Final = re.compile(r"/api/v1/(namespaces/[^/?]+/)?(pods|services|nodes)/[^/?]+/proxy([/?]|$)")
"""Targets that the API server passes on. A workload decides what they answer and when: neither is a sign of the API
server's health or of the credential's."""


class Remote:
    """One remote cluster, known by the place of its credential. Made by the pool; callers use a client over it."""

    def __init__(self, place: KubeconfigRef, pool: PoolContext) -> None:
        self.place = place
        self._pool = pool
        self.account = Account(pool.budget, lambda: self._active.close_idle())
        self._turns = asyncio.Semaphore(pool.settings.calls)
        self._limiter = RateLimiter(pool.settings.qps, pool.settings.burst, clock=pool.clock)
        self._active = ActiveLink(place, pool, account=self.account)
        self._pulse = Pulse(place, pool, self._interrupt)
        self.health = self._active.health
        self.holders = 0
        """The number of holders that want it connected and watched, also while nothing is under way."""
        self.asked = pool.clock.monotonic()
        """When somebody last wanted something of it."""

    @property
    def state(self) -> RemoteState:
        return self.health.state

    @property
    def identity(self) -> MemberIdentity:
        """The cluster that answered last."""
        return self._active.identity

    @property
    def link(self) -> Link | None:
        """The connection of the moment."""
        return self._active.link

    @property
    def host(self) -> str:
        return self.link.connection.host if self.link is not None else str(self.place)

    @property
    def access(self) -> Access | None:
        return self.link.connection.access if self.link is not None else None

    @property
    def connected(self) -> bool:
        return self.link is not None

    @property
    def wanted(self) -> bool:
        """True when somebody holds it, uses it or waits for it."""
        health = self.health
        return bool(self.holders or self.account.uses or health.waiters or health.watches_waiting)

    def unavailable(self) -> RemoteUnavailable:
        """The error of a call that is refused."""
        return self.health.unavailable()

    async def probe(self) -> None:
        """See whether the cluster answers, with a fresh credential when there may be one. Never raises KubeError."""
        await self._active.probe()

    def credential_changed(self) -> None:
        """The Secret has changed: try what it holds now, at once when somebody needs it."""
        self._active.credential_changed()

    async def close(self) -> None:
        """Drop everything; calls and streams fail, and so does who waits for the breaker."""
        await self._active.close()

    # Calls and streams.

    async def call(
        self,
        method: str,
        target: str,
        body: bytes | None,
        options: CallOptions,
        *,
        patient: bool,
        slot: WatchSlot | None = None,
    ) -> Answer:
        """One call. With a `slot` it is the list of a watch, and waits for that slot first."""
        renewed, proxied = False, _PROXIED.match(target) is not None
        while True:
            self.health.check_pause(f"{self.host}: {method} {target}")
            link, use = await self._enter_call(patient=patient, slot=slot)
            link.calls += 1
            try:
                answer = await link.connection.call(method, target, body, **options)
            except KubeError as error:
                if proxied:
                    raise
                if renewed or not isinstance(error, Unauthorized) or not await self._active.renewed(link):
                    self._failed(error, link)
                    raise
                renewed = True
                continue
            finally:
                link.calls -= 1
                self._left(use)
                self._turns.release()
            if proxied:
                return answer
            if answer.body[:1] == b"<":
                self._failed(garbage := link.not_json(method, target), link)
                raise garbage
            if link is self._active.link:
                self.health.succeeded()
            return answer

    @asynccontextmanager
    async def stream(
        self,
        target: str,
        *,
        accept: str,
        idle_timeout: float | None,
        patient: bool,
        slot: WatchSlot,
        absorb: Absorb | None = None,
    ) -> AsyncIterator[Reader]:
        """One stream; gives the slot back when it is over."""
        await self._limiter.acquire()
        link, use = await self._enter(patient=patient, slot=slot)
        line, interruptions = Line(self._pool.memory), link.interruptions

        async def piece() -> bytes:
            try:
                found = await read()
            except KubeError as error:
                if link.superseded == "rotated" or link.interruptions > interruptions:
                    return b""
                if link.superseded == "recreated":
                    raise Expired(f"{self.place}: another cluster answers there now") from None
                self._broke(error, link)
                raise
            if found:
                self.health.heard = self._pool.clock.monotonic()
                self._pulse.heard(beat)
                if not line.grows(found):
                    raise ResponseTooLarge(
                        self.host, "there is no room for a long event: those of all clusters exceed the memory", ""
                    )
            elif link.superseded == "recreated":
                raise Expired(f"{self.place}: another cluster answers there now")
            return found

        def heard(line: bytes) -> bool:
            if absorb is None or link.superseded or not absorb(line):
                return False
            self.health.heard = self._pool.clock.monotonic()
            self._pulse.heard(beat)
            return True

        began = False
        beat = self._pulse.join(target, idle_timeout, absorb)
        try:
            async with link.connection.stream(
                beat.target, accept=accept, idle_timeout=beat.idle_timeout, absorb=heard if absorb is not None else None
            ) as read:
                began = True
                self._pulse.begun(beat)
                if link is self._active.link:
                    self.health.succeeded()
                else:
                    link.connection.end_streams()
                yield piece
        except KubeError as error:
            # An error that the reader of the stream raises about its content is not the connection's fault.
            refused = isinstance(error, Unauthorized) and not began
            if not began and not (refused and await self._active.renewed(link)):
                self._failed(error, link)
            raise
        finally:
            self._pulse.leave(beat)
            line.end()
            slot.give()
            self._left(use)

    async def _enter_call(self, *, patient: bool, slot: WatchSlot | None) -> tuple[Link, SocketUse]:
        """`_enter` at the turn of one more call; the caller gives the turn back.

        The turn comes before the socket: a call that waits for the rate or for the calls before it holds nothing of the
        budget, which all clusters share. Who waits for the cluster or for a slot holds no turn.
        """
        while True:
            link = await self._ready(patient=patient, slot=slot)
            if slot is not None and not slot.taken:
                await self._take(slot)
            await self._turns.acquire()
            try:
                await self._limiter.acquire()
                if link is self._active.link and not self.health.closed_off:
                    use = await self.account.enter(patient=patient)
                    if link is self._active.link:
                        return link, use
                    self._left(use)
            except BaseException:
                self._turns.release()
                if slot is not None:
                    slot.give()
                raise
            self._turns.release()

    async def _enter(self, *, patient: bool, slot: WatchSlot | None) -> tuple[Link, SocketUse]:
        """The connection of the moment, with leave to use it; the caller owes a `_left`."""
        try:
            while True:
                link = await self._ready(patient=patient, slot=slot)
                if slot is not None and not slot.taken:
                    await self._take(slot)
                use = await self.account.enter(patient=patient)
                if link is self._active.link:
                    return link, use
                self._left(use)  # it was closed or replaced while this one waited
        except BaseException:
            if slot is not None:
                slot.give()
            raise

    async def _take(self, slot: WatchSlot) -> None:
        if slot.free:
            await slot.take()
            return
        self.health.watch_waits()
        try:
            await slot.take()
        finally:
            self.health.watch_waits_no_more()

    def _left(self, use: SocketUse) -> None:
        use.end()
        if not self.account.uses:
            self._pool.used(self)

    async def _ready(self, *, patient: bool, slot: WatchSlot | None) -> Link:
        """The connection of the moment, made when there is none. Raises RemoteUnavailable unless `patient`."""
        self.asked = self._pool.clock.monotonic()
        while True:
            if self.health.closed_off:
                if not patient:
                    raise self.health.unavailable()
                if slot is not None:
                    slot.give()  # others can use it meanwhile
                await self.health.waiters.wait()
                continue
            if self._active.link is not None:
                return self._active.link
            if not patient:
                await self._active.connect()
                continue
            turn = await self._pool.budget.patience()
            try:
                await self._active.connect()
            finally:
                turn.over()

    def _interrupt(self) -> None:
        if self.link is not None:
            self.link.interrupt()

    def _failed(self, error: KubeError, link: Link) -> None:
        """Something went wrong with a call over `link`; of a former one it says nothing about the present."""
        if link is self._active.link:
            self.health.failed(error)

    def _broke(self, error: KubeError, link: Link) -> None:
        """A stream ended in the middle. One that was silent may have had nothing to say: a probe finds out."""
        if isinstance(error, RequestTimedOut):
            link.interrupt()
            if link is self._active.link:
                self._pool.probe_in(self.place, 0.0)
        else:
            self._failed(error, link)
