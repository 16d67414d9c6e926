"""Discovery: both forms tell the same, and words find what kubectl would find."""

from __future__ import annotations

import pytest
from aiohttp import web

from hortus.kube import errors
from hortus.kube.client import Client
from hortus.kube.discovery import Discovery, UnknownResource
from hortus.kube.objects import GroupVersionKind, Object, Resource

from .scripted import Script, failure, json, serving

DEPLOYMENT_VERBS = ["create", "get"]


def aggregated(plural: str, kind: str, *, namespaced: bool = True, **more: object) -> Object:
    scope = "Namespaced" if namespaced else "Cluster"
    return {"resource": plural, "responseKind": {"kind": kind}, "scope": scope, "verbs": DEPLOYMENT_VERBS, **more}


def group(name: str, **versions: list[Object]) -> Object:
    listed = [{"version": version, "resources": resources} for version, resources in versions.items()]
    return {"metadata": {"name": name}, "versions": listed}


PODS = aggregated("pods", "Pod", singularResource="pod", shortNames=["po"], categories=["all"])
PODS["subresources"] = [{"subresource": "status"}]
NAMESPACES = aggregated("namespaces", "Namespace", namespaced=False, shortNames=["ns"])
DEPLOYMENTS = aggregated("deployments", "Deployment", shortNames=["deploy"], categories=["all"])
EVENTS = aggregated("events", "Event", shortNames=["ev"])
NEW: dict[str, Object] = {
    "/api": {"kind": "APIGroupDiscoveryList", "items": [group("", v1=[PODS, NAMESPACES, EVENTS])]},
    "/apis": {
        "kind": "APIGroupDiscoveryList",
        "items": [group("apps", v1=[DEPLOYMENTS], v1beta1=[DEPLOYMENTS]), group("events.k8s.io", v1=[EVENTS])],
    },
}


def legacy(entry: Object) -> list[Object]:
    plural, kind = entry["resource"], entry["responseKind"]["kind"]
    shared = {"kind": kind, "namespaced": entry["scope"] == "Namespaced", "verbs": entry["verbs"]}
    names = {key: entry[key] for key in ("shortNames", "categories") if key in entry}
    singular = {"singularName": entry.get("singularResource", "")}
    below = [{"name": f"{plural}/{part['subresource']}", **shared} for part in entry.get("subresources", [])]
    return [{"name": plural, **shared, **names, **singular}, *below]


def resources(*entries: Object) -> Object:
    return {"kind": "APIResourceList", "resources": [part for entry in entries for part in legacy(entry)]}


OLD: dict[str, Object] = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/api/v1": resources(PODS, NAMESPACES, EVENTS),
    "/apis": {
        "kind": "APIGroupList",
        "groups": [
            {
                "name": "apps",
                "versions": [{"version": "v1beta1"}, {"version": "v1"}],
                "preferredVersion": {"version": "v1"},
            },
            {"name": "events.k8s.io", "versions": [{"version": "v1"}]},
        ],
    },
    "/apis/apps/v1": resources(DEPLOYMENTS),
    "/apis/apps/v1beta1": resources(DEPLOYMENTS),
    "/apis/events.k8s.io/v1": resources(EVENTS),
}


async def discover(documents: dict[str, Object]) -> Discovery:
    async def answer(request: web.Request) -> web.Response:
        found = documents.get(request.path)
        return json(found) if found else failure(503, "ServiceUnavailable", Retry_After="3600")

    async with serving(answer) as access, Client(access) as client:
        return await Discovery.look(client)


async def test_clusters_that_serve_the_same_hold_it_once() -> None:
    one, other = await discover(NEW), await discover(NEW)
    assert one is not other
    assert all(entry is same for entry, same in zip(one.served, other.served, strict=True))


@pytest.fixture(params=[NEW, OLD], ids=["aggregated", "legacy"])
async def discovery(request: pytest.FixtureRequest) -> Discovery:
    return await discover(request.param)


async def test_both_forms_tell_the_same() -> None:
    new, old = await discover(NEW), await discover(OLD)
    assert new.served == old.served
    assert new.failed == old.failed == ()


async def test_aggregated_discovery_takes_two_calls() -> None:
    script = Script({"kind": "APIGroupDiscoveryList", "items": []})
    async with serving(script) as access, Client(access) as client:
        await Discovery.look(client)
    assert sorted(script.targets) == ["/api", "/apis"]
    assert "as=APIGroupDiscoveryList" in script.requests[0].headers["Accept"]


@pytest.mark.parametrize(
    ("word", "resource"),
    [
        ("pods", Resource("", "v1", "pods", "Pod")),
        ("pod", Resource("", "v1", "pods", "Pod")),
        ("po", Resource("", "v1", "pods", "Pod")),
        ("Pod", Resource("", "v1", "pods", "Pod")),
        ("pods.v1", Resource("", "v1", "pods", "Pod")),
        ("ns", Resource("", "v1", "namespaces", "Namespace", namespaced=False)),
        ("events", Resource("", "v1", "events", "Event")),
        ("events.events.k8s.io", Resource("events.k8s.io", "v1", "events", "Event")),
        ("deploy", Resource("apps", "v1", "deployments", "Deployment")),
        ("deployments.apps", Resource("apps", "v1", "deployments", "Deployment")),
        ("deployments.v1beta1.apps", Resource("apps", "v1beta1", "deployments", "Deployment")),
    ],
)
async def test_words_find_resources(discovery: Discovery, word: str, resource: Resource) -> None:
    found = discovery.find(word)
    assert found.resource == resource
    assert found.verbs == {"create", "get"}


async def test_subresources_belong_to_their_resource(discovery: Discovery) -> None:
    assert discovery.find("pods").subresources == {"status"}


async def test_lists_and_categories(discovery: Discovery) -> None:
    assert [found.resource.plural for found in discovery.find_all("all")] == ["pods", "deployments"]
    assert [found.resource.plural for found in discovery.find_all("ns,all,po")] == ["namespaces", "pods", "deployments"]


async def test_manifests_find_their_resource(discovery: Discovery) -> None:
    assert discovery.kind(GroupVersionKind("apps", "v1", "Deployment")).resource.plural == "deployments"
    with pytest.raises(UnknownResource, match='no kind "Deployment" in version "apps/v2" is served'):
        discovery.kind(GroupVersionKind("apps", "v2", "Deployment"))


async def test_an_unknown_word_is_answered_with_close_ones(discovery: Discovery) -> None:
    with pytest.raises(UnknownResource, match=r'resource type "deploymnts"; did you mean deployments'):
        discovery.find("deploymnts")
    with pytest.raises(UnknownResource):
        discovery.find("pods.apps")


async def test_a_group_that_is_down_does_not_hide_the_others() -> None:
    found = await discover({path: document for path, document in OLD.items() if path != "/apis/events.k8s.io/v1"})
    assert found.failed == ("events.k8s.io/v1",)
    assert found.find("deploy")
    stale = {"metadata": {"name": "metrics.k8s.io"}, "versions": [{"version": "v1", "freshness": "Stale"}]}
    found = await discover({**NEW, "/apis": {"kind": "APIGroupDiscoveryList", "items": [stale]}})
    with pytest.raises(UnknownResource, match=r"nothing is known of metrics\.k8s\.io/v1"):
        found.find("nodes")


@pytest.mark.parametrize("document", [{"kind": "Table"}, {"kind": "APIGroupDiscoveryList", "items": [3]}, {}])
async def test_a_document_that_is_no_discovery_is_garbage(document: Object) -> None:
    with pytest.raises(errors.Garbage):
        await discover({"/api": {**document, "x": 1}, "/apis": NEW["/apis"]})


async def test_one_version_of_a_group_is_asked_again_by_one_call() -> None:
    known = await discover(NEW)
    bigger = aggregated("controllerrevisions", "ControllerRevision")
    script = Script(OLD["/apis/apps/v1"] | {"resources": [*legacy(bigger), *legacy(DEPLOYMENTS)]})
    async with serving(script) as access, Client(access) as client:
        found = await known.again(client, "apps", "v1")
    assert script.targets == ["/apis/apps/v1"]
    assert found.kind(GroupVersionKind("apps", "v1", "ControllerRevision")).resource.plural == "controllerrevisions"
    # In the place of what it replaces, so that the versions keep the server's order.
    places = [(entry.resource.group, entry.resource.version, entry.resource.plural) for entry in found.served]
    assert places == [
        ("", "v1", "pods"),
        ("", "v1", "namespaces"),
        ("", "v1", "events"),
        ("apps", "v1", "controllerrevisions"),
        ("apps", "v1", "deployments"),
        ("apps", "v1beta1", "deployments"),
        ("events.k8s.io", "v1", "events"),
    ]


async def test_a_version_that_is_served_no_more_loses_its_kinds() -> None:
    known = await discover(NEW)
    script = Script(failure(404, "NotFound"), failure(503, "ServiceUnavailable", Retry_After="3600"))
    async with serving(script) as access, Client(access) as client:
        gone = await known.again(client, "apps", "v1")
        unknown = await known.again(client, "apps", "v1")
    assert (gone.failed, unknown.failed) == ((), ("apps/v1",))
    for found in (gone, unknown):
        with pytest.raises(UnknownResource):
            found.kind(GroupVersionKind("apps", "v1", "Deployment"))
        assert found.kind(GroupVersionKind("apps", "v1beta1", "Deployment"))


@pytest.mark.parametrize(
    ("group", "version"),
    [
        ("..", "v1"),
        ("", ".."),
        ("", "v1/secrets?watch=1"),
        ("apps/../../api/v1/secrets", "v1"),
        ("apps", "v1\nX-Other: header"),
        ("apps", "%2e%2e"),
        ("apps", ""),
        ("\u00e9", "v1"),
    ],
)
async def test_a_version_that_no_server_has_leads_to_no_other_path(group: str, version: str) -> None:
    """They may come out of a reference that somebody wrote into an object."""
    known = await discover(NEW)
    script = Script()
    async with serving(script) as access, Client(access) as client:
        found = await known.again(client, group, version)
    assert script.targets == []
    assert found.served == known.served
