"""The controllers of mandatory modules, killed after each of their calls: the next process ends the work the same."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.domains.killing import MOST_CALLS, Killer, killed_at
from tests.domains.modules.kyma.world import HOME, NAME, KymaWorld, kyma_world

from hortus.domains.modules.kyma.composition import MANDATORY, MANDATORY_DELETION
from hortus.domains.modules.names import Finalizer
from hortus.domains.modules.types import MODULE_RELEASE_METAS
from hortus.kube.objects import Object
from hortus.testing.apiserver import TestServer

MODULES = ("connector", "warden")
Work = Callable[[KymaWorld], Awaitable[Callable[[], Awaitable[object]]]]


async def left(here: KymaWorld) -> list[Any]:
    """Manifests without identities and times, and the finalizers of the releases."""
    manifests = [
        (
            found["metadata"]["name"],
            found["metadata"]["labels"],
            found["metadata"]["annotations"],
            [owner["name"] for owner in found["metadata"]["ownerReferences"]],
            found["spec"],
        )
        for found in await here.manifests()
    ]
    releases = [
        (found["metadata"]["name"], found["metadata"].get("finalizers"))
        for found in (await here.client.list(MODULE_RELEASE_METAS, HOME)).items
    ]
    return [*sorted(manifests, key=str), *sorted(releases)]


async def installation(here: KymaWorld) -> Callable[[], Awaitable[object]]:
    for module in MODULES:
        await here.mandatory(module, "1.0.0")
    await here.kyma()

    async def done() -> None:
        for module in MODULES:
            await here.manifest(module)

    return done


async def installed(here: KymaWorld) -> None:
    """Both modules, and the finalizers of their releases."""
    until = await installation(here)
    async with here.controllers():
        await until()
        await held(here)


async def held(here: KymaWorld, *modules: str) -> None:
    """Returns when the releases have their finalizers."""
    for module in modules or MODULES:
        await here.until(
            lambda found: found["metadata"].get("finalizers") == [Finalizer.MANDATORY_MODULE],
            MODULE_RELEASE_METAS,
            module,
        )


async def upgrade(here: KymaWorld) -> Callable[[], Awaitable[object]]:
    await installed(here)
    for module in MODULES:
        await here.template(module, "1.1.0", mandatory=True)
        await here.client.patch(MODULE_RELEASE_METAS, module, {"spec": {"mandatory": {"version": "1.1.0"}}}, HOME)

    def is_new(found: Object) -> bool:
        return bool(found) and found["spec"]["version"] == "1.1.0"

    async def done() -> None:
        for module in MODULES:
            await here.manifest(module, is_new)

    return done


async def holding(here: KymaWorld) -> Callable[[], Awaitable[object]]:
    """The deletion controller sets its finalizers."""
    await installation(here)
    return lambda: held(here)


async def removal(here: KymaWorld) -> Callable[[], Awaitable[object]]:
    await installed(here)
    await here.client.delete(MODULE_RELEASE_METAS, MODULES[0], HOME)
    return lambda: here.until_gone(MODULE_RELEASE_METAS, MODULES[0])


@pytest.mark.parametrize(
    ("controller", "work", "least"),
    [
        (MANDATORY, installation, 2),
        (MANDATORY, upgrade, 2),
        (MANDATORY_DELETION, holding, 2),
        (MANDATORY_DELETION, removal, 2),
    ],
    ids=["installation", "upgrade", "finalizers", "removal"],
)
async def test_killed_after_any_call_the_end_is_the_same(
    server: TestServer, controller: str, work: Work, least: int
) -> None:
    expected: list[Any] | None = None
    for calls in range(-1, MOST_CALLS):
        async with kyma_world(server) as here:
            await here.cluster()
            until = await work(here)
            killer = Killer(controller, here.requests)
            killer.rest()
            done = asyncio.ensure_future(until())
            struck = calls >= 0 and await killed_at(killer, calls, here.controllers(), done)
            killer.rest()
            async with here.controllers():
                await done
                # The other modules and releases of the world are complete as well.
                await _settled(here, removed=work is removal)
            end = await left(here)
            expected = end if expected is None else expected
            assert end == expected, f"killed after call {calls + 1}"
            if calls >= 0 and not struck:
                assert calls >= least, "the killer missed the controller"
                return
    raise AssertionError(f"not over after {MOST_CALLS} calls")


async def _settled(here: KymaWorld, *, removed: bool) -> None:
    modules = MODULES[1:] if removed else MODULES
    for module in modules:
        found = await here.manifest(module)
        assert found["metadata"]["ownerReferences"][0]["name"] == NAME
    await held(here, *modules)
