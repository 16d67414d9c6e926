"""The settings for each provider's extension: infrastructureConfig and controlPlaneConfig (docs/clusters/shoot.md).

A created Shoot gets both from the nodes' network and the zones. A live Shoot keeps them, to the letter: subnets and
gateways exist by them. A zone that is new there is added in the first slot that overlaps nothing; where the live
subnets are the computed ones, as they always are unless somebody imported the cluster, that is the next slot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from ipaddress import IPv4Network
from typing import Final, NamedTuple

from hortus.domains.clusters.pools import converted
from hortus.domains.clusters.shoot import subnets
from hortus.domains.clusters.shoot.problems import ConversionError
from hortus.domains.clusters.shoots import ShootProvider, ZoneName
from hortus.domains.clusters.types import Networking, RuntimeShoot
from hortus.kube import Object
from hortus.kube.patches import apply_merge_patch
from hortus.schema.problems import invalid

FLOATING_POOL: Final = "FloatingIP-external-kyma-01"
NAT_IDLE_MINUTES: Final = 4
IP_FAMILIES: Final = ("IPv4", "IPv6")
DUAL_STACK_PROVIDERS: Final = ("aws", "gcp")
ZONED: Final = ("aws", "azure", "alicloud")
"""Providers whose infrastructure has a subnet for each zone."""
VPC_NETWORK_FORMS: Final = {"azure": "<resource group>/<name>"}
"""The form of `networking.vpcNetwork` where it takes more than an identifier."""


class Configs(NamedTuple):
    """The settings for the extension of the provider."""

    infrastructure: Object
    control_plane: Object


def created_configs(shoot: RuntimeShoot, zones: Sequence[str]) -> Configs:
    """The settings of a new Shoot, from `spec.shoot` of a Runtime, which must be valid, and its zones in order."""
    provider = shoot.provider.type
    return Configs(
        {**_head(provider, "InfrastructureConfig"), **_INFRASTRUCTURE[provider](shoot.networking, zones)},
        _control_plane(provider, zones),
    )


def patched_configs(shoot: RuntimeShoot, live: ShootProvider, zones: Sequence[str]) -> Configs:
    """The settings of a live Shoot, with the zones that it does not have yet. Raises ConversionError."""
    provider, present = shoot.provider.type, live.networks.zones or ()
    infrastructure = live.infrastructure_config or {}
    control_plane = live.control_plane_config or _control_plane(provider, zones)
    # Azure's lite plan of old has no zones.
    new = new_zones(present, zones) if provider in ZONED and (present or provider != "azure") else []
    if new:
        added = _added(provider, _nodes(shoot.networking), present, new)
        infrastructure = apply_merge_patch(infrastructure, {"networks": {"zones": [*present, *added]}})
    return Configs(infrastructure, control_plane)


def new_zones(present: Iterable[Object], zones: Iterable[str]) -> list[str]:
    """The zones without subnets among the `present` entries of `networks.zones`."""
    names = {str(converted(zone, ZoneName, "zone of infrastructureConfig").name) for zone in present}
    return [zone for zone in dict.fromkeys(zones) if zone not in names]


def _added(provider: str, nodes: IPv4Network, present: Sequence[Object], names: Sequence[str]) -> list[Object]:
    taken = [IPv4Network(value) for zone in present for value in zone.values() if _is_network(value)]
    entries: list[Object] = []
    slots = iter(range(subnets.MOST_ZONES))
    for name in names:
        entry = next((e for slot in slots if _free(e := _zone(provider, nodes, slot, name), taken)), None)
        if entry is None:
            text = f"no address range is left for zone {name} besides those of the live zones"
            raise ConversionError([invalid("spec.shoot.networking.nodes", str(nodes), text)])
        entries.append(entry)
    return entries


def _free(entry: Object, taken: Sequence[IPv4Network]) -> bool:
    made = [IPv4Network(value) for value in entry.values() if _is_network(value)]
    return not any(one.overlaps(other) for one in made for other in taken)


def _is_network(value: object) -> bool:
    return isinstance(value, str) and "/" in value


def _zone(provider: str, nodes: IPv4Network, slot: int, name: str) -> Object:
    """The entry of one zone in `networks.zones`."""
    if provider == "aws":
        cut = subnets.triple(nodes, slot)
        return {
            "name": name,
            "internal": str(cut.internal),
            "public": str(cut.public),
            "workers": str(cut.workers),
        }
    if provider == "azure":
        gateway = {"enabled": True, "idleConnectionTimeoutMinutes": NAT_IDLE_MINUTES}
        return {"name": int(name), "cidr": str(subnets.single(nodes, slot)), "natGateway": gateway}
    return {"name": name, "workers": str(subnets.triple(nodes, slot).workers)}


def _zones(provider: str, networking: Networking, names: Sequence[str]) -> list[Object]:
    nodes = _nodes(networking)
    return [_zone(provider, nodes, slot, name) for slot, name in enumerate(names)]


def _nodes(networking: Networking) -> IPv4Network:
    return IPv4Network(networking.nodes, strict=False)


def _vpc(networking: Networking) -> Object:
    network = networking.vpc_network
    return {"id": network} if network else {"cidr": networking.nodes}


def _aws(networking: Networking, zones: Sequence[str]) -> Object:
    config: Object = {"networks": {"vpc": _vpc(networking), "zones": _zones("aws", networking, zones)}}
    if networking.dual_stack:
        config["dualStack"] = {"enabled": True}
    return config


def _azure(networking: Networking, zones: Sequence[str]) -> Object:
    group, _, name = (networking.vpc_network or "").partition("/")
    networks: Object = {"vnet": {"name": name, "resourceGroup": group} if name else {"cidr": networking.nodes}}
    if zones:
        networks["zones"] = _zones("azure", networking, zones)
    return {"networks": networks, "zoned": bool(zones)}


def _gcp(networking: Networking, zones: Sequence[str]) -> Object:
    nodes, network = networking.nodes, networking.vpc_network
    # `worker` is the deprecated twin of `workers`; the Go system writes both.
    networks: Object = {"worker": nodes, "workers": nodes}
    return {"networks": {"vpc": {"name": network}, **networks} if network else networks}


def _openstack(networking: Networking, zones: Sequence[str]) -> Object:
    nodes, network = networking.nodes, networking.vpc_network
    networks: Object = {"worker": "", "workers": nodes}
    return {
        "floatingPoolName": FLOATING_POOL,
        "networks": {"id": network, **networks} if network else networks,
    }


def _alicloud(networking: Networking, zones: Sequence[str]) -> Object:
    return {"networks": {"vpc": _vpc(networking), "zones": _zones("alicloud", networking, zones)}}


_INFRASTRUCTURE: dict[str, Callable[[Networking, Sequence[str]], Object]] = {
    "aws": _aws,
    "azure": _azure,
    "gcp": _gcp,
    "openstack": _openstack,
    "alicloud": _alicloud,
}
PROVIDERS: Final = tuple(_INFRASTRUCTURE)


def _control_plane(provider: str, zones: Sequence[str]) -> Object:
    config: Object = _head(provider, "ControlPlaneConfig")
    if provider == "gcp":
        config["zone"] = zones[0]
    elif provider == "openstack":
        config["loadBalancerProvider"] = "f5"
    return config


def _head(provider: str, kind: str) -> Object:
    return {"apiVersion": f"{provider}.provider.extensions.gardener.cloud/v1alpha1", "kind": kind}
