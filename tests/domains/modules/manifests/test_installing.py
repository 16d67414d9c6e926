"""2.2.1: the reconcile of a Manifest that is wanted."""

from __future__ import annotations

from tests.domains.modules.manifests.world import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    MODULES,
    ModuleWorld,
    config_map,
    deployment,
    is_ready,
    operation,
)


async def test_a_module_without_workloads_becomes_ready(here: ModuleWorld) -> None:
    await here.manifest(here.layers.push(config_map("one", a="1")))
    async with here.controllers():
        await here.until(is_ready)
    found = await here.read(CONFIG_MAPS, "one", MODULES)
    assert found is not None
    assert found["data"] == {"a": "1"}


async def test_a_module_is_ready_when_its_workload_is_available(here: ModuleWorld) -> None:
    await here.manifest(here.layers.push(config_map("one", a="1"), deployment()))
    async with here.controllers():
        await here.until(lambda obj: operation(obj) == "waiting for resources to become ready")
        await here.report_deployment("operator", "True", "ReplicaSetUpdated", "False")
        await here.become_available("operator")
        ready = await here.until(is_ready)
    assert await here.read(DEPLOYMENTS, "operator", MODULES) is not None
    assert ready["status"]["lastOperation"]["operation"] == "resources are ready"
