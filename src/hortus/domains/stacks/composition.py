"""Puts the controllers of this domain together for a process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hortus.domains import ProcessContext
from hortus.domains.stacks import settings as chosen
from hortus.domains.stacks.addons.composition import add_addons
from hortus.domains.stacks.addons.rendering import AddonRendering
from hortus.domains.stacks.admission.lookups import ServerLookups
from hortus.domains.stacks.admission.reviews import AdmissionReviews
from hortus.domains.stacks.catalog.composition import add_catalog
from hortus.domains.stacks.clusters import cluster_cache
from hortus.domains.stacks.flux import settings as flux
from hortus.domains.stacks.flux.registry import ChartRegistry
from hortus.domains.stacks.hooks import settings as hooks
from hortus.domains.stacks.hooks.composition import add_configured, endpoint_of
from hortus.domains.stacks.metrics import RenderMetrics
from hortus.domains.stacks.openstack.composition import add_openstack
from hortus.domains.stacks.openstack.settings import openstack_settings
from hortus.domains.stacks.releases import Library, open_library
from hortus.engine import EventRecorder
from hortus.render.helm import BuiltinRenderer, ChartRenderer

COMPONENT: Final = "clusterstack-controller"
"""The source of events, as in the Go system."""
PROVIDER_COMPONENT: Final = "cspo-controller"
"""The same of the OpenStack provider."""


def add_to(process: ProcessContext) -> None:
    """Add the controllers to a process. Raises FlagError."""
    settings, hooking = chosen.from_flags(process.values), hooks.from_flags(process.values)
    manager, client, namespace = process.manager, process.client, settings.namespace or process.namespace
    library = open_library(settings.source, clock=manager.clock)
    manager.on_stop(library.close)
    renderer = BuiltinRenderer()
    manager.on_stop(renderer.close)
    manager.registry.register(RenderMetrics(renderer.counts))
    events = EventRecorder(client, component=COMPONENT, clock=manager.clock)
    manager.add_server(events)
    clusters = cluster_cache(manager, client, namespace=namespace)
    add_catalog(
        manager,
        client=client,
        namespace=namespace,
        clusters=clusters,
        library=library,
        renderer=renderer,
        events=events,
        settings=settings,
        deputies=process.deputies,
        leftovers=process.leftovers,
    )
    AdmissionReviews(ServerLookups(client, namespace)).add_to(process.webhooks)
    charts = _charts(process.values, hooking, releases=library, renderer=renderer)
    add_addons(
        manager,
        client=client,
        namespace=namespace,
        clusters=clusters,
        pool=process.pool,
        releases=library,
        renderer=renderer,
        events=events,
        workers=hooking.addon_workers,
        gate=process.gate,
        deputies=process.deputies,
        inventory=hooking.inventory,
        flux=flux.from_flags(process.values),
        charts=charts,
    )
    add_configured(manager, client=client, releases=library, settings=hooking, charts=charts)
    _add_provider(process, library, resync=settings.resync)


def _charts(
    values: Mapping[str, Any], hooking: hooks.HookSettings, *, releases: Library, renderer: ChartRenderer
) -> ChartRegistry | None:
    """The registry of charts for Flux, where Flux is offered."""
    if not flux.from_flags(values).offered:
        return None
    return ChartRegistry(endpoint_of(hooking).host, releases=releases, rendering=AddonRendering(renderer))


def _add_provider(process: ProcessContext, library: Library, *, resync: float) -> None:
    """Add the controllers of node images in OpenStack clouds, unless another provider is to have them."""
    settings = openstack_settings(process.values)
    if not settings.is_served:
        return
    manager = process.manager
    events = EventRecorder(process.client, component=PROVIDER_COMPONENT, clock=manager.clock)
    manager.add_server(events)
    add_openstack(
        manager,
        client=process.client,
        events=events,
        library=library,
        settings=settings,
        resync=resync,
        deputies=process.deputies,
        leftovers=process.leftovers,
        namespace=process.namespace,
    )
