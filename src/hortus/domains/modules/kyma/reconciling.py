"""The part of a Kyma's reconcile that is the same for a cluster of its own and for the cluster of the process.

From the list of modules to Manifests, and from these to the state of the Kyma.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Final

import msgspec

from hortus.domains.modules.clusters import is_unauthorized
from hortus.domains.modules.kyma.context import KymaContext, ModulesInError, Requeue
from hortus.domains.modules.kyma.deletion import KymaDeletion
from hortus.domains.modules.kyma.metrics import KymaMetrics
from hortus.domains.modules.kyma.modules import KymaModules
from hortus.domains.modules.kyma.status import (
    OPERATION_READY,
    OPERATION_STARTED,
    OPERATION_WAITING,
    KymaCondition,
    are_modules_ready,
    kyma_state,
)
from hortus.domains.modules.metrics import RequeueMetrics
from hortus.domains.modules.names import MANAGED_BY_LIFECYCLE_MANAGER, FieldOwner, Finalizer, Label, State
from hortus.domains.modules.settings import Intervals
from hortus.domains.modules.types import Kyma, ModuleStatus
from hortus.engine import KindController, Result, StepError, Steps, Wiring, has_finalizer
from hortus.kube.errors import KubeError
from hortus.kube.objects import Object

_FOREGROUND: Final = "foregroundDeletion"


class KymaReconciler(KindController[KymaContext]):
    """The steps that need no other cluster. Subclasses add their own and name the conditions."""

    kind = Kyma
    field_manager = FieldOwner.LIFECYCLE
    applies_status = True

    def __init__(
        self,
        wiring: Wiring[Kyma],
        *,
        modules: KymaModules,
        deletion: KymaDeletion,
        metrics: KymaMetrics,
        requeues: RequeueMetrics,
        requeue: Intervals,
    ) -> None:
        super().__init__(wiring)
        self._modules = modules
        self._deletion = deletion
        self._metrics = metrics
        self._requeues = requeues
        self._requeue = requeue

    def make_context(self, raw: Object) -> KymaContext:
        return KymaContext(self.wiring, raw)

    def finalize_steps(self, context: KymaContext) -> Steps:
        return (self._deletion.step,) if has_finalizer(context.raw, Finalizer.KYMA) else ()

    async def on_error(self, context: KymaContext, error: StepError | KubeError) -> StepError | None:
        """Report a failure in the states of the contract, here and in the cluster; the queue tries again."""
        unauthorized = is_unauthorized(error)
        self._requeues.count(Requeue.UNAUTHORIZED if unauthorized else context.stage, "unexpected")
        if isinstance(error, ModulesInError) or context.is_deleting:
            return None
        if context.stage == Requeue.CONTEXT and not unauthorized:
            context.draft_modules([_failed(module, error) for module in context.object.status.modules])
        self._draft(context, State.ERROR, str(error))
        await context.checkpoint()
        self._measure(context)
        try:
            await self._publish(context)
        except (KubeError, StepError) as problem:
            context.warn("StatusSynchronization", problem)
        return None

    @property
    @abstractmethod
    def _required(self) -> Sequence[KymaCondition]:
        """The conditions that the Kyma has."""

    async def _publish(self, context: KymaContext) -> None:
        """Show the status where users of another cluster read it."""

    # The steps.

    async def _skip(self, context: KymaContext) -> Result | None:
        if (context.object.metadata.labels.get(Label.SKIP_RECONCILIATION) or "").lower() == "true":
            return Result(requeue_after=self._requeue.success)
        return None

    async def _mark(self, context: KymaContext) -> Result | None:
        """Add the finalizer and the label; remove the finalizer of versions up to 1.20."""
        context.stage = Requeue.METADATA
        if has_finalizer(context.raw, Finalizer.PURGE):
            await context.remove_finalizer(Finalizer.PURGE)
        marked = False
        if not has_finalizer(context.raw, _FOREGROUND):
            marked = await context.ensure_finalizer(Finalizer.KYMA)
        if Label.MANAGED_BY not in context.object.metadata.labels:
            self._requeues.count(Requeue.METADATA, "intended")
            await context.patch({"metadata": {"labels": {Label.MANAGED_BY: MANAGED_BY_LIFECYCLE_MANAGER}}})
            return Result(requeue_after=0.0)
        if marked:
            self._requeues.count(Requeue.METADATA, "intended")
            return Result(requeue_after=0.0)
        return None

    async def _begin(self, context: KymaContext) -> Result | None:
        if context.object.status.state != State.NONE:
            return None
        context.stage = Requeue.INITIAL
        self._draft(context, State.PROCESSING, OPERATION_STARTED)
        self._requeues.count(Requeue.INITIAL, "intended")
        return Result(requeue_after=0.0)

    async def _reconcile_modules(self, context: KymaContext) -> None:
        context.outcomes[KymaCondition.MODULES] = False
        context.modules = await self._modules.reconcile(context)
        context.outcomes[KymaCondition.MODULES] = are_modules_ready(context.modules)

    async def _conclude(self, context: KymaContext) -> None:
        """Draft the state that follows from modules and conditions, and write it."""
        context.stage = Requeue.PROCESSING
        hold = all(context.outcomes.get(condition) for condition in self._required)
        state = kyma_state(context.modules or (), conditions_hold=hold)
        self._draft(context, state, OPERATION_READY if state is State.READY else OPERATION_WAITING)
        if state in (State.READY, State.WARNING):
            context.set_status("activeChannel", context.wanted.spec.channel)
        await context.checkpoint()
        self._measure(context)

    async def _rest(self, context: KymaContext) -> Result:
        """The time of the next reconcile, by the state; an Error is tried again by the queue."""
        context.stage = Requeue.PROCESSING
        state = context.object.status.state
        if state == State.ERROR:
            raise ModulesInError("modules are in state Error; the status names them", reason="ModulesInError")
        pauses = {State.READY: self._quiet(context), State.WARNING: self._requeue.warning}
        pause = pauses.get(State(state), self._requeue.busy)
        if state == State.PROCESSING and self._waits_for_modules_alone(context):
            # The watch of Manifests brings the next reconcile: thousands of Kymas that are installed at the same time
            # would otherwise cost more by their requeues than by their modules.
            pause = self._requeue.success
        if context.due is not None:
            pause = min(pause, max(0.0, context.due - context.now))
        return Result(requeue_after=pause)

    def _quiet(self, context: KymaContext) -> float:
        """Seconds until a Ready Kyma is due if no watch shows anything before."""
        return self._requeue.success

    def _waits_for_modules_alone(self, context: KymaContext) -> bool:
        manifests = all(module.manifest is not None for module in context.modules or ())
        others = (condition for condition in self._required if condition is not KymaCondition.MODULES)
        return manifests and all(context.outcomes.get(condition) for condition in others)

    # Parts of steps.

    def _draft(self, context: KymaContext, state: State, operation: str) -> None:
        context.draft_state(state, operation)
        context.draft_conditions(self._required)

    def _measure(self, context: KymaContext) -> None:
        if not self._metrics.see(context.key, context.object):
            context.warn("MetricsError", "label instance-id or annotation skr-domain is missing: no metrics")


def _failed(module: ModuleStatus, error: Exception) -> ModuleStatus:
    return msgspec.structs.replace(module, state=State.ERROR.value, message=str(error))
