"""A Manifest that Hortus has half worked on can be continued by the Go system, whatever call was the last.

lifecycle-manager finds the objects of a module by `status.synced` alone. So at every moment the cluster must hold no
object of a module that the inventory does not list, with the finalizer and the marks by which the Go system goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest
from tests.domains.killing import MOST_CALLS, Killer, killed_at, sampled
from tests.domains.modules.manifests.test_kill import install, remove, upgrade
from tests.domains.modules.manifests.world import CONFIG_MAPS, CRDS, HOME, MODULES, SAMPLES, ModuleWorld, module_world

from hortus.domains.modules.names import Annotation, FieldOwner, Finalizer, Label
from hortus.domains.modules.types import MANIFESTS
from hortus.kube.errors import NotFound, NotServed
from hortus.kube.objects import Object
from hortus.testing.apiserver import TestServer

Work = Callable[[ModuleWorld], Awaitable[Callable[[], Awaitable[object]]]]


async def present(here: ModuleWorld) -> list[Object]:
    """The objects in the cluster that carry the mark of modules."""
    found = []
    for kind, namespace in ((CONFIG_MAPS, MODULES), (CRDS, "")):
        found += [
            obj
            for obj in (await here.inside.list(kind, namespace)).items
            if Label.MANAGED_BY in (obj["metadata"].get("labels") or {})
        ]
    return found


async def resources(here: ModuleWorld) -> list[Object]:
    """The default resource."""
    try:
        return (await here.inside.list(SAMPLES, MODULES)).items
    except NotServed:
        return []


async def check(here: ModuleWorld) -> None:
    """Fails where the Go system would forget an object, or release the Manifest before its objects are gone."""
    objects, made = await present(here), await resources(here)
    try:
        manifest = await here.client.get(MANIFESTS, "one-module", HOME)
    except NotFound:
        assert (objects, made) == ([], [])
        return
    listed = {(one["kind"], one["name"]) for one in (manifest.get("status") or {}).get("synced") or ()}
    finalizers = manifest["metadata"].get("finalizers") or []
    for obj in objects:
        assert (obj["kind"], obj["metadata"]["name"]) in listed
        assert Finalizer.MANIFEST in finalizers
        assert obj["metadata"]["annotations"][Annotation.OWNED_BY] == f"{HOME}/one-module"
        assert [one["manager"] for one in obj["metadata"]["managedFields"] if one["operation"] == "Apply"] == [
            FieldOwner.MODULE_RESOURCES
        ]
    if objects or made:
        assert manifest["metadata"]["annotations"][Annotation.SYNCED_OCI_REF]


@sampled
@pytest.mark.parametrize("work", [install, upgrade, remove])
async def test_the_inventory_lists_every_object_after_any_call(server: TestServer, work: Work, reads: int) -> None:
    for calls in range(MOST_CALLS):
        async with module_world(server) as here:
            here.flags = ["--manifest-requeue-busy-interval=10ms"]
            killer = Killer("manifest", here.requests, reads=reads, remote=True)
            killer.rest()
            done = asyncio.ensure_future((await work(here))())
            struck = await killed_at(killer, calls, here.controllers(), done)
            made = killer.calls
            killer.rest()
            await check(here)
            done.cancel()
            with suppress(asyncio.CancelledError):
                await done
            if not struck:
                assert made > 7, "the enumeration ended before anything happened"
                return
    raise AssertionError(f"not over after {MOST_CALLS} calls")
