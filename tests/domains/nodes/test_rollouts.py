"""Configurations of nodes go through a fleet by a RolloutPolicy: tens of nodes in several clusters."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from tests.domains.agents.fleet.world import FLEET
from tests.domains.nodes.world import BAD, MOST, NodeWorld, node_world
from tests.waiting import until

from hortus.domains.nodes.members import NODES
from hortus.domains.nodes.service import APPLIED, HOLD
from hortus.engine.rollouts.types import ROLLOUT_POLICIES
from hortus.testing.apiserver import TestServer

CANARY, REST, EACH = "canary", ("one", "two", "three"), 6


@asynccontextmanager
async def governed(server: TestServer) -> AsyncIterator[NodeWorld]:
    """Four clusters of six nodes at version v1, whose controllers have to be started."""
    async with node_world(server) as world, AsyncExitStack() as running:
        await world.cluster(CANARY, ring="canary", nodes=EACH)
        for name in REST:
            await world.cluster(name, ring="rest", nodes=EACH)
        await world.policy()
        await running.enter_async_context(world.agents())
        yield world


def begun_in(world: NodeWorld, version: str) -> Counter[str]:
    """The number of nodes that began a version, by cluster."""
    return Counter(cluster for cluster, _, begun in world.begun if begun == version)


async def test_a_bad_configuration_stops_at_the_first_stage_and_a_good_one_replaces_it(server: TestServer) -> None:
    async with governed(server) as world, world.controllers():
        await world.until_nodes(HOLD, "except=v1")
        await world.publish(BAD)
        halted = await world.rollout(BAD, "Halted")
        assert halted["status"]["stages"][0]["failed"] == 1
        assert "returned to its last good configuration" in halted["status"]["failures"][0]["message"]
        assert set(begun_in(world, BAD)) == {CANARY}
        assert begun_in(world, BAD)[CANARY] <= MOST
        await world.publish("v2")
        await world.rollout("v2", "Succeeded")
        await world.until_nodes(APPLIED, "v2")
        await world.until_nodes(HOLD, "except=v2")
        assert begun_in(world, "v2") == dict.fromkeys((CANARY, *REST), EACH)
        assert set(begun_in(world, BAD)) == {CANARY}


async def test_a_controller_that_is_killed_amid_a_roll_out_is_replaced_without_a_trace(server: TestServer) -> None:
    async with governed(server) as world:
        async with world.controllers():
            await world.until_nodes(HOLD, "except=v1")
            await world.publish("v2")
            await until(lambda: len(world.begun) > EACH // 2)
        async with world.controllers():
            await until(lambda: len(world.begun) > EACH * 2)
        # Nodes go on within what they were allowed; without a controller none is allowed more.
        async with world.controllers():
            await world.rollout("v2", "Succeeded")
        order = [cluster for cluster, _, _ in world.begun]
        assert set(order[:EACH]) == {CANARY}
        assert max(Counter(world.begun).values()) == 1
        assert len(world.begun) == EACH * 4
        assert world.most_at_once <= MOST


async def test_a_new_node_is_not_held_and_without_a_policy_nothing_is(server: TestServer) -> None:
    async with node_world(server) as world:
        await world.cluster("one", ring="rest", nodes=2)
        await world.policy()
        async with world.controllers():
            await world.until_nodes(HOLD, "except=v1")
            async with world.agents(), world.inside("one") as client:
                await world.node("one", "new", "")
                await world.until_nodes(APPLIED, "v1")
                await world.until_nodes(HOLD, "except=v1")
                await client.delete(NODES, "new")
            await world.client.delete(ROLLOUT_POLICIES, "nodes", FLEET)
            await world.until_nodes(HOLD, "")
        assert Counter(world.begun) == {("one", "new", "v1"): 1}, "the new node began at once, and no other did"
