"""Steps that take back what was made for a request: its Secrets, its objects in the cluster, its finalizer.

The Secrets are deleted first: a cluster that does not answer holds up the deletion of its own objects alone.
"""

from __future__ import annotations

import orjson
import structlog

from hortus.domains.access.context import AccessContext, Obstacle, StatusInventory
from hortus.domains.access.debts import debt_of
from hortus.domains.access.inside import Clusters
from hortus.domains.access.lookup import ClusterLookup
from hortus.domains.access.metrics import AccessMetrics
from hortus.domains.access.service import Withdrawal
from hortus.domains.access.types import FINALIZER, Reason
from hortus.domains.access.vault import Vault
from hortus.engine import WARNING, StepError
from hortus.engine.applysets.inventory import Member
from hortus.engine.leftovers import LeftoverRecorder
from hortus.engine.leftovers.types import LeftoverReason
from hortus.engine.remote import MemberIdentity, RemoteUnavailable
from hortus.kube.errors import ApiError, TransportError
from hortus.kube.objects import parse_time

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

REMOVAL_PAUSE = 15.0
"""Seconds between two attempts to remove objects from a cluster that does not answer."""


class AccessRemoval:
    """The steps of a deletion, and `withdraw` for a request that stays and is refused."""

    def __init__(
        self,
        *,
        vault: Vault,
        lookup: ClusterLookup,
        clusters: Clusters,
        leftovers: LeftoverRecorder,
        metrics: AccessMetrics,
        detach_after: float,
    ) -> None:
        """`detach_after` is the time in seconds after which a cluster that cannot be emptied is given up."""
        self._vault = vault
        self._lookup = lookup
        self._clusters = clusters
        self._leftovers = leftovers
        self._metrics = metrics
        self._detach_after = detach_after

    async def delete_secrets(self, context: AccessContext) -> None:
        await self._vault.clear(context.object)

    async def delete_objects(self, context: AccessContext) -> None:
        """Delete all objects in the cluster, or give that up: its time is over, or the cluster is gone."""
        obstacle = await self._empty(context)
        if obstacle is None:
            return
        began = parse_time(context.object.metadata.deletion_timestamp or "")
        left = began + self._detach_after - context.now
        if left > 0 and not await self._lookup.gone(context.object):
            raise StepError(obstacle.message, reason=Reason.REMOVING, after=min(left + 1.0, REMOVAL_PAUSE))
        await self._record(context, obstacle)
        self._report_detached(context, obstacle.message)

    async def release(self, context: AccessContext) -> None:
        self._clusters.leave(context.key)
        await context.remove_finalizer(FINALIZER)
        context.released = True

    async def withdraw(self, context: AccessContext, error: Withdrawal) -> StepError:
        """Take back what was granted before; the failure to report says what hinders that."""
        await self._vault.clear(context.object)
        obstacle = await self._empty(context)
        if obstacle is None:
            self._clusters.leave(context.key)
            return error
        text = f"{error.message}; what was granted before is still being taken back: {obstacle.message}"
        return StepError(text, reason=error.reason, actor=error.actor, after=REMOVAL_PAUSE)

    async def _empty(self, context: AccessContext) -> Obstacle | None:
        """Delete all objects in the cluster; None when none is left, else the obstacle."""
        if not context.inventory:
            return None
        known = self._lookup.known(context.object)
        if known is None:
            text = "the GardenerCluster is gone, or has no kubeconfig any more"
            return Obstacle(text, LeftoverReason.CLUSTER_GONE)
        try:
            report = await self._clusters.set_of(StatusInventory(context, known[0]), *known).delete()
        except (RemoteUnavailable, TransportError) as error:
            return Obstacle(str(error), LeftoverReason.CLUSTER_UNREACHABLE)
        except ApiError as error:
            return Obstacle(str(error), LeftoverReason.NOT_PRUNED)
        if report.complete:
            return None
        # One obstacle is enough: the other objects wait for the same, or for this one.
        for outcome in report.failures:
            if isinstance(outcome.error, TransportError):
                return Obstacle(str(outcome.error), LeftoverReason.CLUSTER_UNREACHABLE)
        return Obstacle(report.message(limit=1), LeftoverReason.NOT_PRUNED)

    async def _record(self, context: AccessContext, obstacle: Obstacle) -> None:
        """Record the objects that may be left, before the request is released. Raises KubeError."""
        known = self._lookup.known(context.object)
        member = MemberIdentity() if known is None else self._clusters.pool.identity(known[1])
        await self._leftovers.record(debt_of(context, obstacle, member))

    def _report_detached(self, context: AccessContext, problem: str) -> None:
        cluster = context.object.status.cluster
        left = ", ".join(str(Member(*orjson.loads(line)[:4])) for line in context.inventory)
        text = f"Released without the cluster {cluster}: {problem}. Objects that may be left there: {left}"
        context.event(WARNING, Reason.DETACHED, text)
        self._metrics.detached()
        _log.warning("a request was released without its cluster", request=str(context.key), cluster=cluster, left=left)
