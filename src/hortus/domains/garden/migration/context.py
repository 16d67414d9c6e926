"""The reconcile of a Shoot that moves, and the report of its progress in the status."""

from __future__ import annotations

from functools import cached_property
from typing import Final

import msgspec

from hortus.domains.garden.kinds.common import GardenCondition, GardenOperation, with_condition
from hortus.domains.garden.kinds.migratedshoot import LiveMigrationStatus, MigratedShoot
from hortus.engine import ReconcileContext
from hortus.gardener.livemigration import (
    ABORT,
    ABORTED,
    OPERATION,
    RECORD,
    EtcdMember,
    MigrationPhase,
    MigrationRecord,
    MovingShoot,
    Observation,
)
from hortus.kube.objects import format_time, parse_time
from hortus.kube.shapes import decode_json

PHASES: Final = tuple(MigrationPhase)
SUCCEEDED: Final = "Succeeded"
PENDING: Final = "Pending"
JOINING: Final = "joining"
"""Shown for a member that has not started."""
IN_PROGRESS: Final = "InProgress"


class MigrationContext(ReconcileContext[MigratedShoot]):
    """One reconcile of one Shoot."""

    @cached_property
    def shoot(self) -> MovingShoot:
        """The facts of its migration, as they were when the reconcile began."""
        return msgspec.convert(self.raw, MovingShoot)

    @property
    def record(self) -> MigrationRecord | None:
        """The record of the migration that has begun. Raises msgspec.DecodeError."""
        text = (self.object.metadata.annotations or {}).get(RECORD)
        return decode_json(text, MigrationRecord) if text else None

    @property
    def aborts(self) -> bool:
        return self.shoot.asks(ABORT)

    def report_phase(self, phase: MigrationPhase, reason: str, message: str, *, past: str = SUCCEEDED) -> None:
        """Draft all conditions: those of earlier phases are True, that of `phase` says why it is not."""
        now_at = PHASES.index(phase)
        conditions = self._conditions()
        for number, one in enumerate(PHASES):
            if number < now_at:
                conditions = self._with(conditions, one, "True", past, "")
            elif number == now_at:
                conditions = self._with(conditions, one, "False", reason, message)
            else:
                conditions = self._with(conditions, one, "False", PENDING, "")
        self._set(conditions)
        self._operation("Processing", 100 * now_at // len(PHASES), message or f"{phase}: {reason}")

    def report_members(self, seen: Observation) -> bool:
        """Draft the list of members; returns whether it differs."""
        before, members = self._live(), tuple(shown(one) for one in seen.members)
        if before.members == members:
            return False
        self._draft(msgspec.structs.replace(before, members=members))
        return True

    def report_end(self, *, is_aborted: bool) -> None:
        """Draft the end: all phases are over, or taken back."""
        conditions = self._conditions()
        for one in PHASES:
            status, reason = ("False", ABORTED) if is_aborted else ("True", SUCCEEDED)
            conditions = self._with(conditions, one, status, reason, "")
        self._set(conditions)
        if is_aborted:
            self._operation("Aborted", 0, "The migration was aborted, the control plane is on its former seed")
        else:
            self.set_status("seedName", self.object.spec.seed_name)
            self._operation("Succeeded", 100, "The control plane was migrated without downtime")

    def report_failure(self, message: str) -> None:
        """Draft an error of the operation."""
        last = self.object.status.last_operation
        self._operation("Error", last.progress if last is not None else 0, message)

    def waited(self) -> float:
        """Seconds for which the present phase has waited for the same thing."""
        found = next((one for one in self._conditions() if one.type == self.phase()), None)
        return 0.0 if found is None else self.now - parse_time(found.last_update_time)

    def phase(self) -> MigrationPhase:
        """The first phase whose condition is not True."""
        held = {one.type for one in self._conditions() if one.status == "True"}
        return next((one for one in PHASES if one not in held), MigrationPhase.COMPLETED)

    def _live(self) -> LiveMigrationStatus:
        return msgspec.convert(self.drafted("liveMigration") or {}, LiveMigrationStatus)

    def _draft(self, live: LiveMigrationStatus) -> None:
        self.set_status("liveMigration", msgspec.to_builtins(live))

    def _conditions(self) -> list[GardenCondition]:
        return list(self._live().conditions)

    def _with(
        self, conditions: list[GardenCondition], kind: str, status: str, reason: str, message: str
    ) -> list[GardenCondition]:
        return with_condition(conditions, kind, status, reason, self._shown(kind, message), self.now)

    def _set(self, conditions: list[GardenCondition]) -> None:
        self._draft(msgspec.structs.replace(self._live(), conditions=tuple(conditions)))

    def _operation(self, state: str, progress: int, description: str) -> None:
        drafted = self.drafted("lastOperation")
        last = msgspec.convert(drafted, GardenOperation) if drafted else GardenOperation()
        text = self._shown("", description)
        if (last.type, last.state, last.progress, last.description) == (OPERATION, state, progress, text):
            return
        made = {
            "type": OPERATION,
            "state": state,
            "progress": progress,
            "description": text,
            "lastUpdateTime": format_time(self.now),
        }
        self.set_status("lastOperation", made)


def shown(member: EtcdMember) -> str:
    """A member in one word: a learner in brackets, the leader with an asterisk; `joining` has no name yet."""
    name = member.name or JOINING
    word = f"{name}*" if member.is_leader else name
    return f"({word})" if member.is_learner else word
