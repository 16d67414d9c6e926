"""Puts the canary together for a process that has a `Manager`."""

from __future__ import annotations

from hortus.domains.canary import book
from hortus.domains.canary.controller import CanaryController, Clusters
from hortus.domains.canary.metrics import CanaryMetrics
from hortus.domains.canary.settings import Settings
from hortus.domains.canary.traces import Traces
from hortus.domains.clusters.types import RUNTIMES, Runtime
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.engine import (
    Cache,
    Change,
    EventRecorder,
    Every,
    Manager,
    Source,
    TypedCache,
    Watch,
    wire,
    without_managed_fields,
)
from hortus.engine.deputies import Deputies
from hortus.engine.leftovers import LeftoverRecorder
from hortus.kube import Client

NAME = "canary-controller"
"""The controller's name in metrics and logs."""


def add_controller(
    manager: Manager,
    *,
    client: Client,
    garden: Client,
    garden_namespace: str,
    shoots: Cache,
    secrets: Cache,
    clusters: Clusters,
    deputies: Deputies,
    leftovers: LeftoverRecorder,
    watched: str,
    settings: Settings,
) -> CanaryController:
    """Add it to `manager`. `watched` is the namespace of the other domains' caches, empty for all."""
    events = EventRecorder(client, component=NAME, clock=manager.clock)
    manager.add_server(events)
    wiring = wire(
        manager, CanaryController, client=client, events=events, namespace=settings.namespace, labels=book.SELECTOR
    )
    runtimes = manager.cache(RUNTIMES, namespace=watched, transform=without_managed_fields)
    connections = manager.cache(GARDENER_CLUSTERS, namespace=watched, transform=without_managed_fields)
    traces = Traces(
        client=client,
        garden=garden,
        garden_namespace=garden_namespace,
        runtimes=runtimes,
        clusters=connections,
        secrets=secrets,
        namespace=settings.namespace,
    )
    controller = CanaryController(
        wiring,
        runtimes=TypedCache(Runtime, runtimes),
        traces=traces,
        clusters=clusters,
        deputies=deputies,
        leftovers=leftovers,
        settings=settings,
    )
    CanaryMetrics(manager.registry, wiring.cache, controller.key)
    sources: list[Source] = [
        Watch(runtimes, to=controller.keys_of_runtime),
        *(Watch(cache, to=controller.keys_of_trace, when=_gone) for cache in (connections, secrets)),
        Watch(shoots, to=controller.keys_of_trace, when=_gone, awaited=False),
        Watch(wiring.cache.raw),
        Every(settings.period, controller.keys),  # before the first run there is no book that a watch could show
    ]
    manager.controller(NAME, controller, sources=sources)
    return controller


def _gone(change: Change) -> bool:
    return change.new is None
