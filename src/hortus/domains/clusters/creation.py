"""The Shoot of a new Runtime is created (section 2.2, CreateShoot).

All that can be refused without the garden is refused before anything is written there.
"""

from __future__ import annotations

from hortus.domains.clusters import seeds, service
from hortus.domains.clusters.conversion import Conversion
from hortus.domains.clusters.garden import Garden
from hortus.domains.clusters.pauses import AT_ONCE, GARDEN
from hortus.domains.clusters.shoot import authentication
from hortus.domains.clusters.types import ConditionType, Reason, Runtime
from hortus.domains.clusters.visit import Setback, Visit
from hortus.engine import UNKNOWN, Result
from hortus.engine.typed import read
from hortus.kube.errors import AlreadyExists, KubeError
from hortus.kube.objects import Object


class Creation:
    def __init__(self, garden: Garden, conversion: Conversion) -> None:
        self._garden = garden
        self._conversion = conversion

    async def create(self, visit: Visit) -> Result:
        """Raises Setback."""
        runtime = visit.runtime
        if runtime["spec"]["shoot"].get("enforceSeedLocation"):
            await self._find_seed(runtime)
        shoot = await self._conversion.shoot(runtime)
        if self._conversion.structured(runtime):
            await authenticate(self._garden, runtime, self._conversion)
        try:
            visit.live = await self._garden.create(shoot)
        except AlreadyExists:
            # Made by ourselves before we could say so, or by somebody else: the next visit sees whose it is.
            await self._garden.ask(service.shoot_name(runtime))
            return Result(requeue_after=AT_ONCE)
        except KubeError as error:
            raise Setback(Reason.GARDENER_ERR, f"Gardener API create error: {error}", after=GARDEN) from error
        visit.pending(ConditionType.PROVISIONED, UNKNOWN, Reason.PENDING, "Shoot is pending")
        await visit.save()
        self._conversion.tell_remarks(visit)
        return Result(requeue_after=GARDEN)

    async def _find_seed(self, runtime: Object) -> None:
        region = runtime["spec"]["shoot"]["region"]
        try:
            found = seeds.regions(await self._garden.seeds(), service.provider(runtime))
        except KubeError as error:
            text = f"Failed to verify whether seed is available for the region {region}."
            raise Setback(Reason.GARDENER_ERR, text, after=GARDEN) from error
        if region not in found:
            # The misspelling is the Go system's.
            text = (
                f"Cannot find available seed for the region {region}. "
                f"The followig regions have seeds ready: [{' '.join(found)}]."
            )
            raise Setback(Reason.SEED_NOT_FOUND, text)


async def authenticate(garden: Garden, runtime: Object, conversion: Conversion) -> None:
    """Have the ConfigMap with structured authentication as the Runtime wants it. Raises Setback."""
    try:
        await garden.apply_config_map(authentication(read(Runtime, runtime), conversion.configuration))
    except KubeError as error:
        text = "Failed to create structured authentication config map"
        raise Setback(Reason.OIDC_ERR, text) from error
