"""The Leftover controller: looks at what was released, and settles what it sees to be gone.

Conditions it owns: Settled of Leftovers, and all of their status.
Objects it owns: none. It deletes a settled Leftover after a time.
It watches: Leftovers, Shoots that go, GardenerClusters, their kubeconfig Secrets, the connections to clusters with
items, which the pool probes until they answer, and the items that are left there.
It never: deletes or changes an item, settles what it did not see to be gone, or deletes a Leftover with open items.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from typing import Any

import msgspec

from hortus.domains.leftovers import service
from hortus.domains.leftovers.following import ItemWatches
from hortus.domains.leftovers.looking import SHOOTS, ClusterWays, ItemLookup
from hortus.domains.leftovers.service import Sight
from hortus.engine import FALSE, NORMAL, TRUE, KindController, ReconcileContext, Result, Steps, Wiring, metadata_of
from hortus.engine.leftovers import open_items
from hortus.engine.leftovers.types import LEFTOVERS, SETTLED, Leftover, LeftoverPhase
from hortus.engine.remote import KubeconfigRef, RemotePool
from hortus.kube.errors import Conflict, NotFound
from hortus.kube.objects import Object, ObjectKey, format_time, key_of

MANAGER = "hortus-leftovers"
"""Our field manager."""


class LeftoverContext(ReconcileContext[Leftover]):
    """One look."""

    sights: dict[str, Sight]
    followed: Collection[str] = ()
    """Ids of items whose deletion a watch reports."""


class HeldClusters:
    """The clusters with items, each kept connected and probed while a Leftover needs it, and the watched items."""

    def __init__(self, pool: RemotePool, items: ItemWatches) -> None:
        self._pool = pool
        self.items = items
        self._places: dict[ObjectKey, KubeconfigRef] = {}

    def hold(self, key: ObjectKey, place: KubeconfigRef | None) -> None:
        """Hold the cluster at `place` for a Leftover, and no other."""
        if self._places.get(key) == place:
            return
        self.release(key)
        if place is not None:
            self._places[key] = place
            self._pool.hold(place)

    def release(self, key: ObjectKey) -> None:
        """Release the cluster of a Leftover, and watch nothing of it any more."""
        self.items.release(key)
        place = self._places.pop(key, None)
        if place is not None:
            self._pool.release(place)

    def users_of(self, place: KubeconfigRef) -> Iterable[ObjectKey]:
        """The Leftovers that hold a cluster."""
        return [key for key, held in self._places.items() if held == place]

    def shed(self, holds: Callable[[ObjectKey], bool]) -> None:
        """Release the clusters of Leftovers that have become another replica's."""
        for key in [key for key in self._places if not holds(key)]:
            self.release(key)


class LeftoverController(KindController[LeftoverContext]):
    """Reconciles one Leftover at a time."""

    kind = Leftover
    field_manager = MANAGER

    def __init__(
        self, wiring: Wiring[Any], *, ways: ClusterWays, lookup: ItemLookup, held: HeldClusters, keep: float
    ) -> None:
        super().__init__(wiring)
        self._ways = ways
        self._lookup = lookup
        self._held = held
        self._keep = keep
        self._leftovers = wiring.cache
        wiring.cache.add_index("cluster", lambda one: (f"{one.spec.cluster.namespace}/{one.spec.cluster.name}",))
        wiring.cache.add_index("shoot", _shoots_of)

    def make_context(self, raw: Object) -> LeftoverContext:
        return LeftoverContext(self.wiring, raw)

    def steps(self, context: LeftoverContext) -> Steps:
        return (self._expire, self._look, self._report)

    async def gone(self, key: ObjectKey) -> None:
        self._held.release(key)

    # Sources.

    def keys_of_cluster(self, cluster: Object) -> Iterable[ObjectKey]:
        """The Leftovers of a GardenerCluster."""
        metadata = metadata_of(cluster)
        return self._leftovers.keys_by("cluster", f"{metadata.namespace}/{metadata.name}")

    def keys_of_kubeconfig(self, secret: Object) -> Iterable[ObjectKey]:
        """The Leftovers of the GardenerCluster that a kubeconfig Secret belongs to."""
        metadata = metadata_of(secret)
        for owner in metadata.owner_references:
            yield from self._leftovers.keys_by("cluster", f"{metadata.namespace}/{owner.name}")

    def keys_of_shoot(self, shoot: Object) -> Iterable[ObjectKey]:
        """The Leftovers of a Shoot."""
        return self._leftovers.keys_by("shoot", key_of(shoot).name)

    # Steps.

    async def _expire(self, context: LeftoverContext) -> Result | None:
        """Delete a Leftover that has been settled for long enough."""
        leftover = context.object
        if leftover.status.phase != LeftoverPhase.SETTLED or open_items(leftover):
            return None
        self._held.release(context.key)
        left = service.time_kept(leftover, self._keep, context.now)
        if left > 0:
            return Result(requeue_after=left)
        metadata = leftover.metadata
        with suppress(NotFound, Conflict):  # changed meanwhile: the watch shows it, and it is decided again
            await self.wiring.client.delete(
                LEFTOVERS,
                metadata.name,
                metadata.namespace,
                uid=metadata.uid,
                resource_version=metadata.resource_version,
            )
        return Result()

    async def _look(self, context: LeftoverContext) -> None:
        leftover = context.object
        items = open_items(leftover)
        inside = any(item.where == "Cluster" for item in items)
        place = self._ways.place_of(leftover.spec.cluster) if inside else None
        self._held.hold(context.key, place)
        context.sights = await self._lookup.look(leftover.spec.cluster, place, items)
        left = [item for item in items if item.where == "Cluster" and context.sights[item.id].state == "Left"]
        context.followed = self._held.items.follow(context.key, place, left)

    async def _report(self, context: LeftoverContext) -> Result:
        leftover = context.object
        seen = service.outlook(leftover, context.sights, context.now)
        settled = seen.phase == LeftoverPhase.SETTLED
        context.set_status("observedGeneration", leftover.metadata.generation)
        context.set_status("phase", seen.phase)
        context.set_status("left", seen.left)
        context.set_status("items", [msgspec.to_builtins(item) for item in seen.items])
        context.condition(SETTLED, TRUE if settled else FALSE, reason=seen.phase, message=seen.message)
        if not settled:
            context.set_status("settledAt", None)
            return Result(requeue_after=service.next_look(context.sights, context.followed))
        if leftover.status.settled_at is None:
            context.set_status("settledAt", format_time(context.now))
            context.event(NORMAL, "Settled", seen.message)
        self._held.release(context.key)
        return Result(requeue_after=self._keep)


def _shoots_of(leftover: Leftover) -> Iterable[str]:
    """The Shoot of the cluster, and Shoots that are items themselves."""
    items = (item.object for item in leftover.spec.items)
    named = {one.name for one in items if one is not None and one.resource == SHOOTS.plural}
    return named | {leftover.spec.cluster.shoot} - {""}
