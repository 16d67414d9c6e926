"""The texts that are made of an allow-list: for nftables, for containerd, and as NetworkPolicies."""

from __future__ import annotations

import tomllib
from ipaddress import ip_network
from typing import Any

import pytest

from hortus.domains.garden.airgap.config import AirGap, read_config
from hortus.domains.garden.airgap.endpoints import endpoints_of, lacking
from hortus.domains.garden.airgap.firewall import containerd_hosts, firewall_rules, network_policies
from hortus.domains.garden.airgap.networks import inside_networks
from hortus.domains.garden.airgap.topic import UNIT_TEXT
from hortus.domains.garden.kinds.seedcluster import (
    GardenShoot,
    ReportedNetworking,
    SnapshotAddress,
    SnapshotDns,
    SnapshotNetworking,
    SnapshotSpec,
    SnapshotStatus,
)

INSIDE = (ip_network("10.250.0.0/16"), ip_network("2001:db8:1::/64"))
ALLOW = [
    {"cidrs": ["198.51.100.1/32", "2001:db8::1/128"], "ports": [443, 8132], "reason": "gateway"},
    {"cidrs": ["198.51.100.53/32"], "protocol": "UDP", "reason": "DNS and time"},
    {"fqdns": ["only.a.name"], "reason": "nothing that a firewall matches"},
]


def gap(**config: Any) -> AirGap:
    found = read_config(config, "p")
    assert found.errors == ()
    return found.gap


def test_the_firewall_accepts_the_list_and_counts_the_rest() -> None:
    lines = [line.strip() for line in firewall_rules(gap(allow=ALLOW), inside=INSIDE).splitlines()]
    assert lines[:3] == ["table inet hortus_airgap", "delete table inet hortus_airgap", "table inet hortus_airgap {"]
    answers = next(index for index, line in enumerate(lines) if "nd-neighbor-advert" in line)
    accepted = lines[answers + 1 : lines.index("}")]
    assert accepted == [
        "ip daddr { 10.250.0.0/16 } accept",
        "ip6 daddr { 2001:db8:1::/64 } accept",
        "ip daddr { 198.51.100.1/32 } tcp dport { 443, 8132 } accept",
        "ip6 daddr { 2001:db8::1/128 } tcp dport { 443, 8132 } accept",
        "ip daddr { 198.51.100.53/32 } meta l4proto udp accept",
    ]
    assert "counter accept" in lines
    assert lines.count("goto outside") == 2


def test_a_zone_is_no_part_of_a_network_that_is_inside() -> None:
    zone = "fe80::%x } accept; flush ruleset; /64"
    found = inside_networks(GardenShoot(spec=SnapshotSpec(networking=SnapshotNetworking(nodes=zone))))
    assert found.cidrs == ()
    assert ["spec.networking.nodes" in str(one) for one in found.errors] == [True]


def test_a_set_of_the_firewall_has_no_network_inside_of_another() -> None:
    nested = ["10.1.0.0/16", "10.0.0.0/8", "2001:db8::/32", "2001:db8:1::/48"]
    text = firewall_rules(gap(allow=[{"cidrs": nested, "reason": "x"}]), inside=())
    assert "ip daddr { 10.0.0.0/8 } meta l4proto tcp accept" in text
    assert "ip6 daddr { 2001:db8::/32 } meta l4proto tcp accept" in text


def test_a_restart_of_the_unit_replaces_the_table_and_never_removes_it() -> None:
    assert "ExecStart=/usr/sbin/nft -f /etc/hortus/airgap.nft" in UNIT_TEXT
    assert "ExecStop" not in UNIT_TEXT


def test_the_firewall_refuses_the_rest_where_it_is_enforced() -> None:
    text = firewall_rules(gap(mode="Enforce", allow=ALLOW[:2]), inside=())
    assert "counter reject with icmpx type admin-prohibited" in text
    assert "counter accept" not in text
    assert text.count("{") == text.count("}")


def test_a_network_policy_has_the_same_list_for_each_namespace() -> None:
    found = network_policies(gap(allow=ALLOW, namespaces=["default", "shop"]), inside=INSIDE[:1])
    assert [one["metadata"] for one in found] == [
        {"name": "hortus-airgap", "namespace": "default"},
        {"name": "hortus-airgap", "namespace": "shop"},
    ]
    assert found[0]["spec"] == {
        "podSelector": {},
        "policyTypes": ["Egress"],
        "egress": [
            {"to": [{"namespaceSelector": {}}]},
            {"to": [{"ipBlock": {"cidr": "10.250.0.0/16"}}]},
            {
                "to": [{"ipBlock": {"cidr": "198.51.100.1/32"}}, {"ipBlock": {"cidr": "2001:db8::1/128"}}],
                "ports": [{"port": 443, "protocol": "TCP"}, {"port": 8132, "protocol": "TCP"}],
            },
            {"to": [{"ipBlock": {"cidr": "198.51.100.53/32"}}], "ports": [{"protocol": "UDP"}]},
        ],
    }


@pytest.mark.parametrize(
    ("registry", "bundle", "expected"),
    [
        (None, "", {}),
        (
            {"mirror": "https://m.example.org:5000"},
            "",
            {"server": "https://m.example.org:5000", "capabilities": ["pull", "resolve"]},
        ),
        (
            {"mirror": "https://m.example.org/all"},
            "/ca.crt",
            {
                "server": "https://m.example.org/v2/all",
                "capabilities": ["pull", "resolve"],
                "override_path": True,
                "ca": "/ca.crt",
            },
        ),
        (
            {"mirror": "https://m.example.org/all", "strict": False},
            "",
            {"host": {"https://m.example.org/v2/all": {"capabilities": ["pull", "resolve"], "override_path": True}}},
        ),
    ],
)
def test_containerd_has_nowhere_else_to_go_with_a_strict_mirror(
    registry: Any, bundle: str, expected: dict[str, Any]
) -> None:
    assert tomllib.loads(containerd_hosts(gap(registry=registry), bundle=bundle)) == expected


SHOOT = GardenShoot(
    spec=SnapshotSpec(dns=SnapshotDns("a.example.org")),
    status=SnapshotStatus(
        advertised_addresses=(
            SnapshotAddress("external", "https://api.a.example.org"),
            SnapshotAddress("internal", "https://api.a.internal.example.org"),
            SnapshotAddress("service-account-issuer", "https://issuer.example.org"),
        )
    ),
)


def test_the_destinations_are_those_of_the_control_plane_images_names_and_time() -> None:
    found = endpoints_of(SHOOT, gap(), registries=["docker.io", "registry.example.org:5000"])
    assert [(one.host, one.port, one.protocol) for one in found] == [
        ("api.a.example.org", 443, "TCP"),
        ("api.a.internal.example.org", 443, "TCP"),
        ("api.a.example.org", 8443, "TCP"),
        ("api.a.example.org", 8132, "TCP"),
        ("registry-1.docker.io", 443, "TCP"),
        ("auth.docker.io", 443, "TCP"),
        ("production.cloudflare.docker.com", 443, "TCP"),
        ("registry.example.org", 5000, "TCP"),
        ("*", 53, "UDP"),
        ("*", 53, "TCP"),
        ("*", 123, "UDP"),
    ]
    assert lacking(found) == found


@pytest.mark.parametrize(("strict", "hosts"), [(True, {"m.a"}), (False, {"m.a", "quay.io"})])
def test_only_a_strict_mirror_stands_for_all_registries(strict: bool, hosts: set[str]) -> None:
    found = endpoints_of(
        GardenShoot(), gap(registry={"mirror": "https://m.a", "strict": strict}), registries=["quay.io"]
    )
    assert {one.host for one in found} - {"*"} == hosts


def test_an_entry_has_a_destination_by_name_or_by_address_with_port_and_protocol() -> None:
    allow = [
        {"fqdns": ["api.a.example.org"], "cidrs": ["198.51.100.1/32"], "ports": [443, 8132], "reason": "gateway"},
        {"cidrs": ["198.51.100.9/32"], "ports": [5000], "reason": "mirror"},
        {"cidrs": ["198.51.100.53/32"], "ports": [53], "protocol": "UDP", "reason": "names"},
        {"cidrs": ["198.51.100.7/32"], "protocol": "UDP", "reason": "all ports of one host are not the time"},
    ]
    made = gap(allow=allow, registry={"mirror": "https://198.51.100.9:5000"})
    found = {(one.host, one.port, one.protocol): one.allowed_by for one in endpoints_of(SHOOT, made)}
    assert found == {
        ("api.a.example.org", 443, "TCP"): "gateway",
        ("api.a.internal.example.org", 443, "TCP"): "",
        ("api.a.example.org", 8443, "TCP"): "",
        ("api.a.example.org", 8132, "TCP"): "gateway",
        ("198.51.100.9", 5000, "TCP"): "mirror",
        ("*", 53, "UDP"): "names",
        ("*", 53, "TCP"): "",
        ("*", 123, "UDP"): "",
    }


def test_an_entry_without_ports_has_all_of_its_network_and_none_of_a_host_that_is_not_known() -> None:
    allow = [
        {"cidrs": ["198.51.100.7/32"], "reason": "all ports of one host"},
        {"cidrs": ["198.51.0.0/16"], "protocol": "UDP", "reason": "all of a network"},
    ]
    found = {
        (one.host, one.port, one.protocol): one.allowed_by for one in endpoints_of(GardenShoot(), gap(allow=allow))
    }
    assert found == {
        ("*", 53, "UDP"): "all of a network",
        ("*", 53, "TCP"): "",
        ("*", 123, "UDP"): "all of a network",
    }


def test_a_destination_inside_of_the_cluster_needs_no_entry() -> None:
    shoot = GardenShoot(spec=SnapshotSpec(networking=SnapshotNetworking(services="100.64.0.0/13")))
    for host, allowed_by in (("100.64.0.10", "inside of the cluster"), ("198.51.100.9", "")):
        found = endpoints_of(shoot, gap(registry={"mirror": f"https://{host}"}))
        assert {one.host: one.allowed_by for one in found}[host] == allowed_by


def test_the_networks_of_spec_and_status_are_inside_each_once() -> None:
    shoot = GardenShoot(
        spec=SnapshotSpec(networking=SnapshotNetworking(pods="100.96.0.0/11")),
        status=SnapshotStatus(
            networking=ReportedNetworking(
                nodes=("10.250.0.0/16", "10.250.4.0/24", "2001:db8:1::/64"), pods=("100.96.0.0/11",)
            )
        ),
    )
    found = inside_networks(shoot)
    assert [str(one) for one in found.cidrs] == ["100.96.0.0/11", "10.250.0.0/16", "2001:db8:1::/64"]
    assert found.has_nodes
    assert not inside_networks(GardenShoot(spec=shoot.spec)).has_nodes
