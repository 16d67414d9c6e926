"""HTTP to untrusted hosts: every connection is checked, redirects follow our rules, answers are bounded.

Redirects are followed for GET and HEAD alone, and a credential never goes to another origin, nor back again. Local and
metadata addresses are refused where the socket is made, after names are resolved and for every hop. Repeated is what
does no harm: GET and HEAD after broken connections and 5xx, and anything that the server asked to repeat (429, or 503
with Retry-After). A wish to wait longer than `longest_wait` is not waited for here: the error carries it.

A proxy is not used: the checks on addresses could not look behind it.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import random
import re
import ssl
from collections.abc import AsyncIterator, Mapping
from typing import NamedTuple, Self

import aiohttp
import msgspec
from multidict import CIMultiDictProxy
from yarl import URL

from hortus.kube.clock import Clock, SystemClock
from hortus.kube.dialing import LOCAL_NETWORKS, METADATA_NETWORKS, AddressDenied, Dialer, Network
from hortus.kube.retries import retry_after
from hortus.kube.secret import Secret, without_credential
from hortus.kube.tls import client_context
from hortus.render.artifacts.errors import ArtifactError, BadAnswer, PolicyRefused, TooLarge, Unavailable
from hortus.render.artifacts.redirects import Destinations, authority

# Docker Hub sends `RateLimit-Limit: 100;w=21600`, GitHub `X-RateLimit-Remaining` and an `X-RateLimit-Reset` in epoch
# seconds. Values are input: nonsense is as good as absent.
_LEADING_NUMBER = re.compile(r"\s*([0-9]{1,12})")
_LONGEST_WISH = 24 * 3600.0
"""Seconds; a reset later than this is not believed."""


class RateLimit(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one allowance as of its last answer."""

    limit: int
    remaining: int
    resets_in: float | None = None
    """Seconds until the allowance is full again, where the server says so."""


def rate_limit(headers: Mapping[str, str], now: float) -> RateLimit | None:
    """The allowance that an answer reports, if any."""
    for start in ("X-RateLimit-", "RateLimit-"):
        limit, remaining = _number(headers.get(start + "Limit")), _number(headers.get(start + "Remaining"))
        if limit is not None and remaining is not None:
            return RateLimit(limit=limit, remaining=remaining, resets_in=_reset(headers.get(start + "Reset"), now))
    return None


def wish(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds to wait before the next try: Retry-After, or the reset of an allowance that is used up."""
    asked = retry_after(headers, now)
    if asked is not None:
        return asked
    found = rate_limit(headers, now)
    return found.resets_in if found is not None and found.remaining == 0 else None


def _number(text: str | None) -> int | None:
    found = _LEADING_NUMBER.match(text or "")
    return int(found[1]) if found else None


def _reset(text: str | None, now: float) -> float | None:
    """GitHub gives the moment, the draft standard the seconds; no allowance lasts half a century."""
    value = _number(text)
    if value is None:
        return None
    seconds = value - now if value > 1_500_000_000 else float(value)
    return min(max(seconds, 0.0), _LONGEST_WISH)


_REDIRECTS = (301, 302, 303, 307, 308)
_FOREIGN = (aiohttp.ClientError, OSError, RuntimeError)
_SAFE = ("GET", "HEAD")
_LARGE_BODY = 1 << 20
"""Bytes; from here on aiohttp wants a file-like body."""


class TransferSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Limits and allowances of one client. Times in seconds, sizes in bytes, hosts as `host` or `host:port`."""

    connect_timeout: float = 10.0
    idle_timeout: float = 30.0
    """The longest silence in the middle of an answer."""
    whole_timeout: float = 900.0
    """For one download from first byte to last, so that a trickle ends."""
    connections: int = 16
    attempts: int = 4
    """Tries without any progress between them."""
    first_wait: float = 0.5
    longest_wait: float = 30.0
    redirects: int = 5
    max_document: int = 4 << 20
    """A manifest, a page of a list: the size that the specification asks registries to accept for manifests."""
    plain_http: frozenset[str] = frozenset()
    """Hosts that may be spoken to without TLS."""
    local_hosts: frozenset[str] = frozenset()
    """Hosts that may lie in the networks of `deny`, but for `METADATA_NETWORKS`."""
    redirect_hosts: frozenset[str] | None = None
    """Hosts, besides the server itself, that it may redirect downloads to; None allows all that `deny` does not."""
    deny: tuple[Network, ...] = LOCAL_NETWORKS
    ca: bytes = b""
    """PEM certificates to trust instead of the system's."""
    user_agent: str = "hortus"


class Answer(NamedTuple):
    status: int
    headers: CIMultiDictProxy[str]
    body: bytes
    url: URL
    """The address that answered, after all redirects."""


class Transfer:
    """A pool of connections. Made anywhere, used in one event loop, closed once."""

    def __init__(self, settings: TransferSettings | None = None, *, clock: Clock | None = None) -> None:
        self.settings = settings or TransferSettings()
        self.clock: Clock = clock or SystemClock()
        self.rate_limits: dict[str, RateLimit] = {}
        """The last allowance that each host reported."""
        self.destinations = Destinations(
            plain=self.settings.plain_http,
            local=self.settings.local_hosts,
            redirects=self.settings.redirect_hosts,
        )
        self._sessions: dict[bool, aiohttp.ClientSession] = {}
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *reason: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Drop all connections; what is in flight fails."""
        self._closed = True
        for session in self._sessions.values():
            await session.close()

    async def document(
        self,
        method: str,
        url: URL,
        *,
        headers: Mapping[str, str] | None = None,
        authorization: Secret | None = None,
        body: bytes | None = None,
        limit: int | None = None,
    ) -> Answer:
        """One small answer, whole, whatever its status; repeated where that makes sense. Raises ArtifactError."""
        attempt = 0
        while True:
            attempt += 1
            try:
                async with self.stream(method, url, headers=headers, authorization=authorization, body=body) as found:
                    content = await self._whole(found, limit)
                    if found.status >= 400 and authorization is not None:
                        content = without_credential(content, authorization.reveal())
                    answer = Answer(found.status, found.headers, content, found.url)
            except Unavailable as error:
                if method not in _SAFE or not await self.pause(attempt, error.retry_after):
                    raise
                continue
            if not self._worth_repeating(method, answer) or not await self.pause(attempt, self.wish(answer.headers)):
                return answer

    @contextlib.asynccontextmanager
    async def stream(
        self,
        method: str,
        url: URL,
        *,
        headers: Mapping[str, str] | None = None,
        authorization: Secret | None = None,
        body: bytes | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """One answer to be read as it comes, after redirects; tried once. Raises ArtifactError."""
        self.destinations.check(url)
        response = await self._send(method, url, headers, authorization, body)
        try:
            hops = 0
            while method in _SAFE and response.status in _REDIRECTS:
                hops += 1
                target = self._next(response, hops)
                if target.origin() != response.url.origin():
                    authorization = None
                response.close()
                response = await self._send(method, target, headers, authorization, None)
            yield response
        except (aiohttp.ClientError, OSError) as error:
            raise self._mapped(error, response.url) from None
        finally:
            response.close()

    async def pause(self, attempt: int, asked: float | None) -> bool:
        """Wait before the next try, as long as the server asked or ever longer; False when there is none."""
        if attempt >= self.settings.attempts or (asked is not None and asked > self.settings.longest_wait):
            return False
        wait = min(self.settings.longest_wait, self.settings.first_wait * 2.0 ** (attempt - 1))
        spread = random.uniform(0.5, 1.0)  # noqa: S311 - spreads a crowd, hides nothing
        # A server that asks for no pause at all does not replace ours.
        await self.clock.sleep(max(asked or 0.0, wait * spread))
        return True

    def wish(self, headers: Mapping[str, str]) -> float | None:
        """Seconds after which the server wants to be asked again."""
        return wish(headers, self.clock.now())

    def _worth_repeating(self, method: str, answer: Answer) -> bool:
        if answer.status == 429:
            return True
        if answer.status in (403, 503) and self.wish(answer.headers) is not None:
            # GitHub answers 403 where others answer 429.
            return True
        return method in _SAFE and answer.status in (500, 502, 503, 504)

    def _next(self, response: aiohttp.ClientResponse, hops: int) -> URL:
        place = authority(response.url)
        if hops > self.settings.redirects:
            raise BadAnswer(place, f"more than {self.settings.redirects} redirects in a row")
        location = response.headers.get("Location")
        if not location:
            raise BadAnswer(place, f"a redirect ({response.status}) without a Location")
        return self.destinations.follow(response.url, location)

    async def _send(
        self,
        method: str,
        url: URL,
        headers: Mapping[str, str] | None,
        authorization: Secret | None,
        body: bytes | None,
    ) -> aiohttp.ClientResponse:
        sent = dict(headers or {})
        if authorization is not None:
            sent["Authorization"] = authorization.reveal()
        data = body if body is None or len(body) < _LARGE_BODY else io.BytesIO(body)
        session = self._session(url)
        try:
            response = await session.request(method, url, headers=sent, data=data, allow_redirects=False)
        except _FOREIGN as error:
            raise self._mapped(error, url) from None
        if (found := rate_limit(response.headers, self.clock.now())) is not None:
            self.rate_limits[authority(url)] = found
        if response.headers.get("Content-Encoding", "identity").lower() != "identity":
            response.close()
            raise BadAnswer(authority(url), "the answer is encoded though it was asked not to be")
        return response

    def _session(self, url: URL) -> aiohttp.ClientSession:
        if self._closed:
            raise RuntimeError("this client is closed")
        local = self.destinations.is_local_allowed(url)
        if local not in self._sessions:
            self._sessions[local] = self._new_session(METADATA_NETWORKS if local else self.settings.deny)
        return self._sessions[local]

    def _new_session(self, deny: tuple[Network, ...]) -> aiohttp.ClientSession:
        limits = self.settings
        connector = aiohttp.TCPConnector(
            limit=limits.connections, ssl=client_context(ca=limits.ca), socket_factory=Dialer(deny), ttl_dns_cache=30
        )
        timeout = aiohttp.ClientTimeout(
            total=limits.whole_timeout, sock_connect=limits.connect_timeout, sock_read=limits.idle_timeout
        )
        return aiohttp.ClientSession(
            connector=connector,
            timeout=timeout,
            headers={"User-Agent": limits.user_agent, "Accept-Encoding": "identity"},
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
        )

    async def _whole(self, response: aiohttp.ClientResponse, limit: int | None) -> bytes:
        allowed = self.settings.max_document if limit is None else limit
        parts, size = [], 0
        async for piece in response.content.iter_any():
            size += len(piece)
            if size > allowed:
                raise TooLarge(authority(response.url), f"the answer is longer than the allowed {allowed} bytes")
            parts.append(piece)
        return b"".join(parts)

    def _mapped(self, error: Exception, url: URL) -> ArtifactError:
        place = authority(url)
        cause = getattr(error, "os_error", error)
        if isinstance(cause, AddressDenied):
            return PolicyRefused(place, f"its address {cause.address} lies on this machine or a link-local network")
        if isinstance(error, (aiohttp.ClientSSLError, ssl.SSLError)):
            found = getattr(error, "certificate_error", None)
            reason = getattr(found, "verify_message", "") or "TLS failed"
            return Unavailable(place, f"its certificate is not accepted ({reason})", "check the host name and the CA")
        if isinstance(error, aiohttp.InvalidURL):
            return PolicyRefused(place, "the address names no usable host", "write a DNS name or a whole IP address")
        if isinstance(error, asyncio.TimeoutError):
            return Unavailable(place, "no answer in time", "the server is slow or the network drops packets")
        if isinstance(error, aiohttp.ClientConnectorDNSError):
            return Unavailable(place, "its name cannot be resolved", "check the host name and the DNS")
        if isinstance(error, aiohttp.ClientResponseError):
            return BadAnswer(place, "the answer is not HTTP")
        number = getattr(cause, "errno", None)
        reason = os.strerror(number) if isinstance(number, int) and number > 0 else "the connection broke"
        return Unavailable(place, f"cannot be reached: {reason}")
