"""Puts the handover to Flux together for a process that has a `Manager`."""

from __future__ import annotations

from hortus.domains.stacks.flux.handover import CLUSTER_INDEX, MANAGER, FluxCaches, FluxHandover, clusters_of
from hortus.domains.stacks.flux.objects import HELM_RELEASES, REPOSITORIES, SELECTOR
from hortus.domains.stacks.flux.registry import ChartRegistry
from hortus.engine import Cache, Manager
from hortus.engine.indexes import managed_fields_of
from hortus.engine.kubeconfigs import SECRETS, sealed
from hortus.kube import Client

_OWN_FIELDS = managed_fields_of(MANAGER)


def add_handover(
    manager: Manager, *, client: Client, namespace: str, registry: ChartRegistry | None, addons: Cache
) -> FluxHandover | None:
    """The handover, with its caches; None without a registry from which Flux could fetch charts."""
    if registry is None:
        return None
    caches = FluxCaches(
        manager.cache(HELM_RELEASES, namespace=namespace, labels=SELECTOR, transform=_OWN_FIELDS),
        manager.cache(REPOSITORIES, namespace=namespace, labels=SELECTOR, transform=_OWN_FIELDS),
        manager.cache(SECRETS, namespace=namespace, labels=SELECTOR, transform=sealed),
    )
    for cache in caches:
        cache.add_index(CLUSTER_INDEX, clusters_of)
    return FluxHandover(client, caches=caches, registry=registry, addons=addons)
