"""A control plane of the Go system is continued without one object made again, and can go back."""

from __future__ import annotations

from typing import Any

from tests.domains.modules.manifests.world import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    HOME,
    MODULES,
    ModuleWorld,
    config_map,
    deployment,
    is_ready,
    sample,
    sample_definition,
)

from hortus.domains.modules.manifests.rendering import id_of
from hortus.domains.modules.manifests.transforms import Transformation, transform
from hortus.domains.modules.names import Annotation, FieldOwner, Finalizer
from hortus.domains.modules.types import MANIFESTS
from hortus.engine.applysets import DiscoveredKinds
from hortus.engine.applysets.resources import gvk_of
from hortus.kube import Client
from hortus.kube.objects import Object

MODULE = [config_map("one", a="1"), deployment()]


async def go_applies(inside: Client, objects: list[Object]) -> list[Object]:
    """The objects as the Go system applies them: no order, by force, as its manager."""
    kinds = DiscoveredKinds(inside)
    made = []
    for obj in transform([{**obj, "metadata": dict(obj["metadata"])} for obj in objects], GIVEN):
        resource = await kinds.resource(gvk_of(obj), fresh=True)
        made.append(await inside.apply(resource, obj, field_manager=FieldOwner.MODULE_RESOURCES))
    return made


GIVEN = Transformation(name="one-module", namespace=HOME)


async def go_installs(here: ModuleWorld, ref: str, objects: list[Object], **status: Any) -> None:
    """The Manifest and the cluster as the Go system leaves them."""
    made = await here.manifest(ref, annotations={Annotation.SYNCED_OCI_REF: ref})
    named = {"name": "one-module", "namespace": HOME}
    finalizers = [Finalizer.MANIFEST, Finalizer.LABEL_REMOVAL]
    await here.client.apply(
        MANIFESTS, {"metadata": {**named, "finalizers": finalizers}}, field_manager=FieldOwner.MODULE_RESOURCES
    )
    await go_applies(here.inside, objects)

    def condition(kind: str, reason: str, message: str) -> Object:
        return {
            "type": kind,
            "status": "True",
            "reason": reason,
            "message": message,
            "observedGeneration": made["metadata"]["generation"],
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }

    await here.client.apply(
        MANIFESTS,
        {
            "metadata": named,
            "status": {
                "state": "Ready",
                "lastOperation": {"operation": "resources are ready", "lastUpdateTime": "2026-01-01T00:00:00Z"},
                "conditions": [
                    condition("Resources", "ResourcesAvailable", "resources are parsed and ready for use"),
                    condition("Installation", "Ready", "installation is ready and resources can be used"),
                ],
                "synced": [id_of(obj)._asdict() for obj in objects],
                **status,
            },
        },
        field_manager=FieldOwner.MODULE_RESOURCES,
        subresource="status",
    )


async def test_a_module_at_rest_is_taken_over_without_a_write(here: ModuleWorld) -> None:
    await go_installs(here, here.layers.push(*MODULE), MODULE)
    await here.become_available("operator")
    before = await here.client.get(MANIFESTS, "one-module", HOME)
    async with here.controllers():
        await here.until_at_rest()
    assert here.requests.writes == []
    assert await here.client.get(MANIFESTS, "one-module", HOME) == before


async def test_an_upgrade_under_way_is_continued_and_keeps_what_stays(here: ModuleWorld) -> None:
    await go_installs(here, here.layers.push(*MODULE, config_map("old")), [*MODULE, config_map("old")])
    kept = await here.read(CONFIG_MAPS, "one", MODULES)
    operator = await here.read(DEPLOYMENTS, "operator", MODULES)
    second = here.layers.push(*MODULE, config_map("new"))
    await here.move(second)
    await here.client.patch(MANIFESTS, "one-module", {"status": {"state": "Processing"}}, HOME, subresource="status")
    async with here.controllers():
        await here.become_available("operator")
        done = await here.until(lambda obj: is_ready(obj) and len(obj["status"]["synced"]) == 3)
    assert {one["name"] for one in done["status"]["synced"]} == {"one", "operator", "new"}
    assert await here.read(CONFIG_MAPS, "old", MODULES) is None
    assert await here.read(CONFIG_MAPS, "one", MODULES) == kept
    now = await here.read(DEPLOYMENTS, "operator", MODULES)
    assert operator is not None
    assert now is not None
    assert now["metadata"]["uid"] == operator["metadata"]["uid"]


async def test_a_deletion_under_way_is_continued(here: ModuleWorld) -> None:
    await go_installs(here, here.layers.push(*MODULE), MODULE, state="Deleting")
    await here.client.delete(MANIFESTS, "one-module", HOME)
    async with here.controllers():
        await here.until_gone()
    assert await here.read(DEPLOYMENTS, "operator", MODULES) is None
    assert await here.read(CONFIG_MAPS, "one", MODULES) is None


async def test_the_go_system_finds_nothing_to_change_after_us(here: ModuleWorld) -> None:
    objects = [sample_definition(), *MODULE]
    await here.manifest(here.layers.push(*objects), spec={"resource": sample()})
    async with here.controllers():
        await here.until(lambda obj: obj.get("status", {}).get("state") == "Processing" and "ModuleCR" in str(obj))
        await here.until_inside(DEPLOYMENTS, "operator")
        await here.become_available("operator")
        ready = await here.until(is_ready)
        await here.until_at_rest()
    before = [
        await here.inside.get(CONFIG_MAPS, "one", MODULES),
        await here.inside.get(DEPLOYMENTS, "operator", MODULES),
    ]
    after = await go_applies(here.inside, objects)
    assert after[1:] == before
    assert [id_of(obj)._asdict() for obj in objects] == sorted(
        ready["status"]["synced"], key=lambda one: [id_of(obj).name for obj in objects].index(one["name"])
    )
