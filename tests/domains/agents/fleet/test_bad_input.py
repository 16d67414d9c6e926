"""Bad input fails one cluster, or leaves the fleet as it is, and the message names field and fix."""

from __future__ import annotations

import pytest
from tests.domains.agents.fleet.world import (
    AGENT,
    DAEMON_SETS,
    FLEET,
    HOME,
    NAMESPACES,
    AgentWorld,
    clusters,
    is_running,
    message,
    ready,
)

from hortus.domains.agents.types import AGENT_CONFIGURATIONS, AGENT_PLACEMENTS, INSTANA_AGENTS, InstanaAgent
from hortus.domains.inventory.types import CLUSTER_PROFILES
from hortus.engine.applysets import PART_OF, set_id
from hortus.engine.kubeconfigs import SECRETS
from hortus.engine.leftovers.types import LEFTOVERS
from hortus.kube.objects import Object, Resource
from hortus.testing.clusters import install
from hortus.testing.waiting import wait_gone

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
DOUBLING = "cel.bind(x, [cluster.name], " + "cel.bind(x, [x, x, x, x], " * 15 + "{'a': x}" + ")" * 16
"""It makes thousands of millions of names."""


@pytest.mark.parametrize(
    ("spec", "reason", "text"),
    [
        ({"perCluster": "cluster."}, "InvalidExpression", "spec.perCluster"),
        ({"perCluster": "cluster.?a" + ".optMap(x, x)" * 20}, "InvalidExpression", "spec.perCluster: the expression"),
        ({"perCluster": DOUBLING}, "InvalidExpression", "spec.perCluster: the evaluation could make too large a value"),
        (
            {"clusterSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
            "InvalidSelector",
            "spec.clusterSelector",
        ),
        (
            {"template": {"agent": {"keysSecret": "other", "endpointHost": "h", "endpointPort": "443"}}},
            "SecretMissing",
            "names the Secret other, which is not in namespace fleet: create it there, or name it in spec.localSecrets",
        ),
    ],
)
async def test_a_configuration_that_cannot_be_used_leaves_its_clusters_as_they_are(
    here: AgentWorld, spec: Object, reason: str, text: str
) -> None:
    await here.keys()
    await here.member("one")
    await here.configure()
    async with here.controllers():
        await here.run_pods("one")
        before = await here.placement("one", is_running)
        await here.change(**spec)
        found = await here.configuration(lambda obj: ready(obj)[1] == reason)
        assert ready(found)[0] == "False" and text in message(found)
        assert (await here.placement("one"))["spec"] == before["spec"]
        assert await here.inside_object("one", DAEMON_SETS, AGENT) is not None


async def test_a_cluster_without_the_fact_that_an_expression_needs_fails_alone(here: AgentWorld) -> None:
    await here.keys()
    await here.member("one", labels={"team": "a"})
    await here.member("two")
    await here.configure(perCluster="{'zone': {'name': cluster.labels.team}}")
    async with here.controllers():
        await here.run_pods("one")
        await here.placement("one", is_running)
        failed = await here.placement("two", lambda obj: ready(obj) == ("False", "RenderFailed"))
        assert "no such key: team" in message(failed)
        fleet = await here.configuration(lambda obj: clusters(obj).get("failed") == 1)
        assert ready(fleet)[1] == "ClustersFailed" and "1 failed, first two" in message(fleet)
        await here.label("two", team="b")
        await here.run_pods("two")
        await here.placement("two", is_running)
        await here.configuration(lambda obj: ready(obj) == ("True", "AllReady"))


async def test_an_agent_that_the_crd_would_refuse_is_not_built(here: AgentWorld) -> None:
    await here.keys()
    await here.member("one")
    await here.configure(perCluster="{'k8s_sensor': {'pollrate': 'often'}, 'zoone': {}}")
    async with here.controllers():
        failed = await here.placement("one", lambda obj: ready(obj) == ("False", "RenderFailed"))
        assert "spec.zoone: unknown field" in message(failed)
        assert "spec.k8s_sensor.pollrate" in message(failed)
        assert await here.inside_object("one", NAMESPACES, AGENT) is None


async def test_a_template_without_a_key_builds_nothing(here: AgentWorld) -> None:
    await here.member("one")
    await here.configure(agent={"keysSecret": ""})
    async with here.controllers():
        failed = await here.placement("one", lambda obj: ready(obj) == ("False", "NothingToRun"))
        assert "agent.keysSecret" in message(failed)


async def test_a_cluster_with_an_operator_of_its_own_is_left_to_it(here: AgentWorld) -> None:
    await here.keys()
    await here.member("one")
    async with here.inside("one") as client:
        await install(client, InstanaAgent)
        await client.create(NAMESPACES, {"metadata": {"name": AGENT}})
        agent = {"endpointHost": "a", "endpointPort": "443"}
        await client.create(
            INSTANA_AGENTS,
            {
                "apiVersion": "instana.io/v1",
                "kind": "InstanaAgent",
                "metadata": {"name": AGENT, "namespace": AGENT},
                "spec": {"agent": agent},
            },
        )
    await here.configure()
    async with here.controllers():
        failed = await here.placement("one", lambda obj: ready(obj) == ("False", "OperatedInCluster"))
        assert "--cascade=orphan" in message(failed)
        assert await here.inside_object("one", DAEMON_SETS, AGENT) is None


async def test_a_daemonset_that_is_something_else_is_not_overwritten(here: AgentWorld) -> None:
    await here.keys()
    await here.member("one")
    labels = {"app": "other"}
    other = {
        "metadata": {"name": AGENT, "namespace": AGENT},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "other", "image": "a"}]}},
        },
    }
    async with here.inside("one") as client:
        await client.create(NAMESPACES, {"metadata": {"name": AGENT}})
        await client.create(DAEMON_SETS, other)
    await here.configure()
    async with here.controllers():
        failed = await here.placement("one", lambda obj: ready(obj) == ("False", "OtherWorkload"))
        assert "rename it or delete it" in message(failed)


async def test_an_object_that_a_cluster_refuses_is_named_and_the_others_go_on(here: AgentWorld) -> None:
    await here.keys()
    await here.member("one")
    await here.member("two")
    async with here.inside("one") as client:
        await client.create(NAMESPACES, {"metadata": {"name": AGENT}})
        mark = set_id(name=f"{AGENT}.one", namespace=FLEET, kind="AgentPlacement", group="fleet.hortus.dev")
        metadata = {"name": "agent-keys", "namespace": AGENT, "labels": {PART_OF: mark}}
        await client.create(SECRETS, {"metadata": metadata, "immutable": True, "data": {"key": "eA=="}})
    await here.configure()
    async with here.controllers():
        failed = await here.placement("one", lambda obj: ready(obj) == ("False", "ObjectsRefused"))
        assert "Secret instana-agent/agent-keys" in message(failed)
        assert "replace-key" not in message(failed)
        await here.run_pods("two")
        await here.placement("two", is_running)


async def test_an_object_that_finalizers_hold_is_named_with_a_reason_of_its_own(here: AgentWorld) -> None:
    await here.keys()
    await here.member("one")
    await here.configure()
    held = f"{AGENT}-namespaces"
    async with here.controllers(), here.inside("one") as client:
        await here.run_pods("one")
        before = await here.placement("one", is_running)
        await client.patch(CONFIG_MAPS, held, {"metadata": {"finalizers": ["example.org/hold"]}}, AGENT)
        await client.delete(CONFIG_MAPS, held, AGENT)
        await here.keys(key="another-key")
        found = await here.placement("one", lambda obj: ready(obj) == ("Unknown", "ObjectsBeingDeleted"))
        assert held in message(found)
        assert found["status"]["version"] == before["status"]["version"]


async def test_a_cluster_that_is_gone_ends_its_placement_with_a_record(here: AgentWorld) -> None:
    await here.keys()
    await here.member("one")
    await here.configure()
    async with here.controllers():
        await here.run_pods("one")
        await here.placement("one", is_running)
        await here.client.delete(CLUSTER_PROFILES, "one", FLEET)
        await wait_gone(here.client, AGENT_PLACEMENTS, f"{AGENT}.one", FLEET)
        (left,) = (await here.client.list(LEFTOVERS, FLEET)).items
        assert left["spec"]["reason"] == "ClusterGone"
        assert f"DaemonSet {AGENT}/{AGENT}" in {item["what"] for item in left["spec"]["items"]}
        await here.configuration(lambda obj: clusters(obj).get("selected") == 0)


async def test_a_cluster_that_does_not_answer_is_released_after_its_time(here: AgentWorld) -> None:
    here.detach_after = 0.2
    await here.keys()
    await here.member("one")
    await here.configure()
    async with here.controllers():
        await here.run_pods("one")
        await here.placement("one", is_running)
    # Between two processes: of two watches of one, that of AgentConfigurations may be the faster.
    await here.client.delete(SECRETS, "kubeconfig-one", HOME)
    await here.client.delete(AGENT_CONFIGURATIONS, "fleet", FLEET)
    async with here.controllers():
        await wait_gone(here.client, AGENT_CONFIGURATIONS, "fleet", FLEET)
        (left,) = (await here.client.list(LEFTOVERS, FLEET)).items
        assert left["spec"]["reason"] == "ClusterUnreachable"


async def test_a_namespace_that_holds_objects_of_others_stays(here: AgentWorld) -> None:
    await here.keys()
    await here.member("one")
    await here.configure()
    async with here.controllers(), here.inside("one") as client:
        await here.run_pods("one")
        await here.placement("one", is_running)
        await client.create(SECRETS, {"metadata": {"name": "theirs", "namespace": AGENT}})
        await here.client.delete(AGENT_CONFIGURATIONS, "fleet", FLEET)
        await wait_gone(here.client, AGENT_CONFIGURATIONS, "fleet", FLEET)
        assert (await client.get(SECRETS, "theirs", AGENT))["metadata"]["name"] == "theirs"
        assert await here.inside_object("one", SECRETS, "agent-keys") is None
