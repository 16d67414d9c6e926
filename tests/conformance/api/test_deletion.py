"""Delete: preconditions, finalizers, dependents, namespaces."""

from __future__ import annotations

from typing import Any

from tests.apiserver.wire import Answer, configmap, names
from tests.conformance.api.transcripts import RecordedWire


def _owned(name: str, owner: Answer, **reference: Any) -> dict[str, Any]:
    found = owner.body
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    references = [{**kind, "name": found["metadata"]["name"], "uid": found["metadata"]["uid"], **reference}]
    return configmap(name, ownerReferences=references)


async def test_a_deleted_object_is_gone(wire: RecordedWire, configmaps: str) -> None:
    made = await wire.post(configmaps, configmap("a"))
    gone = await wire.delete(f"{configmaps}/a")
    assert (gone.code, gone.body["status"]) == (200, "Success")
    assert gone.body["details"] == {"name": "a", "kind": "configmaps", "uid": made.body["metadata"]["uid"]}
    assert (await wire.get(f"{configmaps}/a")).code == 404
    again = await wire.delete(f"{configmaps}/a")
    assert (again.code, again.message) == (404, 'configmaps "a" not found')


async def test_a_deletion_holds_to_its_preconditions(wire: RecordedWire, configmaps: str) -> None:
    made = (await wire.post(configmaps, configmap("a"))).body["metadata"]
    for preconditions in ({"uid": "other"}, {"resourceVersion": "1"}):
        answer = await wire.delete(f"{configmaps}/a", {"preconditions": preconditions})
        assert (answer.code, answer.body["reason"]) == (409, "Conflict")
    matching = {"uid": made["uid"], "resourceVersion": made["resourceVersion"]}
    assert (await wire.delete(f"{configmaps}/a", {"preconditions": matching})).code == 200


async def test_finalizers_hold_an_object_until_the_last_is_taken(wire: RecordedWire, configmaps: str) -> None:
    await wire.post(configmaps, configmap("a", finalizers=["x.io/one", "x.io/two"]))
    marked = await wire.delete(f"{configmaps}/a")
    metadata = marked.body["metadata"]
    assert marked.code == 200
    assert metadata["deletionTimestamp"] and metadata["deletionGracePeriodSeconds"] == 0
    more = await wire.merge(f"{configmaps}/a", {"metadata": {"finalizers": ["x.io/one", "x.io/two", "x.io/three"]}})
    assert more.code == 422
    assert "no new finalizers can be added if the object is being deleted" in more.message
    again = await wire.delete(f"{configmaps}/a")
    assert again.body["metadata"] == metadata
    assert (await wire.merge(f"{configmaps}/a", {"metadata": {"finalizers": ["x.io/two"]}})).code == 200
    assert (await wire.get(f"{configmaps}/a")).code == 200
    assert (await wire.merge(f"{configmaps}/a", {"metadata": {"finalizers": None}})).code == 200
    assert (await wire.get(f"{configmaps}/a")).code == 404


async def test_the_deletion_mark_cannot_be_taken_back(wire: RecordedWire, configmaps: str) -> None:
    await wire.post(configmaps, configmap("a", finalizers=["x.io/one"]))
    await wire.delete(f"{configmaps}/a")
    kept = await wire.merge(f"{configmaps}/a", {"metadata": {"deletionTimestamp": None}, "data": {"x": "y"}})
    assert kept.body["metadata"]["deletionTimestamp"]
    await wire.merge(f"{configmaps}/a", {"metadata": {"finalizers": None}})


async def test_a_collection_is_deleted_by_selection(wire: RecordedWire, configmaps: str) -> None:
    for name, label in (("a", "x"), ("b", "y"), ("c", "x")):
        await wire.post(configmaps, configmap(name, labels={"l": label}))
    answer = await wire.delete(f"{configmaps}?labelSelector=l%3Dx")
    assert (answer.code, answer.body["kind"]) == (200, "ConfigMapList")
    assert names(await wire.get(configmaps)) == ["b"]


async def test_dependents_follow_their_owner(wire: RecordedWire, configmaps: str) -> None:
    owner = await wire.post(configmaps, configmap("owner"))
    child = await wire.post(configmaps, _owned("child", owner))
    await wire.post(configmaps, _owned("grandchild", child))
    await wire.delete(f"{configmaps}/owner")
    await wire.expect_gone(configmaps, "child", "grandchild")


async def test_a_dependent_of_two_stays_with_the_one_that_is_left(wire: RecordedWire, configmaps: str) -> None:
    first, second = await wire.post(configmaps, configmap("one")), await wire.post(configmaps, configmap("two"))
    child = _owned("child", first)
    child["metadata"]["ownerReferences"] += _owned("x", second)["metadata"]["ownerReferences"]
    made = await wire.post(configmaps, child)
    revision = made.body["metadata"]["resourceVersion"]
    await wire.delete(f"{configmaps}/one")
    async with wire.watch(
        f"{configmaps}?watch=true&resourceVersion={revision}&fieldSelector=metadata.name%3Dchild"
    ) as events:
        event = await events.next()
    assert event["type"] == "MODIFIED"
    assert [each["name"] for each in event["object"]["metadata"]["ownerReferences"]] == ["two"]


async def test_orphans_are_let_go(wire: RecordedWire, configmaps: str) -> None:
    owner = await wire.post(configmaps, configmap("owner"))
    await wire.post(configmaps, _owned("child", owner))
    await wire.delete(f"{configmaps}/owner", {"propagationPolicy": "Orphan"})
    await wire.expect_gone(configmaps, "owner")
    child = await wire.get(f"{configmaps}/child")
    assert (child.code, "ownerReferences" in child.body["metadata"]) == (200, False)


async def test_an_owner_deleted_in_the_foreground_waits_for_those_that_block(
    wire: RecordedWire, configmaps: str
) -> None:
    owner = await wire.post(configmaps, configmap("owner"))
    held = _owned("child", owner, blockOwnerDeletion=True)
    held["metadata"]["finalizers"] = ["x.io/hold"]
    await wire.post(configmaps, held)
    marked = await wire.delete(f"{configmaps}/owner", {"propagationPolicy": "Foreground"})
    assert marked.body["metadata"]["finalizers"] == ["foregroundDeletion"]
    revision = marked.body["metadata"]["resourceVersion"]
    async with wire.watch(f"{configmaps}?watch=true&resourceVersion={revision}") as events:
        assert await events.take(1) == [("MODIFIED", "child")]
        assert (await wire.get(f"{configmaps}/owner")).code == 200
        await wire.merge(f"{configmaps}/child", {"metadata": {"finalizers": None}})
        assert await events.take(2) == [("DELETED", "child"), ("DELETED", "owner")]


async def test_an_object_of_an_owner_that_never_was_goes(wire: RecordedWire, configmaps: str) -> None:
    owner = await wire.post(configmaps, configmap("owner"))
    await wire.post(configmaps, _owned("child", owner, uid="00000000-0000-0000-0000-000000000000"))
    await wire.expect_gone(configmaps, "child")


async def test_a_namespace_takes_everything_along(wire: RecordedWire, namespace: str) -> None:
    configmaps, path = f"/api/v1/namespaces/{namespace}/configmaps", f"/api/v1/namespaces/{namespace}"
    await wire.post(configmaps, configmap("a"))
    await wire.post(configmaps, configmap("held", finalizers=["x.io/hold"]))
    marked = await wire.delete(path)
    assert (marked.code, marked.body["status"]["phase"]) == (200, "Terminating")
    refused = await wire.post(configmaps, configmap("late"))
    assert (refused.code, refused.body["details"]["causes"][0]["reason"]) == (403, "NamespaceTerminating")
    assert refused.message == (
        f'configmaps "late" is forbidden: unable to create new content in namespace {namespace} because it is being '
        "terminated"
    )
    unnamed = await wire.post(configmaps, configmap("", generateName="late-"))
    assert (unnamed.code, unnamed.message) == (403, refused.message.replace('"late"', '"late-"', 1))
    await wire.expect_gone(configmaps, "a")
    with wire.unrecorded():
        # Its conditions come from a controller.
        assert (await wire.get(path)).code == 200
    await wire.merge(f"{configmaps}/held", {"metadata": {"finalizers": None}})
    await wire.expect_gone("/api/v1/namespaces", namespace)
    assert (await wire.post(configmaps, configmap("late"))).code == 404
