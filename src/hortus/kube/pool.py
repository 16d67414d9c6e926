"""The connection pool of one client, replaced when the client certificate changes.

Connections are made with one TLS context; another certificate needs another pool. The old pool finishes its calls and
is closed later. Headers that every call shares are set here, so that a call carries few of its own.
"""

from __future__ import annotations

import asyncio
import functools
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ClientRequest
from aiohttp.tracing import Trace
from multidict import CIMultiDict

from hortus.kube.access import Access
from hortus.kube.auth import CredentialSource
from hortus.kube.clock import Clock
from hortus.kube.dialing import Dialer, Dialing
from hortus.kube.errors import ConnectionFailed, TlsFailed
from hortus.kube.fencing import FencedRequest
from hortus.kube.network import Network, current_network
from hortus.kube.streams import StreamHandler
from hortus.kube.tls import Contexts

_KEEP_IDLE = 30.0
"""Seconds that an unused connection is kept; below a server's own limit, so that this side closes first."""
_ROUNDS = 10
"""Rounds of the event loop until it notices that sockets were shut down; asyncio needs four."""
_REMEMBER_NAMES = 30
"""Seconds for which a DNS answer is used."""


class _Connector(aiohttp.TCPConnector):
    """Reports the end of each attempt to connect."""

    def __init__(
        self, context: ssl.SSLContext, dialer: Dialer, keep_idle: float, opened: Callable[[], None] | None
    ) -> None:
        super().__init__(
            ssl=context,
            limit=0,
            keepalive_timeout=keep_idle,
            socket_factory=dialer,
            ttl_dns_cache=_REMEMBER_NAMES,
        )
        # aiohttp has no parameter for it.
        self._factory = functools.partial(StreamHandler, loop=self._loop)  # type: ignore[assignment]
        self._opened = opened

    def drop_idle(self) -> int:
        """Closes the idle connections and returns their number."""
        dropped = 0
        # aiohttp has no way to do this short of closing the connector.
        for kept in self._conns.values():
            while kept:
                kept.popleft()[0].abort()
                dropped += 1
        self._conns.clear()
        return dropped

    async def _create_connection(
        self, req: ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> ResponseHandler:
        try:
            return await super()._create_connection(req, traces, timeout)
        finally:
            if self._opened is not None:
                self._opened()


class SessionPool:
    """Holds the current `aiohttp.ClientSession`."""

    def __init__(
        self,
        access: Access,
        auth: CredentialSource,
        *,
        host: str,
        dialer: Dialer,
        dialing: Dialing,
        compression: bool,
        user_agent: str,
        linger: float,
        clock: Clock,
    ) -> None:
        self._access = access
        self._auth = auth
        self._host = host
        self._dialer = dialer
        self._opened = dialing.opened
        # Compared with None, because an empty one is false and still shared.
        self._contexts = dialing.contexts if dialing.contexts is not None else Contexts()
        self._compression = compression
        self._user_agent = user_agent
        self._headers = self._common_headers()
        self._linger = linger
        self._clock = clock
        self._session: aiohttp.ClientSession | None = None
        self._version = -1
        self._retired: dict[asyncio.Task[None], aiohttp.ClientSession] = {}
        self._closed = False
        self.authorization: str | None = None
        """The header that the session sends now."""

    def become(self, access: Access, auth: CredentialSource, *, host: str) -> None:
        """Switches to another user or server from the next call on; calls in flight keep the old one."""
        self._access, self._auth, self._host = access, auth, host
        self._headers = self._common_headers()
        self._version = -1

    def authorize(self, auth: CredentialSource) -> None:
        """Takes another source of the Authorization header. The session stays: a header needs no new connection."""
        self._auth = auth

    def session(self) -> aiohttp.ClientSession:
        """The session with the current credentials. Raises ConnectionFailed after `close()`, TlsFailed."""
        session = self._session
        if session is None or self._version != self._auth.version:
            session = self._open()
        if self.authorization != self._auth.authorization and current_network() is None:
            self._authorize(session)
        return session

    async def close(self) -> None:
        """Closes all connections, those of retired sessions too."""
        self._closed = True
        leaving = [self._session] if self._session is not None else []
        self._session = None
        for task, session in list(self._retired.items()):
            task.cancel()
            leaving.append(session)
        self._retired.clear()
        for session in leaving:
            await session.close()
        await self._cut()

    def close_idle(self) -> int:
        """Closes the idle connections and returns their number."""
        sessions = [*self._retired.values(), *([self._session] if self._session is not None else [])]
        connectors = [session.connector for session in sessions]
        return sum(connector.drop_idle() for connector in connectors if isinstance(connector, _Connector))

    def cut(self) -> None:
        """Shuts every socket, so that no buffered byte leaves this machine; calls in flight fail."""
        for one in self._dialer.open_sockets():
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    async def _cut(self) -> None:
        """Ends connections that are still open: a cancelled call leaves its connection to the TLS shutdown.

        The shutdown waits for the server and would outlive this process. A socket that was shut down is closed within a
        few rounds of the loop.
        """
        for _ in range(_ROUNDS):
            lingering = self._dialer.open_sockets()
            if not lingering:
                return
            for one in lingering:
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
            await asyncio.sleep(0)

    def _common_headers(self) -> CIMultiDict[str]:
        headers = CIMultiDict({"Accept": "application/json", "User-Agent": self._user_agent})
        headers["Accept-Encoding"] = "gzip" if self._compression else "identity"
        if self._access.impersonate is not None:
            headers.extend(self._access.impersonate.headers())
        return headers

    def _open(self) -> aiohttp.ClientSession:
        if self._closed:
            raise ConnectionFailed(self._host, "this client is closed", "do not use a client after its close()")
        if (network := current_network()) is not None:
            return self._open_within(network)
        access, auth = self._access, self._auth
        try:
            context = self._contexts.get(
                ca=access.ca, certificate=auth.certificate, key=auth.key, insecure=access.insecure
            )
        except ValueError as error:
            raise TlsFailed(self._host, str(error), "correct it in the kubeconfig") from None
        if self._session is not None:
            self._retire(self._session)
        self._version = auth.version
        self._session = aiohttp.ClientSession(
            connector=_Connector(context, self._dialer, _KEEP_IDLE, self._opened),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=self._headers,
            auto_decompress=self._compression,
            proxy=access.proxy_url.reveal() if access.proxy_url else None,
            trust_env=False,
            request_class=FencedRequest,
        )
        self.authorization = None
        return self._session

    def _open_within(self, network: Network) -> aiohttp.ClientSession:
        """A session in a network of this process, which has credentials of its own."""
        if self._session is None or self._version == -1:
            if self._session is not None:
                self._retire(self._session)
            self._session = aiohttp.ClientSession(
                connector=network.connector(),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={**self._headers, **network.headers(self._access)},
                trust_env=False,
                request_class=FencedRequest,
            )
        self._version, self.authorization = self._auth.version, self._auth.authorization
        return self._session

    def _authorize(self, session: aiohttp.ClientSession) -> None:
        self.authorization = self._auth.authorization
        if self.authorization is None:
            session.headers.pop("Authorization", None)
        else:
            session.headers["Authorization"] = self.authorization

    def _retire(self, session: aiohttp.ClientSession) -> None:
        async def close_later() -> None:
            await self._clock.sleep(self._linger)
            await session.close()

        task = asyncio.get_running_loop().create_task(close_later())
        self._retired[task] = session
        task.add_done_callback(lambda done: self._retired.pop(done, None))
