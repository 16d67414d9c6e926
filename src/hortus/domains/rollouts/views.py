"""Rollouts as text: one line each, and one as a page with its stages as bars."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from hortus.domains.rollouts.decisions import WAITS_FOR_APPROVAL
from hortus.domains.rollouts.terms import UNSELECTED
from hortus.engine.rollouts.types import ENDED, Rollout, RolloutCondition, RolloutPhase, StageStatus
from hortus.kube.objects import parse_time
from hortus.schema import Condition

BAR = 30
"""Characters of a stage's bar."""
HEADS = ("Name", "Kind", "Subject", "To", "Phase", "Stage", "Done", "Failed")
WIDE = ("From", "Policy", "Message")


def condition_of(rollout: Rollout) -> Condition | None:
    """The condition that says where the rollout is."""
    return next((one for one in rollout.status.conditions if one.type == RolloutCondition.PROGRESSING), None)


def message_of(rollout: Rollout) -> str:
    """The reason for which the rollout is where it is; empty before its first decision."""
    condition = condition_of(rollout)
    return "" if condition is None else condition.message


def row(rollout: Rollout, *, wide: bool) -> list[object]:
    """The cells of one rollout under HEADS and, with `wide`, WIDE."""
    change, status = rollout.spec.change, rollout.status
    done, clusters, failed = _sums(status.stages)
    cells: list[object] = [
        rollout.metadata.name,
        change.kind,
        change.subject,
        change.to,
        status.phase or RolloutPhase.PENDING,
        status.stage,
        f"{done}/{clusters}",
        failed,
    ]
    return [*cells, change.from_, rollout.spec.policy_name, message_of(rollout)] if wide else cells


def summary(rollout: Rollout) -> dict[str, Any]:
    """One rollout as JSON: numbers, times and the reason."""
    change, status = rollout.spec.change, rollout.status
    done, clusters, failed = _sums(status.stages)
    return {
        "name": rollout.metadata.name,
        "namespace": rollout.metadata.namespace,
        "kind": change.kind,
        "subject": change.subject,
        "from": change.from_,
        "to": change.to,
        "policy": rollout.spec.policy_name,
        "phase": status.phase or RolloutPhase.PENDING,
        "stage": status.stage,
        "message": message_of(rollout),
        "clusters": clusters,
        "done": done,
        "failed": failed,
        "createdAt": rollout.metadata.creation_timestamp,
        "startedAt": status.started_at,
        "endedAt": status.ended_at,
        "estimatedEnd": status.estimated_end,
    }


def details(rollout: Rollout) -> dict[str, Any]:
    """One rollout as JSON, with its stages and failures."""
    status = rollout.status
    return {
        **summary(rollout),
        "stages": [msgspec.to_builtins(one) for one in status.stages],
        "failures": [msgspec.to_builtins(one) for one in status.failures],
        "excluded": status.excluded,
    }


def line(rollout: Rollout) -> str:
    """One rollout in one line, for a log that follows it."""
    done, clusters, failed = _sums(rollout.status.stages)
    numbers = f"{done}/{clusters} done, {failed} failed"
    return f"{rollout.status.phase or RolloutPhase.PENDING}  {numbers}  {message_of(rollout)}"


def page(rollout: Rollout) -> Iterator[str]:
    """Yields the lines of one rollout: change, phase and reason, a bar for each stage, failures, next commands."""
    change, status = rollout.spec.change, rollout.status
    origin = f"{change.from_} -> " if change.from_ else "-> "
    yield f"{change.kind} of {change.subject}: {origin}{change.to}"
    yield f"phase     {status.phase or RolloutPhase.PENDING}"
    if reason := message_of(rollout):
        yield f"reason    {reason}"
    yield f"policy    {rollout.spec.policy_name or '(none)'}"
    if status.estimated_end and status.phase in (RolloutPhase.PENDING, RolloutPhase.PROGRESSING):
        yield f"ends      about {status.estimated_end}"
    if status.ended_at and status.phase in ENDED:
        yield f"ended     {status.ended_at}"
    yield ""
    shown = [one for one in status.stages if one.clusters or one.name != UNSELECTED]
    width = max((len(one.name) for one in shown), default=0)
    for one in shown:
        yield f"  {one.name.ljust(width)}  {bar(one)}  {_counts(one)}"
    if status.excluded:
        yield f"  {status.excluded} clusters are in no stage"
    if status.failures:
        yield ""
        yield "Failed:"
        for failure in status.failures:
            yield f"  {failure.cluster}  ({failure.stage})  {failure.message}"
    yield from _advice(rollout)


def bar(stage: StageStatus) -> str:
    """`[####++!!--  ]`: done, in work, failed, left out, waiting."""
    parts = ((stage.succeeded, "#"), (stage.running, "+"), (stage.failed, "!"), (stage.skipped, "-"))
    if not stage.clusters:
        return f"[{' ' * BAR}]"
    drawn, seen = "", 0
    for count, sign in parts:
        seen += count
        drawn += sign * (seen * BAR // stage.clusters - len(drawn))
        if count and sign not in drawn and len(drawn) < BAR:
            drawn += sign
    return f"[{drawn[:BAR].ljust(BAR)}]"


def _counts(stage: StageStatus) -> str:
    words = [f"{stage.succeeded} of {stage.clusters}"]
    for count, word in (
        (stage.running, "in work"),
        (stage.failed, "failed"),
        (stage.skipped, "left out"),
        (stage.pending, "waiting"),
    ):
        if count:
            words.append(f"{count} {word}")
    if stage.ended:
        words.append("ended")
    return ", ".join(words)


def _advice(rollout: Rollout) -> Iterator[str]:
    name, status = rollout.metadata.name, rollout.status
    if status.phase == RolloutPhase.HALTED:
        yield ""
        yield "Go on in spite of these failures, or end it:"
        yield f"  hortus rollout resume {name}"
        yield f"  hortus rollout abort {name}"
    elif WAITS_FOR_APPROVAL in message_of(rollout):
        yield ""
        yield f"  hortus rollout approve {name} --stage {status.stage}"


def age_key(rollout: Rollout) -> float:
    """Seconds since the epoch of the creation, for sorting."""
    return parse_time(rollout.metadata.creation_timestamp or "1970-01-01T00:00:00Z")


def _sums(stages: Sequence[StageStatus]) -> tuple[int, int, int]:
    """Clusters that ended, all, and those that failed."""
    failed = sum(one.failed for one in stages)
    return sum(one.succeeded for one in stages) + failed, sum(one.clusters for one in stages), failed
