"""Puts the simulated Cluster API together for a process that has a `Manager` on the management cluster."""

from __future__ import annotations

from hortus.engine import Manager, Watch, without_managed_fields
from hortus.engine.predicates import spec_or_metadata_changed
from hortus.kube import Client
from hortus.kube.objects import Object, ObjectKey, key_of
from hortus.simulation.capi.controller import ClusterTopologyController
from hortus.simulation.capi.extensions import ExtensionController, Hooks
from hortus.simulation.capi.kinds import CLUSTER_CLASSES, CLUSTERS, EXTENSION_CONFIGS
from hortus.simulation.capi.settings import CapiSettings
from hortus.simulation.capi.topology import topology_of
from hortus.simulation.capi.workload import CapiWorkloads

_BY_CLASS = "class"


def add_controllers(
    manager: Manager, *, management: Client, settings: CapiSettings | None = None, hooks: Hooks | None = None
) -> None:
    """Add the controllers of Clusters and ExtensionConfigs. `manager` watches the management cluster, where the CRDs
    are installed; `management` is administrator of all logical clusters. `hooks` take the place of ExtensionConfigs."""
    chosen = settings or CapiSettings()
    clusters = manager.cache(CLUSTERS, transform=without_managed_fields)
    classes = manager.cache(CLUSTER_CLASSES, transform=without_managed_fields)
    clusters.add_index(_BY_CLASS, _class_of)
    controller = ClusterTopologyController(
        management,
        clusters=clusters,
        classes=classes,
        hooks=hooks or _extensions(manager, management),
        workloads=CapiWorkloads(management, keeps_kubeconfigs=chosen.keeps_kubeconfigs),
        settings=chosen,
        clock=manager.clock,
    )

    def of_class(cluster_class: Object) -> list[ObjectKey]:
        return clusters.keys_by(_BY_CLASS, str(key_of(cluster_class)))

    manager.controller(
        "cluster-topology",
        controller,
        sources=[Watch(classes, to=of_class), Watch(clusters)],
        workers=chosen.workers,
    )


def _extensions(manager: Manager, management: Client) -> Hooks:
    configs = manager.cache(EXTENSION_CONFIGS, transform=without_managed_fields)
    extensions = ExtensionController(management, configs, clock=manager.clock)
    manager.controller("extensionconfig", extensions, sources=[Watch(configs, when=spec_or_metadata_changed)])
    return extensions


def _class_of(cluster: Object) -> list[str]:
    found = topology_of(cluster)
    return [str(found.class_key)] if found is not None else []
