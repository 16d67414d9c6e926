"""Killed at any call of recording and of settling: one record, before anything is released, and settled in the end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from tests.domains.killing import Killer, killed_at
from tests.domains.leftovers.test_recording import issued, witness
from tests.domains.leftovers.test_settling import config_map, leave, remove, settled, states
from tests.domains.leftovers.world import KEEP, SHOOTS, Ledger, ledger

from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.engine import read
from hortus.engine.leftovers import object_item
from hortus.engine.leftovers.types import LEFTOVERS, Leftover
from hortus.testing.apiserver import TestServer


@pytest.mark.parametrize("obstacle", ["ClusterUnreachable", "ClusterGone"])
async def test_killed_at_any_call_of_a_detach_there_is_one_record(server: TestServer, obstacle: str) -> None:
    for calls in count():
        async with ledger(server) as here:
            if not await detached(here, obstacle, calls):
                break
    assert calls >= 3, "Secret, record, finalizer"


async def detached(here: Ledger, obstacle: str, calls: int) -> bool:
    """Release a request whose cluster is away, killed after so many calls; returns False when it made no more."""
    access = here.access
    made = await issued(access)
    access.flags = ["--access-detach-after=1s"]
    if obstacle == "ClusterGone":
        await here.client.delete(GARDENER_CLUSTERS, "tulip", here.namespace)
    else:
        await here.lead()
    await access.delete()
    access.clock.skip(60.0)
    watching = asyncio.create_task(witness(here))
    passing = asyncio.create_task(time_passes(here))
    killer = Killer("cluster-access-controller", access.requests, remote=True)
    if struck := await killed_at(killer, calls, access.controlled(), watching):
        killer.rest()
        async with access.controlled():
            await watching
    passing.cancel()
    assert await watching == 1, f"the record comes first, also when killed after {calls} calls"
    found = await here.only()
    assert (found.spec.source.uid, found.spec.reason) == (made["metadata"]["uid"], obstacle)
    assert len(found.spec.items) == 3, "account, role and binding"
    return struck


async def time_passes(here: Ledger) -> None:
    """A call between two steps leaves others the time for theirs."""
    while True:
        await here.leftovers()
        await here.access.clock.advance(1.0)


@pytest.mark.parametrize("stage", ["look", "settle", "expire"])
async def test_killed_at_any_call_of_settling_nothing_is_settled_that_is_left(server: TestServer, stage: str) -> None:
    for calls in count():
        async with ledger(server) as here:
            phases = asyncio.create_task(phases_of(here))
            if not await ended(here, stage, calls):
                await phases
                break
            assert await phases in (["Open", "Settled", "DELETED"], ["", "Open", "Settled", "DELETED"])
    assert calls >= {"look": 4, "settle": 2, "expire": 1}[stage], "looks at each item, the status, the deletion"


async def ended(here: Ledger, stage: str, calls: int) -> bool:
    """The life of a record, killed in one stage after so many calls; returns False when there were no more."""
    await here.access.cluster()
    uid = await leave(here)
    shoot = object_item(SHOOTS, here.garden_namespace, "none", where="Garden")
    await here.record([config_map(uid), config_map("some-uid", "gone"), shoot])
    killer, struck = Killer("leftover-controller", here.requests, remote=True), False

    async def until(name: str, says: Callable[[], Any]) -> None:
        nonlocal struck
        done = asyncio.create_task(says())
        if name == stage:
            struck = await killed_at(killer, calls, here.controlled(grace=60.0), done)
        killer.rest()
        async with here.controlled():
            await done

    await until("look", lambda: here.until(lambda one: states(one) == ["Gone", "Gone", "Left"]))
    assert not settled(await here.only())
    await remove(here)
    await until("settle", lambda: here.until(settled))
    here.clock.skip(KEEP)
    await until("expire", lambda: here.until_none(step=2.0))
    return struck


async def phases_of(here: Ledger) -> list[str]:
    """The phases that a Leftover has one after the other, until it is deleted."""
    seen: list[str] = []
    async with here.client.watch(LEFTOVERS, here.namespace, initial_events=True) as events:
        async for event in events:
            if event.type == "DELETED":
                return [*seen, event.type]
            phase = read(Leftover, event.object).status.phase if event.type != "BOOKMARK" else ""
            if event.type != "BOOKMARK" and seen[-1:] != [phase]:
                seen.append(phase)
    raise AssertionError("the watch ended")
