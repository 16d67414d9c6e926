"""`hortus why` on a cluster with an installation: the reason for which nobody reconciles a Runtime."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest
from click.testing import CliRunner, Result
from tests.cli.conftest import user_kubeconfig
from tests.docs.consoles import ROOT
from tests.production.rendering import objects
from tests.production.test_install import DEPLOYMENTS, NAMESPACES

from hortus.cli.install.applying import Installation
from hortus.cli.install.present import unserved_reason
from hortus.cli.shell import app
from hortus.domains.clusters.types import RUNTIMES
from hortus.kube import Client, Resource, yaml
from hortus.kube.kubeconfig import write
from hortus.kube.objects import Object
from hortus.testing.apiserver import TestServer, running_apiserver

HERE = "hortus-system"
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
CONVERTED = {"converterConfigMap": "converter"}
READY = {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2, "readyReplicas": 2}


class Place(NamedTuple):
    server: TestServer
    client: Client

    async def install(self, *, ready: bool = True, **values: Any) -> None:
        await self.client.apply(NAMESPACES, {"metadata": {"name": "kcp-system"}}, field_manager="test")
        wanted = objects(HERE, {"garden": {"projectName": "demo"}, **values})
        await Installation(self.client, wanted, str, namespace=HERE).apply()
        if ready:
            await self.client.patch(DEPLOYMENTS, "hortus", {"status": READY}, HERE, subresource="status")
        runtime: Object = yaml.load((ROOT / "examples" / "runtimes" / "aws.yaml").read_bytes())
        await self.client.apply(RUNTIMES, runtime, field_manager="test")

    async def why(self, *words: str) -> Result:
        runner = CliRunner(env={"GARDEN_KUBECONFIG": "", "KUBECONFIG": str(self.server.kubeconfig)})
        return await asyncio.to_thread(runner.invoke, app, ["why", "aws", *words])


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    async with running_apiserver() as server, Client.from_kubeconfig(server.kubeconfig) as client:
        yield Place(server, client)


async def test_runtimes_that_the_installation_does_not_serve_say_why(place: Place) -> None:
    await place.install()
    found = await place.why()
    assert found.exit_code == 1
    (line,) = (line for line in found.output.splitlines() if line.startswith("Served:"))
    assert line.startswith("Served:      Runtimes are not served because there is no converter configuration at ")
    assert line.endswith("in the chart runtimes.converterConfigMap)")
    assert "Turn of:     operator: have Runtimes served; `hortus check` names what is missing" in found.output
    as_json = orjson.loads((await place.why("-o", "json")).output)
    assert as_json["unserved"].startswith("there is no converter configuration")
    assert await unserved_reason(place.client, "GardenerCluster", "kcp-system") == ""


async def test_runtimes_that_are_served_have_no_such_line(place: Place) -> None:
    await place.install(runtimes=CONVERTED)
    found = await place.why()
    assert "Served:" not in found.output
    assert "it was not reconciled yet" in found.output


async def test_an_installation_without_a_ready_pod_serves_nothing(place: Place) -> None:
    await place.install(ready=False, runtimes=CONVERTED)
    found = await place.why()
    assert (
        "Served:      Runtimes are not served because Deployment hortus-system/hortus has no ready pod" in found.output
    )


async def test_a_namespace_that_nobody_watches_is_named(place: Place) -> None:
    await place.client.create(NAMESPACES, {"metadata": {"name": "elsewhere"}})
    await place.install(watchNamespace="elsewhere", runtimes=CONVERTED)
    reason = await unserved_reason(place.client, RUNTIMES.kind, "kcp-system")
    assert reason == "the controllers watch namespace elsewhere, and not kcp-system (watchNamespace of the chart)"


async def test_a_configuration_that_no_process_accepts_is_the_reason(place: Place) -> None:
    await place.install(runtimes=CONVERTED)
    patch = {"data": {"config.yaml": "watch-namespace: kcp-system\nno-such-flag: 1\n"}}
    await place.client.patch(CONFIG_MAPS, "hortus", patch, HERE)
    reason = await unserved_reason(place.client, RUNTIMES.kind, "kcp-system")
    assert reason.startswith(
        "the configuration of the controllers is wrong: flag provided but not defined: --no-such-flag"
    )


async def test_nothing_is_claimed_without_an_installation_that_may_be_seen(place: Place, tmp_path: Path) -> None:
    assert await unserved_reason(place.client, RUNTIMES.kind, "kcp-system") == ""
    await place.install()
    path = tmp_path / "nobody"
    write(path, user_kubeconfig(place.server, "root", "nobody"))
    async with Client.from_kubeconfig(path) as nobody:
        assert await unserved_reason(nobody, RUNTIMES.kind, "kcp-system") == ""
