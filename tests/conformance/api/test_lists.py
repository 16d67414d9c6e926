"""Get and list: selectors, pages, snapshots, representations."""

from __future__ import annotations

import base64
import json

import pytest
from tests.apiserver.wire import configmap, names
from tests.conformance.api.conftest import EVERY_STORE
from tests.conformance.api.transcripts import RecordedWire

pytestmark = EVERY_STORE

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


async def _make(wire: RecordedWire, configmaps: str, *made: str) -> None:
    for name in made:
        assert (await wire.post(configmaps, configmap(name, labels={"name": name, "all": "yes"}))).code == 201


async def test_a_list_is_in_order_and_has_its_revision(wire: RecordedWire, configmaps: str) -> None:
    await _make(wire, configmaps, "c", "a", "b")
    found = await wire.get(configmaps)
    assert names(found) == ["a", "b", "c"]
    assert (found.body["kind"], found.body["apiVersion"]) == ("ConfigMapList", "v1")
    assert int(found.body["metadata"]["resourceVersion"]) > 0
    assert "kind" not in found.body["items"][0]


async def test_an_empty_list_has_no_items(wire: RecordedWire, configmaps: str) -> None:
    found = await wire.get(configmaps)
    assert (found.code, found.body["items"]) == (200, [])


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("labelSelector=name%3Da", ["a"]),
        ("labelSelector=name!%3Da", ["b", "c"]),
        ("labelSelector=name+in+(a,c)", ["a", "c"]),
        ("labelSelector=name+notin+(a,c)", ["b"]),
        ("labelSelector=all,!missing", ["a", "b", "c"]),
        ("labelSelector=missing", []),
        ("fieldSelector=metadata.name%3Db", ["b"]),
        ("fieldSelector=metadata.name!%3Db", ["a", "c"]),
        ("labelSelector=all%3Dyes&fieldSelector=metadata.name%3Dc", ["c"]),
    ],
)
async def test_selectors_choose(wire: RecordedWire, configmaps: str, query: str, expected: list[str]) -> None:
    await _make(wire, configmaps, "a", "b", "c")
    assert names(await wire.get(f"{configmaps}?{query}")) == expected


@pytest.mark.parametrize("query", ["labelSelector=a%3D%3D%3Db", "labelSelector=(", "fieldSelector=data.a%3Db"])
async def test_selectors_that_cannot_be_understood_are_bad_requests(
    wire: RecordedWire, configmaps: str, query: str
) -> None:
    answer = await wire.get(f"{configmaps}?{query}")
    assert (answer.code, answer.body["reason"]) == (400, "BadRequest")


async def test_pages_show_one_snapshot(wire: RecordedWire, configmaps: str) -> None:
    await _make(wire, configmaps, *"abcde")
    first = await wire.get(f"{configmaps}?limit=2")
    meta = first.body["metadata"]
    assert (names(first), meta["remainingItemCount"]) == (["a", "b"], 3)
    await wire.delete(f"{configmaps}/c")
    await wire.post(configmaps, configmap("bb"))
    second = await wire.get(f"{configmaps}?limit=2&continue={meta['continue']}")
    assert names(second) == ["c", "d"]
    assert second.body["metadata"]["resourceVersion"] == meta["resourceVersion"]
    third = await wire.get(f"{configmaps}?limit=2&continue={second.body['metadata']['continue']}")
    assert names(third) == ["e"]
    assert "continue" not in third.body["metadata"]
    assert "remainingItemCount" not in third.body["metadata"]


async def test_pages_of_a_selection_say_nothing_of_how_many_follow(wire: RecordedWire, configmaps: str) -> None:
    await _make(wire, configmaps, *"abcde")
    first = await wire.get(f"{configmaps}?limit=2&labelSelector=name+notin+(b)")
    assert names(first) == ["a", "c"]
    assert "remainingItemCount" not in first.body["metadata"]
    token = first.body["metadata"]["continue"]
    assert names(await wire.get(f"{configmaps}?limit=5&labelSelector=name+notin+(b)&continue={token}")) == ["d", "e"]


@pytest.mark.parametrize(
    "token",
    [
        "x",
        "%00",
        base64.urlsafe_b64encode(b"{}").decode(),
        base64.urlsafe_b64encode(b'{"v":"v2","rv":1,"start":"a"}').decode(),
    ],
)
async def test_a_continue_token_that_nobody_gave_out_is_a_bad_request(
    wire: RecordedWire, configmaps: str, token: str
) -> None:
    answer = await wire.get(f"{configmaps}?limit=1&continue={token}")
    assert (answer.code, answer.body["reason"]) == (400, "BadRequest")
    assert answer.message.startswith("invalid continue token: continue key is not valid: ")


async def test_a_forged_continue_token_leads_nowhere_else(wire: RecordedWire, configmaps: str) -> None:
    revision = int((await wire.get(configmaps)).body["metadata"]["resourceVersion"])
    for start in ("../../secrets/x\0", "../x\0"):
        forged = json.dumps({"v": "meta.k8s.io/v1", "rv": revision, "start": start}).encode()
        token = base64.urlsafe_b64encode(forged).decode().rstrip("=")
        assert (await wire.get(f"{configmaps}?limit=1&continue={token}")).code == 400


async def test_an_exact_revision_is_that_snapshot(wire: RecordedWire, configmaps: str) -> None:
    await _make(wire, configmaps, "a")
    then = (await wire.get(configmaps)).body["metadata"]["resourceVersion"]
    await _make(wire, configmaps, "b")
    old = await wire.get(f"{configmaps}?resourceVersion={then}&resourceVersionMatch=Exact")
    assert (names(old), old.body["metadata"]["resourceVersion"]) == (["a"], then)
    assert names(await wire.get(f"{configmaps}?resourceVersion={then}&resourceVersionMatch=NotOlderThan")) == ["a", "b"]
    assert names(await wire.get(f"{configmaps}?resourceVersion=0")) == ["a", "b"]


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("resourceVersion=abc", 400),
        ("resourceVersion=-1", 400),
        ("resourceVersionMatch=Exact", 422),
        ("resourceVersion=0&resourceVersionMatch=Exact", 422),
        ("resourceVersion=1&resourceVersionMatch=Nearly", 422),
        ("limit=x", 400),
    ],
)
async def test_impossible_revisions(wire: RecordedWire, configmaps: str, query: str, code: int) -> None:
    assert (await wire.get(f"{configmaps}?{query}")).code == code


async def test_reads_of_the_future_ask_to_come_again(wire: RecordedWire, configmaps: str) -> None:
    """The original waits three seconds for the revision, at each of these."""
    await _make(wire, configmaps, "a")
    future = "resourceVersion=999999999999"
    *lists, got = await wire.at_once(
        lambda each: each.get(f"{configmaps}?{future}"),
        lambda each: each.get(f"{configmaps}?{future}&resourceVersionMatch=Exact"),
        lambda each: each.get(f"{configmaps}/a?{future}"),
    )
    assert [answer.code for answer in lists] == [504, 504]
    assert (got.code, got.body["reason"], got.headers["Retry-After"]) == (504, "Timeout", "1")
    assert got.message.startswith("Timeout: Too large resource version: 999999999999, current: ")
    assert (await wire.get(f"{configmaps}/a?resourceVersion=0")).code == 200


async def test_a_table_has_a_row_for_each_object(wire: RecordedWire, configmaps: str) -> None:
    await wire.post(configmaps, configmap("a", {"x": "1", "y": "2"}))
    table = (await wire.get(configmaps, accept=TABLE)).body
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Data", "Age"]
    (row,) = table["rows"]
    assert [str(cell) for cell in row["cells"][:2]] == ["a", "2"]
    assert row["object"]["kind"] == "PartialObjectMetadata"
    assert row["object"]["metadata"]["name"] == "a"
    whole = (await wire.get(f"{configmaps}/a?includeObject=Object", accept=TABLE)).body
    assert whole["rows"][0]["object"]["data"] == {"x": "1", "y": "2"}
    bare = (await wire.get(f"{configmaps}?includeObject=None", accept=TABLE)).body
    assert bare["rows"][0]["object"] is None


async def test_metadata_alone(wire: RecordedWire, configmaps: str) -> None:
    await wire.post(configmaps, configmap("a", labels={"x": "y"}))
    one = await wire.get(f"{configmaps}/a", accept="application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io")
    assert (one.body["kind"], one.body["apiVersion"]) == ("PartialObjectMetadata", "meta.k8s.io/v1")
    assert one.body["metadata"]["labels"] == {"x": "y"}
    assert "data" not in one.body
    accept = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
    many = (await wire.get(configmaps, accept=accept)).body
    assert many["kind"] == "PartialObjectMetadataList"
    assert [item["metadata"]["name"] for item in many["items"]] == ["a"]


async def test_yaml_is_spoken_both_ways(wire: RecordedWire, configmaps: str) -> None:
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  key: 'yes'\n"
    made = await wire.send("POST", configmaps, body, content_type="application/yaml", accept="application/yaml")
    assert made.code == 201
    assert made.headers["Content-Type"] == "application/yaml"
    assert b"kind: ConfigMap" in made.body
    assert (await wire.get(f"{configmaps}/a")).body["data"] == {"key": "yes"}


@pytest.mark.differs("YAML in requests is read by YAML 1.2")
async def test_yaml_knows_two_booleans(wire: RecordedWire, configmaps: str) -> None:
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  on: 'yes'\n"
    await wire.send("POST", configmaps, body, content_type="application/yaml")
    assert (await wire.get(f"{configmaps}/a")).body["data"] == {"on": "yes"}


async def test_representations_that_are_not_served(wire: RecordedWire, configmaps: str) -> None:
    assert (await wire.get(configmaps, accept="text/html")).code == 406
    sent = await wire.send("POST", configmaps, b"x", content_type="text/plain")
    assert (sent.code, sent.body["reason"]) == (415, "UnsupportedMediaType")


async def test_large_lists_are_compressed_for_those_who_take_it(wire: RecordedWire, configmaps: str) -> None:
    await wire.post(configmaps, configmap("a", {"x": "y" * 200_000}))
    packed = await wire.get(configmaps, headers={"Accept-Encoding": "gzip"})
    assert packed.headers["Content-Encoding"] == "gzip"
    assert len(packed.body["items"][0]["data"]["x"]) == 200_000
    plain = await wire.get(configmaps, headers={"Accept-Encoding": "identity"})
    assert "Content-Encoding" not in plain.headers
