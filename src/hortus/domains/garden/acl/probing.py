"""Tries the entry points of a Shoot over the network, and judges what comes back.

Envoy answers a request by header with 403 and its own words when a list turns it away. On a chain for hosts it closes
the connection, before or after the TLS handshake, as it does for a host that nothing serves. A probe sends no
credential, so it checks no certificate; that anything answers is what counts.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final, NamedTuple

import msgspec

from hortus.domains.garden.acl.attempts import Attempt, ServedHost, header_attempts, tls_attempt

OPEN: Final = "open"
REFUSED: Final = "refused"
ABSENT: Final = "absent"
UNKNOWN: Final = "unknown"
_DENIED: Final = b"RBAC: access denied"
"""Body of Envoy's answer for a request that its RBAC filter denies."""
_AT_ONCE: Final = 8
_LONGEST_ANSWER: Final = 1 << 16
"""Bytes of an answer's head."""


class SourceAddressError(Exception):
    """The source address does not belong to this machine."""


class ConnectTo(NamedTuple):
    """Another address for the connections to a host and port, either of which may be any."""

    host: str
    port: int
    address: str
    address_port: int

    def is_for(self, host: str, port: int) -> bool:
        return self.host in ("", host) and self.port in (0, port)


class ProbeDialing(NamedTuple):
    """The way to make connections."""

    timeout: float
    """Seconds for one attempt."""
    source: str = ""
    """Address of this machine to call from; empty for the one that the system chooses."""
    connect_to: tuple[ConnectTo, ...] = ()
    gateways: tuple[str, ...] = ()
    """Addresses of further gateways, to which no host of the Shoot leads."""
    claim: str = ""
    """Address to claim by the PROXY protocol, which a gateway must believe of its load balancer alone; no TLS then."""


class Probed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The outcome of one attempt at one address."""

    name: str
    host: str
    address: str = ""
    """Address that was tried; empty where there was none."""
    port: int = 0
    header: str = ""
    destination: str = ""
    state: str
    """open, refused, absent or unknown."""
    detail: str
    """Reason for the state."""


class _Judgement(NamedTuple):
    state: str
    detail: str


async def probe(
    hosts: Sequence[ServedHost], technical_id: str, ports: Iterable[int], dialing: ProbeDialing
) -> list[Probed]:
    """Try all hosts, and all destinations at each gateway that they lead to. Raises SourceAddressError."""
    resolved = {one.host: await _resolve(one.host, dialing) for one in hosts}
    attempts = [(tls_attempt(one), address) for one in hosts for address in resolved[one.host] or ("",)]
    if dialing.claim:
        attempts = []  # a gateway that believes no claim takes it for a broken handshake, and says nothing for long
    gateways: dict[str, str] = {}
    for served in hosts:
        for address in resolved[served.host]:
            gateways.setdefault(address, served.host)
    for address in dialing.gateways:
        gateways.setdefault(address, hosts[0].host)
    for address, host in gateways.items():
        attempts += [(one, address) for one in header_attempts(technical_id, host, ports)]
    gate = asyncio.Semaphore(_AT_ONCE)

    async def one(attempt: Attempt, address: str) -> Probed:
        async with gate:
            found = await _judge(attempt, address, dialing)
        return Probed(
            name=attempt.name,
            host=attempt.host,
            address=address,
            port=attempt.port,
            header=attempt.header,
            destination=attempt.destination,
            state=found.state,
            detail=found.detail,
        )

    return await asyncio.gather(*(one(attempt, address) for attempt, address in attempts))


def dashboards_unknown() -> Probed:
    """The outcome for hosts below a domain that is not known."""
    detail = "not tried: the domain of the seed's dashboards is not known; give it with --ingress-domain"
    return Probed(name="dashboards, and host of the wildcard certificate", host="", state=UNKNOWN, detail=detail)


async def _resolve(host: str, dialing: ProbeDialing) -> list[str]:
    """The addresses of a host; none where it does not resolve."""
    replaced = [one.address for one in dialing.connect_to if one.host in ("", host)]
    if replaced:
        return replaced[:1]
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(dialing.timeout):
            found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, TimeoutError):
        return []
    return list(dict.fromkeys(str(one[4][0]) for one in found))


async def _judge(attempt: Attempt, address: str, dialing: ProbeDialing) -> _Judgement:
    if not address:
        return _Judgement(UNKNOWN, "the host does not resolve")
    try:
        async with asyncio.timeout(dialing.timeout):
            return await (_by_header if attempt.header else _by_tls)(attempt, address, dialing)
    except TimeoutError:
        return _Judgement(UNKNOWN, f"no answer in {dialing.timeout:g} s")
    except ssl.SSLError as error:
        return _Judgement(UNKNOWN, f"TLS failed: {error.reason or error}")
    except OSError as error:
        if error.errno == errno.EADDRNOTAVAIL:
            raise SourceAddressError(
                f"{dialing.source} is no address of this machine, or cannot reach {address}"
            ) from None
        return _Judgement(UNKNOWN, f"no connection: {error.strerror or error}")


@asynccontextmanager
async def _connection(
    attempt: Attempt, address: str, dialing: ProbeDialing
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    port = attempt.port
    for one in dialing.connect_to:
        if one.is_for(attempt.host, port):
            address, port = one.address, one.address_port
            break
    local = (dialing.source, 0) if dialing.source else None
    reader, writer = await asyncio.open_connection(address, port, local_addr=local, limit=_LONGEST_ANSWER)
    try:
        if dialing.claim:
            family, target = ("TCP6", "2001:db8::1") if ":" in dialing.claim else ("TCP4", "192.0.2.1")
            writer.write(f"PROXY {family} {dialing.claim} {target} 4711 {attempt.port}\r\n".encode())
        yield reader, writer
    finally:
        # Without a farewell: Envoy holds a connection for another second after it has answered.
        writer.transport.abort()
        with suppress(OSError):
            await writer.wait_closed()


async def _by_tls(attempt: Attempt, address: str, dialing: ProbeDialing) -> _Judgement:
    async with _connection(attempt, address, dialing) as (reader, writer):
        try:
            await writer.start_tls(_unchecked(), server_hostname=attempt.host)
            # A gateway that ends TLS judges the connection after the handshake alone.
            writer.write(f"GET /version HTTP/1.1\r\nHost: {attempt.host}\r\nConnection: close\r\n\r\n".encode())
            status = await reader.readline()
        except (ConnectionError, ssl.SSLEOFError, asyncio.IncompleteReadError):
            status = b""
    if status:
        return _Judgement(OPEN, f"answered {_line(status)}")
    if attempt.is_sure:
        return _Judgement(REFUSED, "closed without an answer")
    return _Judgement(UNKNOWN, "closed without an answer: refused, or this host is not served")


async def _by_header(attempt: Attempt, address: str, dialing: ProbeDialing) -> _Judgement:
    lines = (f"CONNECT {attempt.host}:443 HTTP/1.1", f"Host: {attempt.host}:443")
    text = "\r\n".join((*lines, f"{attempt.header}: {attempt.destination}"))
    async with _connection(attempt, address, dialing) as (reader, writer):
        try:
            writer.write(f"{text}\r\n\r\n".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            code = _code(head)
            body = await reader.readexactly(len(_DENIED)) if code == "403" else b""
        except (ConnectionError, asyncio.LimitOverrunError):
            return _Judgement(UNKNOWN, "closed without an answer: no gateway of Gardener does that on this port")
        except asyncio.IncompleteReadError as error:
            return _Judgement(UNKNOWN, f"answered {_line(error.partial) or 'nothing'}, which is not in Envoy's words")
    if code == "400" and dialing.claim:
        return _Judgement(REFUSED, f"answered {_line(head)}: the gateway takes no address from here")
    return _of_answer(code, _line(head), is_envoy=b"envoy" in head.lower(), denied=body == _DENIED)


def _of_answer(code: str, line: str, *, is_envoy: bool, denied: bool) -> _Judgement:
    if denied:
        return _Judgement(REFUSED, f"answered {line}, in the words of an access list")
    if code == "200":
        return _Judgement(OPEN, f"answered {line}: there is a tunnel to it")
    if not is_envoy:
        return _Judgement(UNKNOWN, f"answered {line}, which is not from a gateway of Gardener")
    if code == "503":
        return _Judgement(OPEN, f"answered {line}: let in, and nothing runs behind it")
    if code == "301":
        return _Judgement(ABSENT, f"answered {line}: the gateway does not route this destination")
    return _Judgement(UNKNOWN, f"answered {line}")


def _code(head: bytes) -> str:
    words = head.split(b" ", 2)
    return words[1].decode("latin-1") if len(words) > 1 else ""


def _line(head: bytes) -> str:
    return head.partition(b"\r\n")[0].decode("latin-1").strip()


def _unchecked() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context
