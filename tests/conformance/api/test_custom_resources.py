"""CustomResourceDefinitions and the objects they define."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apiserver.wire import Answer, names
from tests.conformance.api.transcripts import RecordedWire

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["size"],
            "properties": {
                "size": {"type": "integer", "minimum": 1},
                "colour": {"type": "string", "default": "green"},
                "replicas": {"type": "integer"},
            },
        },
        "status": {"type": "object", "properties": {"phase": {"type": "string"}, "replicas": {"type": "integer"}}},
    },
}


def crd(domain: str, **changes: Any) -> dict[str, Any]:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": SCHEMA},
        "subresources": {
            "status": {},
            "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
        },
        "additionalPrinterColumns": [
            {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ],
        "selectableFields": [{"jsonPath": ".spec.colour"}],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"beds.{domain}"},
        "spec": {
            "group": domain,
            "scope": "Namespaced",
            "names": {"plural": "beds", "kind": "Bed", "shortNames": ["bd"]},
            "versions": [version | changes.pop("version", {})],
            **changes,
        },
    }


def bed(group: str, name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": f"{group}/v1", "kind": "Bed", "metadata": {"name": name}, "spec": {"size": 1, **spec}}


async def define(wire: RecordedWire, definition: dict[str, Any]) -> None:
    """Make a CRD and wait until its kind is served, which takes some servers a moment."""
    spec = definition["spec"]
    name = f"{spec['names']['plural']}.{spec['group']}"
    with wire.unrecorded():
        made = await wire.post(CRDS, definition)
        assert made.code == 201, made.message
        conditions = await _judged(wire, name, made.body["metadata"]["resourceVersion"])
        assert conditions == {"NamesAccepted": "True", "Established": "True"}
        for version in spec["versions"]:
            await until(wire, f"/apis/{spec['group']}/{version['name']}/{spec['names']['plural']}", 200)
    await wire.get(f"{CRDS}/{name}")


async def _judged(wire: RecordedWire, name: str, revision: str) -> dict[str, str]:
    """The conditions of a definition once its names have been looked at, by a watch from its creation on."""
    with wire.unrecorded():
        conditions = _conditions((await wire.get(f"{CRDS}/{name}")).body)
        query = f"watch=true&resourceVersion={revision}&fieldSelector=metadata.name%3D{name}"
        async with wire.watch(f"{CRDS}?{query}") as seen:
            while "Established" not in conditions or conditions == {"NamesAccepted": "True", "Established": "False"}:
                conditions = _conditions((await seen.next())["object"])
    return conditions


async def until(wire: RecordedWire, path: str, code: int) -> Answer:
    """Ask until the answer has this code."""
    return await wire.until(lambda: wire.get(path), lambda answer: answer.code == code)


def _conditions(definition: dict[str, Any]) -> dict[str, str]:
    return {each["type"]: each["status"] for each in definition["status"].get("conditions") or ()}


@pytest.fixture
def domain(slug: str) -> str:
    """The name of an API group for the scenario."""
    return f"g{slug}.garden.example"


@pytest.fixture
async def group(wire: RecordedWire, domain: str) -> str:
    """An API group with a kind Bed."""
    await define(wire, crd(domain))
    return domain


@pytest.fixture
def beds(group: str, namespace: str) -> str:
    return f"/apis/{group}/v1/namespaces/{namespace}/beds"


@pytest.mark.allows("Paths that are not in their plain form", "/[45]/body", "/[45]/headers/Content-Type")
async def test_a_defined_kind_is_discovered_and_served(wire: RecordedWire, group: str, beds: str) -> None:
    resources = (await wire.get(f"/apis/{group}/v1")).body["resources"]
    assert [each["name"] for each in resources] == ["beds", "beds/status", "beds/scale"]
    assert resources[0]["shortNames"] == ["bd"]
    made = await wire.post(beds, bed(group, "a"))
    assert made.code == 201, made.body
    assert made.body["spec"] == {"size": 1, "colour": "green"}
    assert made.body["metadata"]["generation"] == 1
    listed = await wire.get(beds)
    assert (listed.body["kind"], listed.body["items"]) == ("BedList", [made.body])
    assert (await wire.get(f"/apis/{group}/v1/beds/a")).code == 404
    assert (await wire.get(f"/apis/{group}/v2/beds")).code == 404


async def test_objects_are_pruned_defaulted_and_validated(wire: RecordedWire, group: str, beds: str) -> None:
    unknown = await wire.post(beds, bed(group, "a", shape="round"))
    assert (unknown.code, unknown.body["spec"]) == (201, {"size": 1, "colour": "green"})
    assert unknown.headers["Warning"] == '299 - "unknown field \\"spec.shape\\""'
    strict = await wire.post(f"{beds}?fieldValidation=Strict", bed(group, "b", shape="round"))
    assert (strict.code, strict.message) == (
        400,
        'Bed in version "v1" cannot be handled as a Bed: strict decoding error: unknown field "spec.shape"',
    )
    small = await wire.post(beds, bed(group, "c", size=0))
    assert (small.code, small.message) == (
        422,
        f'Bed.{group} "c" is invalid: spec.size: Invalid value: 0: spec.size in body should be greater than or equal '
        "to 1",
    )
    assert small.body["details"]["kind"] == "Bed"
    missing = await wire.post(beds, {**bed(group, "d"), "spec": {}})
    assert missing.message == f'Bed.{group} "d" is invalid: spec.size: Required value'
    nameless = await wire.post(beds, {"metadata": {"name": "e"}, "spec": {"size": 1}})
    assert nameless.code == 400


async def test_updates_need_a_revision(wire: RecordedWire, group: str, beds: str) -> None:
    made = (await wire.post(beds, bed(group, "a"))).body
    answer = await wire.put(f"{beds}/a", bed(group, "a", size=2))
    assert (answer.code, answer.message) == (
        422,
        f'beds.{group} "a" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update',
    )
    made["spec"]["size"] = 2
    changed = (await wire.put(f"{beds}/a", made)).body
    assert (changed["spec"]["size"], changed["metadata"]["generation"]) == (2, 2)


@pytest.mark.allows("Labels and annotations sent to the status", "*/managedFields/*/f:metadata")
async def test_status_leaves_spec_and_labels_alone(wire: RecordedWire, group: str, beds: str) -> None:
    made = (await wire.post(beds, {**bed(group, "a"), "status": {"phase": "early"}})).body
    assert "status" not in made
    patch = {"metadata": {"labels": {"x": "y"}}, "spec": {"size": 5}, "status": {"phase": "grown"}}
    patched = (await wire.merge(f"{beds}/a/status", patch)).body
    assert (patched["spec"]["size"], patched["status"]) == (1, {"phase": "grown"})
    assert "labels" not in patched["metadata"]
    assert patched["metadata"]["generation"] == 1
    kept = (await wire.merge(f"{beds}/a", {"spec": {"size": 5}, "status": None})).body
    assert (kept["spec"]["size"], kept["status"], kept["metadata"]["generation"]) == (5, {"phase": "grown"}, 2)


async def test_a_status_is_put_by_name_alone_and_never_on_another_object(
    wire: RecordedWire, group: str, beds: str
) -> None:
    made = (await wire.post(beds, bed(group, "a"))).body["metadata"]
    named = {"name": "a", "resourceVersion": made["resourceVersion"]}
    body = {**bed(group, "a", size=9), "metadata": named, "status": {"phase": "grown"}}
    grown = (await wire.put(f"{beds}/a/status", body)).body
    kept = ("uid", "creationTimestamp", "generation")
    assert [grown["metadata"][key] for key in kept] == [made[key] for key in kept]
    assert (grown["spec"]["size"], grown["status"]) == (1, {"phase": "grown"})
    named = {"name": "a", "resourceVersion": grown["metadata"]["resourceVersion"]}
    with wire.unrecorded():
        # Its message names the uid of the stored object.
        other = await wire.put(f"{beds}/a/status", {**body, "metadata": {**named, "uid": "other"}})
    assert (other.code, other.body["reason"]) == (409, "Conflict")
    assert "UID in precondition: other" in other.message
    stale = await wire.put(f"{beds}/a/status", {**body, "metadata": {**named, "resourceVersion": "1"}})
    assert (stale.code, stale.body["reason"]) == (409, "Conflict")
    reset = (await wire.put(f"{beds}/a/status", {**body, "metadata": {**named, "managedFields": []}})).body
    assert [sorted(entry["fieldsV1"]) for entry in reset["metadata"]["managedFields"]] == [["f:spec"], ["f:status"]]


async def test_scale_of_a_defined_kind(wire: RecordedWire, group: str, beds: str) -> None:
    await wire.post(beds, bed(group, "a", replicas=2))
    assert (await wire.get(f"{beds}/a/scale")).body["spec"] == {"replicas": 2}
    assert (await wire.merge(f"{beds}/a/scale", {"spec": {"replicas": 4}})).code == 200
    assert (await wire.get(f"{beds}/a")).body["spec"]["replicas"] == 4


async def test_printer_columns_and_selectable_fields(wire: RecordedWire, group: str, beds: str) -> None:
    await wire.post(beds, bed(group, "a", size=3))
    await wire.post(beds, bed(group, "b", colour="red"))
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    table = (await wire.get(beds, accept=accept)).body
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Size", "Age"]
    assert [row["cells"][:2] for row in table["rows"]] == [["a", 3], ["b", 1]]
    assert names(await wire.get(f"{beds}?fieldSelector=spec.colour%3Dred")) == ["b"]
    assert (await wire.get(f"{beds}?fieldSelector=spec.size%3D1")).code == 400


async def test_strategic_merge_is_for_built_in_kinds_only(wire: RecordedWire, group: str, beds: str) -> None:
    await wire.post(beds, bed(group, "a"))
    answer = await wire.strategic(f"{beds}/a", {"spec": {"size": 2}})
    assert answer.code == 415
    applied = await wire.apply(f"{beds}/a", bed(group, "a", size=7), force=True)
    assert (applied.code, applied.body["spec"]["size"]) == (200, 7)


async def test_apply_of_an_undeclared_field_is_an_error(wire: RecordedWire, group: str, beds: str) -> None:
    answer = await wire.apply(f"{beds}/a", bed(group, "a", shape="round"))
    assert answer.code == 500
    assert "field not declared in schema" in answer.message


async def test_two_versions_show_one_object(wire: RecordedWire, namespace: str, domain: str) -> None:
    group, definition = domain, crd(domain)
    old = definition["spec"]["versions"][0]
    definition["spec"]["versions"] = [{**old, "name": "v1alpha1", "storage": False}, old]
    await define(wire, definition)
    path = f"namespaces/{namespace}/beds"
    await wire.post(f"/apis/{group}/v1alpha1/{path}", {**bed(group, "a"), "apiVersion": f"{group}/v1alpha1"})
    new = (await wire.get(f"/apis/{group}/v1/{path}/a")).body
    assert new["apiVersion"] == f"{group}/v1"
    older = (await wire.get(f"/apis/{group}/v1alpha1/{path}")).body
    assert [item["apiVersion"] for item in older["items"]] == [f"{group}/v1alpha1"]
    assert older["items"][0]["spec"] == new["spec"]


async def test_a_default_that_comes_later_is_seen_on_read(wire: RecordedWire, group: str, beds: str) -> None:
    await wire.post(beds, bed(group, "a"))
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {}}}}
    schema["properties"]["spec"]["properties"] = {  # type: ignore[index]
        **SCHEMA["properties"]["spec"]["properties"],
        "soil": {"type": "string", "default": "loam"},
    }
    patch = [{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema", "value": schema}]
    changed = await wire.json_patch(f"{CRDS}/beds.{group}", patch)
    assert changed.code == 200, changed.body
    read = await wire.until(lambda: wire.get(f"{beds}/a"), lambda answer: "soil" in answer.body["spec"])
    assert read.body["spec"]["soil"] == "loam"
    # The original has to fill its cache of the changed kind first, and answers 429 until then.
    listed = await wire.until(lambda: wire.get(beds), lambda answer: answer.code == 200)
    assert listed.body["items"][0]["spec"]["soil"] == "loam"


@pytest.mark.allows("Paths that are not in their plain form", "*/body", "*/headers/Content-Type")
async def test_names_that_are_taken_are_not_accepted_until_they_are_free(wire: RecordedWire, group: str) -> None:
    second = crd(group)
    second["metadata"]["name"] = f"bedsteads.{group}"
    second["spec"]["names"] = {"plural": "bedsteads", "kind": "Bed"}
    with wire.unrecorded():
        revision = (await wire.post(CRDS, second)).body["metadata"]["resourceVersion"]
        await _judged(wire, f"bedsteads.{group}", revision)
    made = (await wire.get(f"{CRDS}/bedsteads.{group}")).body
    conditions = {each["type"]: (each["status"], each["reason"]) for each in made["status"]["conditions"]}
    assert conditions == {"NamesAccepted": ("False", "ListKindConflict"), "Established": ("False", "NotAccepted")}
    assert (await wire.get(f"/apis/{group}/v1/bedsteads")).code == 404
    revision = made["metadata"]["resourceVersion"]
    query = f"watch=true&resourceVersion={revision}&fieldSelector=metadata.name%3Dbedsteads.{group}"
    with wire.unrecorded():
        async with wire.watch(f"{CRDS}?{query}") as events:
            await wire.delete(f"{CRDS}/beds.{group}")
            while "False" in _conditions((await events.next())["object"]).values():
                pass
    await until(wire, f"/apis/{group}/v1/bedsteads", 200)


@pytest.mark.allows("Paths that are not in their plain form", "*/body", "*/headers/Content-Type")
async def test_a_definition_takes_its_objects_along(wire: RecordedWire, group: str, beds: str) -> None:
    held = bed(group, "held")
    held["metadata"]["finalizers"] = ["x.io/hold"]
    await wire.post(beds, held)
    await wire.post(beds, bed(group, "a"))
    with wire.unrecorded():
        revision = (await wire.delete(f"{CRDS}/beds.{group}")).body["metadata"]["resourceVersion"]
    late = await wire.until(
        lambda: wire.post(f"{beds}?dryRun=All", bed(group, "late")), lambda answer: answer.code != 201
    )
    assert (late.code, late.message) == (
        403,
        f'beds.{group} "late" is forbidden: create not allowed while custom resource definition is terminating',
    )
    query = f"watch=true&resourceVersion={revision}&fieldSelector=metadata.name%3Dbeds.{group}"
    with wire.unrecorded():
        async with wire.watch(f"{CRDS}?{query}") as events:
            terminating = await events.next()
            assert "Terminating" in [each["type"] for each in terminating["object"]["status"]["conditions"]]
            await wire.expect_gone(beds, "a")
            assert names(await wire.get(beds)) == ["held"]
            await wire.merge(f"{beds}/held", {"metadata": {"finalizers": None}})
            while (await events.next())["type"] != "DELETED":
                pass
    await until(wire, beds, 404)


_OTHER_WORDS = pytest.mark.allows(
    "What is wrong with the versions of a CRD", "/0/body/message", "/0/body/details/causes*"
)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"group": "other.example"}, "metadata.name"),
        ({"scope": "Everywhere"}, "spec.scope"),
        ({"versions": []}, "spec.versions"),
        ({"names": {"plural": "beds"}}, "spec.names.kind"),
        pytest.param({"version": {"schema": None}}, "spec.versions[0].schema.openAPIV3Schema", marks=_OTHER_WORDS),
        pytest.param({"version": {"storage": False}}, "spec.versions", marks=_OTHER_WORDS),
    ],
)
async def test_definitions_that_make_no_kind_are_invalid(
    wire: RecordedWire, domain: str, change: dict[str, Any], field: str
) -> None:
    answer = await wire.post(CRDS, crd(domain, **change))
    assert answer.code == 422, answer.body
    assert field in [cause["field"] for cause in answer.body["details"]["causes"]], answer.body


async def test_a_definition_cannot_change_what_its_objects_are(wire: RecordedWire, group: str) -> None:
    path = f"{CRDS}/beds.{group}"
    for patch, field in (
        ({"spec": {"scope": "Cluster"}}, "spec.scope"),
        ({"spec": {"names": {"kind": "Cot"}}}, "spec.names.kind"),
    ):
        answer = await wire.merge(path, patch)
        assert answer.code == 422, answer.body
        assert field in [cause["field"] for cause in answer.body["details"]["causes"]]
