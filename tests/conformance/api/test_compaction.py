"""Reads of the past once the store has forgotten it: 410, or the present state.

The original has no watch cache here: from that it would answer longer than its etcd remembers. Nothing is recorded, as
requests name revisions, which each server counts for itself.
"""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import Awaitable, Callable, Iterator

import pytest
from tests.apiserver.wire import configmap, names
from tests.conformance.api.conftest import Server
from tests.conformance.api.transcripts import RecordedWire
from tests.oracles.controlplane import RealServer, find_assets, running_control_plane, why_none

from hortus.testing.apiserver import TestServer, started_apiserver

Compact = Callable[[int], Awaitable[None]]


@pytest.fixture(scope="module", params=["memory", "sqlite", pytest.param("real", marks=pytest.mark.real_apiserver)])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    if request.param != "real":
        with started_apiserver(store=request.param) as running:
            yield running
        return
    assets = find_assets()
    if assets is None:
        pytest.skip(why_none())
    with running_control_plane(assets, tmp_path_factory.mktemp("uncached"), flags=["--watch-cache=false"]) as original:
        yield original


@pytest.fixture
def compact(server: Server) -> Compact:
    """Make the store forget what was before a revision."""

    async def go(revision: int) -> None:
        if isinstance(server, TestServer):
            await asyncio.to_thread(server.run, server.server.context.storage.backend.compact(revision))
        else:
            await asyncio.to_thread(_compact_etcd, server, revision)

    return go


def _compact_etcd(server: RealServer, revision: int) -> None:
    asked = urllib.request.Request(f"{server.etcd}/v3/kv/compaction", data=json.dumps({"revision": revision}).encode())
    with urllib.request.urlopen(asked, timeout=60) as answer:
        assert answer.status == 200


@pytest.fixture
async def past(wire: RecordedWire, configmaps: str, compact: Compact) -> dict[str, str]:
    """A revision and a token to go on with, of a time that the store has forgotten."""
    with wire.unrecorded():
        first = (await wire.post(configmaps, configmap("a"))).body["metadata"]["resourceVersion"]
        await wire.post(configmaps, configmap("b"))
        token = (await wire.get(f"{configmaps}?limit=1")).body["metadata"]["continue"]
        await wire.post(configmaps, configmap("c"))
        last = (await wire.merge(f"{configmaps}/a", {"data": {"x": "y"}})).body["metadata"]["resourceVersion"]
        await compact(int(last))
    return {"revision": first, "token": token}


async def test_a_list_of_a_forgotten_revision_is_expired(
    wire: RecordedWire, configmaps: str, past: dict[str, str]
) -> None:
    since = f"resourceVersion={past['revision']}"
    with wire.unrecorded():
        exact = await wire.get(f"{configmaps}?{since}&resourceVersionMatch=Exact")
        present = [
            await wire.get(f"{configmaps}?{since}{query}") for query in ("", "&resourceVersionMatch=NotOlderThan")
        ]
        single = await wire.get(f"{configmaps}/a?{since}")
    assert (exact.code, exact.body["reason"]) == (410, "Expired")
    assert exact.message == "The resourceVersion for the provided list is too old."
    assert [names(each) for each in present] == [["a", "b", "c"]] * 2
    assert single.body["data"]["x"] == "y"


async def test_a_list_goes_on_after_its_snapshot_by_the_token_it_is_given(
    wire: RecordedWire, configmaps: str, past: dict[str, str]
) -> None:
    with wire.unrecorded():
        gone = await wire.get(f"{configmaps}?limit=1&continue={past['token']}")
    assert (gone.code, gone.body["reason"]) == (410, "Expired")
    assert gone.message.startswith("The provided continue parameter is too old to display a consistent list result.")
    with wire.unrecorded():
        rest = await wire.get(f"{configmaps}?continue={gone.body['metadata']['continue']}")
    assert names(rest) == ["b", "c"]


@pytest.mark.parametrize("since", ["then", "the beginning"])
async def test_a_watch_of_a_compacted_revision_expires(
    wire: RecordedWire, configmaps: str, past: dict[str, str], since: str
) -> None:
    revision = past["revision"] if since == "then" else "1"
    async with wire.watch(f"{configmaps}?watch=true&resourceVersion={revision}") as events:
        with wire.unrecorded():
            event = await events.next()
        assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")
        assert await events.ended()
