"""Configurations of air gaps, right and wrong, with the paths of fields."""

from __future__ import annotations

from typing import Any

import pytest

from hortus.domains.garden.airgap.config import AirGap, read_config
from hortus.domains.garden.airgap.topic import AirGapReviewer
from hortus.domains.garden.extension.topic import ConfigReview
from hortus.domains.garden.kinds.seedcluster import (
    GardenShoot,
    ReferencedResource,
    ReportedNetworking,
    ShootResource,
    SnapshotAddress,
    SnapshotNetworking,
    SnapshotSpec,
    SnapshotStatus,
)

ENTRY = {"cidrs": ["198.51.100.0/24"], "ports": [443], "reason": "gateway"}
MIRROR = {"mirror": "https://images.example.org/all/"}


def errors(config: Any) -> list[str]:
    return [str(one) for one in read_config(config, "p").errors]


def test_a_whole_configuration_is_read() -> None:
    written = {
        "apiVersion": "airgap.garden.hortus.dev/v1alpha1",
        "kind": "AirGapConfig",
        "mode": "Enforce",
        "allow": [
            ENTRY,
            {"fqdns": ["ntp.example.org"], "cidrs": ["2001:db8::/64"], "protocol": "UDP", "reason": "time"},
        ],
        "registry": {**MIRROR, "strict": False},
        "namespaces": ["default", "shop"],
    }
    found = read_config(written, "p")
    assert (found.errors, found.warnings) == ((), ())
    gap = found.gap
    assert gap.is_enforced
    assert [(list(map(str, one.cidrs)), one.ports, one.protocol) for one in gap.allow] == [
        (["198.51.100.0/24"], (443,), "TCP"),
        (["2001:db8::/64"], (), "UDP"),
    ]
    registry = gap.registry
    assert (registry.mirror, registry.host, registry.port) == (
        "https://images.example.org/all",
        "images.example.org",
        443,
    )
    assert (registry.path, registry.strict, gap.namespaces) == ("all", False, ("default", "shop"))


def test_what_is_left_open_is_audited_and_strict() -> None:
    gap = read_config({"registry": MIRROR}, "p").gap
    assert (gap.mode, gap.registry.strict, AirGap().mode) == ("Audit", True, "Audit")


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (None, "p: Required value: give an AirGapConfig of airgap.garden.hortus.dev/v1alpha1"),
        ([], "p: Invalid value: []: must be an object"),
        ({"kind": "Other"}, 'p.kind: Unsupported value: "Other": supported values: "AirGapConfig"'),
        ({"mode": "audit"}, 'p.mode: Unsupported value: "audit": supported values: "Audit", "Enforce"'),
        ({"alow": []}, "p.alow: Forbidden: unknown field; there are:"),
        ({"allow": {}}, "p.allow: Invalid value: {}: must be a list"),
        ({"allow": ["x"]}, 'p.allow[0]: Invalid value: "x": must be an object'),
        ({"allow": [{"reason": "x"}]}, "p.allow[0]: Required value: give cidrs, or fqdns, or both"),
        ({"allow": [{"cidrs": ["10.0.0.0/8"]}]}, "p.allow[0].reason: Required value"),
        ({"allow": [{**ENTRY, "cidrs": ["10.0.0.1"]}]}, 'p.allow[0].cidrs[0]: Invalid value: "10.0.0.1": must have a'),
        ({"allow": [{**ENTRY, "cidrs": ["10.0.0.1/8"]}]}, "p.allow[0].cidrs[0]: Invalid value"),
        ({"allow": [{**ENTRY, "cidrs": [7]}]}, "p.allow[0].cidrs[0]: Invalid value: 7"),
        ({"allow": [{**ENTRY, "cidrs": ["10.0.0.0/8"] * 2}]}, 'p.allow[0].cidrs[1]: Duplicate value: "10.0.0.0/8"'),
        (
            {"allow": [{**ENTRY, "cidrs": ['fe80::%x } accept; include "/etc/passwd" /128']}]},
            "p.allow[0].cidrs[0]: Invalid value",
        ),
        (
            {"allow": [{**ENTRY, "ports": [0]}]},
            "p.allow[0].ports[0]: Invalid value: 0: must be a number from 1 to 65535",
        ),
        ({"allow": [{**ENTRY, "ports": [True]}]}, "p.allow[0].ports[0]: Invalid value: true"),
        ({"allow": [{**ENTRY, "ports": ["443"]}]}, "p.allow[0].ports[0]: Invalid value"),
        ({"allow": [{**ENTRY, "ports": [443, 443]}]}, "p.allow[0].ports[1]: Duplicate value: 443"),
        ({"allow": [{**ENTRY, "protocol": "ICMP"}]}, "p.allow[0].protocol: Unsupported value"),
        ({"allow": [{**ENTRY, "reason": "a\nb"}]}, "p.allow[0].reason: Invalid value"),
        ({"allow": [{**ENTRY, "fqdns": ["*.example.org"]}]}, "p.allow[0].fqdns[0]: Invalid value"),
        (
            {"mode": "Enforce", "allow": [{"fqdns": ["a.b"], "reason": "x"}]},
            "p.allow[0].cidrs: Required value: a firewall",
        ),
        ({"registry": {}}, "p.registry.mirror: Required value"),
        ({"registry": {"mirror": "images.example.org"}}, "p.registry.mirror: Invalid value"),
        ({"registry": {"mirror": "https://a:b:c"}}, "p.registry.mirror: Invalid value"),
        ({"registry": {"mirror": 'https://a/"x'}}, "p.registry.mirror: Invalid value"),
        ({"registry": {"mirror": r"https://a/\q"}}, "p.registry.mirror: Invalid value"),
        ({"registry": {**MIRROR, "strict": "no"}}, "p.registry.strict: Invalid value"),
        ({"namespaces": ["Shop"]}, "p.namespaces[0]: Invalid value"),
        ({"namespaces": ["shop", "shop"]}, "p.namespaces[1]: Duplicate value"),
    ],
)
def test_a_wrong_field_is_named(config: Any, expected: str) -> None:
    found = errors(config)
    assert len(found) == 1, found
    assert found[0].startswith(expected)


def test_credentials_in_an_address_are_refused_and_not_shown() -> None:
    [found] = errors({"registry": {"mirror": "https://me:c4n4ry@images.example.org"}})
    assert found.startswith("p.registry.mirror: Forbidden: must have no credentials")
    assert "c4n4ry" not in found


def shoot(*resources: ShootResource) -> GardenShoot:
    return GardenShoot(
        spec=SnapshotSpec(resources=resources),
        status=SnapshotStatus(advertised_addresses=(SnapshotAddress("external", "https://api.a.example.org"),)),
    )


def judged(config: Any, of: GardenShoot) -> tuple[list[str], list[str]]:
    found = AirGapReviewer().review(ConfigReview(config=config, shoot=of, path="p"))
    return list(map(str, found.errors)), list(found.warnings)


def test_a_reference_must_be_one_of_the_shoots_secrets() -> None:
    config = {"registry": {**MIRROR, "caBundleSecretReferenceName": "ca"}}
    path = "p.registry.caBundleSecretReferenceName"
    assert judged(config, shoot())[0] == [
        f'{path}: Invalid value: "ca": spec.resources of the Shoot has no entry of this name; there are: none'
    ]
    wrong = ShootResource("ca", ReferencedResource(kind="ConfigMap", name="mirror-ca"))
    assert judged(config, shoot(wrong))[0] == [
        f'{path}: Invalid value: "ca": refers to a ConfigMap; it must refer to a Secret'
    ]
    right = ShootResource("ca", ReferencedResource(kind="Secret", name="mirror-ca"))
    assert judged(config, shoot(right))[0] == []


def test_warnings_name_the_destinations_that_no_entry_has() -> None:
    gateway = {"fqdns": ["api.a.example.org"], "cidrs": ["198.51.100.1/32"], "reason": "gateway"}
    _, found = judged({"allow": [gateway]}, shoot())
    assert found == [
        "p.allow: no entry has * 53/UDP, for: DNS server of the nodes",
        "p.allow: no entry has * 53/TCP, for: DNS server of the nodes, for large answers",
        "p.allow: no entry has * 123/UDP, for: time",
    ]
    _, found = judged({"allow": [{"cidrs": ["0.0.0.0/0"], "reason": "all"}]}, shoot())
    assert "p.allow[0].cidrs: lets nodes call every address" in found


def test_enforce_is_refused_while_no_network_of_the_nodes_is_known() -> None:
    config = {"mode": "Enforce", "allow": [ENTRY]}
    services = SnapshotSpec(networking=SnapshotNetworking(services="100.64.0.0/13"))
    [error], _ = judged(config, GardenShoot(spec=services))
    assert error.startswith("spec.networking.nodes: Required value: Enforce needs the network of the nodes")
    assert judged({"allow": [ENTRY]}, GardenShoot(spec=services))[0] == []
    reported = SnapshotStatus(networking=ReportedNetworking(nodes=("10.250.0.0/16",)))
    assert judged(config, GardenShoot(spec=services, status=reported))[0] == []


def test_a_network_of_the_shoot_with_host_bits_is_refused() -> None:
    found = GardenShoot(
        spec=SnapshotSpec(networking=SnapshotNetworking(nodes="10.250.0.1/16")),
        status=SnapshotStatus(networking=ReportedNetworking(pods=("100.96.0.1/11",))),
    )
    assert judged({"mode": "Enforce", "allow": [ENTRY]}, found)[0] == [
        'spec.networking.nodes: Invalid value: "10.250.0.1/16": 10.250.0.1/16 has host bits set',
        'status.networking.pods[0]: Invalid value: "100.96.0.1/11": 100.96.0.1/11 has host bits set',
    ]
