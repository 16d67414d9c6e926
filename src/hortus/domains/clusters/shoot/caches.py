"""Registry caches: as a Runtime lists them, as clusters ask for them, and as Gardener's extension gets them.

The later Go system lists caches in the Runtime, the earlier one has a switch; the CRD admits both. The owner of a
cluster also owns the definitions in it. So this module is the one place that reads caches, which are plain objects of
any shape until they are checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from hortus.domains.clusters.shoot.context import Context
from hortus.domains.clusters.types import Runtime
from hortus.kube import Object
from hortus.schema import FieldError
from hortus.schema.problems import required, type_invalid

REGISTRY_CACHE: Final = "registry-cache"
PATH: Final = "spec.imageRegistryCache"

_FIELDS: Final[dict[str, tuple[str, ...] | None]] = {
    "remoteURL": None,
    "volume": ("size", "storageClassName"),
    "garbageCollection": ("ttl",),
    "secretReferenceName": None,
    "proxy": ("httpProxy", "httpsProxy"),
}
"""Fields of a cache that Gardener's extension takes; `http.tls` is not passed on."""


def is_cache(value: Any) -> bool:
    """True when this is one cache that can be handed on."""
    if not isinstance(value, dict) or not isinstance(value.get("upstream"), str) or not value["upstream"]:
        return False
    return not list(_shape_problems("", value))


def caches_of(runtime: Runtime, context: Context) -> list[Object]:
    """The registry caches that are wanted: listed in the Runtime itself, or only switched on there."""
    wanted = runtime.wanted.image_registry_cache
    if isinstance(wanted, list):
        return [entry["config"] for entry in wanted]
    return list(context.caches) if (wanted or {}).get("enabled") else []


def cache_problems(runtime: Runtime) -> Iterator[FieldError]:
    """Problems of `spec.imageRegistryCache`, for management clusters whose CRD is not ours."""
    wanted = runtime.wanted.image_registry_cache
    if isinstance(wanted, list):
        for index, entry in enumerate(wanted):
            yield from _entry_problems(f"{PATH}[{index}]", entry)
    elif wanted is not None and not isinstance(wanted, dict):
        yield type_invalid(PATH, wanted, "must be an object or a list of caches")


def registry_cache(runtime: Runtime, context: Context) -> Object | None:
    """The extension; None where no cache is wanted."""
    caches = caches_of(runtime, context)
    if not caches:
        return None
    return {
        "type": REGISTRY_CACHE,
        "disabled": False,
        "providerConfig": {
            "apiVersion": "registry.extensions.gardener.cloud/v1alpha3",
            "kind": "RegistryConfig",
            "caches": [_cache(cache) for cache in caches],
        },
    }


def _entry_problems(path: str, entry: Any) -> Iterator[FieldError]:
    config = entry.get("config") if isinstance(entry, dict) else None
    if not isinstance(config, dict):
        yield type_invalid(path, entry, "must be an object with the cache as config")
    elif not config.get("upstream"):
        yield required(f"{path}.config.upstream")
    else:
        yield from _shape_problems(f"{path}.config", config)


def _shape_problems(path: str, config: Object) -> Iterator[FieldError]:
    for name, inner in _FIELDS.items():
        value, wanted = config.get(name), str if inner is None else dict
        if value is not None and not isinstance(value, wanted):
            yield type_invalid(f"{path}.{name}", value, f"must be {'a text' if inner is None else 'an object'}")
    if not isinstance(config["upstream"], str):
        yield type_invalid(f"{path}.upstream", config["upstream"], "must be a text")


def _cache(cache: Object) -> Object:
    made: Object = {"upstream": cache["upstream"]}
    for name, inner in _FIELDS.items():
        value: Any = cache.get(name)
        if value is not None and inner is not None:
            value = {key: value[key] for key in inner if value.get(key) is not None}
        if value:
            made[name] = value
    return made
