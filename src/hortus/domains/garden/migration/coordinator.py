"""The coordinator of live migrations: moves a control plane from seed to seed without a failed request.

Conditions it owns: those in status.liveMigration, one for each phase; besides them status.lastOperation and
status.seedName while a Shoot moves, and the annotation with the record of the start.
Objects it owns: none. It watches Shoots.
It never: begins where the preflight finds a problem, goes back once a member of the source was removed, or remembers
anything from one reconcile to the next besides the record.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final, Protocol

import msgspec

from hortus.domains.garden.kinds.migratedshoot import MigratedShoot
from hortus.domains.garden.migration.context import IN_PROGRESS, MigrationContext
from hortus.engine import Actor, EventRecorder, KindController, Manager, Result, StepError, Steps, Watch, Wiring, wire
from hortus.engine.events import WARNING
from hortus.gardener.livemigration import (
    ABORT,
    FORCE_SHRINK,
    LEARNER_SYNCING,
    LIVE_MIGRATE,
    RECORD,
    WITHOUT_HA,
    MigrationPhase,
    MoveDecision,
    MovingPlane,
    Observation,
    StepRefused,
    migration_record,
    problems,
    steps,
    walk,
)
from hortus.gardener.livemigration.steps import Wait
from hortus.kube import Client
from hortus.kube.objects import Object

COORDINATOR: Final = "live-migration"
"""Name of the controller in metrics, logs and events."""
AGAIN: Final = 1.0
"""Seconds until a control plane is observed again that could not be observed."""
HALTED: Final = 30.0
"""Seconds until a migration is tried again that an operator has to unblock."""
SYNC_WITHIN: Final = 600.0
"""Seconds in which a learner must catch up, after which the migration is aborted: etcd copies some 10 MB/s and more,
and takes no database above 8 GiB."""


class ControlPlanes(Protocol):
    """The control planes that can move."""

    def of(self, shoot: Object) -> MovingPlane | None:
        """The control plane of a Shoot; None for one that another coordinator moves."""

    def forget(self, shoot: Object) -> None:
        """Drops what is kept of a migration that is over."""


class LiveMigrationCoordinator(KindController[MigrationContext]):
    """Reconciles one Shoot at a time; those that do not move cost a look at two fields."""

    kind: ClassVar = MigratedShoot
    field_manager: ClassVar = "hortus-live-migration"

    def __init__(self, wiring: Wiring[Any], planes: ControlPlanes) -> None:
        super().__init__(wiring)
        self._planes = planes

    def make_context(self, raw: Object) -> MigrationContext:
        return MigrationContext(self.wiring, raw)

    def steps(self, context: MigrationContext) -> Steps:
        return (self._choose, self._give_up_early, self._begin, self._move, self._release)

    async def on_error(self, context: MigrationContext, error: Any) -> StepError | None:
        return error if isinstance(error, StepError) else None

    def report(self, context: MigrationContext, error: StepError) -> None:
        context.report_phase(context.phase(), error.reason, error.message)
        context.report_failure(error.message)

    def _plane(self, context: MigrationContext) -> MovingPlane | None:
        return self._planes.of(context.raw)

    # Steps.

    async def _choose(self, context: MigrationContext) -> Result | None:
        is_ours = context.shoot.moves or RECORD in context.shoot.annotations
        if not is_ours and context.aborts:
            # It came when nothing was left to abort, and must not meet the next migration.
            await context.patch({"metadata": {"annotations": {ABORT: None}}}, goes_on=True)
        return None if is_ours and self._plane(context) is not None else Result()

    async def _give_up_early(self, context: MigrationContext) -> Result | None:
        """An abort before the first step only takes the wish back."""
        if context.record is not None or not context.aborts:
            return None
        context.report_end(is_aborted=True)
        await context.checkpoint()
        await self._take_back(context)
        self._planes.forget(context.raw)
        return Result()

    async def _begin(self, context: MigrationContext) -> None:
        """The preflight, and the record of the start."""
        if context.record is not None:
            return
        plane = self._plane(context)
        assert plane is not None, "chosen before"
        seen = await _observed(plane)
        if found := problems(seen, allows_single=context.shoot.asks(WITHOUT_HA)):
            raise StepError(
                "; ".join(one.message for one in found),
                reason=found[0].reason,
                actor=Actor.OPERATOR,
                after=HALTED,
            )
        shoot = context.shoot
        record = migration_record(seen, source=shoot.status.seed_name or "", destination=shoot.spec.seed_name or "")
        context.report_phase(MigrationPhase.SOURCE_PREPARED, IN_PROGRESS, "The migration begins")
        context.report_members(seen)
        await context.checkpoint()
        await context.patch({"metadata": {"annotations": {RECORD: msgspec.json.encode(record).decode()}}}, goes_on=True)

    async def _move(self, context: MigrationContext) -> Result | None:
        plane, record = self._plane(context), context.record
        assert plane is not None
        assert record is not None, "recorded before"

        async def report(decision: MoveDecision, seen: Observation) -> None:
            is_new = context.report_members(seen) or context.phase() != decision.phase
            if not is_new:
                return  # a step that is refused again and again must not change the report each time
            if not isinstance(decision.step, steps.Moved):
                context.report_phase(decision.phase, *_words(decision.step, aborts=context.aborts))
            await context.checkpoint()

        try:
            decision = await walk(
                plane,
                record,
                report,
                aborting=context.aborts,
                is_forced=context.shoot.asks(FORCE_SHRINK),
            )
        except StepRefused as refusal:
            context.report_phase(context.phase(), refusal.reason, str(refusal))
            return Result(requeue_after=AGAIN)
        match decision.step:
            case steps.Moved():
                return None
            case steps.Halt():
                raise StepError(decision.step.message, reason=decision.step.reason, actor=Actor.OPERATOR, after=HALTED)
            case steps.Wait():
                context.report_phase(decision.phase, decision.step.reason, decision.step.message)
                await self._abort_overdue(context, decision.step)
                return Result(requeue_after=decision.step.seconds)
        return Result(requeue_after=0.0)

    async def _abort_overdue(self, context: MigrationContext, step: Wait) -> None:
        """Turns a migration back whose learner does not catch up."""
        if step.reason != LEARNER_SYNCING or context.aborts or context.waited() < SYNC_WITHIN:
            return
        context.event(WARNING, "LearnerTooSlow", f"{step.message} for {SYNC_WITHIN:.0f} s: the migration is aborted")
        await context.patch({"metadata": {"annotations": {ABORT: "true"}}}, goes_on=True)

    async def _release(self, context: MigrationContext) -> None:
        """The end is written first: a coordinator that is killed in between finds the goal reached, and ends again."""
        record = context.record
        assert record is not None
        is_back = context.aborts and await self._is_back(context)
        context.report_end(is_aborted=is_back)
        await context.checkpoint()
        if is_back:
            await self._take_back(context)
        else:
            gone = dict.fromkeys((LIVE_MIGRATE, RECORD, ABORT, FORCE_SHRINK))
            await context.patch({"metadata": {"annotations": gone}}, goes_on=True)
        self._planes.forget(context.raw)

    async def _is_back(self, context: MigrationContext) -> bool:
        """Reports whether the walk ended at the source: an abort that came too late ends at the destination."""
        plane, record = self._plane(context), context.record
        assert plane is not None
        assert record is not None
        seen = await _observed(plane)
        return {one.id for one in seen.members} == {one.id for one in record.members}

    async def _take_back(self, context: MigrationContext) -> None:
        gone = dict.fromkeys((LIVE_MIGRATE, RECORD, ABORT, FORCE_SHRINK))
        seed = context.shoot.status.seed_name
        await context.patch({"metadata": {"annotations": gone}, "spec": {"seedName": seed}}, goes_on=True)


async def _observed(plane: MovingPlane) -> Observation:
    try:
        return await plane.observe()
    except StepRefused as refusal:
        raise StepError(str(refusal), reason=refusal.reason, actor=Actor.OPERATOR, after=AGAIN) from refusal


def _words(step: steps.Step, *, aborts: bool) -> tuple[str, str]:
    """Reason and message for a step."""
    if isinstance(step, steps.Wait | steps.Halt):
        return step.reason, step.message
    name = type(step).__name__
    target = getattr(step, "name", "") or getattr(step, "target_name", "") or getattr(step, "site", "")
    return ("Aborting" if aborts else IN_PROGRESS), f"{name} {target}".strip()


def add_coordinator(manager: Manager, *, client: Client, planes: ControlPlanes, workers: int = 10) -> None:
    """Add the coordinator to a process. `manager` and `client` are the garden's."""
    events = EventRecorder(client, component=COORDINATOR, clock=manager.clock)
    manager.add_server(events)
    wiring = wire(manager, LiveMigrationCoordinator, client=client, events=events)
    made = LiveMigrationCoordinator(wiring, planes)
    # The status is written by gardenlet too, and has the seed that the Shoot is on.
    manager.controller(COORDINATOR, made, sources=[Watch(wiring.cache.raw)], workers=workers)
