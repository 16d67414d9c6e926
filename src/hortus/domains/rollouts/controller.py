"""The Rollout controller: admits clusters, stage by stage, and stops by itself.

Conditions it owns: Progressing, Halted and Succeeded of Rollouts, and all of their status.
Objects it owns: the PlacementDecisions of its Rollouts. With `execute: Patch` it has the objects of admitted clusters
set by the patch of the ChangeKind (`executing.ObjectSetter`).
It watches: Rollouts, PlacementDecisions, RolloutPolicies, ClusterProfiles and the objects of all ChangeKinds.
It never: admits a cluster that `decisions.decide` did not, withdraws one but by an abort, reads from the server what a
watch shows, or writes a slice or a status more than once a second.
"""

from __future__ import annotations

from typing import Any

import msgspec

from hortus.domains.rollouts import report
from hortus.domains.rollouts.decisions import AdmittedCluster, Orders, RolloutDecision, RolloutMemory, decide
from hortus.domains.rollouts.executing import ObjectSetter
from hortus.domains.rollouts.fleet import FleetClusters
from hortus.domains.rollouts.kindset import KindSet
from hortus.domains.rollouts.membership import EarlierRollout, Membership
from hortus.domains.rollouts.order import RolloutOrder, is_at_rest, serves_demand
from hortus.domains.rollouts.slices import RecordConflict, SliceRecord
from hortus.domains.rollouts.terms import DEFAULT_TERMS, Terms, TermsError, terms_of
from hortus.domains.rollouts.tracking import ChangeTracker
from hortus.engine import NEVER, Actor, KindController, ReconcileContext, Result, StepError, Steps, TypedCache, Wiring
from hortus.engine.conditions import FALSE
from hortus.engine.rollouts import policy_for, readable
from hortus.engine.rollouts.types import Rollout, RolloutCondition, RolloutPhase, RolloutPolicy, RolloutStatus
from hortus.engine.within import within
from hortus.kube.objects import ObjectKey
from hortus.kube.selectors import LabelSelector, SelectorError
from hortus.schema import encode

MANAGER = "hortus-rollouts"
"""Our field manager."""
PACE = 0.5
"""Seconds from the beginning of a decision of a rollout to the next one: many outcomes cost one write."""
STATUS_PERIOD = 1.0
"""Seconds between two writes of a status."""


class RolloutContext(ReconcileContext[Rollout]):
    """One decision."""

    terms: Terms
    tracker: ChangeTracker
    membership: Membership
    decision: RolloutDecision
    newer: str = ""
    """Name of the rollout that took this one's place."""


class RolloutController(KindController[RolloutContext]):
    """Decides one rollout at a time."""

    kind = Rollout
    field_manager = MANAGER

    def __init__(
        self,
        wiring: Wiring[Any],
        *,
        kinds: KindSet,
        fleet: FleetClusters,
        record: SliceRecord,
        order: RolloutOrder,
        policies: TypedCache[RolloutPolicy],
        execution: ObjectSetter,
        sync_time: float,
    ) -> None:
        """`sync_time` is in seconds: so long the first list of a ChangeKind's objects may take."""
        super().__init__(wiring)
        self._kinds = kinds
        self._fleet = fleet
        self._record = record
        self._order = order
        self._policies = policies
        self._execution = execution
        self._sync_time = sync_time
        self._decided: dict[ObjectKey, float] = {}
        """When the last decision of each rollout began, on the monotonic clock."""
        self._reported: dict[ObjectKey, float] = {}
        """When the status of each rollout was written last, on the monotonic clock."""
        self._unreported: dict[ObjectKey, tuple[RolloutStatus, RolloutMemory]] = {}
        """The memory of decisions that no status keeps yet, and the status that they started from."""

    def make_context(self, raw: Any) -> RolloutContext:
        return RolloutContext(self.wiring, raw)

    def steps(self, context: RolloutContext) -> Steps:
        return (
            self._pace,
            self._rest,
            self._copy_terms,
            self._find_kind,
            self._find_members,
            self._decide,
            self._admit,
            self._withdraw,
            self._set_objects,
            self._revert,
            self._report,
        )

    async def gone(self, key: ObjectKey) -> None:
        self._decided.pop(key, None)
        self._reported.pop(key, None)
        self._unreported.pop(key, None)
        self._execution.forget(key)

    async def _rest(self, context: RolloutContext) -> Result | None:
        """Leave a rollout that is over as it is. One that succeeded is not over while clusters ask for its version."""
        rollout = context.object
        if rollout.status.phase == RolloutPhase.SUCCEEDED:
            newer, _ = self._order.neighbours(rollout)
            if newer is not None:
                return Result()
            if self._asked_late(rollout):
                return None
        return Result() if is_at_rest(rollout) else None

    def _asked_late(self, rollout: Rollout) -> bool:
        """True when a cluster that the rollout did not admit waits for its version."""
        change, tracker = rollout.spec.change, self._kinds.find(rollout.spec.change.kind)
        if tracker is None or not serves_demand(rollout):
            return False
        admitted = self._record.admitted(rollout.metadata.uid)
        asking = (one for _, one in tracker.objects(change.subject) if one.wanted == change.to)
        return any(one.cluster not in admitted for one in asking)

    async def _pace(self, context: RolloutContext) -> Result | None:
        now = self.wiring.clock.monotonic()
        left = self._decided.get(context.key, -PACE) + PACE - now
        left = max(left, self._record.wait(context.object.metadata.uid))
        if left > 0:
            return Result(requeue_after=left)
        self._decided[context.key] = now
        return None

    async def _copy_terms(self, context: RolloutContext) -> None:
        """Keep the terms of the policy that governs the change in the rollout: a later edit does not change them.

        Terms that are there already were set by somebody with the verb `approve`.
        """
        spec = context.object.spec
        if spec.policy is None:
            governing = policy_for(readable(self._policies.raw.values()), spec.change.kind, spec.change.subject)
            name = "" if governing is None else governing.metadata.name
            if spec.policy_name not in ("", name):
                known = ObjectKey(context.key.namespace, spec.policy_name) in self._policies.raw
                raise _other_policy(spec.policy_name, name, known=known)
            terms = DEFAULT_TERMS if governing is None else report.terms_to_copy(governing)
            await context.patch({"spec": {"policyName": name, "policy": msgspec.to_builtins(terms)}})
        try:
            context.terms = terms_of(context.object.spec.policy)
        except TermsError as error:
            raise StepError(f"spec.policy: {error}", reason="InvalidTerms", actor=Actor.USER, after=NEVER) from error

    async def _find_kind(self, context: RolloutContext) -> None:
        change, execute = context.object.spec.change, context.object.spec.execute
        context.tracker = tracker = self._kinds.get(change.kind)
        if execute == "Patch" and not tracker.kind.patches:
            raise StepError(
                f"ChangeKind {change.kind} has no patch, so its objects cannot be set: use execute: Owner",
                reason="NoPatch",
                actor=Actor.USER,
                after=NEVER,
            )
        try:
            await within(self.wiring.clock, self._sync_time, tracker.cache.synced())
        except TimeoutError as error:
            raise StepError(
                f"the objects of ChangeKind {change.kind} are not listed: see `kubectl get changekinds`",
                reason="NotListed",
                actor=Actor.OPERATOR,
                after=self._sync_time,
            ) from error

    async def _find_members(self, context: RolloutContext) -> None:
        rollout = context.object
        newer, earlier = self._order.neighbours(rollout)
        context.newer = "" if newer is None else newer.metadata.name
        context.membership = Membership(
            rollout,
            _selector_of(rollout),
            context.tracker,
            self._fleet,
            self._record.admitted(rollout.metadata.uid),
            earlier=tuple(map(self._superseded, earlier)),
            reverted=self._reverted(context),
            refusals=self._execution.refusals(context.key),
            now=context.now,
        )

    def _reverted(self, context: RolloutContext) -> dict[str, AdmittedCluster] | None:
        """The clusters that the rollout to take back admitted; None for a rollout that takes none back."""
        if not (name := context.object.spec.reverts):
            return None
        known = self.wiring.cache.get(ObjectKey(context.key.namespace, name))
        return {} if known is None else self._record.admitted(known.metadata.uid)

    def _superseded(self, earlier: Rollout) -> EarlierRollout:
        try:
            limits = [stage.progress_deadline for stage in terms_of(earlier.spec.policy).stages]
        except TermsError:
            limits = [0.0]
        return EarlierRollout(
            earlier.spec.change.to,
            self._record.admitted(earlier.metadata.uid),
            0.0 if 0.0 in limits else max(limits),
        )

    async def _decide(self, context: RolloutContext) -> None:
        rollout = context.object
        context.decision = decide(
            context.terms,
            context.membership.members(),
            context.membership.admitted,
            self._memory(context),
            Orders(self._pause_of(context), frozenset(rollout.spec.approved), rollout.spec.resumes),
            context.membership.expected(),
            now=context.now,
        )

    def _memory(self, context: RolloutContext) -> RolloutMemory:
        """That of the last decision; of its status where this process did not make it."""
        base, memory = self._unreported.get(context.key, (None, None))
        status = context.object.status
        return memory if memory is not None and base == status else report.memory_of(status)

    def _pause_of(self, context: RolloutContext) -> str:
        """The reason for which no cluster is admitted."""
        spec = context.object.spec
        if context.newer or spec.state == "Abort":
            return "the rollout is over"
        if spec.state == "Pause":
            return f"paused: `hortus rollout resume {context.key.name}` goes on"
        policy = self._policies.get(ObjectKey(context.key.namespace, spec.policy_name)) if spec.policy_name else None
        if policy is not None and policy.spec.paused:
            return f"policy {spec.policy_name} is paused: set its spec.paused to false"
        return ""

    def _status_wait(self, key: ObjectKey) -> float:
        return self._reported.get(key, -STATUS_PERIOD) + STATUS_PERIOD - self.wiring.clock.monotonic()

    async def _admit(self, context: RolloutContext) -> Result | None:
        """Append the admitted clusters to the record, before anything else sees them."""
        if not context.decision.admit:
            return None
        try:
            await self._record.append(context.object, context.decision.admit)
        except RecordConflict:
            # Another decider was here.
            await self._record.read_again(context.key.name, context.key.namespace)
            if name := self._record.left_over(context.object):
                raise StepError(
                    f"PlacementDecision {name} is left of a deleted rollout of this name: garbage collection deletes "
                    "it; one that has lost its owner is deleted by you",
                    reason="SliceLeftOver",
                    actor=Actor.OPERATOR,
                    after=STATUS_PERIOD,
                ) from None
            return Result(requeue_after=PACE)
        return None

    async def _withdraw(self, context: RolloutContext) -> Result | None:
        """After an abort, take out the clusters that have not begun."""
        if context.object.spec.state != "Abort":
            return None
        await self._execution.stop(context.key)
        left = 0.0
        if waiting := context.membership.not_begun():
            left = await self._record.withdraw(context.object.metadata.uid, waiting)
        return Result(requeue_after=left) if left else None

    async def _set_objects(self, context: RolloutContext) -> None:
        rollout = context.object
        if rollout.spec.execute != "Patch" or rollout.spec.state == "Abort":
            return
        admitted = () if context.newer else self._record.admitted(rollout.metadata.uid)
        keys = context.membership.to_set(admitted)
        self._execution.assign(context.key, context.tracker, keys, rollout.spec.change.to)

    async def _revert(self, context: RolloutContext) -> None:
        """After a halt, start the rollout back where the policy asks for it."""
        rollout = context.object
        if context.terms.reverts and context.decision.phase == RolloutPhase.HALTED and not context.newer:
            back = report.revert_of(rollout)
            if back is not None:
                await self._order.create(self.wiring.client, encode(back))

    async def _report(self, context: RolloutContext) -> Result | None:
        waits = [] if context.decision.due is None else [context.decision.due - context.now]
        if (wait := self._status_wait(context.key)) > 0:
            waits.append(wait)
            self._unreported[context.key] = context.object.status, context.decision.memory
        else:
            self._unreported.pop(context.key, None)
            admitted = self._record.admitted(context.object.metadata.uid).values()
            report.draft(context, context.decision, admitted, newer=context.newer)
            if await context.checkpoint():
                self._reported[context.key] = self.wiring.clock.monotonic()
        if (retry := self._execution.retry_after(context.key)) is not None:
            waits.append(retry)
        return Result(requeue_after=max(0.0, min(waits))) if waits else None

    def report(self, context: RolloutContext, error: StepError) -> None:
        context.set_status("observedGeneration", context.draft.generation)
        context.condition(RolloutCondition.PROGRESSING, FALSE, reason=error.reason, message=error.message)


def _other_policy(chosen: str, governing: str, *, known: bool) -> StepError:
    """The error of a rollout that names another policy than the one that governs its change, or one that is missing."""
    if not known:
        message = f"there is no RolloutPolicy {chosen}: create it, or leave spec.policyName out"
        return StepError(message, reason="PolicyMissing", actor=Actor.USER, after=NEVER)
    message = (
        f"RolloutPolicy {chosen} does not govern this change, {governing or 'no policy'} does: leave spec.policyName "
        "out, or have somebody with the verb approve start the rollout with the terms in spec.policy"
    )
    return StepError(message, reason="PolicyNotGoverning", actor=Actor.USER, after=NEVER)


def _selector_of(rollout: Rollout) -> LabelSelector | None:
    """The clusters that may take part; None selects none."""
    try:
        return LabelSelector.from_object(rollout.spec.clusters)
    except SelectorError as error:
        raise StepError(f"spec.clusters: {error}", reason="InvalidSelector", actor=Actor.USER, after=NEVER) from error
