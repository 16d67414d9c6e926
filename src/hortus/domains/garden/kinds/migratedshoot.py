"""Shoot, as far as the coordinator of live migrations reads and writes it."""

from __future__ import annotations

from hortus.domains.garden.kinds.common import GardenCondition, GardenOperation
from hortus.schema import Fields, Kind, kind


class MigratedShootSpec(Fields, frozen=True):
    """The seed that is wanted."""

    seed_name: str | None = None
    """Name of the Seed that the control plane is to be on."""


class LiveMigrationStatus(Fields, frozen=True):
    """The progress of a live migration."""

    conditions: tuple[GardenCondition, ...] = ()
    """One condition for each phase."""
    members: tuple[str, ...] = ()
    """Members of etcd: a learner in brackets, the leader with an asterisk."""


class MigratedShootStatus(Fields, frozen=True):
    """The seed that the control plane is on, and its way to another."""

    seed_name: str | None = None
    """Name of the Seed that the control plane is on."""
    last_operation: GardenOperation | None = None
    """The last operation."""
    live_migration: LiveMigrationStatus | None = None
    """The progress of a live migration."""


@kind(group="core.gardener.cloud", version="v1beta1", name="Shoot", status=True)
class MigratedShoot(Kind, frozen=True):
    """A cluster whose control plane may move."""

    spec: MigratedShootSpec = MigratedShootSpec()
    """The seed that is wanted."""
    status: MigratedShootStatus = MigratedShootStatus()
    """The seed that the control plane is on, and its way to another."""
