"""Deletion while pods restart, hang, or are held: it ends, and nothing of the agent is left."""

from __future__ import annotations

from tests.domains.agents.operating.world import HOME, AgentsWorld, base, condition
from tests.simulation.workloads.test_running import node, simulated

from hortus.domains.agents.operating.objects import DAEMON_SETS
from hortus.domains.agents.types import INSTANA_AGENTS
from hortus.simulation.workloads import BEHAVIOUR, BROKEN, NODES, PODS
from hortus.testing.waiting import wait_for

HELD = "example.org/held"


async def running_pods(here: AgentsWorld) -> list[str]:
    listed = await here.client.list(PODS, HOME, labels="app.kubernetes.io/component=instana-agent")
    return [pod["metadata"]["name"] for pod in listed.items]


async def test_an_agent_is_deleted_in_the_middle_of_a_rollout_that_hangs(here: AgentsWorld) -> None:
    for number in range(3):
        await here.client.create(NODES, node(f"n{number}"))
    await here.agent()
    async with here.controllers(), simulated(here.client, pods=True):
        await here.until(lambda agent: condition(agent, "AllAgentsAvailable")[1] == "AllDesiredAgentsAvailable")
        await wait_for(
            here.client, DAEMON_SETS, HOME, HOME, until=lambda obj: (obj.get("status") or {}).get("numberReady") == 3
        )
        pod = base(pod={"annotations": {BEHAVIOUR: BROKEN}})
        await here.change(INSTANA_AGENTS, HOME, {"spec": {"agent": pod}})
        # One pod was replaced and never becomes ready; the others wait for it.
        stuck = await here.until(
            lambda obj: (
                (obj.get("status") or {}).get("updatedNumberScheduled") == 1 and obj["status"]["numberReady"] == 2
            ),
            resource=DAEMON_SETS,
        )
        assert stuck["metadata"]["generation"] == 2
        await here.until(lambda agent: condition(agent, "AllAgentsAvailable")[0] == "False")
        held = (await running_pods(here))[0]
        finalizers = {"metadata": {"finalizers": [HELD]}}
        await here.client.patch(PODS, held, finalizers, HOME)
        await here.client.delete(INSTANA_AGENTS, HOME, HOME)
        # A pod that does not end holds neither its DaemonSet nor the agent.
        await here.gone(INSTANA_AGENTS, HOME)
        assert await here.get(DAEMON_SETS, HOME) is None
        await here.client.patch(PODS, held, {"metadata": {"finalizers": None}}, HOME)
        for name in await running_pods(here):
            await here.gone(PODS, name)
        assert set(await here.owned()) <= {f"ConfigMap {HOME}/{HOME}-dependents"}


async def test_an_agent_waits_for_its_objects_that_others_hold_and_for_no_longer(here: AgentsWorld) -> None:
    await here.agent()
    async with here.controllers():
        await here.reconciled()
        await here.change(DAEMON_SETS, HOME, {"metadata": {"finalizers": [HELD]}})
        await here.client.delete(INSTANA_AGENTS, HOME, HOME)
        await here.until(lambda obj: obj["metadata"].get("deletionTimestamp"), resource=DAEMON_SETS)
        await here.at_rest()
        agent = await here.get(INSTANA_AGENTS, HOME)
        assert agent is not None
        assert agent["metadata"]["finalizers"] == ["v3.agent.instana.io/finalizer"]
        assert [name for name in await here.owned() if not name.startswith("ConfigMap")] == [f"DaemonSet {HOME}/{HOME}"]
        await here.change(DAEMON_SETS, HOME, {"metadata": {"finalizers": None}})
        await here.gone(INSTANA_AGENTS, HOME)


async def test_an_agent_that_is_deleted_while_its_change_is_refused_is_gone(here: AgentsWorld) -> None:
    await here.agent()
    async with here.controllers():
        await here.reconciled()
        wrong = base(pod={"volumeMounts": [{"name": "none", "mountPath": "/none"}]})
        await here.change(INSTANA_AGENTS, HOME, {"spec": {"agent": wrong}})
        await here.until(lambda agent: condition(agent, "ReconcileSucceeded")[0] == "False")
        await here.client.delete(INSTANA_AGENTS, HOME, HOME)
        await here.gone(INSTANA_AGENTS, HOME)
        assert set(await here.owned()) <= {f"ConfigMap {HOME}/{HOME}-dependents"}
