"""The controller of Kymas: the modules of one cluster, by Kyma's modular architecture.

Conditions it owns: CRDsSync, Modules, ModuleCatalog, SKRWebhook and SKRImagePullSecretSync, and all of the status.
Objects it owns: the Manifests of the Kyma's modules. In the cluster: the namespace of modules, three CRDs, the pull
Secret, the Kyma (created once; then its metadata and status), the catalog.
It watches: Kymas, Manifests, ModuleTemplates, ModuleReleaseMetas, Secrets with kubeconfigs, CRDs; in the clusters the
Kyma.
It never: writes the spec of a Kyma that exists, installs anything of a module itself, or sends what has not changed.

Behaviour: kyma-project/lifecycle-manager, `internal/controller/kyma`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from hortus.domains.modules.clusters import KymaClusters
from hortus.domains.modules.kyma.catalog import ModuleCatalog
from hortus.domains.modules.kyma.context import KymaContext, ModulesInError, Requeue
from hortus.domains.modules.kyma.copies import ClusterCopies, CopyErrors, CopySet
from hortus.domains.modules.kyma.deletion import KymaDeletion
from hortus.domains.modules.kyma.documents import first_remote, metadata_for, namespace_copy, status_patch
from hortus.domains.modules.kyma.metrics import KymaMetrics
from hortus.domains.modules.kyma.modules import KymaModules
from hortus.domains.modules.kyma.remote import RemoteKymas, effective
from hortus.domains.modules.kyma.seams import Agents
from hortus.domains.modules.kyma.status import (
    OPERATION_READY,
    OPERATION_STARTED,
    OPERATION_WAITING,
    KymaCondition,
    are_modules_ready,
    kyma_state,
    mirrored,
    required_conditions,
)
from hortus.domains.modules.metrics import RequeueMetrics
from hortus.domains.modules.names import (
    MANAGED_BY_LIFECYCLE_MANAGER,
    FieldOwner,
    Finalizer,
    Label,
    State,
)
from hortus.domains.modules.settings import Intervals
from hortus.domains.modules.types import KYMAS, Kyma, ModuleStatus
from hortus.engine import Applier, KindController, Result, StepError, Steps, Wiring, has_finalizer, metadata_of
from hortus.kube.errors import AlreadyExists, KubeError, NotServed, Unauthorized
from hortus.kube.objects import Object, ObjectKey

SETTLING: Final = 1.0
"""Seconds until a cluster is asked again that does not serve a kind whose CRD was just applied."""
_FOREGROUND: Final = "foregroundDeletion"


class KymaController(KindController[KymaContext]):
    """Reconciles one Kyma at a time; see the module's head."""

    kind = Kyma
    field_manager = FieldOwner.LIFECYCLE
    applies_status = True

    def __init__(
        self,
        wiring: Wiring[Kyma],
        *,
        clusters: KymaClusters,
        remotes: RemoteKymas,
        copies: ClusterCopies,
        catalog: ModuleCatalog,
        modules: KymaModules,
        agents: Agents,
        deletion: KymaDeletion,
        metrics: KymaMetrics,
        requeues: RequeueMetrics,
        crds: Callable[[], CopySet],
        pull_secret: Callable[[], CopySet] | None,
        requeue: Intervals,
        windows_from_remote: bool,
    ) -> None:
        """`crds` and `pull_secret` give what is copied to each cluster; they raise StepError."""
        super().__init__(wiring)
        self._clusters = clusters
        self._remotes = remotes
        self._copies = copies
        self._catalog = catalog
        self._modules = modules
        self._agents = agents
        self._deletion = deletion
        self._metrics = metrics
        self._requeues = requeues
        self._crds = crds
        self._pull_secret = pull_secret
        self._requeue = requeue
        self._windows_from_remote = windows_from_remote
        self._namespace = namespace_copy(remotes.key.namespace)

    def make_context(self, raw: Object) -> KymaContext:
        return KymaContext(self.wiring, raw)

    def steps(self, context: KymaContext) -> Steps:
        return (
            self._skip,
            self._connect,
            self._sync_namespace,
            self._mark,
            self._sync_crds,
            self._sync_pull_secret,
            self._sync_kyma,
            self._begin,
            self._process,
            self._conclude,
            self._mirror_metadata,
            self._mirror_status,
            self._rest,
        )

    def finalize_steps(self, context: KymaContext) -> Steps:
        return (self._deletion.step,) if has_finalizer(context.raw, Finalizer.KYMA) else ()

    async def gone(self, key: ObjectKey) -> Result | None:
        """Forget the Kyma, and delete its certificate."""
        self._remotes.leave(key)
        self._copies.forget(key)
        self._deletion.forget(key)
        self._metrics.clear(key)
        self._agents.forget(key)
        if self._agents.enabled:
            await self._agents.delete_certificate(key.name)
        return None

    async def on_error(self, context: KymaContext, error: StepError | KubeError) -> StepError | None:
        """Report a failure in the states of the contract, here and in the cluster; the queue tries again."""
        unauthorized = isinstance(error, Unauthorized)
        self._requeues.count(Requeue.UNAUTHORIZED if unauthorized else context.stage, "unexpected")
        if isinstance(error, ModulesInError) or context.is_deleting:
            return None
        if context.stage == Requeue.CONTEXT and not unauthorized:
            context.draft_modules([_failed(module, error) for module in context.object.status.modules])
        self._draft(context, State.ERROR, str(error))
        await context.checkpoint()
        self._measure(context)
        try:
            await self._mirror_status(context)
        except (KubeError, StepError) as problem:
            context.warn("StatusSynchronization", problem)
        return None

    # The steps.

    async def _skip(self, context: KymaContext) -> Result | None:
        if (context.object.metadata.labels.get(Label.SKIP_RECONCILIATION) or "").lower() == "true":
            return Result(requeue_after=self._requeue.success)
        return None

    async def _connect(self, context: KymaContext) -> None:
        context.stage = Requeue.CONTEXT
        context.place = self._clusters.place(context.key.name, context.key.namespace)
        self._remotes.enter(context.key, context.place)
        context.client = self._clusters.client(context.place)

    async def _sync_namespace(self, context: KymaContext) -> None:
        await self._copy(context, self._namespace)

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

    async def _sync_crds(self, context: KymaContext) -> None:
        context.stage = Requeue.CRDS
        context.outcomes[KymaCondition.CRDS_SYNC] = False
        if await self._copy(context, self._crds()):
            self._remotes.restart(context.key)
        context.outcomes[KymaCondition.CRDS_SYNC] = True

    async def _sync_pull_secret(self, context: KymaContext) -> None:
        if self._pull_secret is None:
            return
        context.stage = Requeue.PULL_SECRET
        context.outcomes[KymaCondition.PULL_SECRET_SYNC] = False
        await self._copy(context, self._pull_secret())
        context.outcomes[KymaCondition.PULL_SECRET_SYNC] = True

    async def _sync_kyma(self, context: KymaContext) -> Result | None:
        """Take modules and channel from the Kyma in the cluster; create it with our whole spec where there is none."""
        context.stage = Requeue.REMOTE_SPEC
        assert context.client is not None, "an earlier step connects"
        try:
            context.remote = await self._remotes.get(context.key, context.client)
            if context.remote is None:
                context.remote = await self._create_remote(context)
        except NotServed:
            self._copies.forget(context.key)
            self._requeues.count(Requeue.REMOTE_SPEC, "intended")
            return Result(requeue_after=SETTLING)
        context.wanted = effective(context.object, context.remote, windows_from_remote=self._windows_from_remote)
        return None

    async def _create_remote(self, context: KymaContext) -> Object:
        assert context.client is not None, "an earlier step connects"
        wanted = first_remote(context.raw, self._remotes.key)
        try:
            created = await context.client.create(KYMAS, wanted, field_manager=FieldOwner.SYNC_CONTEXT)
        except AlreadyExists:
            return await context.client.get(KYMAS, self._remotes.key.name, self._remotes.key.namespace)
        self._remotes.learn(context.key, created)
        context.event("Normal", "RemoteInstallation", "Kyma was installed to SKR")
        return created

    async def _begin(self, context: KymaContext) -> Result | None:
        if context.object.status.state != State.NONE:
            return None
        context.stage = Requeue.INITIAL
        self._draft(context, State.PROCESSING, OPERATION_STARTED)
        self._requeues.count(Requeue.INITIAL, "intended")
        return Result(requeue_after=0.0)

    async def _process(self, context: KymaContext) -> None:
        """Modules, catalog and agent at the same time; each is tried whatever the others do."""
        found = await asyncio.gather(
            self._reconcile_modules(context),
            self._sync_catalog(context),
            self._install_agent(context),
            return_exceptions=True,
        )
        errors = [one for one in found if isinstance(one, BaseException)]
        for one in errors:
            if not isinstance(one, StepError | KubeError):
                raise one
        if errors:
            stages = (Requeue.MANIFESTS, Requeue.CATALOG, Requeue.WEBHOOK)
            context.stage = next(stage for stage, one in zip(stages, found, strict=True) if one is errors[0])
            if len(errors) == 1:
                raise errors[0]
            raise StepError("; ".join(map(str, errors)), reason="ProcessingFailed") from errors[0]

    async def _reconcile_modules(self, context: KymaContext) -> None:
        context.outcomes[KymaCondition.MODULES] = False
        context.modules = await self._modules.reconcile(context)
        context.outcomes[KymaCondition.MODULES] = are_modules_ready(context.modules)

    async def _sync_catalog(self, context: KymaContext) -> None:
        context.outcomes[KymaCondition.MODULE_CATALOG] = False
        metadata = context.object.metadata
        try:
            await self._copy(context, self._catalog.offer(context.key.namespace, metadata.labels))
        except CopyErrors as error:
            if not error.unserved:
                raise
            # The CRDs were applied a moment ago: the condition reports it, and the next reconcile goes on.
            context.wait_until(context.now + SETTLING)
            return
        context.outcomes[KymaCondition.MODULE_CATALOG] = True

    async def _install_agent(self, context: KymaContext) -> None:
        if not self._agents.enabled:
            return
        assert context.client is not None, "an earlier step connects"
        context.outcomes[KymaCondition.SKR_WEBHOOK] = False
        state = await self._agents.install(context.object, context.client)
        context.outcomes[KymaCondition.SKR_WEBHOOK] = state.ready

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

    async def _mirror_metadata(self, context: KymaContext) -> None:
        context.stage = Requeue.REMOTE_STATUS
        assert context.client is not None, "an earlier step connects"
        wanted = metadata_for(context.raw, self._remotes.key)
        applier = Applier(context.client, field_manager=FieldOwner.SYNC_CONTEXT)
        remote = context.remote
        if remote is None or _has_metadata(remote, wanted):
            return
        try:
            context.remote = (await applier.apply(KYMAS, wanted, live=remote)).object
        except KubeError as error:
            context.warn("MetadataSynchronization", error)
            raise
        self._remotes.learn(context.key, context.remote)

    async def _mirror_status(self, context: KymaContext) -> None:
        """Give the Kyma in the cluster our status, without what concerns the control plane alone."""
        if context.client is None or context.remote is None:
            return
        namespace = self._remotes.key.namespace
        patch = status_patch(context.remote, mirrored(context.object, namespace))
        if patch is None:
            return
        name = self._remotes.key.name
        written = await context.client.patch(
            KYMAS, name, patch, namespace, subresource="status", field_manager=FieldOwner.LIFECYCLE
        )
        context.remote = written
        self._remotes.learn(context.key, written)

    async def _rest(self, context: KymaContext) -> Result:
        """The time of the next reconcile, by the state; an Error is tried again by the queue."""
        context.stage = Requeue.PROCESSING
        state = context.object.status.state
        if state == State.ERROR:
            raise ModulesInError("modules are in state Error; the status names them", reason="ModulesInError")
        pause = {State.WARNING: self._requeue.warning, State.PROCESSING: self._requeue.busy}.get(
            State(state), self._requeue.success
        )
        if context.due is not None:
            pause = min(pause, max(0.0, context.due - context.now))
        return Result(requeue_after=pause)

    # Parts of steps.

    @property
    def _required(self) -> Sequence[KymaCondition]:
        return required_conditions(watcher=self._agents.enabled, pull_secret=self._pull_secret is not None)

    async def _copy(self, context: KymaContext, copies: CopySet) -> bool:
        assert context.client is not None, "an earlier step connects"
        return await self._copies.ensure(context.key, context.client, copies)

    def _draft(self, context: KymaContext, state: State, operation: str) -> None:
        context.draft_state(state, operation)
        context.draft_conditions(self._required)

    def _measure(self, context: KymaContext) -> None:
        if not self._metrics.see(context.key, context.object):
            context.warn("MetricsError", "label instance-id or annotation skr-domain is missing: no metrics")


def _failed(module: ModuleStatus, error: Exception) -> ModuleStatus:
    return msgspec.structs.replace(module, state=State.ERROR.value, message=str(error))


def _has_metadata(remote: Object, wanted: Object) -> bool:
    present, ours = metadata_of(remote), metadata_of(wanted)
    return ours.labels.items() <= present.labels.items() and ours.annotations.items() <= present.annotations.items()
