"""The interface between verbs and connections: `Client` and `Watch` call a `Transport`, which moves bytes.

`Connection` is the implementation; a pool of connections and tests have others.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol, TypedDict, Unpack

import msgspec
from multidict import CIMultiDictProxy

from hortus.kube.access import Access
from hortus.kube.clock import Clock
from hortus.kube.dialing import Network
from hortus.kube.retries import Retries

JSON = "application/json"


class ConnectionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one connection; sizes in bytes, times in seconds."""

    connections: int = 64
    """Calls in flight at once, without watches; more calls wait."""
    qps: float = 0.0
    """Calls a second on average; 0 leaves it to the server's own priority and fairness (429 and Retry-After)."""
    burst: int = 100
    timeout: float = 30.0
    """For one attempt, from the first byte sent to the last byte received."""
    connect_timeout: float = 10.0
    max_response: int = 256 << 20
    max_list: int = 1 << 40
    """For a whole list, all of its pages together."""
    max_event: int = 16 << 20
    """For one line of a watch."""
    bookmark_period: float = 60.0
    """Seconds between two bookmarks of a watch, as kube-apiserver sends them; a watch that is silent for two periods is
    ended."""
    watch_period: float = 300.0
    """The shortest time of one stream of a watch, up to twice this; as in client-go's reflector, so that a fleet's
    watches spread."""
    compression: bool = False
    """Ask for gzip: saves network on large lists, costs CPU."""
    retries: Retries = Retries()
    user_agent: str = "hortus"
    deny: tuple[Network, ...] = ()
    """Networks that are never connected to, whatever a name resolves to: `LOCAL_NETWORKS` for untrusted addresses."""


class Answer(NamedTuple):
    """One successful answer."""

    status: int
    headers: CIMultiDictProxy[str]
    body: bytes


Reader = Callable[[], Awaitable[bytes]]
"""Returns the next piece of a body at each call, b"" at its end."""

Absorb = Callable[[bytes], bool]
"""Takes a whole line that arrived while the reader waits, and returns True when the reader need not see it. An empty
line says that the server is known to live by another stream. It must be quick and must not raise."""


class CallOptions(TypedDict, total=False):
    """The options of a call; `Connection.call` describes them."""

    content_type: str
    accept: str
    repeatable: bool | None
    timeout: float | None
    most: int


class Transport(Protocol):
    """The part of a connection that `Client` and `Watch` use; `Connection` describes each method."""

    @property
    def access(self) -> Access: ...

    @property
    def host(self) -> str: ...

    @property
    def settings(self) -> ConnectionSettings: ...

    @property
    def clock(self) -> Clock: ...

    async def close(self) -> None: ...

    def become(self, access: Access) -> None: ...

    async def call(
        self, method: str, target: str, body: bytes | None = None, **options: Unpack[CallOptions]
    ) -> Answer: ...

    def stream(
        self, target: str, *, accept: str = JSON, idle_timeout: float | None = None, absorb: Absorb | None = None
    ) -> AbstractAsyncContextManager[Reader]: ...
