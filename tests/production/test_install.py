"""`hortus install` and `uninstall` on an API server, as typed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.scenarios.running import hortus, kubectl

from hortus.cli.install.applying import Installation
from hortus.cli.install.chart import objects
from hortus.kube import Client, Resource, yaml
from hortus.terminal import EXIT_TIMEOUT, CommandError
from hortus.testing.apiserver import TestServer, running_apiserver, started_apiserver

DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")


@pytest.fixture(scope="module")
def server() -> Iterator[TestServer]:
    with started_apiserver() as running:
        yield running


def on(server: TestServer, *words: str) -> list[str]:
    done = hortus("--kubeconfig", str(server.kubeconfig), *words)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_it_installs_upgrades_and_leaves_what_is_the_clusters(server: TestServer) -> None:
    kubectl(server.kubeconfig, "create", "namespace", "kcp-system")
    first = on(server, "install", "--no-wait")
    assert first[0] == "namespace/hortus-system created"
    assert "deployment/hortus in hortus-system created" in first
    assert {line.rpartition(" ")[2] for line in first} == {"created"}
    again = on(server, "install", "--no-wait")
    assert {line.rpartition(" ")[2] for line in again} == {"unchanged"}
    changed = on(server, "install", "--no-wait", "--set", "replicaCount=3", "--set", "image.tag=v2")
    assert [line for line in changed if line.endswith("configured")] == [
        "deployment/hortus in hortus-system configured"
    ]
    shown = kubectl(server.kubeconfig, "-n", "hortus-system", "get", "deployment", "hortus", "-o", "yaml").stdout
    deployment = yaml.load(shown)
    assert deployment["spec"]["replicas"] == 3
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "hortus:v2"
    removed = on(server, "uninstall", "--yes")
    assert "customresourcedefinition/gardenerclusters.infrastructuremanager.kyma-project.io kept" in removed
    assert kubectl(server.kubeconfig, "get", "crd", "-o", "name").stdout != ""
    assert kubectl(server.kubeconfig, "-n", "hortus-system", "get", "deployment,role,secret", "-o", "name").stdout == ""


def test_what_it_prints_can_be_applied_by_kubectl(server: TestServer, tmp_path: Path) -> None:
    file = tmp_path / "hortus.yaml"
    file.write_text("\n".join(on(server, "install", "--export", "-n", "default", "--set", "watchNamespace=default")))
    applied = kubectl(server.kubeconfig, "apply", "--server-side", "-f", str(file))
    assert applied.returncode == 0, applied.stderr
    assert "deployment.apps/hortus serverside-applied" in applied.stdout


def test_a_kind_that_the_cluster_lacks_is_named_with_the_way_out(server: TestServer) -> None:
    words = ("install", "--no-wait", "--set", "prometheus.servicemonitor.enabled=true", "-n", "default")
    done = hortus("--kubeconfig", str(server.kubeconfig), *words, "--set", "watchNamespace=default")
    assert done.returncode == 1
    assert "servicemonitor/hortus in default: the cluster has no kind ServiceMonitor" in done.stderr
    assert "or turn off the value that asks for it" in done.stderr


async def test_it_waits_until_the_deployment_is_rolled_out_and_says_what_was_not_ready() -> None:
    async with running_apiserver() as server, Client.from_kubeconfig(server.kubeconfig) as client:
        told: list[str] = []
        installation = Installation(client, objects("default", {"watchNamespace": "default"}), told.append)
        await installation.apply()
        with pytest.raises(CommandError, match=r"deployment/hortus in default was not ready within 0.1 s") as caught:
            await installation.ready(0.1)
        assert caught.value.code == EXIT_TIMEOUT
        waiting = asyncio.create_task(installation.ready(30.0))
        status = {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2}
        await client.patch(DEPLOYMENTS, "hortus", {"status": status}, "default", subresource="status")
        await waiting
        assert told[-1] == "waiting for deployment/hortus in default"
