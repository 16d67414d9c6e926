"""A controller of auditing that is killed at any of its writes is replaced without a trace."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from tests.domains.garden.acl.test_kill import Requests
from tests.domains.garden.audit.extension.audited import TID, add_secrets, audit_config, audited_shoot, of_resource
from tests.domains.garden.audit.extension.test_topic import SEED_PART, SHOOT_PART, audit
from tests.domains.garden.world import SeedWorld
from tests.domains.killing import MOST_CALLS, Killer, killed_at

from hortus.domains.garden.audit.names import CERTIFICATES, SECRETS
from hortus.domains.garden.extension.certificates import read_certificates
from hortus.domains.garden.types import EXTENSIONS, MANAGED_RESOURCES


async def is_killed(seed: SeedWorld, writes: int, work: Awaitable[object]) -> bool:
    """Run a process that is killed at a write; False when the work is done before that."""
    requests = Requests()
    killer = Killer("extension-audit", requests, reads=False)
    done = asyncio.ensure_future(work)
    try:
        return await killed_at(killer, writes, seed.running(audit(), resources=False, observer=requests), done)
    finally:
        killer.rest()
        done.cancel()
        await asyncio.wait((done,))


async def test_a_kill_at_any_write_leaves_one_set_of_certificates_and_nothing_after_the_end(seed: SeedWorld) -> None:
    await seed.add_shoot(audited_shoot())
    await add_secrets(seed)
    async with seed.resource_manager():
        for writes in range(MOST_CALLS):
            await seed.add_extension(TID, "audit", audit_config("clusterForwarding", "splunk"))
            killed = await is_killed(seed, writes, seed.operated(TID, "audit", kind="Create"))
            async with seed.running(audit(), resources=False):
                await seed.operated(TID, "audit")
            made = await of_resource(seed, SEED_PART)
            kept = read_certificates((await seed.there(SECRETS, CERTIFICATES, TID))["data"])
            assert made["Secret audit-webhook-serving"]["data"]["tls.crt"] == kept.data()["server.crt"]
            assert len(kept.authorities) == 1, f"after a kill at write {writes}"
            await seed.client.delete(EXTENSIONS, "audit", TID)
            killed_again = await is_killed(seed, writes, seed.gone(EXTENSIONS, "audit", TID))
            async with seed.running(audit(), resources=False):
                await seed.gone(EXTENSIONS, "audit", TID)
            for name in (SEED_PART, SHOOT_PART):
                assert await seed.get(MANAGED_RESOURCES, name, TID) is None
                assert await seed.get(SECRETS, f"managedresource-{name}", TID) is None
            assert await seed.get(SECRETS, CERTIFICATES, TID) is None, f"after a kill at write {writes}"
            if not killed and not killed_again:
                assert writes > 5, "too few writes: the killer missed the controller"
                return
    raise AssertionError("the work never ended before its kill")
