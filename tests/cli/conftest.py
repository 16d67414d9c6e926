"""A small fleet without controllers, for commands to look at, and a way to type them."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner
from tests.simulation.garden import started_garden
from tests.simulation.shoots import small_shoot

from hortus.apiserver.clusters import certificate_kubeconfig
from hortus.cli.shell import app
from hortus.domains.credentials import service
from hortus.domains.credentials.types import GARDENER_CLUSTERS, GardenerCluster, Label
from hortus.engine import read
from hortus.engine.kubeconfigs import SECRETS, IssuedKubeconfig
from hortus.kube import Client, Resource, yaml
from hortus.kube.clock import SystemClock
from hortus.kube.objects import Object
from hortus.schema import crd
from hortus.simulation.garden.kinds import SHOOTS
from hortus.simulation.settings import GardenSettings
from hortus.testing.apiserver import TestServer

NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
NOW = SystemClock().now()


class Answer(NamedTuple):
    code: int
    out: str
    err: str


class Fleet(NamedTuple):
    server: TestServer
    folder: Path
    """As a state directory of `hortus up`: holds both kubeconfigs."""

    def type(self, *words: str, where: bool = True) -> Answer:
        """Type `hortus WORDS`; `where` adds which fleet is meant."""
        options = ["--state-dir", str(self.folder)] if where else []
        result = CliRunner(env={"KUBECONFIG": "", "GARDEN_KUBECONFIG": "", "COLUMNS": "200"}).invoke(
            app, [*words, *options]
        )
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Answer(result.exit_code, result.stdout, result.stderr)

    def run(self, step: Callable[[Client], Any]) -> Any:
        """Do something as the admin of the management cluster."""

        async def work() -> Any:
            async with Client.from_kubeconfig(self.folder / "kubeconfig") as client:
                return await step(client)

        import asyncio

        return asyncio.run(work())


def cluster(
    name: str, *, state: str = "Ready", reason: str = "KubeconfigSecretCreated", message: str = "Fine."
) -> Object:
    condition = {
        "type": "KubeconfigManagement",
        "status": "True" if state == "Ready" else "False",
        "reason": reason,
        "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    return {
        "apiVersion": GARDENER_CLUSTERS.api_version,
        "kind": GARDENER_CLUSTERS.kind,
        "metadata": {
            "name": name,
            "namespace": "kcp-system",
            "labels": {Label.SHOOT_NAME: name, Label.RUNTIME_ID: f"id-{name}"},
        },
        "spec": {
            "shoot": {"name": name},
            "kubeconfig": {"secret": {"name": f"kubeconfig-{name}", "namespace": "kcp-system", "key": "config"}},
        },
        "status": {"state": state, "conditions": [condition]},
    }


async def _fill(server: TestServer) -> None:
    async with Client.from_kubeconfig(server.kubeconfig) as client:
        await client.apply(CRDS, crd(GardenerCluster), field_manager="tests")
        await client.create(NAMESPACES, {"metadata": {"name": "kcp-system"}})
        for made in (
            cluster("one"),
            cluster("two", state="Error", reason="FailedToGetKubeconfig", message="No shoot."),
        ):
            created = await client.create(GARDENER_CLUSTERS, made)
            name = created["metadata"]["name"]
            status = {"status": made["status"]}
            await client.patch(GARDENER_CLUSTERS, name, status, "kcp-system", subresource="status")
        content = yaml.dump(server.kubeconfig_dict("shoot--demo--one")).encode()
        made = read(GardenerCluster, await client.get(GARDENER_CLUSTERS, "one", "kcp-system"))
        issued = IssuedKubeconfig(content, NOW, NOW + 86400, "")
        await client.create(SECRETS, service.secret_plan(made).created(issued))
    async with Client.from_kubeconfig(server.kubeconfig_for("garden")) as garden:
        await garden.create(NAMESPACES, {"metadata": {"name": "garden-demo"}})
        shoot = small_shoot("demo", 1)
        shoot["metadata"] = {"name": "one", "namespace": "garden-demo"}
        await garden.create(SHOOTS, shoot)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    import asyncio

    folder = tmp_path_factory.mktemp("fleet")
    with started_garden(GardenSettings(), folder) as server:
        server.create_cluster("shoot--demo--one")
        asyncio.run(_fill(server))
        for cluster, name in (("root", "kubeconfig"), ("garden", "garden.kubeconfig")):
            server.kubeconfig_for(cluster).rename(folder / name)
        yield Fleet(server, folder)


def user_kubeconfig(server: TestServer, cluster: str, username: str) -> Object:
    """A kubeconfig of a user without roles of their own, by client certificate."""
    issued = server.server.clusters.issue(cluster, username=username, groups=("system:authenticated",), seconds=86400)
    return certificate_kubeconfig(issued, server=server.cluster_url(cluster), name=cluster)


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()
