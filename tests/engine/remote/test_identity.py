"""The identity of a member: uid, address and authority, and the mark that proves that two ways lead to one cluster."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import orjson
import pytest
from tests.engine.remote.test_watching import Follower, following, watched
from tests.engine.remote.world import CONFIGMAPS, NAMESPACE, World, place_of
from tests.fronts import Front, front

from hortus.engine.kubeconfigs import SECRETS
from hortus.engine.remote import KubeconfigRef, MemberIdentity, are_one, digest_of_mark
from hortus.engine.remote.identity import MARK
from hortus.kube import Access, Client
from hortus.kube.objects import Object
from hortus.testing.apiserver import TestServer


@asynccontextmanager
async def inside(server: TestServer, cluster: str) -> AsyncIterator[Client]:
    async with Client.from_kubeconfig(server.kubeconfig_for(cluster)) as client:
        yield client


@asynccontextmanager
async def through(made: Front) -> AsyncIterator[Client]:
    entry = made.kubeconfig["clusters"][0]["cluster"]
    ca = base64.b64decode(entry["certificate-authority-data"])
    async with Client(Access(server=entry["server"], ca=ca)) as client:
        yield client


async def uid_of(client: Client) -> str:
    found: str = (await client.get_raw("/api/v1/namespaces/kube-system"))["metadata"]["uid"]
    return found


def test_one_way_is_one_address_behind_one_set_of_authorities() -> None:
    one = b"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
    two = one.replace(b"MIIB", b"MIIC")
    known = MemberIdentity.reached(Access(server="https://API.example.org/", ca=one + two), "u")
    for same in (
        Access(server="https://api.example.org:443", ca=b"# a comment\n" + two + one),
        Access(server="https://api.example.org:443/", ca=(one + two + one).replace(b"\n", b"\r\n")),
    ):
        assert known.same_way(MemberIdentity.reached(same, "u"))
    for other in (
        Access(server="https://api.example.org:6443", ca=one + two),
        Access(server="https://api.example.org/clusters/a", ca=one + two),
        Access(server="https://api.example.org", ca=one + two, tls_server_name="b.example.org"),
        Access(server="https://api.example.org", ca=one),
        Access(server="https://api.example.org"),
        Access(server="https://api.example.org", insecure=True),
        Access(server="http://api.example.org", ca=one + two),
    ):
        assert not known.same_way(MemberIdentity.reached(other, "u"))
    assert not MemberIdentity().same_way(MemberIdentity()), "nothing was reached"


async def test_two_ways_into_one_cluster_are_proven_by_a_fresh_word(server: TestServer) -> None:
    server.create_cluster("one-proof")
    async with inside(server, "one-proof") as first, front(server, "one-proof") as way, through(way) as second:
        digest = await digest_of_mark(first)
        assert await are_one(first, second)
        assert await are_one(second, first)
        assert await digest_of_mark(second) == digest, "it is written once"


async def test_a_server_that_repeats_a_mark_it_has_read_is_another_cluster(server: TestServer) -> None:
    server.create_cluster("mark-real")
    server.create_cluster("mark-copy")
    async with inside(server, "mark-real") as real, front(server, "mark-copy") as lying, through(lying) as copy:
        digest = await digest_of_mark(real)
        lying.mark = orjson.dumps(await real.get(SECRETS, MARK.name, MARK.namespace))
        assert await digest_of_mark(copy) == digest
        assert not await are_one(real, copy)
        assert not await are_one(copy, real)


@pytest.mark.parametrize(
    "answer", [{}, {"data": {}}, {"data": {"mark": "c2hvcnQ="}}, {"data": 7}, {"data": {"mark": 7}}]
)
async def test_a_malformed_mark_proves_nothing(server: TestServer, answer: Object) -> None:
    shown = orjson.dumps({"metadata": {"name": MARK.name, "namespace": MARK.namespace}, **answer})
    async with front(server, "red", mark=shown) as lying, through(lying) as client:
        assert await digest_of_mark(client) == ""
        assert not await are_one(client, client)


async def _followed(world: World, follower: Follower, name: str, secret: str) -> KubeconfigRef:
    async with inside(world.server, name) as client:
        await client.apply(CONFIGMAPS, watched("kept", n="1"), field_manager="test")
    await world.give(secret, world.server.kubeconfig_dict(name))
    await follower.join(name, secret)
    await world.until(lambda: follower.latest(name) == {"kept": {"n": "1"}})
    return place_of(secret)


async def test_a_watch_goes_on_when_its_cluster_is_proven_to_be_at_another_address(world: World) -> None:
    recreated: list[KubeconfigRef] = []
    world.pool.on_recreated(recreated.append)
    world.server.create_cluster("id-moved")
    async with following(world) as follower, front(world.server, "id-moved") as new:
        place = await _followed(world, follower, "id-moved", "s-moved")
        before = world.pool.identity(place)
        await world.give("s-moved", new.kubeconfig)
        await world.until(lambda: world.pool.identity(place).address == new.address)
        async with inside(world.server, "id-moved") as client:
            await client.apply(CONFIGMAPS, watched("kept", n="2"), field_manager="test")
        await world.until(lambda: follower.latest("id-moved") == {"kept": {"n": "2"}})
        assert world.pool.identity(place).uid == before.uid
        assert new.lists("configmaps") == 0
        assert recreated == []
        await world.client.delete(CONFIGMAPS, "id-moved", NAMESPACE)


async def test_the_same_uid_at_another_address_alone_is_another_cluster(world: World) -> None:
    recreated: list[KubeconfigRef] = []
    world.pool.on_recreated(recreated.append)
    for name in ("id-real", "id-fake"):
        world.server.create_cluster(name)
    async with inside(world.server, "id-real") as real:
        uid = await uid_of(real)
    async with following(world) as follower, front(world.server, "id-fake", uid=uid) as lying:
        place = await _followed(world, follower, "id-real", "s-real")
        await world.give("s-real", lying.kubeconfig)
        # Versions of the real one mean nothing there.
        await world.until(lambda: follower.latest("id-real") == {} and lying.lists("configmaps") > 0)
        assert recreated == [place]
        await world.client.delete(CONFIGMAPS, "id-real", NAMESPACE)


async def test_a_hidden_uid_at_another_address_is_not_that_of_the_cluster_before(world: World) -> None:
    async with front(world.server, "green", hides_uid=True) as other:
        place = await world.give("s-hidden", world.server.kubeconfig_dict("red"))
        await world.pool.at(place).list(CONFIGMAPS, NAMESPACE)
        assert world.pool.identity(place).uid
        await world.give("s-hidden", other.kubeconfig)
        await world.until(lambda: world.pool.identity(place).address == other.address)
        assert world.pool.identity(place).uid == ""


async def test_a_connection_and_its_probes_ask_for_no_mark(world: World) -> None:
    async with front(world.server, "blue") as way:
        place = await world.give("s-rest", way.kubeconfig)
        async with world.pool.held(place) as client:
            await client.list(CONFIGMAPS, NAMESPACE)
            await world.pool.remote(place).probe()
        assert way.marks("GET") == way.marks("POST") == way.marks("PATCH") == 0
