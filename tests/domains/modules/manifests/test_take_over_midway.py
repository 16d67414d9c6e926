"""A Manifest that the Go system has half worked on is brought to its end, whatever write was its last.

The writes are lifecycle-manager's, in its order and by its field managers: objects are applied before the inventory
lists them, the default resource comes after that, finalizers are removed one by one. No object is made again, and a
cluster gets nothing back that a removal has deleted.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from tests.domains.modules.manifests.test_take_over import go_applies
from tests.domains.modules.manifests.world import (
    CONFIG_MAPS,
    CRDS,
    DEPLOYMENTS,
    HOME,
    MODULES,
    SAMPLES,
    ModuleWorld,
    config_map,
    deployment,
    is_ready,
    sample,
    sample_definition,
)

from hortus.domains.modules.manifests.rendering import id_of
from hortus.domains.modules.names import Annotation, FieldOwner, Finalizer, Label
from hortus.domains.modules.types import MANIFESTS
from hortus.engine.applysets import readiness
from hortus.kube import Resource
from hortus.kube.errors import NotServed
from hortus.kube.objects import Object
from hortus.testing import wait_for

Call = Callable[[], Awaitable[object]]
MODULE = [sample_definition(), config_map("one", a="1"), deployment()]
DEFINITION = f"{SAMPLES.plural}.{SAMPLES.group}"
FINALIZERS = [Finalizer.MANIFEST, Finalizer.LABEL_REMOVAL]
THEN = "2026-01-01T00:00:00Z"
_CONDITIONS = {
    "Resources": ("ResourcesAvailable", "resources not parsed", "resources are parsed and ready for use"),
    "Installation": ("Ready", "installation is not ready", "installation is ready and resources can be used"),
    "ModuleCR": ("ModuleCRCreated", "module CR is not created", "module CR was created"),
}


class GoManifests:
    """lifecycle-manager's controller of Manifests at work on `one-module`."""

    def __init__(self, here: ModuleWorld) -> None:
        self._here = here
        self.objects = MODULE
        self._true: set[str] = set()
        self._synced: list[Object] = []

    def installation(self, ref: str) -> list[Call]:
        return [
            lambda: self._status("Processing", "object has an empty state"),
            lambda: self._finalizers(*FINALIZERS, manager=FieldOwner.MODULE_RESOURCES),
            lambda: self._note(ref),
            *(lambda obj=obj: self._apply(obj) for obj in self.objects),
            self._list,
            self._create_resource,
            lambda: self._finalizers(Finalizer.CUSTOM_RESOURCE, manager=Finalizer.CUSTOM_RESOURCE),
            lambda: self._here.become_available("operator"),
            lambda: self._status("Ready", "resources are ready", "Resources", "Installation", "ModuleCR"),
        ]

    def upgrade(self, ref: str, *, old: str, new: Object) -> list[Call]:
        """`old` leaves the module, and `new` comes."""
        self.objects = [*MODULE, new]
        return [
            lambda: self._delete(CONFIG_MAPS, old),
            lambda: self._apply(new),
            self._list,
            lambda: self._note(ref),
            lambda: self._status("Ready", "resources are ready"),
        ]

    def removal(self) -> list[Call]:
        return [
            lambda: self._status("Deleting", "waiting for module crs deletion"),
            lambda: self._delete(SAMPLES, "default-sample"),
            lambda: self._delete(CONFIG_MAPS, "one"),
            lambda: self._delete(DEPLOYMENTS, "operator"),
            lambda: self._delete(CRDS, DEFINITION, ""),
            lambda: self._keep_finalizers(*FINALIZERS),
            lambda: self._keep_finalizers(Finalizer.LABEL_REMOVAL),
        ]

    def handing_over(self) -> list[Call]:
        return [
            *(lambda kind=kind, name=name: self._unlabel(kind, name) for kind, name in OBJECTS),
            lambda: self._keep_finalizers(Finalizer.MANIFEST, Finalizer.CUSTOM_RESOURCE),
            lambda: self._here.client.delete(MANIFESTS, "one-module", HOME),
        ]

    # Its writes.

    async def _status(self, state: str, operation: str, *true: str) -> None:
        self._true |= set(true)
        live = await self._here.client.get(MANIFESTS, "one-module", HOME)
        conditions = [
            {
                "type": kind,
                "status": "True" if kind in self._true else "False",
                "reason": reason,
                "message": done if kind in self._true else missing,
                "observedGeneration": live["metadata"]["generation"],
                "lastTransitionTime": THEN,
            }
            for kind, (reason, missing, done) in _CONDITIONS.items()
        ]
        status: dict[str, Any] = {
            "state": state,
            "lastOperation": {"operation": operation, "lastUpdateTime": THEN},
            "conditions": conditions,
            "synced": self._synced,
        }
        await self._patch({"status": status}, FieldOwner.MODULE_RESOURCES, subresource="status")

    async def _list(self) -> None:
        self._synced = [id_of(obj)._asdict() for obj in self.objects]
        await self._status("Processing", "resource syncTarget state diff detected", "Resources")

    async def _note(self, ref: str) -> None:
        patch = {"metadata": {"annotations": {Annotation.SYNCED_OCI_REF: ref}}}
        await self._here.client.patch(MANIFESTS, "one-module", patch, HOME, field_manager="manager")

    async def _finalizers(self, *names: str, manager: str) -> None:
        await self._patch({"metadata": {"finalizers": list(names)}}, manager)

    async def _keep_finalizers(self, *names: str) -> None:
        live = await self._here.client.get(MANIFESTS, "one-module", HOME)
        live["metadata"]["finalizers"] = list(names)
        await self._here.client.replace(MANIFESTS, live, field_manager="manager")

    async def _patch(self, patch: Object, manager: str, *, subresource: str = "") -> None:
        named = {"name": "one-module", "namespace": HOME}
        config = {**patch, "metadata": {**patch.get("metadata", {}), **named}}
        await self._here.client.apply(MANIFESTS, config, field_manager=manager, subresource=subresource)

    async def _apply(self, obj: Object) -> None:
        await go_applies(self._here.inside, [obj])
        if obj["kind"] == CRDS.kind:
            await wait_for(self._here.inside, CRDS, DEFINITION, until=lambda found: readiness(found).ready)

    async def _create_resource(self) -> None:
        await self._here.inside.create(SAMPLES, sample(), field_manager=Finalizer.CUSTOM_RESOURCE)
        await self._status("Processing", "resources are parsed and ready for use", "ModuleCR")

    async def _delete(self, resource: Resource, name: str, namespace: str = MODULES) -> None:
        await self._here.inside.delete(resource, name, namespace)

    async def _unlabel(self, resource: Resource, name: str) -> None:
        namespace = MODULES if resource.namespaced else ""
        live = await self._here.inside.get(resource, name, namespace)
        del live["metadata"]["labels"][Label.MANAGED_BY]
        await self._here.inside.replace(resource, live, field_manager="manager")


OBJECTS = ((CRDS, DEFINITION), (CONFIG_MAPS, "one"), (DEPLOYMENTS, "operator"))
"""The objects that the inventory lists."""


async def found(here: ModuleWorld) -> dict[str, Object]:
    """The objects of the module that the cluster has, with the default resource."""
    present = {}
    for kind, name in (*OBJECTS, (SAMPLES, "default-sample")):
        try:
            obj = await here.read(kind, name, MODULES if kind.namespaced else "")
        except NotServed:
            continue
        if obj is not None:
            present[f"{kind.kind} {name}"] = obj
    return present


async def uids(here: ModuleWorld) -> dict[str, str]:
    return {key: obj["metadata"]["uid"] for key, obj in (await found(here)).items()}


async def run(calls: Sequence[Call]) -> None:
    for call in calls:
        await call()


async def manifest(here: ModuleWorld, *objects: Object) -> str:
    """A Manifest of the Kyma controller; returns the reference of its layer."""
    here.flags = ["--manifest-requeue-busy-interval=50ms"]
    ref = here.layers.push(*MODULE, *objects)
    await here.manifest(ref, spec={"resource": sample()})
    return ref


async def installed(here: ModuleWorld, *objects: Object) -> GoManifests:
    """A module that the Go system has installed, with further objects."""
    ref = await manifest(here, *objects)
    go = GoManifests(here)
    go.objects = [*MODULE, *objects]
    await run(go.installation(ref))
    await here.list_in_status("one-module")
    return go


@pytest.mark.parametrize("writes", range(12))
async def test_an_installation_is_continued_after_any_write(here: ModuleWorld, writes: int) -> None:
    go = GoManifests(here)
    calls = go.installation(await manifest(here))
    assert len(calls) == 11
    await run(calls[:writes])
    before = await uids(here)
    async with here.controllers():
        await here.until_inside(DEPLOYMENTS, "operator")
        await here.become_available("operator")
        done = await here.until(lambda obj: is_ready(obj) and len(obj["status"]["synced"]) == len(MODULE))
    after = await uids(here)
    assert {key: after.get(key) for key in before} == before
    assert len(after) == len(MODULE) + 1
    assert set(done["metadata"]["finalizers"]) == {*FINALIZERS, Finalizer.CUSTOM_RESOURCE}


@pytest.mark.parametrize("writes", range(6))
async def test_an_upgrade_is_continued_after_any_write(here: ModuleWorld, writes: int) -> None:
    go = await installed(here, config_map("old"))
    before = await uids(here)
    new = config_map("new")
    ref = here.layers.push(*MODULE, new)
    await here.move(ref)
    calls = go.upgrade(ref, old="old", new=new)
    assert len(calls) == 5
    await run(calls[:writes])
    made = await here.read(CONFIG_MAPS, "new", MODULES)
    async with here.controllers():
        done = await here.until(
            lambda obj: (
                is_ready(obj)
                and obj["metadata"]["annotations"][Annotation.SYNCED_OCI_REF] == ref
                and "new" in str(obj["status"]["synced"])
            )
        )
    assert await uids(here) == before
    assert {one["name"] for one in done["status"]["synced"]} == {DEFINITION, "one", "operator", "new"}
    assert await here.read(CONFIG_MAPS, "old", MODULES) is None
    last = await here.read(CONFIG_MAPS, "new", MODULES)
    assert last is not None
    assert made is None or made["metadata"]["uid"] == last["metadata"]["uid"]


@pytest.mark.parametrize("writes", range(8))
async def test_a_removal_is_continued_after_any_write(here: ModuleWorld, writes: int) -> None:
    go = await installed(here)
    await here.client.delete(MANIFESTS, "one-module", HOME)
    assert len(go.removal()) == 7
    await run(go.removal()[:writes])
    async with here.controllers():
        await here.until_gone()
    assert await found(here) == {}
    assert [one for one in here.requests.answers if one[1:] == ("remote", "201")] == []


@pytest.mark.parametrize("writes", range(6))
async def test_a_handing_over_is_continued_after_any_write(here: ModuleWorld, writes: int) -> None:
    go = await installed(here)
    before = await uids(here)
    annotation = {"metadata": {"annotations": {Annotation.IS_UNMANAGED: "true"}}}
    await here.client.patch(MANIFESTS, "one-module", annotation, HOME)
    assert len(go.handing_over()) == 5
    await run(go.handing_over()[:writes])
    async with here.controllers():
        await here.until_gone()
    assert await uids(here) == before
    for key, obj in (await found(here)).items():
        assert Label.MANAGED_BY not in (obj["metadata"].get("labels") or {}), key
