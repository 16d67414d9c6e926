"""The configuration of each provider's extension, for a new Shoot and for a live one."""

from __future__ import annotations

from typing import Any

import pytest
from tests.domains.clusters.shoot.documents import patch_for, shoot_for
from tests.domains.clusters.shoot.samples import CONFIG, CONTEXT, ZONES, lived, pool, runtime

from hortus.domains.clusters.shoot import ConversionError
from hortus.kube import Object

NAT = {"enabled": True, "idleConnectionTimeoutMinutes": 4}
EXTENSION = "provider.extensions.gardener.cloud/v1alpha1"
INFRASTRUCTURE: dict[str, Object] = {
    "azure": {
        "networks": {
            "vnet": {"cidr": "10.250.0.0/16"},
            "zones": [
                {"name": 1, "cidr": "10.250.0.0/19", "natGateway": NAT},
                {"name": 2, "cidr": "10.250.32.0/19", "natGateway": NAT},
                {"name": 3, "cidr": "10.250.64.0/19", "natGateway": NAT},
            ],
        },
        "zoned": True,
    },
    "gcp": {"networks": {"worker": "10.250.0.0/16", "workers": "10.250.0.0/16"}},
    "openstack": {
        "floatingPoolName": "FloatingIP-external-kyma-01",
        "networks": {"worker": "", "workers": "10.250.0.0/16"},
    },
    "alicloud": {
        "networks": {
            "vpc": {"cidr": "10.250.0.0/16"},
            "zones": [
                {"name": "eu-central-1a", "workers": "10.250.0.0/19"},
                {"name": "eu-central-1b", "workers": "10.250.64.0/19"},
            ],
        }
    },
}
CONTROL_PLANES: dict[str, Object] = {
    "azure": {},
    "gcp": {"zone": "eu-central-1-a"},
    "openstack": {"loadBalancerProvider": "f5"},
    "alicloud": {},
}


def _configs(made: Object) -> tuple[Object, Object]:
    provider = made["spec"]["provider"]
    return provider["infrastructureConfig"], provider["controlPlaneConfig"]


@pytest.mark.parametrize("provider", INFRASTRUCTURE)
def test_a_new_shoot_gets_what_its_provider_needs(provider: str) -> None:
    infrastructure, control_plane = _configs(shoot_for(runtime(provider), CONFIG, CONTEXT))
    head = {"apiVersion": f"{provider}.{EXTENSION}"}
    assert infrastructure == {**head, "kind": "InfrastructureConfig", **INFRASTRUCTURE[provider]}
    assert control_plane == {**head, "kind": "ControlPlaneConfig", **CONTROL_PLANES[provider]}


def test_azure_without_zones_has_none_in_its_network() -> None:
    infrastructure, _ = _configs(shoot_for(runtime("azure", pool=pool()), CONFIG, CONTEXT))
    assert infrastructure["networks"] == {"vnet": {"cidr": "10.250.0.0/16"}}
    assert infrastructure["zoned"] is False


def test_azure_subnets_follow_the_order_of_zones_and_not_their_numbers() -> None:
    infrastructure, _ = _configs(shoot_for(runtime("azure", pool=pool(zones=["3", "1"])), CONFIG, CONTEXT))
    zones = [(zone["name"], zone["cidr"]) for zone in infrastructure["networks"]["zones"]]
    assert zones == [(3, "10.250.0.0/19"), (1, "10.250.32.0/19")]


def test_the_zones_of_all_pools_count_in_order_of_first_appearance() -> None:
    further = [pool("second", zones=["eu-central-1c", "eu-central-1b"]), pool("third", zones=["eu-central-1a"])]
    made = shoot_for(runtime(pool=pool(zones=["eu-central-1b"]), further=further), CONFIG, CONTEXT)
    names = [zone["name"] for zone in _configs(made)[0]["networks"]["zones"]]
    assert names == ["eu-central-1b", "eu-central-1c", "eu-central-1a"]


@pytest.mark.parametrize("provider", ZONES)
def test_the_runtimes_own_configs_are_ignored(provider: str) -> None:
    given = runtime(provider)
    given["spec"]["shoot"]["provider"] |= {"infrastructureConfig": {"kind": "Mine"}, "controlPlaneConfig": {"a": 1}}
    assert shoot_for(given, CONFIG, CONTEXT) == shoot_for(runtime(provider), CONFIG, CONTEXT)


@pytest.mark.parametrize(
    ("provider", "network", "expected"),
    [
        ("aws", "vpc-1", {"vpc": {"id": "vpc-1"}}),
        ("azure", "group/net", {"vnet": {"name": "net", "resourceGroup": "group"}}),
        ("gcp", "net", {"vpc": {"name": "net"}}),
        ("openstack", "net-id", {"id": "net-id"}),
        ("alicloud", "vpc-1", {"vpc": {"id": "vpc-1"}}),
    ],
)
def test_a_network_that_exists_is_named_as_the_extension_wants_it(
    provider: str, network: str, expected: Object
) -> None:
    given = runtime(provider)
    given["spec"]["shoot"]["networking"]["vpcNetwork"] = network
    infrastructure, _ = _configs(shoot_for(given, CONFIG, CONTEXT))
    assert {name: infrastructure["networks"][name] for name in expected} == expected


def test_dual_stack_on_aws_is_set_for_gardener_and_for_the_extension() -> None:
    given = runtime()
    given["spec"]["shoot"]["networking"]["dualStack"] = True
    made = shoot_for(given, CONFIG, CONTEXT)
    assert made["spec"]["networking"]["ipFamilies"] == ["IPv4", "IPv6"]
    assert _configs(made)[0]["dualStack"] == {"enabled": True}


# Patches of a live Shoot.


def _live(provider: str, **changes: Any) -> Object:
    return lived(shoot_for(runtime(provider, **changes), CONFIG, CONTEXT))


def _patched(given: Object, live: Object) -> tuple[Object, Object]:
    return _configs(patch_for(given, live, CONFIG, CONTEXT).shoot)


@pytest.mark.parametrize("provider", ZONES)
def test_without_a_new_zone_both_configs_stay_to_the_letter(provider: str) -> None:
    live = _live(provider)
    live["spec"]["provider"]["infrastructureConfig"]["somebodys"] = {"own": True}
    live["spec"]["provider"]["controlPlaneConfig"]["theirs"] = 1
    assert _patched(runtime(provider), live) == _configs(live)


@pytest.mark.parametrize("provider", ["aws", "azure", "alicloud"])
def test_a_new_zone_is_cut_as_if_it_had_been_there_from_the_start(provider: str) -> None:
    zones = ZONES[provider]
    live = _live(provider, pool=pool(zones=zones[:1]))
    grown = runtime(provider, pool=pool(zones=zones))
    assert _patched(grown, live) == _configs(shoot_for(grown, CONFIG, CONTEXT))


def test_further_settings_of_the_live_network_stay_when_a_zone_is_added() -> None:
    live = _live("aws", pool=pool(zones=ZONES["aws"][:1]))
    infrastructure = live["spec"]["provider"]["infrastructureConfig"]
    infrastructure |= {"ignoreTags": {"keys": ["a"]}, "enableECRAccess": True, "dualStack": {"enabled": True}}
    infrastructure["networks"]["vpc"] = {"id": "vpc-1", "gatewayEndpoints": ["s3"]}
    infrastructure["networks"]["zones"][0]["elasticIPAllocationID"] = "eipalloc-1"
    before = {**infrastructure, "networks": {**infrastructure["networks"]}}
    patched, _ = _patched(runtime(), live)
    zones = patched["networks"].pop("zones")
    assert zones[0] == before["networks"].pop("zones")[0]
    assert [zone["name"] for zone in zones] == ZONES["aws"]
    assert patched == before


def test_azure_lite_keeps_a_network_without_zones() -> None:
    live = _live("azure", pool=pool())
    assert _patched(runtime("azure"), live) == _configs(live)


def test_a_zone_of_a_pool_that_went_keeps_its_subnets_for_its_return() -> None:
    """The Go system would give them to another zone."""
    zones = ZONES["aws"]
    live = _live("aws", pool=pool(zones=zones[:1]), further=[pool("second", zones=[zones[1]])])
    del live["spec"]["provider"]["workers"][1]
    grown = runtime(pool=pool(zones=[zones[0], zones[2]]))
    names = [zone["name"] for zone in _patched(grown, live)[0]["networks"]["zones"]]
    assert names == zones


def test_a_new_zone_evades_subnets_that_somebody_chose_by_hand() -> None:
    live = _live("aws", pool=pool(zones=ZONES["aws"][:1]))
    live["spec"]["provider"]["infrastructureConfig"]["networks"]["zones"][0] |= {
        "workers": "10.250.0.0/17",
        "public": "10.250.192.0/20",
        "internal": "10.250.208.0/20",
    }
    added = _patched(runtime(pool=pool(zones=ZONES["aws"][:2])), live)[0]["networks"]["zones"][1]
    assert (added["workers"], added["public"], added["internal"]) == (
        "10.250.128.0/19",
        "10.250.160.0/20",
        "10.250.176.0/20",
    )


def test_where_hand_made_subnets_leave_no_room_a_new_zone_is_refused() -> None:
    live = _live("aws", pool=pool(zones=ZONES["aws"][:1]))
    live["spec"]["provider"]["infrastructureConfig"]["networks"]["zones"][0]["workers"] = "10.250.0.0/16"
    with pytest.raises(ConversionError, match="no address range is left for zone eu-central-1b"):
        patch_for(runtime(pool=pool(zones=ZONES["aws"][:2])), live, CONFIG, CONTEXT)


def test_a_live_network_beyond_the_bounds_of_the_cut_hinders_only_new_zones() -> None:
    wide = {"networking": {"nodes": "10.0.0.0/11", "pods": "100.64.0.0/12", "services": "100.104.0.0/13"}}
    live = _live("aws", pool=pool(zones=ZONES["aws"][:1]))
    live["spec"]["networking"] |= wide["networking"]
    live["spec"]["provider"]["infrastructureConfig"]["networks"]["vpc"] = {"cidr": "10.0.0.0/11"}
    same = runtime(pool=pool(zones=ZONES["aws"][:1], maximum=9), **wide)
    assert patch_for(same, live, CONFIG, CONTEXT).pools is not None
    with pytest.raises(ConversionError, match="CIDR prefix length must be between 16 and 24"):
        patch_for(runtime(pool=pool(zones=ZONES["aws"]), **wide), live, CONFIG, CONTEXT)
