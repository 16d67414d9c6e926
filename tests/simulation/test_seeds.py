"""The choice of a seed for a shoot, and the message when no seed fits."""

from __future__ import annotations

from typing import Any

import pytest

from hortus.kube.objects import Object
from hortus.simulation.garden.outages import state
from hortus.simulation.garden.seeds import Unschedulable, choose, distance
from hortus.simulation.settings import Outage


def seed(name: str, region: str = "eu-central-1", provider: str = "aws", **changes: Any) -> Object:
    made: Object = {
        "metadata": {"name": name, "labels": changes.pop("labels", {})},
        "spec": {"provider": {"type": provider, "region": region}, **changes.pop("spec", {})},
        "status": {"conditions": [{"type": "GardenletReady", "status": "True"}], **changes.pop("status", {})},
    }
    made["metadata"] |= changes
    return made


def shoot(region: str = "eu-central-1", **spec: Any) -> Object:
    return {"metadata": {"name": "s"}, "spec": {"region": region, "provider": {"type": "aws"}, **spec}}


def chosen(made: Object, *seeds: Object, load: dict[str, int] | None = None, policy: Any = "minimal-distance") -> str:
    return choose(made, seeds, lambda name: (load or {}).get(name, 0), policy)


def test_the_nearest_region_comes_before_the_fewest_shoots() -> None:
    near, far = seed("near"), seed("far", "us-east-1")
    assert chosen(shoot(), near, far, load={"near": 9}) == "near"
    assert chosen(shoot(), near, seed("near-2"), far, load={"near": 9}) == "near-2"
    assert chosen(shoot("eu-west-1"), near, far) == "near"
    assert chosen(shoot("us-west-2"), near, far) == "far"
    assert chosen(shoot("us-east-1", purpose="testing"), near, far, load={"far": 1}) == "near"


def test_regions_are_near_by_name() -> None:
    assert distance("a", "a") == 0
    assert distance("eu-west-1", "eu-west-2") < distance("eu-west-1", "us-west-1")
    assert distance("eu-west-1", "us-east-1") == distance("us-east-1", "eu-west-1")


def test_what_keeps_a_seed_from_taking_shoots() -> None:
    good = seed("z")
    down = {"conditions": [{"type": "GardenletReady", "status": "Unknown"}]}
    sick = [{"type": "GardenletReady", "status": "True"}, {"type": "ExtensionsReady", "status": "False"}]
    others = (
        seed("a", spec={"settings": {"scheduling": {"visible": False}}}),
        seed("b", deletionTimestamp="2026-01-01T00:00:00Z"),
        seed("c", status=down),
        seed("d", status={"conditions": sick}),
        seed("e", spec={"taints": [{"key": "t"}]}),
        seed("f", status={"allocatable": {"shoots": "3"}}),
        seed("g", provider="gcp"),
    )
    for other in others:
        assert chosen(shoot(), other, good, load={"z": 100, "f": 3}) == "z"
    tainted = seed("t", spec={"taints": [{"key": "t", "value": "v"}]})
    for toleration in ({"key": "t"}, {"key": "t", "value": "v"}):
        assert chosen(shoot(tolerations=[toleration]), tainted) == "t"
    with pytest.raises(Unschedulable):
        chosen(shoot(tolerations=[{"key": "t", "value": "w"}]), tainted)


def test_selectors_choose_by_labels_and_provider_types() -> None:
    here, there = seed("here", labels={"zone": "1"}), seed("there", provider="gcp", labels={"zone": "2"})
    assert chosen(shoot(seedSelector={"matchLabels": {"zone": "1"}}), here, there) == "here"
    both = {"providerTypes": ["*"], "matchExpressions": [{"key": "zone", "operator": "In", "values": ["2"]}]}
    assert chosen(shoot(seedSelector=both), here, there) == "there"


@pytest.mark.parametrize(
    ("made", "policy", "words"),
    [
        (
            shoot(provider={"type": "nobody"}),
            "minimal-distance",
            'none out of the 2 seeds has a matching provider for "nobody"',
        ),
        (
            shoot(seedSelector={"matchLabels": {"a": "b"}}),
            "minimal-distance",
            "none out of the 2 seeds has the labels that the shoot's seed selector asks for",
        ),
        (
            shoot(accessRestrictions=[{"name": "eu-access-only"}]),
            "minimal-distance",
            "none out of the 2 seeds supports the access restrictions eu-access-only",
        ),
        (shoot("mars"), "same-region", 'none out of the 2 seeds has a matching region for "mars"'),
    ],
)
def test_the_first_requirement_that_nobody_meets_is_named(made: Object, policy: str, words: str) -> None:
    with pytest.raises(Unschedulable) as problem:
        chosen(made, seed("a"), seed("b"), policy=policy)
    assert str(problem.value) == words


def test_outages_come_and_go_by_the_clock() -> None:
    once = Outage(after=10, seconds=5)
    assert [state(once, passed) for passed in (0, 9, 10, 14, 15, 99)] == [
        (False, 10),
        (False, 1),
        (True, 5),
        (True, 1),
        (False, None),
        (False, None),
    ]
    often = Outage(after=10, seconds=5, every=20)
    assert [state(often, passed) for passed in (12, 20, 30, 36)] == [(True, 3), (False, 10), (True, 5), (False, 14)]
