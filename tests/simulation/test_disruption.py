"""Faults in the path of requests, over the wire: they strike whom they should, and pass by themselves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import orjson
import pytest

from hortus.kube import Client, ConnectionSettings, Credentials, Resource, Retries, SystemClock
from hortus.kube.errors import (
    BadRequest,
    ConnectionFailed,
    Forbidden,
    KubeError,
    MethodNotAllowed,
    NotFound,
    TooManyRequests,
)
from hortus.simulation.disruption import PATH, Disruption, SteppedClock
from hortus.testing.apiserver import TestServer, running_apiserver

CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
_ONCE = Retries(attempts=1)


@pytest.fixture
async def server() -> AsyncIterator[TestServer]:
    clock = SteppedClock(SystemClock())
    async with running_apiserver(clock=clock) as running:
        running.server.intercept(Disruption(clock))
        yield running


def client(server: TestServer, agent: str) -> Client:
    settings = ConnectionSettings(user_agent=agent, retries=_ONCE)
    return Client.from_kubeconfig(server.kubeconfig, settings=settings)


async def control(server: TestServer, method: str, body: Any = None) -> dict[str, Any]:
    async with client(server, "controller") as admin:
        answer = await admin.request(method, PATH, None if body is None else orjson.dumps(body))
        found: dict[str, Any] = orjson.loads(answer.body)
        return found


async def test_an_error_strikes_only_the_clients_verbs_and_resources_it_names(server: TestServer) -> None:
    rule = {"effect": "error", "seconds": 60, "agents": ["struck"], "verbs": ["list"], "resources": ["configmaps"]}
    await control(server, "PUT", {"rules": [{**rule, "code": 429}]})
    async with client(server, "struck") as struck, client(server, "other") as other:
        with pytest.raises(TooManyRequests) as refused:
            await struck.list(CONFIGMAPS)
        assert refused.value.retry_after == 1.0
        assert (await struck.list(Resource("", "v1", "secrets", "Secret"))).items == []
        assert (await other.list(CONFIGMAPS)).items is not None
    state = await control(server, "GET")
    assert state["struck"] == 1


async def test_a_share_is_about_that_share_and_the_same_for_the_same_seed(server: TestServer) -> None:
    async def struck() -> list[bool]:
        await control(server, "PUT", {"rules": [{"effect": "error", "seconds": 60, "agents": ["x"], "share": 0.5}]})
        found = []
        async with client(server, "x") as caller:
            for _ in range(40):
                try:
                    await caller.get_raw("/version")
                    found.append(False)
                except KubeError:
                    found.append(True)
        return found

    first = await struck()
    assert 8 <= sum(first) <= 32
    assert await struck() == first


async def test_a_fault_ends_by_itself(server: TestServer) -> None:
    await control(server, "PUT", {"rules": [{"effect": "latency", "seconds": 0.3, "delay": 60.0, "agents": ["later"]}]})
    async with client(server, "now") as caller:
        while (await control(server, "GET"))["rules"]:
            await caller.get_raw("/version")
    async with client(server, "later") as late, asyncio.timeout(60):
        await late.get_raw("/version")
    assert (await control(server, "GET"))["struck"] == 0


async def test_dropped_watches_break_and_are_counted(server: TestServer) -> None:
    async with client(server, "struck") as caller, caller.watch(NAMESPACES, resource_version="0") as watch:
        assert (await anext(watch)).type == "ADDED"
        assert await control(server, "POST", {"drop": {"agents": ["other"]}}) == {"dropped": 0}
        assert await control(server, "POST", {"drop": {"agents": ["struck"], "resources": ["namespaces"]}}) == {
            "dropped": 1
        }
        with pytest.raises(ConnectionFailed):
            while True:
                await anext(watch)
    async with asyncio.timeout(60):
        while (await control(server, "GET"))["watches"]:
            await asyncio.sleep(0)


@pytest.mark.parametrize("hang", [False, True])
async def test_a_partition_cuts_watches_and_calls_until_it_is_over(server: TestServer, hang: bool) -> None:
    async with client(server, "struck") as caller, caller.watch(NAMESPACES, resource_version="0") as watch:
        await anext(watch)
        rule = {"effect": "partition", "seconds": 60, "agents": ["struck"], "hang": hang}
        await control(server, "PUT", {"rules": [rule]})
        with pytest.raises(ConnectionFailed):
            while True:
                await anext(watch)
        call = asyncio.create_task(caller.get_raw("/version"))
        if hang:
            done, _ = await asyncio.wait({call}, timeout=0.3)
            assert not done
        await control(server, "PUT", {})
        # Cut at the end, it may have been tried again by then.
        await asyncio.wait({call})
        assert call.exception() is None or isinstance(call.exception(), ConnectionFailed)
        assert await caller.get_raw("/version")


async def test_a_clock_step_is_seen_on_what_is_made_and_goes_back(server: TestServer) -> None:
    async with client(server, "x") as caller:
        await control(server, "PUT", {"offset": 3600.0, "offset_seconds": 60})
        made = await caller.create(CONFIGMAPS, {"metadata": {"name": "future", "namespace": "default"}})
        await control(server, "PUT", {})
        after = await caller.create(CONFIGMAPS, {"metadata": {"name": "now", "namespace": "default"}})
    assert made["metadata"]["creationTimestamp"] > after["metadata"]["creationTimestamp"]
    assert (await control(server, "GET"))["offset"] == 0


@pytest.mark.parametrize(
    "body",
    [
        {"rules": [{"effect": "fire", "seconds": 1}]},
        {"rules": [{"effect": "error", "seconds": 0}]},
        {"rules": [{"effect": "error", "seconds": 1e9}]},
        {"rules": [{"effect": "error"}]},
        {"offset": 1e9, "offset_seconds": 1},
        {"rulez": []},
        [],
    ],
)
async def test_faults_that_there_are_not_are_refused(server: TestServer, body: Any) -> None:
    with pytest.raises(BadRequest, match="faults: "):
        await control(server, "PUT", body)
    assert (await control(server, "GET"))["rules"] == []


async def test_only_an_administrator_may_let_things_fail(server: TestServer) -> None:
    async with client(server, "admin") as admin:
        access = msgspec.structs.replace(admin.access, credentials=Credentials())
        async with Client(access, settings=ConnectionSettings(retries=_ONCE)) as anonymous:
            with pytest.raises(Forbidden):
                await anonymous.request("PUT", PATH, b"{}")


async def test_an_administrator_of_one_cluster_lets_nothing_fail_in_others(server: TestServer) -> None:
    await asyncio.to_thread(server.create_cluster, "tenant")
    rules = {"rules": [{"effect": "error", "seconds": 60, "agents": ["struck"]}], "offset": 3600, "offset_seconds": 60}
    orders = [("GET", None), ("PUT", rules), ("POST", {"drop": {}})]
    access = Client.from_kubeconfig(server.kubeconfig_for("tenant"), settings=ConnectionSettings(retries=_ONCE))
    async with access as tenant, client(server, "struck") as other:
        assert await tenant.get_raw("/version")
        for method, body in orders:
            with pytest.raises(KubeError) as refused:
                await tenant.request(method, PATH, None if body is None else orjson.dumps(body))
            assert isinstance(refused.value, NotFound | MethodNotAllowed)
        assert await other.get_raw("/version")
    state = await control(server, "GET")
    assert (state["rules"], state["offset"]) == ([], 0)
