"""The status of a Rollout: a decision in numbers and words, and the memory that the next decision starts from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from hortus.domains.rollouts.decisions import (
    WAITS_FOR_APPROVAL,
    AdmittedCluster,
    RolloutDecision,
    RolloutMemory,
    StageMemory,
    StageView,
    Standing,
)
from hortus.engine import ReconcileContext
from hortus.engine.conditions import FALSE, TRUE
from hortus.engine.rollouts.types import (
    ENDED,
    REVERT,
    ClusterFailure,
    PolicyTerms,
    Rollout,
    RolloutChange,
    RolloutCondition,
    RolloutPhase,
    RolloutPolicy,
    RolloutSpec,
    RolloutStatus,
    Stage,
    StageStatus,
)
from hortus.kube.objects import format_time, parse_time
from hortus.schema import ObjectMeta

MAX_FAILURES: Final = 20
"""Failures that the status lists; all are counted."""
_MAX_MESSAGE: Final = 300
_LONGEST_STEM: Final = 63 - len(REVERT)
"""Characters of a rollout's name in that of its way back."""


def memory_of(status: RolloutStatus) -> RolloutMemory:
    """The memory that a status keeps."""
    return RolloutMemory(
        {
            one.name: StageMemory(
                parse_time(one.settled_at) if one.settled_at else None,
                one.ended,
                one.forgiven,
                empty=one.ended and not one.clusters,
            )
            for one in status.stages
        },
        status.halts,
        status.forgiven_halts,
    )


def draft(
    context: ReconcileContext[Rollout], decision: RolloutDecision, admitted: Iterable[AdmittedCluster], *, newer: str
) -> None:
    """Draft the status. `admitted` are all admitted clusters; `newer` is the rollout that took this one's place, empty
    while none has."""
    rollout = context.object
    phase, message = _phase(rollout, decision, newer)
    stages = [msgspec.to_builtins(_stage_of(view)) for view in decision.stages]
    moved = stages != [msgspec.to_builtins(one) for one in rollout.status.stages]
    fields: dict[str, Any] = {
        "observedGeneration": rollout.metadata.generation,
        "phase": phase,
        "stage": decision.stage,
        "stages": stages,
        "excluded": len(decision.excluded),
        "failures": [msgspec.to_builtins(one) for one in _failures(decision)],
        "halts": decision.memory.halts,
        "forgivenHalts": decision.memory.forgiven_halts,
    }
    began = min((one.at for one in admitted if one.at), default=None)
    if rollout.status.started_at is None and began is not None:
        fields["startedAt"] = format_time(began)
    if phase in ENDED:
        fields["endedAt"] = rollout.status.ended_at or format_time(context.now)
    if phase in ENDED:
        fields["estimatedEnd"] = None
    elif moved:
        fields["estimatedEnd"] = _estimate(rollout.status, decision, context.now)
    for name, value in fields.items():
        context.set_status(name, value)
    _draft_conditions(context, phase, message)


def _draft_conditions(context: ReconcileContext[Rollout], phase: str, message: str) -> None:
    halted, over = phase == RolloutPhase.HALTED, phase in ENDED
    succeeded = phase == RolloutPhase.SUCCEEDED
    moving = phase in (RolloutPhase.PENDING, RolloutPhase.PROGRESSING)
    context.condition(RolloutCondition.PROGRESSING, TRUE if moving else FALSE, reason=phase, message=message)
    context.condition(
        RolloutCondition.HALTED,
        TRUE if halted else FALSE,
        reason=phase if halted else "WithinBudget",
        message=message if halted else "",
    )
    context.condition(
        RolloutCondition.SUCCEEDED, TRUE if succeeded else FALSE, reason=phase, message=message if over else ""
    )


def _phase(rollout: Rollout, decision: RolloutDecision, newer: str) -> tuple[str, str]:
    if newer:
        return RolloutPhase.SUPERSEDED, f"rollout {newer} took its place"
    if rollout.spec.state == "Abort":
        return RolloutPhase.ABORTED, "aborted: clusters that had begun finish, no other begins"
    if decision.phase == RolloutPhase.SUCCEEDED:
        failed = sum(view.counts[Standing.FAILED] for view in decision.stages)
        skipped = sum(view.counts[Standing.SKIPPED] for view in decision.stages)
        parts = [f"{failed} failed within the budget"] if failed else []
        parts += [f"{skipped} are unavailable and change when they return"] if skipped else []
        return decision.phase, ", ".join([decision.message if not parts else "all stages have ended", *parts])
    return decision.phase, decision.message + _advice(rollout.metadata.name, decision)


def _advice(name: str, decision: RolloutDecision) -> str:
    """The command of the next step, where a person has to take it."""
    if decision.phase == RolloutPhase.HALTED:
        return f"; `hortus rollout resume {name}` goes on"
    if decision.message.endswith(WAITS_FOR_APPROVAL):
        return f": `hortus rollout approve {name} --stage {decision.stage}`"
    return ""


def _stage_of(view: StageView) -> StageStatus:
    memory, counts = view.memory, view.counts
    return StageStatus(
        name=view.terms.name,
        clusters=len(view.clusters),
        pending=counts[Standing.PENDING],
        running=counts[Standing.RUNNING],
        succeeded=counts[Standing.SUCCEEDED],
        failed=counts[Standing.FAILED],
        skipped=counts[Standing.SKIPPED],
        forgiven=memory.forgiven,
        settled_at=None if memory.settled_at is None else format_time(memory.settled_at),
        ended=memory.ended,
    )


def _failures(decision: RolloutDecision) -> list[ClusterFailure]:
    found = [
        ClusterFailure(one.member.cluster, one.stage, one.message[:_MAX_MESSAGE])
        for view in decision.stages
        for one in view.clusters
        if one.standing is Standing.FAILED
    ]
    return sorted(found, key=lambda one: one.cluster)[:MAX_FAILURES]


def _estimate(status: RolloutStatus, decision: RolloutDecision, now: float) -> str | None:
    """The end at the rate so far; unknown until a cluster is done."""
    counts = [view.counts for view in decision.stages]
    done = sum(one[Standing.SUCCEEDED] + one[Standing.FAILED] for one in counts)
    left = sum(one[Standing.PENDING] + one[Standing.RUNNING] for one in counts)
    if status.started_at is None or not done:
        return None
    return format_time(now + left * (now - parse_time(status.started_at)) / done)


def terms_to_copy(policy: RolloutPolicy) -> PolicyTerms:
    """The terms of a policy as a Rollout keeps them."""
    spec = policy.spec
    return PolicyTerms(
        stages=spec.stages,
        max_failures=spec.max_failures,
        unselected=spec.unselected,
        unavailable=spec.unavailable,
        on_failure=spec.on_failure,
    )


def revert_of(rollout: Rollout) -> Rollout | None:
    """The rollout back to the version before; None where that is not known, or the objects cannot be set."""
    change = rollout.spec.change
    if not change.from_ or rollout.spec.execute != "Patch":
        return None
    terms = rollout.spec.policy
    stages = terms.stages if terms is not None else ()
    back = tuple(
        Stage(
            name=one.name,
            clusters=one.clusters,
            order=one.order,
            max_concurrency=one.max_concurrency,
            max_failures="100%",
        )
        for one in stages
    )
    return Rollout(
        metadata=ObjectMeta(
            name=f"{rollout.metadata.name[:_LONGEST_STEM].rstrip('-.')}{REVERT}", namespace=rollout.metadata.namespace
        ),
        spec=RolloutSpec(
            change=RolloutChange(change.kind, change.subject, to=change.from_, from_=change.to),
            policy=PolicyTerms(stages=back, unavailable=terms.unavailable if terms is not None else "Skip"),
            execute="Patch",
            reverts=rollout.metadata.name,
        ),
    )
