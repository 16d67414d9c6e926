"""PATCH in its four forms, status and scale."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.apiserver.wire import configmap
from tests.conformance.api.transcripts import RecordedWire

DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "one", "image": "a"}, {"name": "two", "image": "b"}]},
        },
    },
}


def _deployments(namespace: str) -> str:
    return f"/apis/apps/v1/namespaces/{namespace}/deployments"


async def test_a_merge_patch_sets_and_removes(wire: RecordedWire, configmaps: str) -> None:
    await wire.post(configmaps, configmap("a", {"a": "1", "b": "2"}))
    patched = await wire.merge(f"{configmaps}/a", {"data": {"a": None, "c": "3"}})
    assert (patched.code, patched.body["data"]) == (200, {"b": "2", "c": "3"})


async def test_a_json_patch_goes_step_by_step(wire: RecordedWire, configmaps: str) -> None:
    await wire.post(configmaps, configmap("a", {"a": "1"}))
    steps = [
        {"op": "test", "path": "/data/a", "value": "1"},
        {"op": "add", "path": "/metadata/annotations", "value": {}},
        {"op": "add", "path": "/metadata/annotations/x.io~1y", "value": "2"},
        {"op": "remove", "path": "/data/a"},
    ]
    patched = (await wire.json_patch(f"{configmaps}/a", steps)).body
    assert patched["metadata"]["annotations"] == {"x.io/y": "2"}
    assert "data" not in patched


async def test_a_json_patch_that_fails_changes_nothing(wire: RecordedWire, configmaps: str) -> None:
    made = (await wire.post(configmaps, configmap("a", {"a": "1"}))).body
    steps = [{"op": "remove", "path": "/data/a"}, {"op": "test", "path": "/data/a", "value": "1"}]
    failed = await wire.json_patch(f"{configmaps}/a", steps)
    assert (failed.code, failed.body["reason"]) == (422, "Invalid")
    assert failed.message == "the server rejected our request due to an error in our request"
    assert (await wire.get(f"{configmaps}/a")).body == made


async def test_a_strategic_merge_patch_merges_lists_by_key(wire: RecordedWire, namespace: str) -> None:
    await wire.post(_deployments(namespace), DEPLOYMENT)
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "two", "image": "c"}]}}}}
    patched = await wire.strategic(f"{_deployments(namespace)}/web", patch)
    containers = patched.body["spec"]["template"]["spec"]["containers"]
    assert [(each["name"], each["image"]) for each in containers] == [("one", "a"), ("two", "c")]
    assert patched.body["metadata"]["generation"] == 2


async def test_a_patch_without_effect_writes_nothing(wire: RecordedWire, configmaps: str) -> None:
    made = (await wire.post(configmaps, configmap("a", {"a": "1"}))).body
    assert (await wire.merge(f"{configmaps}/a", {"data": {"a": "1", "b": None}})).body == made
    assert (await wire.json_patch(f"{configmaps}/a", [])).body == made
    assert (await wire.strategic(f"{configmaps}/a", {"data": {"a": "1"}})).body == made


async def test_concurrent_patches_all_take_effect(wire: RecordedWire, configmaps: str) -> None:
    await wire.post(configmaps, configmap("a", {}))
    with wire.unrecorded():
        answers = await asyncio.gather(
            *(wire.merge(f"{configmaps}/a", {"data": {f"k{number}": "x"}}) for number in range(8))
        )
    assert [answer.code for answer in answers] == [200] * 8
    assert len((await wire.get(f"{configmaps}/a")).body["data"]) == 8


async def test_a_patch_that_names_a_revision_holds_to_it(wire: RecordedWire, configmaps: str) -> None:
    made = (await wire.post(configmaps, configmap("a"))).body
    await wire.merge(f"{configmaps}/a", {"data": {"x": "y"}})
    stale = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}, "data": {"z": "z"}}
    assert (await wire.merge(f"{configmaps}/a", stale)).code == 409


async def test_a_patch_cannot_rename(wire: RecordedWire, configmaps: str) -> None:
    await wire.post(configmaps, configmap("a"))
    answer = await wire.merge(f"{configmaps}/a", {"metadata": {"name": "b"}})
    assert (answer.code, answer.message) == (
        400,
        "the name of the object (b) does not match the name on the URL (a)",
    )
    same = (await wire.merge(f"{configmaps}/a", {"metadata": {"uid": None, "creationTimestamp": None}})).body
    assert same["metadata"]["uid"] and same["metadata"]["creationTimestamp"]


async def test_patches_of_what_is_not_there_and_of_unknown_sort(wire: RecordedWire, configmaps: str) -> None:
    assert (await wire.merge(f"{configmaps}/a", {"data": {}})).code == 404
    await wire.post(configmaps, configmap("a"))
    unknown = await wire.send("PATCH", f"{configmaps}/a", {"data": {}}, content_type="application/json")
    assert unknown.code == 415
    assert unknown.message == "415: Unsupported Media Type"
    assert (await wire.merge(f"{configmaps}/a", b"[")).code == 400
    assert (await wire.merge(f"{configmaps}/a?force=true", {"data": {}})).code == 422


async def test_apply_creates_then_owns(wire: RecordedWire, configmaps: str) -> None:
    made = await wire.apply(f"{configmaps}/a", configmap("a", {"x": "1"}), manager="one")
    assert made.code == 201
    (entry,) = made.body["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"], entry["fieldsV1"]) == ("one", "Apply", {"f:data": {"f:x": {}}})
    again = await wire.apply(f"{configmaps}/a", configmap("a", {"x": "1"}), manager="one")
    assert (again.code, again.body) == (200, made.body)


async def test_apply_takes_away_what_is_no_longer_applied(wire: RecordedWire, configmaps: str) -> None:
    await wire.apply(f"{configmaps}/a", configmap("a", {"x": "1", "y": "2"}), manager="one")
    await wire.apply(f"{configmaps}/a", configmap("a", {"z": "3"}), manager="two")
    left = await wire.apply(f"{configmaps}/a", configmap("a", {"x": "1"}), manager="one")
    assert left.body["data"] == {"x": "1", "z": "3"}


async def test_appliers_conflict_until_one_insists(wire: RecordedWire, configmaps: str) -> None:
    await wire.apply(f"{configmaps}/a", configmap("a", {"x": "1"}), manager="one")
    refused = await wire.apply(f"{configmaps}/a", configmap("a", {"x": "2"}), manager="two")
    assert (refused.code, refused.message) == (409, 'Apply failed with 1 conflict: conflict with "one": .data.x')
    assert refused.body["details"]["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".data.x"}
    ]
    forced = await wire.apply(f"{configmaps}/a", configmap("a", {"x": "2"}), manager="two", force=True)
    assert (forced.code, forced.body["data"]) == (200, {"x": "2"})


async def test_apply_needs_a_manager_and_no_managed_fields(wire: RecordedWire, configmaps: str) -> None:
    nobody = await wire.send("PATCH", f"{configmaps}/a", configmap("a"), content_type="application/apply-patch+yaml")
    assert nobody.code == 422
    assert nobody.message == (
        'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch'
    )
    claimed = await wire.apply(f"{configmaps}/a", configmap("a", managedFields=[{"manager": "x"}]))
    assert (claimed.code, claimed.message) == (400, "metadata.managedFields must be nil")


async def test_status_and_spec_are_written_apart(wire: RecordedWire, namespace: str) -> None:
    path = f"{_deployments(namespace)}/web"
    made = (await wire.post(_deployments(namespace), {**DEPLOYMENT, "status": {"replicas": 9}})).body
    assert "replicas" not in made["status"]
    assert made["metadata"]["generation"] == 1
    both = {"spec": {"replicas": 7}, "status": {"replicas": 3}}
    status = (await wire.merge(f"{path}/status", both)).body
    assert (status["spec"]["replicas"], status["status"]["replicas"]) == (2, 3)
    assert status["metadata"]["generation"] == 1
    spec = (await wire.merge(path, {"spec": {"replicas": 7}, "status": {"replicas": 5}})).body
    assert (spec["spec"]["replicas"], spec["status"]["replicas"]) == (7, 3)
    assert spec["metadata"]["generation"] == 2
    managers = {(each["manager"], each.get("subresource", "")) for each in spec["metadata"]["managedFields"]}
    assert ("Python", "status") in managers or any(subresource == "status" for _, subresource in managers)
    assert (await wire.get(f"{path}/status")).body == spec


async def test_scale_shows_and_sets_replicas(wire: RecordedWire, namespace: str) -> None:
    path = f"{_deployments(namespace)}/web"
    await wire.post(_deployments(namespace), DEPLOYMENT)
    scale = (await wire.get(f"{path}/scale")).body
    assert (scale["kind"], scale["apiVersion"], scale["spec"]) == ("Scale", "autoscaling/v1", {"replicas": 2})
    assert scale["status"]["selector"] == "app=web"
    scale["spec"]["replicas"] = 5
    assert (await wire.put(f"{path}/scale", scale)).body["spec"] == {"replicas": 5}
    assert (await wire.put(f"{path}/scale", scale)).code == 409
    assert (await wire.merge(f"{path}/scale", {"spec": {"replicas": 1}})).code == 200
    found = (await wire.get(path)).body
    assert (found["spec"]["replicas"], found["metadata"]["generation"]) == (1, 3)
    assert (await wire.merge(f"{path}/scale", {"spec": {"replicas": -1}})).code == 422
