"""The controller of Kymas: the modules of one cluster, by Kyma's modular architecture.

Conditions it owns: CRDsSync, Modules, ModuleCatalog, SKRWebhook and SKRImagePullSecretSync, and all of the status.
Objects it owns: the Manifests of the Kyma's modules. In the cluster: the namespace of modules, three CRDs, the pull
Secret, the Kyma (created once; then its metadata and status), the catalog.
It watches: Kymas, Manifests, ModuleTemplates, ModuleReleaseMetas, Secrets with kubeconfigs, CRDs; in the clusters the
Kyma.
It never: enters a cluster for a namespace that may not read its kubeconfig, writes the spec of a Kyma that exists,
installs anything of a module itself, or sends what has not changed.

Behaviour: kyma-project/lifecycle-manager, `internal/controller/kyma`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from hortus.domains.modules.clusters import KymaClusters
from hortus.domains.modules.kyma.catalog import ModuleCatalog
from hortus.domains.modules.kyma.context import KymaContext, Requeue
from hortus.domains.modules.kyma.copies import ClusterCopies, CopyErrors, CopySet
from hortus.domains.modules.kyma.deletion import KymaDeletion
from hortus.domains.modules.kyma.documents import first_remote, metadata_for, namespace_copy, status_patch
from hortus.domains.modules.kyma.metrics import KymaMetrics
from hortus.domains.modules.kyma.modules import KymaModules
from hortus.domains.modules.kyma.reconciling import KymaReconciler
from hortus.domains.modules.kyma.remote import RemoteKymas, effective
from hortus.domains.modules.kyma.seams import Agents
from hortus.domains.modules.kyma.status import (
    KymaCondition,
    mirrored,
    required_conditions,
)
from hortus.domains.modules.metrics import RequeueMetrics
from hortus.domains.modules.names import (
    FieldOwner,
)
from hortus.domains.modules.settings import Intervals
from hortus.domains.modules.types import KYMAS, Kyma
from hortus.engine import Applier, Result, StepError, Steps, Wiring, metadata_of
from hortus.kube.errors import AlreadyExists, KubeError, NotServed
from hortus.kube.objects import Object, ObjectKey

SETTLING: Final = 1.0
"""Seconds until a cluster is asked again that does not serve a kind whose CRD was just applied."""


class KymaController(KymaReconciler):
    """Reconciles one Kyma at a time; see the module's head."""

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
        super().__init__(
            wiring, modules=modules, deletion=deletion, metrics=metrics, requeues=requeues, requeue=requeue
        )
        self._clusters = clusters
        self._remotes = remotes
        self._copies = copies
        self._catalog = catalog
        self._agents = agents
        self._crds = crds
        self._pull_secret = pull_secret
        self._windows_from_remote = windows_from_remote
        self._namespace = namespace_copy(remotes.key.namespace)

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

    async def gone(self, key: ObjectKey) -> Result | None:
        """Forget the Kyma, and delete its certificate."""
        self._remotes.leave(key)
        self._copies.forget(key)
        self._deletion.forget(key)
        self._metrics.clear(key)
        self._agents.forget(key)
        if self._agents.enabled:
            await self._agents.delete_certificate(key)
        return None

    # The steps.

    async def _connect(self, context: KymaContext) -> None:
        context.stage = Requeue.CONTEXT
        context.place = self._clusters.place(context.key.name, context.key.namespace)
        try:
            await self._clusters.permit(context.place)
        except StepError:
            self._remotes.leave(context.key)
            raise
        self._remotes.enter(context.key, context.place)
        context.client = self._clusters.client(context.place)

    async def _sync_namespace(self, context: KymaContext) -> None:
        await self._copy(context, self._namespace)

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

    async def _publish(self, context: KymaContext) -> None:
        await self._mirror_status(context)

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

    # Parts of steps.

    def _quiet(self, context: KymaContext) -> float:
        """The time of the next comparison of copies, where nothing else needs to be looked at."""
        pause = super()._quiet(context)
        waits = any(module.maintenance for module in context.modules or ())  # a window opens by time alone
        if waits or self._agents.enabled or not self._remotes.is_current(context.key):
            return pause
        return max(pause, self._copies.due_in(context.key))

    @property
    def _required(self) -> Sequence[KymaCondition]:
        return required_conditions(watcher=self._agents.enabled, pull_secret=self._pull_secret is not None)

    async def _copy(self, context: KymaContext, copies: CopySet) -> bool:
        assert context.client is not None, "an earlier step connects"
        return await self._copies.ensure(context.key, context.client, copies)


def _has_metadata(remote: Object, wanted: Object) -> bool:
    present, ours = metadata_of(remote), metadata_of(wanted)
    return ours.labels.items() <= present.labels.items() and ours.annotations.items() <= present.annotations.items()
