"""The health of one remote cluster: its state, its breaker, when it is asked again, and who waits for that.

Each error is blamed on the server that made it. What the cluster answers, or does not, goes to the breaker. A Secret
that the management cluster could not hand out is no fault of the cluster: it goes on with the credential that it has,
or, without one, is asked for again after a while of its own.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import structlog

from hortus.engine.backoff import Backoff
from hortus.engine.remote.breaker import Breaker, Waiters
from hortus.engine.remote.context import PoolContext
from hortus.engine.remote.credentials import CredentialMissing, KubeconfigRef
from hortus.engine.remote.states import (
    CONNECTED,
    IDLE,
    WAITING,
    Phase,
    RemoteState,
    RemoteUnavailable,
    state_for,
    unread,
)
from hortus.kube.errors import (
    ApiError,
    ConnectionFailed,
    KubeError,
    ResponseTooLarge,
    TooManyRequests,
    TransportError,
    Unauthorized,
)

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

READ_AGAIN = Backoff(first=1.0, cap=30.0, jitter=0.5)
"""Between attempts to read a Secret; shorter than a breaker's, since one management cluster is away for all at once."""


class Health:
    """The standing of one cluster. Its connection says `connected`, and makes the probes that are asked for."""

    def __init__(
        self,
        place: KubeconfigRef,
        pool: PoolContext,
        *,
        connected: Callable[[], bool],
        changed: Callable[[RemoteState], None],
        probe_in: Callable[[float], None],
    ) -> None:
        """`changed` is called with the state before; `probe_in` asks for a probe within so many seconds."""
        self._place = place
        self._pool = pool
        self._connected = connected
        self._changed = changed
        self._probe_in = probe_in
        self._breaker = Breaker(pool.settings.breaker, threshold=pool.settings.failures, random=pool.random)
        self.waiters = Waiters()
        """Callers that wait until it may be called again."""
        self._paused_until = 0.0
        self._probe_at = 0.0
        self._read_at = 0.0
        self._unread = 0
        self.state = IDLE
        self.heard = pool.clock.monotonic()
        """Time of its last answer."""
        self.watches_waiting = 0
        """Watches of it that wait for a slot."""
        self.reread = False
        """True when the Secret holds another credential, as far as is known, than the one in use."""

    @property
    def closed_off(self) -> bool:
        """True when calls are refused now, until a probe is through."""
        return self._breaker.open or (not self._connected() and self._pool.clock.monotonic() < self._read_at)

    @property
    def broken(self) -> bool:
        """True when the breaker is open."""
        return self._breaker.open

    def unavailable(self) -> RemoteUnavailable:
        """The error of a call that is refused."""
        left = self._probe_at - self._pool.clock.monotonic()
        return RemoteUnavailable(self._place, self.state, max(left, 0.0) + 1.0 if self._probe_at else None)

    def check_pause(self, request: str) -> None:
        """Raise TooManyRequests while the cluster wants to be left alone."""
        left = self._paused_until - self._pool.clock.monotonic()
        if left > 0:
            raise TooManyRequests(f"{request}: the cluster asked for a pause", retry_after=left)

    # Consequences of an answer, and of none.

    def succeeded(self) -> None:
        self.heard = self._pool.clock.monotonic()
        if self._breaker.succeeded():
            _log.info("a remote cluster answers again", place=str(self._place))
        # A connection that is well and has a newer credential to try says so until that has worked.
        if not (self.reread and self._connected() and self.state.phase is Phase.READY):
            self.rest()
        self.waiters.go_on()

    def failed(self, error: KubeError) -> None:
        """Count what speaks against the cluster. An answer that refuses one request does not."""
        if isinstance(error, TooManyRequests):
            wish = error.retry_after or 1.0
            self._paused_until = self._pool.clock.monotonic() + min(wish, self._pool.settings.longest_pause)
        if isinstance(error, Unauthorized) or (
            isinstance(error, TransportError) and not isinstance(error, (RemoteUnavailable, ResponseTooLarge))
        ):
            self.open_breaker(error, at_once=not isinstance(error, ConnectionFailed) or error.permanent)
        elif isinstance(error, ApiError) and error.http_code >= 500:
            self.open_breaker(error, at_once=False)
        elif isinstance(error, ApiError):
            self.succeeded()

    def open_breaker(self, error: Exception, *, at_once: bool = True) -> None:
        """Leave the cluster alone, once enough speaks against it."""
        delay = self._breaker.failed(at_once=at_once)
        if delay is None:
            return
        if self.become(state_for(error, self._pool.clock.now())):
            _log.warning("a remote cluster is left alone", place=str(self._place), error=str(error), again_in=delay)
        if isinstance(error, CredentialMissing):
            delay = self._pool.settings.breaker.cap  # the watch of Secrets reports it earlier
        self._ask_again(delay)

    def was_read(self) -> None:
        """The Secret has been read."""
        self._unread, self._read_at = 0, 0.0

    def was_not_read(self, error: KubeError) -> None:
        """The management cluster did not hand the Secret out: it is read again after a while."""
        self.reread = True
        delay = READ_AGAIN.delay(self._unread, random=self._pool.random)
        self._unread += 1
        self._read_at = self._pool.clock.monotonic() + delay
        if not self._breaker.open and self.become(unread(error, self._pool.clock.now(), connected=self._connected())):
            _log.warning("a Secret could not be read", place=str(self._place), error=str(error), again_in=delay)
        self._ask_again(delay)

    def _ask_again(self, delay: float) -> None:
        self._probe_at = self._pool.clock.monotonic() + delay
        self._probe_in(delay)

    # The state.

    def rest(self) -> None:
        """Be in the state that it has when nothing is wrong with it."""
        if self.watches_waiting:
            self.become(WAITING)
        elif self._connected():
            self.become(CONNECTED)
        else:
            self.become(IDLE)

    def become(self, state: RemoteState) -> bool:
        """Take another state; returns whether it is another."""
        before = self.state
        if (before.phase, before.reason, before.message) == (state.phase, state.reason, state.message):
            return False
        self.state = state if state.since else msgspec.structs.replace(state, since=self._pool.clock.now())
        self._changed(before)
        return True

    def watch_waits(self) -> None:
        """One more watch of this cluster waits for a slot."""
        self.watches_waiting += 1
        if not self._breaker.open:
            self.rest()

    def watch_waits_no_more(self) -> None:
        self.watches_waiting -= 1
        if self.state.phase is Phase.WAITING:
            self.rest()
