"""A private API server for a test: in its own thread, on a free loopback port, ready in a fraction of a second.

    async with running_apiserver(clusters=["garden"]) as server:
        async with Client.from_kubeconfig(server.kubeconfig) as client: ...

The thread has its own event loop, so a test may block (kubectl in a subprocess) without stopping the server. Every
server has its own certificate authority and its own random admin token; nothing remains after the `with`.
"""

from __future__ import annotations

import asyncio
import base64
import secrets
import ssl
import tempfile
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Literal, TypeVar

import uvloop

from hortus.apiserver import Admission, ApiServer, ApiServerSettings, ResourceDefinition, open_server
from hortus.apiserver.admission import ServiceResolver
from hortus.apiserver.authn import UserInfo
from hortus.apiserver.authn.static_tokens import EVERY_CLUSTER
from hortus.apiserver.clusters import RESOURCE as LOGICAL_CLUSTER
from hortus.apiserver.clusters import certificate_kubeconfig
from hortus.apiserver.store import Backend, MemoryBackend, SqliteBackend
from hortus.kube import yaml
from hortus.kube.clock import Clock
from hortus.kube.objects import Object

T = TypeVar("T")
Store = Literal["memory", "sqlite"]

ADMIN = UserInfo(username="kubernetes-admin", groups=("system:masters", "system:authenticated"))
_PATIENCE = 60.0
"""Seconds after which a server that neither starts nor stops fails the test."""


class TestServer:
    """A running server. `server` lives on the loop of its own thread: reach it with `run`."""

    __test__ = False

    def __init__(
        self, server: ApiServer, loop: asyncio.AbstractEventLoop, token: str, token_everywhere: str, folder: Path
    ) -> None:
        self.server = server
        self.loop = loop
        self.url = server.url
        self.ca = server.clusters.server_ca
        """PEM that verifies the server."""
        self.token = token
        """Bearer token of the admin of the root cluster, and of those named at start."""
        self.token_everywhere = token_everywhere
        """Bearer token of the admin of every logical cluster, including those made later."""
        self._folder = folder

    @property
    def kubeconfig(self) -> Path:
        """A file with the admin's kubeconfig of the root cluster."""
        return self.kubeconfig_for("root")

    def cluster_url(self, cluster: str = "root") -> str:
        return self.url if cluster == "root" else f"{self.url}/clusters/{cluster}"

    def kubeconfig_for(self, cluster: str) -> Path:
        """A file with an admin kubeconfig of a logical cluster, by client certificate."""
        path = self._folder / f"{cluster}.kubeconfig"
        path.write_text(yaml.dump(self.kubeconfig_dict(cluster)))
        path.chmod(0o600)
        return path

    def kubeconfig_dict(self, cluster: str = "root") -> Object:
        issued = self.server.clusters.issue(cluster, username=ADMIN.username, groups=ADMIN.groups, seconds=86400)
        return certificate_kubeconfig(issued, server=self.cluster_url(cluster), name=cluster)

    def token_kubeconfig_dict(self, cluster: str = "root") -> Object:
        """The same with the fixed bearer token, for clusters named at start."""
        found = self.kubeconfig_dict(cluster)
        found["users"][0]["user"] = {"token": self.token}
        found["clusters"][0]["cluster"]["certificate-authority-data"] = base64.b64encode(self.ca).decode()
        return found

    def create_cluster(self, name: str) -> None:
        """Makes a logical cluster, through a LogicalCluster object of the root cluster."""
        self.run(_make_clusters(self.server, [name]))

    def tls(self) -> ssl.SSLContext:
        """A client context that trusts this server alone."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=self.ca.decode())
        return context

    def run(self, step: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the server's loop and wait for it here."""
        return asyncio.run_coroutine_threadsafe(step, self.loop).result(_PATIENCE)


@asynccontextmanager
async def running_apiserver(
    *,
    store: Store = "memory",
    backend: Backend | None = None,
    definitions: Sequence[ResourceDefinition] | None = None,
    extensions: Mapping[str, Sequence[ResourceDefinition]] | None = None,
    clusters: Sequence[str] = (),
    admission: Sequence[Admission] = (),
    clock: Clock | None = None,
    folder: Path | None = None,
    settings: ApiServerSettings | None = None,
    services: ServiceResolver | None = None,
) -> AsyncIterator[TestServer]:
    """`started_apiserver` for tests that are coroutines."""
    manager = started_apiserver(
        store=store,
        backend=backend,
        definitions=definitions,
        extensions=extensions,
        clusters=clusters,
        admission=admission,
        clock=clock,
        folder=folder,
        settings=settings,
        services=services,
    )
    server = await asyncio.to_thread(manager.__enter__)
    try:
        yield server
    finally:
        await asyncio.to_thread(manager.__exit__, None, None, None)


@contextmanager
def started_apiserver(
    *,
    store: Store = "memory",
    backend: Backend | None = None,
    definitions: Sequence[ResourceDefinition] | None = None,
    extensions: Mapping[str, Sequence[ResourceDefinition]] | None = None,
    clusters: Sequence[str] = (),
    admission: Sequence[Admission] = (),
    clock: Clock | None = None,
    folder: Path | None = None,
    settings: ApiServerSettings | None = None,
    services: ServiceResolver | None = None,
) -> Iterator[TestServer]:
    """Serves the built-in kinds, or `definitions`, from `store` or a given `backend`.

    `extensions` are further kinds by logical cluster; these clusters and `clusters` exist when it is ready. `folder`
    holds state and kubeconfigs, so that a second server can continue from the first one. `services` resolves webhooks
    that are given as services; it is called on the server's loop.
    """
    token, token_everywhere = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
    named = dict.fromkeys([*clusters, *(extensions or {})])

    async def compose(home: Path) -> ApiServer:
        server = await open_server(
            settings or ApiServerSettings(local_webhooks=frozenset({EVERY_CLUSTER})),
            backend or _backend(store, home),
            definitions=definitions,
            tokens={(name, token): ADMIN for name in ("root", *named)} | {(EVERY_CLUSTER, token_everywhere): ADMIN},
            admission=admission,
            clock=clock,
            services=services,
        )
        for cluster, bound in (extensions or {}).items():
            server.extend(cluster, bound)
        await server.start()
        await _make_clusters(server, [name for name in named if name != "root"])
        return server

    with tempfile.TemporaryDirectory() as scratch:
        home = folder or Path(scratch)
        with _threaded(lambda: compose(home)) as (server, loop):
            yield TestServer(server, loop, token, token_everywhere, home)


async def _make_clusters(server: ApiServer, names: Sequence[str]) -> None:
    root = server.local("root")
    for name in names:
        if await root.find(LOGICAL_CLUSTER, name) is None:
            await root.create(
                LOGICAL_CLUSTER,
                {"apiVersion": LOGICAL_CLUSTER.api_version, "kind": LOGICAL_CLUSTER.kind, "metadata": {"name": name}},
            )


def _backend(store: Store, folder: Path) -> Backend:
    return MemoryBackend() if store == "memory" else SqliteBackend(folder / "state.db")


@contextmanager
def _threaded(compose: Callable[[], Awaitable[ApiServer]]) -> Iterator[tuple[ApiServer, asyncio.AbstractEventLoop]]:
    loop = uvloop.new_event_loop()
    started: list[ApiServer] = []
    failed: list[BaseException] = []
    ready = threading.Event()
    stop = asyncio.Event()

    async def serve() -> None:
        server = await compose()
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
    ready.wait(_PATIENCE)
    if failed:
        raise failed[0]
    try:
        yield started[0], loop
    finally:
        if not loop.is_closed():
            loop.call_soon_threadsafe(stop.set)
        thread.join(_PATIENCE)
    if failed:
        raise failed[0]
