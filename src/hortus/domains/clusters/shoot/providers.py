"""What each provider's extension is told: infrastructureConfig and controlPlaneConfig (section 3.6).

A created Shoot gets both from the nodes' network and the zones. A live Shoot keeps them, to the letter: subnets and
gateways exist by them. A zone that is new there is added in the first slot that overlaps nothing; where the live
subnets are the computed ones, as they always are unless somebody imported the cluster, that is the next slot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from ipaddress import IPv4Network
from typing import Any, Final, NamedTuple

from hortus.domains.clusters.shoot import subnets
from hortus.domains.clusters.shoot.problems import ConversionError
from hortus.kube import Object
from hortus.schema.problems import invalid

FLOATING_POOL: Final = "FloatingIP-external-kyma-01"
NAT_IDLE_MINUTES: Final = 4
IP_FAMILIES: Final = ("IPv4", "IPv6")
DUAL_STACK_PROVIDERS: Final = ("aws", "gcp")
ZONED: Final = ("aws", "azure", "alicloud")
"""Providers whose infrastructure has a subnet for each zone."""
VPC_NETWORK_FORMS: Final = {"azure": "<resource group>/<name>"}
"""How `networking.vpcNetwork` is written where it takes more than an identifier."""


class Configs(NamedTuple):
    """What the extension of the provider gets."""

    infrastructure: Object
    control_plane: Object


def created_configs(shoot: Object, zones: Sequence[str]) -> Configs:
    """For a new Shoot, from `spec.shoot` of a Runtime, which must be valid, and its zones in order."""
    provider = shoot["provider"]["type"]
    return Configs(
        {**_head(provider, "InfrastructureConfig"), **_INFRASTRUCTURE[provider](shoot, zones)},
        _control_plane(provider, zones),
    )


def patched_configs(shoot: Object, live_provider: Object, zones: Sequence[str]) -> Configs:
    """For a live Shoot: what it has, and the zones that it does not have yet. Raises ConversionError."""
    provider = shoot["provider"]["type"]
    infrastructure = live_provider["infrastructureConfig"]
    control_plane = live_provider.get("controlPlaneConfig") or _control_plane(provider, zones)
    new = [] if _unzoned(provider, infrastructure) else new_zones(live_provider, zones)
    if new:
        networks = infrastructure.get("networks") or {}
        present = list(networks.get("zones") or ())
        added = _added(provider, _nodes(shoot), present, new)
        infrastructure = {**infrastructure, "networks": {**networks, "zones": [*present, *added]}}
    return Configs(infrastructure, control_plane)


def new_zones(live_provider: Object, zones: Iterable[str]) -> list[str]:
    """Those of `zones` that have no subnets in a live Shoot yet."""
    networks = live_provider["infrastructureConfig"].get("networks") or {}
    present = {str(zone["name"]) for zone in networks.get("zones") or ()}
    return [zone for zone in dict.fromkeys(zones) if zone not in present]


def _unzoned(provider: str, infrastructure: Mapping[str, Any]) -> bool:
    """Whether the infrastructure has no place for zones: by its provider, or Azure's lite plan of old."""
    if provider == "azure":
        return not (infrastructure.get("networks") or {}).get("zones")
    return provider not in ZONED


def _added(provider: str, nodes: IPv4Network, present: Sequence[Object], names: Sequence[str]) -> list[Object]:
    taken = [IPv4Network(value) for zone in present for value in zone.values() if _is_network(value)]
    entries: list[Object] = []
    slots = iter(range(subnets.MOST_ZONES))
    for name in names:
        entry = next((e for slot in slots if _free(e := _zone(provider, nodes, slot, name), taken)), None)
        if entry is None:
            text = f"no address range is left for zone {name} beside those of the live zones"
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


def _zones(provider: str, shoot: Object, names: Sequence[str]) -> list[Object]:
    nodes = _nodes(shoot)
    return [_zone(provider, nodes, slot, name) for slot, name in enumerate(names)]


def _nodes(shoot: Object) -> IPv4Network:
    return IPv4Network(shoot["networking"]["nodes"], strict=False)


def _aws(shoot: Object, zones: Sequence[str]) -> Object:
    network = shoot["networking"].get("vpcNetwork")
    vpc = {"id": network} if network else {"cidr": shoot["networking"]["nodes"]}
    config: Object = {"networks": {"vpc": vpc, "zones": _zones("aws", shoot, zones)}}
    if shoot["networking"].get("dualStack"):
        config["dualStack"] = {"enabled": True}
    return config


def _azure(shoot: Object, zones: Sequence[str]) -> Object:
    group, _, name = (shoot["networking"].get("vpcNetwork") or "").partition("/")
    vnet = {"name": name, "resourceGroup": group} if name else {"cidr": shoot["networking"]["nodes"]}
    networks: Object = {"vnet": vnet}
    if zones:
        networks["zones"] = _zones("azure", shoot, zones)
    return {"networks": networks, "zoned": bool(zones)}


def _gcp(shoot: Object, zones: Sequence[str]) -> Object:
    nodes, network = shoot["networking"]["nodes"], shoot["networking"].get("vpcNetwork")
    # `worker` is the deprecated twin of `workers`; the Go system writes both.
    networks: Object = {"worker": nodes, "workers": nodes}
    return {"networks": {"vpc": {"name": network}, **networks} if network else networks}


def _openstack(shoot: Object, zones: Sequence[str]) -> Object:
    nodes, network = shoot["networking"]["nodes"], shoot["networking"].get("vpcNetwork")
    networks: Object = {"worker": "", "workers": nodes}
    return {
        "floatingPoolName": FLOATING_POOL,
        "networks": {"id": network, **networks} if network else networks,
    }


def _alicloud(shoot: Object, zones: Sequence[str]) -> Object:
    network = shoot["networking"].get("vpcNetwork")
    vpc = {"id": network} if network else {"cidr": shoot["networking"]["nodes"]}
    return {"networks": {"vpc": vpc, "zones": _zones("alicloud", shoot, zones)}}


_INFRASTRUCTURE: dict[str, Callable[[Object, Sequence[str]], Object]] = {
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
