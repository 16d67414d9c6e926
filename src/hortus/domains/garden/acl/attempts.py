"""The attempts of a probe: one for each way by which Gardener serves a Shoot to the outside. Pure.

They come from the Shoot and its Seed in the garden, since an operator outside of the list may not have access to the
seed. Ways that only some versions or settings of Gardener have are tried all the same, and marked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from hortus.domains.garden.acl.names import PROXY_HEADER, PROXY_PORT, SERVICE_ACCOUNTS, TLS_PORT, VPN_HEADER, VPN_PORT
from hortus.domains.garden.kinds.seedcluster import GardenSeed, GardenShoot, short_id
from hortus.kube.objects import Object

_HEADERS: Final = {PROXY_PORT: PROXY_HEADER, VPN_PORT: VPN_HEADER}
_DASHBOARDS: Final = {
    "gu": "Plutono",
    "au": "Alertmanager",
    "p": "Prometheus",
    "v": "Vali",
    "otc": "OpenTelemetry collector",
}
"""By the prefix of the host (gardener, pkg/gardenlet/operation/operation.go)."""
_VPN_SERVERS: Final = ("", "-0", "-1")
"""Ends of the VPN's Services: of one server, and of two."""


class ServedHost(NamedTuple):
    """A host by which a Shoot is reached."""

    name: str
    """Description of the host."""
    host: str
    is_sure: bool
    """True where the garden says that the host is served now."""
    port: int = TLS_PORT


class Attempt(NamedTuple):
    """One request to an address of a gateway."""

    name: str
    """Description of the entry point."""
    host: str
    """Host that the address belongs to, and that TLS asks for."""
    port: int
    is_sure: bool = True
    """False where a connection that ends without an answer may mean that the host is not served."""
    header: str = ""
    """Header that names the destination; empty for TLS."""
    destination: str = ""


def served_hosts(shoot: GardenShoot, ingress_domain: str) -> list[ServedHost]:
    """The hosts of a Shoot. Those below the seed's domain are known only with that domain."""
    found: dict[str, ServedHost] = {}
    for one in shoot.status.advertised_addresses or ():
        url = urlsplit(one.url)
        if one.name != SERVICE_ACCOUNTS and url.hostname:
            port = url.port or TLS_PORT
            found[url.hostname] = ServedHost(f"{one.name} host", url.hostname, not shoot.is_hibernated, port)
    if ingress_domain:
        end = f"{short_id(shoot.status.technical_id)}.{ingress_domain}"
        named = {"api": "host of the wildcard certificate", **_DASHBOARDS}
        for prefix, name in named.items():
            host = f"{prefix}-{end}"
            found.setdefault(host, ServedHost(name, host, is_sure=False))
    return list(found.values())


def tls_attempt(served: ServedHost) -> Attempt:
    """The attempt by TLS, for the name of a host."""
    return Attempt(served.name, served.host, served.port, served.is_sure)


def header_attempts(technical_id: str, host: str, ports: Iterable[int]) -> Iterator[Attempt]:
    """The attempts by a header, at the gateway that a host leads to."""
    for port in ports:
        for name, destination in _destinations(technical_id):
            yield Attempt(f"port {port}, {name}", host, port, header=_HEADERS[port], destination=destination)


def _destinations(technical_id: str) -> Iterator[tuple[str, str]]:
    yield "kube-apiserver", f"outbound|443||kube-apiserver.{technical_id}.svc.cluster.local"
    yield "kube-apiserver behind TLS of the gateway", f"{technical_id}--kube-apiserver-socket"
    for end in _VPN_SERVERS:
        yield f"vpn-seed-server{end}", f"outbound|1194||vpn-seed-server{end}.{technical_id}.svc.cluster.local"


def header_ports(without: Iterable[int]) -> list[int]:
    """The ports whose requests name their destination, without some."""
    return [port for port in _HEADERS if port not in set(without)]


def read_shoot(document: Object) -> GardenShoot:
    """A Shoot of the garden that can be probed. Raises ValueError for one without addresses."""
    shoot = msgspec.convert(document, GardenShoot)
    place = f"Shoot {shoot.metadata.namespace}/{shoot.metadata.name}"
    if not shoot.status.technical_id:
        raise ValueError(f"{place} has no status.technicalID: it is not on a seed yet; wait until it is created")
    if not shoot.status.advertised_addresses:
        raise ValueError(
            f"{place} has no status.advertisedAddresses: there is no host to try; wait until its kube-apiserver runs"
        )
    return shoot


def ingress_domain_of(seed: Object | None) -> str:
    """The domain of a Seed's dashboards; empty where it is not known."""
    if seed is None:
        return ""
    ingress = msgspec.convert(seed, GardenSeed).spec.ingress
    return ingress.domain if ingress is not None else ""
