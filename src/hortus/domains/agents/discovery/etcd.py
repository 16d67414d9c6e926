"""The sources of etcd's metrics: endpoints in kube-system, or the credentials in openshift-etcd."""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from hortus.domains.agents.builders import (
    CopiedSource,
    EtcdEndpoints,
    EtcdService,
    EtcdSlice,
    EtcdTargets,
    OpenShiftEtcd,
    service_of,
    targets_of,
)
from hortus.engine import Cache, Manager, without_managed_fields
from hortus.engine.typed import metadata_of
from hortus.kube.objects import Object, ObjectKey, Resource, shaped

CONTROL_PLANE: Final = "kube-system"
OPENSHIFT: Final = "openshift-etcd"
BUNDLE: Final = "etcd-ca-bundle"
CLIENT: Final = "etcd-client"
AUTHORITY: Final = "etcd-ca"
"""The Secret next to an agent that holds the authority of etcd found in kube-system."""
CLUSTER_OPERATORS: Final = "clusteroperators.config.openshift.io"
"""The definition that only OpenShift has."""

_NAMES: Final = ("etcd", "etcd-metrics", "etcd-k8s")
_SERVICE: Final = "kubernetes.io/service-name"
_SERVICES: Final = Resource("", "v1", "services", "Service")
_SLICES: Final = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
_ENDPOINTS: Final = Resource("", "v1", "endpoints", "Endpoints")
_CONFIG_MAPS: Final = Resource("", "v1", "configmaps", "ConfigMap")
_SECRETS: Final = Resource("", "v1", "secrets", "Secret")
_DEFINITIONS: Final = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)


class _Source(msgspec.Struct):
    data: dict[str, str] | None = None
    type: str = ""


def _nameless(definition: Object) -> Object:
    """The definition without its schema, which is most of it."""
    definition.pop("spec", None)
    return definition


class EtcdCaches(NamedTuple):
    """The caches of all that etcd is found by; each holds a few objects."""

    definition: Cache
    services: tuple[Cache, ...]
    slices: Cache
    endpoints: tuple[Cache, ...]
    bundle: Cache
    client: Cache

    @property
    def all(self) -> tuple[Cache, ...]:
        return (self.definition, *self.services, self.slices, *self.endpoints, self.bundle, self.client)


def etcd_caches(manager: Manager) -> EtcdCaches:
    """Make the caches."""

    def named(resource: Resource, namespace: str, name: str) -> Cache:
        fields = f"metadata.name={name}"
        return manager.cache(resource, namespace=namespace, fields=fields, transform=without_managed_fields)

    of_slices = f"{_SERVICE} in ({','.join(_NAMES)})"
    return EtcdCaches(
        definition=manager.cache(_DEFINITIONS, fields=f"metadata.name={CLUSTER_OPERATORS}", transform=_nameless),
        services=tuple(named(_SERVICES, CONTROL_PLANE, name) for name in _NAMES),
        slices=manager.cache(_SLICES, namespace=CONTROL_PLANE, labels=of_slices, transform=without_managed_fields),
        endpoints=tuple(named(_ENDPOINTS, CONTROL_PLANE, name) for name in _NAMES),
        bundle=named(_CONFIG_MAPS, OPENSHIFT, BUNDLE),
        client=named(_SECRETS, OPENSHIFT, CLIENT),
    )


class EtcdDiscovery:
    """Finds etcd in caches, so that a change of it is seen at once and rest costs no call."""

    def __init__(self, caches: EtcdCaches) -> None:
        self._caches = caches

    @property
    def is_openshift(self) -> bool:
        """True when the cluster is OpenShift."""
        return bool(len(self._caches.definition))

    def credentials(self) -> OpenShiftEtcd | None:
        """The sources of OpenShift's credentials; None while one of both is missing."""
        bundle = self._caches.bundle.get(ObjectKey(OPENSHIFT, BUNDLE))
        client = self._caches.client.get(ObjectKey(OPENSHIFT, CLIENT))
        if bundle is None or client is None:
            return None
        return OpenShiftEtcd(_copied(bundle), _copied(client))

    def targets(self, *, ca_secret: bool) -> EtcdTargets | None:
        """The endpoints behind the Service of etcd in kube-system; None where none are found."""
        services = [
            service
            for cache in self._caches.services
            for obj in cache.values()
            if (service := shaped(obj, EtcdService)) is not None
        ]
        service = service_of(services)
        if service is None:
            return None
        name = service.metadata.name
        slices = [
            piece
            for obj in self._caches.slices.values()
            if metadata_of(obj).labels.get(_SERVICE) == name and (piece := shaped(obj, EtcdSlice)) is not None
        ]
        key = ObjectKey(CONTROL_PLANE, name)
        found = next((cache[key] for cache in self._caches.endpoints if key in cache), None)
        targets = targets_of(service, slices, shaped(found, EtcdEndpoints) if found is not None else None)
        return EtcdTargets(targets, ca_secret) if targets else None


def _copied(obj: Object) -> CopiedSource:
    source = shaped(obj, _Source) or _Source()
    return CopiedSource(metadata_of(obj).resource_version, source.data or {}, source.type)
