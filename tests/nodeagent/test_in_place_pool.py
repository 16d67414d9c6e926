"""Updates in place from a Runtime to its nodes: Shoot, gardenlet's configuration, machine controller, agent."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.domains.nodes.world import NodeWorld, node_world
from tests.nodeagent.cluster import Pool
from tests.nodeagent.inplacepool import POOL, InPlaceCluster, PoolSecret, until_label
from tests.oracles.programs import GoProgram
from tests.waiting import until

from hortus.domains.nodes.service import APPLIED, CANDIDATE, HOLD, SELECTED, VERSION
from hortus.kube import Client
from hortus.nodeagent.cluster import NODES
from hortus.nodeagent.inplace import RESULT
from hortus.testing import FakeClock
from hortus.testing.apiserver import TestServer

pytestmark = pytest.mark.oracle
AUTOMATIC, MANUAL = "AutoInPlaceUpdate", "ManualInPlaceUpdate"
FAILURE = (1, "system failure")


def first(gardener: GoProgram, strategy: str) -> PoolSecret:
    return PoolSecret(gardener, kubernetes="1.32.4", system="1592.4.0", strategy=strategy)


def second(gardener: GoProgram, strategy: str) -> PoolSecret:
    return PoolSecret(gardener, kubernetes="1.33.1", system="1592.5.0", strategy=strategy)


def test_a_pool_of_a_runtime_keeps_its_strategy_up_to_the_configuration(gardener: GoProgram) -> None:
    secret = first(gardener, AUTOMATIC)
    (worker,) = secret.shoot["spec"]["provider"]["workers"]
    assert worker["updateStrategy"] == AUTOMATIC
    assert worker["machineControllerManager"] == {"inPlaceUpdateTimeout": "45m", "machineDrainTimeout": "10m"}
    assert secret.name == f"gardener-node-agent-{POOL}", "the name of a pool in place has no hash"
    assert "  inPlaceUpdates:\n    kubelet: 1.32.4\n    operatingSystemVersion: 1592.4.0\n" in secret.text
    rolling = first(gardener, "AutoRollingUpdate")
    assert "spec.inPlaceUpdates" not in rolling.text
    assert rolling.name != secret.name


@contextlib.asynccontextmanager
async def cluster_of(
    server: TestServer, client: Client, root: Path, secret: PoolSecret, *, nodes: int, cluster: str = "root"
) -> AsyncIterator[InPlaceCluster]:
    """A cluster whose nodes have the configuration."""
    found = InPlaceCluster(Pool(server, client, FakeClock(), cluster=cluster), root, nodes=nodes, secret=secret)
    await found.publish(secret, **{VERSION: "v1"})
    await found.register()
    async with found.running():
        await found.until_applied()
        yield found


async def test_nodes_are_updated_one_at_a_time_as_the_machine_controller_drains_them(
    server: TestServer, gardener: GoProgram, tmp_path: Path
) -> None:
    old, new = first(gardener, AUTOMATIC), second(gardener, AUTOMATIC)
    async with (
        Client.from_kubeconfig(server.kubeconfig) as client,
        cluster_of(server, client, tmp_path, old, nodes=2) as cluster,
    ):
        cluster.is_automatic = True
        await cluster.publish(new)
        await cluster.begin()
        await cluster.until_applied()
        assert sorted(cluster.drained) == ["node-0", "node-1"]
        for name, machine in cluster.machines.items():
            assert cluster.system_of(name) == "1592.5.0"
            assert machine.world.host.commands == [("/usr/bin/update-os", "1592.5.0")]
            kubelet = machine.world.files.read("/opt/bin/kubelet") or b""
            assert kubelet.endswith(b"hyperkube:v1.33.1")
            await until_label(client, name, CANDIDATE, None)
            labels = (await client.get(NODES, name))["metadata"]["labels"]
            assert not {SELECTED, RESULT} & labels.keys()


@contextlib.asynccontextmanager
async def fleet(
    server: TestServer, root: Path, secret: PoolSecret
) -> AsyncIterator[tuple[NodeWorld, InPlaceCluster, InPlaceCluster]]:
    """Two clusters of two nodes each; the first one is in the stage that begins."""
    async with node_world(server) as world, contextlib.AsyncExitStack() as stack:
        found = []
        for name in ("canary", "rest"):
            await world.member(name, labels={"ring": name})
            client = await stack.enter_async_context(world.inside(name))
            made = cluster_of(server, client, root / name, secret, nodes=2, cluster=f"{world.name}-{name}")
            found.append(await stack.enter_async_context(made))
        await world.policy()
        yield world, found[0], found[1]


async def test_a_failed_update_in_place_stops_the_fleet_and_the_node_returns(
    server: TestServer, gardener: GoProgram, tmp_path: Path
) -> None:
    old, new = first(gardener, MANUAL), second(gardener, MANUAL)
    async with fleet(server, tmp_path, old) as (world, canary, rest), world.controllers():
        for cluster in (canary, rest):
            await held(cluster, old)
        for machine in canary.machines.values():
            machine.world.host.outcomes = [FAILURE]
        for cluster in (canary, rest):
            await cluster.begin()
            await cluster.publish(new, **{VERSION: "v2"})
        halted = await world.rollout("v2", "Halted")
        assert "failed its update in place" in halted["status"]["failures"][0]["message"]
        assert canary.drained
        assert rest.drained == [], "no node of another stage is drained"
        assert not any(machine.world.host.commands for machine in rest.machines.values())
        for cluster in (canary, rest):
            await cluster.publish(old, **{VERSION: "v1"})
        for name in canary.drained:
            await until_label(canary.client, name, CANDIDATE, None)
        for cluster in (canary, rest):
            await held(cluster, old)
            await cluster.until_applied()
        for name, machine in canary.machines.items():
            assert canary.system_of(name) == "1592.4.0"
            assert (machine.world.files.read("/opt/bin/kubelet") or b"").endswith(b"hyperkube:v1.32.4")
            await until(lambda state=machine.world.state: state.is_at_rest)


async def test_a_good_update_in_place_goes_through_the_fleet_by_stages(
    server: TestServer, gardener: GoProgram, tmp_path: Path
) -> None:
    old, new = first(gardener, MANUAL), second(gardener, MANUAL)
    async with fleet(server, tmp_path, old) as (world, canary, rest), world.controllers():
        for cluster in (canary, rest):
            await held(cluster, old)
            await cluster.begin()
            await cluster.publish(new, **{VERSION: "v2"})
        await world.rollout("v2", "Succeeded")
        for cluster in (canary, rest):
            await cluster.until_applied()
            assert sorted(cluster.drained) == ["node-0", "node-1"]
            assert {cluster.system_of(name) for name in cluster.machines} == {"1592.5.0"}


async def held(cluster: InPlaceCluster, secret: PoolSecret) -> None:
    """Returns once each node may have this configuration alone, and has it."""

    async def are_held() -> bool:
        found = [each["metadata"]["annotations"] for each in (await cluster.client.list(NODES)).items]
        return all((one.get(HOLD), one.get(APPLIED)) == (f"except={secret.checksum}", secret.checksum) for one in found)

    await until(are_held)
