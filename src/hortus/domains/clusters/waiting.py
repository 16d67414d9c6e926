"""The garden works on the Shoot (section 2.2, WaitForShootCreation and WaitForShootReconcile).

The watch tells when an operation ends or fails; progress in between changes nothing here and is not looked at.
"""

from __future__ import annotations

from hortus.domains.clusters.outline import FAILED, RUNNING, SUCCEEDED, ShootOutline
from hortus.domains.clusters.pauses import AT_ONCE, CREATION, RECONCILIATION
from hortus.domains.clusters.types import ConditionType, Reason
from hortus.domains.clusters.visit import Setback, Visit
from hortus.engine import TRUE, UNKNOWN, Result

_KIND = ConditionType.PROVISIONED


async def creation(visit: Visit, live: ShootOutline) -> Result | None:
    """None once the Shoot is there and the status says so. Raises Setback."""
    if live.state in RUNNING and live.unschedulable:
        raise Setback(Reason.CREATION_ERR, "Shoot creation failed, no matching seeds", counted=False)
    if live.state in RUNNING:
        return await _wait(visit, Reason.PENDING, "Shoot creation in progress", CREATION)
    if live.state == FAILED and live.retryable:
        return await _wait(visit, Reason.PENDING, "Retryable gardener errors during cluster provisioning", CREATION)
    if live.state == FAILED:
        raise Setback(Reason.CREATION_ERR, "Shoot creation failed")
    return await _done(visit, live, Reason.SHOOT_CREATED, "Shoot creation completed")


async def reconciliation(visit: Visit, live: ShootOutline) -> Result | None:
    """None once the Shoot is as patched and the status says so. Raises Setback."""
    if live.state in RUNNING:
        return await _wait(visit, Reason.PROCESSING, "Shoot update is in progress", RECONCILIATION)
    if live.state == FAILED and live.retryable:
        return await _wait(visit, Reason.PENDING, "Retryable gardener errors during cluster reconcile", RECONCILIATION)
    if live.state == FAILED:
        raise Setback(Reason.PROCESSING_ERR, ", ".join(live.codes))
    return await _done(visit, live, Reason.CONFIGURED, "Runtime processing completed successfully")


async def _wait(visit: Visit, reason: str, message: str, seconds: float) -> Result:
    visit.pending(_KIND, UNKNOWN, reason, message)
    await visit.save()
    return Result(requeue_after=seconds)


async def _done(visit: Visit, live: ShootOutline, reason: str, message: str) -> Result | None:
    if live.state != SUCCEEDED:
        raise UnknownOperation(live.state)
    known = visit.says(_KIND, TRUE, reason)
    visit.pending(_KIND, TRUE, reason, message)
    if known:
        return None
    await visit.save()
    return Result(requeue_after=AT_ONCE)


class UnknownOperation(Exception):
    """The last operation is in a state that we do not know."""
