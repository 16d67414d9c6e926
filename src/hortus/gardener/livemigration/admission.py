"""The garden's admission of a migration, and Gardener's rules for it. Pure.

Source: gardener/gardener, plugin/pkg/shoot/validator (1.150), and docs/operations/control_plane_migration.md. Beyond
it: a migration that has not ended and a deletion are refused here, before anything begins.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from hortus.gardener.livemigration.distances import RegionConfig, UnreadableDistances
from hortus.gardener.livemigration.phases import ALLOW_DISTANT, LIVE_MIGRATE, WITHOUT_HA
from hortus.kube.numbers import boolean


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
        """Reports whether an annotation is true, in any spelling of Go's strconv.ParseBool."""
        return boolean(self.annotations.get(annotation, "")) is True

    @property
    def cloud_profile(self) -> str:
        """Name of its CloudProfile, by either of the fields that hold it."""
        profile = self.spec.cloud_profile
        return profile.name if profile is not None else self.spec.cloud_profile_name or ""

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


def forbidden_at_creation(shoot: MovingShoot) -> list[str]:
    """The reasons to refuse a new Shoot: it is on no seed from which it could move."""
    if not shoot.asks(LIVE_MIGRATE):
        return []
    return [f"metadata.annotations[{LIVE_MIGRATE}]: Forbidden: annotation must not be set on shoot creation"]


def forbidden(
    shoot: MovingShoot, source: MovingSeed, destination: MovingSeed, config: RegionConfig | None
) -> list[str]:
    """The reasons to refuse a changed spec.seedName. `config` has the distances for the Shoot's cloud profile."""
    found = [
        *_state(shoot),
        *_seeds(source, destination),
        *_distance(shoot, source, destination, config),
    ]
    return [f"spec.seedName: {one}" for one in found]


def _state(shoot: MovingShoot) -> Iterator[str]:
    plane = shoot.spec.control_plane
    if (plane is None or plane.high_availability is None) and not shoot.asks(WITHOUT_HA):
        yield (
            "Forbidden: shoot control plane must be configured for high availability to perform a live control plane "
            "migration: set spec.controlPlane.highAvailability"
        )
    wants_sleep = shoot.spec.hibernation is not None and bool(shoot.spec.hibernation.enabled)
    if wants_sleep or shoot.status.hibernated:
        yield "Forbidden: live control plane migration is not supported for hibernated or waking-up shoots"
    last = shoot.status.last_operation
    if last is not None and (last.type in ("Migrate", "Restore") and last.state != "Succeeded"):
        yield f"Forbidden: the operation {last.type} has not ended"
    if shoot.metadata.deletion_timestamp:
        yield "Forbidden: the cluster is being deleted"


def _seeds(source: MovingSeed, destination: MovingSeed) -> Iterator[str]:
    old, new = source.spec.provider.type, destination.spec.provider.type
    if old != new:
        yield f"Forbidden: source and destination seeds must use the same provider type ({old} -> {new})"
    versions = [("source", source), ("destination", destination)]
    if missing := [(which, seed) for which, seed in versions if not seed.status.gardener.version]:
        for which, seed in missing:
            yield f'Forbidden: gardenlet version not reported for {which} seed "{seed.metadata.name}"'
    elif source.status.gardener.version != destination.status.gardener.version:
        shown = ", ".join(f"{seed.metadata.name}: {seed.status.gardener.version}" for _, seed in versions)
        yield f"Forbidden: source and destination seeds must run the same gardenlet version ({shown})"


def _distance(
    shoot: MovingShoot, source: MovingSeed, destination: MovingSeed, config: RegionConfig | None
) -> Iterator[str]:
    here, there = source.spec.provider.region, destination.spec.provider.region
    if here == there or shoot.asks(ALLOW_DISTANT):
        return
    allow = f"or allow it with the annotation {ALLOW_DISTANT}=true"
    if config is None:
        yield (
            f'Forbidden: no scheduler region ConfigMap found for cloud profile "{shoot.cloud_profile}" (source region '
            f"{here}, destination region {there}): add one, {allow}"
        )
        return
    name = config.metadata.name
    try:
        limit, distances = config.limit, config.distances_from(here)
    except UnreadableDistances as error:
        yield f"Internal error: {error}"
        return
    if distances is None:
        yield f'Forbidden: source region {here} not configured in region ConfigMap "{name}": add it, {allow}'
    elif there not in distances:
        yield (
            f"Forbidden: distance from source region {here} to destination region {there} not configured in region "
            f'ConfigMap "{name}": add it, {allow}'
        )
    elif distances[there] > limit:
        yield (
            f"Forbidden: distance {distances[there]} from source region {here} to destination region {there} exceeds "
            f"threshold {limit}: choose a nearer seed, {allow}"
        )
