"""The metrics of etcd: the endpoints of kube-system, and the copies of OpenShift's credentials next to the agent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import IPv6Address
from typing import Final

from hortus.domains.agents.builders.facts import CopiedSource, InstanaFacts, OpenShiftEtcd
from hortus.domains.agents.builders.metadata import (
    AGENT,
    COMPONENT_LABEL,
    MANAGED_BY_LABEL,
    MANAGER,
    NAME_LABEL,
    SENSOR,
    namespaced,
)
from hortus.domains.agents.types import InstanaAgent
from hortus.kube.objects import Object
from hortus.schema import Fields, ObjectMeta

BUNDLE: Final = "etcd-ca-bundle"
BUNDLE_KEY: Final = "ca-bundle.crt"
CLIENT: Final = "etcd-client"
CLIENT_KEYS: Final = ("tls.crt", "tls.key")
SOURCE_NAMESPACE: Final = "openshift-etcd"
COPIED_FROM_LABEL: Final = "instana.io/copied-from"
SERVICE_LABEL: Final = "kubernetes.io/service-name"
_SCHEME_ANNOTATION: Final = "instana.io/etcd-scheme"
_METRICS_PORT: Final = "metrics"
_COMPONENT: Final = {"component": "etcd"}
_LABELLED: Final = ("etcd", "etcd-metrics")
NAMED: Final = ("etcd", "etcd-metrics", "etcd-k8s")
"""Names of Services that may be etcd's, in kube-system."""
_PLAIN_PORT: Final = 2381


class EtcdPort(Fields, frozen=True):
    """A port of a Service or of its endpoints."""

    name: str = ""
    """Name of the port."""
    port: int = 0
    """Number of the port."""


class _ServiceSpec(Fields, frozen=True):
    ports: tuple[EtcdPort, ...] = ()


class EtcdService(Fields, frozen=True):
    """A Service of kube-system, by which etcd may be found."""

    metadata: ObjectMeta
    """Its name, labels and annotations."""
    spec: _ServiceSpec = _ServiceSpec()
    """Its ports."""


class _Ready(Fields, frozen=True):
    ready: bool | None = None


class _SliceEndpoint(Fields, frozen=True):
    addresses: tuple[str, ...] = ()
    conditions: _Ready = _Ready()


class EtcdSlice(Fields, frozen=True):
    """An EndpointSlice of that Service."""

    ports: tuple[EtcdPort, ...] | None = None
    """Its ports."""
    endpoints: tuple[_SliceEndpoint, ...] | None = None
    """Its addresses, with their readiness."""


class _Address(Fields, frozen=True):
    ip: str = ""


class _Subset(Fields, frozen=True):
    addresses: tuple[_Address, ...] | None = None
    ports: tuple[EtcdPort, ...] | None = None


class EtcdEndpoints(Fields, frozen=True):
    """The Endpoints of that Service, from before EndpointSlices."""

    subsets: tuple[_Subset, ...] | None = None
    """Its addresses with their ports."""


def service_of(services: Iterable[EtcdService]) -> EtcdService | None:
    """The Service of etcd: by name and label, else by name alone; None where there is none."""
    known = {service.metadata.name: service for service in services}
    for name in _LABELLED:
        if name in known and _COMPONENT.items() <= known[name].metadata.labels.items():
            return known[name]
    return next((known[name] for name in NAMED if name in known), None)


def targets_of(
    service: EtcdService, slices: Iterable[EtcdSlice], endpoints: EtcdEndpoints | None = None
) -> tuple[str, ...]:
    """The URLs of etcd's metrics behind a Service, sorted; those of Endpoints where no slice has one."""
    declared = _metrics_port(service.spec.ports)
    if declared is None:
        return ()
    found = {
        (address, _metrics_port(piece.ports) or declared)
        for piece in slices
        for endpoint in piece.endpoints or ()
        if endpoint.conditions.ready is not False
        for address in endpoint.addresses
    }
    if not found and endpoints is not None:
        found = {
            (address.ip, _metrics_port(subset.ports) or declared)
            for subset in endpoints.subsets or ()
            for address in subset.addresses or ()
        }
    scheme = service.metadata.annotations.get(_SCHEME_ANNOTATION) or _scheme(declared)
    return tuple(sorted(f"{scheme}://{_host(address)}:{port}/metrics" for address, port in found))


def _metrics_port(ports: Iterable[EtcdPort] | None) -> int | None:
    return next((each.port for each in ports or () if each.name == _METRICS_PORT), None)


def _scheme(port: int) -> str:
    return "http" if port == _PLAIN_PORT else "https"


def _host(address: str) -> str:
    """An address as it stands in URLs, where those of IPv6 need brackets."""
    try:
        return f"[{IPv6Address(address)}]"
    except ValueError:
        return address


def is_complete(source: OpenShiftEtcd) -> bool:
    """Reports whether bundle, certificate and key are all there and not empty."""
    needed = [source.ca_bundle.data.get(BUNDLE_KEY), *(source.client.data.get(key) for key in CLIENT_KEYS)]
    return all(needed)


def etcd_copies(agent: InstanaAgent, facts: InstanaFacts) -> tuple[Object, ...]:
    """The copies of OpenShift's bundle and client certificate; none where they are not complete.

    They are no part of the dependents: their owner deletes them, and so does `is_copy` when they are no longer wanted.
    """
    if not isinstance(facts.etcd, OpenShiftEtcd) or not is_complete(facts.etcd):
        return ()
    bundle, client = facts.etcd
    return (
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": _copied(agent, BUNDLE, bundle),
            "data": dict(bundle.data),
        },
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": _copied(agent, CLIENT, client),
            "type": client.type,
            "data": dict(client.data),
        },
    )


def is_copy(labels: Mapping[str, str]) -> bool:
    """Reports whether an object of such a name was copied, and may be deleted when its source is gone."""
    return labels.get(COPIED_FROM_LABEL) == SOURCE_NAMESPACE


def _copied(agent: InstanaAgent, name: str, source: CopiedSource) -> Object:
    labels = {
        NAME_LABEL: AGENT,
        COMPONENT_LABEL: SENSOR,
        MANAGED_BY_LABEL: MANAGER,
        COPIED_FROM_LABEL: SOURCE_NAMESPACE,
    }
    annotations = {
        "instana.io/source-namespace": SOURCE_NAMESPACE,
        "instana.io/source-name": name,
        "instana.io/source-resource-version": source.resource_version,
        "instana.io/instana-agent-name": agent.metadata.name,
    }
    return namespaced(agent, name, labels, annotations)
