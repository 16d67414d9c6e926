"""HTTP sessions for calls to webhooks, of each logical cluster its own, so that no cluster's calls wait for another's.

A pool of connections, the cache of names and the number of calls at once belong to one cluster each. Names are looked
up in threads of their own, one of each cluster at a time: the system's resolver cannot be interrupted, and the
author of a name decides how long it takes.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from hortus.apiserver.authn.static_tokens import EVERY_CLUSTER
from hortus.apiserver.tenants import ROOT_CLUSTER
from hortus.kube.dialing import LOCAL_NETWORKS, METADATA_NETWORKS, Dialer, Network

_CALLS = 64
"""Calls of one cluster at once; further ones wait, within their time."""
_LOOKUPS = 32
"""Clusters that wait for a name at once."""
_IDLE_SECONDS = 15.0
"""Seconds for which an unused connection is kept (the default of aiohttp)."""
_NUMBERS = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV


def denied_networks(cluster: str, local: Collection[str]) -> Sequence[Network]:
    """The networks that a cluster's administrators may not make this server call; `local` clusters may call this
    machine."""
    if cluster == ROOT_CLUSTER:
        return ()
    return METADATA_NETWORKS if cluster in local or EVERY_CLUSTER in local else LOCAL_NETWORKS


class Sessions:
    """The webhooks of logical clusters in `local` may be on this machine."""

    def __init__(self, *, local: Collection[str]) -> None:
        self._sessions: dict[tuple[str, bool], aiohttp.ClientSession] = {}
        self._local = local
        self._threads = ThreadPoolExecutor(_LOOKUPS, thread_name_prefix="webhook-names")
        self._closing: set[asyncio.Task[None]] = set()

    def of(self, cluster: str, *, resolved: bool) -> aiohttp.ClientSession:
        """The session for URLs of a cluster's configurations, or for addresses that a resolver of services gave.

        The administrators of other logical clusters than root are not those of this machine, so their URLs may not lead
        to it, nor to metadata services. The address that is connected to is checked, whatever its name resolved to.
        """
        session = self._sessions.get((cluster, resolved))
        if session is None:
            dialer = Dialer(() if resolved else denied_networks(cluster, self._local))
            session = isolated_session(IsolatedNames(self._threads), dialer, limit=_CALLS)
            self._sessions[cluster, resolved] = session
        return session

    def forget(self, cluster: str) -> None:
        """End the calls of a cluster and close its connections."""
        for resolved in (False, True):
            session = self._sessions.pop((cluster, resolved), None)
            if session is not None:
                task = asyncio.get_running_loop().create_task(session.close())
                self._closing.add(task)
                task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        for cluster, _ in list(self._sessions):
            self.forget(cluster)
        await asyncio.gather(*self._closing)
        # A lookup that is under way is left to itself: it may take the resolver another minute.
        self._threads.shutdown(wait=False, cancel_futures=True)


class IsolatedNames(AbstractResolver):
    """The names that one cluster's webhooks or API servers have."""

    def __init__(self, threads: ThreadPoolExecutor) -> None:
        self._threads = threads
        self._turn = asyncio.Lock()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        await self._turn.acquire()
        ask = partial(socket.getaddrinfo, host, port, family, socket.SOCK_STREAM, 0, socket.AI_ADDRCONFIG)
        asked = asyncio.get_running_loop().run_in_executor(self._threads, ask)
        asked.add_done_callback(self._answered)
        # A lookup goes on when nobody waits for it any more, and the next one begins only when it has ended.
        return [
            ResolveResult(hostname=host, host=str(at[0]), port=int(at[1]), family=found, proto=proto, flags=_NUMBERS)
            for found, _, proto, _, at in await asyncio.shield(asked)
        ]

    def _answered(self, asked: asyncio.Future[Any]) -> None:
        self._turn.release()
        if not asked.cancelled():
            asked.exception()  # somebody has seen it

    async def close(self) -> None:
        """Has no effect: all servers share the threads."""


def isolated_session(
    names: IsolatedNames,
    dialer: Dialer,
    *,
    limit: int,
    idle: float = _IDLE_SECONDS,
    timeout: aiohttp.ClientTimeout | None = None,
) -> aiohttp.ClientSession:
    """A session that nothing of this machine's settings leads elsewhere, with `limit` connections."""
    connector = aiohttp.TCPConnector(limit=limit, keepalive_timeout=idle, resolver=names, socket_factory=dialer)
    # Packed answers are not unpacked: a megabyte may hold a gigabyte.
    return aiohttp.ClientSession(
        connector=connector,
        trust_env=False,
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        timeout=timeout,
    )
