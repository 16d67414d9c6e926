"""Puts the controllers of this domain together for a process."""

from __future__ import annotations

import structlog

from hortus.domains import ProcessContext
from hortus.domains.modules import own
from hortus.domains.modules import settings as chosen
from hortus.domains.modules.accepted import ineffective
from hortus.domains.modules.kyma.composition import add_controllers, add_own_controllers
from hortus.domains.modules.kyma.parts import caches_of, clusters_of
from hortus.domains.modules.kyma.seams import AbsentAgents, Agents
from hortus.domains.modules.manifests.composition import add_controller as add_manifests
from hortus.domains.modules.metrics import RequeueMetrics
from hortus.domains.modules.names import CONTROL_NAMESPACE
from hortus.domains.modules.registry import open_registry
from hortus.domains.modules.sources import ModuleSources
from hortus.domains.modules.storedversions import add_stored_versions
from hortus.domains.modules.watching import settings as watching
from hortus.domains.modules.watching.composition import add_watcher
from hortus.engine.sources import Source

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def add_to(process: ProcessContext) -> None:
    """Add the controllers to a process. Raises FlagError."""
    for flag in ineffective(process.values):
        _log.warning("a flag has no effect", flag=f"--{flag.name}", value=flag.value, reason=flag.reason)
    dropped = chosen.from_flags(process.values).dropped_versions
    add_stored_versions(process.manager, process.client, dropped)
    if process.values[own.FLAG]:
        _add_many(process)
    else:
        _add_own(process)


def _sources(process: ProcessContext, settings: chosen.Settings, namespace: str) -> ModuleSources:
    manager = process.manager
    return ModuleSources(
        open_registry(manager, settings.registry, client=process.client, namespace=namespace),
        hosts=settings.registry.hosts,
        clock=manager.clock,
        revalidation=settings.registry.revalidation,
    )


def _add_own(process: ProcessContext) -> None:
    """The in-cluster form: everything is in the namespace of modules."""
    settings = chosen.from_flags(process.values)
    manager, client, namespace = process.manager, process.client, settings.sync_namespace
    registry = _sources(process, settings, namespace)
    requeues = RequeueMetrics(manager.registry)
    add_own_controllers(
        manager,
        client=client,
        namespace=namespace,
        components=registry,
        agents=AbsentAgents(namespace),
        leftovers=process.leftovers,
        requeues=requeues,
        gate=process.gate,
        settings=settings,
    )
    add_manifests(
        manager,
        client=client,
        namespace=namespace,
        clusters=own.OwnCluster(process.deputies.client(namespace)),
        layers=registry,
        deputies=process.deputies,
        leftovers=process.leftovers,
        requeues=requeues,
        settings=settings,
    )


def _add_many(process: ProcessContext) -> None:
    settings, watcher = chosen.from_flags(process.values), watching.from_flags(process.values)
    manager, client = process.manager, process.client
    namespace = process.namespace or CONTROL_NAMESPACE
    clusters = clusters_of(manager, process.pool, namespace, process.deputies)
    registry = _sources(process, settings, namespace)
    requeues = RequeueMetrics(manager.registry)
    agents: Agents = AbsentAgents(settings.sync_namespace)
    sources: list[Source] = []
    if watcher.enabled:
        kymas = caches_of(manager, namespace).kymas
        parts = add_watcher(manager, client=client, kymas=kymas, deputies=process.deputies, settings=watcher)
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
        deputies=process.deputies,
        leftovers=process.leftovers,
        requeues=requeues,
        settings=settings,
    )
