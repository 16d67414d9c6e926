"""The orders that people give to a rollout: approve, pause, resume, abort. Each is one patch of its spec."""

from __future__ import annotations

from hortus.engine import read
from hortus.engine.rollouts.types import ENDED, ROLLOUTS, Rollout, RolloutPhase
from hortus.kube import Client, PatchKind
from hortus.kube.errors import Conflict
from hortus.kube.objects import Object

_CHANGED = "rollout {name} has changed while the order was given: look at it again"


class OrderRefused(Exception):
    """An order does not fit the state of the rollout; the message names both."""


async def approve(client: Client, rollout: Rollout, stage: str, *, manager: str, as_read: bool = False) -> str:
    """Approves a stage, the one under way without a name. Returns the outcome. Raises OrderRefused, KubeError.

    With `as_read` the rollout must still be the one that was read.
    """
    name = rollout.metadata.name
    _expect_running(rollout)
    known = [one.name for one in rollout.status.stages]
    chosen = stage or rollout.status.stage
    if chosen not in known:
        raise OrderRefused(f"Rollout {name} has no stage {chosen!r}; its stages: {', '.join(known) or 'none yet'}")
    terms = () if rollout.spec.policy is None else rollout.spec.policy.stages
    if any(one.approval == "None" for one in terms if one.name == chosen):
        raise OrderRefused(f"stage {chosen} of rollout {name} needs no approval")
    if chosen in rollout.spec.approved:
        return f"stage {chosen} of rollout {name} is approved already"
    await append_approval(client, rollout, chosen, manager, as_read=as_read)
    return f"stage {chosen} of rollout {name} approved"


async def pause(client: Client, rollout: Rollout, *, manager: str) -> str:
    """Admits no further cluster. Returns the outcome. Raises OrderRefused, KubeError."""
    _expect_running(rollout)
    await _patch(client, rollout, {"state": "Pause"}, manager)
    return f"rollout {rollout.metadata.name} paused: clusters that have begun finish"


async def resume(client: Client, rollout: Rollout, *, manager: str, as_read: bool = False) -> str:
    """Goes on after a pause or a halt. Returns the outcome. Raises OrderRefused, KubeError.

    With `as_read` the rollout must still be the one that was read.
    """
    name = rollout.metadata.name
    _expect_running(rollout)
    patch: Object = {}
    if rollout.spec.state == "Pause":
        patch["state"] = "Run"
    if rollout.status.halts > rollout.spec.resumes:
        patch["resumes"] = rollout.status.halts
    if not patch:
        raise OrderRefused(f"Rollout {name} is neither paused nor halted: it is {rollout.status.phase or 'Pending'}")
    await _patch(client, rollout, patch, manager, as_read=as_read)
    forgiven = "; the failures so far no longer count" if "resumes" in patch else ""
    return f"rollout {name} resumed{forgiven}"


async def abort(client: Client, rollout: Rollout, *, manager: str) -> str:
    """Ends a rollout for good. Returns the outcome. Raises OrderRefused, KubeError."""
    _expect_running(rollout)
    await _patch(client, rollout, {"state": "Abort"}, manager)
    return f"rollout {rollout.metadata.name} aborted: clusters that have begun finish"


def is_over(rollout: Rollout) -> bool:
    """True once no order changes anything any more. One that succeeded goes on when clusters ask late."""
    phase = rollout.status.phase
    return (phase in ENDED and phase != RolloutPhase.SUCCEEDED) or rollout.spec.state == "Abort"


def _expect_running(rollout: Rollout) -> None:
    if is_over(rollout):
        raise OrderRefused(f"Rollout {rollout.metadata.name} is over: {rollout.status.phase or 'Aborted'}")


async def append_approval(client: Client, rollout: Rollout, stage: str, manager: str, *, as_read: bool = False) -> None:
    """Append to the list as it was read, and read it again after a conflict: approvals at the same time all count.

    Raises OrderRefused in place of reading it again with `as_read`.
    """
    while stage not in rollout.spec.approved:
        metadata = rollout.metadata
        path, value = ("/spec/approved/-", stage) if rollout.spec.approved else ("/spec/approved", [stage])
        patch: list[Object] = [
            {"op": "add", "path": "/metadata/resourceVersion", "value": metadata.resource_version},
            {"op": "add", "path": path, "value": value},
        ]
        try:
            await client.patch(
                ROLLOUTS, metadata.name, patch, metadata.namespace, PatchKind.JSON, field_manager=manager
            )
            return
        except Conflict:
            if as_read:
                raise OrderRefused(_CHANGED.format(name=metadata.name)) from None
            rollout = read(Rollout, await client.get(ROLLOUTS, metadata.name, metadata.namespace))


async def _patch(client: Client, rollout: Rollout, spec: Object, manager: str, *, as_read: bool = False) -> None:
    metadata = rollout.metadata
    patch: Object = {"spec": spec}
    if as_read:
        patch["metadata"] = {"resourceVersion": metadata.resource_version}
    try:
        await client.patch(ROLLOUTS, metadata.name, patch, metadata.namespace, PatchKind.MERGE, field_manager=manager)
    except Conflict:
        if not as_read:
            raise
        raise OrderRefused(_CHANGED.format(name=metadata.name)) from None
