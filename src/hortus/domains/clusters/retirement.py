"""Steps that delete what was made for a Runtime: its kubeconfig, its Shoot, and all else.

First the GardenerCluster, then the Shoot, then the finalizer. The Go system forgets the GardenerCluster when the Shoot
is missing; here it is deleted in each case. What belongs to others is left alone. A deletion that the infrastructure
blocks may be forced, if the Runtime says so and the garden admits it; a Leftover records what that may leave.
"""

from __future__ import annotations

import structlog

from hortus.domains.clusters import service
from hortus.domains.clusters.context import RuntimeContext
from hortus.domains.clusters.debts import RELEASE_AFTER, infrastructure_debt, shoot_debt
from hortus.domains.clusters.garden import Garden
from hortus.domains.clusters.outline import ShootOutline
from hortus.domains.clusters.pauses import DELETION, GARDEN, KUBECONFIG, PERMIT
from hortus.domains.clusters.permits import Permits
from hortus.domains.clusters.reading import shoot_name_of
from hortus.domains.clusters.shoot import authentication_name
from hortus.domains.clusters.types import FINALIZER, NOT_PERMITTED, Annotation, ConditionType, Reason, Runtime
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.engine import NEVER, TRUE, UNKNOWN, WARNING, Actor, Cache, Result, StepError, has_finalizer, metadata_of
from hortus.engine.leftovers import Debt, LeftoverRecorder
from hortus.kube import Client
from hortus.kube.errors import Forbidden, Invalid, KubeError, NotFound
from hortus.kube.objects import parse_time

_KIND = ConditionType.DEPROVISIONED
LEFT = "ShootLeft"
"""Reason of the event about a Runtime that is released without its Shoot."""
FORCED = "ShootDeletionForced"
"""Reason of the event about a forced deletion."""
REFUSED = "ShootForceDeletionRefused"

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Retirement:
    """The steps of a deletion. `context.shoot` is the Shoot to delete; None where there is none, or one that stays."""

    def __init__(
        self, client: Client, clusters: Cache, garden: Garden, permits: Permits, leftovers: LeftoverRecorder
    ) -> None:
        self._client = client
        self._clusters = clusters
        self._garden = garden
        self._permits = permits
        self._leftovers = leftovers

    async def verify(self, context: RuntimeContext) -> Result | None:
        """Ask the garden for the Shoot once the watch shows none, and delete what a Shoot that is gone has left."""
        if context.shoot is not None:
            return None
        if not has_finalizer(context.raw, FINALIZER):
            text = "the Runtime is being deleted and has no finalizer of this controller"
            raise StepError(text, reason="FinalizerMissing", actor=Actor.OPERATOR, after=NEVER)
        if context.taken:
            return None
        try:
            if await self._garden.ask(context.shoot_name) is not None:
                # The watch was behind: there is one.
                return Result(requeue_after=GARDEN)
            await self._forget(context.object, authentication_name(context.shoot_name))
        except KubeError as error:
            text = f"the garden cannot be asked whether shoot {context.shoot_name} is gone: {error}"
            raise StepError(text, reason=Reason.GARDENER_ERR, after=GARDEN) from error
        return None

    async def _forget(self, runtime: Runtime, name: str) -> None:
        """Delete the ConfigMap that a Shoot left. Raises KubeError."""
        try:
            await self._delete_config_map(runtime, name)
        except Forbidden:
            # Without permission to delete one there was none to make it: all clusters have their OIDC in the Shoot.
            _log.info("config maps may not be deleted in the garden, so none was made", name=name)

    async def _delete_config_map(self, runtime: Runtime, name: str) -> None:
        """Delete it, unless the Runtime may not: then another one than its own may have the name. Raises KubeError."""
        if await self._permits.may_delete_config_map(runtime, name):
            await self._garden.delete_config_map(name)
        else:
            _log.warning("a config map stays in the garden: the deputy may not delete it", name=name)

    async def disconnect(self, context: RuntimeContext) -> Result | None:
        """Delete the GardenerCluster of this Runtime; ends the reconcile while there is one."""
        if context.shared:
            return None
        key = service.cluster_key(context.object)
        cluster = self._clusters.get(key)
        record = service.record_of(context.object)
        shoots = {context.shoot_name, *(() if record is None else (record.shoot,))}
        if cluster is None or shoot_name_of(cluster) not in shoots:
            return None
        metadata = metadata_of(cluster)
        if metadata.deletion_timestamp is not None:
            return Result(requeue_after=KUBECONFIG)
        try:
            await self._client.delete(GARDENER_CLUSTERS, key.name, key.namespace, uid=metadata.uid)
        except NotFound:
            pass
        except KubeError as error:
            context.failed(_KIND, Reason.GARDENER_ERR, f"Gardener API delete error: {error}")
            return Result(requeue_after=KUBECONFIG)
        context.terminating(UNKNOWN, Reason.KUBECONFIG_DELETED, "Runtime shoot deletion started")
        return Result(requeue_after=KUBECONFIG)

    async def report_disconnected(self, context: RuntimeContext) -> None:
        """Report on each reconcile that the kubeconfig is gone; the contract has it so."""
        if context.shoot is not None and not context.says(_KIND, TRUE, Reason.KUBECONFIG_DELETED):
            context.terminating(TRUE, Reason.KUBECONFIG_DELETED, "Gardener Cluster CR successfully deleted")
            await context.checkpoint()

    async def delete_shoot(self, context: RuntimeContext) -> Result | None:
        """Delete the Shoot; ends the reconcile while there is one."""
        shoot = context.shoot
        if shoot is None:
            return None
        refusal = await self._permits.deletion_refusal(context.object, shoot)
        if shoot.deleting:
            if not refusal:
                await self._force(context, shoot)
            return Result(requeue_after=DELETION)
        if refusal:
            return await self._leave(context, shoot, refusal)
        if not shoot.confirmed:
            await self._confirm(shoot)
        try:
            if shoot.authentication:
                await self._delete_config_map(context.object, shoot.authentication)
        except KubeError as error:
            text = f"Failed to delete structured authentication config map: {error}"
            context.failed(_KIND, Reason.STRUCTURED_CONFIG_DELETED, text)
            return Result(requeue_after=DELETION)
        try:
            await self._garden.delete(shoot)
        except KubeError as error:
            _log.warning("the shoot cannot be deleted", error=str(error))
            context.failed(_KIND, Reason.SHOOT_DELETED, "Gardener API shoot delete error")
        else:
            context.terminating(UNKNOWN, Reason.SHOOT_DELETED, "Runtime shoot deletion started")
        return Result(requeue_after=DELETION)

    async def _leave(self, context: RuntimeContext, shoot: ShootOutline, refusal: str) -> Result | None:
        """Report a Shoot that the Runtime may not delete; after an hour record it and go on without it."""
        began = parse_time(context.object.metadata.deletion_timestamp or "")
        if context.now < began + RELEASE_AFTER:
            context.failed(_KIND, NOT_PERMITTED, refusal)
            return Result(requeue_after=PERMIT)
        await self._record(shoot_debt(context.object, shoot, self._garden.namespace, refusal))
        context.event(WARNING, LEFT, f"Released without shoot {shoot.name}: {refusal}")
        return None

    async def release(self, context: RuntimeContext) -> None:
        """Remove the finalizer, after which the Runtime is gone."""
        await context.remove_finalizer(FINALIZER)

    async def _confirm(self, shoot: ShootOutline) -> None:
        try:
            await self._garden.confirm_deletion(shoot)
        except KubeError as error:
            text = f"the deletion of the shoot cannot be confirmed: {error}"
            raise StepError(text, reason=Reason.GARDENER_ERR, actor=Actor.PROVIDER) from error

    async def _record(self, debt: Debt) -> None:
        try:
            await self._leftovers.record(debt)
        except KubeError as error:
            text = f"what the deletion may leave behind cannot be recorded: {error}"
            raise StepError(text, reason=Reason.GARDENER_ERR, after=DELETION) from error

    async def _force(self, context: RuntimeContext, shoot: ShootOutline) -> None:
        """Force the deletion when the Runtime asks for it and the garden would admit it."""
        asked = shoot.forceable and service.says_true(context.object, Annotation.FORCE_DELETION)
        if not asked and not shoot.forced:
            return
        debt = infrastructure_debt(context.object, shoot, self._garden.namespace)
        # Before: a process killed after the garden has agreed might never see the Shoot again.
        await self._record(debt)
        if not asked:
            return
        try:
            await self._garden.force_deletion(shoot)
        except KubeError as error:
            if isinstance(error, Invalid | Forbidden):
                await self._leftovers.withdraw(debt)
            text = f"The garden refuses to force the deletion of shoot {shoot.name}: {error}"
            context.event(WARNING, REFUSED, text)
            return
        left = "resources of the infrastructure may be left behind"
        context.event(WARNING, FORCED, f"Deletion of shoot {shoot.name} forced after {', '.join(shoot.codes)}; {left}")
