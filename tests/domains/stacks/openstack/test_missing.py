"""Without the CRDs of the OpenStack provider the rest of a process works, and the log names them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import aiohttp
from structlog.testing import capture_logs
from tests.domains.stacks.catalog.world import NAMESPACES
from tests.domains.stacks.releasing import write_release
from tests.waiting import until

from hortus.cli.flags import FLAGS
from hortus.cli.program import program
from hortus.domains import free_port
from hortus.domains.stacks import types
from hortus.engine.flags import FlagSet
from hortus.kube import Client
from hortus.schema import crd
from hortus.simulation.capi.definitions import CRDS, install
from hortus.testing.apiserver import TestServer
from hortus.testing.waiting import wait_for

TAG = "docker-ferrol-1-27-v1"
SERVED = (types.ClusterStack, types.ClusterStackRelease, types.ClusterAddon, types.StackPolicy)
MISSING = (
    types.OpenStackClusterStackRelease,
    types.OpenStackClusterStackReleaseTemplate,
    types.OpenStackNodeImageRelease,
)


def flags(server: TestServer, folder: Path, port: int) -> tuple[str, ...]:
    return (
        f"--kubeconfig={server.kubeconfig}",
        "--gardener-kubeconfig-path=",
        "--metrics-bind-address=0",
        f"--health-probe-bind-address=127.0.0.1:{port}",
        "--audit-log-mandatory=false",
        "--allow-local-clusters",
        "--stacks",
        "--local",
        f"--release-dir={folder}",
        "--watch-namespace=stacks",
        "--hook-bind-address=0",
        "--webhook-bind-address=0",
    )


async def ready(port: int) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/readyz?verbose") as answer:
        return answer.status, await answer.text()


async def test_stacks_of_other_providers_are_reconciled_without_the_kinds_of_openstack(
    server: TestServer, tmp_path: Path
) -> None:
    port = free_port()
    write_release(tmp_path / "cluster-stacks", TAG)
    async with Client.from_kubeconfig(server.kubeconfig) as client:
        await install(client)
        for kind in SERVED:
            await client.apply(CRDS, crd(kind), field_manager="test")
        await client.create(NAMESPACES, {"metadata": {"name": "stacks"}})
        spec = {"provider": "docker", "name": "ferrol", "kubernetesVersion": "1.27", "versions": ["v1"]}
        spec |= {"autoSubscribe": False, "noProvider": True}
        stack = {
            "apiVersion": types.CLUSTER_STACKS.api_version,
            "kind": types.CLUSTER_STACKS.kind,
            "metadata": {"name": "stack", "namespace": "stacks"},
            "spec": spec,
        }
        await client.create(types.CLUSTER_STACKS, stack)
        with capture_logs() as logs:
            async with (
                asyncio.timeout(60),
                program(FlagSet(FLAGS).parse(flags(server, tmp_path, port))) as manager,
                manager.running(),
            ):
                assert manager.started
                assert (await ready(port))[0] == 200, await ready(port)
                await wait_for(
                    client,
                    types.CLUSTER_STACK_RELEASES,
                    TAG,
                    "stacks",
                    until=lambda obj: bool(obj.get("status", {}).get("ready")),
                )
                named = [one["error"] for one in logs if one["event"] == "the kind is not served"]
                for resource in (types.OPENSTACK_RELEASES, types.OPENSTACK_NODE_IMAGES):
                    assert any(f"{resource.plural}.{resource.group} is not installed" in one for one in named)
                for kind in MISSING:
                    await client.apply(CRDS, crd(kind), field_manager="test")
                found = [one for one in manager.controllers if one.name.startswith("openstack")]
                assert len(found) == 2
                await until(lambda: all(one.tasks for one in found))
                assert (await ready(port))[0] == 200
