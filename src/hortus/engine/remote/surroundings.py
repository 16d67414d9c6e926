"""The seam between one remote cluster and the pool that all of them share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import Random
from typing import TYPE_CHECKING, Protocol

from hortus.engine.remote.budget import Budget
from hortus.engine.remote.credentials import Credentials
from hortus.engine.remote.settings import RemoteSettings
from hortus.engine.remote.states import RemoteState
from hortus.kube import RequestObserver
from hortus.kube.clock import Clock
from hortus.kube.dialing import Memory
from hortus.kube.tls import Contexts

if TYPE_CHECKING:
    from hortus.engine.remote.connection import Remote


class Surroundings(Protocol):
    """What one cluster needs of the pool."""

    @property
    def observer(self) -> RequestObserver | None: ...

    settings: RemoteSettings
    clock: Clock
    random: Random
    budget: Budget
    contexts: Contexts
    memory: Memory
    credentials: Credentials

    def changed(self, remote: Remote, before: RemoteState) -> None:
        """The state of `remote` is another one."""

    def recreated(self, remote: Remote) -> None:
        """Another cluster answers where `remote` was."""

    def probe_in(self, remote: Remote, seconds: float) -> None:
        """Call `remote.probe()` after `seconds`."""

    def rotated(self) -> None:
        """A credential was replaced while connected."""

    def spawn(self, step: Callable[[], Awaitable[object]], name: str) -> None:
        """Run the coroutine that `step` makes, in the background."""

    def used(self, remote: Remote) -> None:
        """The last call or stream of `remote` has ended."""
