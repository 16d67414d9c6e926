"""An API server of one's own for a test: in its own thread, on a free loopback port, ready in a fraction of a second.

    async with running_apiserver() as server:
        async with Client.from_kubeconfig(server.kubeconfig) as client: ...

The thread has its own event loop, so a test may block (kubectl in a subprocess) without stopping the server. Every
server has its own authority and its own random admin token; nothing outlives the `with`.
"""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import secrets
import ssl
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Literal, TypeVar

import uvloop
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from hortus.apiserver import ApiServer, ResourceDefinition, Settings
from hortus.apiserver.authn.identity import Credentials, UserInfo
from hortus.apiserver.authz.attributes import Attributes, Decision
from hortus.apiserver.builtin import definitions as builtin_definitions
from hortus.apiserver.store import Backend, MemoryBackend
from hortus.kube.clock import Clock
from hortus.kube.errors import Unauthorized
from hortus.kube.objects import Object

T = TypeVar("T")
Store = Literal["memory", "sqlite"]

ADMIN = UserInfo(username="kubernetes-admin", groups=("system:masters", "system:authenticated"))


class TestServer:
    """A running server. `server` and `loop` belong to its thread: reach them with `run`."""

    __test__ = False

    def __init__(self, server: ApiServer, loop: asyncio.AbstractEventLoop, ca: bytes, token: str, folder: Path) -> None:
        self.server = server
        self.loop = loop
        self.url = server.url
        self.ca = ca
        self.token = token
        self._folder = folder

    @property
    def kubeconfig(self) -> Path:
        """A file with the admin's kubeconfig of the root cluster."""
        return self.kubeconfig_for("")

    def cluster_url(self, cluster: str = "") -> str:
        return f"{self.url}/clusters/{cluster}" if cluster else self.url

    def kubeconfig_for(self, cluster: str) -> Path:
        """A file with the admin's kubeconfig of a logical cluster."""
        from hortus.kube import yaml

        path = self._folder / f"{cluster or 'root'}.kubeconfig"
        path.write_text(yaml.dump(self.kubeconfig_dict(cluster)))
        path.chmod(0o600)
        return path

    def kubeconfig_dict(self, cluster: str = "") -> Object:
        import base64

        name = cluster or "root"
        server = {
            "server": self.cluster_url(cluster),
            "certificate-authority-data": base64.b64encode(self.ca).decode(),
        }
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": server}],
            "users": [{"name": "admin", "user": {"token": self.token}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": "admin"}}],
            "current-context": name,
        }

    def tls(self) -> ssl.SSLContext:
        """A client context that trusts this server alone."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=self.ca.decode())
        return context

    def run(self, step: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the server's loop and wait for it here."""
        return asyncio.run_coroutine_threadsafe(step, self.loop).result(30)


@asynccontextmanager
async def running_apiserver(
    *,
    store: Store = "memory",
    definitions: Sequence[ResourceDefinition] | None = None,
    extensions: Mapping[str, Sequence[ResourceDefinition]] | None = None,
    clock: Clock | None = None,
    folder: Path | None = None,
) -> AsyncIterator[TestServer]:
    """`started_apiserver` for tests that are coroutines."""
    manager = started_apiserver(store=store, definitions=definitions, extensions=extensions, clock=clock, folder=folder)
    server = await asyncio.to_thread(manager.__enter__)
    try:
        yield server
    finally:
        await asyncio.to_thread(manager.__exit__, None, None, None)


@contextmanager
def started_apiserver(
    *,
    store: Store = "memory",
    definitions: Sequence[ResourceDefinition] | None = None,
    extensions: Mapping[str, Sequence[ResourceDefinition]] | None = None,
    clock: Clock | None = None,
    folder: Path | None = None,
) -> Iterator[TestServer]:
    """Serve the built-in kinds unless `definitions` says otherwise; `folder` keeps state and kubeconfigs."""
    with tempfile.TemporaryDirectory() as scratch:
        home = folder or Path(scratch)
        token = secrets.token_urlsafe(24)
        ca, context = _server_tls(Path(scratch))

        def compose() -> ApiServer:
            return ApiServer(
                Settings(),
                _backend(store, home),
                builtin_definitions() if definitions is None else definitions,
                _OneToken(token),
                _AllowAll(),
                tls=context,
                extensions=extensions,
                clock=clock,
            )

        with _threaded(compose) as (server, loop):
            yield TestServer(server, loop, ca, token, home)


def _backend(store: Store, folder: Path) -> Backend:
    if store == "memory":
        return MemoryBackend()
    raise ValueError(f"no such store: {store}")


@contextmanager
def _threaded(compose: Callable[[], ApiServer]) -> Iterator[tuple[ApiServer, asyncio.AbstractEventLoop]]:
    loop = uvloop.new_event_loop()
    started: list[ApiServer] = []
    failed: list[BaseException] = []
    ready, stop = threading.Event(), asyncio.Event()

    async def serve() -> None:
        server = compose()
        await server.start()
        started.append(server)
        ready.set()
        await stop.wait()
        await server.stop()

    def run() -> None:
        try:
            loop.run_until_complete(serve())
        except BaseException as error:
            failed.append(error)
        finally:
            loop.close()
            ready.set()

    thread = threading.Thread(target=run, name="apiserver", daemon=True)
    thread.start()
    ready.wait(30)
    if failed:
        raise failed[0]
    try:
        yield started[0], loop
    finally:
        if not loop.is_closed():
            loop.call_soon_threadsafe(stop.set)
        thread.join(30)
    if failed:
        raise failed[0]


class _OneToken:
    def __init__(self, token: str) -> None:
        self._token = token

    async def authenticate(self, credentials: Credentials) -> UserInfo | None:
        if not credentials.bearer:
            return None
        if not secrets.compare_digest(credentials.bearer, self._token):
            raise Unauthorized("Unauthorized")
        return ADMIN


class _AllowAll:
    async def authorize(self, attributes: Attributes) -> Decision:
        return Decision(attributes.user.username == ADMIN.username)


def _server_tls(folder: Path) -> tuple[bytes, ssl.SSLContext]:
    """A fresh authority in PEM and a server context with a certificate of it for loopback."""
    now = datetime.datetime.now(datetime.UTC)
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test-apiserver")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
            critical=False,
        )
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = folder / "server.pem"
    path.write_bytes(pem + private)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return pem, context
