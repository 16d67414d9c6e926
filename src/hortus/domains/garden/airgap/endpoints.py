"""The destinations that the nodes of a Shoot need, and the entry of the allow-list that has each. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final
from urllib.parse import urlsplit

import msgspec

from hortus.domains.garden.airgap.config import AirGap, AllowedDestination
from hortus.domains.garden.airgap.names import API_PORT, DNS_PORT, NTP_PORT, PROXY_PORT, VPN_PORT
from hortus.domains.garden.airgap.networks import inside_networks
from hortus.domains.garden.kinds.seedcluster import GardenShoot

ANY: Final = "*"
"""The host of a need that does not say which one it is."""
INSIDE: Final = "inside of the cluster"
"""The reason of destinations in the networks of nodes, pods and services, which need no entry."""
_SERVICE_ACCOUNTS: Final = "service-account-issuer"
_DOCKER_HUB: Final = ("registry-1.docker.io", "auth.docker.io", "production.cloudflare.docker.com")


class NeededEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One destination, the part of a node that calls it, and what lets it."""

    host: str
    port: int
    protocol: str = "TCP"
    purpose: str
    allowed_by: str = ""
    """The reason of the entry that has it; empty where none has."""


def endpoints_of(shoot: GardenShoot, gap: AirGap, *, registries: Iterable[str] = ()) -> list[NeededEndpoint]:
    """All destinations of a Shoot's nodes. `registries` are those of its images, where no strict mirror has these."""
    needs = [
        *_control_plane(shoot),
        *_registries(gap, registries),
        NeededEndpoint(host=ANY, port=DNS_PORT, protocol="UDP", purpose="DNS server of the nodes"),
        NeededEndpoint(host=ANY, port=DNS_PORT, purpose="DNS server of the nodes, for large answers"),
        NeededEndpoint(host=ANY, port=NTP_PORT, protocol="UDP", purpose="time"),
    ]
    inside = AllowedDestination(cidrs=inside_networks(shoot).cidrs, reason=INSIDE)
    return [msgspec.structs.replace(one, allowed_by=_entry_for(gap, inside, one)) for one in needs]


def lacking(endpoints: Sequence[NeededEndpoint]) -> list[NeededEndpoint]:
    """The destinations that no entry has."""
    return [one for one in endpoints if not one.allowed_by]


def _control_plane(shoot: GardenShoot) -> Iterable[NeededEndpoint]:
    addresses = shoot.status.advertised_addresses or ()
    places = [urlsplit(one.url) for one in addresses if one.name != _SERVICE_ACCOUNTS]
    known = [(one.hostname, one.port or API_PORT) for one in places if one.hostname]
    if shoot.spec.dns is not None and shoot.spec.dns.domain:
        known.append((f"api.{shoot.spec.dns.domain}", API_PORT))
    for host, port in dict.fromkeys(known):
        yield NeededEndpoint(host=host, port=port, purpose="kube-apiserver, through the seed's gateway")
    for host, _ in known[:1]:
        yield NeededEndpoint(host=host, port=PROXY_PORT, purpose="kube-apiserver from pods, by the proxy port")
        yield NeededEndpoint(host=host, port=VPN_PORT, purpose="VPN to the control plane")


def _registries(gap: AirGap, registries: Iterable[str]) -> Iterable[NeededEndpoint]:
    registry = gap.registry
    if registry.mirror:
        yield NeededEndpoint(host=registry.host, port=registry.port, purpose="mirror of all images")
    if registry.mirror and registry.strict:
        return
    for name in dict.fromkeys(registries):
        host, _, port = name.rpartition(":") if ":" in name else (name, "", "443")
        for each in _DOCKER_HUB if host == "docker.io" else (host,):
            yield NeededEndpoint(host=each, port=int(port), purpose="registry of images")


def _entry_for(gap: AirGap, inside: AllowedDestination, need: NeededEndpoint) -> str:
    for one in gap.allow:
        if one.has(need.host, need.port, need.protocol) or (need.host == ANY and _may_have(one, need)):
            return one.reason
    return inside.reason if inside.has(need.host, need.port, inside.protocol) else ""


def _may_have(one: AllowedDestination, need: NeededEndpoint) -> bool:
    """Reports whether an entry has a port of a host that is not known; one without ports has all of a network."""
    networks = any(cidr.num_addresses > 1 for cidr in one.cidrs)
    return one.protocol == need.protocol and (need.port in one.ports or (networks and not one.ports))
