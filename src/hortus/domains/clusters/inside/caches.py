"""Registry caches that a cluster's owner asked for inside it: by CustomConfigs, later by RegistryCacheConfigs (2.6)."""

from __future__ import annotations

from typing import Final

from hortus.kube import Client
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, Resource

CUSTOM_CONFIGS: Final = Resource("core.kyma-project.io", "v1beta1", "customconfigs", "CustomConfig")
CACHE_CONFIGS: Final = Resource("core.kyma-project.io", "v1beta1", "registrycacheconfigs", "RegistryCacheConfig")


async def registry_caches(cluster: Client) -> tuple[Object, ...]:
    """The caches of all CustomConfigs, in order of their namespaces and names. Raises KubeError."""
    return tuple(
        cache
        for config in await custom_configs(cluster)
        for cache in (config.get("spec") or {}).get("caches") or ()
        if cache.get("upstream")
    )


async def custom_configs(cluster: Client) -> list[Object]:
    return await _sorted(cluster, CUSTOM_CONFIGS)


async def cache_configs(cluster: Client) -> list[Object]:
    return await _sorted(cluster, CACHE_CONFIGS)


async def _sorted(cluster: Client, resource: Resource) -> list[Object]:
    """None where the cluster does not know the kind: nobody asked for a cache then."""
    try:
        found = (await cluster.list(resource)).items
    except NotFound:
        return []
    return sorted(found, key=lambda obj: (obj["metadata"].get("namespace", ""), obj["metadata"]["name"]))
