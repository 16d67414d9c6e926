"""Sets through a real socket: order, pruning, drift, conflicts, and no call for what is as wanted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from tests.engine.applysets.objects import (
    CONFIGMAPS,
    CRDS,
    DEPLOYMENTS,
    SECRETS,
    actions,
    configmap,
    definition,
    instance,
    namespace,
    policy,
)
from tests.engine.remote.world import world_of
from tests.waiting import until

from hortus.engine import Caches
from hortus.engine.applysets import (
    PART_OF,
    ApplySet,
    ConfigMapParent,
    Conflicts,
    ForeignParent,
    ObjectAction,
    ObjectStatus,
    WatchedLive,
    readiness,
    set_id,
)
from hortus.kube import Client, PatchKind, SystemClock
from hortus.kube.errors import NotFound
from hortus.kube.objects import Resource
from hortus.testing.apiserver import TestServer, started_apiserver


class Calls:
    def __init__(self) -> None:
        self.methods: list[str] = []

    def answered(self, method: str, host: str, code: str, seconds: float) -> None:
        self.methods.append(method)


class World:
    def __init__(self, client: Client, calls: Calls) -> None:
        self.client, self.calls = client, calls

    def set(self, name: str, **options: Any) -> ApplySet:
        options.setdefault("policy", policy())
        return ApplySet.of(self.client, ConfigMapParent(self.client, name, "default"), **options)

    async def exists(self, resource: Resource, name: str, namespace: str = "default") -> bool:
        try:
            await self.client.get(resource, name, namespace)
        except NotFound:
            return False
        return True

    async def until(self, holds: Callable[[], object]) -> None:
        await until(holds)


@pytest.fixture
async def world(server: TestServer) -> AsyncIterator[World]:
    calls = Calls()
    async with Client.from_kubeconfig(server.kubeconfig, observer=calls) as client:
        yield World(client, calls)


async def test_definitions_and_namespaces_come_first_and_are_awaited(world: World) -> None:
    objects = [
        instance("Apple", "red", "orchard"),
        configmap("basket", "orchard", a="1"),
        definition("apples", "Apple"),
        namespace("orchard"),
    ]
    report = await world.set("orchard").apply(objects)
    assert report.message() == ""
    assert [outcome.member.kind for outcome in report.outcomes] == [
        "Namespace",
        "CustomResourceDefinition",
        "ConfigMap",
        "Apple",
    ]
    assert report.complete
    assert report.ready


async def test_members_and_parent_are_marked_as_the_kep_says(world: World) -> None:
    await world.set("marked").apply([configmap("m1", a="1")])
    identity = set_id(name="marked", namespace="default", kind="ConfigMap", group="")
    member = await world.client.get(CONFIGMAPS, "m1", "default")
    parent = await world.client.get(CONFIGMAPS, "marked", "default")
    assert member["metadata"]["labels"] == {PART_OF: identity}
    assert parent["metadata"]["labels"] == {"applyset.kubernetes.io/id": identity}
    assert parent["metadata"]["annotations"] == {
        "applyset.kubernetes.io/tooling": "hortus/v1",
        "applyset.kubernetes.io/contains-group-kinds": "ConfigMap",
        "applyset.kubernetes.io/additional-namespaces": "",
    }
    assert (
        parent["data"]["inventory"]
        == f'["","ConfigMap","default","m1","v1","configmaps","{member["metadata"]["uid"]}"]\n'
    )


def test_the_id_is_computed_as_by_kubectl() -> None:
    # base64url(sha256("my-set.default.ConfigMap.")) without padding, as printed by kubectl for this parent.
    assert len(set_id(name="my-set", namespace="default", kind="ConfigMap", group="")) == 55


async def test_what_leaves_the_set_is_pruned_and_nothing_else(world: World) -> None:
    await world.client.create(CONFIGMAPS, configmap("bystander", "default"))
    await world.set("other").apply([configmap("others")])
    await world.set("prunes").apply([configmap("p1", a="1"), configmap("p2", a="1")])
    report = await world.set("prunes").apply([configmap("p1", a="1")])
    assert actions(report) == {"p1": ObjectAction.UNCHANGED, "p2": ObjectAction.PRUNED}
    assert [await world.exists(CONFIGMAPS, name) for name in ("p1", "p2", "bystander", "others")] == [
        True,
        False,
        True,
        True,
    ]


async def test_objects_of_others_are_neither_taken_nor_pruned(world: World) -> None:
    await world.set("first").apply([configmap("shared", a="first")])
    report = await world.set("second").apply([configmap("shared", a="second"), configmap("own")])
    assert actions(report) == {"shared": ObjectAction.FAILED, "own": ObjectAction.APPLIED}
    assert "ConfigMap default/shared: it is part of the set applyset-" in report.message()
    assert (await world.client.get(CONFIGMAPS, "shared", "default"))["data"] == {"a": "first"}

    # Somebody removes the label of one object and recreates the other: neither is ours any more.
    await world.set("third").apply([configmap("unmarked"), configmap("recreated")])
    await world.client.patch(CONFIGMAPS, "unmarked", {"metadata": {"labels": {PART_OF: None}}}, "default")
    labels = (await world.client.get(CONFIGMAPS, "recreated", "default"))["metadata"]["labels"]
    await world.client.delete(CONFIGMAPS, "recreated", "default")
    copy = configmap("recreated", "default")
    copy["metadata"]["labels"] = labels
    await world.client.create(CONFIGMAPS, copy)
    report = await world.set("third").apply([], whole=True)
    assert actions(report) == {"unmarked": ObjectAction.KEPT, "recreated": ObjectAction.KEPT}
    assert await world.exists(CONFIGMAPS, "unmarked")
    assert await world.exists(CONFIGMAPS, "recreated")
    assert (await world.set("third").apply([], whole=True)).outcomes == [], "and they are forgotten"


async def test_namespaces_and_definitions_with_content_stay_unless_allowed(world: World) -> None:
    objects = [namespace("full"), definition("pears", "Pear"), configmap("mine", "full")]
    await world.set("content").apply(objects)
    await world.client.create(CONFIGMAPS, configmap("precious", "full"))
    pears = Resource("sets.example", "v1", "pears", "Pear")
    await world.client.create(pears, instance("Pear", "precious", "default"))
    report = await world.set("content").apply([], whole=True)
    assert actions(report)["mine"] is ObjectAction.PRUNED
    assert actions(report)["full"] is ObjectAction.HELD
    assert not report.complete
    assert "Namespace full: it holds the ConfigMap precious" in "".join(outcome.message for outcome in report.outcomes)
    assert "it holds the Pear default/precious" in "".join(outcome.message for outcome in report.outcomes)

    await world.client.delete(pears, "precious", "default")
    report = await world.set("content").apply([], whole=True)
    assert actions(report)["pears.sets.example"] in (ObjectAction.PRUNED, ObjectAction.PRUNING)
    report = await world.set("content", policy=policy(prune_content=True)).apply([], whole=True)
    assert actions(report)["full"] in (ObjectAction.PRUNED, ObjectAction.PRUNING)


async def test_a_failed_object_is_named_and_stops_pruning_but_not_the_others(world: World) -> None:
    await world.set("partial").apply([configmap("stays")])
    bad = {**configmap("bad"), "data": {"key with spaces": "1"}}
    unknown = {"apiVersion": "no.example/v1", "kind": "Nothing", "metadata": {"name": "n"}}
    report = await world.set("partial").apply([bad, unknown, configmap("good"), configmap("good")])
    assert actions(report)["good"] in (ObjectAction.APPLIED, ObjectAction.FAILED)
    messages = [outcome.message for outcome in report.failures]
    assert len(messages) == 3
    assert any("ConfigMap default/bad" in text and "data[key with spaces]" in text for text in messages)
    assert any("Nothing.no.example n" in text for text in messages)
    assert any("is given twice" in text for text in messages)
    assert await world.exists(CONFIGMAPS, "stays")
    assert await world.exists(CONFIGMAPS, "good")


async def test_a_conflict_names_the_field_and_its_manager_or_is_forced(world: World) -> None:
    await world.set("fought-over").apply([configmap("fought", a="ours")])
    await world.client.apply(CONFIGMAPS, configmap("fought", "default", a="theirs"), field_manager="them")
    meek = policy(conflicts=Conflicts.REFUSE)
    report = await world.set("fought-over", policy=meek).apply([configmap("fought", a="ours")])
    (failed,) = report.failures
    assert '"them"' in failed.message
    assert ".data.a" in failed.message
    report = await world.set("fought-over").apply([configmap("fought", a="ours")])
    assert report.complete
    assert [str(found) for found in report.outcomes[0].drift][-1] == '.data.a: "theirs" instead of "ours", set by them'


async def test_drift_is_reported_by_field_without_a_write_and_then_reverted(world: World) -> None:
    container = {"name": "app", "image": "app:1"}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    wanted = [{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "drifts"}, "spec": spec}]
    await world.set("drifts").apply(wanted)
    sidecar = {
        "spec": {
            "template": {"spec": {"containers": [{"name": "app", "image": "evil:2"}, {"name": "s", "image": "s"}]}}
        }
    }
    await world.client.patch(DEPLOYMENTS, "drifts", sidecar, "default", PatchKind.STRATEGIC, field_manager="mallory")
    plan = await world.set("drifts").plan(wanted)
    (outcome,) = plan.outcomes
    assert outcome.action is ObjectAction.PENDING
    assert outcome.message == "Deployment.apps default/drifts: would be changed"
    assert not plan.complete
    assert [str(found) for found in outcome.drift] == [
        '.spec.template.spec.containers[name=app].image: "evil:2" instead of "app:1", set by mallory'
    ]
    assert (await world.set("drifts").apply(wanted)).writes == 1
    found = await world.client.get(DEPLOYMENTS, "drifts", "default")
    assert [one["image"] for one in found["spec"]["template"]["spec"]["containers"]] == ["app:1", "s"]


async def test_values_of_secrets_are_never_shown(world: World) -> None:
    wanted = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "quiet"}, "stringData": {"p": "hunter2"}}
    del wanted["stringData"]
    wanted["data"] = {"p": "aHVudGVyMg=="}
    await world.set("quiet").apply([wanted])
    await world.client.patch(SECRETS, "quiet", {"data": {"p": "b3RoZXI="}}, "default")
    report = await world.set("quiet").apply([wanted])
    text = str([str(found) for outcome in report.outcomes for found in outcome.drift]) + report.message()
    assert ".data.p" in text
    assert "aHVu" not in text
    assert "b3Ro" not in text
    bad = {**wanted, "data": {"p": "not base64 hunter2"}}
    report = await world.set("quiet").apply([bad])
    assert report.failures
    assert "hunter2" not in report.message()


async def test_a_watched_set_at_rest_costs_no_write_and_only_the_read_of_its_parent(world: World) -> None:
    clock = SystemClock()
    caches = Caches(world.client, clock=clock)
    caches.start()
    try:
        parent = ConfigMapParent(world.client, "rests", "default")
        live = WatchedLive(world.client, caches, field_manager="hortus", identity=parent.identity)
        rests = ApplySet.of(world.client, parent, live=live, policy=policy())
        objects = [configmap(f"r{number}", a=str(number)) for number in range(20)]
        await rests.apply(objects)
        cache = live.cache(CONFIGMAPS)
        await world.until(lambda: len(cache) == 20)
        world.calls.methods.clear()
        report = await rests.apply(objects)
        assert set(actions(report).values()) == {ObjectAction.UNCHANGED}
        assert world.calls.methods == ["GET"]

        await world.client.patch(CONFIGMAPS, "r3", {"data": {"a": "meddled"}}, "default")
        await world.until(lambda: any(obj["data"] == {"a": "meddled"} for obj in cache.values()))
        world.calls.methods.clear()
        assert (await rests.apply(objects)).writes == 1
        assert world.calls.methods.count("PATCH") == 1
    finally:
        await caches.stop()


async def test_deleting_a_set_deletes_its_objects_and_then_its_parent(world: World) -> None:
    await world.set("ends").apply([configmap("e1"), configmap("e2")])
    report = await world.set("ends").delete()
    assert report.complete
    assert not await world.exists(CONFIGMAPS, "e1")
    assert not await world.exists(CONFIGMAPS, "ends")
    assert (await world.set("ends").delete()).outcomes == []


async def test_an_object_that_its_finalizer_holds_is_remembered_until_it_is_gone(world: World) -> None:
    held = configmap("held")
    held["metadata"]["finalizers"] = ["example.org/hold"]
    await world.set("holds").apply([held])
    report = await world.set("holds").apply([], whole=True)
    assert actions(report) == {"held": ObjectAction.PRUNING}
    assert not report.complete
    again = await world.set("holds").apply([held])
    assert actions(again) == {"held": ObjectAction.WAITING}
    assert again.outcomes[0].readiness.status is ObjectStatus.TERMINATING
    await world.client.patch(CONFIGMAPS, "held", {"metadata": {"finalizers": None}}, "default")
    assert (await world.set("holds").apply([], whole=True)).outcomes == []


async def test_a_parent_of_another_tool_or_with_foreign_content_is_left_alone(world: World) -> None:
    await ApplySet.of(
        world.client, ConfigMapParent(world.client, "theirs", "default", tooling="kubectl/v1.32.0"), policy=policy()
    ).apply([configmap("t1")])
    with pytest.raises(ForeignParent, match="managed by another tool"):
        await world.set("theirs").apply([], whole=True)
    await world.set("scribbled").apply([configmap("scribble")])
    await world.client.patch(CONFIGMAPS, "scribbled", {"data": {"inventory": "what is this"}}, "default")
    with pytest.raises(ForeignParent, match=r"data\.inventory: line 1"):
        await world.set("scribbled").apply([], whole=True)


async def test_what_waits_for_a_definition_that_is_never_established_is_put_off(world: World) -> None:
    clash = definition("plums", "Plum")
    other = definition("plums2", "Plum")  # the same kind: its names are not accepted
    report = await world.set("clash", policy=policy(wait=60.0)).apply([clash, instance("Plum", "blue")])
    assert report.complete
    other["metadata"]["name"] = "plums2.sets.example"
    report = await world.set("clash2", policy=policy(wait=0.2)).apply([other, instance("Plum", "green")])
    assert actions(report)["green"] is ObjectAction.WAITING
    assert "Plum.sets.example default/green: waits for CustomResourceDefinition" in report.message()
    assert not report.complete
    found = await world.client.get(CRDS, "plums2.sets.example")
    assert readiness(found).status in (ObjectStatus.FAILED, ObjectStatus.IN_PROGRESS)


async def test_sets_share_watches_and_take_up_kinds_that_come_with_them(world: World) -> None:
    clock = SystemClock()
    caches = Caches(world.client, clock=clock)
    caches.start()
    try:
        live = WatchedLive(world.client, caches, field_manager="hortus")
        both = [world.set(name, live=live) for name in ("shares1", "shares2")]
        first = [definition("cherries", "Cherry"), instance("Cherry", "one"), configmap("s1")]
        report = await both[0].apply(first)
        assert report.complete, report.message()
        assert (await both[1].apply([instance("Cherry", "two"), configmap("s2")])).complete
        cherries = live.cache(Resource("sets.example", "v1", "cherries", "Cherry"))
        await world.until(lambda: {key.name for key in cherries} == {"one", "two"})
        assert len(list(caches)) == 3
        world.calls.methods.clear()
        assert (await both[0].apply(first)).writes == 0
        assert world.calls.methods == ["GET"]
        assert actions(await both[1].apply([], whole=True)) == {"two": ObjectAction.PRUNED, "s2": ObjectAction.PRUNED}
        await world.until(lambda: {key.name for key in cherries} == {"one"})
    finally:
        await caches.stop()


async def test_a_set_is_applied_to_a_remote_cluster_through_the_pool(server: TestServer) -> None:
    with started_apiserver(clusters=["far"]) as other:
        async with world_of(server) as here:
            place = await here.give("far", other.kubeconfig_dict("far"))
            remote = here.pool.at(place)
            far = ApplySet.of(remote, ConfigMapParent(remote, "far", "default"), policy=policy())
            assert (await far.apply([namespace("space"), configmap("a", "space"), configmap("b")])).complete
            await here.give("far", other.kubeconfig_dict("far"))
            report = await far.apply([namespace("space"), configmap("a", "space")])
            assert actions(report) == {
                "space": ObjectAction.UNCHANGED,
                "a": ObjectAction.UNCHANGED,
                "b": ObjectAction.PRUNED,
            }
            async with Client.from_kubeconfig(other.kubeconfig_for("far")) as direct:
                found = await direct.list(CONFIGMAPS, labels=PART_OF)
                assert [obj["metadata"]["name"] for obj in found.items] == ["a"]
