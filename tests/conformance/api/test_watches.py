"""Watch: what is seen, in which order, from where, until when."""

from __future__ import annotations

import asyncio

import pytest
from tests.apiserver.wire import configmap
from tests.conformance.api.conftest import EVERY_STORE
from tests.conformance.api.transcripts import RecordedWire

pytestmark = EVERY_STORE


async def _revision(wire: RecordedWire, configmaps: str) -> str:
    return str((await wire.get(configmaps)).body["metadata"]["resourceVersion"])


async def test_changes_arrive_in_order(wire: RecordedWire, configmaps: str) -> None:
    start = await _revision(wire, configmaps)
    async with wire.watch(f"{configmaps}?watch=true&resourceVersion={start}") as events:
        made = (await wire.post(configmaps, configmap("a"))).body
        changed = (await wire.merge(f"{configmaps}/a", {"data": {"x": "y"}})).body
        await wire.delete(f"{configmaps}/a")
        added, modified, deleted = [await events.next() for _ in range(3)]
    assert added == {"type": "ADDED", "object": made}
    assert modified == {"type": "MODIFIED", "object": changed}
    assert deleted["type"] == "DELETED"
    last = deleted["object"]
    assert last["data"] == changed["data"]
    assert int(last["metadata"]["resourceVersion"]) > int(changed["metadata"]["resourceVersion"])


async def test_a_watch_resumes_where_another_ended(wire: RecordedWire, configmaps: str) -> None:
    first = (await wire.post(configmaps, configmap("a"))).body
    await wire.post(configmaps, configmap("b"))
    await wire.delete(f"{configmaps}/a")
    seen = first["metadata"]["resourceVersion"]
    async with wire.watch(f"{configmaps}?watch=1&resourceVersion={seen}") as events:
        assert await events.take(2) == [("ADDED", "b"), ("DELETED", "a")]


async def test_a_watch_from_nowhere_begins_with_the_present(wire: RecordedWire, configmaps: str) -> None:
    await wire.post(configmaps, configmap("a"))
    for query in ("watch=true", "watch=true&resourceVersion=0"):
        async with wire.watch(f"{configmaps}?{query}") as events:
            assert await events.take(1) == [("ADDED", "a")]


async def test_a_streaming_list_says_where_it_ends(wire: RecordedWire, configmaps: str) -> None:
    await wire.post(configmaps, configmap("a"))
    await wire.post(configmaps, configmap("b"))
    query = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    async with wire.watch(f"{configmaps}?{query}") as events:
        assert await events.take(2) == [("ADDED", "a"), ("ADDED", "b")]
        bookmark = await events.next()
        assert bookmark["type"] == "BOOKMARK"
        assert bookmark["object"]["kind"] == "ConfigMap"
        assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        await wire.post(configmaps, configmap("c"))
        assert await events.take(1) == [("ADDED", "c")]
    refused = await wire.get(f"{configmaps}?watch=true&sendInitialEvents=true")
    assert refused.code == 422


async def test_objects_enter_and_leave_a_selection(wire: RecordedWire, configmaps: str) -> None:
    start = await _revision(wire, configmaps)
    async with wire.watch(f"{configmaps}?watch=true&resourceVersion={start}&labelSelector=x%3D1") as events:
        await wire.post(configmaps, configmap("a"))
        await wire.merge(f"{configmaps}/a", {"metadata": {"labels": {"x": "1"}}})
        await wire.merge(f"{configmaps}/a", {"data": {"k": "v"}})
        left = (await wire.merge(f"{configmaps}/a", {"metadata": {"labels": {"x": "2"}}})).body
        await wire.delete(f"{configmaps}/a")
        await wire.post(configmaps, configmap("b", labels={"x": "1"}))
        added, modified, deleted, other = [await events.next() for _ in range(4)]
    assert (added["type"], modified["type"], deleted["type"]) == ("ADDED", "MODIFIED", "DELETED")
    assert deleted["object"]["metadata"]["labels"] == {"x": "1"}
    assert deleted["object"]["metadata"]["resourceVersion"] == left["metadata"]["resourceVersion"]
    assert (other["type"], other["object"]["metadata"]["name"]) == ("ADDED", "b")


async def test_one_object_is_watched_by_name(wire: RecordedWire, configmaps: str) -> None:
    start = await _revision(wire, configmaps)
    query = f"watch=true&resourceVersion={start}&fieldSelector=metadata.name%3Da"
    async with wire.watch(f"{configmaps}?{query}") as events:
        await wire.post(configmaps, configmap("b"))
        await wire.post(configmaps, configmap("a"))
        assert await events.take(1) == [("ADDED", "a")]


async def test_a_watch_ends_with_its_time(wire: RecordedWire, configmaps: str) -> None:
    start = await _revision(wire, configmaps)
    async with wire.watch(f"{configmaps}?watch=true&resourceVersion={start}&timeoutSeconds=1") as events:
        assert await events.ended()


async def test_a_watch_from_the_future_is_silent_up_to_it(wire: RecordedWire, configmaps: str) -> None:
    with wire.unrecorded():
        soon = int(await _revision(wire, configmaps)) + 1
        async with wire.watch(f"{configmaps}?watch=true&resourceVersion={soon}") as events:
            for name in "abc":
                made = await wire.post(configmaps, configmap(name))
                if int(made.body["metadata"]["resourceVersion"]) > soon:
                    break
            assert await events.take(1) == [("ADDED", name)]


@pytest.mark.differs("A watch from what is no number")
async def test_a_watch_from_nothing_of_the_kind_is_a_bad_request(wire: RecordedWire, configmaps: str) -> None:
    assert (await wire.get(f"{configmaps}?watch=true&resourceVersion=x")).code == 400


async def test_the_events_of_one_namespace_stay_in_it(wire: RecordedWire, configmaps: str) -> None:
    start = await _revision(wire, configmaps)
    async with (
        wire.watch(f"{configmaps}?watch=true&resourceVersion={start}") as near,
        wire.watch(f"/api/v1/configmaps?watch=true&resourceVersion={start}") as far,
    ):
        await wire.post("/api/v1/namespaces/default/configmaps", configmap("elsewhere", generateName="x"))
        await wire.post(configmaps, configmap("here"))
        assert await near.take(1) == [("ADDED", "here")]
        assert await far.take(2) == [("ADDED", "elsewhere"), ("ADDED", "here")]
    await wire.delete("/api/v1/namespaces/default/configmaps/elsewhere")


async def test_tables_are_watched_too(wire: RecordedWire, configmaps: str) -> None:
    start = await _revision(wire, configmaps)
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
    async with wire.watch(f"{configmaps}?watch=true&resourceVersion={start}", accept=accept) as events:
        await wire.post(configmaps, configmap("a"))
        await wire.post(configmaps, configmap("b"))
        first, second = await events.next(), await events.next()
    assert first["object"]["kind"] == "Table"
    assert [column["name"] for column in first["object"]["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert second["object"]["columnDefinitions"] is None
    assert second["object"]["rows"][0]["cells"][0] == "b"


async def test_many_watchers_see_the_same_bytes(wire: RecordedWire, configmaps: str) -> None:
    with wire.unrecorded():
        seen = await _followed(wire, configmaps)
    assert all(events == seen[0] for events in seen)


async def _followed(wire: RecordedWire, configmaps: str) -> list[list[dict[str, object]]]:
    start = await _revision(wire, configmaps)

    async def follow() -> list[dict[str, object]]:
        async with wire.watch(f"{configmaps}?watch=true&resourceVersion={start}") as events:
            started.release()
            return [await events.next() for _ in range(3)]

    started = asyncio.Semaphore(0)
    followers = [asyncio.create_task(follow()) for _ in range(20)]
    for _ in followers:
        await started.acquire()
    for name in "abc":
        await wire.post(configmaps, configmap(name))
    return await asyncio.gather(*followers)
