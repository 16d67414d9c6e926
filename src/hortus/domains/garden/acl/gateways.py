"""Gateways of a Shoot: the Istio Deployments that its connections go through, found by labels.

With several zones or an ExposureClass a Shoot is served by a gateway of another namespace, and the host of the wildcard
certificate and the dashboards by the default one all the same. Gateways in the Shoot's own namespace select the pods.
The ports whose requests name a destination lead to a Shoot on every gateway that its Services are exported to: in
gardener 1.139 and before these are all of the seed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from hortus.domains.garden.acl.entrypoints import (
    ReadGateway,
    api_host,
    filtered_hosts,
    nginx_problem,
    read_gateway,
    unserved,
)
from hortus.domains.garden.acl.filters import GatewayChains
from hortus.domains.garden.acl.names import (
    API_GATEWAY,
    API_SERVICE,
    CONFIG_MAPS,
    DEPLOYMENTS,
    EGRESS_KEY,
    EXPORT_TO,
    GATEWAY_SERVICE,
    GATEWAYS,
    INGRESS_GATEWAY_NAMESPACE,
    INGRESS_NAMESPACE,
    PROXY_PORT,
    SERVICES,
    SHOOT_INFO,
    SHOOT_INFO_NAMESPACE,
    VPN_PORT,
)
from hortus.engine import Actor, Cache, Caches, StepError, metadata_of, without_managed_fields
from hortus.kube import Client
from hortus.kube.errors import NotFound
from hortus.kube.objects import ObjectKey, key_of

_PROXY = "Proxy"
_BY_NAMESPACE = "acl-gateway-namespace"
_BY_HEADER = "acl-gateway-header"
_EVERYWHERE = "*"


class _Struct(msgspec.Struct, rename="camel"):
    """Base of the parts that are read; unknown fields are left out."""


class _Ingress(_Struct):
    ip_mode: str | None = None


class _LoadBalancer(_Struct):
    ingress: list[_Ingress] | None = None


class _ServiceStatus(_Struct):
    load_balancer: _LoadBalancer = msgspec.field(default_factory=_LoadBalancer)


class _Service(_Struct):
    status: _ServiceStatus = msgspec.field(default_factory=_ServiceStatus)


class _ConfigMap(_Struct):
    data: dict[str, str] | None = None


class ApiGateway(NamedTuple):
    """The Gateway of a Shoot's kube-apiserver, with the namespace of its Deployment."""

    read: ReadGateway
    namespace: str


class EntryPoints(NamedTuple):
    """The chains that filters of one Shoot are for."""

    host: str
    """The host that finds the chain of the kube-apiserver; empty where nothing names one."""
    chains: tuple[GatewayChains, ...]
    dashboards: GatewayChains | None
    """The one chain for the dashboards of all Shoots; None where each has its own."""
    problems: tuple[str, ...]
    """Sentences about the ways that no filter closes."""


class GatewayLookup:
    """Reads gateways of a seed. Gateways come from a cache, except for the one that an operation waits for."""

    def __init__(self, seed: Client, caches: Caches) -> None:
        self._seed = seed
        self.cache: Cache = caches.get(GATEWAYS, transform=without_managed_fields)
        self.cache.add_index(_BY_NAMESPACE, lambda obj: (key_of(obj).namespace,))
        self.cache.add_index(_BY_HEADER, lambda obj: (_EVERYWHERE,) * is_by_header(read_gateway(obj)))

    def known(self, namespace: str) -> list[ReadGateway]:
        """The Gateways of a namespace that the cache has, by name."""
        found = (read_gateway(one) for one in self.cache.by(_BY_NAMESPACE, namespace))
        return sorted(found, key=lambda one: one.key)

    def by_header(self) -> list[ReadGateway]:
        """The Gateways of ports whose requests name their destination, one or two for each gateway of the seed."""
        return sorted(map(read_gateway, self.cache.by(_BY_HEADER, _EVERYWHERE)), key=lambda one: one.key)

    def of_dashboards(self, domain: str) -> ReadGateway | None:
        """The Gateway of the one chain for the dashboards of all Shoots; None where each has its own."""
        found = self.known(INGRESS_GATEWAY_NAMESPACE) if domain else []
        return next((one for one in found if f"*.{domain}" in one.hosts), None)

    async def of_shoot(self, namespace: str) -> ApiGateway | None:
        """The gateway of a Shoot's kube-apiserver; None where it has no Gateway. Raises StepError, KubeError."""
        try:
            found = read_gateway(await self._seed.get(GATEWAYS, API_GATEWAY, namespace))
        except NotFound:
            return None
        if not found.selector:
            raise StepError(
                f"Gateway {found.key} has no spec.selector: its Deployment cannot be found",
                reason="GatewayWithoutSelector",
                actor=Actor.PROVIDER,
            )
        return ApiGateway(found, _only_namespace(await self._deployments(found.selector), found))

    async def entry_points(self, api: ApiGateway, advertised: Sequence[str], domain: str) -> EntryPoints:
        """The entry points of the Shoot that a gateway is of. Raises KubeError."""
        host = api_host(api.read, advertised)
        others = [one for one in self.known(api.read.key.namespace) if one.key != api.read.key]
        own = filtered_hosts(api.read, apart=host)
        found = _Chains(api.namespace, api.read.selector, own.hosts)
        problems = [*own.problems, *unserved(advertised, (api.read, *others))]
        places = {_text(api.read.selector): [api.namespace]}
        for gateway in others:
            served, selected = filtered_hosts(gateway), _text(gateway.selector)
            if selected not in places:
                places[selected] = [one.namespace for one in await self._deployments(gateway.selector)]
            problems += (*served.problems, *found.add(gateway, places[selected], served.hosts))
        exported = await self._exported(api.read.key.namespace)
        for gateway in self.by_header():
            if gateway.key.namespace in exported or _EVERYWHERE in exported:
                found.add_headers(gateway)
        shared = self.of_dashboards(domain)
        if shared is not None:
            problems.append(nginx_problem(shared, domain))
        return EntryPoints(host, found.all(), await self._shared_chain(shared), tuple(problems))

    async def _exported(self, namespace: str) -> frozenset[str]:
        """The namespaces whose gateways know the kube-apiserver of a Shoot; those of its VPN are among them."""
        try:
            found = await self._seed.get(SERVICES, API_SERVICE, namespace)
        except NotFound:
            return frozenset()
        annotations = metadata_of(found).annotations
        return frozenset(one.strip() for one in annotations.get(EXPORT_TO, "").split(","))

    async def _shared_chain(self, gateway: ReadGateway | None) -> GatewayChains | None:
        if gateway is None or not gateway.selector:
            return None
        deployments = await self._deployments(gateway.selector)
        return GatewayChains(deployments[0].namespace if deployments else INGRESS_NAMESPACE, gateway.selector)

    async def _deployments(self, selector: dict[str, str]) -> list[ObjectKey]:
        """The Deployments whose pods a Gateway selects; none without a selector."""
        if not selector:
            return []
        listed = await self._seed.list(DEPLOYMENTS, labels=_text(selector), metadata_only=True)
        return sorted(map(key_of, listed.items))

    async def seed_egress(self, namespace: str) -> tuple[str, ...]:
        """The seed's own addresses, which count where the load balancer of a gateway hides those of clients."""
        try:
            service = msgspec.convert(await self._seed.get(SERVICES, GATEWAY_SERVICE, namespace), _Service)
        except NotFound:
            return ()
        if all(one.ip_mode != _PROXY for one in service.status.load_balancer.ingress or ()):
            return ()
        try:
            found = await self._seed.get(CONFIG_MAPS, SHOOT_INFO, SHOOT_INFO_NAMESPACE)
        except NotFound:
            return ()  # the seed is no Shoot itself
        text = (msgspec.convert(found, _ConfigMap).data or {}).get(EGRESS_KEY, "")
        if not text:
            raise StepError(
                f"ConfigMap {SHOOT_INFO_NAMESPACE}/{SHOOT_INFO} of the seed has no key {EGRESS_KEY}: its own clients "
                "would be locked out behind the proxy of the gateway",
                reason="SeedEgressUnknown",
                actor=Actor.OPERATOR,
            )
        return tuple(one.strip() for one in text.split(",") if one.strip())


class _Chains:
    """Chains by the namespace of their gateway."""

    def __init__(self, namespace: str, labels: dict[str, str], hosts: Sequence[str]) -> None:
        self._labels = {namespace: labels}
        self._hosts = {namespace: list(hosts)}

    def add(self, gateway: ReadGateway, namespaces: Sequence[str], hosts: Sequence[str]) -> Iterator[str]:
        """Adds the chains of a Gateway; yields the reasons why they cannot have a filter."""
        if not namespaces:
            yield (
                f"Gateway {gateway.key} selects {_text(gateway.selector) or 'no label'}, which no Deployment has: its "
                "pods cannot be found; set spec.selector to the labels of a gateway"
            )
        for namespace in dict.fromkeys(namespaces):
            if self._labels.setdefault(namespace, gateway.selector) != gateway.selector:
                yield (
                    f"Gateway {gateway.key} selects {_text(gateway.selector)} in {namespace}, another Gateway of the "
                    f"Shoot selects {_text(self._labels[namespace])} there: set spec.selector to the same labels"
                )
            else:
                self._hosts.setdefault(namespace, []).extend(hosts)

    def add_headers(self, gateway: ReadGateway) -> None:
        """Adds a gateway for its ports alone; its pods are in the namespace of their Gateway."""
        namespace = gateway.key.namespace
        if gateway.selector and namespace not in self._labels:
            self._labels[namespace], self._hosts[namespace] = gateway.selector, []

    def all(self) -> tuple[GatewayChains, ...]:
        return tuple(
            GatewayChains(namespace, self._labels[namespace], tuple(sorted(hosts)))
            for namespace, hosts in sorted(self._hosts.items())
        )


def is_by_header(gateway: ReadGateway) -> bool:
    """Reports whether a Gateway opens a port whose requests name their destination."""
    return any(one.port in (PROXY_PORT, VPN_PORT) for one in gateway.servers)


def _only_namespace(deployments: list[ObjectKey], gateway: ReadGateway) -> str:
    if len(deployments) == 1:
        return deployments[0].namespace
    raise StepError(
        f"Gateway {gateway.key} selects {_text(gateway.selector)}: exactly one Deployment must have these labels; "
        f"there are: {', '.join(map(str, deployments)) or 'none'}",
        reason="GatewayNotFound" if not deployments else "GatewayAmbiguous",
        actor=Actor.PROVIDER,
    )


def _text(selector: dict[str, str]) -> str:
    return ",".join(f"{name}={value}" for name, value in sorted(selector.items()))
