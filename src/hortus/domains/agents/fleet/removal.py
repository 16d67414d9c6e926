"""The steps of an AgentPlacement that is deleted: its objects leave the cluster, or a record says what may be left.

Deletion always ends: a cluster that cannot be emptied is released after `detach_after`, one without a way in at once.
"""

from __future__ import annotations

from typing import Final

import structlog

from hortus.domains.agents.fleet.context import (
    FINALIZER,
    PlacementContext,
    PlacementInventory,
    identity_of,
)
from hortus.domains.agents.fleet.members import AgentMembers, place_of
from hortus.domains.agents.fleet.reasons import PlacementReason
from hortus.domains.agents.types import AGENT_PLACEMENTS
from hortus.domains.inventory.types import ClusterProfile
from hortus.engine import WARNING, Actor, StepError, TypedCache
from hortus.engine.applysets import ApplyReport, ObjectAction
from hortus.engine.applysets.inventory import decode
from hortus.engine.leftovers import Debt, LeftoverRecorder, items_of_inventory, member_cluster, source_of
from hortus.engine.leftovers.types import LeftoverReason
from hortus.engine.remote import KubeconfigRef, MemberIdentity
from hortus.kube.errors import ApiError, KubeError
from hortus.kube.objects import ObjectKey, parse_time

PAUSE: Final = 15.0
"""Seconds between two attempts to empty a cluster. A watch reports a namespace that is gone."""
_SHOWN: Final = 10

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class PlacementRemoval:
    """Removes agents from clusters."""

    def __init__(
        self,
        members: AgentMembers,
        profiles: TypedCache[ClusterProfile],
        leftovers: LeftoverRecorder,
        *,
        detach_after: float,
    ) -> None:
        self._members = members
        self._profiles = profiles
        self._leftovers = leftovers
        self._detach_after = detach_after

    async def remove(self, context: PlacementContext) -> None:
        """Deletes the objects, or gives that up. Raises StepError until then."""
        if not context.inventory:
            return
        profile = self._profiles.get(ObjectKey(context.key.namespace, context.object.spec.cluster))
        place = place_of(profile) if profile is not None else None
        if place is None:
            await self._detach(context, None, LeftoverReason.CLUSTER_GONE, "there is no way into the cluster any more")
            return
        self._members.retire(context.key)
        context.reconciling(PlacementReason.REMOVING, "The agent is being removed from the cluster.")
        client = self._members.client_of(place)
        try:
            report = await self._members.set_of(context.object, PlacementInventory(context), client).delete()
        except KubeError as error:
            reason = LeftoverReason.NOT_PRUNED if isinstance(error, ApiError) else LeftoverReason.CLUSTER_UNREACHABLE
            await self._wait(context, place, reason, str(error))
            return
        if not report.complete and not _leaves_namespace(report):
            if report.of(ObjectAction.PRUNING):
                self._members.await_removal(context.key, place, identity_of(context.object))
            silent = any(not isinstance(one.error, ApiError) for one in report.failures)
            reason = LeftoverReason.CLUSTER_UNREACHABLE if silent else LeftoverReason.NOT_PRUNED
            await self._wait(context, place, reason, report.message(limit=1))

    async def release(self, context: PlacementContext) -> None:
        self._members.leave(context.key)
        await context.remove_finalizer(FINALIZER)

    async def _wait(self, context: PlacementContext, place: KubeconfigRef, reason: str, problem: str) -> None:
        """Raises StepError as long as the cluster has time; after that it is released."""
        began = parse_time(context.object.metadata.deletion_timestamp or "")
        left = began + self._detach_after - context.now
        if left > 0:
            raise StepError(
                f"cluster {context.object.spec.cluster}: {problem}",
                reason=PlacementReason.REMOVING,
                actor=Actor.PROVIDER,
                after=min(left + 1.0, PAUSE),
            )
        await self._detach(context, place, reason, problem)

    async def _detach(self, context: PlacementContext, place: KubeconfigRef | None, reason: str, problem: str) -> None:
        inventory = decode("".join(f"{line}\n" for line in context.inventory))
        metadata, cluster = context.object.metadata, context.object.spec.cluster
        member = self._members.pool.identity(place) if place is not None else MemberIdentity()
        await self._leftovers.record(
            Debt(
                source=source_of(AGENT_PLACEMENTS.kind, metadata),
                reason=reason,
                message=problem,
                items=tuple(items_of_inventory(inventory)),
                cluster=member_cluster(member, cluster, metadata.namespace),
                since=metadata.deletion_timestamp,
            )
        )
        left = ", ".join(map(str, sorted(inventory)[:_SHOWN]))
        context.event(
            WARNING,
            "Detached",
            f"Released without cluster {cluster}: {problem}. Objects that may be left there: {left}",
        )
        _log.warning("an agent was released without its cluster", placement=str(context.key), problem=problem)


def _leaves_namespace(report: ApplyReport) -> bool:
    """Reports whether only the namespace is left, which holds objects of others and stays for them."""
    undone = report.of(ObjectAction.FAILED, ObjectAction.HELD, ObjectAction.PRUNING, ObjectAction.WAITING)
    return all(one.action is ObjectAction.HELD and one.member.kind == "Namespace" for one in undone)
