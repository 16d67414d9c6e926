"""The allow-list as a firewall of nodes, as NetworkPolicies, and as configuration of containerd. Pure.

The rules are a table of nftables that a node loads whole (`nft -f`), for packets of the node and of its pods. Both end
with a counter: Audit lets through what it counts, Enforce refuses it at once instead of having callers wait.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Network, IPv6Network, collapse_addresses
from typing import Any, Final

from hortus.domains.garden.airgap.config import AirGap, AllowedDestination, Cidr, MirrorRegistry
from hortus.domains.garden.airgap.names import RULES
from hortus.kube.objects import Object
from hortus.kube.secret import Secret

TABLE: Final = "hortus_airgap"
_LOG: Final = "hortus-airgap "
_BURST: Final = "limit rate 10/second burst 50 packets"
"""Lines of the log; the counter has all packets."""
_OWN: Final = (
    'oifname "lo" accept',
    "ip daddr 255.255.255.255 udp sport 68 udp dport 67 accept",
    "ip6 daddr { ff02::1:2, fe80::/10 } udp sport 546 udp dport 547 accept",
)
"""A node asks for its addresses by itself, of servers on its link (RFC 2131, 4.1; RFC 8415, 7.1); pods do not."""


def firewall_rules(gap: AirGap, *, inside: Sequence[Cidr]) -> str:
    """The text for `nft -f`. `inside` are the networks of nodes, pods and services."""
    lines = [
        f"table inet {TABLE}",
        f"delete table inet {TABLE}",
        f"table inet {TABLE} {{",
        "  chain allowed {",
        "    ct state established accept",
        # Errors alone: a helper of conntrack relates connections to others.
        "    ct state related meta l4proto { icmp, ipv6-icmp } accept",
        # Routers forward no packet to an address of the link (RFC 4291, 2.5.6).
        "    ip6 daddr { fe80::/10, ff02::/16 } icmpv6 type "
        "{ nd-router-solicit, nd-neighbor-solicit, nd-neighbor-advert } accept",
        *(f"    {line}" for line in _accepting(inside, "", ())),
        *(f"    {line}" for one in gap.allow for line in _entry(one)),
        "  }",
        "  chain outside {",
        f'    {_BURST} log prefix "{_LOG}"',
        "    counter " + ("reject with icmpx type admin-prohibited" if gap.is_enforced else "accept"),
        "  }",
    ]
    for hook, own in (("output", _OWN), ("forward", ())):
        lines += [
            f"  chain {hook} {{",
            f"    type filter hook {hook} priority filter; policy accept;",
            *(f"    {line}" for line in own),
            "    jump allowed",
            "    goto outside",
            "  }",
        ]
    return "\n".join([*lines, "}", ""])


def _entry(one: AllowedDestination) -> Iterable[str]:
    return _accepting(one.cidrs, one.protocol.lower(), one.ports)


def _accepting(cidrs: Iterable[Cidr], protocol: str, ports: Sequence[int]) -> Iterable[str]:
    networks = list(cidrs)  # a set of nftables has no network inside of another
    match = f"{protocol} dport {{ {', '.join(map(str, ports))} }} " if ports else f"meta l4proto {protocol} "
    four = collapse_addresses(one for one in networks if isinstance(one, IPv4Network))
    six = collapse_addresses(one for one in networks if isinstance(one, IPv6Network))
    for family, found in (("ip", ", ".join(map(str, four))), ("ip6", ", ".join(map(str, six)))):
        if found:
            yield f"{family} daddr {{ {found} }} {match if protocol else ''}accept"


def network_policies(gap: AirGap, *, inside: Sequence[Cidr]) -> list[Object]:
    """A NetworkPolicy for each namespace of the configuration; pods on the network of their node have none."""
    rules: list[dict[str, Any]] = [{"to": [{"namespaceSelector": {}}]}]
    if inside:
        rules.append({"to": _blocks(inside)})
    rules += [_policy_rule(one) for one in gap.allow if one.cidrs]
    return [
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": {"name": RULES, "namespace": namespace},
            "spec": {"podSelector": {}, "policyTypes": ["Egress"], "egress": rules},
        }
        for namespace in gap.namespaces
    ]


def _policy_rule(one: AllowedDestination) -> dict[str, Any]:
    ports = [{"port": port, "protocol": one.protocol} for port in one.ports] or [{"protocol": one.protocol}]
    return {"to": _blocks(one.cidrs), "ports": ports}


def _blocks(cidrs: Iterable[Cidr]) -> list[dict[str, Any]]:
    return [{"ipBlock": {"cidr": str(one)}} for one in cidrs]


def containerd_hosts(gap: AirGap, *, bundle: str = "", user: Secret | None = None) -> str:
    """The text of `_default/hosts.toml`, which holds for every registry; empty without a mirror.

    A strict mirror is the `server` itself, so that containerd has nowhere else to go. Next to a `[host]` table it would
    go on to the registry of the image. `bundle` is the path of the mirror's authorities on a node, `user` the name and
    the password for Basic authentication. Format: containerd, docs/hosts.md.
    """
    registry = gap.registry
    if not registry.mirror:
        return ""
    address = _registry_api(registry)
    lines = [f'server = "{address}"' if registry.strict else f'[host."{address}"]']
    lines.append('capabilities = ["pull", "resolve"]')
    if registry.path:
        lines.append("override_path = true")
    if bundle:
        lines.append(f'ca = "{bundle}"')
    if user is not None:
        encoded = base64.b64encode(user.reveal().encode()).decode()
        lines += ["[header]" if registry.strict else f'[host."{address}".header]', f'authorization = "Basic {encoded}"']
    return "\n".join(lines) + "\n"


def _registry_api(registry: MirrorRegistry) -> str:
    """The address of the mirror; one with a path is that of its API."""
    root = registry.mirror.removesuffix(f"/{registry.path}") if registry.path else registry.mirror
    return f"{root}/v2/{registry.path}" if registry.path else root
