"""The garden's admission of a migration, and Gardener's rules for it. Pure.

Source: gardener, plugin/pkg/shoot/validator, and docs/operations/control_plane_migration.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from hortus.gardener.livemigration.phases import (
    ALLOW_DISTANT,
    DEFAULT_DISTANCE,
    DISTANCE_LIMIT,
    LIVE_MIGRATE,
    WITHOUT_HA,
)
from hortus.kube.numbers import decimal

REGION_CONFIG: Final = ("scheduling.gardener.cloud/purpose", "region-config")
"""Label of the ConfigMaps with distances."""
CLOUD_PROFILES_ANNOTATION: Final = "scheduling.gardener.cloud/cloudprofiles"


class _Camel(msgspec.Struct, frozen=True, rename="camel"):
    """Base of the parts."""


class _Typed(_Camel, frozen=True):
    type: str = ""
    region: str = ""


class _Hibernation(_Camel, frozen=True):
    enabled: bool | None = None


class _FailureTolerance(_Camel, frozen=True):
    type: str = ""


class _HighAvailability(_Camel, frozen=True):
    failure_tolerance: _FailureTolerance = _FailureTolerance()


class _ControlPlane(_Camel, frozen=True):
    high_availability: _HighAvailability | None = None


class _Named(_Camel, frozen=True):
    name: str = ""


class _Operation(_Camel, frozen=True):
    type: str = ""
    state: str = ""


class _ShootSpec(_Camel, frozen=True):
    provider: _Typed = _Typed()
    seed_name: str | None = None
    hibernation: _Hibernation | None = None
    control_plane: _ControlPlane | None = None
    cloud_profile: _Named | None = None
    cloud_profile_name: str | None = None


class _ShootStatus(_Camel, frozen=True):
    hibernated: bool | None = None
    seed_name: str | None = None
    last_operation: _Operation | None = None


class _Metadata(_Camel, frozen=True):
    name: str = ""
    annotations: Mapping[str, str] | None = None
    deletion_timestamp: str | None = None


class MovingShoot(_Camel, frozen=True):
    """A Shoot, as far as its migration depends on it."""

    metadata: _Metadata = _Metadata()
    spec: _ShootSpec = _ShootSpec()
    status: _ShootStatus = _ShootStatus()

    @property
    def annotations(self) -> Mapping[str, str]:
        return self.metadata.annotations or {}

    def asks(self, annotation: str) -> bool:
        return self.annotations.get(annotation) == "true"

    @property
    def moves(self) -> bool:
        """Reports whether it is to have another seed than it has, without downtime."""
        wanted, present = self.spec.seed_name, self.status.seed_name
        return bool(wanted and present and wanted != present and self.asks(LIVE_MIGRATE))


class _SeedSpec(_Camel, frozen=True):
    provider: _Typed = _Typed()


class _Gardenlet(_Camel, frozen=True):
    version: str = ""


class _SeedStatus(_Camel, frozen=True):
    gardener: _Gardenlet = _Gardenlet()


class MovingSeed(_Camel, frozen=True):
    """A Seed, as far as a migration depends on it."""

    metadata: _Metadata = _Metadata()
    spec: _SeedSpec = _SeedSpec()
    status: _SeedStatus = _SeedStatus()


class RegionConfig(_Camel, frozen=True):
    """A ConfigMap of distances between regions, in milliseconds."""

    metadata: _Metadata = _Metadata()
    data: Mapping[str, str] | None = None


def forbidden(
    shoot: MovingShoot, source: MovingSeed, destination: MovingSeed, distances: Mapping[str, Mapping[str, int]] | None
) -> list[str]:
    """The reasons to refuse a changed spec.seedName. `distances` has no entry, or is None, where nobody wrote them."""
    return [*_state(shoot), *_seeds(shoot, source, destination), *_distance(shoot, source, destination, distances)]


def _state(shoot: MovingShoot) -> Iterator[str]:
    plane = shoot.spec.control_plane
    if (plane is None or plane.high_availability is None) and not shoot.asks(WITHOUT_HA):
        yield (
            "spec.controlPlane.highAvailability: Required value: live migration needs a control plane with high "
            "availability"
        )
    wants_sleep = shoot.spec.hibernation is not None and bool(shoot.spec.hibernation.enabled)
    if wants_sleep or shoot.status.hibernated:
        yield "spec.hibernation.enabled: Forbidden: a hibernated or waking cluster cannot be migrated live"
    last = shoot.status.last_operation
    if last is not None and (last.type in ("Migrate", "Restore") and last.state != "Succeeded"):
        yield f"status.lastOperation: Forbidden: the operation {last.type} has not ended"
    if shoot.metadata.deletion_timestamp:
        yield "metadata.deletionTimestamp: Forbidden: the cluster is being deleted"


def _seeds(shoot: MovingShoot, source: MovingSeed, destination: MovingSeed) -> Iterator[str]:
    old, new = source.spec.provider.type, destination.spec.provider.type
    if old != new:
        yield (
            f'spec.seedName: Invalid value: "{destination.metadata.name}": its provider type is {new}, that of the '
            f"present seed is {old}"
        )
    before, after = source.status.gardener.version, destination.status.gardener.version
    if not before or not after:
        yield "spec.seedName: Forbidden: the gardenlets of both seeds must have reported their versions"
    elif before != after:
        yield f"spec.seedName: Forbidden: the gardenlets differ: {before} at the present seed, {after} at the other"


def _distance(
    shoot: MovingShoot, source: MovingSeed, destination: MovingSeed, distances: Mapping[str, Mapping[str, int]] | None
) -> Iterator[str]:
    here, there = source.spec.provider.region, destination.spec.provider.region
    if here == there or shoot.asks(ALLOW_DISTANT):
        return
    allow = f"or allow it with the annotation {ALLOW_DISTANT}=true"
    if distances is None:
        yield f"spec.seedName: Forbidden: no ConfigMap has distances of regions for the cloud profile: add one, {allow}"
    elif here not in distances or there not in distances[here]:
        yield f"spec.seedName: Forbidden: the distance from {here} to {there} is not known: add it, {allow}"
    elif distances[here][there] > (limit := distance_limit(shoot)):
        yield (
            f"spec.seedName: Forbidden: the distance from {here} to {there} is {distances[here][there]}, the limit is "
            f"{limit}: choose a nearer seed, {allow}"
        )


def distance_limit(shoot: MovingShoot) -> int:
    """The largest distance, by annotation."""
    text = shoot.annotations.get(DISTANCE_LIMIT, "")
    return int(text) if text.isascii() and text.isdigit() else DEFAULT_DISTANCE


def distances_for(shoot: MovingShoot, configs: Iterable[RegionConfig]) -> dict[str, dict[str, int]] | None:
    """The distances that a ConfigMap has for the cloud profile of a Shoot; None where there is none."""
    profile = shoot.spec.cloud_profile
    name = profile.name if profile is not None else shoot.spec.cloud_profile_name or ""
    for one in configs:
        named = (one.metadata.annotations or {}).get(CLOUD_PROFILES_ANNOTATION, "")
        if name in (part.strip() for part in named.split(",")):
            return {region: _row(text) for region, text in (one.data or {}).items()}
    return None


def _row(text: str) -> dict[str, int]:
    row: dict[str, int] = {}
    for line in text.splitlines():
        region, colon, number = line.partition(":")
        distance = decimal(number.strip())
        if colon and distance is not None:
            row[region.strip()] = distance
    return row
