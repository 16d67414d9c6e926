"""The admission webhooks of an installation: registered by the chart, served by its pods, trusted by the API server."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.oracles.controlplane import RealServer
from tests.production.rendering import objects
from tests.production.test_permissions import kubeconfig_of
from tests.waiting import until

from hortus.cli.flags import FLAGS
from hortus.cli.install.applying import Installation
from hortus.cli.install.checks import Finding, check
from hortus.cli.install.removing import Removal
from hortus.cli.program import program
from hortus.domains import free_port
from hortus.domains.stacks.types import CLUSTER_STACKS
from hortus.engine import Manager
from hortus.engine.configuration import FlagValues
from hortus.engine.flags import FlagSet
from hortus.engine.kubeconfigs import SECRETS
from hortus.engine.serving import WEBHOOK_CONFIGURATIONS, is_trusted, read_pair
from hortus.kube import Client, Resource
from hortus.kube.errors import ApiError, NotFound
from hortus.kube.objects import Object
from hortus.simulation.capi.definitions import install as install_capi
from hortus.testing.apiserver import TestServer

NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
PLACE, HOME, OTHER = "hortus-system", "kcp-system", "other"


class Site:
    """A management cluster with an installation whose pods are programs of this process."""

    def __init__(self, client: Client, folder: Path, ports: Sequence[int], **config: Any) -> None:
        self.client = client
        self.folder = folder
        self.ports = ports
        values: dict[str, Any] = {
            # A leader that stops lets its successor take its leases: for one and a half of these pauses.
            "config": {"hook-bind-address": "0", "zap-log-level": "error", "leader-election-retry-period": "500ms"}
            | config,
            "garden": {"secretName": ""},
            "watchNamespace": HOME,
            "webhooks": {"url": f"https://127.0.0.1:{ports[0]}"},
        }
        self.wanted = objects(PLACE, values)
        self.said: list[str] = []
        self.installation = Installation(client, self.wanted, self.said.append, namespace=PLACE)

    @asynccontextmanager
    async def pod(self, port: int) -> AsyncIterator[Manager]:
        """A replica with the account and the configuration of the chart."""
        account = await kubeconfig_of(self.client, PLACE, "hortus", self.folder / f"account-{port}")
        file = self.folder / f"config-{port}.yaml"
        file.write_text((await self.client.get(CONFIG_MAPS, "hortus", PLACE))["data"]["config.yaml"])
        words = [
            f"--config={file}",
            f"--kubeconfig={account}",
            f"--webhook-bind-address=127.0.0.1:{port}",
            "--metrics-bind-address=0",
            "--health-probe-bind-address=0",
        ]
        async with program(FlagValues(FlagSet(FLAGS), words, {}).load(), grace=0.0) as manager:
            # A replica that stands by never comes to an end of its start.
            running = asyncio.create_task(manager.run())
            try:
                yield manager
            finally:
                manager.stop()
                await running

    async def rolled_out(self) -> None:
        """Report the Deployment as complete, as its controller does."""
        generation = (await self.client.get(DEPLOYMENTS, "hortus", PLACE))["metadata"]["generation"]
        counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), 2)
        status = {"status": {"observedGeneration": generation, **counts}}
        await self.client.patch(DEPLOYMENTS, "hortus", status, PLACE, subresource="status")

    async def finding(self, subject: str) -> Finding:
        found = {one.subject: one async for one in check(self.client, self.wanted, PLACE)}
        return found[subject]

    async def trusted(self) -> bool:
        try:
            return is_trusted(await self.client.get(WEBHOOK_CONFIGURATIONS, "hortus"))
        except NotFound:
            return False

    async def shown(self, port: int) -> bytes:
        """The certificate that a replica shows, verified as the API server does. Raises ssl.SSLError."""
        pair = read_pair(await self.client.get(SECRETS, "hortus-webhooks", PLACE))
        assert pair is not None
        context = ssl.create_default_context(cadata=pair.bundle.decode())
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        found: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        return found


@pytest.fixture
async def site(either_server: TestServer | RealServer, tmp_path: Path) -> AsyncIterator[Site]:
    async with Client.from_kubeconfig(either_server.kubeconfig) as client:
        for name in (PLACE, HOME, OTHER):
            await client.apply(NAMESPACES, {"metadata": {"name": name}}, field_manager="test")
        await install_capi(client)
        ports = [free_port(), free_port()]
        config = {"stacks": True, "local": True, "release-dir": str(tmp_path / "releases")}
        yield Site(client, tmp_path, ports, **config)


def stack(name: str, version: str, namespace: str = HOME) -> Object:
    spec = {"provider": "docker", "name": "ferrol", "kubernetesVersion": "1.27", "versions": [version]}
    kind = {"apiVersion": CLUSTER_STACKS.api_version, "kind": CLUSTER_STACKS.kind}
    return {**kind, "metadata": {"name": name, "namespace": namespace}, "spec": {**spec, "noProvider": True}}


async def test_an_installation_refuses_a_wrong_object_until_it_is_uninstalled(site: Site) -> None:
    await site.installation.apply()
    assert (await site.finding("webhooks")).state == "failed"
    async with site.pod(site.ports[0]) as first, site.pod(site.ports[1]) as second:
        await site.rolled_out()
        await site.installation.ready(120.0)
        assert site.said[-1] == "waiting for validatingwebhookconfiguration/hortus"
        await until(lambda: _ready(first, second))
        assert str(await site.finding("webhooks")) == "ok       webhooks           hortus, 4 registered"
        assert (await site.finding("RBAC")).state == "ok"
        denied = r"validation\.clusterstack\.clusterstack\.x-k8s\.io.*spec\.versions\[0\]: .*v1-alpha"
        with pytest.raises(ApiError, match=denied):
            await site.client.create(CLUSTER_STACKS, stack("wrong", "v1-alpha"))
        await site.client.create(CLUSTER_STACKS, stack("right", "v1"))
        await site.client.create(CLUSTER_STACKS, stack("wrong", "v1-alpha", OTHER))
        assert await site.shown(site.ports[0]) == await site.shown(site.ports[1])

        # A configuration that is made again is trusted again.
        await site.client.delete(WEBHOOK_CONFIGURATIONS, "hortus")
        await site.installation.apply()
        await until(site.trusted)
        with pytest.raises(ApiError, match=denied):
            await site.client.create(CLUSTER_STACKS, stack("wrong", "v1-alpha"))
        before = (await site.client.get(WEBHOOK_CONFIGURATIONS, "hortus"))["metadata"]["resourceVersion"]
        await site.installation.apply()
        assert (await site.client.get(WEBHOOK_CONFIGURATIONS, "hortus"))["metadata"]["resourceVersion"] == before
    removal = Removal(site.client, PLACE, crds=False, own_namespace=False)
    await removal.plan()
    await removal.apply(site.said.append, timeout=60.0)
    await site.client.create(CLUSTER_STACKS, stack("wrong", "v1-alpha"))


async def _ready(*replicas: Manager) -> bool:
    results = [await replica.readiness.run() for replica in replicas]
    return all("admission-webhooks" in one and not any(one.values()) for one in results)
