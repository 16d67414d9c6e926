"""What must run once in the whole group, and on whichever replica: a name is a key like that of an object."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from hortus.engine.shards.membership import Shards
from hortus.engine.shards.roster import Permit
from hortus.kube.fencing import set_fence
from hortus.kube.objects import ObjectKey


async def on_one_replica(shards: Shards, name: str, run: Callable[[], Awaitable[None]]) -> None:
    """Run `run` while `name` falls to this replica. Ends or fails when `run` does, and not when it has to move."""
    key = ObjectKey("", name)
    changed = asyncio.Event()

    def look(gained: Callable[[ObjectKey], bool]) -> int:
        changed.set()
        return 0

    shards.on_gain(look)
    while True:
        changed.clear()
        permit = shards.enter(key, changed.set)
        if permit is None:
            await changed.wait()
            continue
        try:
            set_fence(permit.check)
            if await _until_revoked(permit, changed, run):
                return
        finally:
            set_fence(None)
            shards.leave(permit, clean=False)


async def _until_revoked(permit: Permit, changed: asyncio.Event, run: Callable[[], Awaitable[None]]) -> bool:
    """Whether `run` came to its own end; False when `permit` was taken back before."""
    work = asyncio.ensure_future(run())
    try:
        while not permit.revoked and not work.done():
            changed.clear()
            waiting = asyncio.ensure_future(changed.wait())
            await asyncio.wait({work, waiting}, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
        if work.done():
            await work
            return True
        return False
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
