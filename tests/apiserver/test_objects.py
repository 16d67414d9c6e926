"""Create, read, update and delete as a client sees them."""

from __future__ import annotations

from .conftest import Wire, configmap

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


async def test_what_is_created_is_read_back_unchanged(wire: Wire) -> None:
    created = await wire.post(CONFIGMAPS, configmap("a", {"x": "y"}))
    assert created.code == 201
    assert created.body["data"] == {"x": "y"}
    assert created.body["metadata"]["namespace"] == "default"
    read = await wire.get(f"{CONFIGMAPS}/a")
    assert (read.code, read.body) == (200, created.body)


async def test_a_second_object_of_one_name_is_refused(wire: Wire) -> None:
    await wire.post(CONFIGMAPS, configmap("a"))
    again = await wire.post(CONFIGMAPS, configmap("a"))
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


async def test_an_update_of_a_stale_object_is_a_conflict(wire: Wire) -> None:
    first = (await wire.post(CONFIGMAPS, configmap("a"))).body
    second = await wire.put(f"{CONFIGMAPS}/a", {**first, "data": {"a": "c"}})
    assert second.code == 200
    stale = await wire.put(f"{CONFIGMAPS}/a", {**first, "data": {"a": "d"}})
    assert (stale.code, stale.body["reason"]) == (409, "Conflict")


async def test_logical_clusters_do_not_see_each_other(wire: Wire) -> None:
    other = wire.cluster("shoot--a--b")
    await other.post("/api/v1/namespaces", {"metadata": {"name": "default"}})
    await other.post(CONFIGMAPS, configmap("there"))
    here = await wire.get(CONFIGMAPS)
    assert here.body["items"] == []
    assert [item["metadata"]["name"] for item in (await other.get(CONFIGMAPS)).body["items"]] == ["there"]
