"""Entry points of a Shoot: the hosts that Gateways in its namespace of the seed serve. Pure.

Istio makes one filter chain of each server of a Gateway that ends TLS, and one of all hosts of a server that passes TLS
on, as the VirtualServices of Gardener have it (gardener, pkg/utils/istio). So one host finds the chain of a server.
Gardener has a Gateway for the kube-apiserver, one for the host of the seed's wildcard certificate where another gateway
serves it, and, where the seed has no nginx, one for each dashboard.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from hortus.domains.garden.acl.names import API_GATEWAY
from hortus.kube.objects import Object, ObjectKey, key_of

ENTRY_POINTS_FILTERED: Final = "EntryPointsFiltered"
"""The condition that reports whether the list judges every way to the Shoot."""
_TLS_PROTOCOLS: Final = ("TLS", "HTTPS")


class _Struct(msgspec.Struct, rename="camel"):
    """Base of the parts that are read; unknown fields are left out."""


class _Port(_Struct):
    number: int = 0
    protocol: str = ""


class _Server(_Struct):
    hosts: list[str] | None = None
    port: _Port = msgspec.field(default_factory=_Port)


class _GatewaySpec(_Struct):
    selector: dict[str, str] | None = None
    servers: list[_Server] | None = None


class _Gateway(_Struct):
    spec: _GatewaySpec = msgspec.field(default_factory=_GatewaySpec)


class IstioServer(NamedTuple):
    """One server of a Gateway."""

    port: int
    protocol: str
    hosts: tuple[str, ...]


class ReadGateway(NamedTuple):
    """A Gateway as far as it is read."""

    key: ObjectKey
    selector: dict[str, str]
    """Labels of the pods that serve it."""
    servers: tuple[IstioServer, ...]

    @property
    def hosts(self) -> list[str]:
        return [host for server in self.servers for host in server.hosts]


class FilteredHosts(NamedTuple):
    """One host of each chain that can have a filter, and the problems of the others."""

    hosts: tuple[str, ...]
    problems: tuple[str, ...]


def read_gateway(document: Object) -> ReadGateway:
    """A Gateway of Istio; one without the shape of its kind has no selector and no server."""
    key = key_of(document)
    try:
        spec = msgspec.convert(document, _Gateway).spec
    except msgspec.ValidationError:
        return ReadGateway(key, {}, ())
    servers = (
        IstioServer(one.port.number, one.port.protocol.upper(), tuple(map(_host, one.hosts or ())))
        for one in spec.servers or ()
    )
    return ReadGateway(key, spec.selector or {}, tuple(servers))


def _host(written: str) -> str:
    """The host without the namespace that may stand before it, as in `./api.example.org`."""
    return written.rpartition("/")[2].lower()


def filtered_hosts(gateway: ReadGateway, *, apart: str = "") -> FilteredHosts:
    """The hosts by which the chains of a Gateway are found, without the chain of the host `apart`."""
    hosts, problems = [], []
    for index, server in enumerate(gateway.servers):
        if apart and apart in server.hosts:
            continue
        if problem := _problem(server):
            problems.append(f"Gateway {gateway.key}: spec.servers[{index}].{problem}")
        else:
            hosts.append(server.hosts[0])
    return FilteredHosts(tuple(hosts), tuple(problems))


def _problem(server: IstioServer) -> str:
    if server.protocol not in _TLS_PROTOCOLS:
        return (
            f"port.protocol is {server.protocol or 'empty'}: a filter needs the name that TLS asks for; serve it by "
            f"{' or '.join(_TLS_PROTOCOLS)}"
        )
    if not server.hosts:
        return "hosts is empty: a filter needs a host; name the host of the Shoot"
    if "*" in server.hosts:
        return "hosts has *: other Shoots would share its chain; name the host of the Shoot"
    return ""


def api_host(gateway: ReadGateway, advertised: Sequence[str]) -> str:
    """The host by which the chain of the kube-apiserver is found; empty where nothing names one.

    That is the first advertised one, as in the Go extension, unless the Gateway serves others.
    """
    served = gateway.hosts
    if not served:
        return advertised[0] if advertised else ""
    return next((one for one in advertised if one in served), served[0])


def unserved(advertised: Iterable[str], gateways: Iterable[ReadGateway]) -> Iterator[str]:
    """The problems of advertised hosts that no Gateway of the Shoot serves, so that their chain is not known."""
    known = {host for one in gateways for host in one.hosts}
    for host in advertised:
        if known and host not in known:
            yield (
                f"status.advertisedAddresses of the Shoot has {host}, which no Gateway in its namespace of the seed "
                f"serves: its chain is not known; look for the Gateway {API_GATEWAY} and its hosts"
            )


def nginx_problem(gateway: ReadGateway, domain: str) -> str:
    """The problem of dashboards behind nginx, whose TLS passes through the gateway."""
    return (
        f"Gateway {gateway.key} passes TLS for *.{domain} to nginx, which chooses the dashboard by the Host of the "
        "request, not by the name that TLS asked for: who asks TLS for the host of another Shoot gets past the filter. "
        "Turn on gardenlet's feature gate DisableNginxIngressInSeed (gardener 1.142 and later)"
    )
