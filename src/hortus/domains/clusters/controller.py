"""The Runtime controller: a Shoot that is as its Runtime says, connected and equipped; and its end.

Conditions it owns: `Provisioned`, `KubeconfigReady`, `OidcConfigured`, `Configured`, `Deprovisioned` of Runtimes, with
their `status.state` and `provisioningCompleted`.
Objects it owns: the Shoot that a Runtime names, its ConfigMap with structured authentication, its GardenerCluster, and
in the cluster what `inside` puts there. It holds a Runtime by a finalizer.
It watches: Runtimes (spec and metadata), Shoots of the project (whether an operation ended, not how far it is),
GardenerClusters (whether they are Ready, or gone). What no watch tells is looked at after the times in `pauses`.
It never: serves a Runtime that awaits its release (`adoption`), adopts, changes or deletes a Shoot that belongs to
somebody else, polls what is at rest, writes a status that says nothing new, shows a credential.
"""

from __future__ import annotations

from collections.abc import Iterable

import structlog

from hortus.domains.clusters import claims, service, waiting
from hortus.domains.clusters.connecting import Connecting
from hortus.domains.clusters.creation import Creation
from hortus.domains.clusters.garden import Garden
from hortus.domains.clusters.metrics import RuntimeMetrics
from hortus.domains.clusters.outline import CREATE, RECONCILE, SUCCEEDED, ShootOutline
from hortus.domains.clusters.patching import Patching, Superseded, sent, superseded
from hortus.domains.clusters.pauses import AT_ONCE, GARDEN
from hortus.domains.clusters.retirement import Retirement
from hortus.domains.clusters.service import UnreadableGeneration
from hortus.domains.clusters.types import FIELD_MANAGER, FINALIZER, RUNTIMES, Annotation, ConditionType, Reason, State
from hortus.domains.clusters.visit import Desk, Setback, Visit
from hortus.engine import FALSE, UNKNOWN, Cache, Result, add_finalizer, has_finalizer, is_deleting, remove_finalizer
from hortus.kube import Client
from hortus.kube.errors import KubeError
from hortus.kube.objects import Object, ObjectKey, key_of

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class RuntimeController:
    """Reconciles one Runtime at a time; see the module's head."""

    def __init__(
        self,
        *,
        client: Client,
        runtimes: Cache,
        garden: Garden,
        desk: Desk,
        metrics: RuntimeMetrics,
        creation: Creation,
        patching: Patching,
        connecting: Connecting,
        retirement: Retirement,
    ) -> None:
        self._client = client
        self._runtimes = runtimes
        self._garden = garden
        self._desk = desk
        self._metrics = metrics
        self._creation = creation
        self._patching = patching
        self._connecting = connecting
        self._retirement = retirement
        runtimes.add_index("shoot", _by_shoot)
        runtimes.add_index("id", _by_id)

    async def reconcile(self, key: ObjectKey) -> Result | None:
        runtime = self._runtimes.get(key)
        if runtime is None:
            self._metrics.clear(key)
            return None
        if service.locked(runtime) and not has_finalizer(runtime, FINALIZER):
            return None
        try:
            named = await self._garden.find(service.shoot_name(runtime)) if service.has_spec(runtime) else None
        except KubeError as error:
            _log.warning("the garden cannot be asked for the shoot", error=str(error))
            return Result(requeue_after=GARDEN)
        visit = Visit(self._desk, runtime, named)
        try:
            return await self._look(visit, named)
        finally:
            self._metrics.set_state(key, visit.runtime)

    def keys_of_shoot(self, shoot: Object) -> Iterable[ObjectKey]:
        """The Runtimes that name this Shoot."""
        return self._runtimes.keys_by("shoot", shoot["metadata"]["name"])

    def keys_of_cluster(self, cluster: Object) -> Iterable[ObjectKey]:
        """The Runtimes that a GardenerCluster was made for."""
        return self._runtimes.keys_by("id", cluster["metadata"]["name"])

    def keys_of_rivals(self, runtime: Object) -> Iterable[ObjectKey]:
        """The Runtimes that may have the Shoot, or the id, now that this one is gone."""
        return dict.fromkeys(
            [
                *self._runtimes.keys_by("shoot", service.shoot_name(runtime)),
                *self._runtimes.keys_by("id", service.runtime_id(runtime)),
            ]
        )

    async def _look(self, visit: Visit, named: ShootOutline | None) -> Result | None:
        """Run the steps, and show where they ended when they could not go on."""
        try:
            if not service.has_spec(visit.runtime):
                await self._refuse(visit)
                return None
            if is_deleting(visit.runtime):
                return await self._retire(visit, named)
            return await self._provide(visit, named)
        except Setback as setback:
            return await self._stop(visit, setback)
        except Superseded as error:
            superseded(visit, error)
            await visit.save()
            return Result(requeue_after=GARDEN)
        except UnreadableGeneration:
            return Result(requeue_after=GARDEN)
        except waiting.UnknownOperation as error:
            _log.warning("the shoot's last operation is in a state that is not known", state=str(error))
            self._metrics.unexpected_stop()
            return None

    async def _stop(self, visit: Visit, setback: Setback) -> Result | None:
        visit.pending(setback.kind, FALSE, setback.reason, setback.message)
        await visit.save()
        if setback.counted:
            self._metrics.unexpected_stop()
        return None if setback.after is None else Result(requeue_after=setback.after)

    async def _refuse(self, visit: Visit) -> None:
        """Without a spec nothing can be done, nor about a Shoot that there was before. Raises Setback."""
        runtime = visit.runtime
        left = [live for live in await self._shoots_of(runtime, None) if not service.leaves(runtime, live)]
        if not is_deleting(runtime):
            raise Setback(Reason.CONVERSION_ERR, "Runtime conversion error spec: Required value")
        if left:
            text = f"spec: Required value: shoot {left[0].name} is this Runtime's; give it its spec back to delete both"
            raise Setback(Reason.CONVERSION_ERR, text, kind=ConditionType.DEPROVISIONED)
        if has_finalizer(runtime, FINALIZER):
            await remove_finalizer(self._client, RUNTIMES, runtime, FINALIZER)

    async def _provide(self, visit: Visit, named: ShootOutline | None) -> Result | None:
        runtime = visit.runtime
        if not has_finalizer(runtime, FINALIZER):
            self._runtimes.learn(await add_finalizer(self._client, RUNTIMES, runtime, FINALIZER))
            return Result(requeue_after=AT_ONCE)
        if named is None and not visit.has(ConditionType.PROVISIONED):
            visit.pending(ConditionType.PROVISIONED, UNKNOWN, Reason.INITIALISED, "Runtime initialized")
            await visit.save()
            return Result(requeue_after=AT_ONCE)
        self._check_claim(visit, named)
        if named is None:
            return await self._creation.create(visit)
        if await self._record(visit, named):
            return Result(requeue_after=AT_ONCE)
        return await self._process(visit, named)

    async def _record(self, visit: Visit, live: ShootOutline) -> bool:
        """Note on the Runtime which Shoot it has. Returns whether that had to be written."""
        runtime = visit.runtime
        wanted = service.Record(runtime["metadata"]["uid"], service.runtime_id(runtime), live.name, live.uid)
        if not all(wanted) or service.record_of(runtime) == wanted:
            return False
        metadata = runtime["metadata"]
        patch = {"metadata": {"uid": metadata["uid"], "annotations": {Annotation.CLUSTER: "/".join(wanted)}}}
        changed = await self._client.patch(
            RUNTIMES, metadata["name"], patch, metadata["namespace"], field_manager=FIELD_MANAGER
        )
        self._runtimes.learn(changed)
        return True

    async def _process(self, visit: Visit, live: ShootOutline) -> Result | None:
        """Whatever the Shoot needs now (section 2.2, SelectShootProcessing)."""
        if not live.domain or not live.operation:
            return Result(requeue_after=GARDEN)
        if service.patch_due(visit.runtime, live):
            return await self._patch(visit)
        if not _under_way(visit):
            return await self._connecting.restore(visit, live)
        if not live.current:
            return Result(requeue_after=GARDEN)
        return await self._await(visit, live)

    async def _patch(self, visit: Visit) -> Result | None:
        changed = await self._patching.patch(visit)
        sent(visit, changed=changed)
        live = visit.live
        if changed or live is None:
            await visit.save()
            return Result(requeue_after=GARDEN)
        if live.state != SUCCEEDED:
            return await self._await(visit, live)
        return await self._connecting.connect(visit, live)

    async def _await(self, visit: Visit, live: ShootOutline) -> Result | None:
        phases = {CREATE: waiting.creation, RECONCILE: waiting.reconciliation}
        if live.operation not in phases:
            return None
        pause = await phases[live.operation](visit, live)
        return pause if pause is not None else await self._connecting.connect(visit, live)

    async def _retire(self, visit: Visit, named: ShootOutline | None) -> Result | None:
        runtime = visit.runtime
        rivals = self._rivals(runtime)
        if named is not None and not service.leaves(runtime, named) and claims.owns(runtime, named, rivals):
            return await self._retirement.retire(visit, named)
        if held := claims.left_behind(runtime, await self._shoots_of(runtime, named), self._others(runtime)):
            raise Setback(Reason.CONVERSION_ERR, held, kind=ConditionType.DEPROVISIONED)
        key = service.cluster_key(runtime)
        shared = any(service.cluster_key(other) == key for other in self._others(runtime))
        return await self._retirement.release(visit, taken=named is not None, shared=shared)

    async def _shoots_of(self, runtime: Object, named: ShootOutline | None) -> list[ShootOutline]:
        """All Shoots that might be the Runtime's: by their names, and by what they say of themselves."""
        found = list(self._garden.owned_by(service.runtime_id(runtime)))
        record = service.record_of(runtime)
        recorded = await self._garden.find(record.shoot) if record is not None else None
        if record is not None and recorded is not None and recorded.uid == record.uid:
            found.append(recorded)
        return found if named is None else [*found, named]

    def _check_claim(self, visit: Visit, named: ShootOutline | None) -> None:
        """Raises Setback when the Shoot of that name is not ours to have."""
        runtime = visit.runtime
        problem = claims.relabelled(runtime) or claims.objection(runtime, named, self._rivals(runtime))
        if not problem and named is None:
            identity = service.runtime_id(runtime)
            namesakes = self._namesakes(runtime)
            problem = claims.doubled(runtime, namesakes)
            problem = problem or claims.renamed(runtime, self._garden.owned_by(identity), namesakes)
        if problem and service.has_had_a_shoot(runtime):
            raise Setback(Reason.PROCESSING_ERR, f"{claims.DISPUTED}{problem}")
        if problem:
            raise Setback(Reason.CREATION_ERR, f"Shoot creation failed: {problem}")

    def _rivals(self, runtime: Object) -> list[Object]:
        """The other Runtimes that name the same Shoot."""
        named = self._runtimes.by("shoot", service.shoot_name(runtime))
        return [rival for rival in named if key_of(rival) != key_of(runtime)]

    def _namesakes(self, runtime: Object) -> list[Object]:
        """The other Runtimes with the same runtime-id."""
        found = self._runtimes.by("id", service.runtime_id(runtime))
        return [other for other in found if service.runtime_id(runtime) and key_of(other) != key_of(runtime)]

    def _others(self, runtime: Object) -> list[Object]:
        """The other Runtimes that name the same Shoot, or have the same id, or that its Shoot says it belongs to."""
        return [*self._rivals(runtime), *self._namesakes(runtime)]


def _under_way(visit: Visit) -> bool:
    """Whether the state asks for work. What failed, or is Ready, rests: a restart must not stir a whole fleet.

    A missing kubeconfig is the exception: it comes back by itself. So is a dispute about the Shoot that is settled.
    """
    if service.state_of(visit.runtime) in ("", State.PENDING):
        return True
    if visit.says(ConditionType.CONFIGURED, FALSE, Reason.CONFIGURATION_ERR):
        return True
    return visit.message(ConditionType.PROVISIONED).startswith(claims.DISPUTED)


def _by_shoot(runtime: Object) -> Iterable[str]:
    name = service.shoot_name(runtime)
    return (name,) if name else ()


def _by_id(runtime: Object) -> Iterable[str]:
    identity = service.runtime_id(runtime)
    return (identity,) if identity else ()
