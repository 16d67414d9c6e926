"""Checks that the worker pools of a Runtime make sense, before any cloud profile is asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hortus.domains.clusters.pools import Pool, PoolFields
from hortus.domains.clusters.shoot import subnets
from hortus.domains.clusters.shoot.providers import ZONED
from hortus.domains.clusters.shoot.workers import pools_of, zones_of
from hortus.domains.clusters.types import Runtime, RuntimeShoot
from hortus.kube import naming
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


def main_pool_problems(runtime: Runtime, *, is_live: bool = False) -> list[FieldError]:
    """A problem unless there is one main pool, in the Go system's words for a new Shoot and for a live one."""
    pools = runtime.wanted.shoot.provider.workers
    if len(pools) == 1:
        return []
    text = "single main worker is required" + (" on the Runtime CR" if is_live else "")
    names = [Pool(pool).fields.name for pool in pools]
    return [invalid(f"{PATH}.workers", names, text) if names else required(f"{PATH}.workers", text)]


def pool_problems(runtime: Runtime) -> list[FieldError]:
    """Problems of the pools of a Runtime with one main pool."""
    problems: list[FieldError] = []
    seen: set[str] = set()
    for index, pool in enumerate(pools_of(runtime)):
        path, worker = path_of(index), pool.fields
        problems += _name_problems(path, worker.name, seen)
        problems += _size_problems(path, worker)
        problems += _content_problems(path, worker)
        problems += _zone_problems(path, worker, runtime.wanted.shoot)
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


def _size_problems(path: str, pool: PoolFields) -> Iterator[FieldError]:
    if pool.minimum < 0:
        yield invalid(f"{path}.minimum", pool.minimum, "must be 0 or more")
    if pool.maximum < pool.minimum:
        yield invalid(f"{path}.maximum", pool.maximum, f"must be at least the minimum, {pool.minimum}")
    sizes = [("volume", pool.volume.size)] if pool.volume is not None else []
    sizes += [(f"dataVolumes[{index}]", volume.size) for index, volume in enumerate(pool.data_volumes)]
    for name, size in sizes:
        if not _is_quantity(size):
            yield invalid(f"{path}.{name}.size", size, "must be a size such as 50Gi")
    unavailable = 0 if pool.max_unavailable is None else pool.max_unavailable
    if _is_zero(pool.max_surge) and _is_zero(unavailable):
        yield invalid(f"{path}.maxUnavailable", unavailable, "must not be 0 when maxSurge is 0")


def _content_problems(path: str, pool: PoolFields) -> Iterator[FieldError]:
    if not pool.machine.type:
        yield required(f"{path}.machine.type")
    for key, value in pool.labels.items():
        for text in [*naming.qualified_name(key), *naming.label_value(value)]:
            yield invalid(f"{path}.labels[{key}]", value, text)
    for index, taint in enumerate(pool.taints):
        if taint.effect not in EFFECTS:
            yield not_supported(f"{path}.taints[{index}].effect", taint.effect, EFFECTS)
        for text in naming.qualified_name(taint.key):
            yield invalid(f"{path}.taints[{index}].key", taint.key, text)


def _zone_problems(path: str, pool: PoolFields, shoot: RuntimeShoot) -> Iterator[FieldError]:
    provider, region = shoot.provider.type, shoot.region
    seen: set[str] = set()
    for index, zone in enumerate(pool.zones):
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


def _zone_count_problems(runtime: Runtime) -> Iterator[FieldError]:
    provider = runtime.wanted.shoot.provider.type
    zones = zones_of(pools_of(runtime))
    if not zones and provider in ("aws", "alicloud"):
        yield required(f"{path_of(0)}.zones", _zone_count(provider))
    elif not zones and provider == "gcp":
        yield required(f"{path_of(0)}.zones", "zones list is empty")
    elif provider in ZONED and len(zones) > subnets.MOST_ZONES:
        yield invalid(f"{PATH}.workers", len(zones), _zone_count(provider))
    if zones:
        for index, pool in enumerate(pools_of(runtime)):
            if not pool.fields.zones and provider in ZONED:
                yield required(f"{path_of(index)}.zones", "either all pools have zones or none has")


def _zone_count(provider: str) -> str:
    """The message about a number of zones, in the Go system's words; Azure's lite plan of old has no zones."""
    least = 0 if provider == "azure" else 1
    return f"Number of networking zones must be between {least} and {subnets.MOST_ZONES}"


def _is_quantity(text: str) -> bool:
    try:
        Quantity.parse(text)
    except QuantityError:
        return False
    return True


def _is_zero(value: int | str | None) -> bool:
    return value in (0, "0", "0%")
