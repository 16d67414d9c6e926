"""Custom resources of several versions between which a webhook converts."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from tests.apiserver.admission.scripted import Webhook, patch, webhook
from tests.apiserver.wire import Wire, names

from hortus.kube.objects import Object

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_NUMBERS = itertools.count()


def _version(name: str, field: str, *, storage: bool) -> Object:
    spec = {"type": "object", "properties": {field: {"type": "string"}, "note": {"type": "string", "default": name}}}
    status = {"type": "object", "properties": {"phase": {"type": "string"}}}
    return {
        "name": name,
        "served": True,
        "storage": storage,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}},
        "subresources": {"status": {}},
        "selectableFields": [{"jsonPath": f".spec.{field}"}],
    }


def _convert(request: Object) -> Object:
    """v1 says `size`, v2 says `length`."""
    wanted = request["desiredAPIVersion"]
    there, gone = ("length", "size") if wanted.endswith("v2") else ("size", "length")
    converted = []
    for obj in request["objects"]:
        spec = dict(obj.get("spec", {}))
        if gone in spec:
            spec[there] = spec.pop(gone)
        spec["unknown"] = "pruned"
        converted.append({**obj, "apiVersion": wanted, "spec": spec})
    return {"convertedObjects": converted, "result": {"status": "Success"}}


class Beds:
    """A CRD with v1 and v2, stored as v1, and where its objects are."""

    def __init__(self, domain: str, namespace: str) -> None:
        self.domain = domain
        self.namespace = namespace

    def path(self, version: str) -> str:
        return f"/apis/{self.domain}/{version}/namespaces/{self.namespace}/beds"

    def bed(self, version: str, name: str, **spec: str) -> Object:
        return {"apiVersion": f"{self.domain}/{version}", "kind": "Bed", "metadata": {"name": name}, "spec": spec}

    def crd(self, client: Object) -> Object:
        return {
            "metadata": {"name": f"beds.{self.domain}"},
            "spec": {
                "group": self.domain,
                "scope": "Namespaced",
                "names": {"plural": "beds", "kind": "Bed"},
                "versions": [_version("v1", "size", storage=True), _version("v2", "length", storage=False)],
                "conversion": {
                    "strategy": "Webhook",
                    "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]},
                },
            },
        }


@pytest.fixture
async def beds(wire: Wire, namespace: str, hook: Webhook) -> Beds:
    found = Beds(f"c{next(_NUMBERS)}.example.com", namespace)
    made = await wire.post(CRDS, found.crd(hook.client("/convert", _convert)))
    assert made.code == 201, made.body
    return found


async def test_objects_are_read_and_written_in_each_version(wire: Wire, beds: Beds, hook: Webhook) -> None:
    made = await wire.post(beds.path("v2"), beds.bed("v2", "a", length="long"))
    assert (made.code, made.body["spec"]) == (201, {"length": "long", "note": "v2"})
    one, two = [(await wire.get(f"{beds.path(version)}/a")).body for version in ("v1", "v2")]
    assert (one["apiVersion"], one["spec"]) == (f"{beds.domain}/v1", {"size": "long", "note": "v2"})
    assert two == made.body
    assert one["metadata"] == two["metadata"]
    asked = hook.requests("/convert")
    assert [(each["desiredAPIVersion"], len(each["objects"])) for each in asked] == [
        (f"{beds.domain}/v1", 1),
        (f"{beds.domain}/v2", 1),
    ]
    assert hook.asked[0][1]["apiVersion"] == "apiextensions.k8s.io/v1"


async def test_every_sort_of_write_goes_through_the_webhook(wire: Wire, beds: Beds) -> None:
    path = f"{beds.path('v2')}/a"
    await wire.post(beds.path("v1"), beds.bed("v1", "a", size="s"))
    assert (await wire.merge(path, {"spec": {"length": "m"}})).body["spec"]["length"] == "m"
    replaced = (await wire.get(path)).body
    replaced["spec"]["length"] = "l"
    assert (await wire.put(path, replaced)).body["spec"]["length"] == "l"
    applied = await wire.apply(path, beds.bed("v2", "a", length="xl"), force=True)
    assert applied.body["spec"]["length"] == "xl"
    status = await wire.merge(f"{path}/status", {"status": {"phase": "dug"}})
    assert (status.body["spec"]["length"], status.body["status"]) == ("xl", {"phase": "dug"})
    dry = await wire.merge(f"{path}?dryRun=All", {"spec": {"length": "none"}})
    assert dry.body["spec"]["length"] == "none"
    assert (await wire.get(f"{beds.path('v1')}/a")).body["spec"]["size"] == "xl"
    held = await wire.merge(path, {"metadata": {"finalizers": ["a.example/b"]}})
    assert held.code == 200
    assert (await wire.delete(path)).body["spec"]["length"] == "xl"
    assert (await wire.merge(path, {"metadata": {"finalizers": None}})).code == 200
    assert (await wire.get(path)).code == 404


async def test_a_list_is_one_call_and_selects_by_converted_fields(wire: Wire, beds: Beds, hook: Webhook) -> None:
    for number in range(5):
        await wire.post(beds.path("v1"), beds.bed("v1", f"b{number}", size=str(number % 2)))
    listed = (await wire.get(beds.path("v2"))).body
    assert [item["spec"]["length"] for item in listed["items"]] == ["0", "1", "0", "1", "0"]
    assert [len(each["objects"]) for each in hook.requests("/convert")] == [5]
    assert names(await wire.get(f"{beds.path('v2')}?fieldSelector=spec.length%3D1")) == ["b1", "b3"]
    page = (await wire.get(f"{beds.path('v2')}?limit=2")).body
    assert [item["apiVersion"] for item in page["items"]] == [f"{beds.domain}/v2"] * 2


async def test_a_watch_shows_its_version(wire: Wire, beds: Beds) -> None:
    await wire.post(beds.path("v1"), beds.bed("v1", "a", size="s"))
    async with wire.watch(f"{beds.path('v2')}?watch=true") as events:
        await wire.merge(f"{beds.path('v1')}/a", {"spec": {"size": "m"}})
        await wire.delete(f"{beds.path('v1')}/a")
        seen = [await events.next() for _ in range(3)]
    assert [(event["type"], event["object"]["spec"]["length"]) for event in seen] == [
        ("ADDED", "s"),
        ("MODIFIED", "m"),
        ("DELETED", "m"),
    ]
    assert {event["object"]["apiVersion"] for event in seen} == {f"{beds.domain}/v2"}


def _changed(change: Callable[[Object], None]) -> Callable[[Object], Object]:
    def answer(request: Object) -> Object:
        found = _convert(request)
        for obj in found["convertedObjects"]:
            obj["metadata"] = dict(obj["metadata"])
            change(obj)
        return found

    return answer


_LIES: dict[str, tuple[Any, str]] = {
    "name": (_changed(lambda obj: obj["metadata"].update(name="x")), "must have the same name: a != x"),
    "uid": (_changed(lambda obj: obj["metadata"].update(uid="x")), "must have the same UID: "),
    "namespace": (_changed(lambda obj: obj["metadata"].pop("namespace")), "must have the same namespace: "),
    "kind": (_changed(lambda obj: obj.update(kind="Pod")), "invalid kind (expected Bed, received Pod)"),
    "version": (_changed(lambda obj: obj.update(apiVersion="v9")), "invalid groupVersion (expected "),
    "labels": (
        _changed(lambda obj: obj["metadata"].update(labels={"a": 1})),
        "metadata.labels must be a map of strings",
    ),
    "fewer": (
        lambda request: {"convertedObjects": [], "result": {"status": "Success"}},
        "returned 0 objects, expected 1",
    ),
    "failure": (lambda request: {"result": {"status": "Failure", "message": "cannot"}}, "Kind=Bed failed: cannot"),
    "silence": (lambda request: {}, "failed: response.result.status was '', not 'Success'"),
    "other": (lambda request: {"uid": "x"}, 'failed: expected response.uid="'),
}


@pytest.mark.parametrize("lie", _LIES)
async def test_a_lying_webhook_is_not_believed(wire: Wire, beds: Beds, hook: Webhook, lie: str) -> None:
    answer, words = _LIES[lie]
    await wire.post(beds.path("v1"), beds.bed("v1", "a", size="s"))
    hook.answers["/convert"] = answer
    for found in (await wire.get(f"{beds.path('v2')}/a"), await wire.get(beds.path("v2"))):
        assert (found.code, found.body["kind"]) == (500, "Status")
        assert found.message.startswith(f"conversion webhook for {beds.domain}/v1, Kind=Bed ")
        assert words in found.message
    async with wire.watch(f"{beds.path('v2')}?watch=true") as events:
        assert (await events.next())["type"] == "ERROR"
        assert await events.ended()
    assert (await wire.get(f"{beds.path('v1')}/a")).code == 200


async def test_of_metadata_only_labels_and_annotations_may_change(wire: Wire, beds: Beds, hook: Webhook) -> None:
    def change(obj: Object) -> None:
        obj["metadata"].update(labels={"by": "webhook"}, finalizers=["x.example/y"], resourceVersion="1")

    made = (await wire.post(beds.path("v1"), beds.bed("v1", "a", size="s"))).body["metadata"]
    hook.answers["/convert"] = _changed(change)
    assert (await wire.get(f"{beds.path('v2')}/a")).body["metadata"] == {**made, "labels": {"by": "webhook"}}


async def test_a_webhook_that_is_gone_stops_only_other_versions(wire: Wire, beds: Beds, hook: Webhook) -> None:
    gone = {"url": "https://127.0.0.1:1/convert", "caBundle": hook.ca}
    path = f"{CRDS}/beds.{beds.domain}"
    await wire.merge(path, {"spec": {"conversion": {"webhook": {"clientConfig": gone}}}})
    answer = await wire.post(beds.path("v2"), beds.bed("v2", "a", length="l"))
    assert (answer.code, 'failed: Post "https://127.0.0.1:1/convert?timeout=30s": dial tcp' in answer.message) == (
        500,
        True,
    )
    assert (await wire.post(beds.path("v1"), beds.bed("v1", "a", size="s"))).code == 201
    assert (await wire.delete(path)).code == 200


async def test_objects_of_a_former_storage_version_are_converted(wire: Wire, beds: Beds) -> None:
    await wire.post(beds.path("v1"), beds.bed("v1", "old", size="s"))
    versions = [_version("v1", "size", storage=False), _version("v2", "length", storage=True)]
    assert (await wire.merge(f"{CRDS}/beds.{beds.domain}", {"spec": {"versions": versions}})).code == 200
    await wire.post(beds.path("v2"), beds.bed("v2", "young", length="m"))
    for version, field in (("v1", "size"), ("v2", "length")):
        items = (await wire.get(beds.path(version))).body["items"]
        assert [item["spec"][field] for item in items] == ["s", "m"]
    assert (await wire.delete(f"{CRDS}/beds.{beds.domain}")).code == 200
    while (await wire.get(f"{CRDS}/beds.{beds.domain}")).code != 404:
        pass


async def test_a_judge_of_one_version_sees_objects_of_another_in_it(
    wire: Wire, beds: Beds, namespace: str, hook: Webhook
) -> None:
    client = hook.client("/m", lambda request: patch({"op": "add", "path": "/spec/size", "value": "judged"}))
    rules = [
        {"operations": ["CREATE"], "apiGroups": [beds.domain], "apiVersions": ["v1"], "resources": ["beds"]},
    ]
    body = {
        "metadata": {"name": f"{namespace}-a"},
        "webhooks": [webhook("m.example.com", client, namespace, rules=rules)],
    }
    path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
    assert (await wire.post(path, body)).code == 201
    made = await wire.post(beds.path("v2"), beds.bed("v2", "a", length="l"))
    assert made.body["spec"]["length"] == "judged"
    [asked] = hook.requests("/m")
    assert (asked["kind"]["version"], asked["requestKind"]["version"]) == ("v1", "v2")
    assert (asked["object"]["apiVersion"], asked["object"]["spec"]["size"]) == (f"{beds.domain}/v1", "l")
