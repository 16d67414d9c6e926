"""Create, update and what they refuse."""

from __future__ import annotations

import asyncio

import pytest
from tests.apiserver.wire import configmap
from tests.conformance.api.transcripts import RecordedWire


async def test_what_is_created_is_read_back_unchanged(wire: RecordedWire, configmaps: str, namespace: str) -> None:
    created = await wire.post(configmaps, configmap("a", {"x": "y"}))
    assert created.code == 201
    metadata = created.body["metadata"]
    assert created.body["data"] == {"x": "y"}
    assert (metadata["name"], metadata["namespace"]) == ("a", namespace)
    assert metadata["uid"] and metadata["creationTimestamp"] and int(metadata["resourceVersion"]) > 0
    assert "generation" not in metadata
    read = await wire.get(f"{configmaps}/a")
    assert (read.code, read.body) == (200, created.body)


async def test_a_second_object_of_one_name_is_refused(wire: RecordedWire, configmaps: str) -> None:
    await wire.post(configmaps, configmap("a"))
    again = await wire.post(configmaps, configmap("a"))
    assert again.code == 409
    assert again.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'configmaps "a" already exists',
        "reason": "AlreadyExists",
        "details": {"name": "a", "kind": "configmaps"},
        "code": 409,
    }


async def test_generated_names_begin_as_asked_and_differ(wire: RecordedWire, configmaps: str) -> None:
    body = configmap("", generateName="pre-")
    made = [(await wire.post(configmaps, body)).body["metadata"]["name"] for _ in range(3)]
    assert len(set(made)) == 3
    assert all(name.startswith("pre-") and len(name) == 9 for name in made)


async def test_an_object_without_any_name_is_invalid(wire: RecordedWire, configmaps: str) -> None:
    answer = await wire.post(configmaps, configmap(""))
    assert answer.code == 422
    assert answer.message == (
        'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required'
    )
    assert answer.body["details"] == {
        "kind": "ConfigMap",
        "causes": [
            {
                "reason": "FieldValueRequired",
                "message": "Required value: name or generateName is required",
                "field": "metadata.name",
            }
        ],
    }


@pytest.mark.parametrize("name", ["A", "a_b", "-a", "a.", "x" * 254, "ä", "a/b"])
async def test_names_that_are_no_dns_names_are_invalid(wire: RecordedWire, configmaps: str, name: str) -> None:
    answer = await wire.post(configmaps, configmap(name))
    assert (answer.code, answer.body["reason"]) == (422, "Invalid")
    assert answer.body["details"]["causes"][0]["field"] == "metadata.name"


async def test_creation_in_a_namespace_that_is_not_there(wire: RecordedWire) -> None:
    answer = await wire.post("/api/v1/namespaces/nowhere/configmaps", configmap("a"))
    assert (answer.code, answer.message) == (404, 'namespaces "nowhere" not found')


async def test_the_namespace_of_body_and_path_must_agree(wire: RecordedWire, configmaps: str) -> None:
    answer = await wire.post(configmaps, configmap("a", namespace="default"))
    assert answer.code == 400
    assert answer.message == ("the namespace of the provided object does not match the namespace sent on the request")


async def test_a_body_of_another_kind_is_refused(wire: RecordedWire, configmaps: str) -> None:
    other_version = await wire.post(configmaps, {**configmap("a"), "apiVersion": "v2"})
    assert (other_version.code, other_version.message) == (
        400,
        'ConfigMap in version "v2" cannot be handled as a ConfigMap: no kind "ConfigMap" is registered for version '
        '"v2" in scheme "pkg/runtime/scheme.go:110"',
    )
    other_kind = await wire.post(configmaps, {**configmap("a", {}), "kind": "Secret"})
    assert (other_kind.code, other_kind.message) == (
        400,
        'Secret in version "v1" cannot be handled as a ConfigMap: converting (v1.Secret) to (core.ConfigMap): unknown '
        "conversion",
    )


async def test_a_resource_version_cannot_be_chosen(wire: RecordedWire, configmaps: str) -> None:
    answer = await wire.post(configmaps, configmap("a", resourceVersion="5"))
    assert (answer.code, answer.message) == (500, "resourceVersion should not be set on objects to be created")


async def test_what_the_server_says_of_an_object_cannot_be_chosen(wire: RecordedWire, configmaps: str) -> None:
    sent = configmap(
        "a", uid="mine", creationTimestamp="2001-01-01T00:00:00Z", deletionTimestamp="2001-01-01T00:00:00Z"
    )
    metadata = (await wire.post(configmaps, sent)).body["metadata"]
    assert metadata["uid"] != "mine"
    assert not metadata["creationTimestamp"].startswith("2001")
    assert "deletionTimestamp" not in metadata


async def test_an_update_of_a_stale_object_is_a_conflict(wire: RecordedWire, configmaps: str) -> None:
    first = (await wire.post(configmaps, configmap("a"))).body
    second = await wire.put(f"{configmaps}/a", {**first, "data": {"a": "c"}})
    assert second.code == 200
    assert int(second.body["metadata"]["resourceVersion"]) > int(first["metadata"]["resourceVersion"])
    stale = await wire.put(f"{configmaps}/a", {**first, "data": {"a": "d"}})
    assert (stale.code, stale.body["reason"]) == (409, "Conflict")
    assert stale.message == (
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes '
        "to the latest version and try again"
    )
    assert stale.body["details"] == {"name": "a", "kind": "configmaps"}


async def test_an_update_without_a_revision_wins_over_any(wire: RecordedWire, configmaps: str) -> None:
    await wire.post(configmaps, configmap("a"))
    assert (await wire.put(f"{configmaps}/a", configmap("a", {"b": "c"}))).body["data"] == {"b": "c"}


async def test_an_update_that_changes_nothing_writes_nothing(wire: RecordedWire, configmaps: str) -> None:
    first = (await wire.post(configmaps, configmap("a"))).body
    again = await wire.put(f"{configmaps}/a", first)
    assert (again.code, again.body) == (200, first)


async def test_an_update_must_name_the_object_of_its_path(wire: RecordedWire, configmaps: str) -> None:
    await wire.post(configmaps, configmap("a"))
    answer = await wire.put(f"{configmaps}/a", configmap("b"))
    assert (answer.code, answer.message) == (
        400,
        "the name of the object (b) does not match the name on the URL (a)",
    )


async def test_an_update_of_what_is_not_there(wire: RecordedWire, configmaps: str) -> None:
    answer = await wire.put(f"{configmaps}/a", configmap("a"))
    assert (answer.code, answer.message) == (404, 'configmaps "a" not found')


async def test_an_update_for_another_incarnation_is_a_conflict(wire: RecordedWire, configmaps: str) -> None:
    await wire.post(configmaps, configmap("a"))
    answer = await wire.put(f"{configmaps}/a", configmap("a", {"x": "y"}, uid="00000000-0000-0000-0000-000000000000"))
    assert (answer.code, answer.body["reason"]) == (409, "Conflict")
    assert "Precondition failed: UID in precondition: 00000000" in answer.message


async def test_of_many_writers_with_one_revision_exactly_one_wins(wire: RecordedWire, configmaps: str) -> None:
    first = (await wire.post(configmaps, configmap("a"))).body
    with wire.unrecorded():
        answers = await asyncio.gather(
            *(wire.put(f"{configmaps}/a", {**first, "data": {"writer": str(number)}}) for number in range(8))
        )
    assert sorted(answer.code for answer in answers) == [200] + [409] * 7


async def test_a_dry_run_says_what_would_be_and_leaves_no_trace(wire: RecordedWire, configmaps: str) -> None:
    made = await wire.post(f"{configmaps}?dryRun=All", configmap("a"))
    assert made.code == 201
    assert "resourceVersion" not in made.body["metadata"]
    assert (await wire.get(f"{configmaps}/a")).code == 404
    stored = (await wire.post(configmaps, configmap("a"))).body
    changed = await wire.put(f"{configmaps}/a?dryRun=All", configmap("a", {"x": "y"}))
    assert (changed.code, changed.body["data"]) == (200, {"x": "y"})
    assert (await wire.post(f"{configmaps}?dryRun=All", configmap("a"))).code == 409
    assert (await wire.delete(f"{configmaps}/a?dryRun=All")).code == 200
    assert (await wire.get(f"{configmaps}/a")).body == stored
    wrong = await wire.post(f"{configmaps}?dryRun=some", configmap("b"))
    assert wrong.code == 422
    assert 'dryRun: Unsupported value: ["some"]: supported values: "All"' in wrong.message


async def test_unknown_and_repeated_fields_are_refused_warned_of_or_ignored(
    wire: RecordedWire, configmaps: str
) -> None:
    body = b'{"metadata":{"name":"NAME"},"data":{"a":"1","a":"2"},"colour":"red"}'
    strict = await wire.post(f"{configmaps}?fieldValidation=Strict", body.replace(b"NAME", b"s"))
    assert strict.code == 400
    assert 'strict decoding error: duplicate field "data.a"' in strict.message
    warned = await wire.post(f"{configmaps}?fieldValidation=Warn", body.replace(b"NAME", b"w"))
    assert warned.code == 201
    assert sorted(warned.headers.getall("Warning")) == [
        '299 - "duplicate field \\"data.a\\""',
        '299 - "unknown field \\"colour\\""',
    ]
    assert "colour" not in warned.body
    ignored = await wire.post(f"{configmaps}?fieldValidation=Ignore", body.replace(b"NAME", b"i"))
    assert (ignored.code, "Warning" in ignored.headers) == (201, False)
    unknown = await wire.post(f"{configmaps}?fieldValidation=Strict", {**configmap("u"), "colour": 1})
    assert unknown.message == (
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "colour"'
    )


async def test_wrong_types_in_metadata_are_bad_requests(wire: RecordedWire, configmaps: str) -> None:
    for metadata in ({"labels": {"a": 1}}, {"labels": []}, {"annotations": "x"}, {"finalizers": [1]}, {"name": 5}):
        answer = await wire.post(configmaps, {"metadata": {"name": "a", **metadata}})
        assert (answer.code, answer.body["reason"]) == (400, "BadRequest"), metadata


async def test_labels_and_annotations_have_rules(wire: RecordedWire, configmaps: str) -> None:
    for metadata, field in (
        ({"labels": {"a": "no spaces"}}, "metadata.labels"),
        ({"labels": {"-": "x"}}, "metadata.labels"),
        ({"annotations": {"a b": "x"}}, "metadata.annotations"),
        ({"annotations": {"a": "x" * (256 * 1024)}}, "metadata.annotations"),
        ({"finalizers": ["a b"]}, "metadata.finalizers"),
        (
            {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "x"}]},
            "metadata.ownerReferences.uid",
        ),
    ):
        answer = await wire.post(configmaps, configmap("a", **metadata))
        assert answer.code == 422
        assert field in [cause["field"] for cause in answer.body["details"]["causes"]], answer.body


async def test_every_write_says_who_owns_its_fields(wire: RecordedWire, configmaps: str) -> None:
    made = await wire.send("POST", configmaps, configmap("a"), headers={"User-Agent": "shears/1.0 (linux)"})
    (entry,) = made.body["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"], entry["apiVersion"]) == ("shears", "Update", "v1")
    assert entry["fieldsV1"] == {"f:data": {".": {}, "f:a": {}}}
    changed = await wire.merge(f"{configmaps}/a?fieldManager=saw", {"data": {"b": "c"}})
    assert {entry["manager"]: entry["fieldsV1"] for entry in changed.body["metadata"]["managedFields"]} == {
        "shears": {"f:data": {".": {}, "f:a": {}}},
        "saw": {"f:data": {"f:b": {}}},
    }


@pytest.mark.parametrize("finalizer", ["a", "kubernetes", "orphan", "x.io/a", "a/b/c", "x.io/", "/a"])
async def test_finalizers_have_a_domain(wire: RecordedWire, configmaps: str, finalizer: str) -> None:
    made = await wire.post(configmaps, configmap("held", finalizers=[finalizer]))
    assert made.code == (201 if finalizer in ("kubernetes", "orphan", "x.io/a") else 422)
    await wire.post(configmaps, configmap("other"))
    with wire.unrecorded():  # the original looks at an update's metadata twice, and lists each cause twice
        merged = await wire.merge(f"{configmaps}/other", {"metadata": {"finalizers": [finalizer]}})
    assert merged.code == made.code - (made.code == 201)
    for name in ("held", "other"):
        await wire.merge(f"{configmaps}/{name}", {"metadata": {"finalizers": None}})


@pytest.mark.parametrize("version", ["a/b/c", "a/", "/", "/v1", ""])
async def test_owners_have_a_version(wire: RecordedWire, configmaps: str, version: str) -> None:
    owner = {"apiVersion": version, "kind": "ConfigMap", "name": "x", "uid": "x"}
    answer = await wire.post(f"{configmaps}?dryRun=All", configmap("owned", ownerReferences=[owner]))
    assert answer.code == (201 if version == "/v1" else 422)
