"""Registry caches that a cluster's owner asks for inside the cluster reach its Runtime, and through it the Shoot."""

from __future__ import annotations

from typing import Any

from tests.domains.clusters.test_inside import custom_config_kind
from tests.domains.clusters.world import World

from hortus.domains.clusters.inside.caches import CACHE_CONFIGS, CUSTOM_CONFIGS
from hortus.engine.remote import SECRETS
from hortus.kube import Resource
from hortus.kube.objects import Object
from hortus.simulation.garden.workload import CRDS


async def secret_of(here: World, name: str = "rt-1", **labels: str) -> None:
    """The kubeconfig Secret as the GardenerCluster controller leaves it."""
    found = {"kyma-project.io/runtime-id": name, "operator.kyma-project.io/managed-by": "infrastructure-manager"}
    body: Object = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"kubeconfig-{name}"}}
    body["metadata"]["labels"] = {**found, **labels}
    await here.client.create(SECRETS, body, namespace=here.namespace)


async def ask(here: World, resource: Resource, name: str, spec: Object) -> Object:
    body = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name, "namespace": "default"},
    }
    return await here.inside.client.create(resource, {**body, "spec": spec})


def cache_of(runtime: Object) -> Any:
    return (runtime.get("spec") or {}).get("imageRegistryCache")


async def test_custom_configs_switch_the_cache_on_and_off_and_it_reaches_the_shoot(here: World) -> None:
    here.choices["custom_configs"] = True
    here.automatic = True
    await here.inside.client.create(CRDS, custom_config_kind())
    async with here.controlled():
        await here.create()
        await here.until_state("Ready")
        await secret_of(here)
        await here.advance(60)
        assert cache_of(await here.until("Runtime", "rt-1", lambda found: found)) is None
        await ask(here, CUSTOM_CONFIGS, "mine", {"caches": [{"upstream": "docker.io"}]})
        await here.advance(60)
        await here.until("Runtime", "rt-1", lambda found: cache_of(found) == {"enabled": True})
        shoot = await here.until_patched(2)
        [cache] = [found for found in shoot["spec"]["extensions"] if found["type"] == "registry-cache"]
        assert cache["providerConfig"]["caches"] == [{"upstream": "docker.io"}]
        await here.inside.client.delete(CUSTOM_CONFIGS, "mine", "default")
        await here.advance(120)
        await here.until("Runtime", "rt-1", lambda found: cache_of(found) == {"enabled": False})
        shoot = await here.until_patched(3)
        [cache] = [found for found in shoot["spec"]["extensions"] if found["type"] == "registry-cache"]
        assert cache["disabled"] is True


async def test_registry_cache_configs_are_listed_in_the_runtime(here: World) -> None:
    here.choices["cache_configs"] = True
    here.automatic = True
    await here.inside.client.create(CRDS, custom_config_kind("registrycacheconfigs", "RegistryCacheConfig"))
    made = await ask(here, CACHE_CONFIGS, "docker", {"upstream": "docker.io"})
    async with here.controlled():
        await here.create()
        await here.until_state("Ready")
        await secret_of(here)
        entry = {"name": "docker", "namespace": "default", "uid": made["metadata"]["uid"]}
        expected = [{**entry, "config": {"upstream": "docker.io"}}]
        await here.until("Runtime", "rt-1", lambda found: cache_of(found) == expected)
        await here.until_patched(2)
        await here.inside.client.delete(CACHE_CONFIGS, "docker", "default")
        await here.advance(120)
        listed = await here.until("Runtime", "rt-1", lambda found: cache_of(found) != expected)
        assert cache_of(listed) == []
        await here.until_patched(3)


async def test_secrets_of_others_and_of_runtimes_that_are_gone_are_passed_over(here: World) -> None:
    here.choices["custom_configs"] = True
    async with here.controlled():
        await secret_of(here, "gone")
        await secret_of(here, "theirs", **{"operator.kyma-project.io/managed-by": "somebody"})
        await here.rest()
        await here.advance(120)
        assert here.inside.visits == 0
