"""The server as a whole: clusters apart, watches that end, state that stays."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.apiserver.wire import Wire, configmap, connected, names

from hortus.apiserver import PlainStrategy, ResourceDefinition, WriteContext
from hortus.apiserver.authn import UserInfo
from hortus.kube import Client
from hortus.kube.errors import AlreadyExists, Conflict, Invalid, NotFound
from hortus.kube.objects import Object, Resource
from hortus.testing.apiserver import TestServer, running_apiserver

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
CONFIGMAP = Resource("", "v1", "configmaps", "ConfigMap")
BEDS = Resource("garden.example", "v1", "beds", "Bed")


async def test_logical_clusters_do_not_see_each_other(wire: Wire, other: Wire) -> None:
    await other.post(CONFIGMAPS, configmap("there"))
    assert names(await other.get(CONFIGMAPS)) == ["there"]
    assert (await wire.get(f"{CONFIGMAPS}/there")).code == 404
    assert (await wire.get("/clusters/root/api/v1/namespaces")).code == 200
    revision = (await wire.get(CONFIGMAPS)).body["metadata"]["resourceVersion"]
    async with wire.watch(f"{CONFIGMAPS}?watch=true&resourceVersion={revision}") as events:
        await other.post(CONFIGMAPS, configmap("unseen"))
        await wire.post(CONFIGMAPS, configmap("seen"))
        assert await events.take(1) == [("ADDED", "seen")]


async def test_a_deleted_cluster_takes_its_objects_kinds_and_credentials_along(server: TestServer, wire: Wire) -> None:
    await asyncio.to_thread(server.create_cluster, "brief")
    async with Client.from_kubeconfig(server.kubeconfig_for("brief")) as client:
        made = await client.create(CONFIGMAP, {**configmap("a"), "metadata": {"name": "a", "namespace": "default"}})
        path = "/apis/tenancy.hortus.dev/v1alpha1/logicalclusters/brief"
        assert (await wire.delete(path)).code == 200
        while (await wire.get(path)).code != 404:
            await asyncio.sleep(0)
        await asyncio.to_thread(server.create_cluster, "brief")
        assert made["metadata"]["name"] == "a"
    async with Client.from_kubeconfig(server.kubeconfig_for("brief")) as client:
        assert (await client.list(CONFIGMAP, "default")).items == []


async def test_a_stop_ends_watches_cleanly() -> None:
    async with (
        running_apiserver() as server,
        connected(server.url, server.token, server.tls()) as wire,
        wire.watch(f"{CONFIGMAPS}?watch=true&resourceVersion=0") as events,
    ):
        await wire.post(CONFIGMAPS, configmap("a"))
        assert await events.take(1) == [("ADDED", "a")]
        stopped = asyncio.create_task(asyncio.to_thread(server.run, server.server.stop()))
        assert await events.ended()
        await stopped


async def test_writes_survive_a_restart(tmp_path: Path) -> None:
    async with running_apiserver(store="sqlite", folder=tmp_path, clusters=["kept"]) as server:
        async with connected(server.cluster_url("kept"), server.token, server.tls()) as wire:
            made = (await wire.post(CONFIGMAPS, configmap("a"))).body
        ca = server.ca
    async with running_apiserver(store="sqlite", folder=tmp_path, clusters=["kept"]) as server:
        assert server.ca == ca
        async with connected(server.cluster_url("kept"), server.token, server.tls()) as wire:
            assert (await wire.get(f"{CONFIGMAPS}/a")).body == made
            revision = made["metadata"]["resourceVersion"]
            async with wire.watch(f"{CONFIGMAPS}?watch=true&resourceVersion={revision}") as events:
                await wire.post(CONFIGMAPS, configmap("b"))
                assert await events.take(1) == [("ADDED", "b")]


async def test_garbage_collection_continues_after_a_restart(tmp_path: Path) -> None:
    async with (
        running_apiserver(store="sqlite", folder=tmp_path) as server,
        connected(server.url, server.token, server.tls()) as wire,
    ):
        owner = (await wire.post(CONFIGMAPS, configmap("owner"))).body["metadata"]
        server.run(server.server.collector.stop())
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["uid"]}
        await wire.post(CONFIGMAPS, configmap("child", ownerReferences=[reference]))
        await wire.delete(f"{CONFIGMAPS}/owner")
        assert names(await wire.get(CONFIGMAPS)) == ["child"]
    async with running_apiserver(store="sqlite", folder=tmp_path) as server:
        server.run(server.server.collector.queue.settled())
        async with connected(server.url, server.token, server.tls()) as wire:
            assert names(await wire.get(CONFIGMAPS)) == []


async def test_compacted_revisions_are_gone_for_watches_lists_and_pages(wire: Wire, server: TestServer) -> None:
    for name in ("c-1", "c-2", "c-3"):
        await wire.post(CONFIGMAPS, configmap(name))
    page = await wire.get(f"{CONFIGMAPS}?limit=1")
    old = page.body["metadata"]["resourceVersion"]
    await wire.post(CONFIGMAPS, configmap("c-4"))
    await wire.delete(f"{CONFIGMAPS}/c-4")
    storage = server.server.context.storage
    server.run(storage.backend.compact(storage.revision))
    async with wire.watch(f"{CONFIGMAPS}?watch=true&resourceVersion={old}") as events:
        event = await events.next()
        assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")
        assert event["object"]["message"].startswith(f"too old resource version: {old} (")
        assert await events.ended()
    exact = await wire.get(f"{CONFIGMAPS}?resourceVersion={old}&resourceVersionMatch=Exact")
    assert (exact.code, exact.body["reason"]) == (410, "Expired")
    expired = await wire.get(f"{CONFIGMAPS}?limit=1&continue={page.body['metadata']['continue']}")
    assert (expired.code, expired.body["reason"]) == (410, "Expired")
    fresh = await wire.get(f"{CONFIGMAPS}?limit=500&continue={expired.body['metadata']['continue']}")
    assert fresh.code == 200
    assert "c-2" in names(fresh) and "c-1" not in names(fresh)


class _BedStrategy(PlainStrategy):
    def prepare_create(self, obj: Object, context: WriteContext) -> None:
        obj["status"] = {"phase": f"dug by {context.user.username}"}


async def _water(obj: Object, body: Object, context: WriteContext) -> Object:
    return {"watered": obj["metadata"]["name"], "litres": body.get("litres", 1), "by": context.user.username}


def _beds() -> ResourceDefinition:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"spec": {"type": "object"}, "status": {"type": "object"}},
    }
    schema["properties"]["status"]["x-kubernetes-preserve-unknown-fields"] = True
    return ResourceDefinition(
        resource=BEDS,
        singular="bed",
        list_kind="BedList",
        schema=schema,
        strategy=_BedStrategy(),
        status=True,
        subresources={"water": _water},
    )


async def test_an_extension_is_served_where_it_is_bound_and_nowhere_else() -> None:
    async with running_apiserver(extensions={"garden": [_beds()]}) as server:
        async with connected(server.cluster_url("garden"), server.token, server.tls()) as wire:
            path = BEDS.path("default")
            made = await wire.post(path, {"metadata": {"name": "a"}, "spec": {}})
            assert (made.code, made.body["status"]) == (201, {"phase": "dug by kubernetes-admin"})
            answer = await wire.post(f"{path}/a/water", {"litres": 3})
            assert (answer.code, answer.body) == (201, {"watered": "a", "litres": 3, "by": "kubernetes-admin"})
            assert (await wire.post(f"{path}/none/water", {})).code == 404
            assert (await wire.get(f"{path}/a/water")).code == 405
        async with connected(server.url, server.token, server.tls()) as wire:
            assert (await wire.get(BEDS.path("default"))).code == 404


async def test_code_of_the_process_obeys_the_same_rules(server: TestServer, wire: Wire) -> None:
    local = server.server.local("root", UserInfo("gardenlet"), manager="gardenlet")

    async def go() -> None:
        made = await local.create(CONFIGMAP, configmap("in-process", namespace="default"))
        with pytest.raises(AlreadyExists):
            await local.create(CONFIGMAP, configmap("in-process", namespace="default"))
        with pytest.raises(Invalid):
            await local.create(CONFIGMAP, configmap("UPPER", namespace="default"))
        patched = await local.patch(CONFIGMAP, "in-process", {"data": {"x": "y"}}, "default")
        assert patched["metadata"]["managedFields"][0]["manager"] == "gardenlet"
        with pytest.raises(Conflict):
            await local.replace(CONFIGMAP, made)
        applied = await local.apply(CONFIGMAP, configmap("in-process", {"z": "1"}, namespace="default"))
        assert applied["data"]["z"] == "1"
        assert [each["metadata"]["name"] for each in await local.list(CONFIGMAP, "default", labels="!x")]
        await local.delete(CONFIGMAP, "in-process", "default")
        assert await local.find(CONFIGMAP, "in-process", "default") is None
        with pytest.raises(NotFound):
            await local.get(CONFIGMAP, "in-process", "default")

    server.run(go())


async def test_health_version_and_metrics(wire: Wire) -> None:
    for path in ("/healthz", "/livez", "/readyz"):
        assert (await wire.get(path)).body == b"ok"
    version = (await wire.get("/version")).body
    assert (version["major"], version["minor"]) == ("1", "32")
    await wire.get(f"{CONFIGMAPS}/none")
    metrics = (await wire.get("/metrics")).body.decode()
    assert 'apiserver_request_total{verb="GET",group="",resource="configmaps",subresource="",code="404"}' in metrics
    assert "apiserver_request_duration_seconds_bucket" in metrics


async def test_both_forms_of_discovery_agree(wire: Wire) -> None:
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
    aggregated = (await wire.get("/apis", accept=accept)).body
    legacy = (await wire.get("/apis")).body
    assert aggregated["kind"] == "APIGroupDiscoveryList"
    assert [item["metadata"]["name"] for item in aggregated["items"]] == [each["name"] for each in legacy["groups"]]
    apps = next(item for item in aggregated["items"] if item["metadata"]["name"] == "apps")
    listed = (await wire.get("/apis/apps/v1")).body["resources"]
    plain = [entry["name"] for entry in listed if "/" not in entry["name"]]
    assert [entry["resource"] for entry in apps["versions"][0]["resources"]] == plain
    assert (await wire.get("/api")).body["versions"] == ["v1"]


async def test_openapi_declares_field_validation(wire: Wire) -> None:
    index = (await wire.get("/openapi/v3")).body["paths"]
    document = (await wire.get(index["apis/apps/v1"]["serverRelativeURL"])).body
    patch = document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]
    assert "fieldValidation" in [parameter["name"] for parameter in patch["parameters"]]
    assert patch["x-kubernetes-group-version-kind"]["kind"] == "Deployment"


async def test_impersonation_acts_as_somebody_else(wire: Wire) -> None:
    headers = {"Impersonate-User": "vera"}
    answer = await wire.get(CONFIGMAPS, headers=headers)
    assert (answer.code, 'User "vera" cannot list' in answer.message) == (403, True)


async def test_creating_by_apply_takes_the_right_to_create(wire: Wire) -> None:
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["patch"]}]
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
    await wire.post(f"{rbac}/roles", {"metadata": {"name": "patcher"}, "rules": rules})
    binding = {
        "metadata": {"name": "patcher"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "pat"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "patcher"},
    }
    assert (await wire.post(f"{rbac}/rolebindings", binding)).code == 201
    headers = {"Impersonate-User": "pat"}
    path, form = f"{CONFIGMAPS}/by-pat?fieldManager=pat", "application/apply-patch+yaml"
    refused = await wire.send("PATCH", path, configmap("by-pat"), content_type=form, headers=headers)
    assert (refused.code, 'cannot create resource "configmaps"' in refused.message) == (403, True)
    await wire.post(CONFIGMAPS, configmap("by-pat"))
    allowed = await wire.send("PATCH", path, configmap("by-pat", {"x": "y"}), content_type=form, headers=headers)
    assert allowed.code == 200
