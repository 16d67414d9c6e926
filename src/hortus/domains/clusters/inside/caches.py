"""Registry caches that a cluster's owner asked for inside it: by CustomConfigs, later by RegistryCacheConfigs (2.6).

The owner may replace the definitions of both kinds, so what has not the shape of a cache is passed over.
"""

from __future__ import annotations

from typing import Any, Final

from hortus.domains.clusters.shoot.caches import is_cache
from hortus.kube import Client
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, Resource

CUSTOM_CONFIGS: Final = Resource("core.kyma-project.io", "v1beta1", "customconfigs", "CustomConfig")
CACHE_CONFIGS: Final = Resource("core.kyma-project.io", "v1beta1", "registrycacheconfigs", "RegistryCacheConfig")


async def registry_caches(cluster: Client) -> tuple[Object, ...]:
    """The caches of all CustomConfigs, in order of their namespaces and names. Raises KubeError."""
    return tuple(
        cache for config in await _sorted(cluster, CUSTOM_CONFIGS) for cache in _listed(config) if is_cache(cache)
    )


async def asks_for_caches(cluster: Client) -> bool:
    """True when any CustomConfig lists a cache. Raises KubeError."""
    return any(_listed(config) for config in await _sorted(cluster, CUSTOM_CONFIGS))


async def cache_configs(cluster: Client) -> list[Object]:
    """The RegistryCacheConfigs whose spec is a cache, in order of their namespaces and names. Raises KubeError."""
    return [config for config in await _sorted(cluster, CACHE_CONFIGS) if is_cache(config.get("spec"))]


def _listed(config: Object) -> list[Any]:
    spec = config.get("spec")
    caches = spec.get("caches") if isinstance(spec, dict) else None
    return caches if isinstance(caches, list) else []


async def _sorted(cluster: Client, resource: Resource) -> list[Object]:
    """None where the cluster does not know the kind: nobody asked for a cache then."""
    try:
        found = (await cluster.list(resource)).items
    except NotFound:
        return []
    return sorted(found, key=lambda obj: (obj["metadata"].get("namespace", ""), obj["metadata"]["name"]))
