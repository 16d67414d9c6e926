"""The Manifest controller: the objects of one module, on the cluster of one Kyma.

Conditions it owns: Resources, Installation, ModuleCR, Configuration and Deletion of Manifests, and all of their status.
Objects it owns: those of the module on the cluster, by status.synced and the annotation owned-by; its default CR.
It watches: Manifests, Kymas, the Secrets that lead to clusters, the Deployments of modules on all clusters.
It never: enters a cluster for a namespace that may not read its kubeconfig, takes an object of another module, deletes
what the inventory does not list, updates a module CR but for the fields that operators enforce, or removes a module as
long as the cluster's users have custom resources of it.

Steps and texts: docs/modules/manifests.md.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final

from hortus.domains.modules.central.enforcing import Enforcing
from hortus.domains.modules.clusters import AccessSecretMissing, ModuleClusters, is_unauthorized
from hortus.domains.modules.manifests.context import (
    INSTALLATION,
    MODULE_CR,
    REASONS,
    RESOURCES,
    ManifestContext,
    ManifestError,
)
from hortus.domains.modules.manifests.installing import SILENT, Installing
from hortus.domains.modules.manifests.metrics import ManifestMetrics
from hortus.domains.modules.manifests.observing import Observing
from hortus.domains.modules.manifests.readiness import SETTLING, worst
from hortus.domains.modules.manifests.removal import ModuleRemoval
from hortus.domains.modules.manifests.resting import Resting
from hortus.domains.modules.manifests.settling import Settling
from hortus.domains.modules.manifests.transforms import workloads
from hortus.domains.modules.metrics import RequeueMetrics
from hortus.domains.modules.names import FieldOwner, Finalizer, Label, State
from hortus.domains.modules.settings import ManifestSettings
from hortus.domains.modules.types import Kyma, Manifest
from hortus.engine import Actor, KindController, Result, StepError, Steps, TypedCache, Wiring
from hortus.engine.conditions import find_condition
from hortus.engine.events import WARNING
from hortus.engine.leftovers.types import LeftoverReason
from hortus.kube.errors import Forbidden, KubeError
from hortus.kube.objects import Object, ObjectKey, parse_time

ORPHAN_AGE: Final = 300.0
"""Seconds that a Kyma has to list a new Manifest in its status."""
_READY: Final = "installation is ready and resources can be used"
_MISSING: Final = {
    RESOURCES: "resources not parsed",
    INSTALLATION: "installation is not ready",
    MODULE_CR: "module CR is not created",
}


class ManifestController(KindController[ManifestContext]):
    """Reconciles one Manifest at a time."""

    kind = Manifest
    field_manager = FieldOwner.MODULE_RESOURCES
    applies_status = True

    def __init__(
        self,
        wiring: Wiring[Any],
        *,
        clusters: ModuleClusters,
        kymas: TypedCache[Kyma],
        installing: Installing,
        enforcing: Enforcing,
        removal: ModuleRemoval,
        resting: Resting,
        settling: Settling,
        settings: ManifestSettings,
        requeues: RequeueMetrics,
        metrics: ManifestMetrics,
        random: Random | None = None,
    ) -> None:
        super().__init__(wiring)
        self._clusters = clusters
        self._kymas = kymas
        self._installing = installing
        self._enforcing = enforcing
        self._observing = Observing(settings.readiness)
        self._removal = removal
        self._resting = resting
        self._settling = settling
        self._settings = settings
        self._requeues = requeues
        self._metrics = metrics
        self._random = random or Random()  # noqa: S311 - jitter, not secrecy

    def make_context(self, raw: Object) -> ManifestContext:
        return ManifestContext(self.wiring, raw)

    def steps(self, context: ManifestContext) -> Steps:
        installing = self._installing
        recalls = self._settling.applied(context.key, context.raw) is not None
        return (
            self._skip,
            self._initialize,
            self._connect,
            self._hand_over,
            self._check_parent,
            self._hold,
            *((self._recall,) if recalls else installing.steps),
            self._enforcing.enforce,
            self._observe_workloads,
            *(() if recalls else (self._note_applied,)),
            installing.note_layer,
            self._finish,
        )

    def finalize_steps(self, context: ManifestContext) -> Steps:
        removal = self._removal
        return (
            self._begin_removal,
            removal.await_users,
            removal.delete_resource,
            removal.delete_objects,
            removal.release,
        )

    async def reconcile(self, key: ObjectKey) -> Result | None:
        raw = self.wiring.cache.raw.get(key)
        if raw is not None and (pause := self._resting.pause(key, raw)) is not None:
            if self._enforcing.enforces(key):
                # No watch shows the default resource.
                pause = min(pause, self._settings.requeue.success)
            if await self._enforcing.holds(key):
                return Result(requeue_after=self._varied(pause))
            self._resting.disturb(key)
        began = self.wiring.clock.monotonic()
        self._resting.begin(key)
        try:
            return await super().reconcile(key)
        finally:
            self._metrics.took(key, self.wiring.clock.monotonic() - began)

    async def gone(self, key: ObjectKey) -> None:
        self._resting.forget(key)
        self._settling.forget(key)
        self._enforcing.forget(key)
        self._metrics.clear(key)

    # Steps.

    async def _skip(self, context: ManifestContext) -> Result | None:
        if context.label(Label.SKIP_RECONCILIATION) == "true":
            return self._requeue(context, "manifest_reconcile_finished", self._settings.requeue.success)
        return None

    async def _initialize(self, context: ManifestContext) -> None:
        context.phase = "manifest_initialize"
        wanted = [RESOURCES, INSTALLATION, *([MODULE_CR] if context.resource is not None else [])]
        for condition in wanted:
            if find_condition(context.raw, condition) is None:
                context.condition(condition, "False", reason=REASONS[condition], message=_MISSING[condition])
        if context.state is State.NONE:
            # Written with the inventory, or with the failure that comes before.
            context.report(State.PROCESSING, "object has an empty state")

    async def _connect(self, context: ManifestContext) -> None:
        context.phase = "manifest_client_init"
        context.place = self._clusters.place(context.kyma, context.key.namespace)
        await self._clusters.permit(context.place)
        self._enter(context)

    def _enter(self, context: ManifestContext) -> None:
        context.client = self._clusters.client(context.place)
        context.kinds = self._clusters.kinds(context.place)

    async def _hand_over(self, context: ManifestContext) -> Result | None:
        return await self._removal.hand_over(context) if context.is_unmanaged else None

    async def _check_parent(self, context: ManifestContext) -> None:
        """Raises StepError for a Manifest that no Kyma wants."""
        context.phase = "manifest_orphaned"
        key = ObjectKey(context.key.namespace, context.kyma)
        kyma = self._kymas.get(key)
        if kyma is None:
            problem = f"Kyma {key} does not exist"
        elif context.is_mandatory or _lists(kyma, context.key):
            context.is_listed = True
            return
        else:
            created = context.object.metadata.creation_timestamp
            if created is None or context.now - parse_time(created) < ORPHAN_AGE:
                return
            problem = f"the status of Kyma {key} does not list it"
        raise StepError(
            f"orphaned manifest detected: {problem}; delete the Manifest, or restore the Kyma",
            reason="ManifestOrphaned",
            actor=Actor.OPERATOR,
        )

    async def _hold(self, context: ManifestContext) -> None:
        context.phase = "manifest_add_finalizer"
        await context.apply_finalizers(Finalizer.MANIFEST, Finalizer.LABEL_REMOVAL)

    async def _recall(self, context: ManifestContext) -> Result | None:
        """Take the workloads of the last apply; all else is as it left it."""
        applied = self._settling.applied(context.key, context.raw)
        if applied is None or applied.place != context.place:
            self._settling.forget(context.key)
            return Result(requeue_after=0.0)
        context.rendered = list(applied.workloads)
        return None

    async def _note_applied(self, context: ManifestContext) -> None:
        # Nothing but the watch may end the wait: what is asked from time to time is compared as well.
        if context.state is State.PROCESSING and self._observing.are_watched(context):
            found = list(workloads(context.rendered))
            self._settling.note(context.key, context.raw, context.place, workloads=found, editions=context.editions)

    async def _observe_workloads(self, context: ManifestContext) -> None:
        context.phase = "manifest_sync_state"
        states = await self._observing.states(context)
        state = worst(states.values())
        if state is State.ERROR:
            if context.state is not State.ERROR:
                failed = ", ".join(name for name, one in states.items() if one is State.ERROR)
                context.event(WARNING, "ManagerFailed", f"see the conditions of {failed} on the cluster")
            raise StepError(
                "manager is in error state", reason="ManagerFailed", actor=Actor.PROVIDER, condition=INSTALLATION
            )
        if state is State.READY:
            context.confirm(INSTALLATION, _READY)
            context.report(State.READY, "resources are ready")
        else:
            context.report(state, "waiting for resources to become ready")

    async def _finish(self, context: ManifestContext) -> Result:
        requeue = self._settings.requeue
        # One that no Kyma lists becomes an orphan by time alone; an external operator reports in its resource.
        context.settled = context.state is State.READY and context.is_listed and not context.is_external
        # Spread, since all Manifests are compared at the same time after a restart.
        context.rest = self._settings.comparison * self._random.uniform(0.75, 1.25)
        quiet = context.settled and self._resting.watched(context.place) and not self._enforcing.enforces(context.key)
        pauses = {State.READY: context.rest if quiet else requeue.success, State.WARNING: requeue.warning}
        pause = pauses.get(context.state, requeue.busy)
        if context.state is State.PROCESSING and self._is_seen(context):
            # The watch reports the next state. By time alone a workload without any status becomes an error.
            pause = max(pause, SETTLING)
        return self._requeue(context, "manifest_reconcile_finished", pause)

    def _is_seen(self, context: ManifestContext) -> bool:
        return context.is_listed and self._observing.are_watched(context) and self._resting.watched(context.place)

    async def _begin_removal(self, context: ManifestContext) -> Result | None:
        self._resting.forget(context.key)
        self._settling.forget(context.key)
        context.phase = "manifest_client_init"
        if context.is_unmanaged:
            return await self._removal.release(context)
        try:
            context.place = self._clusters.place(context.kyma, context.key.namespace)
        except AccessSecretMissing as error:
            return await self._removal.detach(context, LeftoverReason.CLUSTER_GONE, error.message)
        try:
            await self._clusters.permit(context.place)
        except StepError as error:
            return await self._removal.detach(context, LeftoverReason.NOT_PRUNED, error.message)
        self._enter(context)
        if context.state is State.NONE:
            context.report(State.DELETING, "waiting for module crs deletion")
        return None

    # Failures.

    async def on_error(self, context: ManifestContext, error: StepError | KubeError) -> StepError | None:
        silent = isinstance(error, SILENT)
        if context.is_deleting and silent and await self._removal.detach_silent(context, str(error)):
            return None
        refused = isinstance(error, Forbidden) or isinstance(error.__cause__, Forbidden)
        if context.is_deleting and refused and await self._removal.detach_refused(context, str(error)):
            return None
        if isinstance(error, StepError):
            return error
        if is_unauthorized(error):
            context.phase = "manifest_unauthorized"
        return StepError(
            f"cluster of Kyma {context.kyma}: {error}",
            reason="ClusterUnreachable" if silent else "RequestRefused",
            actor=Actor.PROVIDER,
            after=getattr(error, "retry_after", None),
        )

    def report(self, context: ManifestContext, error: StepError) -> None:
        state, operation = State.ERROR, error.message
        if isinstance(error, ManifestError):
            state, operation = error.state, error.operation
        if error.condition:
            context.condition(
                error.condition, "False", reason=REASONS[error.condition], message=_MISSING[error.condition]
            )
        context.report(state, operation)

    def outcome(self, context: ManifestContext, error: StepError) -> Result | None:
        self._requeues.count(context.phase, "unexpected")
        raise error

    def observe(self, context: ManifestContext) -> None:
        if context.is_mandatory:
            self._metrics.mandatory(context.key, context.label(Label.MODULE_NAME), context.kyma, context.state)
        if context.settled:
            self._settling.forget(context.key)
            self._resting.rest(context.key, context.raw, context.place, seconds=context.rest)

    # Requeues.

    def _requeue(self, context: ManifestContext, reason: str, seconds: float) -> Result:
        self._requeues.count(reason, "intended")
        return Result(requeue_after=self._varied(seconds))

    def _varied(self, seconds: float) -> float:
        settings = self._settings
        return varied(
            seconds,
            probability=settings.jitter_probability,
            percentage=settings.jitter_percentage,
            random=self._random,
        )


def varied(seconds: float, *, probability: float, percentage: float, random: Random) -> float:
    """Seconds, with `probability` a little more or less, so that Manifests of one moment drift apart."""
    if random.random() >= probability:
        return seconds
    return seconds * (1.0 + random.uniform(-percentage, percentage))


def _lists(kyma: Kyma, key: ObjectKey) -> bool:
    """Reports whether the status of a Kyma refers to a Manifest."""
    return any(
        module.manifest is not None
        and (module.manifest.metadata.namespace, module.manifest.metadata.name) == (key.namespace, key.name)
        for module in kyma.status.modules
    )
