"""Installations that others left: those of the Go operator, of the Helm-based one, and of the one before 2.1."""

from __future__ import annotations

import base64
import gzip
import json

from tests.domains.agents.operating.world import HOME, AgentsWorld

from hortus.domains.agents.builders import InstanaFacts, build_agent, common_labels, owner_of
from hortus.domains.agents.defaults import defaulted
from hortus.domains.agents.operating import dependents
from hortus.domains.agents.operating.objects import (
    ACCOUNTS,
    CLUSTER_BINDINGS,
    CLUSTER_ROLES,
    CONFIG_MAPS,
    DAEMON_SETS,
    DEPLOYMENTS,
    FIELD_MANAGER,
    SECRETS,
    resource_of,
)
from hortus.domains.agents.operating.settings import OperatingSettings
from hortus.domains.agents.ownership import MARK
from hortus.domains.agents.types import INSTANA_AGENTS, InstanaAgent
from hortus.engine.typed import read
from hortus.kube.objects import Object, Resource

GO_VERSION = "v0.0.1-dev"
PODS = Resource("", "v1", "pods", "Pod")
TEMPLATE = {"spec": {"containers": [{"name": "instana-agent", "image": "icr.io/instana/agent:1"}]}}


async def left_by_the_go_operator(here: AgentsWorld) -> None:
    """Make what it leaves: finalizer, objects, and a record that also names an object of a former set."""
    await here.agent()
    body = {"metadata": {"finalizers": ["v3.agent.instana.io/finalizer"]}}
    agent = read(InstanaAgent, await here.change(INSTANA_AGENTS, HOME, body))
    objects = build_agent(defaulted(agent), InstanaFacts(operator_version=GO_VERSION))
    labels, owners = common_labels(agent, HOME, GO_VERSION), [owner_of(agent)]
    metadata = {"name": "former", "namespace": HOME, "labels": labels, "ownerReferences": owners}
    old = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    for obj in (*objects, old):
        resource = resource_of(dependents.dependent_of(obj))
        assert resource is not None
        await here.client.apply(resource, obj, field_manager=FIELD_MANAGER)
    data = dependents.encode(
        {f"{GO_VERSION}_1": dependents.entries_of(objects), f"{GO_VERSION}_1-dirty": dependents.entries_of([old])}, {}
    )
    metadata = {"name": f"{HOME}-dependents", "namespace": HOME, "labels": labels, "ownerReferences": owners}
    await here.client.apply(CONFIG_MAPS, {"metadata": metadata, "data": data}, field_manager=FIELD_MANAGER)


def templates(objects: dict[str, Object]) -> Object:
    return {
        name: (obj["spec"]["template"], obj["metadata"]["generation"])
        for name, obj in objects.items()
        if "template" in obj.get("spec", {})
    }


async def test_taking_over_from_the_go_operator_changes_no_pod_template(here: AgentsWorld) -> None:
    await left_by_the_go_operator(here)
    before = await here.owned()
    async with here.controllers():
        await here.reconciled()
        await here.gone(CONFIG_MAPS, "former")
        await here.at_rest()
    after = await here.owned()
    assert len(templates(before)) == 2
    assert templates(after) == templates(before)


async def test_taking_over_without_a_version_of_our_own_only_marks_what_has_no_owner(
    here: AgentsWorld,
) -> None:
    await left_by_the_go_operator(here)
    here.settings = OperatingSettings(operator_version=GO_VERSION)
    before = await here.owned()
    async with here.controllers():
        agent = await here.reconciled()
        await here.gone(CONFIG_MAPS, "former")
        await here.at_rest()
    after = await here.owned()
    changed = {name for name in before if before[name] != after.get(name)}
    marked = {name for name in changed if "Role" in name}
    assert changed - marked == {f"ConfigMap {HOME}/former", f"ConfigMap {HOME}/{HOME}-dependents"}
    assert len(marked) == 6
    for name in marked:
        was, now = before[name], after[name]
        mark = now["metadata"]["annotations"].pop(MARK)
        assert mark == f"InstanaAgent {HOME}/{HOME} (uid {agent['metadata']['uid']})"
        assert without_history(was) == without_history(now)


def without_history(obj: Object) -> Object:
    metadata = {key: value for key, value in obj["metadata"].items() if key not in ("managedFields", "resourceVersion")}
    return {**obj, "metadata": {**metadata, "annotations": metadata.get("annotations") or {}}}


# The operator of 2.0.x.

OLD_LABELS = {"app.kubernetes.io/name": HOME, "app.kubernetes.io/instance": HOME}


def helms(kind: str, name: str, **parts: object) -> Object:
    labels = {"app.kubernetes.io/managed-by": "Helm"}
    version = "apps/v1" if kind == "DaemonSet" else "v1"
    metadata = {"name": name, "namespace": HOME, "labels": labels}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **parts}


async def left_by_the_operator_of_2_0(here: AgentsWorld) -> None:
    await here.agent()
    finalizers = {"metadata": {"finalizers": ["agent.instana.io/finalizer"]}}
    await here.change(INSTANA_AGENTS, HOME, finalizers)
    template = {"metadata": {"labels": OLD_LABELS}, **TEMPLATE}
    spec = {"selector": {"matchLabels": OLD_LABELS}, "template": template}
    workload = await here.client.create(DAEMON_SETS, helms("DaemonSet", HOME, spec=spec))
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": HOME, "uid": workload["metadata"]["uid"]}
    pod = {"metadata": {"name": "on-a-node", "namespace": HOME, "labels": OLD_LABELS}, **TEMPLATE}
    pod["metadata"]["ownerReferences"] = [owner | {"controller": True}]
    await here.client.create(PODS, pod)
    for kind, name in (("ConfigMap", HOME), ("ServiceAccount", HOME), ("ConfigMap", "kept")):
        resource = CONFIG_MAPS if kind == "ConfigMap" else ACCOUNTS
        await here.client.create(resource, helms(kind, name))
    manifest = "\n---\n".join(
        json.dumps(one)
        for one in (
            helms("DaemonSet", HOME),
            helms("ConfigMap", HOME),
            helms("ServiceAccount", HOME),
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "kept", "annotations": {"helm.sh/resource-policy": "keep"}},
            },
        )
    )
    text = json.dumps({"name": HOME, "version": 1, "manifest": manifest}).encode()
    packed = base64.b64encode(base64.b64encode(gzip.compress(text))).decode()
    labels = {"owner": "helm", "name": HOME, "status": "deployed", "version": "1"}
    record = {"metadata": {"labels": labels}, "type": "helm.sh/release.v1", "data": {"release": packed}}
    await here.create(SECRETS, f"sh.helm.release.v1.{HOME}.v1", **record)


async def test_the_helm_based_operator_is_followed_without_an_interruption(here: AgentsWorld) -> None:
    await left_by_the_operator_of_2_0(here)
    async with here.controllers():
        agent = await here.reconciled()
        assert set(agent["metadata"]["finalizers"]) == {"agent.instana.io/finalizer", "v3.agent.instana.io/finalizer"}
        found = await here.get(DAEMON_SETS, HOME)
        assert found is not None
        assert found["metadata"]["labels"]["app.kubernetes.io/managed-by"] == FIELD_MANAGER
        pod = await here.get(PODS, "on-a-node")
        assert pod is not None
        assert found["spec"]["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
        # As long as the new agents are not available, nothing that the old ones use is deleted.
        assert await here.get(CONFIG_MAPS, HOME) is not None

        await here.ready(DAEMON_SETS, HOME)
        await here.ready(DEPLOYMENTS, f"{HOME}-k8sensor")
        await here.until(lambda obj: obj["metadata"].get("finalizers") == ["v3.agent.instana.io/finalizer"])
        assert await here.get(SECRETS, f"sh.helm.release.v1.{HOME}.v1") is None
        assert await here.get(CONFIG_MAPS, HOME) is None
        assert await here.get(CONFIG_MAPS, "kept") is not None
        assert await here.get(ACCOUNTS, HOME) is not None  # taken over
        await here.client.delete(INSTANA_AGENTS, HOME, HOME)
        await here.gone(INSTANA_AGENTS, HOME)


async def test_an_agent_of_the_helm_based_operator_can_be_deleted(here: AgentsWorld) -> None:
    await left_by_the_operator_of_2_0(here)
    await here.client.delete(INSTANA_AGENTS, HOME, HOME)
    async with here.controllers():
        await here.gone(INSTANA_AGENTS, HOME)
        assert await here.get(DAEMON_SETS, HOME) is None
        assert await here.get(CONFIG_MAPS, "kept") is not None


async def test_the_operator_before_2_1_is_deleted_at_the_start_and_its_namesakes_stay(here: AgentsWorld) -> None:
    operator = {"app.kubernetes.io/name": "instana-agent-operator"}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, **TEMPLATE}}
    await here.create(DEPLOYMENTS, "controller-manager", metadata={"labels": operator}, spec=spec)
    await here.namespace("other")
    await here.create(DEPLOYMENTS, "controller-manager", "other", spec=spec)
    rules = [{"apiGroups": ["instana.io"], "resources": ["agents"], "verbs": ["get"]}]
    await here.client.create(CLUSTER_ROLES, {"metadata": {"name": "manager-role"}, "rules": rules})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "manager-role"}
    subjects = [{"kind": "ServiceAccount", "name": "somebody", "namespace": HOME}]
    binding = {"metadata": {"name": "manager-rolebinding"}, "roleRef": role, "subjects": subjects}
    await here.client.create(CLUSTER_BINDINGS, binding)
    async with here.controllers():
        assert await here.get(DEPLOYMENTS, "controller-manager") is None
        assert await here.get(CLUSTER_ROLES, "manager-role") is None
        assert await here.get(DEPLOYMENTS, "controller-manager", "other") is not None
        assert await here.get(CLUSTER_BINDINGS, "manager-rolebinding") is not None
