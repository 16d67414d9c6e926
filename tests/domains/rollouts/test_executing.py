"""The objects of admitted clusters under a server that does not answer."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from tests.domains.rollouts.world import APPLIANCE_KIND, APPLIANCES

from hortus.domains.rollouts.changekinds import CompiledKind
from hortus.domains.rollouts.executing import ObjectSetter
from hortus.domains.rollouts.tracking import ChangeTracker
from hortus.engine import Cache
from hortus.engine.rollouts.types import ChangeKind
from hortus.kube.objects import Object, ObjectKey
from hortus.schema import decode
from hortus.testing.clock import FakeClock

ROLLOUT = ObjectKey("fleet", "by-hand")
OBJECT = ObjectKey("fleet", "c0")


class Server:
    """Answers patches of appliances once it does not hang."""

    def __init__(self, cache: Cache) -> None:
        self.cache = cache
        self.asked = asyncio.Event()
        self.hanging = True

    async def patch(self, resource: object, name: str, patch: Object, namespace: str, *_: Any, **__: Any) -> Object:
        self.asked.set()
        if self.hanging:
            await asyncio.Event().wait()
        known = self.cache[ObjectKey(namespace, name)]
        version = str(int(known["metadata"]["resourceVersion"]) + 10)
        return {**known, **patch, "metadata": {**known["metadata"], "resourceVersion": version}}


def _setter() -> tuple[ObjectSetter, Server]:
    """With one object that is to be set, on a server that hangs."""
    appliance: Object = {
        "apiVersion": APPLIANCES.api_version,
        "kind": "Appliance",
        "metadata": {"name": "c0", "namespace": "fleet", "resourceVersion": "1"},
        "spec": {"product": "press", "version": "1"},
    }
    cache = Cache("appliances")
    cache.replace([appliance], 1)
    tracker = ChangeTracker(CompiledKind(decode(ChangeKind, APPLIANCE_KIND)), cache, lambda kind, subject: None)
    server = Server(cache)
    client: Any = server
    setter = ObjectSetter(
        client, field_manager="test", clock=FakeClock(), assigned=lambda key: None, refused=lambda key: None
    )
    setter.assign(ROLLOUT, tracker, [(OBJECT, "c0")], "2")
    return setter, server


async def _cut_off(attempt: asyncio.Task[Any]) -> None:
    attempt.cancel()
    with suppress(asyncio.CancelledError):
        await attempt


async def test_an_object_whose_patch_was_cut_off_is_set_by_the_next_attempt() -> None:
    """A reconcile is cancelled at its deadline, and no event of the object brings another decision."""
    setter, server = _setter()
    attempt = asyncio.create_task(setter.reconcile(ROLLOUT))
    await server.asked.wait()
    await _cut_off(attempt)
    server.hanging = False
    await setter.reconcile(ROLLOUT)
    assert server.cache[OBJECT]["spec"]["version"] == "2"


async def test_an_object_whose_patch_was_cut_off_is_left_alone_after_a_stop() -> None:
    setter, server = _setter()
    attempt = asyncio.create_task(setter.reconcile(ROLLOUT))
    await server.asked.wait()
    stop = asyncio.create_task(setter.stop(ROLLOUT))
    await asyncio.sleep(0)  # it has begun, and waits for the patch
    await _cut_off(attempt)
    await stop
    server.hanging = False
    await setter.reconcile(ROLLOUT)
    assert server.cache[OBJECT]["spec"]["version"] == "1"
