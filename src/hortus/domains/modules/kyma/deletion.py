"""The deletion of a Kyma: twelve steps, of which each reconcile does the first that applies.

The order and the names are contract: a name is the reason of the step's event. Steps inside the cluster do not apply
without a way into it, and are given up at a deadline, so a deletion always ends. The objects that may be left then are
recorded before the finalizer is removed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

import structlog

from hortus.domains.modules.clusters import AccessSecretMissing, KymaClusters
from hortus.domains.modules.kyma.context import KymaContext, Requeue
from hortus.domains.modules.kyma.documents import CRDS
from hortus.domains.modules.kyma.metrics import KymaMetrics
from hortus.domains.modules.kyma.modules import KymaModules
from hortus.domains.modules.kyma.remote import COPIED_CRDS, RemoteKymas, remote_state
from hortus.domains.modules.kyma.seams import Agents
from hortus.domains.modules.kyma.status import OPERATION_DELETING
from hortus.domains.modules.metrics import RequeueMetrics
from hortus.domains.modules.names import FieldOwner, Finalizer, Label, State
from hortus.domains.modules.types import KYMAS, MANIFESTS
from hortus.domains.modules.watching.webhook import identities
from hortus.engine import NORMAL, Result, StepError, has_finalizer
from hortus.engine.leftovers import Debt, LeftoverRecorder, member_cluster, object_item, source_of
from hortus.engine.leftovers.types import LeftoverReason
from hortus.engine.remote import MemberIdentity
from hortus.kube.errors import Forbidden, KubeError, NotFound, TransportError, Unauthorized
from hortus.kube.objects import ObjectKey, parse_time

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

PAUSE: Final = 1.0
"""Seconds between two steps."""
_SILENT: Final = (TransportError, Unauthorized, Forbidden)
"""Errors of a cluster that does not answer, or does not take the credential."""


class ClusterObstacle(NamedTuple):
    """The reason for which nothing is done inside the cluster any more."""

    reason: str
    """One of `LeftoverReason`."""
    message: str


class DeletionStep(NamedTuple):
    """One step: its name, the test whether it applies, and what it does."""

    name: str
    applies: Callable[[KymaContext], Awaitable[bool]]
    run: Callable[[KymaContext], Awaitable[None]]
    inside: bool = False
    """True for a step inside the cluster."""
    once: bool = False
    """True for a step that never applies again once it does not apply."""


class ClusterWay(NamedTuple):
    """The way into the clusters of Kymas, and to the Kymas there."""

    clusters: KymaClusters
    remotes: RemoteKymas


class KymaDeletion:
    """Deletes Kymas."""

    def __init__(
        self,
        *,
        way: ClusterWay | None,
        modules: KymaModules,
        agents: Agents,
        metrics: KymaMetrics,
        requeues: RequeueMetrics,
        leftovers: LeftoverRecorder,
        detach_after: float,
    ) -> None:
        """`way` is None where Kymas have no other cluster: then no step inside a cluster applies. `detach_after` is the
        time in seconds after which a cluster that cannot be reached is given up."""
        self._way = way
        self._modules = modules
        self._agents = agents
        self._metrics = metrics
        self._requeues = requeues
        self._leftovers = leftovers
        self._detach_after = detach_after
        self._past: dict[tuple[ObjectKey, str], set[str]] = {}
        """Steps that are over, by Kyma and uid: a wait costs no calls."""
        self._held: set[ObjectKey] = set()
        """Kymas whose cluster holds objects beyond the deadline."""
        templates, releases, kymas = (_CrdStep(COPIED_CRDS[at]) for at in (1, 2, 0))
        self.steps: Sequence[DeletionStep] = (
            DeletionStep("SetKcpKymaStateDeleting", self._is_not_deleting, self._set_deleting),
            DeletionStep(
                "SetSkrKymaStateDeleting", self._is_remote_not_deleting, self._set_remote_deleting, inside=True
            ),
            DeletionStep("DeleteManifests", self._has_live_manifests, self._delete_manifests),
            DeletionStep("DeleteCertificateSetup", self._delete_certificate, _nothing, once=True),
            DeletionStep("DeleteSkrWebhookResources", self._delete_agent, _nothing, inside=True, once=True),
            DeletionStep("DeleteSkrModuleTemplateCrd", templates.exists, templates.delete, inside=True, once=True),
            DeletionStep("DeleteSkrModuleReleaseMetaCrd", releases.exists, releases.delete, inside=True, once=True),
            DeletionStep("DeleteSkrKyma", self._has_remote, self._delete_remote, inside=True, once=True),
            DeletionStep("DeleteSkrKymaCrd", kymas.exists, kymas.delete, inside=True, once=True),
            DeletionStep("DeleteMetrics", self._has_metrics, self._delete_metrics),
            DeletionStep("EnsureManifestDeletion", self._has_manifests, _nothing),
        )

    async def step(self, context: KymaContext) -> Result:
        """Do the first step that applies; the last one removes the finalizer. Raises StepError, KubeError."""
        obstacle = await self._reach(context)
        try:
            step = await self._next(context)
        except _SILENT as error:
            obstacle = self._give_up(context, error)
            step = await self._next(context)
        if step is None:
            return await self._release(context, obstacle)
        try:
            await step.run(context)
        except (StepError, KubeError) as error:
            context.warn(step.name, error)
            raise
        if step.inside and self._is_overdue(context):
            # Something there holds the object: it was asked for once more, and is recorded.
            self._known(context).add(step.name)
            self._held.add(context.key)
        context.event(NORMAL, step.name, "Success")
        self._requeues.count(Requeue.DELETION, "intended")
        return Result(requeue_after=PAUSE)

    def forget(self, key: ObjectKey) -> None:
        """The Kyma is gone."""
        for known in [known for known in self._past if known[0] == key]:
            del self._past[known]
        self._held.discard(key)

    def shed(self, holds: Callable[[ObjectKey], bool]) -> None:
        """Forget the Kymas that have become another replica's."""
        for known in [known for known in self._past if not holds(known[0])]:
            del self._past[known]

    # The way into the cluster.

    @property
    def _remotes(self) -> RemoteKymas:
        assert self._way is not None, "steps inside the cluster apply with a way only"
        return self._way.remotes

    async def _reach(self, context: KymaContext) -> ClusterObstacle | None:
        """Set the client; the obstacle where there is none. Raises KubeError."""
        if self._way is None:
            return None
        try:
            context.place = self._way.clusters.place(context.key.name, context.key.namespace)
        except AccessSecretMissing as error:
            self._requeues.count(Requeue.NO_ACCESS, "intended")
            return ClusterObstacle(LeftoverReason.CLUSTER_GONE, error.message)
        except StepError as error:
            return self._give_up(context, error)
        try:
            await self._way.clusters.permit(context.place)
        except StepError as error:
            return ClusterObstacle(LeftoverReason.NOT_PRUNED, error.message)
        context.client = self._way.clusters.client(context.place)
        return None

    def _give_up(self, context: KymaContext, error: Exception) -> ClusterObstacle:
        """Go on without the cluster once the deadline is over; before, raises the error."""
        if not self._is_overdue(context):
            raise error
        context.client = None
        return ClusterObstacle(LeftoverReason.CLUSTER_UNREACHABLE, str(error))

    def _is_overdue(self, context: KymaContext) -> bool:
        return context.now >= parse_time(context.object.metadata.deletion_timestamp or "") + self._detach_after

    def _known(self, context: KymaContext) -> set[str]:
        return self._past.setdefault((context.key, context.object.metadata.uid), set())

    async def _next(self, context: KymaContext) -> DeletionStep | None:
        past = self._known(context)
        for step in self.steps:
            if step.name in past or (step.inside and context.client is None):
                continue
            try:
                applies = await step.applies(context)
            except (StepError, KubeError) as error:
                context.warn(step.name, error)
                raise
            if applies:
                return step
            if step.once:
                past.add(step.name)
        return None

    async def _release(self, context: KymaContext, obstacle: ClusterObstacle | None) -> Result:
        """DropKymaFinalizer: record the objects that may be left, and release the Kyma."""
        if not has_finalizer(context.raw, Finalizer.KYMA):
            context.warn("KymaDeletionStuck", "no step applies and the finalizer is gone")
            return Result()
        if obstacle is None and context.key in self._held:
            text = "the cluster holds objects that were deleted; remove their finalizers"
            obstacle = ClusterObstacle(LeftoverReason.NOT_PRUNED, text)
        if obstacle is not None:
            await self._leftovers.record(self._debt(context, obstacle))
            _log.warning("a kyma is released without its cluster", kyma=str(context.key), problem=obstacle.message)
        if self._way is not None:
            self._way.remotes.leave(context.key)
        for finalizer in (Finalizer.PURGE, Finalizer.KYMA):
            with suppress(NotFound):
                await context.remove_finalizer(finalizer)
        context.event(NORMAL, "DropKymaFinalizer", "Success")
        self.forget(context.key)
        return Result()

    def _debt(self, context: KymaContext, obstacle: ClusterObstacle) -> Debt:
        kyma = context.object
        member = MemberIdentity()
        if self._way is not None and context.place is not None:
            member = self._way.clusters.identity(context.place)
        left = [
            *((CRDS, "", name) for name in COPIED_CRDS),
            (KYMAS, self._remotes.key.namespace, self._remotes.key.name),
            *identities(self._remotes.key.namespace),
        ]
        return Debt(
            source=source_of("Kyma", kyma.metadata),
            reason=obstacle.reason,
            message=obstacle.message,
            items=tuple(object_item(*one, where="Cluster", actor="ClusterOwner") for one in left),
            cluster=member_cluster(member, kyma.metadata.name, kyma.metadata.namespace),
            since=kyma.metadata.deletion_timestamp,
        )

    # The steps, in their order.

    async def _is_not_deleting(self, context: KymaContext) -> bool:
        return context.object.status.state != State.DELETING

    async def _set_deleting(self, context: KymaContext) -> None:
        context.draft_state(State.DELETING, OPERATION_DELETING)
        await context.checkpoint()
        self._metrics.see(context.key, context.object)
        self._requeues.count(Requeue.DELETING, "intended")

    async def _is_remote_not_deleting(self, context: KymaContext) -> bool:
        if not await self._remote(context) or context.remote is None:
            return False
        return remote_state(context.remote) != State.DELETING

    async def _set_remote_deleting(self, context: KymaContext) -> None:
        assert context.client is not None, "steps inside the cluster apply with a client only"
        key = self._remotes.key
        written = await context.client.apply(
            KYMAS,
            {"metadata": {"name": key.name, "namespace": key.namespace}, "status": {"state": State.DELETING.value}},
            field_manager=FieldOwner.UNMANAGED,
            subresource="status",
        )
        self._remotes.learn(context.key, written)

    async def _has_live_manifests(self, context: KymaContext) -> bool:
        return any(one.metadata.deletion_timestamp is None for one in self._modules.manifests_of(context.key))

    async def _delete_manifests(self, context: KymaContext) -> None:
        labels = f"{Label.KYMA_NAME}={context.key.name}"
        await context.wiring.client.delete_collection(MANIFESTS, context.key.namespace, labels)

    async def _delete_certificate(self, context: KymaContext) -> bool:
        return self._agents.enabled and await self._agents.delete_certificate(context.key)

    async def _delete_agent(self, context: KymaContext) -> bool:
        assert context.client is not None, "steps inside the cluster apply with a client only"
        return await self._agents.remove(context.client)

    async def _has_remote(self, context: KymaContext) -> bool:
        return await self._remote(context)

    async def _delete_remote(self, context: KymaContext) -> None:
        assert context.client is not None, "steps inside the cluster apply with a client only"
        key = self._remotes.key
        with suppress(NotFound):
            await context.client.delete(KYMAS, key.name, key.namespace)

    async def _has_metrics(self, context: KymaContext) -> bool:
        return self._metrics.has(context.key)

    async def _delete_metrics(self, context: KymaContext) -> None:
        self._metrics.clear(context.key)

    async def _has_manifests(self, context: KymaContext) -> bool:
        return bool(self._modules.manifests_of(context.key))

    async def _remote(self, context: KymaContext) -> bool:
        """Read the Kyma in the cluster; returns whether it is there, also while it is being deleted."""
        if context.client is None:
            return False
        try:
            context.remote = await context.client.get(KYMAS, self._remotes.key.name, self._remotes.key.namespace)
        except NotFound:
            return False
        return True


async def _nothing(context: KymaContext) -> None:
    """The test did it already, or Manifests report their deletion."""


class _CrdStep:
    """The step that deletes one CRD, and with it its objects."""

    def __init__(self, name: str) -> None:
        self._name = name

    async def exists(self, context: KymaContext) -> bool:
        assert context.client is not None, "steps inside the cluster apply with a client only"
        try:
            await context.client.get(CRDS, self._name, metadata_only=True)
        except NotFound:
            return False
        return True

    async def delete(self, context: KymaContext) -> None:
        assert context.client is not None, "steps inside the cluster apply with a client only"
        with suppress(NotFound):
            await context.client.delete(CRDS, self._name)
