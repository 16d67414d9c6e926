"""Puts the Manifest controller together for a process that has a `Manager`."""

from __future__ import annotations

from functools import partial

from hortus.domains.modules.central.configurations import CentralConfigurations, central_configurations
from hortus.domains.modules.central.enforcing import Enforcing
from hortus.domains.modules.central.overriding import Enforced, enforced
from hortus.domains.modules.clusters import KymaClusters
from hortus.domains.modules.manifests.context import ManifestContext
from hortus.domains.modules.manifests.controller import ManifestController
from hortus.domains.modules.manifests.installing import Installing
from hortus.domains.modules.manifests.metrics import ManifestMetrics
from hortus.domains.modules.manifests.outline import outline
from hortus.domains.modules.manifests.removal import ModuleRemoval
from hortus.domains.modules.manifests.rendering import LayerSource, Rendering
from hortus.domains.modules.manifests.resting import Resting
from hortus.domains.modules.manifests.secrets import InjectedSecrets
from hortus.domains.modules.manifests.settling import Settling
from hortus.domains.modules.manifests.watches import DEPLOYMENTS, MODULE_SELECTOR, ModuleWatches, OwnWatches
from hortus.domains.modules.metrics import RequeueMetrics
from hortus.domains.modules.names import Annotation, Label
from hortus.domains.modules.own import OwnCluster
from hortus.domains.modules.settings import Settings
from hortus.domains.modules.types import KYMAS, Kyma
from hortus.engine import (
    Cache,
    EventRecorder,
    Manager,
    TypedCache,
    Watch,
    spec_or_metadata_changed,
    wire,
    without_managed_fields,
)
from hortus.engine.deputies import Deputies
from hortus.engine.indexes import by_annotation, by_label
from hortus.engine.leftovers import LeftoverRecorder
from hortus.kube import Client
from hortus.kube.objects import ObjectKey

NAME = "manifest"
"""The controller's name in metrics, logs and events."""


def add_controller(
    manager: Manager,
    *,
    client: Client,
    namespace: str,
    clusters: KymaClusters | OwnCluster,
    layers: LayerSource,
    deputies: Deputies,
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
    configurations = central_configurations(manager, namespace, settings)
    watches = _watches(manager, clusters, manifests, kymas)
    metrics = ManifestMetrics(manager.registry)
    manager.on_handover(metrics.shed)
    installing = _installing(manager, client, layers, deputies, manifests, settings)
    reconciler = ManifestController(
        wiring,
        clusters=clusters,
        kymas=TypedCache(Kyma, kymas),
        installing=installing,
        enforcing=Enforcing(partial(_enforced, TypedCache(Kyma, kymas), configurations), clusters.client),
        removal=ModuleRemoval(installing, clusters, leftovers, settings.manifest),
        resting=_resting(manager, watches, settings),
        settling=_settling(manager, watches),
        settings=settings.manifest,
        requeues=requeues,
        metrics=metrics,
    )
    manager.controller(
        NAME,
        reconciler,
        sources=[
            *watches.sources(),
            *watches.configured_by(configurations.cache),
            Watch(manifests, when=spec_or_metadata_changed),
        ],
        workers=settings.manifest.workers,
        backoff=settings.backoff,
    )
    return reconciler


def _installing(
    manager: Manager, client: Client, layers: LayerSource, deputies: Deputies, manifests: Cache, settings: Settings
) -> Installing:
    return Installing(
        Rendering(layers, clock=manager.clock),
        InjectedSecrets(client, deputies=deputies, restricted=settings.kyma.restricted),
        installs=lambda key, kyma: _installs(manifests, key, kyma),
        settings=settings,
        clock=manager.clock,
    )


def _resting(manager: Manager, watches: ModuleWatches | OwnWatches, settings: Settings) -> Resting:
    resting = Resting(
        clock=manager.clock,
        watched=watches.is_current,
    )
    watches.disturbs(resting)
    return resting


def _settling(manager: Manager, watches: ModuleWatches | OwnWatches) -> Settling:
    settling = Settling(clock=manager.clock, watched=watches.is_current)
    watches.unsettles(settling)
    return settling


def _enforced(
    kymas: TypedCache[Kyma], configurations: CentralConfigurations, context: ManifestContext
) -> Enforced | None:
    """The fields of a Manifest's default resource that are enforced; None where the policy leaves it alone."""
    kyma = kymas.get(ObjectKey(context.key.namespace, context.kyma))
    if context.spec.resource is not None and (context.resource is None or (kyma and _ignores(kyma, context.key))):
        return None
    overrides = configurations.overrides(kyma.metadata.labels if kyma is not None else {})
    return enforced(overrides, context.label(Label.MODULE_NAME))


def _ignores(kyma: Kyma, manifest: ObjectKey) -> bool:
    """Reports whether the user's policy is Ignore by now: the status of a Kyma names no resource then.

    The Manifest keeps the policy with which it was made, as in lifecycle-manager.
    """
    seen = [one for one in kyma.status.modules if one.manifest and one.manifest.metadata.name == manifest.name]
    return any(one.resource is None for one in seen)


def _watches(
    manager: Manager, clusters: KymaClusters | OwnCluster, manifests: Cache, kymas: Cache
) -> ModuleWatches | OwnWatches:
    if isinstance(clusters, KymaClusters):
        return ModuleWatches(clusters, manifests, kymas)
    return OwnWatches(manager.cache(DEPLOYMENTS, labels=MODULE_SELECTOR, transform=outline), manifests, kymas)


def _installs(manifests: Cache, key: ObjectKey, kyma: str) -> bool:
    """Reports whether a Manifest installs a module on the cluster of a Kyma."""
    found = manifests.get(key)
    if found is None or kyma not in by_label(Label.KYMA_NAME)(found):
        return False
    return "true" not in by_annotation(Annotation.IS_UNMANAGED)(found)
