"""Puts the controllers of this domain together for a process."""

from __future__ import annotations

from hortus.domains import ProcessContext
from hortus.domains.modules import settings as chosen
from hortus.domains.modules.kyma.composition import add_controllers, caches_of, clusters_of
from hortus.domains.modules.kyma.seams import AbsentAgents, Agents
from hortus.domains.modules.manifests.composition import add_controller as add_manifests
from hortus.domains.modules.metrics import RequeueMetrics
from hortus.domains.modules.names import CONTROL_NAMESPACE
from hortus.domains.modules.registry import open_registry
from hortus.domains.modules.watching import settings as watching
from hortus.domains.modules.watching.composition import add_watcher
from hortus.engine.sources import Source


def add_to(process: ProcessContext) -> None:
    """Add the controllers to a process. Raises FlagError."""
    settings, watcher = chosen.from_flags(process.values), watching.from_flags(process.values)
    manager, client = process.manager, process.client
    namespace = process.namespace or CONTROL_NAMESPACE
    clusters = clusters_of(manager, process.pool, namespace)
    registry = open_registry(manager, settings.registry, client=client, namespace=namespace)
    requeues = RequeueMetrics(manager.registry)
    agents: Agents = AbsentAgents(settings.sync_namespace)
    sources: list[Source] = []
    if watcher.enabled:
        kymas = caches_of(manager, namespace).kymas
        parts = add_watcher(manager, client=client, kymas=kymas, settings=watcher)
        agents, sources = parts.installer, [*parts.sources]
    add_controllers(
        manager,
        client=client,
        namespace=namespace,
        clusters=clusters,
        components=registry,
        agents=agents,
        leftovers=process.leftovers,
        requeues=requeues,
        gate=process.gate,
        settings=settings,
        sources=sources,
    )
    add_manifests(
        manager,
        client=client,
        namespace=namespace,
        clusters=clusters,
        layers=registry,
        leftovers=process.leftovers,
        requeues=requeues,
        settings=settings,
    )
