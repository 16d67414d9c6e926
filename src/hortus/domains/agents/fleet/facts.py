"""The facts of a cluster of the fleet, read through its client: a dozen small requests, made when objects are applied.

A fact that cannot be read fails the reconcile of this cluster: objects that are built without it would be others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar

import msgspec

from hortus.domains.agents.builders import (
    CopiedSource,
    EtcdEndpoints,
    EtcdService,
    EtcdSlice,
    EtcdTargets,
    InstanaFacts,
    OpenShiftEtcd,
    daemon_set_names,
    is_corrected,
    persists_id,
    service_of,
    targets_of,
)
from hortus.domains.agents.builders.configuration import MONITORING_LABEL
from hortus.domains.agents.builders.etcd import BUNDLE, CLIENT, SERVICE_LABEL, SOURCE_NAMESPACE, is_complete
from hortus.domains.agents.fleet.workloads import DAEMON_SETS
from hortus.domains.agents.types import InstanaAgent
from hortus.engine import metadata_of
from hortus.kube import Client
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, Resource, shaped
from hortus.schema import Fields, ObjectMeta

_CRDS: Final = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
_OPENSHIFT: Final = "clusteroperators.config.openshift.io"
_NAMESPACES: Final = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
_SERVICES: Final = Resource("", "v1", "services", "Service")
_ENDPOINTS: Final = Resource("", "v1", "endpoints", "Endpoints")
_SLICES: Final = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
_SECRETS: Final = Resource("", "v1", "secrets", "Secret")
_CONFIG_MAPS: Final = Resource("", "v1", "configmaps", "ConfigMap")
_SYSTEM: Final = "kube-system"
_ETCD_CA: Final = "etcd-ca"
_T = TypeVar("_T")


class _Copied(Fields, frozen=True):
    """A Secret or ConfigMap with its data as it is on the wire."""

    metadata: ObjectMeta
    data: dict[str, str] = msgspec.field(default_factory=dict)
    type: str = ""


class FleetFacts:
    """Reads the facts that the objects of an agent are built from."""

    def __init__(self, operator_version: str) -> None:
        self._version = operator_version

    async def of(self, client: Client, agent: InstanaAgent, keys: Mapping[str, bytes] | None) -> InstanaFacts:
        """The facts of one cluster; `keys` is the data of the Secret with the keys. Raises KubeError.

        Raises UnknownWorkload when a DaemonSet of the agent's name is something else.
        """
        openshift = agent.spec.openshift
        if openshift is None:
            openshift = await _found(client, _CRDS, _OPENSHIFT) is not None
        live = {
            name: await _found(client, DAEMON_SETS, name, agent.metadata.namespace) for name in daemon_set_names(agent)
        }
        return InstanaFacts(
            operator_version=self._version,
            openshift=openshift,
            namespaces=await _monitored(client),
            keys_secret=keys,
            persist_ids={name: persists_id(found) for name, found in live.items()},
            corrected={name: is_corrected(found) for name, found in live.items()},
            etcd=await _etcd(client, agent, openshift=openshift),
        )


async def _monitored(client: Client) -> dict[str, Mapping[str, str]]:
    """The labels of the namespaces that say how their workloads are monitored."""
    found = await client.list(_NAMESPACES, labels=MONITORING_LABEL, metadata_only=True)
    return {one.name: one.labels for one in map(metadata_of, found.items)}


async def _etcd(client: Client, agent: InstanaAgent, *, openshift: bool) -> EtcdTargets | OpenShiftEtcd | None:
    if openshift:
        bundle = await _read(client, _CONFIG_MAPS, BUNDLE, SOURCE_NAMESPACE, _Copied)
        access = await _read(client, _SECRETS, CLIENT, SOURCE_NAMESPACE, _Copied)
        if bundle is None or access is None:
            return None
        found = OpenShiftEtcd(_source(bundle), _source(access))
        return found if is_complete(found) else None
    if agent.spec.k8s_sensor.etcd.targets:
        return None
    services = await client.list(_SERVICES, _SYSTEM)
    service = service_of(one for obj in services.items if (one := shaped(obj, EtcdService)) is not None)
    if service is None:
        return None
    name = service.metadata.name
    listed = await client.list(_SLICES, _SYSTEM, labels=f"{SERVICE_LABEL}={name}")
    slices = [piece for obj in listed.items if (piece := shaped(obj, EtcdSlice)) is not None]
    targets = targets_of(service, slices, await _read(client, _ENDPOINTS, name, _SYSTEM, EtcdEndpoints))
    if not targets:
        return None
    ca = await _found(client, _SECRETS, _ETCD_CA, agent.metadata.namespace, metadata_only=True)
    return EtcdTargets(targets, ca_secret=ca is not None)


def _source(copied: _Copied) -> CopiedSource:
    return CopiedSource(copied.metadata.resource_version, copied.data, copied.type)


async def _read(client: Client, resource: Resource, name: str, namespace: str, shape: type[_T]) -> _T | None:
    found = await _found(client, resource, name, namespace)
    return None if found is None else shaped(found, shape)


async def _found(
    client: Client, resource: Resource, name: str, namespace: str = "", *, metadata_only: bool = False
) -> Object | None:
    try:
        return await client.get(resource, name, namespace, metadata_only=metadata_only)
    except NotFound:
        return None
