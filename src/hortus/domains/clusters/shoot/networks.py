"""Checks that the networks of a Runtime can carry a cluster: well formed, apart from each other, large enough."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network, IPv6Network, ip_network
from itertools import combinations
from typing import Final

from hortus.domains.clusters.shoot import subnets
from hortus.domains.clusters.shoot.providers import DUAL_STACK_PROVIDERS, VPC_NETWORK_FORMS, ZONED
from hortus.domains.clusters.shoot.workers import pools_of, zones_of
from hortus.domains.clusters.types import Networking, Runtime
from hortus.schema import FieldError
from hortus.schema.problems import forbidden, invalid

PATH: Final = "spec.shoot.networking"
RANGES: Final = ("nodes", "pods", "services")

_LONGEST: Final = {"nodes": 29, "pods": 24, "services": 28}
"""The smallest usable ranges: a subnet of any provider; one node's pods, which are a /24 by default; the
service addresses that Kubernetes and Gardener take for themselves."""
_AWS_SMALLEST_SUBNET: Final = 28


def network_problems(runtime: Runtime) -> list[FieldError]:
    """Problems of `spec.shoot.networking` for the provider and zones of a Runtime."""
    shoot = runtime.wanted.shoot
    networking, provider = shoot.networking, shoot.provider.type
    problems: list[FieldError] = []
    networks: dict[str, IPv4Network] = {}
    for name, text in networking.ranges.items():
        problems += _range_problems(name, text, networks, cut=name == "nodes" and provider in ZONED)
    problems += _overlaps(networks)
    if "nodes" in networks:
        problems += size_problems(runtime)
    problems += _option_problems(networking, provider)
    return problems


def size_problems(runtime: Runtime) -> list[FieldError]:
    """Problems of cutting subnets from a well-formed nodes' network, where the provider has any."""
    return list(_size_problems(runtime, IPv4Network(runtime.wanted.shoot.networking.nodes, strict=False)))


def _range_problems(
    name: str, text: str, networks: dict[str, IPv4Network], *, cut: bool = False
) -> Iterator[FieldError]:
    """Adds a usable range to `networks`. Of a range that is `cut` for zones the sizes are checked by that."""
    path = f"{PATH}.{name}"
    network = _parsed(text)
    if network is None:
        what = "worker network CIDR" if name == "nodes" else "CIDR"
        yield invalid(path, text, f"failed to parse {what}: must be an IPv4 range such as 10.250.0.0/16")
    elif str(network) != text:
        yield invalid(path, text, f"must begin at the range's first address: {network}")
    elif network.prefixlen > _LONGEST[name] and not cut:
        yield invalid(path, text, f"too small: the prefix may have at most {_LONGEST[name]} bits")
    else:
        networks[name] = network


def _parsed(text: str) -> IPv4Network | None:
    try:
        network: IPv4Network | IPv6Network = ip_network(text, strict=False)
    except ValueError:
        return None
    return network if isinstance(network, IPv4Network) and "/" in text else None


def _overlaps(networks: dict[str, IPv4Network]) -> Iterator[FieldError]:
    for (one, network), (other, taken) in combinations(networks.items(), 2):
        if network.overlaps(taken):
            yield invalid(f"{PATH}.{other}", str(taken), f"must not overlap {PATH}.{one} ({network})")


def _size_problems(runtime: Runtime, nodes: IPv4Network) -> Iterator[FieldError]:
    """Problems by the bounds of the arithmetic in `subnets`, and by the smallest subnet that AWS makes."""
    provider, path = runtime.wanted.shoot.provider.type, f"{PATH}.nodes"
    if provider not in ZONED:
        return
    if provider == "azure":
        if nodes.prefixlen > subnets.LONGEST_PREFIX:
            yield invalid(path, str(nodes), "CIDR prefix length must be less than or equal to 24")
        elif nodes.prefixlen < subnets.SHORTEST_PREFIX:
            yield invalid(path, str(nodes), "CIDR prefix length must be bigger than or equal to 16")
        return
    if not subnets.SHORTEST_PREFIX <= nodes.prefixlen <= subnets.LONGEST_PREFIX:
        yield invalid(path, str(nodes), "CIDR prefix length must be between 16 and 24")
        return
    zones = len(zones_of(pools_of(runtime)))
    longest = _AWS_SMALLEST_SUBNET - 6
    if provider == "aws" and zones > subnets.WIDE_SLOTS and nodes.prefixlen > longest:
        allowed = f"too small for {zones} zones: AWS makes no subnet below /{_AWS_SMALLEST_SUBNET}, so the prefix may"
        yield invalid(path, str(nodes), f"{allowed} have at most {longest} bits")


def _option_problems(networking: Networking, provider: str) -> Iterator[FieldError]:
    if networking.dual_stack and provider not in DUAL_STACK_PROVIDERS:
        supported = ", ".join(DUAL_STACK_PROVIDERS)
        yield forbidden(f"{PATH}.dualStack", f"not available for provider {provider}; available for {supported}")
    network = networking.vpc_network
    if network and provider in VPC_NETWORK_FORMS and not all(part for part in _two(network)):
        yield invalid(f"{PATH}.vpcNetwork", network, f"must be {VPC_NETWORK_FORMS[provider]}")


def _two(text: str) -> tuple[str, str]:
    one, _, other = text.partition("/")
    return one, other
