"""One control plane of real processes moves from three members through six to three others, under load."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.apiserver.store.etcdserver import find_etcd
from tests.domains.garden.migration.keyed import assert_kept, make_keyed
from tests.domains.garden.migration.load import assert_nothing_was_lost, running_load
from tests.domains.garden.migration.world import real_plane
from tests.waiting import until

pytestmark = pytest.mark.skipif(find_etcd() is None, reason="there is no etcd here")

TTL = 3600
"""Seconds of a lease of etcd: half of them are more than a test may last."""
MOST_ROUNDS = 240
"""Rounds of the observer that a request may take: twelve seconds where the machine is idle.

A write that etcd loses while the leadership moves takes seven: then etcd gives it up, and the store sends it again.
"""


async def ask(url: str, path: str, **body: Any) -> Any:
    async with aiohttp.ClientSession() as session, session.post(f"{url}/v3/{path}", json=body) as answer:
        return json.loads(await answer.read())


def sizes(history: list[tuple[tuple[str, ...], str]]) -> list[int]:
    """Numbers of members, without repetitions."""
    return [size for size, _ in itertools.groupby(len(members) for members, _ in history)]


async def test_a_control_plane_moves_under_load_without_a_failed_request(tmp_path: Path) -> None:
    async with real_plane(tmp_path) as plane, plane.observed() as observer:
        record = await plane.record()
        keyed = await make_keyed(plane)
        elected = await plane.controllers.elected()
        lease = (await ask(plane.source.members[0].client_url, "lease/grant", TTL=TTL))["ID"]
        loaded = running_load(plane.router.port, plane.token, plane.tls(), rounds=lambda: observer.rounds)
        async with loaded as clients:
            await plane.walk(record)
        load = clients.load
        left = await ask(plane.destination.members[0].client_url, "lease/timetolive", ID=lease)
        await assert_kept(plane, keyed)
        plane.controllers.assert_handed_over(elected, await plane.controllers.elected())
        seen = await plane.observe()
        state = await plane.etcd.state()
        await until(lambda: sizes(observer.history)[-1] == 3)
    assert load.failed == []
    assert_nothing_was_lost(load)
    assert (seen.source.keys, seen.destination.keys) == ({}, record.keys)
    assert observer.broken == []
    assert observer.cluster_ids == {record.cluster_id}
    # The observer may miss a size that lasts for less than a round of its own.
    found = sizes(observer.history)
    growing, shrinking = found[: found.index(6) + 1], found[found.index(6) :]
    assert (growing[0], growing) == (3, sorted(set(growing)))
    assert shrinking == sorted(set(shrinking), reverse=True)
    assert int(left["TTL"]) > TTL / 2
    assert {(one.name, one.is_learner) for one in state.members} == {(f"dst-{n}", False) for n in range(3)}
    assert state.revision > record.revision
    assert not any(one.folder.exists() for one in plane.source.members)
    seconds = plane.timeline[-1][0] - plane.timeline[0][0]
    elections = f"{plane.controllers.gap:.2f} s without a leader in {plane.controllers.looks} looks"
    print(f"{load.requests} requests, {load.summary}, walk {seconds:.1f} s, {observer.looks} looks, {elections}")
    assert load.longest_rounds < MOST_ROUNDS


@pytest.mark.soak
async def test_one_member_moves_by_a_learner_without_a_failed_request(tmp_path: Path) -> None:
    async with real_plane(tmp_path, size=1, servers=1) as plane, plane.observed() as observer:
        record = await plane.record()
        async with running_load(plane.router.port, plane.token, plane.tls()) as clients:
            await plane.walk(record)
        load = clients.load
        state = await plane.etcd.state()
    assert load.failed == []
    assert_nothing_was_lost(load)
    assert observer.broken == []
    assert [(one.name, one.is_learner) for one in state.members] == [("dst-0", False)]
    print(f"{load.requests} requests, {load.summary}")
