"""All listeners of the product, each started with limits that a test chooses."""

from __future__ import annotations

import asyncio
import ssl
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, cast

from prometheus_client import CollectorRegistry
from tests.domains.modules.watching.agent.world import World as AgentWorld
from tests.waiting import until

from hortus.apiserver import ApiServerSettings, ServerLimits
from hortus.cli.up.metrics import metrics_at
from hortus.dashboard.server import Dashboard
from hortus.dashboard.serving import listening, origins_of, settings_for, tickets_at
from hortus.domains.garden.audit.buffer.committing import Committer
from hortus.domains.garden.audit.buffer.metrics import BufferMetrics
from hortus.domains.garden.audit.buffer.server import AuditWebhook
from hortus.domains.modules.watching.agent.buffer import EventBuffer
from hortus.domains.modules.watching.agent.metrics import AgentMetrics
from hortus.domains.modules.watching.agent.server import running
from hortus.domains.modules.watching.agent.settings import from_environment
from hortus.domains.modules.watching.listener import EventListener
from hortus.domains.modules.watching.metrics import WatcherMetrics
from hortus.domains.modules.watching.receiving import EventReceiver
from hortus.engine.health import Address, HealthServer
from hortus.engine.serving import ADMITTED, AdmissionVerdict, HttpsServer, ReviewRequest, review_handler, self_signed
from hortus.kube import Access
from hortus.kube.clock import SystemClock
from hortus.kube.listeners import ListenerLimits
from hortus.kube.tls import server_context
from hortus.nodeagent.serving import PlainReply, served
from hortus.nodeagent.settings import Endpoint
from hortus.simulation.glance.server import CloudServer
from hortus.simulation.registry.folder import RegistryFolder
from hortus.simulation.registry.server import RegistryServer
from hortus.simulation.releases.server import GitHubServer
from hortus.testing.apiserver import running_apiserver

LOOPBACK = Address("127.0.0.1", 0)
_PAIR = self_signed(["localhost"], now=0.0)


class Listening(NamedTuple):
    """A listener that is being served, and a request that it answers."""

    place: int | Path
    asked: str
    answer: str
    """The status of the answer."""
    tls: bool = False
    posted: str = ""
    """The path to which bodies are sent."""
    headers: Mapping[str, str] = MappingProxyType({})

    async def connect(
        self, sender: str = "127.0.0.1", *, plain: bool = False
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection after its handshake, or with `plain` before."""
        if isinstance(self.place, Path):
            return await asyncio.open_unix_connection(str(self.place))
        context = None
        if self.tls and not plain:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return await asyncio.open_connection("127.0.0.1", self.place, ssl=context, local_addr=(sender, 0))

    def request(self) -> bytes:
        return f"{self.asked} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()

    def body_head(self, length: int) -> bytes:
        sent = {"Host": "localhost", "Content-Length": str(length), **self.headers}
        lines = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
        return f"POST {self.posted} HTTP/1.1\r\n{lines}\r\n".encode()


SPEAK_TLS = ("webhooks, runtime hooks", "listener of watchers", "agent: webhook", "dashboard", "API server")
READ_NO_BODY = ("probes and metrics", "agent: metrics", "metrics of a child", "node agent", "simulated releases")

Start = Callable[[ListenerLimits], AbstractAsyncContextManager[Listening]]


@asynccontextmanager
async def _probes(limits: ListenerLimits) -> AsyncIterator[Listening]:
    server = HealthServer(LOOPBACK, limits=limits)
    await server.start()
    try:
        yield Listening(server.port, "GET /healthz", "200")
    finally:
        await server.stop()


@asynccontextmanager
async def _webhooks(limits: ListenerLimits) -> AsyncIterator[Listening]:
    async def judge(request: ReviewRequest) -> AdmissionVerdict:
        return ADMITTED

    server = HttpsServer("webhooks", LOOPBACK, {"/judge": review_handler(judge)}, limits=limits)
    server.identify(_PAIR)
    serving = asyncio.create_task(server.run())
    try:
        yield Listening(await until(lambda: server.port), "GET /judge", "405", tls=True, posted="/judge")
    finally:
        serving.cancel()
        await asyncio.wait((serving,))


@asynccontextmanager
async def _events(limits: ListenerLimits) -> AsyncIterator[Listening]:
    metrics = WatcherMetrics(CollectorRegistry())
    receiver = cast(EventReceiver, None)  # no request of these tests shows a certificate
    tls = server_context(certificate=_PAIR.certificate, key=_PAIR.key)
    listener = EventListener(LOOPBACK, receiver, metrics, clock=SystemClock(), tls=tls, limits=limits)
    await listener.start()
    try:
        path = "/v2/lifecycle-manager/event"
        yield Listening(listener.port, f"GET {path}", "405", tls=True, posted=path)
    finally:
        await listener.stop()


@asynccontextmanager
async def _audit(limits: ListenerLimits) -> AsyncIterator[Listening]:
    metrics = BufferMetrics(CollectorRegistry())
    webhook = AuditWebhook(LOOPBACK, cast(Committer, None), metrics, tls=None, limits=limits)
    await webhook.start()
    try:
        yield Listening(webhook.port, "GET /audit", "405", posted="/audit")
    finally:
        await webhook.stop()


def _agent(place: str) -> Start:
    @asynccontextmanager
    async def start(limits: ListenerLimits) -> AsyncIterator[Listening]:
        with tempfile.TemporaryDirectory() as folder:
            buffer = EventBuffer(None, limit=1 << 20)
            settings = from_environment(AgentWorld(Path(folder)).environment | {"KCP_ADDR": "127.0.0.1:1"})
            metrics = AgentMetrics(buffer, CollectorRegistry())
            async with running(settings, metrics, buffer, clock=SystemClock(), limits=limits) as agent:
                if place == "metrics":
                    yield Listening(agent.metrics_port, "GET /healthz", "200")
                else:
                    path = "/validate/lifecycle-manager"
                    yield Listening(agent.webhook_port, f"GET {path}", "405", tls=True, posted=path)
            buffer.close()

    return start


def _dashboard() -> Dashboard:
    return Dashboard(settings_for(Access(server="http://127.0.0.1:1"), origins_of("http://hortus.localhost:1")))


@asynccontextmanager
async def _pages(limits: ListenerLimits) -> AsyncIterator[Listening]:
    tls = server_context(certificate=_PAIR.certificate, key=_PAIR.key)
    async with listening(_dashboard(), host="127.0.0.1", port=0, tls=tls, limits=limits) as port:
        yield Listening(port, "GET /healthz", "200", tls=True, posted="/login")


@asynccontextmanager
async def _tickets(limits: ListenerLimits) -> AsyncIterator[Listening]:
    with tempfile.TemporaryDirectory() as folder:  # a path of a socket is short
        path = Path(folder, "dashboard.sock")
        async with tickets_at(path, _dashboard(), "http://localhost", limits=limits):
            yield Listening(path, "GET /ticket", "405", posted="/ticket")


@asynccontextmanager
async def _metrics(limits: ListenerLimits) -> AsyncIterator[Listening]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "controllers.sock")
        async with metrics_at(path, CollectorRegistry(), limits=limits):
            yield Listening(path, "GET /metrics", "200")


@asynccontextmanager
async def _nodeagent(limits: ListenerLimits) -> AsyncIterator[Listening]:
    async with served(Endpoint("127.0.0.1", 0), {"/healthz": lambda: PlainReply(200, "ok")}, limits=limits) as port:
        yield Listening(port, "GET /healthz", "200")


@asynccontextmanager
async def _cloud(limits: ListenerLimits) -> AsyncIterator[Listening]:
    async with CloudServer(limits=limits) as cloud:
        port = int(cloud.url.rpartition(":")[2])
        yield Listening(port, "GET /image/v2/images", "401", posted="/identity/v3/auth/tokens")


@asynccontextmanager
async def _registry(limits: ListenerLimits) -> AsyncIterator[Listening]:
    with tempfile.TemporaryDirectory() as folder:
        async with RegistryServer(RegistryFolder(Path(folder)), limits=limits) as registry:
            port = int(registry.address.rpartition(":")[2])
            yield Listening(port, "GET /v2/", "200", posted=f"/v2/a/blobs/uploads/?digest=sha256:{'0' * 64}")


@asynccontextmanager
async def _releases(limits: ListenerLimits) -> AsyncIterator[Listening]:
    with tempfile.TemporaryDirectory() as folder:
        async with GitHubServer(Path(folder), owner="a", repository="b", limits=limits) as server:
            yield Listening(int(server.url.rpartition(":")[2]), "GET /repos/a/b", "200")


@asynccontextmanager
async def _apiserver(limits: ListenerLimits) -> AsyncIterator[Listening]:
    settings = ApiServerSettings(
        limits=ServerLimits(
            connections=limits.connections,
            tls_hello=limits.tls_hello,
            first_request=limits.head,
            idle=limits.idle,
            body=limits.body,
            stalled=limits.stalled,
        )
    )
    async with running_apiserver(settings=settings) as server:
        yield Listening(
            server.server.port,
            "GET /version",
            "200",
            tls=True,
            posted="/api/v1/namespaces/default/configmaps",
            headers={"Authorization": f"Bearer {server.token}"},
        )


LISTENERS: Mapping[str, Start] = {
    "probes and metrics": _probes,
    "webhooks, runtime hooks": _webhooks,
    "listener of watchers": _events,
    "agent: webhook": _agent("webhook"),
    "agent: metrics": _agent("metrics"),
    "audit receiver": _audit,
    "dashboard": _pages,
    "tickets of the dashboard": _tickets,
    "metrics of a child": _metrics,
    "node agent": _nodeagent,
    "simulated cloud": _cloud,
    "simulated registry": _registry,
    "simulated releases": _releases,
    "API server": _apiserver,
}
