"""The objects that a set deletes and those it never does, against our server and against a real kube-apiserver."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from tests.engine.applysets.objects import (
    CONFIGMAPS,
    CRDS,
    DEPLOYMENTS,
    NAMESPACES,
    SECRETS,
    actions,
    definition,
    namespace,
    policy,
)
from tests.engine.applysets.objects import configmap as plain_configmap
from tests.oracles.controlplane import RealServer, find_assets, running_control_plane, why_none
from tests.waiting import until

from hortus.engine.applysets import (
    PART_OF,
    ApplyReport,
    ApplySet,
    ClusterClient,
    ConfigMapParent,
    Conflicts,
    DiscoveredKinds,
    ForeignParent,
    Namespaced,
    ObjectAction,
    UnreadableKinds,
    set_id,
)
from hortus.kube import Client
from hortus.kube.errors import Conflict, NotFound, NotServed
from hortus.kube.objects import Object, Resource
from hortus.testing.apiserver import TestServer, started_apiserver

_NUMBERS = itertools.count()
API_SERVICES = Resource("apiregistration.k8s.io", "v1", "apiservices", "APIService", namespaced=False)
HOLD = "example.org/hold"


class World:
    """A namespace of its own in a cluster that others use as well."""

    def __init__(self, client: Client, name: str) -> None:
        self.client, self.name = client, name
        self.kind = f"Fruit{name.replace('-', '')}"
        self.plural = f"{self.kind.lower()}s"
        self.fruits = Resource("sets.example", "v1", self.plural, self.kind)

    def set(self, name: str = "set", **options: Any) -> ApplySet:
        options.setdefault("policy", policy())
        return ApplySet.of(self.client, ConfigMapParent(self.client, name, self.name), **options)

    def configmap(self, name: str, **data: str) -> Object:
        return plain_configmap(name, self.name, **data)

    def definition(self) -> Object:
        return definition(self.plural, self.kind)

    def fruit(self, name: str, *, held: bool = False) -> Object:
        metadata: Object = {"name": name, "namespace": self.name, **({"finalizers": [HOLD]} if held else {})}
        return {"apiVersion": "sets.example/v1", "kind": self.kind, "metadata": metadata}

    def operator(self) -> Object:
        pod = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        spec = {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": pod}
        metadata = {"name": "operator", "namespace": self.name}
        return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}

    async def exists(self, resource: Resource, name: str, namespace: str | None = None) -> bool:
        place = (self.name if namespace is None else namespace) if resource.namespaced else ""
        try:
            await self.client.get(resource, name, place)
        except NotFound:
            return False
        return True

    async def plant(self, name: str, *, held: bool = False) -> None:
        """Make a fruit; kube-apiserver serves its kind a moment after it has established the definition.

        By a patch: it delays what is created within two seconds from then on.
        """

        async def is_created() -> bool:
            try:
                await self.client.apply(self.fruits, self.fruit(name, held=held), field_manager="gardener")
            except NotServed:
                return False
            return True

        await until(is_created)

    async def release(self, name: str) -> None:
        await self.client.patch(self.fruits, name, {"metadata": {"finalizers": None}}, self.name)


@pytest.fixture(scope="module", params=["ours", "real"])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TestServer | RealServer]:
    if request.param == "ours":
        with started_apiserver() as made:
            yield made
        return
    assets = find_assets()
    if assets is None:
        pytest.skip(why_none())
    with running_control_plane(assets, tmp_path_factory.mktemp("control-plane")) as running:
        yield running


@pytest.fixture
async def world(server: TestServer | RealServer) -> AsyncIterator[World]:
    async with Client.from_kubeconfig(server.kubeconfig) as client:
        made = World(client, f"p-{next(_NUMBERS)}")
        await client.create(NAMESPACES, namespace(made.name))
        yield made


def said(report: ApplyReport, name: str) -> str:
    return next(outcome.message for outcome in report.outcomes if outcome.member.name == name)


async def _deleted(given: ApplySet) -> None:
    """Delete a set, as often as it takes until that is complete: the server finalizes objects by itself."""

    async def is_complete() -> bool:
        return (await given.delete()).complete

    await until(is_complete)


async def test_an_object_that_the_server_returns_as_it_was_is_gone(world: World) -> None:
    """kube-apiserver answers the deletion of Services and ServiceAccounts with the object."""
    service: Object = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": world.name}}
    account: Object = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a", "namespace": world.name}}
    service["spec"] = {"ports": [{"port": 80}]}
    await world.set().apply([service, account, world.configmap("c")])
    report = await world.set().apply([], whole=True)
    assert set(actions(report).values()) == {ObjectAction.PRUNED}
    assert report.complete


async def test_secrets_that_a_namespace_has_by_itself_hide_nothing(world: World) -> None:
    name = f"{world.name}-full"
    await world.set().apply([namespace(name)])
    for number in range(60):
        secret = {"metadata": {"name": f"default-token-{number:03}", "namespace": name}}
        secret["metadata"]["annotations"] = {"kubernetes.io/service-account.name": "default"}  # type: ignore[assignment]
        await world.client.create(SECRETS, secret)
    await world.client.create(SECRETS, {"metadata": {"name": "precious", "namespace": name}})
    report = await world.set().apply([], whole=True)
    assert actions(report) == {name: ObjectAction.HELD}
    assert f"Namespace {name}: it holds the Secret precious" in report.message()
    assert not report.complete

    await world.client.delete(SECRETS, "precious", name)
    await world.client.create(SECRETS, {"metadata": {**secret["metadata"], "name": "a-token-that-somebody-made"}})
    report = await world.set().apply([], whole=True)
    assert "it holds the Secret a-token-that-somebody-made" in report.message()

    await world.client.delete(SECRETS, "a-token-that-somebody-made", name)
    assert actions(await world.set().apply([], whole=True))[name] in (ObjectAction.PRUNED, ObjectAction.PRUNING)


class Blind(DiscoveredKinds):
    """Discovery while the server of one group is away."""

    async def namespaced(self) -> Namespaced:
        return Namespaced((await super().namespaced()).resources, ["away.example/v1"])

    async def named(self, group_kind: str, *, fresh: bool = False) -> Resource | None:
        raise UnreadableKinds(f"nobody knows where {group_kind} is")


async def test_a_namespace_stays_while_nobody_can_tell_what_it_holds(world: World) -> None:
    name = f"{world.name}-empty"
    await world.set().apply([namespace(name)])
    parent = ConfigMapParent(world.client, "set", world.name)
    blind = ApplySet(ClusterClient(world.client), parent, kinds=Blind(world.client), policy=policy())
    report = await blind.apply([], whole=True)
    assert actions(report) == {name: ObjectAction.HELD}
    assert "it holds objects perhaps that cannot be seen now (away.example/v1)" in report.message()
    assert await world.exists(NAMESPACES, name)


async def test_a_group_whose_server_is_away_may_hold_something(world: World, server: TestServer | RealServer) -> None:
    if not isinstance(server, RealServer):
        assert not (await DiscoveredKinds(world.client).namespaced()).unknown, "we serve all groups ourselves"
        return
    name = f"{world.name}-empty"
    await world.set().apply([namespace(name)])
    spec = {"group": "away.example", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100}
    spec["service"] = {"name": "nobody", "namespace": world.name}
    spec["insecureSkipTLSVerify"] = True
    await world.client.create(API_SERVICES, {"metadata": {"name": "v1.away.example"}, "spec": spec})
    kinds = DiscoveredKinds(world.client)

    async def is_unknown() -> bool:
        return "away.example/v1" in (await kinds.namespaced()).unknown

    async def is_forgotten() -> bool:
        return not await is_unknown()

    try:
        await until(is_unknown)
        report = await world.set().apply([], whole=True)
        assert "cannot be seen now (away.example/v1)" in report.message()
        with pytest.raises(UnreadableKinds, match=r"away\.example"):
            await kinds.named("Thing.away.example")
    finally:
        await world.client.delete(API_SERVICES, "v1.away.example")
        await until(is_forgotten)  # other tests ask the same server


async def test_an_object_whose_version_is_served_no_more_is_found_where_it_is_served_now(world: World) -> None:
    crd = world.definition()
    (v1,) = crd["spec"]["versions"]
    await world.set("kinds").apply([crd])
    await world.set().apply([world.fruit("pear")])
    crd["spec"]["versions"] = [{**v1, "served": False, "storage": False}, {**v1, "name": "v2"}]
    await world.set("kinds").apply([crd])
    later = Resource("sets.example", "v2", world.plural, world.kind)

    async def is_served_later() -> bool:
        return await world.exists(later, "pear") and not await world.exists(world.fruits, "pear")

    await until(is_served_later)
    assert actions(await world.set().apply([], whole=True)) == {"pear": ObjectAction.PRUNED}
    assert not await world.exists(later, "pear")


async def test_an_object_of_a_kind_that_nobody_can_find_is_not_forgotten(world: World) -> None:
    await world.set("kinds").apply([world.definition()])
    await world.set().apply([world.fruit("pear")])
    await world.set("kinds").delete()
    parent = ConfigMapParent(world.client, "set", world.name)
    blind = ApplySet(ClusterClient(world.client), parent, kinds=Blind(world.client), policy=policy())
    if await world.exists(world.fruits, "pear"):
        await world.client.delete(world.fruits, "pear", world.name)
        await world.set("kinds").delete()
    report = await blind.apply([], whole=True)
    assert actions(report) == {"pear": ObjectAction.FAILED}
    assert [member.name for member in await parent.load()] == ["pear"]
    assert (await world.set().apply([], whole=True)).complete, "with its definition it is gone"
    assert await parent.load() == {}


async def test_a_definition_of_which_nothing_is_served_may_have_objects(world: World) -> None:
    crd = world.definition()
    await world.set().apply([crd, world.operator()])
    await world.plant("hidden")
    unserved = {"spec": {"versions": [{**crd["spec"]["versions"][0], "served": False}]}}
    await world.client.patch(CRDS, crd["metadata"]["name"], unserved)
    report = await world.set().apply([], whole=True)
    assert actions(report) == {crd["metadata"]["name"]: ObjectAction.HELD, "operator": ObjectAction.WAITING}
    assert await world.exists(CRDS, crd["metadata"]["name"])


class Meddled(ClusterClient):
    """Somebody takes the label off between our look and our deletion."""

    async def delete(self, resource: Resource, name: str, namespace: str = "", **options: Any) -> Object:  # type: ignore[override]
        await self.client.patch(resource, name, {"metadata": {"labels": {PART_OF: None}}}, namespace)
        return await self.client.delete(resource, name, namespace, **options)

    def __init__(self, client: Client) -> None:
        self.client = client
        self.get, self.apply = client.get, client.apply


class Stale:
    """A cache that shows what has long been otherwise."""

    def __init__(self, obj: Object) -> None:
        self.obj = obj

    async def get(self, resource: Resource, namespace: str, name: str) -> Object | None:
        return self.obj

    def learn(self, resource: Resource, obj: Object) -> None: ...


async def test_what_was_changed_since_we_looked_is_looked_at_again(world: World) -> None:
    await world.set().apply([world.configmap("taken")])
    parent = ConfigMapParent(world.client, "set", world.name)
    racing = ApplySet(Meddled(world.client), parent, kinds=DiscoveredKinds(world.client), policy=policy())
    assert actions(await racing.apply([], whole=True)) == {"taken": ObjectAction.KEPT}
    assert await world.exists(CONFIGMAPS, "taken")


async def test_a_cache_that_lags_behind_deletes_nothing(world: World) -> None:
    await world.set().apply([world.configmap("taken")])
    before = await world.client.get(CONFIGMAPS, "taken", world.name)
    await world.client.patch(CONFIGMAPS, "taken", {"metadata": {"labels": {PART_OF: None}}}, world.name)
    assert actions(await world.set(live=Stale(before)).apply([], whole=True)) == {"taken": ObjectAction.KEPT}
    assert await world.exists(CONFIGMAPS, "taken")


async def test_a_deletion_is_not_complete_while_a_namespace_is_held(world: World) -> None:
    name = f"{world.name}-full"
    await world.set().apply([namespace(name), world.configmap("mine")])
    await world.client.create(CONFIGMAPS, plain_configmap("precious", name))
    report = await world.set().delete()
    assert actions(report) == {"mine": ObjectAction.PRUNED, name: ObjectAction.HELD}
    assert not report.complete
    assert await world.exists(CONFIGMAPS, "set"), "the parent remembers what is left"
    await world.client.delete(CONFIGMAPS, "precious", name)
    await _deleted(world.set())
    assert not await world.exists(CONFIGMAPS, "set")


async def test_an_operator_outlives_the_objects_whose_finalizers_wait_for_it(world: World) -> None:
    objects = [world.definition(), world.operator(), world.fruit("pear", held=True), world.configmap("settings")]
    assert (await world.set().apply(objects)).complete
    crd = objects[0]["metadata"]["name"]
    plan = await world.set().plan([], whole=True)
    assert said(plan, "operator").endswith(
        f"operator: would be deleted, when {world.kind}.sets.example {world.name}/pear is gone"
    )
    for _ in range(2):
        report = await world.set().delete()
        assert actions(report) == {
            "pear": ObjectAction.PRUNING,
            crd: ObjectAction.WAITING,
            "operator": ObjectAction.WAITING,
            "settings": ObjectAction.WAITING,
        }
        assert "it is deleted when" in said(report, "operator")
    assert await world.exists(DEPLOYMENTS, "operator")
    await world.release("pear")
    await _deleted(world.set())
    assert not await world.exists(DEPLOYMENTS, "operator")
    assert not await world.exists(CRDS, crd)


async def test_an_operator_stays_while_others_have_objects_that_it_finalizes(world: World) -> None:
    await world.set().apply([world.definition(), world.operator()])
    await world.plant("a-free-one")
    await world.plant("theirs", held=True)
    crd = world.definition()["metadata"]["name"]
    report = await world.set().apply([], whole=True)
    assert actions(report) == {crd: ObjectAction.HELD, "operator": ObjectAction.WAITING}
    assert f"it holds the {world.kind} {world.name}/theirs" in said(report, crd)

    await world.release("theirs")
    report = await world.set().apply([], whole=True)
    assert actions(report) == {crd: ObjectAction.HELD, "operator": ObjectAction.PRUNED}, (
        "nothing is left for it to finalize"
    )


async def test_a_definition_goes_before_its_operator_also_with_its_objects(world: World) -> None:
    await world.set().apply([world.definition(), world.operator()])
    await world.plant("theirs", held=True)
    crd = world.definition()["metadata"]["name"]
    patient = policy(prune_content=True, wait=0.5)
    report = await world.set(policy=patient).delete()
    assert actions(report) == {crd: ObjectAction.PRUNING, "operator": ObjectAction.WAITING}
    await world.release("theirs")
    await _deleted(world.set(policy=patient))
    assert not await world.exists(DEPLOYMENTS, "operator")


async def test_a_configmap_of_somebody_else_does_not_become_the_parent(world: World) -> None:
    theirs = await world.client.create(CONFIGMAPS, world.configmap("set", precious="yes"))
    for run in (
        world.set().apply([world.configmap("a")]),
        world.set().plan([world.configmap("a")]),
        world.set().delete(),
    ):
        with pytest.raises(ForeignParent, match="it is not the parent of this set"):
            await run
    assert await world.client.get(CONFIGMAPS, "set", world.name) == theirs
    assert not await world.exists(CONFIGMAPS, "a")


async def test_a_configmap_that_somebody_makes_meanwhile_does_not_become_the_parent(world: World) -> None:
    parent = ConfigMapParent(world.client, "set", world.name)
    assert await parent.load() == {}
    theirs = await world.client.create(CONFIGMAPS, world.configmap("set", precious="yes"))
    with pytest.raises(ForeignParent, match="just now"):
        await parent.store({})
    await parent.remove()
    assert await world.client.get(CONFIGMAPS, "set", world.name) == theirs

    await world.set("other").apply([world.configmap("a")])
    other = ConfigMapParent(world.client, "other", world.name)
    await other.load()
    await world.client.delete(CONFIGMAPS, "other", world.name)
    theirs = await world.client.create(CONFIGMAPS, world.configmap("other", precious="yes"))
    with pytest.raises(ForeignParent, match="replaced"):
        await other.store({})
    with pytest.raises(Conflict):
        await other.remove()
    assert await world.client.get(CONFIGMAPS, "other", world.name) == theirs


async def test_little_or_nothing_prunes_only_with_an_explicit_word(world: World) -> None:
    objects = [world.configmap(name) for name in "abcde"]
    await world.set().apply(objects)
    for given in ([], objects[:1], objects[:2]):
        for report in (await world.set().plan(given), await world.set().apply(given)):
            assert not report.complete
            assert len(report.of(ObjectAction.HELD)) == 5 - len(given)
            assert f"was given {len(given)} objects; if that is all of it, say whole=True" in report.message()
    assert [await world.exists(CONFIGMAPS, name) for name in "abcde"] == [True] * 5
    assert len((await world.set().apply(objects[:3])).of(ObjectAction.PRUNED)) == 2
    assert len((await world.set().apply(objects[:1], whole=True)).of(ObjectAction.PRUNED)) == 2
    assert (await world.set("new").apply([])).outcomes == [], "there is nothing that could be pruned"


async def test_a_plan_says_what_the_server_would_say(world: World) -> None:
    held = f"{world.name}-held"
    await world.set().apply([namespace(held), *map(world.configmap, ("goes", "unmarked", "x"))])
    await world.client.create(CONFIGMAPS, plain_configmap("precious", held))
    await world.client.patch(CONFIGMAPS, "unmarked", {"metadata": {"labels": {PART_OF: None}}}, world.name)
    theirs = world.configmap("fought", a="theirs")
    identity = set_id(name="set", namespace=world.name, kind="ConfigMap", group="")
    theirs["metadata"]["labels"] = {PART_OF: identity}
    await world.client.apply(CONFIGMAPS, theirs, field_manager="them")
    fresh = f"{world.name}-new"
    wanted = [world.configmap("x", a="1"), namespace(fresh), plain_configmap("inside", fresh)]
    before = (await world.client.list(CONFIGMAPS, world.name)).items

    plan = await world.set().plan(wanted)
    assert actions(plan) == {
        fresh: ObjectAction.PENDING,
        "x": ObjectAction.PENDING,
        "inside": ObjectAction.PENDING,
        "goes": ObjectAction.PENDING,
        "unmarked": ObjectAction.KEPT,
        held: ObjectAction.HELD,
    }
    assert said(plan, "inside") == f"ConfigMap {fresh}/inside: would be created, after Namespace {fresh}"
    assert said(plan, "goes") == f"ConfigMap {world.name}/goes: would be deleted"

    meek = policy(conflicts=Conflicts.REFUSE)
    refused = [*wanted, world.configmap("fought", a="ours"), {**world.configmap("bad"), "data": {"no good": "1"}}]
    plan = await world.set(policy=meek).plan(refused)
    assert {outcome.member.name for outcome in plan.failures} == {"fought", "bad"}
    assert '"them"' in said(plan, "fought")
    assert not {"goes", held} & actions(plan).keys(), "a run with failures prunes nothing"
    assert (await world.client.list(CONFIGMAPS, world.name)).items == before
    assert not await world.exists(NAMESPACES, fresh)

    report = await world.set().apply(wanted)
    assert actions(report) == {
        fresh: ObjectAction.APPLIED,
        "x": ObjectAction.APPLIED,
        "inside": ObjectAction.APPLIED,
        "goes": ObjectAction.PRUNED,
        "unmarked": ObjectAction.KEPT,
        held: ObjectAction.HELD,
    }
