"""Random histories of objects through the wire: lists, pages and watches agree with a model of what was written."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from tests.apiserver.wire import configmap, names
from tests.conformance.api.conftest import EVERY_STORE
from tests.conformance.api.transcripts import RecordedWire, Transcript

pytestmark = EVERY_STORE

_NAMES = "abcdef"
_STEPS = 30


async def _history(wire: RecordedWire, configmaps: str, chosen: random.Random) -> list[tuple[str, str, str, int]]:
    """Write at random; what each step was: type, name, value and the revision after it."""
    present: dict[str, str] = {}
    history: list[tuple[str, str, str, int]] = []
    for number in range(_STEPS):
        name, value = chosen.choice(_NAMES), str(number)
        if name not in present:
            answer, kind = await wire.post(configmaps, configmap(name, {"v": value})), "ADDED"
        elif chosen.random() < 0.4:
            await wire.delete(f"{configmaps}/{name}")
            history.append(("DELETED", name, present.pop(name), await _revision(wire, configmaps)))
            continue
        else:
            answer, kind = await wire.merge(f"{configmaps}/{name}", {"data": {"v": value}}), "MODIFIED"
        present[name] = value
        history.append((kind, name, value, int(answer.body["metadata"]["resourceVersion"])))
    return history


async def _revision(wire: RecordedWire, configmaps: str) -> int:
    return int((await wire.get(configmaps)).body["metadata"]["resourceVersion"])


def _state(history: list[tuple[str, str, str, int]]) -> dict[str, str]:
    present: dict[str, str] = {}
    for kind, name, value, _ in history:
        present[name] = value
        if kind == "DELETED":
            del present[name]
    return dict(sorted(present.items()))


def _shown(event: dict[str, Any]) -> tuple[str, str, str]:
    return event["type"], event["object"]["metadata"]["name"], event["object"]["data"]["v"]


@pytest.fixture(autouse=True)
def _compared_with_the_model(transcript: Transcript) -> Iterator[None]:
    with transcript.silent():
        yield


@pytest.mark.parametrize("seed", range(3))
async def test_what_was_written_is_listed_paged_and_watched(wire: RecordedWire, configmaps: str, seed: int) -> None:
    chosen = random.Random(seed)
    start = await _revision(wire, configmaps)
    history = await _history(wire, configmaps, chosen)
    listed = (await wire.get(configmaps)).body["items"]
    assert {item["metadata"]["name"]: item["data"]["v"] for item in listed} == _state(history)
    for index in (0, *chosen.sample(range(1, _STEPS), 4)):
        since = history[index - 1][3] if index else start
        async with wire.watch(f"{configmaps}?watch=true&resourceVersion={since}") as events:
            seen = [_shown(await events.next()) for _ in history[index:]]
        assert seen == [step[:3] for step in history[index:]]
        exact = f"resourceVersion={since}&resourceVersionMatch=Exact"
        paged = await wire.get(f"{configmaps}?{exact}&limit=2")
        found = names(paged)
        while token := paged.body["metadata"].get("continue"):
            paged = await wire.get(f"{configmaps}?limit=2&continue={token}")
            found += names(paged)
        assert found == list(_state(history[:index]))
