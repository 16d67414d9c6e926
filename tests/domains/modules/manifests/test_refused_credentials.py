"""A cluster that takes the credential no more: its modules are in Error, and go on with a renewed one."""

from __future__ import annotations

from tests.domains.modules.manifests.world import (
    DEPLOYMENTS,
    HOME,
    MODULES,
    ModuleWorld,
    config_map,
    deployment,
    is_ready,
    operation,
    state,
)

from hortus.domains.modules.types import MANIFESTS


async def test_expired_credentials_are_an_error_until_they_are_renewed(here: ModuleWorld) -> None:
    """2.2.1 step 10: one error for all objects; with a renewed Secret the work goes on, and no object is made again."""
    here.flags = ["--failure-base-delay=50ms", "--failure-max-delay=200ms"]
    await here.manifest(here.layers.push(deployment()))
    async with here.controllers():
        await here.until_inside(DEPLOYMENTS, "operator")
        await here.become_available("operator")
        await here.until(is_ready)
    before = await here.read(DEPLOYMENTS, "operator", MODULES)
    kubeconfig, expired = (here.server.kubeconfig_dict(f"{here.name}-one") for _ in range(2))
    expired["users"][0]["user"] = {"token": "expired-token"}
    await here.lead_to(expired)
    await here.move(here.layers.push(deployment(), config_map("new")))
    async with here.controllers():
        failed = await here.until(lambda obj: state(obj) == "Error")
        assert operation(failed).startswith("cluster of Kyma one: ")
        assert "expired-token" not in operation(failed)
        await here.lead_to(kubeconfig)
        await here.until(lambda obj: is_ready(obj) and len(obj["status"]["synced"]) == 2)
    after = await here.read(DEPLOYMENTS, "operator", MODULES)
    assert before is not None
    assert after is not None
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert (await here.client.get(MANIFESTS, "one-module", HOME))["metadata"]["uid"] == failed["metadata"]["uid"]
