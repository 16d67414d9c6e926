"""Objects that are there already: whose they are decides, and what a set took over is put back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest
from tests.engine.applysets.objects import CONFIGMAPS, NAMESPACES, SECRETS, actions, configmap, namespace, policy

from hortus.engine.applysets import (
    PART_OF,
    ApplySet,
    ConfigMapParent,
    ForeignObject,
    GrantedAdoption,
    LabelledAdoption,
    NoAdoption,
    ObjectAction,
)
from hortus.engine.applysets.adoption import GRANT, LARGEST_UNDO
from hortus.kube import Client
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, Resource
from hortus.testing.apiserver import TestServer

RBAC = "rbac.authorization.k8s.io"
ROLES = Resource(RBAC, "v1", "clusterroles", "ClusterRole", namespaced=False)
BINDINGS = Resource(RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)
GRANTEE = "AgentConfiguration fleet/everywhere"
GRANTED = policy(adopt=GrantedAdoption(GRANTEE))


class World:
    def __init__(self, client: Client) -> None:
        self.client = client

    def set(self, name: str, **options: Any) -> ApplySet:
        options.setdefault("policy", policy())
        return ApplySet.of(self.client, ConfigMapParent(self.client, name, "default"), **options)

    async def get(self, resource: Resource, name: str, namespace: str = "default") -> Object:
        return await self.client.get(resource, name, namespace if resource.namespaced else "")

    async def exists(self, resource: Resource, name: str, namespace: str = "default") -> bool:
        try:
            await self.get(resource, name, namespace)
        except NotFound:
            return False
        return True


@pytest.fixture
async def world(server: TestServer) -> AsyncIterator[World]:
    async with Client.from_kubeconfig(server.kubeconfig) as client:
        yield World(client)


def role(name: str, *verbs: str) -> Object:
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": list(verbs)}]
    return {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules}


def binding(name: str) -> Object:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": "thief", "namespace": "default"}],
    }


def annotated(obj: Object, grantee: str = GRANTEE) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "annotations": {GRANT: grantee}}}


async def test_an_object_of_somebody_else_is_left_as_it_is_and_the_message_says_whose_it_is(world: World) -> None:
    wild = configmap("wild", "default", a="wild")
    wild["metadata"]["labels"] = {"app.kubernetes.io/managed-by": "Helm"}
    before = await world.client.create(CONFIGMAPS, wild)
    report = await world.set("strict").apply([configmap("wild", a="tame")])
    assert report.message() == (
        "ConfigMap default/wild: it exists and is managed by Helm: delete it, or choose another name"
    )
    assert isinstance(report.failures[0].error, ForeignObject)
    assert (await world.set("strict").delete()).complete
    assert await world.get(CONFIGMAPS, "wild") == before


async def test_a_granted_object_is_taken_over_and_gets_back_what_it_had(world: World) -> None:
    await world.client.create(CONFIGMAPS, annotated(configmap("lent", "default", a="theirs", b="kept")))
    ours = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "lent", "labels": {"x": "y"}}}
    wanted = [{**ours, "data": {"a": "ours", "c": "new"}}]
    taking = world.set("taker", policy=GRANTED)
    plan = await taking.plan(wanted)
    (planned,) = plan.outcomes
    assert planned.action is ObjectAction.PENDING
    assert planned.message == "ConfigMap default/lent: would be taken over"
    assert '.data.a: "theirs" instead of "ours"' in " ".join(map(str, planned.drift))
    assert (await taking.apply(wanted)).complete
    taken = await world.get(CONFIGMAPS, "lent")
    assert taken["data"] == {"a": "ours", "b": "kept", "c": "new"}
    assert actions(await taking.apply(wanted)) == {"lent": ObjectAction.UNCHANGED}

    report = await taking.apply([], whole=True)
    assert actions(report) == {"lent": ObjectAction.RESTORED}
    assert report.complete
    now = await world.get(CONFIGMAPS, "lent")
    assert now["data"] == {"a": "theirs", "b": "kept"}
    assert not now["metadata"].get("labels")
    assert now["metadata"]["uid"] == taken["metadata"]["uid"]


async def test_a_set_that_is_deleted_gives_back_what_it_took(world: World) -> None:
    await world.client.create(CONFIGMAPS, annotated(configmap("borrowed", "default", a="theirs")))
    taking = world.set("borrower", policy=GRANTED)
    assert (await taking.apply([configmap("borrowed", a="ours"), configmap("made")])).complete
    assert (await taking.delete()).complete
    assert (await world.get(CONFIGMAPS, "borrowed"))["data"] == {"a": "theirs"}
    assert not await world.exists(CONFIGMAPS, "made")


async def test_a_taken_object_that_somebody_made_again_is_left_to_him(world: World) -> None:
    await world.client.create(CONFIGMAPS, annotated(configmap("again", "default", a="theirs")))
    taking = world.set("again-taker", policy=GRANTED)
    assert (await taking.apply([configmap("again", a="ours")])).complete
    labels = (await world.get(CONFIGMAPS, "again"))["metadata"]["labels"]
    await world.client.delete(CONFIGMAPS, "again", "default")
    second = configmap("again", "default", a="second")
    second["metadata"]["labels"] = labels
    await world.client.create(CONFIGMAPS, second)
    assert actions(await taking.apply([], whole=True)) == {"again": ObjectAction.KEPT}
    assert (await world.get(CONFIGMAPS, "again"))["data"] == {"a": "second"}


@pytest.mark.parametrize("grantee", ["", "AgentConfiguration fleet/other", "AgentConfiguration fleet/everywhere-else"])
async def test_a_grant_to_others_is_none(world: World, grantee: str) -> None:
    name = f"not-lent-{len(grantee)}"
    await world.client.create(CONFIGMAPS, annotated(configmap(name, "default", a="theirs"), grantee))
    report = await world.set(f"{name}-set", policy=GRANTED).apply([configmap(name, a="ours")])
    assert actions(report) == {name: ObjectAction.FAILED}
    assert f"have its owner annotate it with {GRANT}: {GRANTEE}" in report.message()


async def test_the_one_who_writes_a_set_cannot_grant_himself_an_object(world: World) -> None:
    await world.client.create(CONFIGMAPS, configmap("coveted", "default", a="theirs"))
    report = await world.set("covetous", policy=GRANTED).apply([annotated(configmap("coveted", a="ours"))])
    assert actions(report) == {"coveted": ObjectAction.FAILED}


async def test_secrets_and_roles_are_not_taken_over_by_a_grant(world: World) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "lent-secret", "namespace": "default"}}
    await world.client.create(SECRETS, annotated(secret))
    await world.client.create(ROLES, annotated(role("lent-role", "get")))
    report = await world.set("grasping", policy=GRANTED).apply([secret, role("lent-role", "list")])
    assert set(actions(report).values()) == {ObjectAction.FAILED}


async def test_what_could_not_be_put_back_is_not_taken(world: World) -> None:
    await world.client.create(CONFIGMAPS, annotated(configmap("large", "default", a="x" * LARGEST_UNDO)))
    report = await world.set("large-taker", policy=GRANTED).apply([configmap("large", a="ours")])
    assert "could not be put back" in report.message()


async def test_defaults_of_kubernetes_are_never_taken_over_or_deleted_whatever_mark_they_bear(world: World) -> None:
    report = await world.set("usurper", policy=policy(adopt=_Everything())).apply([role("view", "get")])
    assert "it is a default of Kubernetes itself" in report.message()
    inventory = [["rbac.authorization.k8s.io", "ClusterRole", "", "view", "v1", "clusterroles", ""]]
    deposed = world.set("deposed")
    await deposed.apply([configmap("deposed-member")])
    parent = await world.get(CONFIGMAPS, "deposed")
    data = {"inventory": "".join(f"{orjson.dumps(line).decode()}\n" for line in inventory)}
    await world.client.patch(CONFIGMAPS, "deposed", {"data": data}, "default")
    marked = {PART_OF: parent["metadata"]["labels"]["applyset.kubernetes.io/id"]}
    await world.client.patch(ROLES, "view", {"metadata": {"labels": marked}})
    report = await deposed.apply([], whole=True)
    assert actions(report) == {"view": ObjectAction.KEPT}
    assert await world.exists(ROLES, "view")


class _Everything(LabelledAdoption):
    def __init__(self) -> None:
        super().__init__({})


async def test_a_role_that_is_not_ours_is_not_bound_by_a_binding_of_the_set(world: World) -> None:
    await world.client.create(ROLES, role("powerful", "*"))
    report = await world.set("binder").apply([role("powerful", "get"), binding("powerful"), configmap("besides")])
    found = {(one.member.kind, one.action) for one in report.outcomes}
    assert found == {
        ("ClusterRole", ObjectAction.FAILED),
        ("ClusterRoleBinding", ObjectAction.WAITING),
        ("ConfigMap", ObjectAction.APPLIED),
    }
    assert not await world.exists(BINDINGS, "powerful")


async def test_a_set_may_lie_in_a_namespace_of_others_which_stays_when_it_goes(world: World) -> None:
    before = await world.client.create(NAMESPACES, {"metadata": {"name": "theirs"}})
    guest = world.set("guest", policy=policy(adopt=NoAdoption(namespaces=True)))
    assert (await guest.apply([namespace("theirs"), configmap("inside", "theirs")])).complete
    assert (await guest.delete()).complete
    now = await world.get(NAMESPACES, "theirs")
    assert now["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


async def test_what_another_system_made_for_the_same_purpose_is_known_by_its_labels(world: World) -> None:
    old = configmap("older", "default", a="1")
    old["metadata"]["labels"] = {"app": "gardener", "role": "gardenlet"}
    await world.client.create(CONFIGMAPS, old)
    following = world.set("heir", policy=policy(adopt=LabelledAdoption({"app": "gardener", "role": "gardenlet"})))
    assert (await following.apply([configmap("older", a="2")])).complete
    assert (await following.delete()).complete
    assert not await world.exists(CONFIGMAPS, "older")


async def test_an_object_that_somebody_makes_after_we_looked_is_left_to_him(world: World) -> None:
    class Behind:
        """Shows nothing, as before somebody made it."""

        async def get(self, resource: Resource, namespace: str, name: str) -> Object | None:
            return None

        def learn(self, resource: Resource, obj: Object) -> None:
            raise AssertionError(f"{obj['metadata']['name']} is not ours")

    before = await world.client.create(CONFIGMAPS, configmap("raced", "default", b="theirs"), field_manager="them")
    report = await world.set("racer", live=Behind()).apply([configmap("raced", a="ours")])
    assert "somebody has made it just now" in report.message()
    now = await world.get(CONFIGMAPS, "raced")
    assert (now["data"], now["metadata"].get("labels")) == (before["data"], before["metadata"].get("labels"))


async def test_a_trial_that_is_refused_writes_nothing(world: World) -> None:
    await world.client.create(CONFIGMAPS, configmap("occupied", "default"))
    careful = world.set("careful", policy=policy(try_first=True))
    report = await careful.apply([configmap("occupied"), configmap("free")])
    assert report.tried_only
    assert not await world.exists(CONFIGMAPS, "free")
    assert not await world.exists(CONFIGMAPS, "careful")
    assert (await careful.apply([configmap("free")])).complete
