"""Sets that kubectl and we work on in turn (KEP-3659). kubectl refuses a parent whose id it computes otherwise."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.engine.applysets.objects import policy

from hortus.engine.applysets import ApplySet, ConfigMapParent, ObjectAction
from hortus.kube import Client, yaml
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, Resource
from hortus.testing.apiserver import TestServer, running_apiserver

CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap")
APPLY = (
    *("kubectl", "apply", "-n", "default", "--server-side", "--force-conflicts"),
    *("--prune", "--applyset=configmaps/interop"),
)
TOOLING = "kubectl/v1.32.0"

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")


def configmap(name: str, **data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data}


def kubectl_applies(server: TestServer, folder: Path, objects: list[Object]) -> str:
    path = folder / "objects.yaml"
    path.write_text("---\n".join(yaml.dump(obj) for obj in objects))
    done = subprocess.run(
        [*APPLY, "-f", str(path)],
        env={
            **os.environ,
            "KUBECONFIG": str(server.kubeconfig),
            "KUBECTL_APPLYSET": "true",
            # By default it is keyed by the port, which another server may have had.
            "KUBECACHEDIR": str(folder / "cache"),
        },
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


async def names(client: Client) -> set[str]:
    found = (await client.list(CONFIGMAPS, "default")).items
    return {obj["metadata"]["name"] for obj in found} - {"kube-root-ca.crt"}


async def test_kubectl_prunes_what_we_applied_and_we_prune_what_kubectl_applied(tmp_path: Path) -> None:
    async with running_apiserver() as server, Client.from_kubeconfig(server.kubeconfig) as client:

        def ours() -> ApplySet:
            return ApplySet.of(client, ConfigMapParent(client, "interop", "default", tooling=TOOLING), policy=policy())

        assert (await ours().apply([configmap("a", n="1"), configmap("b", n="1")])).complete
        printed = kubectl_applies(server, tmp_path, [configmap("b", n="2"), configmap("c", n="2")])
        assert "configmap/a pruned" in printed
        assert await names(client) == {"b", "c", "interop"}

        report = await ours().apply([configmap("c", n="3"), configmap("d", n="3")])
        assert report.message() == ""
        assert [outcome.member.name for outcome in report.of(ObjectAction.PRUNED)] == ["b"]
        assert await names(client) == {"c", "d", "interop"}

        kubectl_applies(server, tmp_path, [configmap("e", n="4")])
        assert await names(client) == {"e", "interop"}
        assert (await ours().delete()).complete
        with pytest.raises(NotFound):
            await client.get(CONFIGMAPS, "interop", "default")


async def test_kubectl_leaves_our_own_sets_alone(tmp_path: Path) -> None:
    async with running_apiserver() as server, Client.from_kubeconfig(server.kubeconfig) as client:
        ours = ApplySet.of(client, ConfigMapParent(client, "interop", "default"), policy=policy())
        await ours.apply([configmap("a")])
        with pytest.raises(AssertionError, match="tooling"):
            kubectl_applies(server, tmp_path, [configmap("b")])
        assert await names(client) == {"a", "interop"}
