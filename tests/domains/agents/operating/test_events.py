"""Events about agents: one for each condition that changed, next to the agent, whatever its namespace and name."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.domains.agents.operating.test_failures import DECLARED, account
from tests.domains.agents.operating.world import EVENTS, HOME, AgentsWorld, condition
from tests.production.test_permissions import kubeconfig_of

from hortus.domains.agents.operating.objects import BUDGETS, DAEMON_SETS, DEPLOYMENTS
from hortus.domains.agents.types import INSTANA_AGENTS, INSTANA_AGENTS_REMOTE
from hortus.kube import Client
from hortus.kube.objects import Object

ELSEWHERE = "elsewhere"
BUDGET = {"podDisruptionBudget": {"enabled": True}}


@pytest.fixture
async def permitted(here: AgentsWorld, tmp_path: Path) -> AsyncIterator[Client]:
    """The client of an account in another namespace with the declared permissions, and no more."""
    await here.namespace(ELSEWHERE)
    await account(here, *DECLARED)
    path = await kubeconfig_of(here.client, "hortus", "hortus", tmp_path / "account")
    async with Client.from_kubeconfig(path) as client:
        yield client


async def events(here: AgentsWorld, of: Object, namespace: str) -> list[tuple[str, str, str]]:
    """Type, reason and message of the events of an object, as they came."""
    found = (await here.client.list(EVENTS, namespace)).items
    mine = [one for one in found if one["involvedObject"]["uid"] == of["metadata"]["uid"]]
    assert {one["metadata"]["namespace"] for one in mine} == {namespace}
    assert {one["involvedObject"]["kind"] for one in mine} == {of["kind"]}
    component = "agent-controller" if of["kind"] == "InstanaAgent" else "instana-agent-remote-controller"
    assert {one["source"]["component"] for one in mine} == {component}
    return sorted((one["type"], one["reason"], one["message"]) for one in mine)


UNAVAILABLE = [
    (
        "Warning",
        "NotAllDesiredAgentsAvailable",
        "Not all desired Instana agents are available or some Agents are not using up-to-date configuration",
    ),
    (
        "Warning",
        "NotAllDesiredK8sensorsAvailable",
        "Not all desired k8sensors are available or some k8sensors are not using up-to-date configuration",
    ),
]
AVAILABLE = [
    (
        "Normal",
        "AllDesiredAgentsAvailable",
        "All desired Instana Agents are available and using up-to-date configuration",
    ),
    (
        "Normal",
        "AllDesiredK8sensorsAvailable",
        "All desired k8sensors are available and using up-to-date configuration",
    ),
]
SUCCEEDED = ("Normal", "ReconcileSucceeded", "most recent reconcile of agent CR completed without issue")


async def test_an_agent_in_any_namespace_has_an_event_for_each_condition_that_changed(
    here: AgentsWorld, permitted: Client
) -> None:
    await here.agent("edge", ELSEWHERE)
    async with here.controllers(permitted):
        agent = await here.reconciled("edge", ELSEWHERE)
        await here.at_rest()
    assert await events(here, agent, ELSEWHERE) == sorted([SUCCEEDED, *UNAVAILABLE])

    async with here.controllers(permitted):
        await here.ready(DAEMON_SETS, "edge", ELSEWHERE)
        await here.ready(DEPLOYMENTS, "edge-k8sensor", ELSEWHERE)
        for kind in ("AllAgentsAvailable", "AllK8sSensorsAvailable"):
            await here.until(lambda obj, kind=kind: condition(obj, kind)[0] == "True", "edge", ELSEWHERE)
        await here.at_rest()
    # Conditions that did not change, such as the success, have no second event.
    assert await events(here, agent, ELSEWHERE) == sorted([SUCCEEDED, *UNAVAILABLE, *AVAILABLE])


async def test_a_failure_and_a_problem_of_the_spec_are_warnings(here: AgentsWorld, permitted: Client) -> None:
    tls = {"secretName": "missing"}
    pod = {"volumeMounts": [{"name": "none", "mountPath": "/none"}]}
    await here.agent("edge", ELSEWHERE)
    async with here.controllers(permitted):
        agent = await here.reconciled("edge", ELSEWHERE)
        await here.change(INSTANA_AGENTS, "edge", {"spec": {"agent": {"tls": tls}}}, ELSEWHERE)
        await here.until(lambda obj: condition(obj, "ConfigurationComplete")[0] == "False", "edge", ELSEWHERE)
        await here.change(INSTANA_AGENTS, "edge", {"spec": {"agent": {"pod": pod}}}, ELSEWHERE)
        failed = await here.until(lambda obj: condition(obj, "ReconcileSucceeded")[0] == "False", "edge", ELSEWHERE)
        await here.at_rest()
    found = await events(here, agent, ELSEWHERE)
    reason = "spec.agent.tls.secretName: there is no Secret missing: create it"
    assert ("Warning", "SecretMissing", reason) in found
    assert ("Warning", "ReconcileFailed", failed["status"]["reason"]) in found
    assert f"dry run of DaemonSet {ELSEWHERE}/edge" in failed["status"]["reason"]


async def test_a_remote_has_its_events_from_its_own_controller(here: AgentsWorld, permitted: Client) -> None:
    await here.remote()
    async with here.controllers(permitted):
        remote = await here.reconciled("outside", resource=INSTANA_AGENTS_REMOTE)
        await here.at_rest()
    found = [(kind, reason) for kind, reason, _ in await events(here, remote, HOME)]
    assert found == [("Normal", "ReconcileSucceeded"), ("Warning", "NotAllDesiredAgentsAvailable")]


async def test_the_declared_permissions_keep_the_budget_of_an_agent_of_any_name(
    here: AgentsWorld, permitted: Client
) -> None:
    """The Go operator may write no other budget than instana-agent-k8sensor."""
    await here.agent("edge", ELSEWHERE, k8s_sensor=BUDGET)
    async with here.controllers(permitted):
        await here.reconciled("edge", ELSEWHERE)
        made = await here.get(BUDGETS, "edge-k8sensor", ELSEWHERE)
        assert made is not None
        assert made["spec"]["minAvailable"] == 2
        await here.change(INSTANA_AGENTS, "edge", {"spec": {"k8s_sensor": {"deployment": {"replicas": 5}}}}, ELSEWHERE)
        await here.until(lambda obj: obj["spec"]["minAvailable"] == 4, "edge-k8sensor", ELSEWHERE, BUDGETS)
        await here.change(INSTANA_AGENTS, "edge", {"spec": {"k8s_sensor": None}}, ELSEWHERE)
        await here.gone(BUDGETS, "edge-k8sensor", ELSEWHERE)
