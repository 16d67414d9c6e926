"""The seeds that may take a Shoot: the filters of gardener-scheduler in order, and its message when none is left.

Pure. A filter that leaves nothing ends the search with its own sentence, so that one reads which requirement was not
met by how many seeds. The first is word for word what the Go infrastructure-manager looks for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from hortus.kube.objects import Object
from hortus.kube.selectors import LabelSelector

Policy = Literal["minimal-distance", "same-region"]
Load = Callable[[str], int]
"""The number of shoots of a seed, by its name."""


PART = 100
"""Edits that another part of the world counts for; more than any name has."""
_LABELS = ("matchLabels", "matchExpressions")


class Unschedulable(Exception):
    """No seed can take the Shoot; the message says why, as in its lastOperation."""


def choose(shoot: Object, seeds: Sequence[Object], load: Load, policy: Policy) -> str:
    """The name of the seed for a Shoot: of the nearest region, the one with the fewest shoots. Raises Unschedulable."""
    provider, total = shoot["spec"]["provider"]["type"], len(seeds)
    selector = shoot["spec"].get("seedSelector") or {}
    types = selector.get("providerTypes") or [provider]
    left = [seed for seed in seeds if _provider(seed) in types or "*" in types]
    if not left:
        raise Unschedulable(f'none out of the {total} seeds has a matching provider for "{provider}"')
    for says, fits in _filters(shoot, selector, load):
        found = [seed for seed in left if fits(seed)]
        if not found:
            raise Unschedulable(f"none out of the {len(left)} seeds {says}")
        left = found
    left = _near(shoot, left, policy)
    return min((_name(seed) for seed in left), key=lambda name: (load(name), name))


def _filters(shoot: Object, selector: Mapping[str, Any], load: Load) -> Sequence[tuple[str, Callable[[Object], bool]]]:
    labels = LabelSelector.from_object({name: selector[name] for name in _LABELS if name in selector})
    tolerated = [(one["key"], one.get("value")) for one in shoot["spec"].get("tolerations") or ()]
    wanted = [one["name"] for one in shoot["spec"].get("accessRestrictions") or ()]
    return (
        ("is ready to take shoots", ready),
        (
            "has the labels that the shoot's seed selector asks for",
            lambda seed: labels is None or labels.matches(seed["metadata"].get("labels") or {}),
        ),
        ("has only taints that the shoot tolerates", lambda seed: _tolerates(seed, tolerated)),
        (f"supports the access restrictions {', '.join(wanted)}", lambda seed: _supports(seed, wanted)),
        ("has room for another shoot", lambda seed: _has_room(seed, load)),
    )


def ready(seed: Object) -> bool:
    """True when a seed takes new shoots: visible, not being deleted, and its gardenlet well."""
    scheduling = ((seed.get("spec") or {}).get("settings") or {}).get("scheduling") or {}
    return (
        not seed["metadata"].get("deletionTimestamp")
        and scheduling.get("visible", True)
        and gardenlet_ready(seed)
        and healthy(seed)
    )


def gardenlet_ready(seed: Object) -> bool:
    return _conditions(seed).get("GardenletReady") == "True"


def healthy(seed: Object) -> bool:
    """True when operations can begin there: no condition but that of the gardenlet itself says False."""
    return all(status != "False" for kind, status in _conditions(seed).items() if kind != "GardenletReady")


def _conditions(seed: Object) -> Mapping[str, str]:
    return {found["type"]: found["status"] for found in (seed.get("status") or {}).get("conditions") or ()}


def _near(shoot: Object, seeds: list[Object], policy: Policy) -> list[Object]:
    """The seeds of the best region. A Shoot for testing takes any."""
    region = shoot["spec"]["region"]
    if shoot["spec"].get("purpose") == "testing":
        return seeds
    if policy == "same-region":
        same = [seed for seed in seeds if _region(seed) == region]
        if not same:
            raise Unschedulable(f'none out of the {len(seeds)} seeds has a matching region for "{region}"')
        return same
    shortest = min(distance(_region(seed), region) for seed in seeds)
    return [seed for seed in seeds if distance(_region(seed), region) == shortest]


def distance(one: str, other: str) -> int:
    """The distance of two regions, by their names: edits, and many for another part of the world (`eu`, `us`)."""
    if one == other:
        return 0
    row = list(range(len(other) + 1))
    for number, letter in enumerate(one, start=1):
        before, row[0] = row[0], number
        for index, against in enumerate(other, start=1):
            before, row[index] = row[index], min(row[index] + 1, row[index - 1] + 1, before + (letter != against))
    same_part = one.partition("-")[0] == other.partition("-")[0]
    return row[-1] + (0 if same_part else PART)


def _tolerates(seed: Object, tolerated: Sequence[tuple[str, str | None]]) -> bool:
    def one(taint: Mapping[str, str]) -> bool:
        return any(key == taint["key"] and value in (None, "", taint.get("value")) for key, value in tolerated)

    return all(one(taint) for taint in (seed.get("spec") or {}).get("taints") or ())


def _supports(seed: Object, wanted: Sequence[str]) -> bool:
    offered = {one["name"] for one in (seed.get("spec") or {}).get("accessRestrictions") or ()}
    return offered.issuperset(wanted)


def _has_room(seed: Object, load: Load) -> bool:
    room = ((seed.get("status") or {}).get("allocatable") or {}).get("shoots")
    return room is None or load(_name(seed)) < int(room)


def _provider(seed: Object) -> str:
    return str(((seed.get("spec") or {}).get("provider") or {}).get("type", ""))


def _region(seed: Object) -> str:
    return str(((seed.get("spec") or {}).get("provider") or {}).get("region", ""))


def _name(seed: Object) -> str:
    return str(seed["metadata"]["name"])
