"""Lists that are joined once for many: the same bytes as without, and never those of another state."""

from __future__ import annotations

import gzip
from types import SimpleNamespace
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st
from tests.apiserver.wire import Wire, configmap, names

from hortus.apiserver.resources.joined import Joined, JoinedLists
from hortus.apiserver.store.backend import RecordPage, StoredRecord


@given(st.binary(max_size=300), st.lists(st.binary(max_size=5000), max_size=4), st.binary(max_size=50))
def test_a_packed_list_is_the_gzip_form_of_its_parts(head: bytes, items: list[bytes], tail: bytes) -> None:
    joined = Joined(b",".join(items))
    for start in (head, head + b"2"):
        assert gzip.decompress(joined.packed(start, tail)) == start + joined.items + tail


async def _listed(wire: Wire, path: str, *, packed: bool) -> Any:
    """The list, decoded; aiohttp refuses what is no valid gzip."""
    headers = {"Accept-Encoding": "gzip" if packed else "identity", "Authorization": f"Bearer {wire.token}"}
    async with wire.session.get(wire.base + path, headers=headers) as response:
        assert response.status == 200
        assert (response.headers.get("Content-Encoding") == "gzip") == packed
        return orjson.loads(await response.read())


async def test_lists_asked_for_again_are_the_same_until_something_changes(wire: Wire, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    for number in range(3):
        assert (await wire.post(path, configmap(f"a{number}", {"text": "x" * 100_000}))).code == 201
    first = await _listed(wire, path, packed=False)
    for packed in (False, True, True):
        assert await _listed(wire, path, packed=packed) == first
    # Something else moves the revision on, which stands in the list and not in its items.
    moved = await wire.post("/api/v1/namespaces", {"metadata": {"name": f"{namespace}-other"}})
    again = await _listed(wire, path, packed=True)
    assert again["items"] == first["items"]
    assert int(again["metadata"]["resourceVersion"]) >= int(moved.body["metadata"]["resourceVersion"])
    assert (await wire.merge(f"{path}/a1", {"data": {"more": "y"}})).code == 200
    assert (await wire.delete(f"{path}/a0")).code == 200
    for packed in (False, True, False):
        changed = await _listed(wire, path, packed=packed)
        assert [item["metadata"]["name"] for item in changed["items"]] == ["a1", "a2"]
        assert changed["items"][0]["data"]["more"] == "y"
    assert names(await wire.get(f"{path}?limit=1")) == ["a1"]


def _kind() -> Any:
    return SimpleNamespace(
        upgrade=False,
        converter=None,
        resource=SimpleNamespace(api_version="v1"),
        shown=lambda value: value,
        items=b",".join,
    )


def test_the_cache_stays_within_its_bytes() -> None:
    kind, lists = _kind(), JoinedLists(most_bytes=500)
    pages = {name: RecordPage([StoredRecord(name, "a", b"x" * 100, 1)], 1, 0, object()) for name in "abc"}
    for name in "aabbcc":
        lists.of(kind, name, "", pages[name])
    kept = [asked.joined is not None for asked in lists._asked.values()]
    assert kept == [False, True, True]


def test_another_revision_or_kind_is_joined_again() -> None:
    kind, lists, state = _kind(), JoinedLists(), object()
    page = RecordPage([StoredRecord("b", "a", b"old", 1)], 1, 0, state)
    assert lists.of(kind, "b", "", page) is None, "asked for once"
    found = lists.of(kind, "b", "", page)
    assert found is not None
    assert found.items == b"old"
    assert lists.of(kind, "b", "", page._replace(state=object())) is None
    assert lists.of(_kind(), "b", "", page) is None
    assert lists.of(kind, "b", "", page._replace(state=None)) is None
