"""The life of an agent: made, changed, at rest, deleted."""

from __future__ import annotations

from tests.domains.agents.operating.world import HOME, VERSION, AgentsWorld, Requests, base, condition

from hortus.domains.agents.operating.objects import (
    BUDGETS,
    CLUSTER_BINDINGS,
    CLUSTER_ROLES,
    CONFIG_MAPS,
    DAEMON_SETS,
    DEPLOYMENTS,
    ROLES,
    SECRETS,
)
from hortus.domains.agents.types import INSTANA_AGENTS, INSTANA_AGENTS_REMOTE

BUDGET = {"podDisruptionBudget": {"enabled": True}}


async def test_an_agent_is_made_changed_and_deleted(here: AgentsWorld) -> None:
    await here.agent(k8s_sensor=BUDGET)
    async with here.controllers():
        made = await here.reconciled()
        assert made["metadata"]["finalizers"] == ["v3.agent.instana.io/finalizer"]
        for resource, name in ((DAEMON_SETS, HOME), (DEPLOYMENTS, f"{HOME}-k8sensor"), (BUDGETS, f"{HOME}-k8sensor")):
            assert await here.get(resource, name) is not None
        assert made["status"]["daemonset"]["name"] == HOME
        assert made["status"]["operatorVersion"] == VERSION.removeprefix("v")

        await here.secret("keys", key=b"from-a-secret")
        image = {"name": "containers.instana.io/instana/release/agent/static"}
        agent = {"keysSecret": "keys", "key": None, "image": image}
        spec = {"spec": {"agent": agent, "k8s_sensor": {"podDisruptionBudget": {"enabled": False}}}}
        await here.change(INSTANA_AGENTS, HOME, spec)
        await here.reconciled()
        await here.gone(BUDGETS, f"{HOME}-k8sensor")
        await here.gone(SECRETS, HOME)
        assert await here.get(SECRETS, f"{HOME}-containers-instana-io") is not None
        record = await here.get(CONFIG_MAPS, f"{HOME}-dependents")
        assert record is not None
        assert list(record["data"]) == [f"{VERSION}_2"]

        await here.client.delete(INSTANA_AGENTS, HOME, HOME)
        await here.gone(INSTANA_AGENTS, HOME)
        left = await here.owned()
        assert set(left) <= {f"ConfigMap {HOME}/{HOME}-dependents"}  # its owner takes it along
        assert await here.get(SECRETS, "keys") is not None


async def test_a_second_reconcile_writes_nothing(here: AgentsWorld) -> None:
    await here.agent(k8s_sensor=BUDGET)
    async with here.controllers() as manager:
        await here.reconciled()
        await here.ready(DAEMON_SETS, HOME)
        await here.ready(DEPLOYMENTS, f"{HOME}-k8sensor")
        await here.until(lambda agent: condition(agent, "AllK8sSensorsAvailable")[0] == "True")
        await here.until(lambda agent: condition(agent, "AllAgentsAvailable")[0] == "True")
        await here.at_rest()
        before = await here.owned()
        agent = await here.get(INSTANA_AGENTS, HOME)
        for controller in manager.controllers:
            controller.enqueue_all()
        await here.at_rest()
    assert await here.owned() == before
    assert await here.get(INSTANA_AGENTS, HOME) == agent


async def test_a_new_process_at_rest_writes_nothing(here: AgentsWorld) -> None:
    await here.agent()
    await here.remote()
    async with here.controllers():
        await here.reconciled()
        await here.until(lambda remote: remote.get("status"), "outside", resource=INSTANA_AGENTS_REMOTE)
        await here.at_rest()
    before = await here.owned()
    here.requests = Requests()
    async with here.controllers():
        await here.at_rest()
    assert here.requests.methods
    assert here.requests.writes == []
    assert await here.owned() == before


async def test_what_others_change_or_delete_is_mended(here: AgentsWorld) -> None:
    await here.agent()
    async with here.controllers():
        await here.reconciled()
        await here.change(CONFIG_MAPS, f"{HOME}-k8sensor", {"data": {"backend": "elsewhere"}})
        for resource, name in (
            (ROLES, f"{HOME}-k8sensor-etcd-reader"),
            (CLUSTER_ROLES, HOME),
            (CLUSTER_BINDINGS, HOME),
        ):
            namespace = "kube-system" if resource.namespaced else ""
            await here.client.delete(resource, name, namespace)
            await here.until(lambda obj: obj, name, namespace, resource)
        mended = await here.until(
            lambda obj: obj["data"]["backend"] == "backend.example.org:443", f"{HOME}-k8sensor", resource=CONFIG_MAPS
        )
    assert mended["data"] == {"backend": "backend.example.org:443"}


async def test_the_sensor_that_is_switched_off_leaves_no_condition_and_no_error(here: AgentsWorld) -> None:
    await here.agent()
    async with here.controllers():
        await here.reconciled()
        await here.change(INSTANA_AGENTS, HOME, {"spec": {"k8s_sensor": {"deployment": {"enabled": False}}}})
        agent = await here.reconciled()
        await here.gone(DEPLOYMENTS, f"{HOME}-k8sensor")
        assert condition(agent, "AllK8sSensorsAvailable") == ("", "")
        assert agent["status"]["status"] == "Running"


async def test_an_agent_that_cannot_be_deployed_says_what_is_missing(here: AgentsWorld) -> None:
    await here.agent(agent=base(key=""), cluster={"name": ""}, zone={"name": ""})
    async with here.controllers():
        agent = await here.reconciled()
        assert condition(agent, "AllAgentsAvailable")[0] == "True"  # as the Go operator reports it
        assert condition(agent, "ConfigurationComplete") == ("False", "KeyMissing")
        assert await here.get(DAEMON_SETS, HOME) is None
        await here.change(INSTANA_AGENTS, HOME, {"spec": {"agent": {"key": "a"}, "cluster": {"name": "b"}}})
        agent = await here.until(lambda obj: condition(obj, "ConfigurationComplete") == ("", ""))
        assert await here.get(DAEMON_SETS, HOME) is not None
