"""Steps that keep a Runtime to its own Shoot, and the other Runtimes that may contend for that one."""

from __future__ import annotations

from collections.abc import Iterable

from hortus.domains.clusters import claims, service
from hortus.domains.clusters.context import RuntimeContext
from hortus.domains.clusters.garden import Garden
from hortus.domains.clusters.outline import ShootOutline
from hortus.domains.clusters.permits import Permits
from hortus.domains.clusters.reading import head_of, runtime_of, shoot_name_of, spec_problem
from hortus.domains.clusters.types import FINALIZER, Annotation, ConditionType, Reason, Runtime
from hortus.engine import DONE, NEVER, Actor, Cache, Result, StepError
from hortus.kube.objects import Object, ObjectKey, key_of


class Contenders:
    """The Runtimes by the Shoot that they name and by their runtime-id."""

    def __init__(self, runtimes: Cache) -> None:
        self._runtimes = runtimes
        runtimes.add_index("shoot", lambda document: filter(None, (shoot_name_of(document),)))
        runtimes.add_index("id", lambda document: filter(None, (service.runtime_id(head_of(document)),)))

    def rivals(self, runtime: Runtime, shoot: str) -> list[Runtime]:
        """The other Runtimes that name this Shoot."""
        return self._others_by("shoot", shoot, runtime)

    def namesakes(self, runtime: Runtime) -> list[Runtime]:
        """The other Runtimes with the same runtime-id."""
        return self._others_by("id", service.runtime_id(runtime), runtime)

    def others(self, runtime: Runtime, shoot: str) -> list[Runtime]:
        """The other Runtimes that name this Shoot or have the same runtime-id."""
        return [*self.rivals(runtime, shoot), *self.namesakes(runtime)]

    def _others_by(self, index: str, value: str, runtime: Runtime) -> list[Runtime]:
        own = ObjectKey(runtime.metadata.namespace, runtime.metadata.name)
        others = (key for key in self._runtimes.keys_by(index, value) if key != own) if value else ()
        return [runtime_of(self._runtimes[key]) for key in others]

    # Keys for sources.

    def of_shoot(self, shoot: Object) -> Iterable[ObjectKey]:
        """The Runtimes that name this Shoot."""
        return self._runtimes.keys_by("shoot", key_of(shoot).name)

    def of_cluster(self, cluster: Object) -> Iterable[ObjectKey]:
        """The Runtimes that a GardenerCluster was made for."""
        return self._runtimes.keys_by("id", key_of(cluster).name)

    def of_deleted(self, document: Object) -> Iterable[ObjectKey]:
        """The Runtimes that may have the Shoot, or the id, now that this one is gone."""
        shoot, identity = shoot_name_of(document), service.runtime_id(head_of(document))
        return dict.fromkeys([*self._runtimes.keys_by("shoot", shoot), *self._runtimes.keys_by("id", identity)])


class Claiming:
    """The steps."""

    def __init__(self, contenders: Contenders, garden: Garden, permits: Permits) -> None:
        self._contenders = contenders
        self._garden = garden
        self._permits = permits

    async def check(self, context: RuntimeContext) -> None:
        """End the reconcile of a Runtime that does not own the Shoot that it names."""
        runtime = context.object
        rivals = await self._permits.contenders(self._contenders.rivals(runtime, context.shoot_name), context.shoot)
        problem = claims.relabelled(runtime) or claims.objection(runtime, context.shoot, rivals)
        if not problem and context.shoot is None:
            namesakes = await self._permits.contenders(self._contenders.namesakes(runtime), None)
            problem = claims.doubled(runtime, namesakes)
            owned = self._garden.owned_by(service.runtime_id(runtime))
            problem = problem or claims.renamed(runtime, owned, namesakes)
        if not problem:
            return
        disputed = service.has_had_a_shoot(runtime)
        raise StepError(
            f"{claims.DISPUTED}{problem}" if disputed else f"Shoot creation failed: {problem}",
            reason=Reason.PROCESSING_ERR if disputed else Reason.CREATION_ERR,
            condition=ConditionType.PROVISIONED,
            actor=Actor.USER,
            after=NEVER,
        )

    async def record(self, context: RuntimeContext) -> None:
        """Record the Runtime's Shoot on the Runtime."""
        runtime, shoot = context.object, context.present_shoot
        uid = runtime.metadata.uid
        wanted = service.Record(uid, service.runtime_id(runtime), shoot.name, shoot.uid)
        if all(wanted) and service.record_of(runtime) != wanted:
            # Bound to the uid: another Runtime of the same name has another Shoot.
            await context.patch({"metadata": {"uid": uid, "annotations": {Annotation.CLUSTER: "/".join(wanted)}}})

    async def check_nameless(self, context: RuntimeContext) -> Result | None:
        """Release a Runtime that is being deleted and names no Shoot, unless one says that it belongs to it."""
        if context.shoot_name:
            return None
        runtime = context.object
        found = await self._shoots_of(runtime, None)
        if left := [shoot.name for shoot in found if not service.leaves(runtime, shoot)]:
            problem = spec_problem(context.raw)
            raise _blocked(f"{problem}: shoot {left[0]} is this Runtime's; give it its spec back to delete both")
        await context.remove_finalizer(FINALIZER)
        return DONE

    async def check_left_behind(self, context: RuntimeContext) -> None:
        """End the reconcile of a Runtime whose deletion would leave a Shoot behind; forget a Shoot that is to stay."""
        runtime, shoot, name = context.object, context.shoot, context.shoot_name
        rivals = await self._permits.contenders(self._contenders.rivals(runtime, name), shoot)
        owned = shoot is not None and not service.leaves(runtime, shoot) and claims.owns(runtime, shoot, rivals)
        # A Runtime that may not delete it yields to one that may have it, and leaves no record of it.
        if shoot is not None and owned and (not rivals or await self._permits.may_delete(runtime, shoot)):
            return
        others = self._contenders.others(runtime, name)
        entitled = await self._permits.contenders(others, shoot)
        if problem := claims.left_behind(runtime, await self._shoots_of(runtime, shoot), entitled):
            raise _blocked(problem)
        key = service.cluster_key(runtime)
        context.shared = any(service.cluster_key(other) == key for other in others)
        context.taken, context.shoot = shoot is not None, None

    async def _shoots_of(self, runtime: Runtime, named: ShootOutline | None) -> list[ShootOutline]:
        """The Shoots that may be the Runtime's and that it may delete: by their names, and by their own annotations."""
        found = list(self._garden.owned_by(service.runtime_id(runtime)))
        record = service.record_of(runtime)
        recorded = await self._garden.find(record.shoot) if record is not None else None
        if record is not None and recorded is not None and recorded.uid == record.uid:
            found.append(recorded)
        found += [] if named is None else [named]
        return [one for one in found if await self._permits.may_delete(runtime, one)]


def _blocked(text: str) -> StepError:
    return StepError(
        text, reason=Reason.CONVERSION_ERR, condition=ConditionType.DEPROVISIONED, actor=Actor.USER, after=NEVER
    )
