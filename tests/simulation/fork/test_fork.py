"""A fork over live API servers: what is read, what stays in it, and what the live side sees of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeVar

import msgspec
import pytest

from hortus.kube import Access, Client, Impersonation
from hortus.kube.access import Credentials, Secret
from hortus.kube.errors import NotFound, ServiceUnavailable
from hortus.kube.objects import Object, Resource
from hortus.simulation.fork import Fork, ForkSettings, LiveClusters, LiveReadFailed, VirtualClock, VirtualLoop
from hortus.simulation.fork.naming import ForkNames
from hortus.testing.apiserver import TestServer

T = TypeVar("T")
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
SECRETS = Resource("", "v1", "secrets", "Secret")
_ROLES = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False)
_BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)
READER = "plan-reader"


def admin(server: TestServer) -> Access:
    return Access(server=server.url, ca=server.ca, credentials=Credentials(token=Secret(server.token)))


async def reader(server: TestServer, *, without: tuple[str, ...] = ()) -> Access:
    """The access of a user who may get, list and watch everything, but for the kinds `without`."""
    kinds = ["configmaps", "secrets", "namespaces", "customresourcedefinitions", "services", "serviceaccounts"]
    rule = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}
    if without:
        rule["resources"] = [kind for kind in kinds if kind not in without]
    name = f"{READER}-{'-'.join(without) or 'all'}"
    async with Client(admin(server)) as client:
        await client.apply(_ROLES, {"metadata": {"name": name}, "rules": [rule]}, field_manager="test")
        subject = {"apiGroup": _ROLES.group, "kind": "User", "name": name}
        binding = {
            "metadata": {"name": name},
            "roleRef": {"apiGroup": _ROLES.group, "kind": "ClusterRole", "name": name},
            "subjects": [subject],
        }
        await client.apply(_BINDINGS, binding, field_manager="test")
    impersonated = Impersonation(user=name, groups=("system:authenticated",))
    return msgspec.structs.replace(admin(server), impersonate=impersonated)


def forked(access: Access, step: Callable[[Fork, LiveClusters], Awaitable[T]]) -> T:
    """Runs `step` in a fork of one management cluster."""
    loop = VirtualLoop()

    async def work(live: LiveClusters) -> T:
        clock = VirtualClock(loop, began=1_700_000_000.0)
        async with Fork.opened(ForkSettings(management=access), live, clock) as fork:
            return await step(fork, live)

    try:
        with LiveClusters() as live:
            return loop.run_until_complete(work(live))
    finally:
        loop.run_until_complete(loop.drain())
        loop.close()


def config_map(name: str, **data: str) -> Object:
    return {"metadata": {"name": name, "namespace": "default"}, "data": data}


async def _made(server: TestServer, name: str) -> Object:
    async with Client(admin(server)) as client:
        with suppress(NotFound):
            await client.delete(CONFIG_MAPS, name, "default")
        return await client.create(CONFIG_MAPS, config_map(name, is_live="yes"))


async def _live(server: TestServer) -> dict[str, Any]:
    async with Client(admin(server)) as client:
        return {one["metadata"]["name"]: one for one in (await client.list(CONFIG_MAPS)).items}


async def test_a_fork_shows_live_objects_and_keeps_its_writes(server: TestServer) -> None:
    await _made(server, "kept")
    access = await reader(server)
    before = await _live(server)

    async def step(fork: Fork, live: LiveClusters) -> tuple[Object, Object, list[str]]:
        async with fork.client() as client:
            found = await client.get(CONFIG_MAPS, "kept", "default")
            changed = await client.patch(CONFIG_MAPS, "kept", {"data": {"is_live": "no"}}, "default")
            await client.create(CONFIG_MAPS, config_map("only-here"))
            names = [one["metadata"]["name"] for one in (await client.list(CONFIG_MAPS, "default")).items]
            return found, changed, names

    found, changed, names = await asyncio.to_thread(forked, access, step)
    assert found["data"] == {"is_live": "yes"}
    assert found["metadata"]["uid"] == before["kept"]["metadata"]["uid"]
    assert found["metadata"]["managedFields"] == before["kept"]["metadata"]["managedFields"]
    assert changed["data"] == {"is_live": "no"}
    assert {"kept", "only-here"} <= {*names}
    assert await _live(server) == before


async def test_a_watch_in_a_fork_sees_live_objects_first_and_then_its_writes(server: TestServer) -> None:
    await _made(server, "watched")

    async def step(fork: Fork, live: LiveClusters) -> list[tuple[str, str]]:
        seen: list[tuple[str, str]] = []
        async with fork.client() as client, client.watch(CONFIG_MAPS, "default", name="watched") as events:
            async for event in events:
                seen.append((event.type, event.object["data"]["is_live"]))
                if len(seen) == 2:
                    return seen
                await client.patch(CONFIG_MAPS, "watched", {"data": {"is_live": "no"}}, "default")
        return seen

    seen = await asyncio.to_thread(forked, admin(server), step)
    assert seen == [("ADDED", "yes"), ("MODIFIED", "no")]


async def test_each_kind_is_listed_once_however_often_it_is_read(server: TestServer) -> None:
    async def step(fork: Fork, live: LiveClusters) -> tuple[int, int]:
        begun = live.reads["root"]
        async with fork.client() as client:
            for _ in range(3):
                await client.list(CONFIG_MAPS)
                await client.list(SECRETS)
        return begun, live.reads["root"]

    begun, after = await asyncio.to_thread(forked, admin(server), step)
    assert after == begun


async def test_kinds_that_may_not_be_listed_are_unknown_and_the_rest_is_served(server: TestServer) -> None:
    await _made(server, "readable")
    access = await reader(server, without=("secrets",))

    async def step(fork: Fork, live: LiveClusters) -> tuple[Object, str]:
        async with fork.client() as client:
            with pytest.raises(ServiceUnavailable, match="secrets of cluster root could not be read") as refused:
                await client.list(SECRETS)
            return await client.get(CONFIG_MAPS, "readable", "default"), str(refused.value)

    found, reason = await asyncio.to_thread(forked, access, step)
    assert found["data"] == {"is_live": "yes"}
    assert 'cannot list resource "secrets"' in reason


async def test_a_management_cluster_that_does_not_answer_cannot_be_planned_for() -> None:
    async def step(fork: Fork, live: LiveClusters) -> None:
        raise AssertionError("there is no fork")

    silent = Access(server="https://127.0.0.1:9", insecure=True)
    with pytest.raises(LiveReadFailed, match=r"cannot be planned for.*127\.0\.0\.1:9: cannot connect"):
        await asyncio.to_thread(forked, silent, step)


def test_an_address_names_a_shoot_as_soon_as_the_shoot_advertises_it() -> None:
    names, address = ForkNames("https://management.example.org", ""), "https://api.demo-1.example.org"
    assert names.of(address).startswith("cluster-")
    status = {"advertisedAddresses": [{"name": "external", "url": address}]}
    names.take({"metadata": {"name": "demo-1", "namespace": "garden-demo"}, "status": status})
    assert names.of(address) == "shoot--demo--demo-1"
