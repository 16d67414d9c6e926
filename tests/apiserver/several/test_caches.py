"""Acknowledged kinds, roles, webhooks, clusters and namespaces of one server are served and enforced by the other."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

from tests.apiserver.wire import Wire, configmap, connected, names

from hortus.apiserver.store import StoreKey, Value
from hortus.testing.apiserver import TestServer

_NUMBERS = itertools.count()
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_ADMISSION = "/apis/admissionregistration.k8s.io/v1"
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_CLUSTERS = "/apis/tenancy.hortus.dev/v1alpha1/logicalclusters"


def crd(group: str, *, served: tuple[str, ...] = ("v1",)) -> dict[str, Any]:
    spec = {"type": "object", "properties": {"size": {"type": "integer"}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"trees.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "trees", "kind": "Tree", "singular": "tree", "listKind": "TreeList"},
            "versions": [
                {
                    "name": name,
                    "served": True,
                    "storage": name == "v1",
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
                }
                for name in served
            ],
        },
    }


def tree(group: str, name: str, size: Any = 1) -> dict[str, Any]:
    return {"apiVersion": f"{group}/v1", "kind": "Tree", "metadata": {"name": name}, "spec": {"size": size}}


async def test_a_kind_defined_on_one_server_is_served_on_the_other_with_its_schema_until_it_goes(
    one: Wire, other: Wire, namespace: str
) -> None:
    group = f"g{next(_NUMBERS)}.example.org"
    trees = f"/apis/{group}/v1/namespaces/{namespace}/trees"
    assert (await other.get(trees)).code == 404
    assert (await one.post(_CRDS, crd(group))).code == 201
    assert (await other.post(trees, tree(group, "oak"))).code == 201
    refused = await other.post(trees, tree(group, "ash", "tall"))
    assert (refused.code, refused.body["reason"]) == (422, "Invalid")
    assert names(await one.get(trees)) == ["oak"]
    found = (await other.get(f"/apis/{group}")).body
    assert [version["version"] for version in found["versions"]] == ["v1"]
    changed = (await one.get(f"{_CRDS}/trees.{group}")).body
    changed["spec"]["versions"] = crd(group, served=("v1", "v2"))["spec"]["versions"]
    assert (await one.put(f"{_CRDS}/trees.{group}", changed)).code == 200
    assert names(await other.get(f"/apis/{group}/v2/namespaces/{namespace}/trees")) == ["oak"]
    async with other.watch(f"{_CRDS}?watch=true&fieldSelector=metadata.name=trees.{group}") as events:
        await events.next()
        assert (await other.delete(f"{_CRDS}/trees.{group}")).code == 200
        while (await events.next())["type"] != "DELETED":
            pass
    assert (await other.get(trees)).code == 404
    assert (await one.get(trees)).code == 404


async def test_a_right_given_on_one_server_counts_on_the_other_and_its_end_locks_out(
    one: Wire, servers: tuple[TestServer, TestServer], other: Wire, namespace: str
) -> None:
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    await one.post(accounts, {"metadata": {"name": "robot"}})
    token = (await one.post(f"{accounts}/robot/token", {"spec": {"expirationSeconds": 3600}})).body["status"]["token"]
    bindings = f"{_RBAC}/namespaces/{namespace}/rolebindings"
    binding = {
        "metadata": {"name": "robot"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": namespace}],
    }
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    async with connected(servers[1].url, token, servers[1].tls()) as robot:
        for _ in range(3):
            assert (await robot.get(path)).code == 403
            assert (await one.post(bindings, binding)).code == 201
            assert (await robot.get(path)).code == 200
            async with other.watch(f"{bindings}?watch=true") as events:
                await events.next()
                assert (await one.delete(f"{bindings}/robot")).code == 200
                assert (await events.next())["type"] == "DELETED"
            assert (await robot.get(path)).code == 403


async def test_a_token_of_one_server_is_good_on_the_other_until_its_account_goes(
    one: Wire, other: Wire, servers: tuple[TestServer, TestServer], namespace: str
) -> None:
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    await one.post(accounts, {"metadata": {"name": "robot"}})
    token = (await other.post(f"{accounts}/robot/token", {"spec": {}})).body["status"]["token"]
    reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    asked = {"spec": {"nonResourceAttributes": {"path": "/version", "verb": "get"}}}
    for server in servers:
        async with connected(server.url, token, server.tls()) as robot:
            assert (await robot.post(reviews, asked)).code == 201
    async with one.watch(f"{accounts}?watch=true&fieldSelector=metadata.name=robot") as events:
        await events.next()
        await other.delete(f"{accounts}/robot")
        assert (await events.next())["type"] == "DELETED"
    async with connected(servers[0].url, token, servers[0].tls()) as robot:
        assert (await robot.post(reviews, asked)).code == 401


async def test_client_certificates_and_the_serving_authority_are_those_of_both(
    servers: tuple[TestServer, TestServer],
) -> None:
    assert servers[0].ca == servers[1].ca
    issued = servers[0].server.clusters.issue("root", username="jane", groups=("system:masters",), seconds=600)
    folder = servers[0]._folder
    pem = folder / "jane.pem"
    pem.write_bytes(issued.key + issued.certificate)
    for server in servers:
        tls = server.tls()
        tls.load_cert_chain(pem)
        async with connected(server.url, "", tls) as jane:
            review = await jane.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
            assert review.body["status"]["userInfo"]["username"] == "jane"


async def test_a_policy_made_on_one_server_judges_writes_on_the_other(
    one: Wire, other: Wire, namespace: str, configmaps: str
) -> None:
    name = f"policy-{next(_NUMBERS)}"
    policy = {
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "resourceRules": [
                    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
                ],
            },
            "validations": [{"expression": "object.metadata.name != 'forbidden'", "message": "not this one"}],
        },
    }
    assert (await one.post(f"{_ADMISSION}/validatingadmissionpolicies", policy)).code == 201
    bindings = f"{_ADMISSION}/validatingadmissionpolicybindings"
    binding = {"metadata": {"name": name}, "spec": {"policyName": name, "validationActions": ["Deny"]}}
    async with other.watch(f"{bindings}?watch=true&fieldSelector=metadata.name={name}") as events:
        assert (await one.post(bindings, binding)).code == 201
        await events.next()
        refused = await other.post(configmaps, configmap("forbidden"))
        assert refused.code == 422
        assert "not this one" in refused.message
        await one.delete(f"{bindings}/{name}")
        await events.next()
    assert (await other.post(configmaps, configmap("forbidden"))).code == 201


async def test_a_webhook_configured_on_one_server_is_called_by_the_other(
    one: Wire, other: Wire, namespace: str, configmaps: str
) -> None:
    name = f"hook-{next(_NUMBERS)}"
    configurations = f"{_ADMISSION}/validatingwebhookconfigurations"
    hook = {
        "name": "nobody.example.org",
        "clientConfig": {"url": "https://127.0.0.1:9/nobody-listens"},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
    }
    async with other.watch(f"{configurations}?watch=true&fieldSelector=metadata.name={name}") as events:
        assert (await one.post(configurations, {"metadata": {"name": name}, "webhooks": [hook]})).code == 201
        await events.next()
        refused = await other.post(configmaps, configmap("a"))
        assert refused.code == 500
        assert 'failed calling webhook "nobody.example.org"' in refused.message
        await one.delete(f"{configurations}/{name}")
        await events.next()
    assert (await other.post(configmaps, configmap("a"))).code == 201


async def test_a_logical_cluster_made_on_one_server_answers_on_the_other_until_it_goes(
    one: Wire, servers: tuple[TestServer, TestServer], other: Wire
) -> None:
    everywhere = [(server.url, server.token_everywhere, server.tls()) for server in servers]
    name = f"c{next(_NUMBERS)}"
    maps = f"/clusters/{name}/api/v1/namespaces/default/configmaps"
    async with connected(*everywhere[0]) as here, connected(*everywhere[1]) as there:
        for round_ in range(3):
            assert (await one.post(_CLUSTERS, {"metadata": {"name": name}})).code == 201
            assert names(await there.get(maps)) == []
            assert (await there.post(maps, configmap(f"a{round_}"))).code == 201
            assert (await here.post(maps, configmap("b"))).code == 201
            assert names(await there.get(maps)) == [f"a{round_}", "b"]
            async with other.watch(f"{_CLUSTERS}?watch=true&fieldSelector=metadata.name={name}") as events:
                await events.next()
                assert (await one.delete(f"{_CLUSTERS}/{name}")).code == 200
                while (await events.next())["type"] != "DELETED":
                    pass
            assert (await there.get(maps)).code == 404


async def test_a_slow_server_does_not_empty_a_cluster_that_was_made_again(
    one: Wire, other: Wire, servers: tuple[TestServer, TestServer]
) -> None:
    name = f"c{next(_NUMBERS)}"
    maps = f"/clusters/{name}/api/v1/namespaces/default/configmaps"
    for _ in range(2):
        assert (await one.post(_CLUSTERS, {"metadata": {"name": name}})).code == 201
        async with one.watch(f"{_CLUSTERS}?watch=true&fieldSelector=metadata.name={name}") as events:
            await events.next()
            await one.delete(f"{_CLUSTERS}/{name}")
            while (await events.next())["type"] != "DELETED":
                pass
    assert (await one.post(_CLUSTERS, {"metadata": {"name": name}})).code == 201
    async with connected(servers[0].url, servers[0].token_everywhere, servers[0].tls()) as here:
        assert (await here.post(maps, configmap("kept"))).code == 201
        servers[1].run(servers[1].server.clusters.retire(name))
        assert names(await here.get(maps)) == ["kept"]


async def test_objects_of_a_late_request_in_a_removed_cluster_are_removed(
    servers: tuple[TestServer, TestServer],
) -> None:
    backend = servers[1].server.context.storage.backend
    key = StoreKey(f"gone-{next(_NUMBERS)}/core/configmaps", "default/late")

    async def write() -> bool:
        await backend.put(key, Value(b'{"metadata":{"resourceVersion":"', b'"}}'), expected=0)
        while await backend.get(key) is not None:
            await backend.sync()
        return True

    assert await asyncio.to_thread(servers[1].run, write())


async def test_a_namespace_that_ends_on_one_server_takes_nothing_on_the_other_and_keeps_nothing(
    one: Wire, other: Wire
) -> None:
    for _ in range(3):
        name = f"ending-{next(_NUMBERS)}"
        maps = f"/api/v1/namespaces/{name}/configmaps"
        assert (await one.post("/api/v1/namespaces", {"metadata": {"name": name}})).code == 201
        assert (await other.post(maps, configmap("a", finalizers=["example.org/hold"]))).code == 201
        assert (await one.delete(f"/api/v1/namespaces/{name}")).code == 200
        assert (await other.get(f"/api/v1/namespaces/{name}")).body["status"]["phase"] == "Terminating"
        refused = await other.post(maps, configmap("b"))
        assert (refused.code, refused.body["reason"]) == (403, "Forbidden")
        async with other.watch(f"/api/v1/namespaces?watch=true&fieldSelector=metadata.name={name}") as events:
            await events.next()
            while (await other.merge(f"{maps}/a", {"metadata": {"finalizers": None}})).code == 409:
                pass
            while (await events.next())["type"] != "DELETED":
                pass
        assert (await other.post(maps, configmap("b"))).code == 404


async def test_owners_and_dependents_made_through_different_servers_are_collected_once(
    one: Wire, other: Wire, configmaps: str
) -> None:
    owner = (await one.post(configmaps, configmap("owner"))).body
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    for number in range(10):
        wire = (one, other)[number % 2]
        assert (await wire.post(configmaps, configmap(f"d{number}", ownerReferences=[reference]))).code == 201
    version = owner["metadata"]["resourceVersion"]
    async with other.watch(f"{configmaps}?watch=true&resourceVersion={version}") as events:
        await events.take(10)
        await other.delete(f"{configmaps}/owner")
        gone = await events.take(11)
    assert sorted(gone) == sorted([("DELETED", "owner"), *(("DELETED", f"d{number}") for number in range(10))])
