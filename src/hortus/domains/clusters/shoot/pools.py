"""Whether the worker pools of a Runtime make sense, before any cloud profile is asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from hortus.domains.clusters.shoot import subnets
from hortus.domains.clusters.shoot.providers import ZONED
from hortus.domains.clusters.shoot.workers import pools_of, zones_of
from hortus.kube import Object, naming
from hortus.kube.quantities import Quantity, QuantityError
from hortus.schema import FieldError
from hortus.schema.problems import duplicate, invalid, not_supported, required

PATH: Final = "spec.shoot.provider"
NAME_LIMIT: Final = 15
"""Most characters of a pool's name, which goes into the names of machines."""
EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_REGIONAL: Final = ("aws", "gcp", "alicloud")
"""Providers whose zones begin with the name of their region."""
_AZURE_ZONES: Final = tuple(str(number) for number in range(1, 9))


def main_pool_problems(runtime: Object, live: Object | None = None) -> list[FieldError]:
    """Whether there is the one main pool, in the Go system's words for a new Shoot and for a live one."""
    pools = runtime["spec"]["shoot"]["provider"]["workers"]
    if len(pools) == 1:
        return []
    text = "single main worker is required" + (" on the Runtime CR" if live is not None else "")
    names = [pool["name"] for pool in pools]
    return [invalid(f"{PATH}.workers", names, text) if names else required(f"{PATH}.workers", text)]


def pool_problems(runtime: Object) -> list[FieldError]:
    """Problems of the pools of a Runtime with one main pool."""
    problems: list[FieldError] = []
    seen: set[str] = set()
    for index, pool in enumerate(pools_of(runtime)):
        path = path_of(index)
        problems += _name_problems(path, pool["name"], seen)
        problems += _size_problems(path, pool)
        problems += _content_problems(path, pool)
        problems += _zone_problems(path, pool, runtime["spec"]["shoot"])
    return problems + list(_zone_count_problems(runtime))


def path_of(index: int) -> str:
    """The path in a Runtime of one of `pools_of`."""
    return f"{PATH}.workers[0]" if index == 0 else f"{PATH}.additionalWorkers[{index - 1}]"


def _name_problems(path: str, name: str, seen: set[str]) -> Iterator[FieldError]:
    if name in seen:
        yield duplicate(f"{path}.name", name)
    seen.add(name)
    for text in naming.dns_label(name):
        yield invalid(f"{path}.name", name, text)
    if len(name) > NAME_LIMIT:
        yield invalid(f"{path}.name", name, f"must have at most {NAME_LIMIT} characters")


def _size_problems(path: str, pool: Object) -> Iterator[FieldError]:
    if pool["minimum"] < 0:
        yield invalid(f"{path}.minimum", pool["minimum"], "must be 0 or more")
    if pool["maximum"] < pool["minimum"]:
        yield invalid(f"{path}.maximum", pool["maximum"], f"must be at least the minimum, {pool['minimum']}")
    volumes = [("volume", pool.get("volume"))]
    volumes += [(f"dataVolumes[{index}]", volume) for index, volume in enumerate(pool.get("dataVolumes") or ())]
    for name, volume in volumes:
        if volume is not None and not _is_quantity(volume["size"]):
            yield invalid(f"{path}.{name}.size", volume["size"], "must be a size such as 50Gi")
    if _is_zero(pool.get("maxSurge")) and _is_zero(pool.get("maxUnavailable", 0)):
        yield invalid(f"{path}.maxUnavailable", pool.get("maxUnavailable", 0), "must not be 0 when maxSurge is 0")


def _content_problems(path: str, pool: Object) -> Iterator[FieldError]:
    if not pool["machine"]["type"]:
        yield required(f"{path}.machine.type")
    for key, value in (pool.get("labels") or {}).items():
        for text in [*naming.qualified_name(key), *naming.label_value(value)]:
            yield invalid(f"{path}.labels[{key}]", value, text)
    for index, taint in enumerate(pool.get("taints") or ()):
        if taint["effect"] not in EFFECTS:
            yield not_supported(f"{path}.taints[{index}].effect", taint["effect"], EFFECTS)
        for text in naming.qualified_name(taint["key"]):
            yield invalid(f"{path}.taints[{index}].key", taint["key"], text)


def _zone_problems(path: str, pool: Object, shoot: Object) -> Iterator[FieldError]:
    provider, region = shoot["provider"]["type"], shoot["region"]
    seen: set[str] = set()
    for index, zone in enumerate(pool.get("zones") or ()):
        at = f"{path}.zones[{index}]"
        if zone in seen:
            yield FieldError(at, f'Duplicate value: "{zone}": zone name {zone} is duplicated', "FieldValueDuplicate")
        seen.add(zone)
        if provider == "azure":
            yield from _azure_zone_problems(at, zone)
        elif provider in _REGIONAL and (not zone.startswith(region) or zone == region):
            yield invalid(at, zone, f"must be a zone of region {region}")


def _azure_zone_problems(path: str, zone: str) -> Iterator[FieldError]:
    if not zone.isdecimal() or not zone.isascii():
        yield invalid(path, zone, f"failed to convert zone name {zone} to int: must be a number from 1 to 8")
    elif zone not in _AZURE_ZONES:
        yield invalid(path, zone, f"zone name {zone} is not valid, must be between 1 and 8")


def _zone_count_problems(runtime: Object) -> Iterator[FieldError]:
    provider = runtime["spec"]["shoot"]["provider"]["type"]
    zones = zones_of(pools_of(runtime))
    if not zones and provider in ("aws", "alicloud"):
        yield required(f"{path_of(0)}.zones", _zone_count(provider))
    elif not zones and provider == "gcp":
        yield required(f"{path_of(0)}.zones", "zones list is empty")
    elif provider in ZONED and len(zones) > subnets.MOST_ZONES:
        yield invalid(f"{PATH}.workers", len(zones), _zone_count(provider))
    if zones:
        for index, pool in enumerate(pools_of(runtime)):
            if not pool.get("zones") and provider in ZONED:
                yield required(f"{path_of(index)}.zones", "either all pools have zones or none has")


def _zone_count(provider: str) -> str:
    """The Go system's words; Azure's lite plan of old has no zones."""
    least = 0 if provider == "azure" else 1
    return f"Number of networking zones must be between {least} and {subnets.MOST_ZONES}"


def _is_quantity(text: str) -> bool:
    try:
        Quantity.parse(text)
    except QuantityError:
        return False
    return True


def _is_zero(value: Any) -> bool:
    return value in (0, "0", "0%")
