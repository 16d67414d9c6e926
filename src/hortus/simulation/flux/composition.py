"""Puts the simulated Flux together for a process that has a `Manager` on the management cluster."""

from __future__ import annotations

from hortus.engine import Manager, Watch, generation_changed, without_managed_fields
from hortus.engine.predicates import annotation_changed
from hortus.kube import Client
from hortus.kube.objects import Object, ObjectKey, key_of
from hortus.simulation.flux.kinds import HELM_CONTROLLER, HELM_RELEASES, OCI_REPOSITORIES, REQUESTED, SOURCE_CONTROLLER
from hortus.simulation.flux.releases import BY_SOURCE, HelmController, source_of
from hortus.simulation.flux.settings import FluxSimulationSettings
from hortus.simulation.flux.sources import SourceController


def add_flux(manager: Manager, *, client: Client, settings: FluxSimulationSettings | None = None) -> HelmController:
    """Add both controllers. `client` reaches the cluster that `manager` watches, where the CRDs are installed."""
    chosen = settings or FluxSimulationSettings()
    releases = manager.cache(HELM_RELEASES, transform=without_managed_fields)
    repositories = manager.cache(OCI_REPOSITORIES, transform=without_managed_fields)
    releases.add_index(BY_SOURCE, source_of)
    sources = SourceController(client, repositories=repositories, settings=chosen, clock=manager.clock)
    controller = HelmController(
        client, releases=releases, repositories=repositories, sources=sources, settings=chosen, clock=manager.clock
    )
    asked = generation_changed | annotation_changed(REQUESTED)

    def of_source(repository: Object) -> list[ObjectKey]:
        return releases.keys_by(BY_SOURCE, str(key_of(repository)))

    manager.controller(SOURCE_CONTROLLER, sources, sources=[Watch(repositories, when=asked)], workers=chosen.workers)
    manager.controller(
        HELM_CONTROLLER,
        controller,
        sources=[Watch(repositories, to=of_source), controller.trigger, Watch(releases, when=asked)],
        workers=chosen.workers,
    )
    return controller
