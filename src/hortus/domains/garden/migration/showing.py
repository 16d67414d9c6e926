"""The progress of a migration for people: a line for each change, and a picture of the members at the end. Pure."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from hortus.domains.garden.kinds.migratedshoot import LiveMigrationStatus, MigratedShoot
from hortus.domains.garden.migration.context import JOINING
from hortus.gardener.livemigration import OPERATION, MigrationPhase
from hortus.kube.clock import Clock
from hortus.kube.objects import Object

_PHASES = tuple(MigrationPhase)


class _Line(NamedTuple):
    at: float
    phase: str
    reason: str
    message: str
    members: tuple[str, ...]


class MigrationProgress:
    """The changes of one migration, as they are seen."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since = clock.monotonic()
        self._lines: list[_Line] = []
        self.ended = False
        self.succeeded = False
        self.outcome = ""

    def note(self, shoot: Object) -> str:
        """Take a state of the Shoot; returns a line for people if phase, reason or members differ."""
        status = msgspec.convert(shoot, MigratedShoot).status
        last, live = status.last_operation, status.live_migration or LiveMigrationStatus()
        is_moving = msgspec.convert(shoot, MigratedShoot).spec.seed_name != status.seed_name
        if last is None or last.type != OPERATION:
            return ""
        self.ended = last.state in ("Succeeded", "Aborted") and not is_moving
        self.succeeded, self.outcome = last.state == "Succeeded", last.description
        held = {one.type: one for one in live.conditions}
        phase = next((one for one in _PHASES if one in held and held[one].status != "True"), None)
        found = held[phase] if phase is not None else None
        line = _Line(
            self._clock.monotonic() - self._since,
            phase or last.state,
            found.reason if found is not None else "",
            found.message if found is not None else "",
            live.members,
        )
        if self._lines and self._lines[-1][1:3] == line[1:3] and self._lines[-1].members == line.members:
            return ""
        self._lines.append(line)
        says = f"{line.reason}: {line.message}" if line.message else line.reason
        return f"{line.at:6.1f} s  {line.phase:<44}{says}  [{' '.join(line.members)}]"

    def picture(self) -> list[str]:
        """A row for each member and a column for each change of them: L leads, # votes, o learns."""
        columns = self._changes()
        names = list(dict.fromkeys(name.strip("()*") for one in columns for name in one.members))
        names = [name for name in names if name != JOINING]
        if not names:
            return []
        width = max(map(len, names))
        rows = [f"{name:<{width}}  {''.join(_mark(name, one.members) for one in columns)}" for name in names]
        return [*rows, f"{'':<{width}}  L leads, # votes, o learns"]

    def document(self) -> dict[str, Any]:
        """The progress for programs."""
        phases: dict[str, float] = {}
        for one in self._lines:
            phases.setdefault(one.phase, round(one.at, 1))
        return {
            "outcome": self.outcome,
            "succeeded": self.succeeded,
            "phases": [{"phase": phase, "seconds": at} for phase, at in phases.items()],
            "members": [{"seconds": round(one.at, 1), "members": list(one.members)} for one in self._changes()],
        }

    def _changes(self) -> list[_Line]:
        found: list[_Line] = []
        for one in self._lines:
            if one.members and (not found or found[-1].members != one.members):
                found.append(one)
        return found


def _mark(name: str, members: tuple[str, ...]) -> str:
    for one in members:
        if one.strip("()*") == name:
            return "L" if "*" in one else "o" if one.startswith("(") else "#"
    return "."
