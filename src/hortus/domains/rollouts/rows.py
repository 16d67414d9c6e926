"""The rows of rollouts under way in `hortus top` and `hortus problems`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from hortus.domains.rollouts.decisions import WAITS_FOR_APPROVAL
from hortus.domains.rollouts.views import condition_of, line, message_of
from hortus.engine import FALSE, Actor
from hortus.engine.fleet import (
    FleetKind,
    FleetObjects,
    FleetRow,
    FleetView,
    RowStanding,
    changed_at,
    reading,
)
from hortus.engine.rollouts.types import ENDED, ROLLOUTS, Rollout, RolloutPhase

_ROLLOUTS: Final = FleetKind(ROLLOUTS, reading(Rollout))
_WAYS_ON: Final = "`hortus rollout resume {name}` or `hortus rollout abort {name}`"


class RolloutSubject(NamedTuple):
    rollout: Rollout


class RolloutRows(FleetView[RolloutSubject]):
    """One row for each rollout that has not ended."""

    kinds = (_ROLLOUTS,)
    page = "rollouts"
    order = 2

    def subjects(self, objects: FleetObjects) -> Iterable[RolloutSubject]:
        return (RolloutSubject(one) for one in objects.all(_ROLLOUTS, Rollout) if one.status.phase not in ENDED)

    def row(self, subject: RolloutSubject) -> FleetRow:
        rollout = subject.rollout
        name, phase, condition = rollout.metadata.name, rollout.status.phase, condition_of(rollout)
        reason = "" if condition is None else condition.reason
        # A reason that is no phase is a problem of the rollout itself, such as a missing ChangeKind.
        broken = condition is not None and condition.status == FALSE and reason not in (phase, RolloutPhase.PAUSED)
        halted = phase == RolloutPhase.HALTED
        asked = WAITS_FOR_APPROVAL in message_of(rollout)
        order = f"approve --stage {rollout.status.stage}" if asked else "show"
        return FleetRow(
            kind=ROLLOUTS.kind,
            namespace=rollout.metadata.namespace,
            name=name,
            standing=RowStanding.FAILED if halted or broken else RowStanding.WAITING,
            state=phase or RolloutPhase.PENDING,
            reason=reason,
            message=message_of(rollout) if broken else line(rollout),
            owner=Actor.OPERATOR if halted or broken or asked or phase == RolloutPhase.PAUSED else Actor.NOBODY,
            step=_WAYS_ON.format(name=name) if halted else f"`hortus rollout {order} {name}`",
            since=changed_at(rollout.metadata, condition),
            version=rollout.spec.change.to,
        )
