"""Puts the agent together: one client, the watches, and the controllers as tasks of one group.

The engine of the other controllers is not used here: with its HTTP library a process begins above the memory that a
node grants. The caches, the reflector, the events and the outcomes are the engine's; transport and loops are small.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from pathlib import Path

import structlog

from hortus.engine.events import EventRecorder
from hortus.kube import Access, Client, Clock, ConnectionSettings, SystemClock, durations
from hortus.kube.errors import TransportError
from hortus.nodeagent import identity
from hortus.nodeagent.cluster import COMPONENT, NODES, NodeView, SecretView, secret_value
from hortus.nodeagent.disk import Disk
from hortus.nodeagent.health import NodeHealth, kubelet_health
from hortus.nodeagent.leasing import NodeLease
from hortus.nodeagent.node import AgentRestart, Node, own_path
from hortus.nodeagent.nodeupdates import NodeUpdates
from hortus.nodeagent.nodewatch import NodeRequests, host_name, until_renamed
from hortus.nodeagent.osc import OscRegistryHost
from hortus.nodeagent.reconciling import OscController, ReconcileOptions
from hortus.nodeagent.seams import MachineControl, NodeRuntime, UnitControl
from hortus.nodeagent.serving import PlainReply, Sample, exposition, served
from hortus.nodeagent.settings import NodeAgentConfiguration, read
from hortus.nodeagent.state import SCRATCH, NodeMemory
from hortus.nodeagent.tokens import TokenSync
from hortus.nodeagent.unitcheck import UnitCheck
from hortus.nodeagent.wire import LeanTransport, status_of

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

_PROBE_TIMEOUT = 1.0
_HELPS = {
    "rest_client_requests_total": ("counter", "Requests to the API server by method and status; WATCH opens a watch."),
    "hortus_node_agent_synced": ("gauge", "1 when the watches have listed what they follow."),
}


class NodeAgent:
    """One agent. `run` ends by AgentRestart only, or by cancellation."""

    def __init__(
        self,
        settings: NodeAgentConfiguration,
        access: Access,
        *,
        root: Path,
        config: str,
        units: UnitControl,
        runtime: NodeRuntime,
        host: MachineControl,
        clock: Clock,
        named: Callable[[], str] = host_name,
        kubelet: Callable[[], Awaitable[str]] = kubelet_health,
        local: Callable[[str], bool] | None = None,
        path: str | None = None,
    ) -> None:
        """`root` is the folder of the node's files, `config` the path of the configuration file on the node, `named`
        returns the name of the host, `path` is the variable PATH for containerd (this process's own)."""
        self.settings = settings
        self._clock = clock
        self._config = config
        self._named = named
        self._hostname = named()
        connection = settings.client_connection
        self.transport = LeanTransport(
            access,
            settings=ConnectionSettings(qps=connection.qps, burst=connection.burst, user_agent=COMPONENT),
            # Retries follow the network's time, whatever clock the controllers have.
            clock=SystemClock(),
        )
        self.client = Client.over(self.transport)
        self._disk = Disk(root, scratch=SCRATCH)
        self._units = units
        self._runtime = runtime
        self._host = host
        self._kubelet = kubelet
        self._local = local
        self._path = own_path() if path is None else path
        self._events = EventRecorder(self.client, component=COMPONENT, instance=self._hostname, clock=clock)
        self._synced: Callable[[], bool] = lambda: False
        self.view: NodeView | None = None
        self.secret: SecretView | None = None
        self.ports = (0, 0)
        """The ports of probes and metrics, once they are open."""

    async def run(self) -> None:
        self._disk.clear()
        await self._events.start()
        try:
            async with self._servers():
                await self._work()
        finally:
            await self._events.stop()
            await self.client.close()

    async def _work(self) -> None:
        client, clock, settings = self.client, self._clock, self.settings
        view = self.view = NodeView(
            client, clock, hostname=self._hostname, name=await self._node_name(), events=self._events
        )
        secret = self.secret = SecretView(client, clock, settings.secret_name)
        controllers, machine = settings.controllers, machine_name(self._disk, self._hostname)
        tokens = TokenSync(
            client,
            self._disk,
            clock,
            controllers.token.sync_configs,
            period=durations.seconds(controllers.token.sync_period),
            event=view.event,
        )
        node = Node(
            files=self._disk,
            units=self._units,
            runtime=self._runtime,
            host=self._host,
            reports=NodeUpdates(client, view, self._disk, clock, tokens, machine=machine, settings=self._current),
            kubelet=self._kubelet,
            secret=self._secret,
            probe=self._probe,
            clock=clock,
            event=view.event,
            hostname=self._hostname,
            path=self._path,
        )
        memory = NodeMemory(self._disk)
        health = NodeHealth(node, view, clock, kubelet=self._kubelet, local=self._local)
        check = controllers.systemd_unit_check
        parts = {
            "node watch": view.run(),
            "secret watch": secret.run(),
            "configuration": OscController(
                client,
                node,
                view,
                secret,
                memory,
                clock,
                options=self._options(),
                tokens=tokens,
                problems=health.problems,
            ).run(),
            "tokens": tokens.run(),
            "lease": NodeLease(client, view, clock).run(),
            "health": health.run(),
            "units": UnitCheck(
                node,
                view,
                memory,
                clock,
                period=durations.seconds(check.sync_period),
                stuck=durations.seconds(check.stuck_threshold),
            ).run(),
            "requests": NodeRequests(node, view, secret_name=settings.secret_name, config=self._config).run(),
            "host name": until_renamed(clock, self._hostname, self._named),
            "certificate": identity.until_renewed(client, self._disk, settings.kubeconfig, clock, machine=machine),
        }
        self._synced = lambda: view.has_synced and secret.has_synced and tokens.has_synced
        await _together(parts)

    def _current(self) -> NodeAgentConfiguration:
        """The configuration file as it is now; the one of the start where it is gone."""
        text = self._disk.read(self._config)
        return read(text) if text is not None else self.settings

    def _options(self) -> ReconcileOptions:
        extras = self.settings.hortus
        return ReconcileOptions(
            sync_period=self.settings.sync_period,
            kubernetes_version=self.settings.kubernetes_version,
            repair_drift=extras.repair_drift,
            roll_back=extras.roll_back,
            patience=durations.seconds(extras.health_patience),
        )

    async def _node_name(self) -> str:
        """The name of this host's Node; empty before there is one. Several are reported by the watch."""
        listed = await self.client.list(NODES, labels=f"kubernetes.io/hostname={self._hostname}", metadata_only=True)
        return str(listed.items[0]["metadata"]["name"]) if len(listed.items) == 1 else ""

    async def _secret(self, name: str, key: str) -> bytes:
        return await secret_value(self.client, name, key)

    async def _probe(self, host: OscRegistryHost) -> bool:
        authorities = {path: self._disk.read(path) for path in host.ca_certs}
        if missing := [path for path, content in authorities.items() if content is None]:
            _log.debug("an authority of a registry is missing", url=host.url, paths=missing)
            return False
        try:
            await status_of(host.url, timeout=_PROBE_TIMEOUT, ca=b"".join(filter(None, authorities.values())))
        except (TransportError, ValueError) as error:
            # Go takes no offence at an authority that is no certificate, and does not trust the host.
            _log.debug("a host of a registry does not answer", url=host.url, error=str(error))
            return False
        return True

    @contextlib.asynccontextmanager
    async def _servers(self) -> AsyncIterator[None]:
        server = self.settings.server
        probes = {"/healthz": self._health, "/readyz": self._ready}
        async with (
            served(server.health_probes, probes) as health_port,
            served(server.metrics, {"/metrics": self._metrics}) as metrics_port,
        ):
            _log.info("the agent runs", health_port=health_port, metrics_port=metrics_port, host=self._hostname)
            self.ports = health_port, metrics_port
            yield

    def _health(self) -> PlainReply:
        return PlainReply(200, "ok\n")

    def _ready(self) -> PlainReply:
        return PlainReply(200, "ok\n") if self._synced() else PlainReply(503, "the watches have not listed yet\n")

    def _metrics(self) -> PlainReply:
        samples = [
            Sample("rest_client_requests_total", {"method": method, "code": code}, count)
            for (method, code), count in sorted(self.transport.calls.items())
        ]
        samples.append(Sample("hortus_node_agent_synced", {}, float(self._synced())))
        return PlainReply(200, exposition(samples, _HELPS))


def machine_name(disk: Disk, hostname: str) -> str:
    """The name of the machine, as the machine controller wrote it; the host's where it did not."""
    return (disk.read(identity.MACHINE_NAME) or b"").decode().strip() or hostname


async def _together(parts: Mapping[str, Awaitable[None]]) -> None:
    """Runs all parts. Raises AgentRestart when one asks for it; the failure of one ends all."""
    tasks: Collection[asyncio.Task[None]] = [
        asyncio.create_task(_awaited(part), name=name) for name, part in parts.items()
    ]
    try:
        async with asyncio.TaskGroup() as group:
            for task in tasks:
                group.create_task(_awaited(task))
    except* AgentRestart as restarts:
        raise AgentRestart(str(restarts.exceptions[0])) from None
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _awaited(part: Awaitable[None]) -> None:
    await part
