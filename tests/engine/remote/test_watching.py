"""Watches on remote clusters: members come and go, credentials rotate, clusters are recreated; no event is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.engine.remote.world import (
    CONFIGMAPS,
    NAMESPACE,
    World,
    answer_of,
    listening,
    place_of,
    sane_then,
    world_of,
)

from hortus.engine import Cache, Controller, Priority, Selection, Watch
from hortus.engine.remote import KubeconfigRef, LostWatches, RemoteStates, RemoteUnavailable, RemoteWatch
from hortus.kube import Client, SystemClock
from hortus.kube.fencing import Fenced, set_fence
from hortus.kube.objects import Object, ObjectKey, Resource
from hortus.testing.apiserver import TestServer, started_apiserver

CLUSTERS = Resource("tenancy.hortus.dev", "v1alpha1", "logicalclusters", "LogicalCluster", namespaced=False)
MEMBER = "example.org/member"
WATCHED = Selection(CONFIGMAPS, NAMESPACE, "watched=yes")


def member_place(member: Object) -> KubeconfigRef | None:
    """A member is a ConfigMap of the management cluster that names its Secret."""
    name = (member.get("data") or {}).get("secret")
    return place_of(name) if name else None


def only_data(obj: Object) -> Object:
    metadata = obj["metadata"]
    kept = {name: metadata[name] for name in ("name", "namespace", "uid", "resourceVersion")}
    return {"metadata": kept, "data": obj.get("data") or {}}


def watched(name: str, **data: str) -> Object:
    return {"metadata": {"name": name, "namespace": NAMESPACE, "labels": {"watched": "yes"}}, "data": data}


class HurriedClock(SystemClock):
    """A clock whose pauses are a twentieth as long: those of a watch that fails grow to half a minute."""

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds / 20.0)


class Follower:
    """A controller of members that watches ConfigMaps in their clusters and notes what it saw."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.members = world.manager.cache(CONFIGMAPS, namespace=NAMESPACE, labels=MEMBER)
        self.remote = RemoteWatch(world.pool, self.members, place=member_place, selection=WATCHED, transform=only_data)
        self.seen: dict[str, list[Any]] = {}

    async def reconcile(self, key: ObjectKey) -> None:
        cache = self.remote.cache(key)
        found = {obj["metadata"]["name"]: obj["data"] for obj in cache.values()} if cache is not None else None
        self.seen.setdefault(key.name, []).append(found)

    def latest(self, name: str) -> Any:
        found = self.seen.get(name)
        return found[-1] if found else None

    async def join(self, name: str, secret: str) -> None:
        member = {
            "metadata": {"name": name, "namespace": NAMESPACE, "labels": {MEMBER: ""}},
            "data": {"secret": secret},
        }
        await self.world.client.apply(CONFIGMAPS, member, field_manager="test")


@asynccontextmanager
async def following(world: World) -> AsyncIterator[Follower]:
    follower = Follower(world)
    controller = Controller(
        "followers",
        follower,
        sources=[
            Watch(follower.members),
            follower.remote,
            RemoteStates(world.pool, to=lambda place: [ObjectKey(NAMESPACE, place.name)]),
        ],
        workers=2,
    )
    await controller.start()
    try:
        yield follower
    finally:
        await controller.stop()
        await follower.remote.closed()


async def test_members_come_and_go_and_their_objects_become_keys(world: World) -> None:
    await world.give("w-red", world.server.token_kubeconfig_dict("red"))
    await world.give("w-blue", world.server.kubeconfig_dict("blue"))
    red, blue = world.pool.at(place_of("w-red")), world.pool.at(place_of("w-blue"))
    async with following(world) as follower:
        await follower.join("a", "w-red")
        await follower.join("b", "w-blue")
        await red.apply(CONFIGMAPS, watched("one", n="1"), field_manager="test")
        await world.until(lambda: follower.latest("a") == {"one": {"n": "1"}})
        cached = follower.remote.cache(ObjectKey(NAMESPACE, "a"))
        assert cached is not None
        assert [obj.keys() for obj in cached.values()] == [{"metadata", "data"}], "what the transform leaves"
        assert not follower.latest("b")
        await blue.apply(CONFIGMAPS, watched("two", n="2"), field_manager="test")
        await world.until(lambda: follower.latest("b") == {"two": {"n": "2"}})
        await red.delete(CONFIGMAPS, "one", NAMESPACE)
        await world.until(lambda: follower.latest("a") == {})

        await world.client.delete(CONFIGMAPS, "b", NAMESPACE)
        await world.until(lambda: follower.latest("b") is None)
        assert len(follower.remote) == 1
        await world.client.delete(CONFIGMAPS, "a", NAMESPACE)
        await world.until(lambda: len(follower.remote) == 0)
    await blue.delete(CONFIGMAPS, "two", NAMESPACE)


async def test_a_rotation_in_the_middle_of_a_watch_misses_no_event(world: World) -> None:
    await world.give("w-rotates", world.server.token_kubeconfig_dict("green"))
    async with following(world) as follower, Client.from_kubeconfig(world.server.kubeconfig_for("green")) as green:
        await follower.join("r", "w-rotates")
        await world.reaches(place_of("w-rotates"), "Connected")
        for turn in range(4):
            await green.apply(CONFIGMAPS, watched("moving", turn=str(turn)), field_manager="test")
            token = world.server.token_kubeconfig_dict("green")
            await world.give("w-rotates", token if turn % 2 else world.server.kubeconfig_dict("green"))
            await green.apply(CONFIGMAPS, watched("moving", turn=f"{turn} after"), field_manager="test")
            await world.until(lambda turn=turn: follower.latest("r") == {"moving": {"turn": f"{turn} after"}})
            await world.until(lambda turn=turn: world.pool.metrics.rotations == turn + 1)
        follower.seen.clear()
        await green.delete(CONFIGMAPS, "moving", NAMESPACE)
        await world.until(lambda: follower.latest("r") == {})
        assert world.pool.metrics.rotations == 4
        await world.client.delete(CONFIGMAPS, "r", NAMESPACE)


async def test_a_cluster_recreated_under_the_same_name_is_listed_from_scratch(server: TestServer) -> None:
    with started_apiserver() as first, started_apiserver() as second:
        async with (
            world_of(server) as world,
            Client.from_kubeconfig(first.kubeconfig) as before,
            Client.from_kubeconfig(second.kubeconfig) as after,
        ):
            for number in range(50):  # the old cluster's versions are far ahead of the new one's
                await before.apply(CONFIGMAPS, watched("old", n=str(number)), field_manager="test")
            await after.apply(CONFIGMAPS, watched("new", n="1"), field_manager="test")
            await world.give("w-recreated", first.kubeconfig_dict("root"))
            async with following(world) as follower:
                await follower.join("recreated", "w-recreated")
                await world.until(lambda: follower.latest("recreated") == {"old": {"n": "49"}})
                uid = world.pool.identity(place_of("w-recreated")).uid
                await world.give("w-recreated", second.kubeconfig_dict("root"))
                await world.until(lambda: follower.latest("recreated") == {"new": {"n": "1"}})
                assert world.pool.identity(place_of("w-recreated")).uid not in ("", uid)
                await after.apply(CONFIGMAPS, watched("new", n="2"), field_manager="test")
                await world.until(lambda: follower.latest("recreated") == {"new": {"n": "2"}})
                await world.client.delete(CONFIGMAPS, "recreated", NAMESPACE)


async def test_a_server_that_answers_410_for_ever_is_listed_again_with_back_off(world: World) -> None:
    watches = 0

    async def gone(head: bytes, writer: asyncio.StreamWriter) -> None:
        nonlocal watches
        if b"watch=true" in head:
            watches += 1
            writer.write(answer_of(b"{}", "410 Gone"))
        else:
            writer.write(answer_of(b'{"metadata":{"resourceVersion":"7"},"items":[]}', Content_Type="application/json"))

    async with listening(sane_then(gone)) as kubeconfig:
        await world.give("w-gone", kubeconfig)
        async with following(world) as follower:
            await follower.join("g", "w-gone")
            await world.until(lambda: watches >= 2)
            assert world.pool.state(place_of("w-gone")).reason == "Connected"
            assert watches <= 3, "a back-off stands between two attempts"
            await world.client.delete(CONFIGMAPS, "g", NAMESPACE)


async def test_a_member_whose_secret_comes_later_is_followed_from_then_on(world: World) -> None:
    async with following(world) as follower:
        await follower.join("late", "w-late")
        await world.reaches(place_of("w-late"), "CredentialMissing")
        await world.until(lambda: "late" in follower.seen)
        await world.give("w-late", world.server.kubeconfig_dict("red"))
        red = world.pool.at(place_of("w-late"))
        await world.reaches(place_of("w-late"), "Connected")
        await red.apply(CONFIGMAPS, watched("late", n="1"), field_manager="test")
        await world.until(lambda: follower.latest("late") == {"late": {"n": "1"}})
        await red.delete(CONFIGMAPS, "late", NAMESPACE)
        assert {"late": {"n": "1"}} not in follower.seen["late"][:1]
        await world.take("w-late")
        await world.reaches(place_of("w-late"), "CredentialMissing")
        await world.client.delete(CONFIGMAPS, "late", NAMESPACE)


async def test_a_watch_that_breaks_goes_on_where_it_stopped(world: World) -> None:
    lines = [
        b'{"type":"ADDED","object":{"metadata":{"name":"a","namespace":"default","uid":"1","resourceVersion":"%d"},'
        b'"data":{"n":"%d"}}}\n' % (number, number)
        for number in range(8, 11)
    ]
    versions: list[bytes] = []

    async def breaking(head: bytes, writer: asyncio.StreamWriter) -> None:
        if b"watch=true" not in head:
            writer.write(answer_of(b'{"metadata":{"resourceVersion":"7"},"items":[]}', Content_Type="application/json"))
            return
        versions.append(head.partition(b"resourceVersion=")[2].partition(b"&")[0])
        line = lines[len(versions) - 1] if len(versions) <= len(lines) else b""
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        writer.write(b"%x\r\n" % len(line) + line + b"\r\n" if line else b"")
        await writer.drain()
        if len(versions) <= len(lines):
            writer.write(b"5\r\n{")  # and not the rest
            await writer.drain()
            writer.transport.abort()

    world.pool.clock = HurriedClock()
    async with listening(sane_then(breaking)) as kubeconfig:
        await world.give("w-breaks", kubeconfig)
        async with following(world) as follower:
            await follower.join("br", "w-breaks")
            await world.until(lambda: follower.latest("br") == {"a": {"n": "10"}})
            assert versions[:3] == [b"7", b"8", b"9"]
            await world.client.delete(CONFIGMAPS, "br", NAMESPACE)


async def test_a_watch_that_fails_again_is_reported_until_it_shows_the_cluster(world: World) -> None:
    """One failure does not count, since the watch goes on where it stopped; the cluster answers all the while."""
    watches = 0

    async def failing(head: bytes, writer: asyncio.StreamWriter) -> None:
        nonlocal watches
        if b"watch=true" not in head:
            writer.write(answer_of(b'{"metadata":{"resourceVersion":"7"},"items":[]}', Content_Type="application/json"))
            return
        watches += 1
        if watches != 4:
            writer.write(answer_of(b"{}", "403 Forbidden"))
            return
        line = b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"8"}}}\n'
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n5\r\n{" % (len(line), line))
        await writer.drain()
        writer.transport.abort()

    lost: list[tuple[int, ObjectKey]] = []
    world.pool.clock = HurriedClock()
    async with listening(sane_then(failing)) as kubeconfig:
        await world.give("w-lost", kubeconfig)
        async with following(world) as follower:
            source = LostWatches(follower.remote, to=lambda member: (member,))
            detach = source.attach(lambda key, priority: lost.append((watches, key)), world.pool.clock)
            await follower.join("lost", "w-lost")
            await world.until(lambda: watches >= 6)
            member = ObjectKey(NAMESPACE, "lost")
            assert lost == [(2, member), (4, member)]
            assert world.pool.state(place_of("w-lost")).reason == "Connected"
            detach()
            await world.client.delete(CONFIGMAPS, "lost", NAMESPACE)


async def test_a_recreated_logical_cluster_is_listed_from_scratch_too(world: World) -> None:
    """The server, authority and versions are the same as before: only the uid of kube-system differs."""
    logical = {"apiVersion": CLUSTERS.api_version, "kind": CLUSTERS.kind, "metadata": {"name": "phoenix"}}
    await world.client.create(CLUSTERS, logical)
    await world.give("w-phoenix", world.server.kubeconfig_dict("phoenix"))
    async with following(world) as follower:
        await follower.join("ph", "w-phoenix")
        async with Client.from_kubeconfig(world.server.kubeconfig_for("phoenix")) as before:
            await before.apply(CONFIGMAPS, watched("ashes", n="1"), field_manager="test")
            await world.until(lambda: follower.latest("ph") == {"ashes": {"n": "1"}})
        uid = world.pool.identity(place_of("w-phoenix")).uid
        latest = await world.client.list(CLUSTERS)
        watch = world.client.watch(CLUSTERS, resource_version=latest.resource_version, name="phoenix")
        await world.client.delete(CLUSTERS, "phoenix")
        async with asyncio.timeout(60), watch as events:
            async for event in events:
                if event.type == "DELETED":
                    break
        await world.client.create(CLUSTERS, logical)
        async with Client.from_kubeconfig(world.server.kubeconfig_for("phoenix")) as after:
            await after.apply(CONFIGMAPS, watched("feather", n="1"), field_manager="test")
        await world.give("w-phoenix", world.server.kubeconfig_dict("phoenix"))
        await world.until(lambda: follower.latest("ph") == {"feather": {"n": "1"}})
        assert world.pool.identity(place_of("w-phoenix")).uid not in ("", uid)
        await world.client.delete(CONFIGMAPS, "ph", NAMESPACE)


async def test_a_replica_watches_the_clusters_of_its_own_members_only(world: World) -> None:
    ours = {ObjectKey(NAMESPACE, "mine")}
    await world.give("w-shared", world.server.kubeconfig_dict("blue"))
    follower = Follower(world)
    watch = RemoteWatch(
        world.pool, follower.members, place=member_place, selection=WATCHED, holds=lambda member: member in ours
    )
    added: list[ObjectKey] = []
    detach = watch.attach(lambda key, priority: added.append(key), world.pool.clock)
    try:
        for name in ("mine", "yours"):
            await follower.join(name, "w-shared")
        await world.until(lambda: len(follower.members) == 2 and len(watch) == 1)
        assert watch.cache(ObjectKey(NAMESPACE, "yours")) is None

        ours.clear()
        ours.add(ObjectKey(NAMESPACE, "yours"))
        assert watch.reconsider() == 1
        assert watch.cache(ObjectKey(NAMESPACE, "mine")) is None
        cache = watch.cache(ObjectKey(NAMESPACE, "yours"))
        assert cache is not None
        await cache.synced()
        assert watch.reconsider() == 0
    finally:
        detach()
        await watch.closed()
        for name in ("mine", "yours"):
            await world.client.delete(CONFIGMAPS, name, NAMESPACE)


async def test_a_controller_that_is_attached_later_hears_of_what_is_there(world: World) -> None:
    await world.give("w-later", world.server.kubeconfig_dict("blue"))
    async with following(world) as follower:
        await follower.join("la", "w-later")
        blue = world.pool.at(place_of("w-later"))
        await blue.apply(CONFIGMAPS, watched("there", n="1"), field_manager="test")
        await world.until(lambda: follower.latest("la") == {"there": {"n": "1"}})
        reported: list[tuple[ObjectKey, int]] = []
        detach = follower.remote.attach(lambda key, priority: reported.append((key, priority)), world.pool.clock)
        assert reported == [(ObjectKey(NAMESPACE, "la"), Priority.INITIAL)]
        detach()
        assert len(follower.remote) == 1, "the first one goes on"
        await blue.apply(CONFIGMAPS, watched("there", n="2"), field_manager="test")
        await world.until(lambda: follower.latest("la") == {"there": {"n": "2"}})
        assert len(reported) == 1, "a controller that is detached hears no more"
        await blue.delete(CONFIGMAPS, "there", NAMESPACE)
        await world.client.delete(CONFIGMAPS, "la", NAMESPACE)


async def test_a_cluster_without_objects_is_reported_once_it_was_listed(world: World) -> None:
    listed, answered = asyncio.Event(), asyncio.Event()

    async def empty(head: bytes, writer: asyncio.StreamWriter) -> None:
        if b"watch=true" in head:
            await asyncio.Event().wait()
        listed.set()
        await answered.wait()
        writer.write(answer_of(b'{"metadata":{"resourceVersion":"7"},"items":[]}', Content_Type="application/json"))

    key = ObjectKey(NAMESPACE, "em")
    members = Cache("members")
    members.replace((), 0)
    watch = RemoteWatch(world.pool, members, place=member_place, selection=WATCHED)
    reported: list[ObjectKey] = []
    detach = watch.attach(lambda found, priority: reported.append(found), world.pool.clock)
    async with listening(sane_then(empty)) as kubeconfig:
        await world.give("w-empty", kubeconfig)
        try:
            member = {"name": key.name, "namespace": NAMESPACE, "resourceVersion": "1"}
            members.put({"metadata": member, "data": {"secret": "w-empty"}})
            await listed.wait()
            assert reported == []
            answered.set()
            await world.until(lambda: reported == [key])
            assert (cache := watch.cache(key)) is not None
            assert cache.has_synced
            later: list[ObjectKey] = []
            watch.attach(lambda found, priority: later.append(found), world.pool.clock)()
            assert later == [key], "a controller that is attached later hears of it, too"
        finally:
            detach()
            await watch.closed()


async def test_the_objects_of_a_deleted_member_are_reported_through_their_mapping(world: World) -> None:
    def by_name(member: ObjectKey, obj: Object) -> list[ObjectKey]:
        return [ObjectKey(member.namespace, f"{member.name}-{obj['metadata']['name']}")]

    await world.give("w-mapped", world.server.kubeconfig_dict("blue"))
    follower = Follower(world)
    watch = RemoteWatch(world.pool, follower.members, place=member_place, selection=WATCHED, to=by_name)
    reported: list[str] = []
    detach = watch.attach(lambda key, priority: reported.append(key.name), world.pool.clock)
    blue = world.pool.at(place_of("w-mapped"))
    try:
        await follower.join("ma", "w-mapped")
        for name in ("one", "two"):
            await blue.apply(CONFIGMAPS, watched(name, n="1"), field_manager="test")
        await world.until(lambda: set(reported) == {"ma-one", "ma-two"})
        reported.clear()
        await world.client.delete(CONFIGMAPS, "ma", NAMESPACE)
        await world.until(lambda: len(watch) == 0)
        assert sorted(reported) == ["ma-one", "ma-two"]
    finally:
        detach()
        await watch.closed()
        for name in ("one", "two"):
            await blue.delete(CONFIGMAPS, name, NAMESPACE)


async def test_a_watch_that_a_reconcile_began_goes_on_when_that_reconcile_is_fenced(world: World) -> None:
    open_gate = True

    def gate() -> None:
        if not open_gate:
            raise Fenced("the lease is over")

    await world.give("w-fenced", world.server.token_kubeconfig_dict("blue"))
    members = Cache("members")
    members.replace((), 0)
    member = {"metadata": {"name": "f", "namespace": NAMESPACE, "resourceVersion": "1"}, "data": {"secret": "w-fenced"}}
    watch = RemoteWatch(world.pool, members, place=member_place, selection=WATCHED)
    detach = watch.attach(lambda key, priority: None, world.pool.clock)
    key = ObjectKey(NAMESPACE, "f")
    try:
        set_fence(gate)
        members.put(member)  # as a reconcile does that finds its cluster
        shared = world.manager.cache(CONFIGMAPS, namespace="kube-system")
        set_fence(None)
        await world.until(lambda: watch.cache(key) is not None and watch.cache(key).has_synced)
        await shared.synced()
        open_gate = False
        # Another credential ends the stream; the next one is asked for, and the new credential proven, by shared work.
        await world.give("w-fenced", world.server.kubeconfig_dict("blue"))
        await world.until(lambda: world.pool.metrics.rotations == 1)
        async with Client.from_kubeconfig(world.server.kubeconfig_for("blue")) as blue:
            await blue.apply(CONFIGMAPS, watched("seen", n="1"), field_manager="test")
            await world.until(lambda: len(watch.cache(key) or ()) == 1)
            assert watch.problem(key) is None
            await blue.delete(CONFIGMAPS, "seen", NAMESPACE)
    finally:
        detach()
        await watch.closed()


async def test_a_probe_that_a_reconcile_asked_for_goes_out_when_that_reconcile_is_fenced(world: World) -> None:
    open_gate, well = True, False

    def gate() -> None:
        if not open_gate:
            raise Fenced("the lease is over")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if well:
            await sane_then(_nothing)(reader, writer)

    async with listening(serve) as kubeconfig:
        await world.give("w-probed", kubeconfig)
        set_fence(gate)
        with pytest.raises(RemoteUnavailable):
            await world.pool.at(place_of("w-probed")).list(CONFIGMAPS)
        set_fence(None)
        open_gate, well = False, True
        await world.reaches(place_of("w-probed"), "Connected")


async def _nothing(head: bytes, writer: asyncio.StreamWriter) -> None:
    raise AssertionError("nothing but probes is asked for")
