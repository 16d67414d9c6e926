"""The controller of Watchers, killed after each of its calls: its route is there in the end, or gone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.domains.killing import MOST_CALLS, Killer, killed_at
from tests.domains.modules.watching.test_istio import definition, gateway
from tests.domains.modules.watching.world import World, started_world, watcher

from hortus.domains.modules.types import WATCHERS
from hortus.domains.modules.watching.certificates import CERT_MANAGER_CERTIFICATES
from hortus.domains.modules.watching.composition import NAME
from hortus.domains.modules.watching.controller import GATEWAYS, VIRTUAL_SERVICES
from hortus.engine import has_condition
from hortus.kube.objects import Object
from hortus.testing import wait_for, wait_gone
from hortus.testing.clusters import CRDS

pytestmark = pytest.mark.timeout(300)
Work = Callable[[World], Awaitable[Callable[[], Awaitable[object]]]]


async def made(world: World) -> Callable[[], Awaitable[object]]:
    await world.control.create(WATCHERS, watcher())
    return lambda: wait_for(
        world.control, WATCHERS, "watcher", "kcp-system", until=lambda found: has_condition(found, "VirtualService")
    )


async def removed(world: World) -> Callable[[], Awaitable[object]]:
    until = await made(world)
    async with world.watching():
        await until()
    await world.control.delete(WATCHERS, "watcher", "kcp-system")
    return lambda: wait_gone(world.control, WATCHERS, "watcher", "kcp-system")


async def left(world: World) -> list[Any]:
    """Watchers and routes without identities and times."""
    watchers = [
        (found["metadata"]["name"], found["metadata"].get("finalizers"), found["spec"], found["status"]["state"])
        for found in (await world.control.list(WATCHERS, "kcp-system")).items
    ]
    routes = [
        (found["metadata"]["name"], [owner["name"] for owner in found["metadata"]["ownerReferences"]], found["spec"])
        for found in (await world.control.list(VIRTUAL_SERVICES, "kcp-system")).items
    ]
    return [*watchers, *routes]


async def prepared(world: World) -> None:
    for resource in (GATEWAYS, VIRTUAL_SERVICES, CERT_MANAGER_CERTIFICATES):
        await world.control.create(CRDS, definition(resource))
        name = f"{resource.plural}.{resource.group}"
        await wait_for(world.control, CRDS, name, until=_is_established)
    await world.control.create(GATEWAYS, gateway(("listener.example.org", 443)))


def _is_established(found: Object) -> bool:
    return has_condition(found, "Established")


@pytest.mark.parametrize(("work", "least"), [(made, 4), (removed, 3)], ids=["route", "removal"])
async def test_killed_after_any_call_the_end_is_the_same(tmp_path: Path, work: Work, least: int) -> None:
    expected: list[Any] | None = None
    for calls in range(-1, MOST_CALLS):
        async with started_world(tmp_path) as world:
            await prepared(world)
            until = await work(world)
            killer = Killer(NAME, world.control_requests)
            killer.rest()
            done = asyncio.ensure_future(until())
            struck = calls >= 0 and await killed_at(killer, calls, world.watching(), done)
            killer.rest()
            async with world.watching():
                await done
            end = await left(world)
            expected = end if expected is None else expected
            assert end == expected, f"killed after call {calls + 1}"
            if calls >= 0 and not struck:
                assert calls >= least, "the killer missed the controller"
                return
    raise AssertionError(f"not over after {MOST_CALLS} calls")
