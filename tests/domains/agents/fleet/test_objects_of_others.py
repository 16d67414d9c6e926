"""An AgentConfiguration next to what clusters and their users have: nothing of theirs is taken, copied or deleted."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
import pytest
from tests.domains.agents.fleet.world import (
    AGENT,
    DAEMON_SETS,
    FLEET,
    NAMESPACES,
    AgentWorld,
    is_running,
    message,
    ready,
    version,
)

from hortus.domains.agents.builders import InstanaFacts, build_agent
from hortus.domains.agents.defaults import defaulted
from hortus.domains.agents.fleet.distribution import DISTRIBUTABLE
from hortus.domains.agents.operating.dependents import dependent_of
from hortus.domains.agents.operating.objects import (
    ACCOUNTS,
    CLUSTER_BINDINGS,
    CLUSTER_ROLES,
    CONFIG_MAPS,
    FIELD_MANAGER,
    ROLES,
    resource_of,
)
from hortus.domains.agents.types import AGENT_CONFIGURATIONS, InstanaAgent
from hortus.engine.applysets import part_of
from hortus.engine.applysets.adoption import GRANT
from hortus.engine.kubeconfigs import SECRETS
from hortus.kube import Client
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, Resource
from hortus.testing.waiting import wait_gone

RULES = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
GRANTEE = f"AgentConfiguration {FLEET}/fleet"


async def removed(here: AgentWorld) -> None:
    await here.client.delete(AGENT_CONFIGURATIONS, "fleet", FLEET)
    await wait_gone(here.client, AGENT_CONFIGURATIONS, "fleet", FLEET)


async def create(inside: Client, resource: Resource, name: str, **parts: Any) -> Object:
    """An object of a user of the member, in the namespace of the agent where its kind has one."""
    place = {"namespace": AGENT} if resource.namespaced else {}
    metadata = {"name": name, **place, **parts.pop("metadata", {})}
    body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **parts}
    return await inside.create(resource, body, field_manager="member-user")


async def seen(inside: Client, resource: Resource, name: str) -> Object:
    return await inside.get(resource, name, AGENT if resource.namespaced else "")


@pytest.mark.parametrize("name", ["cluster-admin", "view", "powerful"])
async def test_a_role_of_a_member_is_neither_overwritten_nor_bound_nor_deleted(here: AgentWorld, name: str) -> None:
    await here.keys()
    await here.member("one")
    async with here.inside("one") as inside:
        if name == "powerful":
            await create(inside, CLUSTER_ROLES, name, rules=RULES)
        before = await seen(inside, CLUSTER_ROLES, name)
        await here.configure(template={"serviceAccount": {"name": name}})
        async with here.controllers():
            found = await here.placement("one", lambda obj: ready(obj) == ("False", "ObjectTaken"))
            assert f"ClusterRole.rbac.authorization.k8s.io {name}: it " in message(found)
            assert await seen(inside, CLUSTER_ROLES, name) == before
            with pytest.raises(NotFound):
                bound = await seen(inside, CLUSTER_BINDINGS, name)
                if not part_of(bound):
                    raise NotFound("it is the cluster's own")
            await removed(here)
        assert await seen(inside, CLUSTER_ROLES, name) == before


async def test_a_name_that_is_kubernetes_own_fails_the_configuration_of_a_cluster(here: AgentWorld) -> None:
    await here.keys()
    await here.member("one")
    await here.configure(template={"serviceAccount": {"name": "system:node", "create": False}})
    async with here.controllers():
        found = await here.placement("one", lambda obj: ready(obj) == ("False", "RenderFailed"))
    assert "names that begin with system: are Kubernetes' own" in message(found)
    assert await here.inside_object("one", NAMESPACES, AGENT) is None


@pytest.mark.parametrize(
    ("resource", "name", "parts"),
    [
        (ACCOUNTS, "theirs", {"imagePullSecrets": [{"name": "precious"}]}),
        (SECRETS, "agent-keys", {"data": {"key": base64.b64encode(b"of the member").decode()}}),
        (CONFIG_MAPS, f"{AGENT}-namespaces", {"data": {"precious": "yes"}}),
    ],
)
async def test_objects_of_a_members_users_stay_as_they_are(
    here: AgentWorld, resource: Resource, name: str, parts: Any
) -> None:
    await here.keys()
    await here.member("one")
    async with here.inside("one") as inside:
        await inside.create(NAMESPACES, {"metadata": {"name": AGENT}})
        before = await create(inside, resource, name, **parts)
        await here.configure(template={"serviceAccount": {"name": "theirs"}})
        async with here.controllers():
            found = await here.placement("one", lambda obj: ready(obj) == ("False", "ObjectTaken"))
            assert f"{resource.kind} {AGENT}/{name}: it exists and was written by member-user" in message(found)
            await removed(here)
        assert await seen(inside, resource, name) == before


async def test_a_namespace_of_a_members_users_is_used_and_stays_empty_or_not(here: AgentWorld) -> None:
    await here.keys()
    await here.member("one")
    async with here.inside("one") as inside:
        before = await inside.create(NAMESPACES, {"metadata": {"name": AGENT}})
        await here.configure()
        async with here.controllers():
            await here.run_pods("one")
            await here.placement("one", is_running)
            await removed(here)
        assert await here.inside_object("one", DAEMON_SETS, AGENT) is None
        now = await seen(inside, NAMESPACES, AGENT)
        assert now["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


async def test_what_the_owner_of_an_object_grants_is_taken_over_and_put_back(here: AgentWorld) -> None:
    await here.keys()
    await here.member("one")
    async with here.inside("one") as inside:
        await inside.create(NAMESPACES, {"metadata": {"name": AGENT}})
        granted = {"annotations": {GRANT: GRANTEE}, "labels": {"team": "theirs"}}
        await create(inside, CONFIG_MAPS, f"{AGENT}-namespaces", metadata=granted, data={"namespaces.yaml": "theirs"})
        await here.configure()
        async with here.controllers():
            await here.run_pods("one")
            await here.placement("one", is_running)
            taken = await seen(inside, CONFIG_MAPS, f"{AGENT}-namespaces")
            assert taken["data"] != {"namespaces.yaml": "theirs"}
            await removed(here)
        now = await seen(inside, CONFIG_MAPS, f"{AGENT}-namespaces")
        assert now["data"] == {"namespaces.yaml": "theirs"}
        assert (now["metadata"]["labels"], now["metadata"]["uid"]) == ({"team": "theirs"}, taken["metadata"]["uid"])


async def test_the_author_of_a_configuration_grants_himself_nothing(here: AgentWorld) -> None:
    await here.keys()
    await here.member("one")
    async with here.inside("one") as inside:
        await inside.create(NAMESPACES, {"metadata": {"name": AGENT}})
        before = await create(inside, ACCOUNTS, "theirs")
        await here.configure(template={"serviceAccount": {"name": "theirs", "annotations": {GRANT: GRANTEE}}})
        async with here.controllers():
            await here.placement("one", lambda obj: ready(obj) == ("False", "ObjectTaken"))
        assert await seen(inside, ACCOUNTS, "theirs") == before


async def left_by_an_operator(inside: Client, namespace: str = AGENT) -> None:
    """The objects of an agent whose operator and InstanaAgent are gone."""
    metadata = {"name": AGENT, "namespace": namespace, "uid": "gone", "generation": 1}
    base = {"endpointHost": "ingress.example.org", "endpointPort": "443", "key": "k"}
    spec = {"agent": base, "cluster": {"name": "one"}, "zone": {"name": "z"}}
    agent = msgspec.convert({"metadata": metadata, "spec": spec}, InstanaAgent)
    for name in {namespace, "kube-system"}:
        await inside.apply(NAMESPACES, {"metadata": {"name": name}}, field_manager="test")
    for obj in build_agent(defaulted(agent), InstanaFacts(operator_version="v0.0.1-dev")):
        resource = resource_of(dependent_of(obj))
        assert resource is not None
        obj["metadata"].pop("ownerReferences", None)
        await inside.apply(resource, obj, field_manager=FIELD_MANAGER)


async def test_what_an_operator_left_for_this_very_agent_is_taken_over_as_it_is(here: AgentWorld) -> None:
    await here.keys()
    await here.member("one")
    async with here.inside("one") as inside:
        await left_by_an_operator(inside)
        uid = (await seen(inside, DAEMON_SETS, AGENT))["metadata"]["uid"]
        await here.configure()
        async with here.controllers():
            await here.placement("one", version)
            await here.run_pods("one")
            await here.placement("one", is_running)
            assert (await seen(inside, DAEMON_SETS, AGENT))["metadata"]["uid"] == uid
            await removed(here)
        for resource in (DAEMON_SETS, CLUSTER_ROLES, CLUSTER_BINDINGS):
            assert await here.inside_object("one", resource, AGENT) is None
        assert await here.inside_object("one", ROLES, f"{AGENT}-k8sensor-etcd-reader", "kube-system") is None


async def test_what_an_operator_made_for_an_agent_of_another_namespace_is_not(here: AgentWorld) -> None:
    await here.keys()
    await here.member("one")
    async with here.inside("one") as inside:
        await left_by_an_operator(inside, "elsewhere")
        before = await seen(inside, CLUSTER_ROLES, AGENT)
        await here.configure()
        async with here.controllers():
            found = await here.placement("one", lambda obj: ready(obj) == ("False", "ObjectTaken"))
            assert f"ClusterRole.rbac.authorization.k8s.io {AGENT}: it exists and is managed by" in message(found)
            await removed(here)
        assert await seen(inside, CLUSTER_ROLES, AGENT) == before


async def test_a_secret_that_its_owner_has_not_let_go_reaches_no_cluster(here: AgentWorld) -> None:
    await here.keys()
    await here.client.patch(SECRETS, "agent-keys", {"metadata": {"labels": {DISTRIBUTABLE: None}}}, FLEET)
    await here.member("one")
    await here.configure()
    async with here.controllers():
        found = await here.configuration(lambda obj: ready(obj)[1] == "SecretNotDistributable")
        assert f"give it the label {DISTRIBUTABLE}=true" in message(found)
        assert await here.placed() == set()
        await here.keys()
        await here.run_pods("one")
        await here.placement("one", is_running)
        assert await here.inside_object("one", SECRETS, "agent-keys") is not None


@pytest.mark.parametrize(
    "template",
    [
        {"agent": {"tls": {"secretName": "precious"}}},
        {"agent": {"image": {"pullSecrets": [{"name": "precious"}]}}},
        {"k8s_sensor": {"etcd": {"ca": {"secretName": "precious"}}}},
        {"k8s_sensor": {"restClient": {"ca": {"secretName": "precious"}}}},
    ],
)
async def test_no_field_of_a_template_names_a_secret_for_which_no_label_is_needed(
    here: AgentWorld, template: Any
) -> None:
    await here.keys()
    data = {"password": base64.b64encode(b"of another team").decode()}
    await here.client.create(SECRETS, {"metadata": {"name": "precious", "namespace": FLEET}, "data": data})
    await here.member("one")
    await here.configure(agent=template.get("agent"), template={k: v for k, v in template.items() if k != "agent"})
    async with here.controllers():
        found = await here.configuration(lambda obj: ready(obj)[1] == "SecretNotDistributable")
    assert "names the Secret precious, which may not go to clusters" in message(found)
