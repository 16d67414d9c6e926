"""The network of an event loop: where the calls of every client that is used on the loop go.

A loop may carry a network of its own, as a loop of virtual time does. Then no client on it opens a socket, no matter
which code made the client: its calls go to servers within this process. The choice hangs on the loop and not on the
client, so that code which makes a client by itself cannot leave the network. On any other loop clients open sockets.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import aiohttp

    from hortus.kube.access import Access


class Network(Protocol):
    """Servers within this process, in place of those that an `Access` names."""

    def headers(self, access: Access) -> Mapping[str, str]:
        """The headers that stand for the credentials of `access`."""

    def connector(self) -> aiohttp.BaseConnector:
        """A connector for one session."""

    async def url(self, access: Access, target: str, *, stream: bool) -> str:
        """The URL of a call to the server of `access`. Raises KubeError where that server is not in the network."""


class NetworkedLoop(Protocol):
    """An event loop with a network of its own."""

    network: Network


def current_network() -> Network | None:
    """The network of the running loop; None where clients open sockets."""
    return getattr(asyncio.get_running_loop(), "network", None)
