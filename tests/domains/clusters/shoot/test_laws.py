"""Laws of the conversion, over random Runtimes."""

from __future__ import annotations

from ipaddress import IPv4Network
from itertools import combinations
from typing import Any

import orjson
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.domains.clusters.shoot.documents import patch_for, problems_of, shoot_for
from tests.domains.clusters.shoot.samples import CONFIG, CONTEXT, lived, pool, runtime, with_context

from hortus.domains.clusters.shoot import ConversionError, Patch
from hortus.domains.clusters.shoot.versions import greater
from hortus.domains.clusters.shoots import SHOOTS
from hortus.domains.clusters.types import FIELD_MANAGER
from hortus.kube import Object
from hortus.kube.patches import apply_merge_patch
from hortus.schema.merge import MergeSchema, apply
from hortus.simulation.garden.definitions import definitions

_SCHEMA = MergeSchema.compile(dict(next(one.schema for one in definitions({}) if one.resource == SHOOTS)))
LAW = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""On a busy machine an example may take any time."""
SLOWER = settings(LAW, max_examples=60)
_LETTERS = "abcdefgh"
_REGIONS = {
    "aws": "eu-central-1",
    "azure": "westeurope",
    "gcp": "europe-west3",
    "openstack": "eu-de-1",
    "alicloud": "cn-a",
}


def _zone(provider: str, index: int) -> str:
    if provider == "azure":
        return str(index + 1)
    return f"{_REGIONS[provider]}{'-' if provider == 'gcp' else ''}{_LETTERS[index]}"


@st.composite
def pools(draw: st.DrawFn, provider: str, name: str) -> Object:
    chosen = draw(st.lists(st.integers(0, 7), min_size=1, max_size=4, unique=True))
    minimum = draw(st.integers(0, 5))
    # Gardener wants a machine in each zone.
    fields: dict[str, Any] = {"minimum": minimum, "maximum": max(minimum, len(chosen)) + draw(st.integers(0, 20))}
    machine: Object = {"type": draw(st.sampled_from(["small", "large"]))}
    if draw(st.booleans()):
        machine["image"] = {"name": draw(st.sampled_from(["gardenlinux", "suse"])), "version": draw(_VERSIONS)}
    fields |= draw(
        st.fixed_dictionaries(
            {},
            optional={
                "labels": st.just({"a": "b"}),
                "maxSurge": st.sampled_from([1, 3, "10%"]),
                "taints": st.just([{"key": "a", "effect": "NoSchedule"}]),
                "volume": st.just({"size": "50Gi", "type": "ssd"}),
            },
        )
    )
    return pool(name, zones=[_zone(provider, index) for index in chosen], machine=machine, **fields)


_VERSIONS = st.builds("1{}.{}.0".format, st.integers(0, 3), st.integers(0, 3))


@st.composite
def runtimes(draw: st.DrawFn, provider: str | None = None, nodes: str | None = None) -> Object:
    provider = provider or draw(st.sampled_from(sorted(_REGIONS)))
    if nodes is None:
        prefix = draw(st.integers(16, 22))
        nodes = str(IPv4Network((draw(st.integers(0, 2**20 - 1)) << 12 & -(1 << (32 - prefix)) & 0xFFFFFFFF, prefix)))
    names = draw(st.lists(st.sampled_from(["second", "third", "fourth"]), unique=True))
    made = runtime(
        provider,
        pool=draw(pools(provider, "cpu-worker-0")),
        further=[draw(pools(provider, name)) for name in names],
        region=_REGIONS[provider],
        networking={"type": "calico", "nodes": nodes, "pods": "100.64.0.0/12", "services": "100.104.0.0/13"},
        kubernetes={"version": draw(st.sampled_from(["1.29", "1.30.1", "1.31"]))},
        purpose=draw(st.sampled_from(["production", "evaluation"])),
        licenceType=draw(st.sampled_from([None, "Partner"])),
    )
    made["metadata"]["generation"] = draw(st.integers(1, 9))
    made["spec"]["security"]["networking"]["filter"]["egress"]["enabled"] = draw(st.booleans())
    return made


def _valid(made: Object) -> bool:
    return not problems_of(made, CONFIG, CONTEXT)


def _applied(live: Object, patch: Patch) -> Object:
    """The Shoot after all of a patch was sent, with managed fields as an API server keeps them."""
    if patch.pools is not None:
        live = apply_merge_patch(live, patch.pools)
    merged = apply(
        live,
        patch.shoot,
        manager=FIELD_MANAGER,
        api_version=patch.shoot["apiVersion"],
        now=0.0,
        schema=_SCHEMA,
        force=True,
    )
    return lived(merged)


VALID = runtimes().filter(_valid)


@given(VALID)
@LAW
def test_converting_twice_gives_the_same_shoot_and_changes_no_input(made: Object) -> None:
    before = orjson.dumps(made)
    assert orjson.dumps(shoot_for(made, CONFIG, CONTEXT)) == orjson.dumps(shoot_for(made, CONFIG, CONTEXT))
    assert orjson.dumps(made) == before


@given(VALID)
@LAW
def test_subnets_of_a_shoot_are_disjoint_and_inside_the_nodes_network(made: Object) -> None:
    nodes = IPv4Network(made["spec"]["shoot"]["networking"]["nodes"])
    networks = shoot_for(made, CONFIG, CONTEXT)["spec"]["provider"]["infrastructureConfig"]["networks"]
    found = [
        IPv4Network(value)
        for zone in networks.get("zones") or ()
        for value in zone.values()
        if isinstance(value, str) and "/" in value
    ]
    assert all(subnet.subnet_of(nodes) for subnet in found)
    assert not any(one.overlaps(other) for one, other in combinations(found, 2))


@given(st.data())
@LAW
def test_a_zone_that_is_added_moves_no_other(data: st.DataObject) -> None:
    provider = data.draw(st.sampled_from(["aws", "azure", "alicloud"]))
    zones = [_zone(provider, index) for index in data.draw(st.permutations(range(8)))]
    count = data.draw(st.integers(1, 7))
    small, large = (
        runtime(provider, region=_REGIONS[provider], pool=pool(zones=zones[:number]), enforceSeedLocation=False)
        for number in (count, count + 1)
    )
    live = lived(shoot_for(small, CONFIG, CONTEXT))
    patched = patch_for(large, live, CONFIG, CONTEXT).shoot["spec"]["provider"]["infrastructureConfig"]
    before = live["spec"]["provider"]["infrastructureConfig"]["networks"]["zones"]
    assert patched["networks"]["zones"][:count] == before
    assert patched == shoot_for(large, CONFIG, CONTEXT)["spec"]["provider"]["infrastructureConfig"]


@given(VALID)
@SLOWER
def test_a_patch_without_a_difference_sends_nothing(made: Object) -> None:
    created = lived(shoot_for(made, CONFIG, CONTEXT))
    first = patch_for(made, created, CONFIG, CONTEXT)
    assert first.pools is None
    live = _applied(created, first)
    second = patch_for(made, live, CONFIG, CONTEXT)
    assert (second.pools, second.replacement, second.differs) == (None, None, False)


@given(st.data())
@SLOWER
def test_a_patch_neither_shrinks_zones_nor_takes_versions_back_and_one_is_enough(data: st.DataObject) -> None:
    provider = data.draw(st.sampled_from(sorted(_REGIONS)))
    same = runtimes(provider=provider, nodes="10.0.0.0/16").filter(_valid)
    old, new = data.draw(same), data.draw(same)
    context = with_context(ignore_removed_zones=True)
    live = lived(shoot_for(old, CONFIG, context))
    live["spec"]["kubernetes"]["version"] = data.draw(st.sampled_from(["1.28", "1.30.7", "1.33"]))
    frozen = orjson.dumps([live, new])
    try:
        patch = patch_for(new, live, CONFIG, context)
    except ConversionError as error:
        words = ("Number of networking zones", "maximum node count", "cannot skip a minor version")
        assert all(any(word in problem.message for word in words) for problem in error.problems)
        return
    assert orjson.dumps([live, new]) == frozen
    _check_kept(live, patch.shoot)
    after = _applied(live, patch)
    assert not patch_for(new, after, CONFIG, context).differs


def _check_kept(live: Object, patched: Object) -> None:
    assert not greater(live["spec"]["kubernetes"]["version"], patched["spec"]["kubernetes"]["version"])
    before = {worker["name"]: worker for worker in live["spec"]["provider"]["workers"]}
    for worker in patched["spec"]["provider"]["workers"]:
        if worker["name"] in before:
            old = before[worker["name"]]
            assert worker["zones"][: len(old["zones"])] == old["zones"]
            images = old["machine"]["image"], worker["machine"]["image"]
            assert images[0]["name"] != images[1]["name"] or not greater(images[0]["version"], images[1]["version"])
    networks = [shoot["spec"]["provider"]["infrastructureConfig"]["networks"] for shoot in (live, patched)]
    zones = [network.get("zones") or [] for network in networks]
    assert zones[1][: len(zones[0])] == zones[0]
