"""The timers of a watch."""

from __future__ import annotations

import pytest
from tests.apiserver.wire import Wire, configmap

from hortus.apiserver.resources import watching


async def test_no_event_is_lost_between_bookmarks(wire: Wire, namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A due bookmark cuts off the wait for changes, at any moment; here one is due all the time."""
    monkeypatch.setattr(watching, "_BOOKMARK_EVERY", 0.0005)
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    version = (await wire.get(path)).body["metadata"]["resourceVersion"]
    names = [f"object-{number:03}" for number in range(100)]
    async with wire.watch(f"{path}?watch=1&allowWatchBookmarks=true&resourceVersion={version}") as events:
        for name in names:
            assert (await wire.post(path, configmap(name))).code == 201
        seen, bookmarks, newest = [], 0, int(version)
        while len(seen) < len(names):
            event = await events.next()
            revision = int(event["object"]["metadata"]["resourceVersion"])
            if event["type"] == "BOOKMARK":
                bookmarks += 1
                assert revision >= newest
            else:
                assert revision > newest
                seen.append(event["object"]["metadata"]["name"])
            newest = revision
    assert seen == names
    assert bookmarks > 0


async def test_a_watch_of_the_future_gets_no_bookmark_from_the_past(
    wire: Wire, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The events up to the revision that it asked for are left out, so no bookmark may claim to have delivered them."""
    monkeypatch.setattr(watching, "_BOOKMARK_EVERY", 0.0005)
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    version = int((await wire.get(path)).body["metadata"]["resourceVersion"])
    query = f"watch=1&allowWatchBookmarks=true&timeoutSeconds=1&resourceVersion={version + 1000}"
    async with wire.watch(f"{path}?{query}") as events:
        assert (await wire.post(path, configmap("one"))).code == 201
        assert await events.ended()
