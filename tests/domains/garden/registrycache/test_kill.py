"""A controller of registry caches that is killed at any of its writes leaves nothing in seed and Shoot."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable

import pytest
from tests.domains.garden.acl.test_kill import Requests
from tests.domains.garden.registrycache.test_config import caches
from tests.domains.garden.registrycache.test_topic import TYPE, CachedShoot, cached_shoot, running
from tests.domains.garden.world import SeedWorld
from tests.domains.killing import MOST_CALLS, Killer, killed_at
from tests.waiting import until

from hortus.domains.garden.extension.composition import SeedView
from hortus.domains.garden.registrycache.names import CERTIFICATES, SECRETS, SERVICES, UPSTREAM_LABEL
from hortus.domains.garden.registrycache.topic import CacheTopic
from hortus.domains.garden.types import EXTENSIONS, MANAGED_RESOURCES
from hortus.engine.remote import RemoteSettings
from hortus.testing.apiserver import TestServer


@pytest.fixture
async def shoot(seed: SeedWorld, server: TestServer) -> AsyncIterator[CachedShoot]:
    async with cached_shoot(seed, server) as made:
        yield made


async def is_killed(seed: SeedWorld, writes: int, work: Awaitable[object]) -> bool:
    """Run a process that is killed at a write; False when the work is done before that."""
    requests = Requests()
    killer = Killer(f"extension-{TYPE}", requests, reads=False)
    done = asyncio.ensure_future(work)

    def make(view: SeedView) -> CacheTopic:
        return CacheTopic("registry:3", view, RemoteSettings(deny=()))

    try:
        return await killed_at(killer, writes, seed.running(make, resources=False, observer=requests), done)
    finally:
        killer.rest()
        done.cancel()
        await asyncio.wait((done,))


async def test_a_kill_at_any_write_leaves_no_service_and_no_certificate(seed: SeedWorld, shoot: CachedShoot) -> None:
    async def no_services() -> bool:
        return not (await shoot.client.list(SERVICES, "kube-system", labels=UPSTREAM_LABEL)).items

    async with seed.resource_manager():
        for writes in range(MOST_CALLS):
            await seed.add_extension(shoot.id, TYPE, caches({"upstream": "quay.io"}))
            killed = await is_killed(seed, writes, seed.operated(shoot.id, TYPE, kind="Create"))
            await seed.client.delete(EXTENSIONS, TYPE, shoot.id)
            killed_again = await is_killed(seed, writes, seed.gone(EXTENSIONS, TYPE, shoot.id))
            async with running(seed, resources=False):
                await seed.gone(EXTENSIONS, TYPE, shoot.id)
            assert await seed.get(MANAGED_RESOURCES, "extension-registry-cache", shoot.id) is None
            assert await seed.get(SECRETS, CERTIFICATES, shoot.id) is None, f"after a kill at write {writes}"
            await until(no_services)
            if not killed and not killed_again:
                assert writes > 5, "too few writes: the killer missed the controller"
                return
    raise AssertionError("the work never ended before its kill")
