"""A process that dies after any of its calls is continued by the next, to the same end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.domains.killing import MOST_CALLS, Killer, killed_at, sampled
from tests.domains.modules.manifests.world import (
    CONFIG_MAPS,
    CRDS,
    HOME,
    MODULES,
    SAMPLES,
    ModuleWorld,
    config_map,
    is_ready,
    module_world,
    sample,
    sample_definition,
)

from hortus.domains.modules.names import Annotation, Label
from hortus.domains.modules.types import MANIFESTS
from hortus.kube.objects import Object
from hortus.testing.apiserver import TestServer

_KINDS = (CONFIG_MAPS, SAMPLES)
End = list[tuple[Any, ...]]


async def left(here: ModuleWorld) -> End:
    """All that the cluster holds of the module: names, data and our label, in order."""
    found: End = []
    for kind in _KINDS:
        if kind is SAMPLES and await here.read(CRDS, f"{SAMPLES.plural}.{SAMPLES.group}") is None:
            continue
        for obj in (await here.inside.list(kind, MODULES)).items:
            labels = obj["metadata"].get("labels") or {}
            if obj["metadata"]["name"] != "kube-root-ca.crt":
                found.append((obj["metadata"]["name"], obj.get("data"), labels.get(Label.MANAGED_BY)))
    return sorted(found, key=str)


async def install(here: ModuleWorld) -> Callable[[], Awaitable[object]]:
    first = here.layers.push(sample_definition(), config_map("one", a="1"))
    await here.manifest(first, spec={"resource": sample()})
    return lambda: here.until(is_ready)


async def installed(here: ModuleWorld) -> None:
    until = await install(here)
    async with here.controllers():
        await until()


async def upgrade(here: ModuleWorld) -> Callable[[], Awaitable[object]]:
    await installed(here)
    second = here.layers.push(sample_definition(), config_map("two", a="2"))
    await here.move(second)

    def done(obj: Object) -> bool:
        names = {one["name"] for one in obj["status"].get("synced", ())}
        noted = obj["metadata"]["annotations"][Annotation.SYNCED_OCI_REF]
        return is_ready(obj) and noted == second and names == {"two", "samples.operator.kyma-project.io"}

    return lambda: here.until(done)


async def unmanage(here: ModuleWorld) -> Callable[[], Awaitable[object]]:
    await installed(here)
    annotation = {"metadata": {"annotations": {Annotation.IS_UNMANAGED: "true"}}}
    await here.client.patch(MANIFESTS, "one-module", annotation, HOME)
    return here.until_gone


async def remove(here: ModuleWorld) -> Callable[[], Awaitable[object]]:
    await installed(here)
    await here.client.delete(MANIFESTS, "one-module", HOME)
    return here.until_gone


@sampled
@pytest.mark.parametrize("work", [install, upgrade, unmanage, remove])
async def test_killed_after_any_call_the_end_is_the_same(
    server: TestServer, work: Callable[[ModuleWorld], Awaitable[Callable[[], Awaitable[object]]]], reads: int
) -> None:
    expected: End | None = None
    for calls in range(-1, MOST_CALLS):
        async with module_world(server) as here:
            here.flags = ["--manifest-requeue-busy-interval=10ms"]
            killer = Killer("manifest", here.requests, reads=reads, remote=True)
            killer.rest()
            until = await work(here)
            done = asyncio.ensure_future(until())
            struck = calls >= 0 and await killed_at(killer, calls, here.controllers(), done)
            made = killer.calls
            killer.rest()
            async with here.controllers():
                await done
            end = await left(here)
            expected = end if expected is None else expected
            assert end == expected, f"killed after call {calls + 1}"
            if calls >= 0 and not struck:
                assert made > 7, "the enumeration ended before anything happened"
                return
    raise AssertionError(f"not over after {MOST_CALLS} calls")
