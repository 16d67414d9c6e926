"""DaemonSets that share nodes, as far as specs decide; a model of the scheduler is the judge."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.domains.agents.builders.samples import agent

from hortus.domains.agents.operating.shared_nodes import agents_on_same_nodes, zones_on_same_nodes
from hortus.kube.objects import Object

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
GPU = {"key": "gpu", "operator": "Exists"}
POOL_A = {"key": "pool", "operator": "Equal", "value": "a", "effect": "NoExecute"}
POOL_B = {**POOL_A, "value": "b"}
ANY = {"operator": "Exists"}


def needs(key: str, *values: str) -> Object:
    return {"key": key, "operator": "In", "values": list(values)}


def to(*terms: list[Object]) -> Object:
    """An affinity to nodes that meet one of the terms."""
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": term} for term in terms]}}}


def pairs(*zones: Object, **pod: Any) -> list[tuple[str, str]]:
    named = [{"name": name, **zone} for name, zone in zip("abc", zones, strict=False)]
    return zones_on_same_nodes(agent({"zones": named}, pod=pod))


AB = [("a", "b")]


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        ({}, {}, AB),
        ({}, {"affinity": to([needs("pool", "b")])}, AB),
        ({"affinity": to([needs("pool", "b", "c")])}, {"affinity": to([needs("pool", "c", "b")])}, AB),
        ({"affinity": to([needs("pool", "b")])}, {"affinity": to([needs("pool", "b"), needs("disk", "ssd")])}, AB),
        ({"affinity": to([needs("pool", "b")])}, {"affinity": to([needs("x", "y")], [needs("pool", "b")])}, AB),
        ({"affinity": to([needs("pool", "a")])}, {"affinity": to([needs("pool", "b")])}, []),
        # Nodes could have both labels, or none could: the spec does not say.
        ({"affinity": to([needs("pool", "a")])}, {"affinity": to([needs("disk", "ssd")])}, []),
        ({}, {"tolerations": [GPU]}, AB),
        ({"tolerations": [POOL_A]}, {"tolerations": [ANY]}, AB),
        # Pools that are kept apart by their taints.
        ({"tolerations": [POOL_A]}, {"tolerations": [POOL_B]}, []),
        # A preference binds no pod; what other pods decide is not in the spec.
        ({"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}}, {}, AB),
        ({"affinity": {"podAntiAffinity": {REQUIRED: [{"topologyKey": "kubernetes.io/hostname"}]}}}, {}, []),
        ({"affinity": to([])}, {}, []),  # a term without requirements matches no node
    ],
)
def test_zones_share_nodes_where_one_takes_all_that_the_other_has(
    first: Object, second: Object, found: list[tuple[str, str]]
) -> None:
    assert pairs(first, second) == found
    assert pairs(second, first) == found


def test_each_pair_of_zones_is_found() -> None:
    assert pairs({}, {}, {}, nodeSelector={"os": "linux"}) == [("a", "b"), ("a", "c"), ("b", "c")]


def test_agents_share_nodes_unless_selectors_or_the_lack_of_a_key_keep_them_apart() -> None:
    plain, linux, windows = (agent(pod={"nodeSelector": labels}) for labels in ({}, {"os": "linux"}, {"os": "windows"}))
    by_affinity = agent(pod={"affinity": to([needs("os", "linux")])})
    zoned = agent({"zones": [{"name": "a", "affinity": to([needs("os", "windows")])}]})
    none = agent(key="")
    names = ["monitoring/edge"]
    assert agents_on_same_nodes(plain, [linux]) == agents_on_same_nodes(linux, [plain]) == names
    assert agents_on_same_nodes(linux, [by_affinity]) == agents_on_same_nodes(windows, [zoned]) == names
    assert agents_on_same_nodes(linux, [windows, zoned, none]) == agents_on_same_nodes(none, [plain]) == []


NODES: list[tuple[dict[str, str], bool]] = [
    ({"pool": pool, "disk": disk}, tainted)
    for pool, disk, tainted in itertools.product(("a", "b"), ("ssd", "hdd"), (True, False))
]
AFFINITIES = st.none() | st.lists(
    st.lists(
        st.builds(needs, st.sampled_from(["pool", "disk"]), st.sampled_from(["a", "b", "ssd", "hdd"])),
        max_size=2,
    ),
    min_size=1,
    max_size=2,
).map(lambda terms: to(*terms))
ZONES = st.fixed_dictionaries({"affinity": AFFINITIES, "tolerations": st.sampled_from([[], [GPU], [ANY]])})


def taken(zone: Object) -> set[int]:
    """The nodes that a scheduler gives the zone."""
    found = set()
    terms = zone["affinity"] and zone["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    for number, (labels, tainted) in enumerate(NODES):
        if tainted and not zone["tolerations"]:
            continue
        each = [term["matchExpressions"] for term in terms] if terms else []
        matches = any(term and all(labels[one["key"]] in one["values"] for one in term) for term in each)
        if terms is None or matches:
            found.add(number)
    return found


@given(first=ZONES, second=ZONES)
def test_where_zones_are_reported_a_scheduler_gives_one_all_nodes_of_the_other(first: Object, second: Object) -> None:
    one, other = taken(first), taken(second)
    if pairs(first, second):
        assert one <= other or other <= one
