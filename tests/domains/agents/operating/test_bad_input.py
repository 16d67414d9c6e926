"""Input that cannot be served as it is: each is named by its field, with the fix, and the rest goes on."""

from __future__ import annotations

from typing import Any

import pytest
from tests.domains.agents.operating.test_failures import DECLARED, account
from tests.domains.agents.operating.world import HOME, AgentsWorld, base, condition
from tests.production.test_permissions import kubeconfig_of

from hortus.domains.agents.operating.objects import BUDGETS, DAEMON_SETS, DEPLOYMENTS, SECRETS
from hortus.domains.agents.types import INSTANA_AGENTS, INSTANA_AGENTS_REMOTE
from hortus.engine.rbac import Permission
from hortus.kube import Client
from hortus.kube.objects import Object

SENSOR = f"{HOME}-k8sensor"
CA = {"secretName": "missing"}


def message(agent: Object, kind: str = "ConfigurationComplete") -> str:
    found = (one["message"] for one in agent["status"]["conditions"] if one["type"] == kind)
    return next(found, "")


def pool(name: str) -> Object:
    """The affinity to the nodes of one pool."""
    term = {"matchExpressions": [{"key": "pool", "operator": "In", "values": [name]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


@pytest.mark.parametrize(
    ("field", "spec"),
    [
        ("spec.agent.tls.secretName", {"agent": base(tls={"secretName": "missing"})}),
        ("spec.k8s_sensor.etcd.ca.secretName", {"k8s_sensor": {"etcd": {"ca": CA}}}),
        ("spec.k8s_sensor.restClient.ca.secretName", {"k8s_sensor": {"restClient": {"ca": {**CA, "mountPath": "/c"}}}}),
        ("spec.agent.keysSecret", {"agent": base(key="", keysSecret="missing")}),
    ],
)
async def test_a_secret_that_is_missing_is_named_by_its_field_until_it_comes(
    here: AgentsWorld, field: str, spec: dict[str, Any]
) -> None:
    await here.agent(**spec)
    async with here.controllers():
        agent = await here.until(lambda agent: condition(agent, "ConfigurationComplete") == ("False", "SecretMissing"))
        assert message(agent) == f"{field}: there is no Secret missing: create it"
        assert condition(agent, "ReconcileSucceeded")[0] == "True"
        # All else is there; pods start as soon as the Secret does.
        assert await here.get(DAEMON_SETS, HOME) is not None
        await here.secret("missing", key=b"\x00\xff odd \n bytes")
        await here.until(lambda agent: condition(agent, "ConfigurationComplete") == ("", ""))


async def test_a_secret_that_lacks_the_key_of_a_further_backend_is_named_with_that_key(here: AgentsWorld) -> None:
    backends = [{"endpointHost": "other.example.org", "endpointPort": "443"}]
    await here.secret("keys", key=b"one")
    await here.agent(agent=base(key="", keysSecret="keys", additionalBackends=backends))
    async with here.controllers():
        agent = await here.until(lambda agent: condition(agent, "ConfigurationComplete")[1] == "KeyNotInSecret")
        assert message(agent) == "spec.agent.keysSecret: Secret keys has no key-1: add it to the Secret"
        # The backend without a key is left out, the other one is served.
        config = await here.get(SECRETS, f"{HOME}-config")
        assert config is not None
        assert [name for name in config["data"] if "Backend" in name] == ["com.instana.agent.main.sender.Backend-1.cfg"]


async def test_zones_of_one_name_are_one_daemon_set_and_named(here: AgentsWorld) -> None:
    apart = [{"name": name, "affinity": pool(name)} for name in ("a", "b")]
    await here.agent(zones=[{"name": "a", "mode": "AWS"}, apart[1], apart[0] | {"mode": "APM"}])
    async with here.controllers():
        agent = await here.until(lambda agent: condition(agent, "ConfigurationComplete")[1] == "ZoneTwice")
        assert message(agent) == "spec.zones names a more than once: the last of them counts; rename one"
        await here.reconciled()
        names = {name for name in await here.owned() if name.startswith("DaemonSet")}
        assert names == {f"DaemonSet {HOME}/{HOME}-a", f"DaemonSet {HOME}/{HOME}-b"}
        one = await here.get(DAEMON_SETS, f"{HOME}-a")
        assert one is not None
        env = one["spec"]["template"]["spec"]["containers"][0]["env"]
        assert {"name": "INSTANA_AGENT_MODE", "value": "APM"} in env


async def test_zones_that_share_nodes_are_named_until_each_has_its_own(here: AgentsWorld) -> None:
    await here.agent(zones=[{"name": "a"}, {"name": "b", "affinity": pool("b")}])
    async with here.controllers():
        agent = await here.until(lambda agent: condition(agent, "ConfigurationComplete")[1] == "ZonesOverlap")
        assert message(agent) == (
            "spec.zones puts two agents on nodes that are of two zones, and both want port 42699: a and b; give each "
            "zone an affinity to nodes of its own"
        )
        assert condition(agent, "ReconcileSucceeded")[0] == "True"
        apart = [{"name": name, "affinity": pool(name)} for name in ("a", "b")]
        await here.change(INSTANA_AGENTS, HOME, {"spec": {"zones": apart}})
        await here.until(lambda agent: condition(agent, "ConfigurationComplete") == ("", ""))


async def test_agents_of_one_cluster_that_share_nodes_name_each_other_until_one_moves(here: AgentsWorld) -> None:
    await here.namespace("second")
    await here.agent()
    await here.agent("other", "second")
    places = ((HOME, HOME, "second/other"), ("other", "second", f"{HOME}/{HOME}"))
    async with here.controllers():
        for name, namespace, other in places:
            agent = await here.until(
                lambda agent: condition(agent, "ConfigurationComplete") == ("False", "TwoAgents"), name, namespace
            )
            assert message(agent) == (
                f"nodes of this InstanaAgent get a second agent, and both want port 42699, from {other}: delete one of "
                "them, or give each nodes of its own by spec.agent.pod.nodeSelector"
            )
        for name, namespace, _ in places:
            place = {"spec": {"agent": {"pod": {"nodeSelector": {"pool": name}}}}}
            await here.change(INSTANA_AGENTS, name, place, namespace)
        for name, namespace, _ in places:
            await here.until(lambda agent: condition(agent, "ConfigurationComplete") == ("", ""), name, namespace)
        await here.change(INSTANA_AGENTS, "other", {"spec": {"agent": {"pod": None}}}, "second")
        await here.until(lambda agent: condition(agent, "ConfigurationComplete")[1] == "TwoAgents")
        await here.client.delete(INSTANA_AGENTS, "other", "second")
        await here.until(lambda agent: condition(agent, "ConfigurationComplete") == ("", ""))


async def test_a_variable_that_is_given_several_times_stands_once_in_each_workload(here: AgentsWorld) -> None:
    """The Go operator's set is refused: server-side apply accepts no key twice."""
    variables = {"BACKEND": "mine", "POD_NAME": "mine", "INSTANA_ZONE": "mine"}
    pod = {"env": [{"name": "INSTANA_ZONE", "value": "first"}, {"name": "CONFIG_PATH", "value": "second"}]}
    await here.agent(agent=base(env=variables, pod=pod), useSecretMounts=False)
    async with here.controllers():
        await here.reconciled()
        for resource, name in ((DAEMON_SETS, HOME), (DEPLOYMENTS, SENSOR)):
            live = await here.get(resource, name)
            assert live is not None
            names = [one["name"] for one in live["spec"]["template"]["spec"]["containers"][0]["env"]]
            assert len(names) == len(set(names))


async def test_a_refused_object_is_named_and_no_object_is_changed(here: AgentsWorld) -> None:
    await here.agent()
    async with here.controllers():
        await here.reconciled()
        await here.at_rest()
        before = await here.owned()
        wrong = base(proxyHost="proxy.example.org", pod={"volumeMounts": [{"name": "none", "mountPath": "/none"}]})
        await here.change(INSTANA_AGENTS, HOME, {"spec": {"agent": wrong}})
        agent = await here.until(lambda agent: condition(agent, "ReconcileSucceeded")[0] == "False")
        assert f"dry run of DaemonSet {HOME}/{HOME}" in agent["status"]["reason"]
        assert await here.owned() == before
        await here.change(INSTANA_AGENTS, HOME, {"spec": {"agent": {"pod": None}}})
        agent = await here.reconciled()
        assert "reason" not in agent["status"]


async def test_an_object_that_may_not_be_deleted_is_named_and_remembered(here: AgentsWorld, tmp_path: Any) -> None:
    budgets = ("poddisruptionbudgets",)
    verbs = ("get", "list", "watch", "create", "patch", "update")
    others = [one for one in DECLARED if one.resources != budgets]
    await account(here, *others, Permission("policy", budgets, verbs, "writes"))
    await here.agent(k8s_sensor={"podDisruptionBudget": {"enabled": True}})
    path = await kubeconfig_of(here.client, "hortus", "hortus", tmp_path / "account")
    async with Client.from_kubeconfig(path) as client, here.controllers(client):
        await here.reconciled()
        await here.change(INSTANA_AGENTS, HOME, {"spec": {"k8s_sensor": {"podDisruptionBudget": None}}})
        agent = await here.until(lambda agent: condition(agent, "ReconcileSucceeded")[0] == "False")
        assert f"delete of PodDisruptionBudget {HOME}/{SENSOR}" in agent["status"]["reason"]
    assert await here.get(BUDGETS, SENSOR) is not None
    async with here.controllers():  # a process that may
        await here.gone(BUDGETS, SENSOR)
        await here.reconciled()


async def test_a_remote_without_a_zone_or_a_key_says_what_is_missing(here: AgentsWorld) -> None:
    await here.remote("outside", zone={}, agent=base(key=""))
    async with here.controllers():
        remote = await here.until(
            lambda obj: condition(obj, "ConfigurationComplete")[0] == "False", "outside", resource=INSTANA_AGENTS_REMOTE
        )
        assert message(remote).split("; ") == [
            "no agent is deployed: set spec.agent.keysSecret or spec.agent.key",
            "no agent is deployed: set spec.zone.name",
        ]
        assert await here.get(DEPLOYMENTS, "instana-agent-r-outside") is None
