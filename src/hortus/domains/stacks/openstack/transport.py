"""Calls to the services of one cloud: bounded answers, one attempt, errors without credentials.

Redirects are not followed, since a token must not go to another address. Proxies of the environment are used. Addresses
of this machine and of metadata services are refused unless `local` allows them: the Secret is written by a tenant.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from typing import NamedTuple

import aiohttp
import msgspec
from multidict import CIMultiDictProxy
from yarl import URL

from hortus.domains.stacks.openstack.clouds import CloudAccess
from hortus.domains.stacks.openstack.errors import (
    AuthRefused,
    BadCloud,
    BadReply,
    CloudUnavailable,
    OpenStackError,
    RequestRefused,
)
from hortus.kube.dialing import LOCAL_NETWORKS, METADATA_NETWORKS, AddressDenied, Dialer
from hortus.kube.secret import Secret, without_credential
from hortus.kube.shapes import decode_json
from hortus.kube.tls import client_context

_LARGEST = 8 << 20
"""Bytes of one answer; a list of 1,000 images has about 2 MB."""
_SHOWN = 300
_FOREIGN = (aiohttp.ClientError, OSError, RuntimeError)
TOKEN_HEADER = "X-Auth-Token"  # noqa: S105 - a header's name


class CloudLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds on calls, in seconds."""

    connect: float = 10.0
    whole: float = 30.0
    local: bool = False
    """True allows addresses of this machine."""


class CloudAnswer(NamedTuple):
    """One answer, whole."""

    status: int
    headers: CIMultiDictProxy[str]
    body: bytes


class CloudTransport:
    """A pool of connections to the services of one cloud. Used in one event loop, closed once."""

    def __init__(self, access: CloudAccess, limits: CloudLimits) -> None:
        """Raises BadCloud for a CA that cannot be read."""
        try:
            context = client_context(ca=access.ca, insecure=not access.verify)
        except ValueError as error:
            raise BadCloud(f"cacert: {error}; write the certificates in PEM") from None
        self._connector = aiohttp.TCPConnector(
            limit=8, ssl=context, socket_factory=Dialer(METADATA_NETWORKS if limits.local else LOCAL_NETWORKS)
        )
        self._limits = limits
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Drop all connections."""
        await (self._session.close() if self._session is not None else self._connector.close())

    async def call(
        self, method: str, url: URL, *, body: bytes | None = None, token: Secret | None = None, what: str
    ) -> CloudAnswer:
        """One answer below 300; `what` names the request in messages. Raises OpenStackError."""
        headers = {"Content-Type": "application/json"} if body is not None else {}
        if token is not None:
            headers[TOKEN_HEADER] = token.reveal()
        place = url.host or ""
        try:
            async with self._opened().request(
                method, url, headers=headers, data=body, allow_redirects=False
            ) as response:
                data = await _whole(response)
                answer = CloudAnswer(response.status, response.headers, data)
        except _FOREIGN as error:
            raise _mapped(error, place, what) from None
        if answer.status >= 300:
            raise refusal(answer, place, what, token)
        return answer

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=self._connector,
                timeout=aiohttp.ClientTimeout(total=self._limits.whole, sock_connect=self._limits.connect),
                headers={"User-Agent": "hortus", "Accept": "application/json"},
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=True,
            )
        return self._session


async def _whole(response: aiohttp.ClientResponse) -> bytes:
    parts, size = [], 0
    async for piece in response.content.iter_any():
        size += len(piece)
        if size > _LARGEST:
            raise BadReply(f"the answer is longer than {_LARGEST} bytes", status=response.status)
        parts.append(piece)
    return b"".join(parts)


def refusal(answer: CloudAnswer, place: str, what: str, token: Secret | None) -> OpenStackError:
    """The error for an answer that is no success."""
    status = answer.status
    said = _said(without_credential(answer.body, f"Bearer {token.reveal()}" if token else None))
    text = f"{place}: HTTP status {status}, asking for {what}{said}"
    if status == 401:
        return AuthRefused(f"{text}; check the credentials in clouds.yaml", status=status)
    if status in (408, 429) or status >= 500:
        return CloudUnavailable(f"{text}; the service fails or is busy", status=status)
    if status < 400:
        return BadReply(f"{text}; redirects are not followed: correct the address", status=status)
    return RequestRefused(text, status=status)


class _Fault(msgspec.Struct):
    message: str = ""


class _Body(msgspec.Struct):
    error: _Fault | None = None
    message: str = ""


def _said(body: bytes) -> str:
    """The service's own words, as far as they can be shown."""
    try:
        found = decode_json(body, _Body)
    except msgspec.DecodeError:
        return ""
    words = found.error.message if found.error is not None else found.message
    shown = " ".join("".join(char if char.isprintable() else " " for char in words).split())
    return f" ({shown[:_SHOWN]})" if shown else ""


def _mapped(error: Exception, place: str, what: str) -> OpenStackError:
    cause = getattr(error, "os_error", error)
    if isinstance(cause, AddressDenied):
        return BadCloud(f"{place}: its address lies on this machine or a link-local network, which is not allowed")
    if isinstance(error, (aiohttp.ClientSSLError, ssl.SSLError)):
        found = getattr(error, "certificate_error", None)
        reason = getattr(found, "verify_message", "") or "TLS failed"
        advice = "put its authority under cacert into the Secret, or check the host name"
        return CloudUnavailable(f"{place}: its certificate is not accepted ({reason}); {advice}")
    if isinstance(error, asyncio.TimeoutError):
        return CloudUnavailable(f"{place}: no answer in time, asking for {what}")
    if isinstance(error, aiohttp.InvalidURL):
        return BadCloud(f"{place}: the address names no usable host; correct auth_url")
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return CloudUnavailable(f"{place}: its name cannot be resolved; check auth_url and the DNS")
    if isinstance(error, aiohttp.ClientResponseError):
        return BadReply(f"{place}: the answer is not HTTP, asking for {what}")
    number = getattr(cause, "errno", None)
    reason = os.strerror(number) if isinstance(number, int) and number > 0 else "the connection broke"
    return CloudUnavailable(f"{place}: cannot be reached, asking for {what}: {reason}")
