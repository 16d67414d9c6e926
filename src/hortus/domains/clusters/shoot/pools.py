"""Checks of the zones of a Runtime's worker pools, before any cloud profile is asked; Gardener's rules say the rest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hortus.domains.clusters.pools import Pool, PoolFields
from hortus.domains.clusters.shoot import subnets
from hortus.domains.clusters.shoot.providers import ZONED
from hortus.domains.clusters.shoot.workers import pools_of, zones_of
from hortus.domains.clusters.types import Runtime, RuntimeShoot
from hortus.schema import FieldError
from hortus.schema.problems import invalid, required

PATH: Final = "spec.shoot.provider"
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
    """Problems of the zones of a Runtime with one main pool."""
    problems: list[FieldError] = []
    for index, pool in enumerate(pools_of(runtime)):
        problems += _zone_problems(path_of(index), pool.fields, runtime.wanted.shoot)
    return problems + list(_zone_count_problems(runtime))


def path_of(index: int) -> str:
    """The path in a Runtime of one of `pools_of`."""
    return f"{PATH}.workers[0]" if index == 0 else f"{PATH}.additionalWorkers[{index - 1}]"


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
