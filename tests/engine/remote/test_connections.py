"""Connections to remote clusters through sockets: opening, rotating, revoking, closing, and what they may not do."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from prometheus_client import generate_latest
from tests.engine.remote.world import (
    CONFIGMAPS,
    Calls,
    World,
    answer_of,
    http_kubeconfig,
    listening,
    place_of,
    sane_then,
    settings_with,
    world_of,
)

from hortus.engine import Manager
from hortus.engine.kubeconfigs import sealed
from hortus.engine.remote import SECRETS, Phase, RemotePool, RemoteUnavailable, SecretCredentials
from hortus.kube import LOCAL_NETWORKS, METADATA_NETWORKS, Access, Client, Connection, Credentials, Secret
from hortus.kube.errors import Garbage, KubeError, NotFound, Unauthorized
from hortus.kube.objects import Object
from hortus.testing.apiserver import TestServer, started_apiserver


def configmap(name: str, **data: str) -> Object:
    return {"metadata": {"name": name, "namespace": "default"}, "data": data}


async def test_a_cluster_is_connected_when_it_is_first_asked_and_not_before(world: World) -> None:
    place = await world.give("red-lazy", world.server.kubeconfig_dict("red"))
    remote = world.pool.at(place)
    assert world.pool.state(place).phase is Phase.IDLE
    assert world.calls.answers == []

    await remote.create(CONFIGMAPS, configmap("lazy", a="1"))
    assert (await remote.get(CONFIGMAPS, "lazy", "default"))["data"] == {"a": "1"}
    assert world.pool.state(place).condition() == ("True", "Connected", "")
    assert {host for _, host, _ in world.calls.answers} == {"remote"}, "no series for each cluster"
    assert len(world.calls.answers) == 3, "one probe, then what was asked for"


async def test_a_missing_secret_fails_at_once_and_is_taken_up_when_it_appears(world: World) -> None:
    place = place_of("red-later")
    with pytest.raises(RemoteUnavailable, match="there is no such Secret"):
        await world.pool.at(place).list(CONFIGMAPS)
    assert world.pool.state(place).condition()[:2] == ("False", "CredentialMissing")

    await world.give("red-later", world.server.kubeconfig_dict("red"))
    await world.reaches(place, "Connected")
    assert (await world.pool.at(place).list(CONFIGMAPS)).resource_version


async def test_rotation_moves_to_the_new_credential_and_no_call_fails(world: World) -> None:
    place = await world.give("red-rotates", world.server.token_kubeconfig_dict("red"))
    remote = world.pool.at(place)
    await remote.list(CONFIGMAPS)
    first = world.pool.remote(place).link
    stop = asyncio.Event()

    async def caller() -> int:
        done = 0
        while not stop.is_set():
            await remote.list(CONFIGMAPS)
            done += 1
        return done

    callers = [asyncio.create_task(caller()) for _ in range(3)]
    await world.give("red-rotates", world.server.kubeconfig_dict("red"))
    await world.until(lambda: world.pool.remote(place).link is not first and world.pool.remote(place).link)
    stop.set()
    assert all(await asyncio.gather(*callers))
    assert world.pool.metrics.rotations == 1
    assert world.pool.metrics.opened == 0


async def test_a_new_credential_that_does_not_work_leaves_the_old_one_in_use(world: World) -> None:
    place = await world.give("red-keeps", world.server.token_kubeconfig_dict("red"))
    remote = world.pool.at(place)
    await remote.list(CONFIGMAPS)
    broken = world.server.token_kubeconfig_dict("red")
    broken["users"][0]["user"]["token"] = "wrong"
    await world.give("red-keeps", broken)
    await world.reaches(place, "CredentialRefused")
    status, _, message = world.pool.state(place).condition()
    assert status == "True"
    assert "the old one still does" in message
    assert "wrong" not in message
    await remote.list(CONFIGMAPS)


async def test_a_revoked_credential_is_read_again_before_the_breaker_opens(server: TestServer) -> None:
    with started_apiserver() as other:
        async with world_of(server) as world:
            place = await world.give("revoked", other.token_kubeconfig_dict("root"))
            remote = world.pool.at(place)
            await remote.list(CONFIGMAPS)

            # The watch of Secrets stands still, so that only the 401 can tell of the rotation.
            world.pool._unsubscribe()
            link = world.pool.remote(place).link
            assert link is not None
            link.connection._pool._auth.authorization = "Bearer revoked"
            await world.give("revoked", other.kubeconfig_dict("root"))
            await remote.list(CONFIGMAPS)
            assert world.pool.state(place).reason == "Connected"

            link = world.pool.remote(place).link
            assert link is not None
            link.connection.become(Access(server=other.url, ca=other.ca, credentials=Credentials(token=Secret("no"))))
            with pytest.raises(Unauthorized):
                await remote.list(CONFIGMAPS)
            assert world.pool.state(place).condition()[:2] == ("False", "CredentialRefused")


async def test_a_cluster_that_is_down_is_left_alone_and_found_again_by_a_probe(server: TestServer) -> None:
    with started_apiserver() as other:
        kubeconfig = other.kubeconfig_dict("root")
        async with world_of(server) as world:
            place = await world.give("down", kubeconfig)
            await world.pool.at(place).list(CONFIGMAPS)
            await asyncio.to_thread(other.run, other.server.stop())
            errors: list[KubeError] = []
            while not errors or not isinstance(errors[-1], RemoteUnavailable):
                with pytest.raises(KubeError) as caught:
                    await world.pool.at(place).list(CONFIGMAPS)
                errors.append(caught.value)
            assert world.pool.state(place).phase is Phase.UNREACHABLE
            assert isinstance(errors[-1], RemoteUnavailable)
            assert errors[-1].retry_after is not None
            waiting = asyncio.create_task(world.pool.patient(place).list(CONFIGMAPS))
            await world.give("down", server.kubeconfig_dict("green"))  # the cluster moved
            assert (await waiting).resource_version
            assert world.pool.state(place).reason == "Connected"


@pytest.mark.parametrize("world", [{"idle": 0.05}], indirect=True)
async def test_what_nobody_uses_is_closed_and_forgotten(world: World) -> None:
    place = await world.give("red-idle", world.server.kubeconfig_dict("red"))
    await world.pool.at(place).list(CONFIGMAPS)
    await world.until(lambda: not world.pool.places() and world.pool.budget.held == 0)
    assert world.pool.state(place).phase is Phase.IDLE
    assert (await world.pool.at(place).list(CONFIGMAPS)).resource_version


@pytest.mark.parametrize("world", [{"sockets": 2, "watch_share": 0.5}], indirect=True)
async def test_the_budget_of_sockets_holds_and_the_longest_unused_gives_way(world: World) -> None:
    places = [await world.give(f"few-{name}", world.server.kubeconfig_dict(name)) for name in ("red", "blue", "green")]
    most = 0

    async def caller(number: int) -> None:
        nonlocal most
        for _ in range(5):
            await world.pool.at(places[number % 3]).list(CONFIGMAPS)
            most = max(most, world.pool.budget.held)

    await asyncio.gather(*(caller(number) for number in range(9)))
    assert most <= 2
    assert world.pool.budget.evicted > 0
    await world.until(lambda: world.pool.budget.waiting == 0)


async def test_a_kubeconfig_that_asks_for_more_than_data_is_refused(world: World) -> None:
    evil = http_kubeconfig("https://127.0.0.1:1")
    evil["users"][0]["user"] = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/true"}}
    place = await world.give("evil", evil)
    with pytest.raises(RemoteUnavailable, match="exec is not allowed"):
        await world.pool.at(place).list(CONFIGMAPS)
    assert world.pool.state(place).reason == "CredentialMalformed"


async def test_addresses_that_are_not_allowed_are_never_dialled(server: TestServer) -> None:
    async with world_of(server, deny=LOCAL_NETWORKS) as world:
        place = await world.give("local", server.kubeconfig_dict("red"))
        with pytest.raises(RemoteUnavailable, match=r"127\.0\.0\.1 is not allowed"):
            await world.pool.at(place).list(CONFIGMAPS)
        assert world.pool.state(place).phase is Phase.REFUSED


async def test_where_this_machine_is_allowed_a_metadata_service_is_not(server: TestServer) -> None:
    async with world_of(server, deny=METADATA_NETWORKS) as world:
        place = await world.give("local", server.kubeconfig_dict("red"))
        await world.pool.at(place).list(CONFIGMAPS)
        stolen = server.kubeconfig_dict("red")
        stolen["clusters"][0]["cluster"]["server"] = "https://169.254.169.254"
        place = await world.give("stolen", stolen)
        with pytest.raises(RemoteUnavailable, match=r"169\.254\.169\.254 is not allowed"):
            await world.pool.at(place).list(CONFIGMAPS)
        assert world.pool.state(place).phase is Phase.REFUSED


async def test_redirects_to_elsewhere_are_refused(world: World) -> None:
    async def redirect(head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(answer_of(b"", "302 Found", Location="http://169.254.169.254/latest/meta-data"))

    async with listening(sane_then(redirect)) as kubeconfig:
        place = await world.give("redirects", kubeconfig)
        with pytest.raises(Garbage, match=r"redirect \(302\) to 169\.254\.169\.254"):
            await world.pool.at(place).list(CONFIGMAPS)


async def test_states_are_counted_without_naming_clusters(world: World) -> None:
    place = await world.give("counted", world.server.kubeconfig_dict("blue"))
    began = world.pool.clock.now()
    await world.pool.at(place).list(CONFIGMAPS)
    assert began <= world.pool.state(place).since <= world.pool.clock.now()
    text = generate_latest(world.manager.registry).decode()
    assert 'hortus_remote_clusters{state="Ready"} 1.0' in text
    assert "hortus_remote_sockets 1.0" in text
    for counted in ("waiting", "breaker_opened_total", "rotations_total", "evictions_total"):
        assert f"hortus_remote_{counted} 0.0" in text
    assert "counted" not in text


async def test_errors_of_one_object_do_not_speak_against_its_cluster(world: World) -> None:
    place = await world.give("objects", world.server.kubeconfig_dict("blue"))
    for _ in range(5):
        with pytest.raises(NotFound):
            await world.pool.at(place).get(CONFIGMAPS, "missing", "default")
    assert world.pool.state(place).reason == "Connected"


async def test_a_connection_is_made_with_the_pools_limits_clock_and_memory(server: TestServer) -> None:
    made: list[dict[str, Any]] = []

    def connect(access: Access, **options: Any) -> Connection:
        made.append(options)
        return Connection(access, **options)

    async with Client.from_kubeconfig(server.kubeconfig) as client:
        manager = Manager(client)
        secrets = manager.cache(SECRETS, namespace="default", transform=sealed)
        chosen = settings_with(qps=7.0, burst=3, timeout=11.0)
        pool = RemotePool(SecretCredentials(client, secrets), settings=chosen, clock=manager.clock, connect=connect)
        manager.on_stop(pool.close)
        async with manager.running():
            world = World(server, client, manager, pool, Calls())
            place = await world.give("red-limits", server.kubeconfig_dict("red"))
            await pool.at(place).list(CONFIGMAPS)
    [options] = made
    assert options["settings"] == chosen.connection()
    assert options["settings"].timeout == 11.0
    assert options["clock"] is manager.clock
    assert options["observer"] is None
    assert options["dialing"].contexts is pool.contexts
    assert options["dialing"].memory is pool.memory
