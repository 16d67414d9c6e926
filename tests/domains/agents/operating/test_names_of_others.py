"""An agent whose names are those of objects of others: they stay as they are, also when the agent is deleted."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.domains.agents.operating.test_take_over import left_by_the_go_operator
from tests.domains.agents.operating.world import HOME, AgentsWorld, condition

from hortus.domains.agents.builders import InstanaFacts, build_agent
from hortus.domains.agents.defaults import defaulted
from hortus.domains.agents.operating.dependents import dependent_of
from hortus.domains.agents.operating.objects import (
    ACCOUNTS,
    BINDINGS,
    CLUSTER_BINDINGS,
    CLUSTER_ROLES,
    CONFIG_MAPS,
    DAEMON_SETS,
    FIELD_MANAGER,
    ROLES,
    SECRETS,
    resource_of,
)
from hortus.domains.agents.ownership import MARK
from hortus.domains.agents.types import INSTANA_AGENTS, InstanaAgent
from hortus.engine.typed import read
from hortus.kube.objects import Object, Resource

RULES = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
OTHER = "other-team"


def failure(agent: Object) -> str:
    return str((agent.get("status") or {}).get("reason", ""))


async def refused(here: AgentsWorld, name: str = HOME, namespace: str = HOME) -> str:
    """The message of an agent that is not served."""
    found = await here.until(lambda obj: condition(obj, "ReconcileSucceeded")[0] == "False", name, namespace)
    return failure(found)


async def deleted(here: AgentsWorld, name: str = HOME, namespace: str = HOME) -> None:
    await here.client.delete(INSTANA_AGENTS, name, namespace)
    await here.gone(INSTANA_AGENTS, name, namespace)


def unwritten(obj: Object | None) -> Object:
    assert obj is not None
    return obj


@pytest.mark.parametrize(
    ("resource", "taken", "agent"),
    [
        (CLUSTER_ROLES, "powerful", {"serviceAccount": {"name": "powerful"}}),
        (CLUSTER_ROLES, "powerful", {"serviceAccount": {"name": "powerful", "create": False}}),
        (CLUSTER_ROLES, HOME, {}),
        (CLUSTER_ROLES, f"{HOME}-k8sensor", {}),
        (ROLES, f"{HOME}-k8sensor-etcd-reader", {}),
    ],
)
async def test_a_role_of_somebody_else_is_neither_overwritten_nor_bound_nor_deleted(
    here: AgentsWorld, resource: Resource, taken: str, agent: Any
) -> None:
    place = {"namespace": "kube-system"} if resource.namespaced else {}
    before = await here.client.create(resource, {"metadata": {"name": taken, **place}, "rules": RULES})
    await here.agent(**agent)
    async with here.controllers():
        message = await refused(here)
        assert f"dry run of {resource.kind} " in message
        assert f"{taken}: it exists and was written by" in message
        assert await here.owned() == {}, "all or nothing"
        assert await here.get(CLUSTER_BINDINGS, taken) is None
        assert await here.get(BINDINGS, taken, "kube-system") is None
        await deleted(here)
    assert await here.get(resource, taken, "kube-system") == before


@pytest.mark.parametrize("name", ["cluster-admin", "of-a-newer-kubernetes"])
async def test_the_roles_of_kubernetes_itself_are_left_alone_whatever_they_bear(here: AgentsWorld, name: str) -> None:
    labels = {"app.kubernetes.io/managed-by": FIELD_MANAGER, "app.kubernetes.io/instance": HOME}
    body = {
        "metadata": {"name": name, "labels": {**labels, "kubernetes.io/bootstrapping": "rbac-defaults"}},
        "rules": RULES,
    }
    before = await here.client.apply(CLUSTER_ROLES, body, field_manager=FIELD_MANAGER)
    await here.agent(serviceAccount={"name": name})
    async with here.controllers():
        assert f"ClusterRole {name}: it is a default of Kubernetes itself" in await refused(here)
        await deleted(here)
    assert unwritten(await here.get(CLUSTER_ROLES, name))["rules"] == before["rules"]


async def test_a_name_that_is_kubernetes_own_is_refused_before_anything_is_written(here: AgentsWorld) -> None:
    await here.agent(serviceAccount={"name": "system:made-up", "create": False})
    async with here.controllers():
        message = await refused(here)
    assert "spec.serviceAccount.name is 'system:made-up'" in message
    assert await here.get(CLUSTER_ROLES, "system:made-up") is None


async def test_a_name_that_two_namespaces_want_is_the_firsts_and_the_conflict_names_both(here: AgentsWorld) -> None:
    await here.namespace(OTHER)
    await here.agent()
    async with here.controllers():
        first = await here.reconciled()
        before = await here.owned()
        await here.agent("thief", OTHER, serviceAccount={"name": HOME})
        message = await refused(here, "thief", OTHER)
        assert f"it is part of InstanaAgent {HOME}/{HOME} (uid {first['metadata']['uid']})" in message
        assert f"and InstanaAgent {OTHER}/thief (uid " in message
        shared = await here.until(lambda obj: condition(obj, "ConfigurationComplete")[1] == "NameShared")
        assert f"InstanaAgents {OTHER}/thief" in str(shared["status"]["conditions"])
        await deleted(here, "thief", OTHER)
        after = {name: obj for name, obj in (await here.owned()).items() if f" {OTHER}/" not in name}
        assert after == before

        # The next one has the name when the first is gone.
        await here.agent("heir", OTHER, serviceAccount={"name": HOME})
        await refused(here, "heir", OTHER)
        await deleted(here)
        await here.reconciled("heir", OTHER)
    role = unwritten(await here.get(CLUSTER_ROLES, HOME))
    assert role["metadata"]["annotations"][MARK].startswith(f"InstanaAgent {OTHER}/heir (uid ")


async def test_agents_of_one_namespace_may_share_an_account(here: AgentsWorld) -> None:
    account = {"name": "shared"}
    await here.agent(serviceAccount=account)
    await here.agent("second", serviceAccount=account)
    async with here.controllers():
        await here.reconciled()
        await here.reconciled("second")
        await deleted(here, "second")
        await here.until(lambda obj: obj, "shared", resource=CLUSTER_ROLES)
        await here.until(lambda obj: obj, "shared", resource=ACCOUNTS)


async def test_what_the_go_operator_made_for_an_agent_of_this_name_elsewhere_stays_that_agents(
    here: AgentsWorld,
) -> None:
    await left_by_the_go_operator(here)
    before = {name: obj for name, obj in (await here.owned()).items() if "Role" in name}
    assert len(before) == 6
    await here.client.patch(INSTANA_AGENTS, HOME, {"metadata": {"finalizers": None}}, HOME)
    await here.namespace(OTHER)
    await here.agent(HOME, OTHER)
    here.watched = OTHER
    async with here.controllers():
        assert "it exists and is managed by instana-agent-operator" in await refused(here, HOME, OTHER)
        await deleted(here, HOME, OTHER)
    assert {name: obj for name, obj in (await here.owned()).items() if "Role" in name} == before


async def test_an_agent_of_the_go_operator_that_is_deleted_takes_all_along(here: AgentsWorld) -> None:
    await left_by_the_go_operator(here)
    await here.client.delete(INSTANA_AGENTS, HOME, HOME)
    async with here.controllers():
        await here.gone(INSTANA_AGENTS, HOME)
    assert set(await here.owned()) <= {f"ConfigMap {HOME}/{HOME}-dependents"}


async def test_a_record_that_its_author_forged_has_nothing_of_others_deleted(here: AgentsWorld) -> None:
    await here.namespace(OTHER)
    await here.agent("victim", OTHER)
    await here.agent()
    precious = {"metadata": {"name": "precious", "labels": {"app.kubernetes.io/managed-by": FIELD_MANAGER}}}
    await here.client.create(CLUSTER_ROLES, {**precious, "rules": RULES})
    async with here.controllers():
        await here.reconciled("victim", OTHER)
        await here.reconciled()
        await here.at_rest()
        theirs = {name: obj for name, obj in (await here.owned()).items() if "victim" in name or "precious" in name}
        forged = [
            {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}}
            for name in ("victim", "victim-k8sensor", "precious")
        ]
        forged.append(
            {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "victim", "namespace": OTHER}}
        )
        data = {"v1_1": json.dumps(forged)}
        await here.change(CONFIG_MAPS, f"{HOME}-dependents", {"data": data})
        await here.change(INSTANA_AGENTS, HOME, {"spec": {"cluster": {"name": "another"}}})
        await here.reconciled()
        await here.change(CONFIG_MAPS, f"{HOME}-dependents", {"data": data})
        await deleted(here)
    found = {name: obj for name, obj in (await here.owned()).items() if name in theirs}
    assert found == theirs


async def test_a_record_that_its_author_forged_takes_nothing_over(here: AgentsWorld) -> None:
    before = await here.client.create(CLUSTER_ROLES, {"metadata": {"name": "powerful"}, "rules": RULES})
    await here.agent()
    async with here.controllers():
        await here.reconciled()
        entry = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "powerful"}}
        await here.change(CONFIG_MAPS, f"{HOME}-dependents", {"data": {"v1_1": json.dumps([entry])}})
        await here.change(INSTANA_AGENTS, HOME, {"spec": {"serviceAccount": {"name": "powerful"}}})
        assert "ClusterRole powerful: it exists" in await refused(here)
    assert await here.get(CLUSTER_ROLES, "powerful") == before


@pytest.mark.parametrize(("resource", "name"), [(SECRETS, f"{HOME}-config"), (CONFIG_MAPS, f"{HOME}-dependents")])
async def test_an_object_of_somebody_else_next_to_the_agent_is_left_as_it_is(
    here: AgentsWorld, resource: Resource, name: str
) -> None:
    data = {"precious": "eWVz"}
    before = await here.create(resource, name, data=data)
    await here.agent()
    async with here.controllers():
        assert f"{resource.kind} {HOME}/{name}: it exists and was written by" in await refused(here)
        await deleted(here)
    assert await here.get(resource, name) == before
    assert await here.get(DAEMON_SETS, HOME) is None


async def test_the_finalizer_of_the_old_operator_has_nothing_of_other_releases_taken_over(here: AgentsWorld) -> None:
    labels = {"app.kubernetes.io/managed-by": "Helm"}
    annotations = {"meta.helm.sh/release-name": HOME, "meta.helm.sh/release-namespace": "another"}
    metadata = {"name": "powerful", "labels": labels, "annotations": annotations}
    before = await here.client.create(CLUSTER_ROLES, {"metadata": metadata, "rules": RULES})
    await here.agent(serviceAccount={"name": "powerful"})
    await here.change(INSTANA_AGENTS, HOME, {"metadata": {"finalizers": ["agent.instana.io/finalizer"]}})
    async with here.controllers():
        assert "ClusterRole powerful: it exists and is managed by Helm" in await refused(here)
    assert await here.get(CLUSTER_ROLES, "powerful") == before


async def test_a_mark_of_another_uid_is_another_agents(here: AgentsWorld) -> None:
    agent = read(InstanaAgent, await here.agent())
    for obj in build_agent(defaulted(agent), InstanaFacts(operator_version="v1")):
        if obj["kind"] == "ClusterRole":
            obj["metadata"]["annotations"] = {MARK: f"InstanaAgent {HOME}/{HOME} (uid of-a-former-one)"}
            resource = resource_of(dependent_of(obj))
            assert resource is not None
            await here.client.apply(resource, obj, field_manager=FIELD_MANAGER)
    async with here.controllers():
        assert f"it is part of InstanaAgent {HOME}/{HOME} (uid of-a-former-one)" in await refused(here)
