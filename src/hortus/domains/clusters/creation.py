"""Steps that create the Shoot of a new Runtime.

All that can be refused without the garden is refused before anything is written there.
"""

from __future__ import annotations

from hortus.domains.clusters import seeds
from hortus.domains.clusters.context import RuntimeContext
from hortus.domains.clusters.conversion import Conversion
from hortus.domains.clusters.garden import Garden
from hortus.domains.clusters.pauses import AT_ONCE, GARDEN, REFUSAL
from hortus.domains.clusters.permits import Permits
from hortus.domains.clusters.refusals import Refusals, refused_for_good
from hortus.domains.clusters.shoot import authentication
from hortus.domains.clusters.types import ConditionType, Reason, Runtime
from hortus.engine import NEVER, UNKNOWN, Actor, Result, StepError
from hortus.kube.errors import AlreadyExists, Forbidden, KubeError
from hortus.kube.objects import Object, key_of


class Creation:
    """The steps; those of a Runtime with a Shoot do nothing."""

    def __init__(self, garden: Garden, conversion: Conversion, permits: Permits, refusals: Refusals) -> None:
        self._garden = garden
        self._refusals = refusals
        self._conversion = conversion
        self._permits = permits

    async def await_change(self, context: RuntimeContext) -> Result | None:
        """End the reconcile of a Runtime whose Shoot the garden refused while nothing has changed since."""
        if context.shoot is not None:
            return None
        pause = self._refusals.pause(context)
        return Result(requeue_after=pause) if pause else None

    async def find_seed(self, context: RuntimeContext) -> None:
        """End the reconcile where the control plane must lie in a region without a seed."""
        wanted = context.object.wanted.shoot
        if context.shoot is not None or not wanted.enforce_seed_location:
            return
        try:
            found = seeds.regions(await self._garden.seeds(), wanted.provider.type)
        except KubeError as error:
            text = f"Failed to verify whether seed is available for the region {wanted.region}."
            raise _refused(Reason.GARDENER_ERR, text, after=GARDEN) from error
        if wanted.region not in found:
            # The misspelling is the Go system's.
            text = (
                f"Cannot find available seed for the region {wanted.region}. "
                f"The followig regions have seeds ready: [{' '.join(found)}]."
            )
            raise _refused(Reason.SEED_NOT_FOUND, text, actor=Actor.USER)

    async def create(self, context: RuntimeContext) -> Result | None:
        """Create the Shoot, which ends the reconcile."""
        if context.shoot is not None:
            return None
        shoot = await self._conversion.shoot(context.object)
        if self._conversion.structured(context.object):
            await authenticate(self._garden, context.object, self._conversion, self._permits)
        try:
            if not await self._create(context, shoot):
                return Result(requeue_after=AT_ONCE)
        except KubeError as error:
            after = self._after(context, error)
            raise _refused(Reason.GARDENER_ERR, f"Gardener API create error: {error}", after=after) from error
        self._refusals.forget(context.key)
        context.pending(ConditionType.PROVISIONED, UNKNOWN, Reason.PENDING, "Shoot is pending")
        self._conversion.report_remarks(context, context.object)
        return Result(requeue_after=GARDEN)

    def _after(self, context: RuntimeContext, error: KubeError) -> float:
        if refused_for_good(error):
            return self._refusals.note(context, REFUSAL)
        return self._refusals.note(context, GARDEN) if isinstance(error, Forbidden) else GARDEN

    async def _create(self, context: RuntimeContext, shoot: Object) -> bool:
        """Create the Shoot. Returns False when there is one, which the cache then knows. Raises KubeError."""
        try:
            context.shoot = await self._garden.create(shoot)
        except AlreadyExists:
            # Made by this controller before it could report that, or by somebody else: the next reconcile decides.
            await self._garden.ask(context.shoot_name)
            return False
        return True


async def authenticate(garden: Garden, runtime: Runtime, conversion: Conversion, permits: Permits) -> None:
    """Apply the ConfigMap with structured authentication that the Runtime wants. Raises StepError."""
    config_map = authentication(runtime, conversion.configuration)
    await permits.check_config_map(runtime, key_of(config_map).name)
    try:
        await garden.apply_config_map(config_map)
    except KubeError as error:
        text = "Failed to create structured authentication config map"
        raise _refused(Reason.OIDC_ERR, text) from error


def _refused(reason: str, text: str, *, after: float = NEVER, actor: Actor = Actor.OPERATOR) -> StepError:
    return StepError(text, reason=reason, condition=ConditionType.PROVISIONED, actor=actor, after=after)
