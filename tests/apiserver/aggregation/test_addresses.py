"""Services that lead to this machine without a cluster network, and the clusters that may have them."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack

import pytest
from tests.apiserver.wire import Wire, connected
from tests.conformance.api.behind import SERVICES, TRUST, Listening, listening_behind, until_condition

from hortus.apiserver import ApiServerSettings
from hortus.kube.objects import Object
from hortus.testing.apiserver import TestServer, running_apiserver

GROUP = "behind.example.com"
HOST = "behind.default.svc"
THINGS = f"/apis/{GROUP}/v1/namespaces/default/things"
CORE = "/api/v1/namespaces/default"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"


@pytest.fixture
async def server() -> AsyncIterator[TestServer]:
    settings = ApiServerSettings(local_webhooks=frozenset({"local"}))
    async with running_apiserver(clusters=["local", "tenant"], settings=settings) as running:
        yield running


@pytest.fixture
async def wires(server: TestServer) -> AsyncIterator[dict[str, Wire]]:
    async with AsyncExitStack() as stack:
        yield {
            name: await stack.enter_async_context(connected(server.cluster_url(name), server.token, server.tls()))
            for name in ("root", "local", "tenant")
        }


async def register(wire: Wire, listening: Listening) -> None:
    spec = {
        "group": GROUP,
        "version": "v1",
        "service": {"namespace": "default", "name": "behind"},
        "caBundle": base64.b64encode(listening.pair.bundle).decode(),
        "groupPriorityMinimum": 2000,
        "versionPriority": 10,
    }
    service = {"metadata": {"name": "behind"}, "spec": {"ports": [{"name": "https", "port": 443}]}}
    for collection, obj in (
        (f"{CORE}/services", service),
        (SERVICES, {"metadata": {"name": f"v1.{GROUP}"}, "spec": spec}),
    ):
        made = await wire.post(collection, obj)
        assert made.code == 201, made.body


def endpoints(port: int) -> Object:
    subset = {"addresses": [{"ip": "127.0.0.1"}], "ports": [{"name": "https", "port": port}]}
    return {"metadata": {"name": "behind"}, "subsets": [subset]}


def endpoint_slice(port: int, *, ready: bool, ports: Sequence[str] = ("https",)) -> Object:
    return {
        "metadata": {"name": "behind-1", "labels": {"kubernetes.io/service-name": "behind"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["127.0.0.1"], "conditions": {"ready": ready}}],
        "ports": [{"name": name, "port": port} for name in ports],
    }


async def test_endpoints_on_this_machine_are_found(wires: dict[str, Wire]) -> None:
    wire = wires["root"]
    async with listening_behind(wire, GROUP, HOST) as listening:
        await register(wire, listening)
        condition = await until_condition(wire, f"v1.{GROUP}", "False")
        assert condition["message"] == 'cannot find endpointslices for service/behind in "default"'
        assert (await wire.post(f"{CORE}/endpoints", endpoints(listening.port))).code == 201
        await until_condition(wire, f"v1.{GROUP}", "True")
        assert (await wire.get(THINGS)).code == 200
        await wire.delete(f"{CORE}/endpoints/behind")
        condition = await until_condition(wire, f"v1.{GROUP}", "False")
        assert condition["reason"] == "EndpointsNotFound"


async def test_a_slice_counts_with_its_ready_endpoints_and_the_port_of_the_service(wires: dict[str, Wire]) -> None:
    wire = wires["root"]
    async with listening_behind(wire, GROUP, HOST) as listening:
        await register(wire, listening)
        path = f"{SLICES}/behind-1"
        assert (await wire.post(SLICES, endpoint_slice(listening.port, ready=False))).code == 201
        condition = await until_condition(wire, f"v1.{GROUP}", "False")
        while condition["reason"] == "EndpointsNotFound":
            condition = await until_condition(wire, f"v1.{GROUP}", "False")
        message = 'endpointslices for service/behind in "default" have no addresses with port name "https"'
        assert (condition["reason"], condition["message"]) == ("MissingEndpoints", message)
        await wire.merge(path, {"endpoints": endpoint_slice(listening.port, ready=True)["endpoints"]})
        assert (await until_condition(wire, f"v1.{GROUP}", "True"))["reason"] == "Passed"
        assert (await wire.get(THINGS)).code == 200


async def test_only_clusters_of_this_machine_may_reach_it(wires: dict[str, Wire]) -> None:
    for name, status in (("local", "True"), ("tenant", "False")):
        wire = wires[name]
        async with listening_behind(wire, GROUP, HOST) as listening:
            await register(wire, listening)
            assert (await wire.post(f"{CORE}/endpoints", endpoints(listening.port))).code == 201
            if status == "True":
                await until_condition(wire, f"v1.{GROUP}", "True")
                assert (await wire.get(THINGS)).code == 200
                [seen] = listening.behind.received
                assert seen.path == THINGS
                continue
            condition = await until_condition(wire, f"v1.{GROUP}", "False")
            while condition["reason"] != "FailedDiscoveryCheck":
                condition = await until_condition(wire, f"v1.{GROUP}", "False")
            assert condition["message"].endswith("services of logical clusters may not be on this machine or its link")
            assert listening.behind.received == []


async def test_a_server_of_one_cluster_does_not_believe_another_cluster(wires: dict[str, Wire]) -> None:
    """The administrators of a cluster can lead its requests to the servers of others, and choose their users."""
    async with listening_behind(wires["root"], GROUP, HOST) as listening:
        await register(wires["local"], listening)
        assert (await wires["local"].post(f"{CORE}/endpoints", endpoints(listening.port))).code == 201
        condition = await until_condition(wires["local"], f"v1.{GROUP}", "False")
        while condition["reason"] != "FailedDiscoveryCheck":
            condition = await until_condition(wires["local"], f"v1.{GROUP}", "False")
        assert listening.behind.received == []
    trusted = [(await wire.get(TRUST)).body["data"] for wire in wires.values()]
    for key in ("client-ca-file", "requestheader-client-ca-file"):
        assert len({data[key] for data in trusted}) == len(wires)


async def test_the_authorities_outlive_a_restart(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder, seen = tmp_path_factory.mktemp("state"), []
    for _ in range(2):
        async with (
            running_apiserver(store="sqlite", folder=folder) as server,
            connected(server.url, server.token, server.tls()) as wire,
        ):
            seen.append((await wire.get(TRUST)).body)
    assert seen[0] == seen[1]


async def test_the_trust_is_an_object_like_others(wires: dict[str, Wire]) -> None:
    wire = wires["tenant"]
    before = (await wire.get(TRUST)).body
    listed = (await wire.get("/api/v1/configmaps?limit=1")).body
    assert [item["metadata"]["name"] for item in listed["items"]] == [before["metadata"]["name"]]
    changed = await wire.merge(TRUST, {"data": {"more": "yes"}})
    assert changed.body["data"] == {**before["data"], "more": "yes"}
    assert changed.body["metadata"]["uid"] == before["metadata"]["uid"]
    assert (await wire.delete(TRUST)).code == 200
    assert (await wire.get(TRUST)).code == 404
