"""Registry caches that a cluster's owner asked for inside it: by CustomConfigs, later by RegistryCacheConfigs.

The owner may replace the definitions of both kinds, so what has not the shape of a cache is passed over.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from hortus.domains.clusters.reading import free_spec
from hortus.domains.clusters.shoot.caches import is_cache
from hortus.kube import Client
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, Resource, key_of, shaped

CUSTOM_CONFIGS: Final = Resource("core.kyma-project.io", "v1beta1", "customconfigs", "CustomConfig")
CACHE_CONFIGS: Final = Resource("core.kyma-project.io", "v1beta1", "registrycacheconfigs", "RegistryCacheConfig")


class _Caches(msgspec.Struct):
    caches: list[Any] = []


class _CustomConfig(msgspec.Struct):
    spec: _Caches


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
    return [config for config in await _sorted(cluster, CACHE_CONFIGS) if is_cache(free_spec(config))]


def _listed(config: Object) -> list[Any]:
    found = shaped(config, _CustomConfig)
    return found.spec.caches if found is not None else []


async def _sorted(cluster: Client, resource: Resource) -> list[Object]:
    """All objects; none where the cluster does not know the kind, since nobody asked for a cache then."""
    try:
        found = (await cluster.list(resource)).items
    except NotFound:
        return []
    return sorted(found, key=key_of)
