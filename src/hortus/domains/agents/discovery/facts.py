"""The facts that the objects of an InstanaAgent are built from, whichever way its cluster is read.

A `FactSource` is the cluster: caches that watches keep current where the agent runs in the cluster of its controllers,
requests in a cluster of the fleet. The rules are the same for both.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, Protocol

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
from hortus.domains.agents.builders.etcd import is_complete
from hortus.domains.agents.types import InstanaAgent
from hortus.engine.typed import metadata_of
from hortus.kube.objects import Object, Resource, shaped

AUTHORITY: Final = "etcd-ca"
"""The Secret next to an agent that holds the authority of etcd found in kube-system."""
CLUSTER_OPERATORS: Final = "clusteroperators.config.openshift.io"
"""The definition that only OpenShift has."""
CONTROL_PLANE: Final = "kube-system"
DEFINITIONS: Final = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
NAMESPACES: Final = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
SERVICES: Final = Resource("", "v1", "services", "Service")
SLICES: Final = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
ENDPOINTS: Final = Resource("", "v1", "endpoints", "Endpoints")
CONFIG_MAPS: Final = Resource("", "v1", "configmaps", "ConfigMap")
SECRETS: Final = Resource("", "v1", "secrets", "Secret")


class FactSource(Protocol):
    """One cluster, as facts are read from it. Every method raises KubeError where a fact cannot be read."""

    async def is_openshift(self) -> bool:
        """True when the cluster is OpenShift."""

    async def namespaces(self) -> Iterable[Object]:
        """The namespaces that say how their workloads are monitored."""

    async def daemon_sets(self, names: Sequence[str], namespace: str) -> Mapping[str, Object]:
        """The DaemonSets of these names that are there."""

    async def has_secret(self, name: str, namespace: str) -> bool:
        """True when there is a Secret of that name."""

    async def etcd_services(self) -> Iterable[Object]:
        """Services of kube-system, among them those of etcd."""

    async def etcd_slices(self, service: str) -> Iterable[Object]:
        """The EndpointSlices of a Service of kube-system."""

    async def etcd_endpoints(self, service: str) -> Object | None:
        """The Endpoints of a Service of kube-system."""

    async def etcd_credentials(self) -> tuple[Object | None, Object | None]:
        """OpenShift's ConfigMap with the authority of etcd, and its Secret with a client certificate."""


class _Source(msgspec.Struct):
    data: dict[str, str] | None = None
    type: str = ""


async def facts_of(
    source: FactSource,
    agent: InstanaAgent,
    *,
    operator_version: str,
    keys: Mapping[str, bytes] | None,
    etcd_namespaces: Collection[str],
) -> InstanaFacts:
    """The facts of one agent with its defaults; `keys` is the data of the Secret with its keys.

    OpenShift's credentials of etcd are found for agents in `etcd_namespaces` alone, whatever the agent says.

    Raises KubeError, and UnknownWorkload when a DaemonSet of the agent's name is something else.
    """
    openshift = agent.spec.openshift
    if openshift is None:
        openshift = await source.is_openshift()
    live = await source.daemon_sets(daemon_set_names(agent), agent.metadata.namespace)
    return InstanaFacts(
        operator_version=operator_version,
        openshift=openshift,
        namespaces=_monitored(await source.namespaces()),
        keys_secret=keys,
        persist_ids={name: persists_id(found) for name, found in live.items()},
        corrected={name: is_corrected(found) for name, found in live.items()},
        etcd=await _etcd(source, agent, openshift=openshift, trusted=agent.metadata.namespace in etcd_namespaces),
    )


async def _etcd(
    source: FactSource, agent: InstanaAgent, *, openshift: bool, trusted: bool
) -> EtcdTargets | OpenShiftEtcd | None:
    if not openshift:
        return await _targets(source, agent)
    return await _credentials(source) if trusted else None


def _monitored(namespaces: Iterable[Object]) -> dict[str, Mapping[str, str]]:
    found = map(metadata_of, namespaces)
    return {
        one.name: {MONITORING_LABEL: one.labels[MONITORING_LABEL]} for one in found if MONITORING_LABEL in one.labels
    }


async def _credentials(source: FactSource) -> OpenShiftEtcd | None:
    """The sources of OpenShift's credentials; None while one of both is missing or not complete."""
    bundle, client = await source.etcd_credentials()
    if bundle is None or client is None:
        return None
    found = OpenShiftEtcd(_copied(bundle), _copied(client))
    return found if is_complete(found) else None


async def _targets(source: FactSource, agent: InstanaAgent) -> EtcdTargets | None:
    """The endpoints behind the Service of etcd in kube-system; None where the agent names its own or none are found."""
    if agent.spec.k8s_sensor.etcd.targets:
        return None
    services = [one for obj in await source.etcd_services() if (one := shaped(obj, EtcdService)) is not None]
    service = service_of(services)
    if service is None:
        return None
    name = service.metadata.name
    slices = [piece for obj in await source.etcd_slices(name) if (piece := shaped(obj, EtcdSlice)) is not None]
    endpoints = await source.etcd_endpoints(name)
    targets = targets_of(service, slices, shaped(endpoints, EtcdEndpoints) if endpoints is not None else None)
    if not targets:
        return None
    return EtcdTargets(targets, ca_secret=await source.has_secret(AUTHORITY, agent.metadata.namespace))


def _copied(obj: Object) -> CopiedSource:
    source = shaped(obj, _Source) or _Source()
    return CopiedSource(metadata_of(obj).resource_version, source.data or {}, source.type)
