"""Pools mean the same however a garden spells them, and no change of a pool is taken for a spelling."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hortus.gardener.shoots.equality import completed, has_pool, spelled_as
from hortus.kube import Object, durations
from hortus.kube.quantities import Quantity

LAW = settings(deadline=None)

_DURATIONS = st.one_of(
    st.builds("{}m".format, st.integers(1, 300)),
    st.builds("{}s".format, st.integers(1, 9000)),
    st.builds("{}h{}m".format, st.integers(0, 30), st.integers(0, 90)),
    st.builds("1.{}h".format, st.integers(0, 99)),
)
_QUANTITIES = st.one_of(
    st.builds("{}m".format, st.integers(1, 5000)),
    st.builds("0.{}".format, st.integers(1, 999)),
    st.builds("{}Mi".format, st.integers(1, 8192)),
    st.builds("{}".format, st.integers(1, 9000)),
)
_TEXTS = st.sampled_from(["1", "1.0", "10m", "600s", "1000m", "a", ""])
_KUBELET = st.fixed_dictionaries(
    {},
    optional={
        "maxPods": st.integers(10, 250),
        "failSwapOn": st.booleans(),
        "featureGates": st.fixed_dictionaries({"NodeSwap": st.booleans()}),
        "containerLogMaxSize": _QUANTITIES,
        "evictionHard": st.fixed_dictionaries({}, optional={"memoryAvailable": st.sampled_from(["100Mi", "5%"])}),
        "evictionPressureTransitionPeriod": _DURATIONS,
        "evictionSoftGracePeriod": st.fixed_dictionaries({}, optional={"memoryAvailable": _DURATIONS}),
        "imageMinimumGCAge": _DURATIONS,
        "kubeReserved": st.fixed_dictionaries({}, optional={"cpu": _QUANTITIES, "memory": _QUANTITIES}),
    },
)
_POOLS = st.fixed_dictionaries(
    {
        "name": st.just("a"),
        "machine": st.fixed_dictionaries({"type": st.sampled_from(["small", "large"])}),
        "minimum": st.integers(0, 3),
        "maximum": st.integers(3, 9),
    },
    optional={
        "annotations": st.dictionaries(st.sampled_from("ab"), _TEXTS),
        "labels": st.dictionaries(st.sampled_from("ab"), _TEXTS),
        "sysctls": st.dictionaries(st.sampled_from("ab"), _TEXTS),
        "taints": st.lists(st.fixed_dictionaries({"key": st.just("k"), "value": _TEXTS, "effect": st.just("x")})),
        "zones": st.lists(st.sampled_from("abc"), unique=True),
        "maxSurge": st.sampled_from([0, 1, 3, "10%"]),
        "updateStrategy": st.sampled_from(["AutoRollingUpdate", "AutoInPlaceUpdate", "ManualInPlaceUpdate"]),
        "volume": st.fixed_dictionaries({"size": st.sampled_from(["50Gi", "51200Mi"])}),
        "kubernetes": st.fixed_dictionaries({}, optional={"kubelet": _KUBELET}),
        "machineControllerManager": st.fixed_dictionaries(
            {}, optional={"machineDrainTimeout": _DURATIONS, "maxEvictRetries": st.integers(0, 9)}
        ),
        "clusterAutoscaler": st.fixed_dictionaries(
            {}, optional={"scaleDownUnneededTime": _DURATIONS, "scaleDownUtilizationThreshold": st.just(0.5)}
        ),
    },
)
_PLAIN_MAPS = ("annotations", "labels", "sysctls")


def _answered(pool: Object) -> Object:
    """A pool as a garden answers with it: decoded into Go's types and encoded again, with its defaults."""
    answered: Object = orjson.loads(orjson.dumps(completed(pool)))
    for name in (*_PLAIN_MAPS, "taints", "zones"):
        if not answered.get(name):
            answered.pop(name, None)
    kubelet = (answered.get("kubernetes") or {}).get("kubelet") or {}
    for name in ("evictionPressureTransitionPeriod", "imageMinimumGCAge"):
        _respell(kubelet, name, _duration)
    _respell(kubelet, "containerLogMaxSize", _quantity)
    _respell(kubelet.get("evictionSoftGracePeriod") or {}, "memoryAvailable", _duration)
    for name in ("cpu", "memory"):
        _respell(kubelet.get("kubeReserved") or {}, name, _quantity)
    _respell(answered.get("machineControllerManager") or {}, "machineDrainTimeout", _duration)
    _respell(answered.get("clusterAutoscaler") or {}, "scaleDownUnneededTime", _duration)
    return answered


def _respell(fields: Object, name: str, spell: Any) -> None:
    if name in fields:
        fields[name] = spell(fields[name])


def _duration(text: str) -> str:
    return durations.format(durations.parse(text))


def _quantity(text: str) -> str:
    return str(Quantity(Quantity.parse(text).amount, Quantity.parse(text).format))


def _is_same(pool: Object, live: Object) -> bool:
    return completed(spelled_as(pool, live)) == completed(live)


@given(_POOLS)
@LAW
def test_a_pool_means_what_a_garden_answers_with(pool: Object) -> None:
    live = _answered(pool)
    assert _is_same(pool, live)
    assert has_pool(live, pool)
    assert spelled_as(live, live) == live
    assert spelled_as(spelled_as(pool, live), live) == spelled_as(pool, live)


@given(_POOLS, _POOLS)
@LAW
def test_two_pools_are_the_same_if_and_only_if_a_garden_answers_with_the_same(one: Object, other: Object) -> None:
    assert _is_same(one, _answered(other)) is (_answered(one) == _answered(other))


@pytest.mark.parametrize(
    ("wanted", "live"),
    [
        ({"labels": {"a": "1"}}, {"labels": {"a": "1.0"}}),
        ({"labels": {"a": "10m"}}, {"labels": {"a": "600s"}}),
        ({"annotations": {}}, {"annotations": {"a": "b"}}),
        ({"volume": {"size": "50Gi"}}, {"volume": {"size": "51200Mi"}}),
        ({"machine": {"image": {"version": "1.10"}}}, {"machine": {"image": {"version": "1.1"}}}),
        ({"taints": []}, {"taints": [{"key": "a", "effect": "NoSchedule"}]}),
        ({"providerConfig": {"timeout": "60s"}}, {"providerConfig": {"timeout": "1m0s"}}),
        ({"maxSurge": 1}, {"maxSurge": "1"}),
    ],
)
def test_what_is_a_text_to_gardener_is_compared_as_one(wanted: Object, live: Object) -> None:
    assert not _is_same(wanted, live)


def test_a_duration_of_a_later_gardener_is_taken_over_in_any_spelling() -> None:
    wanted = {"machineControllerManager": {"futureTimeout": "10m"}}
    assert has_pool({"machineControllerManager": {"futureTimeout": "10m0s", "other": 1}}, wanted)
    assert not has_pool({"machineControllerManager": {"futureTimeout": "11m0s"}}, wanted)
