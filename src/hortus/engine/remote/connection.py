"""One remote cluster: its credential of the moment, its breaker, its share of the budget, and what is known of it.

    closed ── first call ──▶ read the Secret ──▶ connect ──▶ probe ──▶ ready
       ▲                          │ missing, malformed      │ refused, silent, not an API server
       │ idle                     ▼                         ▼
       └──────────────────────── open breaker: calls fail at once; a probe now and then, and when the Secret changes

The probe asks for the namespace kube-system: that is proof of the credential, and its uid is the cluster's identity, by
which one that was made anew under the same name is known. When the Secret changes, the new credential is tried before
the old one goes; then streams end (whoever watches goes on where it stopped, over the new connection) and calls under
way finish. A cluster of another identity ends its streams with `Expired`: what was seen of the old one says nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import structlog

from hortus.engine.remote.breaker import Breaker, Waiters
from hortus.engine.remote.budget import Account
from hortus.engine.remote.credentials import CredentialMissing, Place
from hortus.engine.remote.links import Line, Link, digest_of
from hortus.engine.remote.states import CONNECTED, IDLE, Phase, RemoteState, RemoteUnavailable, state_for
from hortus.engine.remote.surroundings import Surroundings
from hortus.kube import Access, Answer, Connection, Dialing, RateLimiter
from hortus.kube.connection import Reader
from hortus.kube.errors import (
    ApiError,
    ConnectionFailed,
    Expired,
    KubeError,
    ResponseTooLarge,
    TooManyRequests,
    TransportError,
    Unauthorized,
)
from hortus.kube.kubeconfig import from_untrusted

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class _CannotConnect(Exception):
    """There is no usable credential, or its cluster does not serve us; `cause` says which."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


class Remote:
    """One remote cluster, known by the place of its credential. Made by the pool; callers use a client over it."""

    def __init__(self, place: Place, pool: Surroundings) -> None:
        self.place = place
        self._pool = pool
        settings = pool.settings
        self.account = Account(pool.budget, self.close_idle)
        self._breaker = Breaker(settings.breaker, threshold=settings.failures, random=pool.random)
        self._limiter = RateLimiter(settings.qps, settings.burst, clock=pool.clock)
        self._link: Link | None = None
        self._old: list[Link] = []
        self._lock = asyncio.Lock()
        self._waiters = Waiters()
        self._paused_until = 0.0
        self._probe_at = 0.0
        self._reread = False
        self.state = IDLE
        self.identity = ""
        """The uid of the cluster's namespace kube-system; empty when the credential may not read it."""
        self.holders = 0
        """Who wants it connected and watched, whether or not something is under way now."""
        self.heard = pool.clock.monotonic()
        """When it last said something."""
        self.asked = self.heard
        """When somebody last wanted something of it."""

    @property
    def host(self) -> str:
        return self._link.connection.host if self._link is not None else str(self.place)

    @property
    def access(self) -> Access | None:
        return self._link.connection.access if self._link is not None else None

    @property
    def connected(self) -> bool:
        return self._link is not None

    # Calls and streams.

    async def call(
        self,
        method: str,
        target: str,
        body: bytes | None,
        *,
        content_type: str,
        accept: str,
        repeatable: bool | None,
        timeout: float | None,
        patient: bool,
    ) -> Answer:
        renewed = False
        while True:
            self._check_pause(method, target)
            link = await self._enter(patient=patient)
            link.calls += 1
            try:
                answer = await link.connection.call(
                    method,
                    target,
                    body,
                    content_type=content_type,
                    accept=accept,
                    repeatable=repeatable,
                    timeout=timeout,
                )
            except Unauthorized as error:
                if renewed or not await self._renewed(link):
                    self._failed(error, link)
                    raise
                renewed = True
                continue
            except KubeError as error:
                self._failed(error, link)
                raise
            finally:
                link.calls -= 1
                self._left()
            if answer.body[:1] == b"<":
                self._failed(garbage := link.not_json(method, target), link)
                raise garbage
            if link is self._link:
                self._succeeded()
            return answer

    @asynccontextmanager
    async def stream(
        self, target: str, *, accept: str, idle_timeout: float | None, patient: bool
    ) -> AsyncIterator[Reader]:
        link = await self._enter(patient=patient, watch=True)
        line = Line(self._pool.memory)

        async def piece() -> bytes:
            try:
                found = await read()
            except KubeError as error:
                if link.superseded == "rotated":
                    return b""
                if link.superseded == "recreated":
                    raise Expired(f"{self.place}: another cluster answers there now") from None
                self._failed(error, link)
                raise
            if found:
                self.heard = self._pool.clock.monotonic()
                if not line.grows(found):
                    raise ResponseTooLarge(
                        self.host, "there is no room for a long event: those of all clusters exceed the memory", ""
                    )
            elif link.superseded == "recreated":
                raise Expired(f"{self.place}: another cluster answers there now")
            return found

        began = False
        try:
            async with link.connection.stream(target, accept=accept, idle_timeout=idle_timeout) as read:
                began = True
                if link is self._link:
                    self._succeeded()
                else:
                    link.connection.end_streams()
                yield piece
        except KubeError as error:
            # What the reader of the stream makes of its content is not the connection's fault.
            refused = isinstance(error, Unauthorized) and not began
            if not began and not (refused and await self._renewed(link)):
                self._failed(error, link)
            raise
        finally:
            line.end()
            self._left()

    async def _enter(self, *, patient: bool, watch: bool = False) -> Link:
        """The connection of the moment, with leave to use it; the caller owes a `_left`."""
        while True:
            link = await self._ready(patient=patient)
            await self.account.enter(watch=watch)
            if link is self._link:
                return link
            self._left()  # it was closed or replaced while this one waited

    def _left(self) -> None:
        self.account.leave()
        if not self.account.uses:
            self._pool.used(self)

    async def _ready(self, *, patient: bool) -> Link:
        """The connection of the moment, made when there is none. Raises RemoteUnavailable unless `patient`."""
        self.asked = self._pool.clock.monotonic()
        while True:
            if self._breaker.open:
                if not patient:
                    raise self.unavailable()
                await self._waiters.wait()
                continue
            if self._link is not None:
                return self._link
            async with self._lock:
                if self._link is None and not self._breaker.open:
                    await self._open()

    @property
    def waited_for(self) -> bool:
        """Whether somebody waits for the breaker to close."""
        return bool(self._waiters)

    def unavailable(self) -> RemoteUnavailable:
        """The error of a call while the breaker is open."""
        left = self._probe_at - self._pool.clock.monotonic()
        return RemoteUnavailable(self.place, self.state, max(left, 0.0) + 1.0 if self._probe_at else None)

    def _check_pause(self, method: str, target: str) -> None:
        left = self._paused_until - self._pool.clock.monotonic()
        if left > 0:
            raise TooManyRequests(f"{self.host}: {method} {target}: the cluster asked for a pause", retry_after=left)

    # Opening, probing, rotating.

    async def _open(self) -> None:
        """Read the credential, connect, probe. Opens the breaker when that fails."""
        self._become(RemoteState(Phase.CONNECTING, "Connecting", since=self._pool.clock.now()))
        try:
            self._link = await self._dial()
            self._succeeded()
        except _CannotConnect as error:
            self._open_breaker(error.cause)
        except BaseException:
            self._become(IDLE)
            raise

    async def _dial(self) -> Link:
        """A proven connection. Raises _CannotConnect; KubeError when the management cluster does not answer."""
        self._reread = False
        try:
            document = await self._pool.credentials.read(self.place)
            if self._link is not None and self._link.digest == digest_of(document):
                await self._prove(self._link)
                return self._link
            link = self._link_for(document)
        except (CredentialMissing, ValueError) as error:
            raise _CannotConnect(error) from error
        try:
            await self._prove(link)
        except KubeError as error:
            await link.connection.close()
            raise _CannotConnect(error) from error
        except BaseException:
            await link.connection.close()
            raise
        return link

    def _link_for(self, document: bytes) -> Link:
        pool = self._pool
        access = from_untrusted(document, trust=pool.settings.trust, origin=str(self.place)).access()
        connection = Connection(
            access,
            settings=pool.settings.connection(),
            clock=pool.clock,
            observer=pool.observer,
            limiter=self._limiter,
            dialing=Dialing(pool.contexts, self.account.make_socket, self.account.opened, pool.memory),
        )
        return Link(connection, digest_of(document))

    async def _prove(self, link: Link) -> None:
        """Ask the cluster who it is. A credential that may not read that is proven by the refusal."""
        await self.account.enter()
        try:
            identity = await link.identify()
        finally:
            self._left()
        if identity and self.identity and identity != self.identity:
            self.identity = identity
            self._recreated()
        self.identity = identity or self.identity

    def _recreated(self) -> None:
        _log.info("another cluster answers", place=str(self.place))
        self._supersede("recreated")
        self._pool.recreated(self)

    async def probe(self) -> None:
        """See whether the cluster answers, with a fresh credential when it is not connected. Never raises KubeError."""
        async with self._lock:
            try:
                if self._link is None or self._reread:
                    await self._replace()
                else:
                    await self._prove(self._link)
                    self._succeeded()
            except KubeError as error:
                if self._link is not None and not self._reread:
                    self._open_breaker(error)
                else:
                    self._reread = True
                    self._pool.probe_in(self, self._pool.settings.breaker.cap)

    async def _replace(self) -> None:
        """Connect anew with the credential as it is now, and only then let the old connection go."""
        try:
            link = await self._dial()
        except _CannotConnect as error:
            self._not_replaced(error.cause)
            return
        if self._link is not None and self._link is not link:
            self._supersede("rotated")
            self._pool.rotated()
        self._link = link
        self._succeeded()

    def _not_replaced(self, cause: Exception) -> None:
        if isinstance(cause, CredentialMissing):
            self._supersede("gone")
        if self._link is None or self._breaker.open:
            self._open_breaker(cause)
            return
        # The old credential still serves; the new one is tried again.
        self._reread = True
        found = state_for(cause, self._pool.clock.now())
        message = f"the new credential does not work, the old one still does: {found.message}"
        self._become(RemoteState(Phase.READY, found.reason, message, found.since))
        self._pool.probe_in(self, self._pool.settings.breaker.cap)

    async def _renewed(self, refused: Link) -> bool:
        """After a 401: whether the Secret holds another credential than the refused one, that works."""
        async with self._lock:
            if self._link is not refused:
                return self._link is not None
            with suppress(CredentialMissing):
                document = await self._pool.credentials.read(self.place)
                if digest_of(document) != refused.digest:
                    await self._replace()
                    return self._link is not refused and self._link is not None
        return False

    def credential_changed(self) -> None:
        """The Secret has changed: try what it holds now, at once when somebody needs it."""
        if self._link is not None or self._breaker.open or self._lock.locked():
            self._reread = True
            self._pool.probe_in(self, 0.0)

    def _supersede(self, why: str) -> None:
        """End the streams of the present connection; its calls may finish."""
        link, self._link = self._link, None
        if link is None:
            return
        link.superseded = why
        link.connection.end_streams()
        self._old.append(link)
        self._pool.spawn(lambda: self._drain(link), f"drain {self.place}")

    async def _drain(self, link: Link) -> None:
        clock, settings = self._pool.clock, self._pool.settings
        if link.calls:
            await clock.sleep(settings.timeout)
        await link.connection.close()
        self._old.remove(link)

    # What follows from an answer, and from none.

    def _succeeded(self) -> None:
        self.heard = self._pool.clock.monotonic()
        if self._breaker.succeeded():
            _log.info("a remote cluster answers again", place=str(self.place))
        if self._link is not None and (
            self.state.phase is not Phase.READY or (self.state.reason != CONNECTED and not self._reread)
        ):
            self._become(RemoteState(Phase.READY, CONNECTED, since=self._pool.clock.now()))
        self._waiters.go_on()

    def _failed(self, error: KubeError, link: Link) -> None:
        """Count what speaks against the cluster. An answer that refuses one request does not."""
        if link is not self._link:
            return
        if isinstance(error, TooManyRequests):
            wish = error.retry_after or 1.0
            self._paused_until = self._pool.clock.monotonic() + min(wish, self._pool.settings.longest_pause)
        if isinstance(error, Unauthorized) or (
            isinstance(error, TransportError) and not isinstance(error, (RemoteUnavailable, ResponseTooLarge))
        ):
            at_once = not isinstance(error, ConnectionFailed) or error.permanent
            self._open_breaker(error, at_once=at_once)
        elif isinstance(error, ApiError) and error.http_code >= 500:
            self._open_breaker(error, at_once=False)
        elif isinstance(error, ApiError):
            self._succeeded()

    def _open_breaker(self, error: Exception, *, at_once: bool = True) -> None:
        delay = self._breaker.failed(at_once=at_once)
        if delay is None:
            return
        clock = self._pool.clock
        state = state_for(error, clock.now())
        if (state.phase, state.reason, state.message) != (self.state.phase, self.state.reason, self.state.message):
            _log.warning("a remote cluster is left alone", place=str(self.place), error=str(error), again_in=delay)
            self._become(state)
        if isinstance(error, CredentialMissing):
            delay = self._pool.settings.breaker.cap  # the watch of Secrets tells earlier
        self._probe_at = clock.monotonic() + delay
        self._pool.probe_in(self, delay)

    def _become(self, state: RemoteState) -> None:
        before, self.state = self.state, state
        if (before.phase, before.reason, before.message) != (state.phase, state.reason, state.message):
            self._pool.changed(self, before)

    # Closing.

    def close_idle(self) -> None:
        """Give the sockets back when nothing is under way; the next call connects again."""
        if self._link is not None and not self.account.uses:
            link, self._link = self._link, None
            if not self._breaker.open:
                self._become(IDLE)
            self._pool.spawn(link.connection.close, f"close {self.place}")

    async def close(self) -> None:
        """Drop everything; calls and streams fail, and so does who waits for the breaker."""
        self._waiters.give_up(self.unavailable)
        links, self._link = [*self._old, *([self._link] if self._link is not None else [])], None
        for link in links:
            link.superseded = "gone"
            await link.connection.close()
