"""A controller that is killed at any of its writes is replaced without a trace: every write is enumerated.

Each attempt creates an access list, moves it to another seed or deletes it; in each part one process is killed at one
write, and a second one ends the work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from tests.domains.garden.acl.test_topic import RULE, TID, acl, prepared
from tests.domains.garden.world import ENVOY_FILTERS, SeedWorld
from tests.domains.killing import MOST_CALLS, Killer, killed_at

from hortus.domains.garden.types import EXTENSIONS, MANAGED_RESOURCES
from hortus.kube.objects import Object

ENDS = ("delete", "migrate")


class Requests:
    """The requests of a controller."""

    def __init__(self) -> None:
        self.on_answer: Callable[..., None] = lambda method: None

    def answered(self, method: str, host: str, code: str, seconds: float) -> None:
        self.on_answer(method)


async def is_killed(seed: SeedWorld, writes: int, work: Awaitable[object]) -> bool:
    """Run a process that is killed at a write; False when the work is done before that."""
    requests = Requests()
    killer = Killer("extension-acl", requests, reads=False)
    done = asyncio.ensure_future(work)
    try:
        return await killed_at(killer, writes, seed.running(acl(), resources=False, observer=requests), done)
    finally:
        killer.rest()
        done.cancel()
        await asyncio.wait((done,))


async def filters(seed: SeedWorld) -> dict[str, Object]:
    found = (await seed.client.list(ENVOY_FILTERS)).items
    return {one["metadata"]["name"]: one["spec"] for one in found}


async def left(seed: SeedWorld, end: str) -> None:
    """Return once the Extension is gone, or moved."""
    if end == "delete":
        await seed.gone(EXTENSIONS, "acl", TID)
    else:
        found = await seed.operated(TID, "acl", kind="Migrate")
        assert "finalizers" not in found["metadata"]


async def begin_end(seed: SeedWorld, end: str) -> None:
    if end == "delete":
        await seed.client.delete(EXTENSIONS, "acl", TID)
    else:
        await seed.ask(TID, "acl", "migrate")


@pytest.mark.parametrize("end", ENDS)
async def test_a_kill_at_any_write_shows_neither_in_the_filters_nor_after_their_removal(
    seed: SeedWorld, end: str
) -> None:
    await prepared(seed, "198.51.100.1/32")
    expected: object = None
    async with seed.resource_manager():
        for writes in range(MOST_CALLS):
            await seed.add_extension(TID, "acl", {"rule": RULE})
            killed = await is_killed(seed, writes, seed.operated(TID, "acl", kind="Create"))
            async with seed.running(acl(), resources=False):
                created = await seed.operated(TID, "acl")
                for part in ("api", "vpn", "http-proxy", "ingress"):
                    await seed.there(ENVOY_FILTERS, f"acl-{part}-{TID}", "istio-ingress")
            found = (await filters(seed), created["status"]["state"], created["metadata"]["finalizers"])
            expected = expected or found
            assert found == expected, f"after a kill at write {writes}"
            await begin_end(seed, end)
            killed_again = await is_killed(seed, writes, left(seed, end))
            async with seed.running(acl(), resources=False):
                await left(seed, end)
            assert await filters(seed) == {}, f"after a kill at write {writes}"
            assert await seed.get(MANAGED_RESOURCES, "acl-seed", TID) is None
            if end == "migrate":
                await seed.client.delete(EXTENSIONS, "acl", TID)
                await seed.gone(EXTENSIONS, "acl", TID)
            if not killed and not killed_again:
                assert writes > 3, "too few writes: the killer missed the controller"
                return
    raise AssertionError("the work never ended before its kill")
