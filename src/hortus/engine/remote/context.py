"""The seam between one remote cluster and the pool that all of them share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import Random
from typing import TYPE_CHECKING, Protocol

from hortus.engine.remote.budget import Budget
from hortus.engine.remote.credentials import KubeconfigRef, KubeconfigSource
from hortus.engine.remote.settings import RemoteSettings
from hortus.engine.remote.states import RemoteState
from hortus.kube import Access, ConnectionSettings, Dialing, RequestObserver, Transport
from hortus.kube.clock import Clock
from hortus.kube.dialing import Memory
from hortus.kube.tls import Contexts

if TYPE_CHECKING:
    from hortus.engine.remote.connection import Remote


class RemoteConnection(Transport, Protocol):
    """One connection to one cluster, as `hortus.kube.Connection` is."""

    def end_streams(self) -> None:
        """Cut every stream that is being read; calls go on."""

    def close_idle(self) -> int:
        """Close the sockets that nobody uses; returns how many."""


class Connect(Protocol):
    """Makes a connection that opens its sockets when it is first used."""

    def __call__(
        self,
        access: Access,
        *,
        settings: ConnectionSettings,
        clock: Clock,
        observer: RequestObserver | None,
        dialing: Dialing,
    ) -> RemoteConnection: ...


class PoolContext(Protocol):
    """The part of the pool that one cluster uses."""

    @property
    def observer(self) -> RequestObserver | None: ...

    settings: RemoteSettings
    clock: Clock
    random: Random
    budget: Budget
    contexts: Contexts
    memory: Memory
    credentials: KubeconfigSource
    connect: Connect

    def changed(self, place: KubeconfigRef, before: RemoteState, after: RemoteState) -> None:
        """The state of the cluster at `place` is another one, or its connection with the same state."""

    def recreated(self, place: KubeconfigRef) -> None:
        """Another cluster answers at `place`."""

    def probe_in(self, place: KubeconfigRef, seconds: float) -> None:
        """Probe the cluster at `place` within `seconds`."""

    def rotated(self) -> None:
        """A credential was replaced while connected."""

    def spawn(self, step: Callable[[], Awaitable[object]], name: str) -> None:
        """Run the coroutine that `step` makes, in the background."""

    def used(self, remote: Remote) -> None:
        """The last call or stream of `remote` has ended."""
