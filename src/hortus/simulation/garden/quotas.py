"""How much the Shoots of a Quota take, and whether another fits: sums over the pools' maximum sizes.

Pure. Contract: gardener, section 1.9: bindings name Quotas, whose metrics limit what all Shoots of these bindings have
together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from fractions import Fraction

from hortus.kube.objects import Object
from hortus.kube.quantities import Quantity

Usage = dict[str, Fraction]
_OF_MACHINES = ("cpu", "gpu", "memory")


def usage(shoots: Iterable[Object], profiles: Mapping[str, Object]) -> Usage:
    """What the Shoots take at most, by metric. `profiles` are CloudProfiles by name."""
    total: Usage = defaultdict(Fraction)
    for shoot in shoots:
        machines = _machines(profiles.get(profile_name(shoot)) or {})
        for worker in (shoot["spec"].get("provider") or {}).get("workers") or ():
            for metric in _OF_MACHINES:
                each = machines.get(worker["machine"]["type"], {}).get(metric, "0")
                total[metric] += worker["maximum"] * amount(each)
            size = (worker.get("volume") or {}).get("size", "0")
            total["storage.standard"] += worker["maximum"] * amount(size)
    return total


def exceeded(quota: Object, before: Usage, after: Usage) -> list[str]:
    """The metrics of a Quota that a change raises above their limit."""
    limits = (quota.get("spec") or {}).get("metrics") or {}
    return [
        metric
        for metric, limit in limits.items()
        if after.get(metric, Fraction()) > amount(str(limit)) and after[metric] > before.get(metric, Fraction())
    ]


def amount(text: str) -> Fraction:
    return Quantity.parse(text).amount


def profile_name(shoot: Object) -> str:
    """The name of a Shoot's CloudProfile, by either of the fields that hold it."""
    spec = shoot["spec"]
    return str((spec.get("cloudProfile") or {}).get("name") or spec.get("cloudProfileName") or "")


def _machines(profile: Object) -> Mapping[str, Mapping[str, str]]:
    found = (profile.get("spec") or {}).get("machineTypes") or ()
    return {one["name"]: {metric: str(one.get(metric, "0")) for metric in _OF_MACHINES} for one in found}
