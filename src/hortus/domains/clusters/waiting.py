"""Steps that wait for the garden's work on the Shoot.

The watch shows when an operation ends or fails; progress in between changes nothing here and causes no reconcile.
"""

from __future__ import annotations

from hortus.domains.clusters.context import RuntimeContext
from hortus.domains.clusters.outline import CREATE, FAILED, RECONCILE, RUNNING, SUCCEEDED, ShootOutline
from hortus.domains.clusters.pauses import CREATION, GARDEN, RECONCILIATION
from hortus.domains.clusters.types import ConditionType, Reason
from hortus.engine import DONE, NEVER, UNKNOWN, Actor, Result, StepError

_KIND = ConditionType.PROVISIONED


async def await_beginning(context: RuntimeContext) -> Result | None:
    """End the reconcile while the garden has not begun."""
    shoot = context.present_shoot
    return None if shoot.domain and shoot.operation else Result(requeue_after=GARDEN)


async def await_operation(context: RuntimeContext) -> Result | None:
    """End the reconcile while the garden works on the Shoot, or when its work is none for this Runtime."""
    shoot = context.present_shoot
    if context.unchanged and shoot.state == SUCCEEDED:
        return None
    if not context.unchanged and not shoot.current:
        return Result(requeue_after=GARDEN)
    if shoot.operation == CREATE:
        return await _await_creation(context, shoot)
    return await _await_reconciliation(context, shoot) if shoot.operation == RECONCILE else DONE


async def _await_creation(context: RuntimeContext, shoot: ShootOutline) -> Result | None:
    if shoot.state in RUNNING and shoot.unschedulable:
        # The contract does not count this end as an unexpected stop.
        context.failed(_KIND, Reason.CREATION_ERR, "Shoot creation failed, no matching seeds")
        return DONE
    if shoot.state in RUNNING:
        return _wait(context, Reason.PENDING, "Shoot creation in progress", CREATION)
    if shoot.state == FAILED and shoot.retryable:
        return _wait(context, Reason.PENDING, "Retryable gardener errors during cluster provisioning", CREATION)
    if shoot.state == FAILED:
        raise _stop(Reason.CREATION_ERR, "Shoot creation failed")
    _check(shoot)
    await context.reached(_KIND, Reason.SHOOT_CREATED, "Shoot creation completed")
    return None


async def _await_reconciliation(context: RuntimeContext, shoot: ShootOutline) -> Result | None:
    if shoot.state in RUNNING:
        return _wait(context, Reason.PROCESSING, "Shoot update is in progress", RECONCILIATION)
    if shoot.state == FAILED and shoot.retryable:
        return _wait(context, Reason.PENDING, "Retryable gardener errors during cluster reconcile", RECONCILIATION)
    if shoot.state == FAILED:
        raise _stop(Reason.PROCESSING_ERR, ", ".join(shoot.codes))
    _check(shoot)
    await context.reached(_KIND, Reason.CONFIGURED, "Runtime processing completed successfully")
    return None


def _wait(context: RuntimeContext, reason: str, message: str, seconds: float) -> Result:
    context.pending(_KIND, UNKNOWN, reason, message)
    return Result(requeue_after=seconds)


def _check(shoot: ShootOutline) -> None:
    """Raises StepError for an operation in a state that is not known."""
    if shoot.state != SUCCEEDED:
        text = f"the last operation of shoot {shoot.name} is in state {shoot.state!r}, which is not known"
        raise StepError(text, reason="UnknownOperation", actor=Actor.OPERATOR, after=NEVER)


def _stop(reason: str, message: str) -> StepError:
    return StepError(message, reason=reason, condition=_KIND, actor=Actor.OPERATOR, after=NEVER)
