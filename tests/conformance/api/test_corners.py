"""Corners of the API that a scenario of their own makes sure of: dry runs, validation and limits of every verb."""

from __future__ import annotations

import contextlib

import pytest
from tests.apiserver.wire import configmap, names
from tests.conformance.api.test_patches import DEPLOYMENT
from tests.conformance.api.transcripts import RecordedWire

from hortus.kube.objects import Object


async def test_every_verb_can_be_tried(wire: RecordedWire, configmaps: str) -> None:
    await wire.post(configmaps, configmap("a"))
    path = f"{configmaps}/a?dryRun=All"
    assert (await wire.put(path, configmap("a", {"x": "1"}))).code == 200
    assert (await wire.merge(path, {"data": {"x": "1"}})).code == 200
    assert (await wire.strategic(path, {"data": {"x": "1"}})).code == 200
    assert (await wire.json_patch(path, [{"op": "remove", "path": "/data/a"}])).code == 200
    tried = await wire.send(
        "PATCH",
        f"{configmaps}/new?dryRun=All&fieldManager=m",
        configmap("new"),
        content_type="application/apply-patch+yaml",
    )
    assert tried.code == 201
    assert (await wire.delete(path)).code == 200
    assert (await wire.delete(f"{configmaps}?dryRun=All")).code == 200
    assert (await wire.get(f"{configmaps}/a")).body["data"] == {"a": "b"}
    assert names(await wire.get(configmaps)) == ["a"]


@pytest.mark.parametrize("validation", ["Strict", "Warn", "Ignore"])
async def test_patches_of_every_sort_are_validated(wire: RecordedWire, namespace: str, validation: str) -> None:
    collection = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    await wire.post(collection, DEPLOYMENT)
    path = f"{collection}/web?dryRun=All&fieldValidation={validation}"
    with contextlib.ExitStack() as stack:
        if validation == "Strict":
            # The refusal quotes the whole object, with what differs from run to run.
            stack.enter_context(wire.unrecorded())
        merged = await wire.merge(path, {"spec": {"colour": "red"}})
        stepped = await wire.json_patch(path, [{"op": "add", "path": "/spec/colour", "value": "red"}])
    for answer in (merged, stepped):
        assert answer.code == (422 if validation == "Strict" else 200)
        assert answer.code == 200 or answer.message.endswith('strict decoding error: unknown field "spec.colour"')
    assert (await wire.put(path, {**DEPLOYMENT, "colour": "red"})).code == (400 if validation == "Strict" else 200)


async def test_a_collection_is_deleted_in_the_manner_that_is_asked(wire: RecordedWire, configmaps: str) -> None:
    for name in ("a", "b"):
        await wire.post(configmaps, configmap(name))
    answer = await wire.delete(configmaps, {"propagationPolicy": "Background", "preconditions": {"uid": "other"}})
    assert answer.code in (200, 409)
    assert (await wire.delete(configmaps, {"propagationPolicy": "Sideways"})).code == 422
    both = {"propagationPolicy": "Orphan", "orphanDependents": True}
    assert (await wire.delete(f"{configmaps}/a", both)).code == 422


async def test_applied_nulls_and_empty_lists(wire: RecordedWire, namespace: str) -> None:
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/web"
    assert (await wire.apply(path, DEPLOYMENT)).code == 201
    cleared = {**DEPLOYMENT, "spec": {**DEPLOYMENT["spec"], "replicas": None}}
    assert (await wire.apply(path, cleared)).code == 200
    twice = {"name": "one", "image": "x"}
    template = {**DEPLOYMENT["spec"]["template"], "spec": {"containers": [twice, twice]}}
    assert (await wire.apply(path, {**DEPLOYMENT, "spec": {**DEPLOYMENT["spec"], "template": template}})).code == 500


async def test_status_and_spec_have_appliers_of_their_own(wire: RecordedWire, namespace: str) -> None:
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/web"
    await wire.apply(path, DEPLOYMENT, manager="one")
    status = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "status": {"replicas": 2}}
    assert (await wire.apply(f"{path}/status", status, manager="two")).code == 200
    assert (await wire.apply(path, DEPLOYMENT, manager="one")).code == 200
    assert (await wire.merge(f"{path}/scale", {"spec": {"replicas": 5}})).code == 200
    assert (await wire.apply(path, DEPLOYMENT, manager="one")).code == 409


ODD_BINDINGS = [
    {"metadata": []},
    {"metadata": "x"},
    {"metadata": {"name": ["a"]}},
    {"metadata": {"name": "a"}, "target": []},
    {"metadata": {"name": "a"}, "target": {"name": 7}},
]


async def test_bindings_of_which_a_part_has_the_wrong_type(wire: RecordedWire, namespace: str) -> None:
    for body in ODD_BINDINGS:
        answer = await wire.post(f"/api/v1/namespaces/{namespace}/bindings", body)
        assert answer.code == 400, body


@pytest.mark.parametrize("body", [{"apiVersion": ["v1"]}, {"kind": {"a": "b"}}, {"apiVersion": 1, "kind": True}])
async def test_types_that_are_no_text(wire: RecordedWire, configmaps: str, body: Object) -> None:
    named = {"metadata": {"name": "a"}, **body}
    answer = await wire.post(configmaps, named)
    assert answer.code == 400
    assert "json: cannot unmarshal" in answer.message
    nothing = await wire.post(configmaps, {"apiVersion": None, "kind": None, "metadata": {"name": "b"}})
    assert nothing.code == 201
