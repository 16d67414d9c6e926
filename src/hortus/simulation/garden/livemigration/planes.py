"""The simulated control planes of all Shoots that move."""

from __future__ import annotations

import msgspec

from hortus.gardener.livemigration import RECORD, MigrationRecord, MovingShoot
from hortus.kube.clock import Clock
from hortus.kube.objects import Object
from hortus.simulation.garden.livemigration.controlplane import SimulatedControlPlane
from hortus.simulation.settings import GardenSettings

HA_MEMBERS = 3


class _Named(msgspec.Struct):
    uid: str = ""


class _Owned(msgspec.Struct):
    metadata: _Named


class SimulatedPlanes:
    """One control plane for each migration, from the time that the coordinator asks for it first.

    A process that starts again has lost the members of a migration on its way: they are at the source again, and the
    walk begins from there.
    """

    def __init__(self, settings: GardenSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._planes: dict[str, tuple[str, str, SimulatedControlPlane]] = {}

    def of(self, shoot: Object) -> SimulatedControlPlane | None:
        """The control plane of a Shoot, on its way between two seeds."""
        uid, (source, destination) = msgspec.convert(shoot, _Owned).metadata.uid, _way(shoot)
        if not source or not destination or source == destination:
            return None
        known = self._planes.get(uid)
        if known is None or known[:2] != (source, destination):
            read = msgspec.convert(shoot, MovingShoot).spec.control_plane
            made = SimulatedControlPlane(
                self._clock,
                cluster_id=uid,
                source=source,
                destination=destination,
                size=HA_MEMBERS if read is not None and read.high_availability is not None else 1,
                seconds=self._settings.scaled(1.0),
            )
            known = self._planes[uid] = (source, destination, made)
        return known[2]

    def forget(self, shoot: Object) -> None:
        """Drops the control plane of a migration that is over."""
        self._planes.pop(msgspec.convert(shoot, _Owned).metadata.uid, None)


def _way(shoot: Object) -> tuple[str, str]:
    """The seeds between which a Shoot moves: those of the record, which outlasts the change of the status."""
    read = msgspec.convert(shoot, MovingShoot)
    if text := read.annotations.get(RECORD):
        record = msgspec.json.decode(text, type=MigrationRecord)
        return record.source, record.destination
    return read.status.seed_name or "", read.spec.seed_name or ""
