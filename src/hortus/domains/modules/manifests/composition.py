"""Puts the Manifest controller together for a process that has a `Manager`."""

from __future__ import annotations

from hortus.domains.modules.clusters import KymaClusters
from hortus.domains.modules.manifests.controller import ManifestController
from hortus.domains.modules.manifests.installing import Installing
from hortus.domains.modules.manifests.metrics import ManifestMetrics
from hortus.domains.modules.manifests.removal import ModuleRemoval
from hortus.domains.modules.manifests.rendering import LayerSource, Rendering
from hortus.domains.modules.manifests.resting import Resting
from hortus.domains.modules.manifests.secrets import InjectedSecrets
from hortus.domains.modules.manifests.watches import ModuleWatches
from hortus.domains.modules.metrics import RequeueMetrics
from hortus.domains.modules.names import Annotation, Label
from hortus.domains.modules.settings import Settings
from hortus.domains.modules.types import KYMAS, Kyma
from hortus.engine import (
    Backoff,
    Cache,
    EventRecorder,
    Manager,
    TypedCache,
    Watch,
    spec_or_metadata_changed,
    wire,
    without_managed_fields,
)
from hortus.engine.indexes import by_annotation, by_label
from hortus.engine.leftovers import LeftoverRecorder
from hortus.kube import Client
from hortus.kube.objects import ObjectKey

NAME = "manifest"
"""The controller's name in metrics, logs and events."""
BACKOFF = Backoff(first=5.0, cap=30.0)
"""failure-base-delay and failure-max-delay of the Go system."""


def add_controller(
    manager: Manager,
    *,
    client: Client,
    namespace: str,
    clusters: KymaClusters,
    layers: LayerSource,
    leftovers: LeftoverRecorder,
    requeues: RequeueMetrics,
    settings: Settings,
) -> ManifestController:
    """Add the controller to `manager`. `client` is the control plane, `clusters` leads into the others."""
    events = EventRecorder(client, component=NAME, clock=manager.clock)
    manager.add_server(events)
    wiring = wire(manager, ManifestController, client=client, events=events, namespace=namespace)
    manifests = wiring.cache.raw
    kymas = manager.cache(KYMAS, namespace=namespace, transform=without_managed_fields)
    watches = ModuleWatches(clusters, manifests, kymas)
    resting = Resting(
        clock=manager.clock,
        watched=watches.is_current,
        pause=settings.manifest.requeue.success,
        comparison=settings.manifest.comparison,
    )
    watches.disturbs(resting)
    metrics = ManifestMetrics(manager.registry)
    manager.on_handover(metrics.shed)
    installing = Installing(
        Rendering(layers, clock=manager.clock),
        InjectedSecrets(client, restricted=settings.kyma.restricted),
        installs=lambda key, kyma: _installs(manifests, key, kyma),
        settings=settings,
        clock=manager.clock,
    )
    reconciler = ManifestController(
        wiring,
        clusters=clusters,
        kymas=TypedCache(Kyma, kymas),
        installing=installing,
        removal=ModuleRemoval(installing, clusters.pool, leftovers, settings.manifest),
        resting=resting,
        settings=settings.manifest,
        requeues=requeues,
        metrics=metrics,
    )
    manager.controller(
        NAME,
        reconciler,
        sources=[*watches.sources(), Watch(manifests, when=spec_or_metadata_changed)],
        workers=settings.manifest.workers,
        backoff=BACKOFF,
    )
    return reconciler


def _installs(manifests: Cache, key: ObjectKey, kyma: str) -> bool:
    """Reports whether a Manifest installs a module on the cluster of a Kyma."""
    found = manifests.get(key)
    if found is None or kyma not in by_label(Label.KYMA_NAME)(found):
        return False
    return "true" not in by_annotation(Annotation.IS_UNMANAGED)(found)
