"""A cluster with one worker pool, on the embedded API server, and agents on nodes in folders."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from tests.nodeagent.world import Osc, World, text_of
from tests.waiting import until

from hortus.kube import Client, Object, yaml
from hortus.kube.errors import NotFound
from hortus.kube.kubeconfig import load
from hortus.nodeagent.agent import NodeAgent
from hortus.nodeagent.cluster import LEASES, NAMESPACE, NODES, SECRETS
from hortus.nodeagent.converging import checksum_of
from hortus.nodeagent.identity import REQUESTS
from hortus.nodeagent.node import AgentRestart
from hortus.nodeagent.settings import read
from hortus.testing import FakeClock
from hortus.testing.apiserver import TestServer

SECRET = "gardener-node-agent-pool-0123456789abcdef"
EVENTS = "/api/v1/events"


def settings_text(**extras: Any) -> str:
    lines = [f"    {key}: {str(value).lower()}" for key, value in extras.items()]
    return (
        "apiVersion: nodeagent.config.gardener.cloud/v1alpha1\nkind: NodeAgentConfiguration\n"
        "server:\n  healthProbes: {bindAddress: 127.0.0.1, port: 0}\n  metrics: {bindAddress: 127.0.0.1, port: 0}\n"
        f"controllers:\n  operatingSystemConfig:\n    secretName: {SECRET}\n"
        "  token:\n    syncConfigs: [{secretName: access, path: /var/lib/token}]\n"
        + ("hortus:\n" + "\n".join(lines) + "\n" if lines else "")
    )


async def approved_request(admin: Client) -> Object:
    """Approves the CertificateSigningRequest that nobody has approved, once there is one, and returns it."""
    found: list[Object] = []

    async def approved() -> bool:
        for request in (await admin.list(REQUESTS)).items:
            if request.get("status", {}).get("conditions"):
                continue
            condition = {"type": "Approved", "status": "True", "reason": "Test", "message": "test"}
            patch = {"status": {"conditions": [condition]}}
            await admin.patch(REQUESTS, request["metadata"]["name"], patch, subresource="approval")
            found.append(request)
        return bool(found)

    await until(approved)
    return found[0]


class Pool:
    """The cluster as its operator sees it."""

    def __init__(self, server: TestServer, client: Client, clock: FakeClock, *, cluster: str = "root") -> None:
        """`cluster` is the logical cluster of the server."""
        self.server = server
        self.cluster = cluster
        self.client = client
        self.clock = clock

    def agent_kubeconfig(self) -> Object:
        """Returns one with a token where there is one: a certificate would be read in a process of its own."""
        server, cluster = self.server, self.cluster
        return server.token_kubeconfig_dict() if cluster == "root" else server.kubeconfig_dict(cluster)

    async def publish(self, osc: Osc | None, *, checksum: str = "", **annotations: str) -> str:
        """Writes the Secret of the pool; None writes it without content. Returns the checksum."""
        text = text_of(osc) if osc is not None else b""
        checksum = checksum or checksum_of(text)
        secret = {
            "metadata": {"annotations": {"checksum/data-script": checksum, **annotations}},
            "data": {"osc.yaml": base64.b64encode(text).decode()} if osc is not None else {"osc.yaml": None},
        }
        try:
            await self.client.patch(SECRETS, SECRET, secret, NAMESPACE)
        except NotFound:
            metadata = {"name": SECRET, "namespace": NAMESPACE, **secret["metadata"]}
            made = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}
            await self.client.create(SECRETS, made | ({"data": secret["data"]} if osc is not None else {}))
        return checksum

    async def token(self, value: str) -> None:
        data = {"token": base64.b64encode(value.encode()).decode()}
        try:
            await self.client.patch(SECRETS, "access", {"data": data}, NAMESPACE)
        except NotFound:
            metadata = {"name": "access", "namespace": NAMESPACE}
            await self.client.create(
                SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}
            )

    async def register(self, name: str, **annotations: str) -> Object:
        """The kubelet makes its Node."""
        metadata = {"name": name, "labels": {"kubernetes.io/hostname": name}, "annotations": annotations}
        await self.client.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": metadata})
        status = {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}, {"type": "Hostname", "address": name}],
            "conditions": [{"type": "Ready", "status": "True"}],
            "nodeInfo": {"kubeletVersion": "v1.33.1"},
        }
        return await self.client.patch(NODES, name, {"status": status}, subresource="status")

    async def node(self, name: str) -> Object:
        return await self.client.get(NODES, name)

    async def checksum_at(self, name: str) -> str:
        return (await self.node(name))["metadata"].get("annotations", {}).get("checksum/cloud-config-data", "")

    async def lease(self, name: str) -> Object | None:
        try:
            return await self.client.get(LEASES, name, NAMESPACE)
        except NotFound:
            return None

    async def events(self) -> dict[str, str]:
        """The messages of events by reason."""
        found = await self.client.get_raw(EVENTS)
        return {each["reason"]: each.get("note") or each.get("message", "") for each in found["items"]}

    async def reported(self, *reasons: str) -> dict[str, str]:
        """Returns the messages of events once there is one of each reason; the recorder retries by the clock."""

        async def all_there() -> bool:
            await self.clock.advance(0.5)
            return set(reasons) <= (await self.events()).keys()

        await until(all_there)
        return await self.events()


class Machine:
    """A node with its folder, its systemd in memory, and its agent."""

    def __init__(self, pool: Pool, folder: Path, name: str, **extras: Any) -> None:
        self.pool = pool
        self.name = self.hostname = name
        self.world = World(folder, clock=pool.clock)
        self.world.units.system |= {"containerd.service", "kubelet.service"}
        self.kubelet_problem = ""
        self.settings = read(settings_text(**extras))
        self.agent: NodeAgent | None = None
        self.restarts: list[str] = []
        """The reasons for which the agent ended itself."""
        self._is_ending = False

    async def _kubelet(self) -> str:
        return self.kubelet_problem

    def make(self) -> NodeAgent:
        self.world.root.mkdir(parents=True, exist_ok=True)
        kubeconfig = self.world.root / "kubeconfig"
        kubeconfig.write_text(yaml.dump(self.pool.agent_kubeconfig()))
        access = load(kubeconfig).access()
        return NodeAgent(
            self.settings,
            access,
            root=self.world.root,
            config="/var/lib/gardener-node-agent/config-v1.yaml",
            units=self.world.units,
            runtime=self.world.runtime,
            host=self.world.host,
            clock=self.pool.clock,
            named=lambda: self.hostname,
            kubelet=self._kubelet,
            local=lambda address: address == "127.0.0.1",
        )

    async def _run(self) -> None:
        while True:
            self.agent = self.make()
            try:
                await self.agent.run()
            except AgentRestart as restart:
                self.restarts.append(str(restart))
                self.world.units.boot()
                if self._is_ending:
                    # A restart that was asked for at the same time took the place of the cancellation.
                    raise asyncio.CancelledError from None

    def sees_annotation(self, name: str) -> bool:
        """True when the agent's view of its Node has this annotation."""
        assert self.agent is not None
        node = self.agent.view.node if self.agent.view is not None else None
        return node is not None and name in node.metadata.annotations

    def sees_secret(self, checksum: str) -> bool:
        """True when the agent's view of the Secret carries this checksum."""
        assert self.agent is not None
        found = self.agent.secret.secret if self.agent.secret is not None else None
        return found is not None and found.metadata.annotations.get("checksum/data-script") == checksum

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[Machine]:
        """systemd keeps the agent running."""
        self._is_ending = False
        task = asyncio.create_task(self._run())
        try:
            yield self
        finally:
            self._is_ending = True
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert task.cancelled(), task.exception()

    async def applied(self, checksum: str) -> None:
        """Returns when the Node reports this configuration."""

        async def reported() -> bool:
            return await self.pool.checksum_at(self.name) == checksum

        await until(reported)


@contextlib.asynccontextmanager
async def pooled(server: TestServer) -> AsyncIterator[Pool]:
    async with Client.from_kubeconfig(server.kubeconfig) as client:
        yield Pool(server, client, FakeClock())
