"""Tables of subnets for each number of zones, and the laws behind them: disjoint, inside, stable."""

from __future__ import annotations

from ipaddress import IPv4Network
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.domains.clusters.shoot.documents import shoot_for
from tests.domains.clusters.shoot.samples import CONFIG, CONTEXT, pool, runtime

from hortus.domains.clusters.shoot.subnets import MOST_ZONES, single, triple

AWS = """
10.250.0.0/16 1 10.250.0.0/19 10.250.32.0/20 10.250.48.0/20
10.250.0.0/16 2 10.250.64.0/19 10.250.96.0/20 10.250.112.0/20
10.250.0.0/16 3 10.250.128.0/19 10.250.160.0/20 10.250.176.0/20
10.250.0.0/16 4 10.250.192.0/22 10.250.196.0/22 10.250.200.0/22
10.250.0.0/16 5 10.250.204.0/22 10.250.208.0/22 10.250.212.0/22
10.250.0.0/16 6 10.250.216.0/22 10.250.220.0/22 10.250.224.0/22
10.250.0.0/16 7 10.250.228.0/22 10.250.232.0/22 10.250.236.0/22
10.250.0.0/16 8 10.250.240.0/22 10.250.244.0/22 10.250.248.0/22
10.250.0.0/17 1 10.250.0.0/20 10.250.16.0/21 10.250.24.0/21
10.250.0.0/17 4 10.250.96.0/23 10.250.98.0/23 10.250.100.0/23
10.180.0.0/23 1 10.180.0.0/26 10.180.0.64/27 10.180.0.96/27
10.180.0.0/23 3 10.180.1.0/26 10.180.1.64/27 10.180.1.96/27
"""
AZURE = """
10.250.0.0/16 1 10.250.0.0/19
10.250.0.0/16 2 10.250.32.0/19
10.250.0.0/16 3 10.250.64.0/19
10.250.0.0/16 4 10.250.96.0/19
10.250.0.0/16 5 10.250.128.0/19
10.250.0.0/16 6 10.250.160.0/19
10.250.0.0/16 7 10.250.192.0/19
10.250.0.0/16 8 10.250.224.0/19
10.180.0.0/17 1 10.180.0.0/20
10.180.0.0/17 2 10.180.16.0/20
10.180.0.0/17 3 10.180.32.0/20
"""
ALICLOUD = {
    "10.250.0.0/16": (
        "10.250.0.0/19 10.250.64.0/19 10.250.128.0/19 10.250.192.0/22 10.250.204.0/22 10.250.216.0/22 10.250.228.0/22 "
        "10.250.240.0/22"
    ),
    "10.250.0.0/22": (
        "10.250.0.0/25 10.250.1.0/25 10.250.2.0/25 10.250.3.0/28 10.250.3.48/28 10.250.3.96/28 10.250.3.144/28 "
        "10.250.3.192/28"
    ),
    "10.250.0.0/23": (
        "10.250.0.0/26 10.250.0.128/26 10.250.1.0/26 10.250.1.128/29 10.250.1.152/29 10.250.1.176/29 10.250.1.200/29 "
        "10.250.1.224/29"
    ),
    "10.250.0.0/24": (
        "10.250.0.0/27 10.250.0.64/27 10.250.0.128/27 10.250.0.192/30 10.250.0.204/30 10.250.0.216/30 10.250.0.228/30 "
        "10.250.0.240/30"
    ),
    "10.180.0.0/23": "10.180.0.0/26 10.180.0.128/26 10.180.1.0/26",
}
RANGES = {"type": "calico", "pods": "10.96.0.0/13", "services": "10.104.0.0/13"}
NODES = st.tuples(st.integers(0, 2**32 - 1), st.integers(16, 24)).map(
    lambda given: IPv4Network((given[0] >> (32 - given[1]) << (32 - given[1]), given[1]))
)


@pytest.mark.parametrize("row", AWS.strip().splitlines())
def test_aws_zones_are_cut_as_in_the_table(row: str) -> None:
    nodes, zone, workers, public, internal = row.split()
    found = triple(IPv4Network(nodes), int(zone) - 1)
    assert (str(found.workers), str(found.public), str(found.internal)) == (workers, public, internal)


@pytest.mark.parametrize("row", AZURE.strip().splitlines())
def test_azure_zones_are_cut_as_in_the_table(row: str) -> None:
    nodes, zone, subnet = row.split()
    assert str(single(IPv4Network(nodes), int(zone) - 1)) == subnet


@pytest.mark.parametrize("nodes", ALICLOUD)
def test_alicloud_zones_are_cut_as_in_the_table(nodes: str) -> None:
    """Each number of zones is a row of its own there: a zone that is added moves none of the others."""
    wanted = ALICLOUD[nodes].split()
    letters = "abcdefgh"[: len(wanted)]
    for count in range(1, len(wanted) + 1):
        zones = [f"eu-central-1{letter}" for letter in letters[:count]]
        made = runtime("alicloud", networking={**RANGES, "nodes": nodes}, pool=pool(zones=zones))
        infrastructure = shoot_for(made, CONFIG, CONTEXT)["spec"]["provider"]["infrastructureConfig"]
        cut = [{"name": zone, "workers": subnet} for zone, subnet in zip(zones, wanted, strict=False)]
        assert infrastructure["networks"] == {"vpc": {"cidr": nodes}, "zones": cut}


@given(NODES)
@settings(deadline=None)
def test_all_subnets_are_disjoint_and_inside_the_nodes_network(nodes: IPv4Network) -> None:
    triples = [subnet for slot in range(MOST_ZONES) for subnet in triple(nodes, slot)]
    singles = [single(nodes, slot) for slot in range(MOST_ZONES)]
    for subnets in (triples, singles):
        assert all(subnet.subnet_of(nodes) for subnet in subnets)
        assert not any(one.overlaps(other) for one, other in combinations(subnets, 2))


@given(NODES)
@settings(deadline=None)
def test_single_subnets_fill_the_network(nodes: IPv4Network) -> None:
    assert sum(single(nodes, slot).num_addresses for slot in range(MOST_ZONES)) == nodes.num_addresses


@pytest.mark.parametrize("nodes", ["10.0.0.0/15", "10.0.0.0/25"])
def test_networks_out_of_bounds_are_refused(nodes: str) -> None:
    for cut in (triple, single):
        with pytest.raises(ValueError, match="CIDR prefix length must be between 16 and 24"):
            cut(IPv4Network(nodes), 0)


@pytest.mark.parametrize("slot", [-1, 8])
def test_there_is_no_ninth_zone(slot: int) -> None:
    for cut in (triple, single):
        with pytest.raises(ValueError, match="Number of networking zones must be between 1 and 8"):
            cut(IPv4Network("10.250.0.0/16"), slot)
