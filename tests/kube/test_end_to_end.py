"""The client against the embedded API server: TLS, client certificates, all verbs, several logical clusters."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from hortus.kube import Client, Discovery, PatchKind, Propagation, Resource, errors, kubeconfig, yaml
from hortus.kube.objects import Object
from hortus.kube.selectors import LabelSelector
from hortus.testing.apiserver import TestServer, running_apiserver

CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)


@pytest.fixture
async def server() -> AsyncIterator[TestServer]:
    async with running_apiserver(clusters=["garden"]) as server:
        yield server


@pytest.fixture
async def client(server: TestServer) -> AsyncIterator[Client]:
    async with Client.from_kubeconfig(server.kubeconfig) as client:
        yield client


def configmap(name: str, **labels: str) -> Object:
    metadata: Object = {"name": name, "namespace": "default"}
    if labels:
        metadata["labels"] = labels
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "1"}}


async def test_an_object_is_made_read_changed_and_deleted(client: Client) -> None:
    created = await client.create(CONFIGMAPS, configmap("one"), field_manager="me")
    assert await client.get(CONFIGMAPS, "one", "default") == created
    patched = await client.patch(CONFIGMAPS, "one", {"data": {"b": "2"}}, "default", field_manager="me")
    assert patched["data"] == {"a": "1", "b": "2"}
    operations = [{"op": "test", "path": "/data/b", "value": "2"}, {"op": "remove", "path": "/data/b"}]
    assert (await client.patch(CONFIGMAPS, "one", operations, "default", PatchKind.JSON))["data"] == {"a": "1"}
    with pytest.raises(errors.Conflict):
        await client.replace(CONFIGMAPS, {**created, "data": {}})
    with pytest.raises(errors.Conflict):
        await client.delete(CONFIGMAPS, "one", "default", uid="another")
    await client.delete(CONFIGMAPS, "one", "default", propagation=Propagation.BACKGROUND)
    with pytest.raises(errors.NotFound, match='configmaps "one" not found'):
        await client.get(CONFIGMAPS, "one", "default")


async def test_apply_owns_its_fields_and_names_other_owners(client: Client) -> None:
    mine = {"metadata": {"name": "one", "namespace": "default"}, "data": {"a": "1"}}
    first = await client.apply(CONFIGMAPS, mine, field_manager="me")
    again = await client.apply(CONFIGMAPS, mine, field_manager="me")
    assert again["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    theirs = {**mine, "data": {"a": "2"}}
    with pytest.raises(errors.Conflict, match='"me"'):
        await client.apply(CONFIGMAPS, theirs, field_manager="you", force=False)
    assert (await client.apply(CONFIGMAPS, theirs, field_manager="you"))["data"] == {"a": "2"}


async def test_lists_select_and_page(client: Client) -> None:
    for index in range(5):
        await client.create(CONFIGMAPS, configmap(f"c{index}", parity="odd" if index % 2 else "even"))
    pages = [page async for page in client.pages(CONFIGMAPS, "default", limit=2, labels="parity")]
    assert [len(page.items) for page in pages] == [2, 2, 1]
    even = await client.list(CONFIGMAPS, labels=LabelSelector.parse("parity in (even),parity!=odd"))
    assert [item["metadata"]["name"] for item in even.items] == ["c0", "c2", "c4"]
    assert (even.items[0]["apiVersion"], even.items[0]["kind"]) == ("v1", "ConfigMap")
    one = await client.list(CONFIGMAPS, "default", fields="metadata.name=c3")
    assert [item["metadata"]["name"] for item in one.items] == ["c3"]
    await client.delete_collection(CONFIGMAPS, "default", labels="parity=odd")
    assert len((await client.list(CONFIGMAPS, "default", labels="parity")).items) == 3


async def test_a_watch_continues_from_a_list(client: Client) -> None:
    found = await client.list(CONFIGMAPS, "default")
    async with client.watch(CONFIGMAPS, "default", resource_version=found.resource_version) as events:
        await client.create(CONFIGMAPS, configmap("one"))
        await client.patch(CONFIGMAPS, "one", {"data": {"a": "2"}}, "default")
        await client.delete(CONFIGMAPS, "one", "default")
        seen = [await asyncio.wait_for(anext(events), 60) for _ in range(3)]
    assert [event.type for event in seen] == ["ADDED", "MODIFIED", "DELETED"]
    assert seen[1].object["data"] == {"a": "2"}


async def test_initial_events_end_with_a_bookmark(client: Client) -> None:
    await client.create(CONFIGMAPS, configmap("one"))
    seen = []
    async with client.watch(CONFIGMAPS, "default", initial_events=True) as events:
        async for event in events:
            seen.append(event.type)
            if event.object["metadata"].get("annotations", {}).get("k8s.io/initial-events-end"):
                break
    assert "ADDED" in seen
    assert seen[-1] == "BOOKMARK"


async def test_metadata_alone(client: Client) -> None:
    await client.create(CONFIGMAPS, configmap("one"))
    found = await client.list(CONFIGMAPS, "default", metadata_only=True, fields="metadata.name=one")
    assert found.items[0]["kind"] == "PartialObjectMetadata"
    assert "data" not in found.items[0]


async def test_logical_clusters_are_reached_by_their_path(server: TestServer, client: Client) -> None:
    access = kubeconfig.from_untrusted(yaml.dump(server.kubeconfig_dict("garden"))).access()
    async with Client(access) as garden:
        await garden.create(CONFIGMAPS, configmap("there"))
        assert (await garden.get(CONFIGMAPS, "there", "default"))["data"] == {"a": "1"}
    with pytest.raises(errors.NotFound):
        await client.get(CONFIGMAPS, "there", "default")


async def test_discovery_finds_all_served_resources(client: Client) -> None:
    discovery = await Discovery.look(client)
    assert discovery.find("cm").resource == CONFIGMAPS
    assert discovery.find("deploy").resource.api_version == "apps/v1"
    assert discovery.find("Namespace").resource == NAMESPACES
    assert discovery.failed == ()


async def test_a_wrong_token_is_unauthorized(server: TestServer) -> None:
    content = server.token_kubeconfig_dict()
    content["users"][0]["user"] = {"token": "wrong"}
    async with Client(kubeconfig.from_untrusted(yaml.dump(content)).access()) as client:
        with pytest.raises(errors.Unauthorized):
            await client.list(NAMESPACES)
