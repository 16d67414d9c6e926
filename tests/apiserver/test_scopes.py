"""The scope that a path names is authorized and used: nobody leaves a namespace by the way a URL is written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from tests.apiserver.wire import Answer, Wire

RBAC = "/apis/rbac.authorization.k8s.io/v1"
NO_SUCH = "the server could not find the requested resource"
MALLORY = {"Impersonate-User": "mallory"}
_PATCHES = ("application/merge-patch+json", "application/json-patch+json", "application/apply-patch+yaml")


class Served(NamedTuple):
    """A resource as discovery lists it."""

    base: str
    plural: str
    namespaced: bool


def _crd(group: str, plural: str, scope: str) -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"plural": plural, "kind": plural.capitalize()},
            "versions": [{**version, "subresources": {"status": {}}}],
        },
    }


async def _admin_of(wire: Wire, namespace: str, user: str) -> None:
    """May do everything in one namespace."""
    rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
    path = f"{RBAC}/namespaces/{namespace}"
    assert (await wire.post(f"{path}/roles", {"metadata": {"name": "all"}, "rules": rules})).code in (201, 409)
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "all"}
    binding = {"metadata": {"name": "all"}, "subjects": [subject], "roleRef": role}
    assert (await wire.post(f"{path}/rolebindings", binding)).code in (201, 409)


async def _served(wire: Wire) -> list[Served]:
    found = []
    groups = [f"/apis/{each['preferredVersion']['groupVersion']}" for each in (await wire.get("/apis")).body["groups"]]
    for base in ["/api/v1", *groups]:
        listed = (await wire.get(base)).body["resources"]
        found += [Served(base, each["name"], each["namespaced"]) for each in listed if "/" not in each["name"]]
    return found


def _requests(base: str, place: str, plural: str, name: str) -> Iterator[tuple[str, str, str]]:
    """Method, path and content type: each verb, on the collection, the object and its subresources, in both forms."""
    collection = f"{place}/{plural}"
    for form in (f"{base}{collection}", f"{base}/watch{collection}"):
        for path in (form, f"{form}/{name}", f"{form}/{name}/status", f"{form}/{name}/finalize", f"{form}?watch=true"):
            for method in ("GET", "HEAD", "POST", "PUT", "DELETE"):
                yield method, path, "application/json"
            for media in _PATCHES:
                yield "PATCH", path + ("?fieldManager=m&force=true" if "?" not in path else ""), media


async def _send(wire: Wire, method: str, path: str, media: str, headers: dict[str, str]) -> Answer:
    body = None if method in ("GET", "HEAD") else {"metadata": {"name": "victim", "labels": {"a": "b"}}}
    return await wire.send(method, path, body, content_type="" if body is None else media, headers=headers)


async def test_nothing_of_the_whole_cluster_is_reached_through_a_namespace(wire: Wire, namespace: str) -> None:
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    for crd in (_crd("wide.example.com", "things", "Cluster"), _crd("wide.example.com", "namespaces", "Cluster")):
        assert (await wire.post(crds, crd)).code == 201
    assert (await wire.post("/api/v1/namespaces", {"metadata": {"name": "victim"}})).code == 201
    await _admin_of(wire, namespace, "mallory")
    kinds = [each for each in await _served(wire) if not each.namespaced]
    assert {"namespaces", "nodes", "clusterroles", "things", "logicalclusters"} <= {each.plural for each in kinds}
    before = (await wire.get("/api/v1/namespaces/victim")).body
    wrong = []
    for kind in kinds:
        for name in ("victim", namespace):
            for method, path, media in _requests(kind.base, f"/namespaces/{namespace}", kind.plural, name):
                for headers in (MALLORY, {}):
                    answer = await _send(wire, method, path, media, headers)
                    if answer.code != 404 or (method != "HEAD" and answer.message != NO_SUCH):
                        wrong.append((method, path, answer.code))
    assert wrong == []
    assert (await wire.get("/api/v1/namespaces/victim")).body == before


async def test_a_cluster_scoped_custom_kind_called_namespaces_has_no_objects_in_a_namespace(wire: Wire) -> None:
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert (await wire.post(crds, _crd("alone.example.com", "namespaces", "Cluster"))).code == 201
    await _admin_of(wire, "default", "mallory")
    path = "/apis/alone.example.com/v1/namespaces"
    made = {"apiVersion": "alone.example.com/v1", "kind": "Namespaces", "metadata": {"name": "default"}}
    assert (await wire.post(path, made)).code == 201
    assert (await wire.get(f"{path}/default", headers=MALLORY)).code == 404
    assert (await wire.delete(f"{path}/default", headers=MALLORY)).code == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "HEAD"])
async def test_the_form_for_watches_is_for_reading_alone(wire: Wire, namespace: str, method: str) -> None:
    for path in (f"/api/v1/watch/namespaces/{namespace}/secrets", f"/api/v1/watch/namespaces/{namespace}"):
        media = "application/merge-patch+json" if method == "PATCH" else "application/json"
        assert (await _send(wire, method, path, media, {})).code == 405
    assert (await wire.get(f"/api/v1/namespaces/{namespace}")).code == 200


async def _secrets(wire: Wire, namespace: str, *names: str) -> str:
    path = f"/api/v1/namespaces/{namespace}/secrets"
    for name in names:
        assert (await wire.post(path, {"metadata": {"name": name}, "stringData": {"a": name}})).code == 201
    return path


async def _named_reader(wire: Wire, namespace: str, verbs: list[str], name: str) -> dict[str, str]:
    """The headers of somebody who may do this to one Secret."""
    rules = [{"apiGroups": [""], "resources": ["secrets"], "verbs": verbs, "resourceNames": [name]}]
    path, user = f"{RBAC}/namespaces/{namespace}", f"reader-of-{namespace}"
    assert (await wire.post(f"{path}/roles", {"metadata": {"name": "one"}, "rules": rules})).code == 201
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "one"}
    binding = {"metadata": {"name": "one"}, "subjects": [subject], "roleRef": role}
    assert (await wire.post(f"{path}/rolebindings", binding)).code == 201
    return {"Impersonate-User": user}


@pytest.mark.parametrize("selector", ["", "?fieldSelector=metadata.name%3Dopen"])
async def test_a_watch_of_one_object_shows_that_object_alone(wire: Wire, namespace: str, selector: str) -> None:
    secrets = await _secrets(wire, namespace, "hidden", "open")
    reader = await _named_reader(wire, namespace, ["watch"], "open")
    path = f"/api/v1/watch/namespaces/{namespace}/secrets/open{selector}"
    async with wire.watch(path, headers=reader) as events:
        assert await events.take(1) == [("ADDED", "open")]
        assert (await wire.merge(f"{secrets}/hidden", {"stringData": {"a": "new"}})).code == 200
        assert (await wire.merge(f"{secrets}/open", {"stringData": {"a": "new"}})).code == 200
        assert await events.take(1) == [("MODIFIED", "open")]


async def test_one_name_is_watched_in_all_namespaces_by_a_selector_alone(wire: Wire, namespace: str) -> None:
    await _secrets(wire, namespace, "hidden", "open")
    async with wire.watch("/api/v1/secrets?watch=1&fieldSelector=metadata.name%3Dopen") as events:
        assert await events.take(1) == [("ADDED", "open")]
    refused = await wire.get("/api/v1/watch/secrets/open")
    assert (refused.code, refused.message) == (404, NO_SUCH)


@pytest.mark.parametrize("selector", ["metadata.name%3Dhidden", "metadata.name!%3Dopen", "type%3DOpaque"])
async def test_a_watch_of_one_object_takes_no_selector_for_others(wire: Wire, namespace: str, selector: str) -> None:
    await _secrets(wire, namespace, "hidden", "open")
    reader = await _named_reader(wire, namespace, ["watch"], "open")
    path = f"/api/v1/watch/namespaces/{namespace}/secrets/open?fieldSelector={selector}"
    refused = await wire.get(path, headers=reader)
    assert (refused.code, refused.message) == (400, "fieldSelector metadata.name doesn't match requested name")


async def test_a_right_to_one_name_covers_a_list_of_that_name_and_no_collection(wire: Wire, namespace: str) -> None:
    secrets = await _secrets(wire, namespace, "hidden", "open")
    reader = await _named_reader(wire, namespace, ["list", "watch", "create", "deletecollection"], "open")
    listed = await wire.get(f"{secrets}?fieldSelector=metadata.name%3Dopen", headers=reader)
    assert [each["metadata"]["name"] for each in listed.body["items"]] == ["open"]
    for path in (secrets, f"{secrets}?watch=1", f"{secrets}?fieldSelector=metadata.name%3Dhidden"):
        assert (await wire.get(path, headers=reader)).code == 403
    watch = f"/api/v1/watch/namespaces/{namespace}/secrets"
    for path in (watch, f"{watch}?fieldSelector=metadata.name%3Dopen", "/api/v1/watch/secrets/open"):
        assert (await wire.get(path, headers=reader)).code == 403
    assert (await wire.post(secrets, {"metadata": {"name": "open"}}, headers=reader)).code == 403
    for query in ("", "?fieldSelector=metadata.name%3Dopen"):
        assert (await wire.delete(secrets + query, headers=reader)).code == 403


async def test_an_administrator_of_a_namespace_watches_that_namespace_alone(wire: Wire, namespace: str) -> None:
    await _admin_of(wire, namespace, "mallory")
    path = "/api/v1/namespaces"
    async with wire.watch(f"/api/v1/watch/namespaces/{namespace}", headers=MALLORY) as events:
        assert await events.take(1) == [("ADDED", namespace)]
        assert (await wire.merge(f"{path}/default", {"metadata": {"labels": {namespace: "a"}}})).code == 200
        assert (await wire.merge(f"{path}/{namespace}", {"metadata": {"labels": {"a": "b"}}})).code == 200
        assert await events.take(1) == [("MODIFIED", namespace)]
    for refused in (path, f"{path}?watch=1", "/api/v1/watch/namespaces", "/api/v1/watch/namespaces/kube-public"):
        assert (await wire.get(refused, headers=MALLORY)).code == 403
