"""Clusters of Cluster API, in the form of v1beta1 or v1beta2, read as one struct.

v1beta1 writes the class as `topology.class` and `topology.classNamespace`, v1beta2 as `topology.classRef`; references
have an apiVersion in the one and an apiGroup in the other (kubernetes-sigs/cluster-api, `api/core/v1beta2`).
"""

from __future__ import annotations

from typing import Final

import msgspec

from hortus.engine.typed import NotReadable
from hortus.kube.objects import Object, ObjectKey, Resource, key_of
from hortus.schema import ObjectMeta

CAPI_GROUP: Final = "cluster.x-k8s.io"
CAPI_VERSIONS: Final = ("v1beta2", "v1beta1")
"""The versions of Clusters that are read, the one to prefer first."""
PAUSED_ANNOTATION: Final = f"{CAPI_GROUP}/paused"
WATCH_LABEL: Final = f"{CAPI_GROUP}/watch-filter"
KUBECONFIG_KEY: Final = "value"

CLUSTERS: Final = {version: Resource(CAPI_GROUP, version, "clusters", "Cluster") for version in CAPI_VERSIONS}


class _Struct(msgspec.Struct, frozen=True, rename="camel"):
    """Base of the parts that are read; unknown fields are left out."""


class _Ref(_Struct, frozen=True):
    kind: str = ""
    name: str = ""
    namespace: str = ""
    api_version: str = ""
    api_group: str = ""


class _Topology(_Struct, frozen=True):
    class_name: str = msgspec.field(default="", name="class")
    class_namespace: str = ""
    class_ref: _Ref | None = None
    version: str = ""
    variables: list[Object] | None = None


class _Endpoint(_Struct, frozen=True):
    host: str = ""
    port: int = 0


class _Spec(_Struct, frozen=True):
    paused: bool | None = None
    topology: _Topology | None = None
    control_plane_ref: _Ref | None = None
    infrastructure_ref: _Ref | None = None
    control_plane_endpoint: _Endpoint | None = None


class _Cluster(_Struct, frozen=True):
    metadata: ObjectMeta
    api_version: str = ""
    kind: str = ""
    spec: _Spec = _Spec()


class CapiRef(msgspec.Struct, frozen=True):
    """An object that a Cluster names. It is in the Cluster's own namespace; that of the reference is ignored."""

    group: str
    version: str
    """Empty where the reference has none, as in v1beta2: any served version is meant."""
    kind: str
    name: str


class CapiCluster(msgspec.Struct, frozen=True):
    """The parts of a Cluster that cluster stacks depend on."""

    metadata: ObjectMeta
    api_version: str
    has_topology: bool
    """False for a classic Cluster, which uses no ClusterClass."""
    class_name: str
    """Name of the ClusterClass; empty without a topology."""
    class_namespace: str
    """Namespace of the ClusterClass: the Cluster's own where the topology names none."""
    version: str
    """Kubernetes version of the topology, such as v1.27.3."""
    variables: tuple[Object, ...]
    control_plane: CapiRef | None
    infrastructure: CapiRef | None
    host: str
    """Host of the control plane's endpoint; empty as long as there is none."""
    port: int
    paused: bool
    names_class_by_ref: bool = False
    """True in the form of v1beta2."""

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(self.metadata.namespace, self.metadata.name)


def read_cluster(obj: Object) -> CapiCluster:
    """Read a Cluster of either version. Raises NotReadable."""
    try:
        found = msgspec.convert(obj, _Cluster)
    except msgspec.ValidationError as error:
        raise NotReadable(f"Cluster {key_of(obj)}: {error}") from error
    spec, topology = found.spec, found.spec.topology or _Topology()
    class_ref = topology.class_ref or _Ref()
    endpoint = spec.control_plane_endpoint or _Endpoint()
    return CapiCluster(
        metadata=found.metadata,
        api_version=found.api_version,
        has_topology=found.spec.topology is not None,
        class_name=class_ref.name or topology.class_name,
        class_namespace=class_ref.namespace or topology.class_namespace or found.metadata.namespace,
        version=topology.version,
        variables=tuple(topology.variables or ()),
        control_plane=_ref(spec.control_plane_ref),
        infrastructure=_ref(spec.infrastructure_ref),
        host=endpoint.host,
        port=endpoint.port,
        paused=spec.paused or PAUSED_ANNOTATION in found.metadata.annotations,
        names_class_by_ref=topology.class_ref is not None,
    )


def kubeconfig_secret(cluster: str) -> str:
    """The name of the Secret with the kubeconfig of a workload cluster."""
    return f"{cluster}-kubeconfig"


def _ref(ref: _Ref | None) -> CapiRef | None:
    if ref is None or not ref.name:
        return None
    group, _, version = ref.api_version.rpartition("/")
    return CapiRef(ref.api_group or group, version, ref.kind, ref.name)
