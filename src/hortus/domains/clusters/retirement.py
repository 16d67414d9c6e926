"""A Runtime goes, and with it its kubeconfig, its Shoot and all that was made for them (section 2.2, deletion).

First the GardenerCluster, then the Shoot, then the finalizer. The Go system forgets the GardenerCluster when the Shoot
is missing; here it goes in each case. What is not ours is left alone. A deletion that the infrastructure blocks may be
forced, if the Runtime says so and the garden admits it (gardener, section 1.5).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

import structlog

from hortus.domains.clusters import service
from hortus.domains.clusters.garden import Garden
from hortus.domains.clusters.outline import ShootOutline
from hortus.domains.clusters.pauses import AT_ONCE, DELETION, GARDEN, KUBECONFIG
from hortus.domains.clusters.shoot import authentication_name
from hortus.domains.clusters.types import FINALIZER, RUNTIMES, Annotation, ConditionType, Reason
from hortus.domains.clusters.visit import Visit
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.engine import (
    FALSE,
    TRUE,
    UNKNOWN,
    WARNING,
    Actor,
    Cache,
    Result,
    StepError,
    has_finalizer,
    remove_finalizer,
)
from hortus.kube import Client
from hortus.kube.errors import Forbidden, KubeError, NotFound

_KIND = ConditionType.DEPROVISIONED
FORCED = "ShootDeletionForced"
"""Reason of the event about a forced deletion."""
REFUSED = "ShootForceDeletionRefused"

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Retirement:
    def __init__(
        self,
        *,
        client: Client,
        clusters: Cache,
        garden: Garden,
        unexpected: Callable[[], None],
    ) -> None:
        """`unexpected` counts a stop that leaves no way forward."""
        self._client = client
        self._clusters = clusters
        self._garden = garden
        self._unexpected = unexpected

    async def retire(self, visit: Visit, live: ShootOutline) -> Result:
        """With a Shoot that is ours. Raises StepError."""
        if (pause := await self._disconnect(visit)) is not None:
            return pause
        known = visit.says(_KIND, TRUE, Reason.KUBECONFIG_DELETED)
        visit.terminating(_KIND, TRUE, Reason.KUBECONFIG_DELETED, "Gardener Cluster CR successfully deleted")
        if not known:
            await visit.save()
            return Result(requeue_after=AT_ONCE)
        return await self._remove_shoot(visit, live)

    async def release(self, visit: Visit, *, taken: bool, shared: bool) -> Result | None:
        """Without a Shoot that is ours.

        `taken`: somebody else has one of that name. `shared`: another Runtime has the same GardenerCluster.
        """
        if not has_finalizer(visit.runtime, FINALIZER):
            self._unexpected()
            return None
        name = service.shoot_name(visit.runtime)
        try:
            if not taken and await self._garden.ask(name) is not None:
                # The watch was behind: there is one.
                return Result(requeue_after=GARDEN)
            if not taken:
                await self._forget(authentication_name(service.shoot_name(visit.runtime)))
        except KubeError as error:
            _log.warning("the garden cannot be asked whether the shoot is gone", error=str(error))
            return Result(requeue_after=GARDEN)
        if not shared and (pause := await self._disconnect(visit)) is not None:
            return pause
        await remove_finalizer(self._client, RUNTIMES, visit.runtime, FINALIZER)
        return None

    async def _forget(self, name: str) -> None:
        """Delete the ConfigMap that a Shoot left. Raises KubeError."""
        try:
            await self._garden.delete_config_map(name)
        except Forbidden:
            # Without permission to delete one there was none to make it: all clusters have their OIDC in the Shoot.
            _log.info("config maps may not be deleted in the garden, so none was made", name=name)

    async def _disconnect(self, visit: Visit) -> Result | None:
        """None once there is no GardenerCluster of this Runtime any more."""
        key = service.cluster_key(visit.runtime)
        cluster = self._clusters.get(key)
        record = service.record_of(visit.runtime)
        shoots = {service.shoot_name(visit.runtime), *(() if record is None else (record.shoot,))}
        if cluster is None or service.shoot_of(cluster) not in shoots:
            return None
        if cluster["metadata"].get("deletionTimestamp"):
            return Result(requeue_after=KUBECONFIG)
        try:
            await self._client.delete(GARDENER_CLUSTERS, key.name, key.namespace, uid=cluster["metadata"]["uid"])
        except NotFound:
            pass
        except KubeError as error:
            visit.terminating(_KIND, FALSE, Reason.GARDENER_ERR, f"Gardener API delete error: {error}")
            await visit.save()
            return Result(requeue_after=KUBECONFIG)
        visit.terminating(_KIND, UNKNOWN, Reason.KUBECONFIG_DELETED, "Runtime shoot deletion started")
        await visit.save()
        return Result(requeue_after=KUBECONFIG)

    async def _remove_shoot(self, visit: Visit, live: ShootOutline) -> Result:
        if live.deleting:
            await self._force(visit, live)
            return Result(requeue_after=DELETION)
        if not live.confirmed:
            await self._confirm(live)
        if live.authentication and not await self._forget_authentication(visit, live):
            return Result(requeue_after=DELETION)
        try:
            await self._garden.delete(live)
        except KubeError as error:
            _log.warning("the shoot cannot be deleted", error=str(error))
            visit.terminating(_KIND, FALSE, Reason.SHOOT_DELETED, "Gardener API shoot delete error")
        else:
            visit.terminating(_KIND, UNKNOWN, Reason.SHOOT_DELETED, "Runtime shoot deletion started")
        await visit.save()
        return Result(requeue_after=DELETION)

    async def _confirm(self, live: ShootOutline) -> None:
        try:
            await self._garden.confirm_deletion(live)
        except KubeError as error:
            _again("the deletion of the shoot cannot be confirmed", error)

    async def _forget_authentication(self, visit: Visit, live: ShootOutline) -> bool:
        try:
            await self._garden.delete_config_map(live.authentication)
        except KubeError as error:
            text = f"Failed to delete structured authentication config map: {error}"
            visit.terminating(_KIND, FALSE, Reason.STRUCTURED_CONFIG_DELETED, text)
            await visit.save()
            return False
        return True

    async def _force(self, visit: Visit, live: ShootOutline) -> None:
        """Force the deletion when the Runtime asks for it and the garden would admit it."""
        if not service.says_true(visit.runtime, Annotation.FORCE_DELETION) or not live.forceable:
            return
        codes = ", ".join(live.codes)
        try:
            await self._garden.force_deletion(live)
        except KubeError as error:
            visit.tell(WARNING, REFUSED, f"The garden refuses to force the deletion of shoot {live.name}: {error}")
            return
        text = f"Deletion of shoot {live.name} forced after {codes}; resources of the infrastructure may be left behind"
        visit.tell(WARNING, FORCED, text)


def _again(what: str, error: KubeError) -> NoReturn:
    raise StepError(f"{what}: {error}", reason=Reason.GARDENER_ERR, actor=Actor.PROVIDER) from error
