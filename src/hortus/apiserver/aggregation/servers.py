"""Connections to aggregated API servers: for each logical cluster a pool for each Service and way to trust it.

Every connection shows a certificate of the cluster's front-proxy authority, which makes the headers that name the user
believable. The server's certificate must be that of `<service>.<namespace>.svc`, by the caBundle of its APIService. The
administrators of other logical clusters than root are not those of this machine, so their Services may lead to the same
addresses as their webhooks and to no others.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import NamedTuple

import aiohttp
from cryptography.hazmat.primitives.serialization import Encoding
from multidict import CIMultiDict
from yarl import URL

from hortus.apiserver.admission.sessions import IsolatedNames, denied_networks, isolated_session
from hortus.apiserver.aggregation.apiservices import RemoteApi, ServiceReference
from hortus.apiserver.aggregation.resolving import RemoteAddress
from hortus.apiserver.authn.certificates import client_certificate, key_pem, new_key
from hortus.apiserver.authn.cluster_keys import ClusterKeyLookup, ClusterKeys
from hortus.apiserver.authn.subjects import name_of
from hortus.apiserver.clusters.trust import FRONT_PROXY
from hortus.kube.dialing import AddressDenied, Dialer
from hortus.kube.secret import Secret
from hortus.kube.tls import client_context

_CONNECTIONS = 1024
"""Connections to one server; HTTP/1.1 takes one for each request in progress and each watch."""
_CONNECT_SECONDS = 10.0
"""Seconds for a place among the connections, the connection and its handshake."""
_IDLE_SECONDS = 90.0
"""Seconds for which an unused connection is kept (net/http's default transport)."""
_LOOKUPS = 4
_OWN_HEADERS = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
"""Headers that aiohttp would add to a request that lacks them."""


class Unreachable(Exception):
    """No answer of the server; the text is the problem in the words of Go's client."""


class ServerTrust(NamedTuple):
    """The connections of two APIs with the same are shared: it is the same server, believed for the same reason."""

    service: ServiceReference
    ca: bytes
    insecure: bool


class RemoteServer:
    """The connections to one server. Closed once it is `retired` and no request is in progress."""

    def __init__(
        self, name: str, tls: ssl.SSLContext, session: aiohttp.ClientSession, names: IsolatedNames, dialer: Dialer
    ) -> None:
        self._name = name
        self._tls = tls
        self._session = session
        self._names = names
        self._dialer = dialer
        self._active = 0
        self._retired = False

    @property
    def tls(self) -> tuple[ssl.SSLContext, str]:
        """The context of a connection and the name of the server."""
        return self._tls, self._name

    async def dial(self, address: RemoteAddress) -> socket.socket:
        """A connection without TLS, outside of the pool. Raises OSError, AddressDenied."""
        loop, problem = asyncio.get_running_loop(), OSError(f"{address.host} has no address")
        for found in await self._names.resolve(address.host, address.port, socket.AF_UNSPEC):
            place = (found["host"], found["port"])
            made = self._dialer((found["family"], socket.SOCK_STREAM, found["proto"], "", place))
            try:
                await loop.sock_connect(made, place)
                return made
            except OSError as error:
                made.close()
                problem = error
            except BaseException:
                made.close()
                raise
        raise problem

    @asynccontextmanager
    async def ask(
        self,
        method: str,
        address: RemoteAddress,
        target: str,
        headers: CIMultiDict[str],
        body: AsyncIterator[bytes] | bytes | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """The answer to a request for `target`, an encoded path with its query. Raises Unreachable, also within."""
        self._active += 1
        try:
            async with self._session.request(
                method,
                URL(address.origin + target, encoded=True),
                headers=headers,
                data=body,
                ssl=self._tls,
                server_hostname=self._name,
                allow_redirects=False,
                skip_auto_headers=_OWN_HEADERS,
            ) as response:
                yield response
        except aiohttp.ClientError as error:
            raise Unreachable(_words(error, address)) from None
        except TimeoutError:
            raise Unreachable(dial_problem(TimeoutError(), address)) from None
        finally:
            self._active -= 1
            if self._retired and not self._active:
                await self._session.close()

    async def retire(self) -> None:
        """Closes the connections, after the requests in progress."""
        self._retired = True
        if not self._active:
            await self._session.close()

    async def close(self) -> None:
        await self._session.close()


class RemoteServers:
    """`local` are the logical clusters besides root whose Services may lead to this machine."""

    def __init__(self, clusters: ClusterKeyLookup, *, local: Collection[str]) -> None:
        self._clusters = clusters
        self._local = local
        self._open: dict[str, dict[ServerTrust, RemoteServer]] = {}
        self._identities: dict[str, tuple[ClusterKeys, bytes, Secret]] = {}
        self._threads = ThreadPoolExecutor(_LOOKUPS, thread_name_prefix="service-names")
        self._closing: set[asyncio.Task[None]] = set()

    def of(self, cluster: str, api: RemoteApi) -> RemoteServer:
        """The connections to the server of `api`. Raises ValueError where its caBundle cannot be read."""
        known = self._open.setdefault(cluster, {})
        trust = trust_of(api)
        found = known.get(trust)
        if found is None:
            found = known[trust] = self._opened(cluster, trust)
        return found

    def check(self, cluster: str, api: RemoteApi) -> RemoteServer:
        """The same, for a look whether the server answers, which does not depend on its certificate."""
        return self.of(cluster, api._replace(ca=b"", insecure=True))

    def keep(self, cluster: str, apis: Mapping[tuple[str, str], RemoteApi]) -> None:
        """Retires the connections of a cluster that none of `apis` uses."""
        known = self._open.get(cluster)
        if not known:
            return
        used = {trust_of(api) for api in apis.values()}
        used |= {trust._replace(ca=b"", insecure=True) for trust in used}
        for trust in known.keys() - used:
            task = asyncio.get_running_loop().create_task(known.pop(trust).retire())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
        if not known:
            del self._open[cluster]

    def forget(self, cluster: str) -> None:
        """Drops the identity towards the servers of a removed cluster, and its connections."""
        self._identities.pop(cluster, None)
        self.keep(cluster, {})

    async def close(self) -> None:
        for known in self._open.values():
            for server in known.values():
                await server.close()
        self._open.clear()
        await asyncio.gather(*self._closing)
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _opened(self, cluster: str, trust: ServerTrust) -> RemoteServer:
        certificate, key = self._identity(cluster)
        tls = client_context(ca=trust.ca, certificate=certificate, key=key, insecure=trust.insecure)
        names, dialer = IsolatedNames(self._threads), Dialer(denied_networks(cluster, self._local))
        timeout = aiohttp.ClientTimeout(connect=_CONNECT_SECONDS)
        session = isolated_session(names, dialer, limit=_CONNECTIONS, idle=_IDLE_SECONDS, timeout=timeout)
        return RemoteServer(trust.service.host, tls, session, names, dialer)

    def _identity(self, cluster: str) -> tuple[bytes, Secret]:
        keys = self._clusters.keys(cluster)
        if keys is None:
            raise ValueError(f'logical cluster "{cluster}" not found')
        known = self._identities.get(cluster)
        if known is None or known[0] is not keys:
            authority, key = keys.front_proxy, new_key()
            validity = authority.certificate.not_valid_before_utc, authority.certificate.not_valid_after_utc
            start, end = (time.timestamp() for time in validity)
            made = client_certificate(authority, key.public_key(), name_of(FRONT_PROXY), start=start, end=end)
            known = keys, made.public_bytes(Encoding.PEM), Secret(key_pem(key).decode())
            self._identities[cluster] = known
        return known[1], known[2]


def trust_of(api: RemoteApi) -> ServerTrust:
    return ServerTrust(api.service, api.ca, api.insecure)


def dial_problem(error: OSError, address: RemoteAddress) -> str:
    """The reason why there is no connection to an address."""
    where = f"dial tcp {address.host}:{address.port}"
    match error:
        case AddressDenied():
            return f"{where}: services of logical clusters may not be on this machine or its link"
        case ConnectionRefusedError():
            return f"{where}: connect: connection refused"
        case TimeoutError(errno=None):
            return f"{where}: i/o timeout"
    return f"{where}: {error.strerror or error}"


def _words(error: aiohttp.ClientError, address: RemoteAddress) -> str:
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return f"tls: failed to verify certificate: x509: {error.certificate_error}"
        case aiohttp.ClientConnectorSSLError():
            return f"tls: {error.os_error}"
        case aiohttp.ClientConnectorDNSError():
            return f"dial tcp: lookup {address.host}: no such host"
        case aiohttp.ClientConnectorError():
            return dial_problem(error.os_error, address)
        case aiohttp.ServerTimeoutError():
            return dial_problem(TimeoutError(), address)
        case aiohttp.ServerDisconnectedError() | aiohttp.ClientOSError():
            return "EOF"
    return str(error) or type(error).__name__
