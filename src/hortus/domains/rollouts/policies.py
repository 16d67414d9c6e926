"""The RolloutPolicy controller: reports whether a policy can be used, and what of it another policy governs.

Conditions it owns: Ready, Reconciling and Stalled of RolloutPolicies. It watches RolloutPolicies and ChangeKinds, and
never changes anything else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from hortus.domains.rollouts.kindset import KindSet
from hortus.domains.rollouts.terms import TermsError, terms_of
from hortus.engine import NEVER, Actor, KindController, ReconcileContext, StepError, Steps, Wiring
from hortus.engine.rollouts import policy_for
from hortus.engine.rollouts.types import RolloutPolicy


class PolicyController(KindController[ReconcileContext[RolloutPolicy]]):
    """Checks one policy at a time."""

    kind = RolloutPolicy
    field_manager = "hortus-rollouts"

    def __init__(self, wiring: Wiring[Any], kinds: KindSet, policies: Callable[[], Sequence[RolloutPolicy]]) -> None:
        super().__init__(wiring)
        self._kinds = kinds
        self._policies = policies

    def steps(self, context: ReconcileContext[RolloutPolicy]) -> Steps:
        return (self._check_terms, self._check_kinds, self._report)

    async def _check_terms(self, context: ReconcileContext[RolloutPolicy]) -> None:
        try:
            terms_of(context.object.spec)
        except TermsError as error:
            raise StepError(f"spec.{error}", reason="InvalidTerms", actor=Actor.USER, after=NEVER) from error

    async def _check_kinds(self, context: ReconcileContext[RolloutPolicy]) -> None:
        spec = context.object.spec
        for change in spec.changes:
            tracker = self._kinds.find(change.kind)
            if tracker is None:
                raise StepError(
                    f"spec.changes: there is no usable ChangeKind {change.kind}: see `kubectl get changekinds`",
                    reason="ChangeKindNotReady",
                    actor=Actor.USER,
                    after=NEVER,
                )
            if spec.on_failure == "HaltAndRevert" and not tracker.kind.patches:
                raise StepError(
                    f"spec.onFailure: changes of kind {change.kind} cannot be reverted, since its ChangeKind has no "
                    "patch: use Halt",
                    reason="CannotRevert",
                    actor=Actor.USER,
                    after=NEVER,
                )

    async def _report(self, context: ReconcileContext[RolloutPolicy]) -> None:
        policy = context.object
        context.set_status("observedGeneration", policy.metadata.generation)
        others = list(self._shadows(policy))
        if others:
            context.ready("PartlyGoverns", f"other policies come first: {'; '.join(others)}")
        elif policy.spec.paused:
            context.ready("Paused", "No rollout under this policy admits a cluster: spec.paused is true.")
        else:
            context.ready("Governs", "The policy governs all the changes that it names.")

    def _shadows(self, policy: RolloutPolicy) -> Iterator[str]:
        for change in policy.spec.changes:
            for subject in change.subjects:
                first = policy_for(self._policies(), change.kind, subject)
                if first is not None and first.metadata.name != policy.metadata.name:
                    yield f"{change.kind} of {subject} is governed by {first.metadata.name}"
