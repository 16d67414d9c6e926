"""Addresses from which the nodes of a Shoot call its own kube-apiserver, and their stability. Pure.

Provider extensions report them as Infrastructure.status.egressCIDRs where they are stable. That of GCP reports the IPv6
network of dual-stack nodes there also where Cloud NAT chooses the IPv4 addresses, which it leaves out
(gardener-extension-provider-gcp, pkg/controller/infrastructure/infraflow/reconciler.go), so the configuration counts
first. An access list of a Shoot without stable addresses can lock its nodes out at the next change of one, which is
reported as a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from hortus.domains.garden.kinds.seedcluster import GardenShoot


class _Names(msgspec.Struct):
    nat_ip_names: list[Any] | None = msgspec.field(default=None, name="natIPNames")


class _NatGateway(msgspec.Struct):
    enabled: bool = False


class _Zone(msgspec.Struct, rename="camel"):
    nat_gateway: _NatGateway | None = None


class _Networks(msgspec.Struct, rename="camel"):
    cloud_nat: _Names | None = msgspec.field(default=None, name="cloudNAT")
    nat_gateway: _NatGateway | None = None
    zones: list[_Zone] | None = None


class _InfrastructureConfig(msgspec.Struct):
    networks: _Networks = msgspec.field(default_factory=_Networks)


class EgressStability(NamedTuple):
    """The stability of a Shoot's egress addresses."""

    stable: bool
    reason: str
    message: str


WORKERLESS: Final = EgressStability(True, "Workerless", "The Shoot has no nodes.")


def stability(shoot: GardenShoot, egress: tuple[str, ...]) -> EgressStability:
    """Judges the addresses of a Shoot whose Infrastructure reports `egress`."""
    if shoot.is_workerless:
        return WORKERLESS
    provider = shoot.spec.provider
    problem = config_warning(shoot)
    addresses = f"The nodes call from {', '.join(egress)}." if egress else ""
    if egress and not problem:
        return EgressStability(True, "AddressesReported", addresses)
    if egress:
        others = (
            f"{addresses} {problem} The access list may lock out nodes that call from others: allow their addresses."
        )
        return EgressStability(False, "FurtherAddresses", others)
    problem = problem or f"The Infrastructure of provider {provider.type or 'unknown'} reports no egress addresses."
    return EgressStability(
        False, "NoStableAddresses", f"{problem} The access list may lock out the nodes: allow their addresses."
    )


def config_warning(shoot: GardenShoot) -> str:
    """The warning that can be given before there is an Infrastructure; empty for none."""
    provider = shoot.spec.provider
    check = _CHECKS.get(provider.type)
    if shoot.is_workerless or check is None:
        return ""
    return check(_config(provider.infrastructure_config))


def _config(document: Mapping[str, Any] | None) -> _InfrastructureConfig:
    try:
        return msgspec.convert(document or {}, _InfrastructureConfig)
    except msgspec.ValidationError:
        return _InfrastructureConfig()  # the provider's own admission judges it


def _gcp(config: _InfrastructureConfig) -> str:
    nat = config.networks.cloud_nat
    if nat is not None and nat.nat_ip_names:
        return ""
    return "Cloud NAT allocates addresses dynamically: name addresses in networks.cloudNAT.natIPNames."


def _azure(config: _InfrastructureConfig) -> str:
    zones = config.networks.zones or []
    gateways = [config.networks.nat_gateway, *(zone.nat_gateway for zone in zones)]
    if any(one is not None and one.enabled for one in gateways):
        return ""
    return "Nodes call through a load balancer's changing addresses: enable networks.natGateway."


_CHECKS: Final[Mapping[str, Callable[[_InfrastructureConfig], str]]] = {"gcp": _gcp, "azure": _azure}
"""Providers whose configuration decides whether there are stable addresses."""
