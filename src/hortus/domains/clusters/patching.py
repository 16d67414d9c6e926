"""The step that patches the Shoot of a changed Runtime.

The state is Pending as soon as the change is seen, before the first call to the garden: brokers look at it a moment
after their update. Conflicts of two writers pass by themselves; what the garden refuses rests until somebody acts.
"""

from __future__ import annotations

from hortus.domains.clusters import service
from hortus.domains.clusters.context import RuntimeContext
from hortus.domains.clusters.conversion import Conversion
from hortus.domains.clusters.creation import authenticate
from hortus.domains.clusters.defaults import DefaultMoves, held_back
from hortus.domains.clusters.garden import Garden
from hortus.domains.clusters.outline import outline_of
from hortus.domains.clusters.pauses import GARDEN, REFUSAL, VERIFICATION
from hortus.domains.clusters.permits import Permits
from hortus.domains.clusters.refusals import Refusals
from hortus.domains.clusters.shoot import LiveShoot, Patch, pools_taken_over
from hortus.domains.clusters.types import Annotation, ConditionType, Reason, Runtime, State
from hortus.engine import TRUE, UNKNOWN, Actor, Result, StepError
from hortus.kube.clock import Clock
from hortus.kube.errors import ApiError, Conflict, Forbidden, KubeError, NotFound, TooManyRequests, TransportError
from hortus.kube.objects import Object

_KIND = ConditionType.PROVISIONED
_PENDING = "Shoot is pending for update after"
_MOMENTS = 3
"""Refusals by a garden's permissions or admission that may pass by themselves."""


class Patching:
    """Patches the Shoot of a Runtime; `patch` is the step."""

    def __init__(
        self,
        garden: Garden,
        conversion: Conversion,
        defaults: DefaultMoves,
        permits: Permits,
        refusals: Refusals,
        clock: Clock,
    ) -> None:
        self._garden = garden
        self._refusals = refusals
        self._conversion = conversion
        self._defaults = defaults
        self._permits = permits
        self._clock = clock

    async def patch(self, context: RuntimeContext) -> Result | None:
        """Bring the Shoot up to the Runtime; a Shoot that changes by it ends the reconcile."""
        if not context.moving and not service.patch_due(context.object, context.present_shoot):
            return None
        if pause := self._refusals.pause(context):
            return Result(requeue_after=pause)
        await self._announce(context)
        before = await self._read(context)
        runtime = held_back(context.object, outline_of(before), context.held)
        patch = await self._conversion.patch(runtime, before)
        if self._conversion.structured(runtime, before):
            await authenticate(self._garden, runtime, self._conversion, self._permits)
        after = await self._send(context, runtime, before, patch) if patch.differs else before
        self._refusals.forget(context.key)
        self._conversion.report_remarks(context, runtime, before)
        await self._settle(context)
        context.shoot = outline_of(after)
        if context.shoot.generation != outline_of(before).generation:
            context.pending(_KIND, UNKNOWN, Reason.PROCESSING, f"{_PENDING} patch")
            return Result(requeue_after=GARDEN)
        context.unchanged = True
        context.pending(_KIND, TRUE, Reason.PROCESSING, "Shoot patched without changes")
        return None

    async def _announce(self, context: RuntimeContext) -> None:
        """Report Pending for a new generation or another default, unless the status is about it already."""
        found, generation = context.found(_KIND), context.object.metadata.generation
        is_new = found is None or found.observed_generation != generation
        if not is_new and (not context.moving or service.state_of(context.object) == State.PENDING):
            return
        context.pending(_KIND, UNKNOWN, Reason.PROCESSING, f"{_PENDING} patch")
        await context.checkpoint()

    async def _read(self, context: RuntimeContext) -> Object:
        shoot = context.present_shoot
        try:
            found = await self._garden.read(shoot.name)
        except KubeError as error:
            raise self._refused(context, "update", error) from error
        if found is None or outline_of(found).uid != shoot.uid:
            raise _superseded("conflict error")
        return found

    async def _send(self, context: RuntimeContext, runtime: Runtime, live: Object, patch: Patch) -> Object:
        name = context.present_shoot.name
        try:
            if patch.replacement is not None:
                live = await self._garden.merge(name, patch.replacement)
                patch = await self._conversion.patch(runtime, live)
            if patch.pools is not None:
                await self._verify(context, patch, await self._garden.merge(name, patch.pools))
        except KubeError as error:
            raise self._refused(context, "update", error) from error
        try:
            return await self._garden.apply(patch.shoot)
        except KubeError as error:
            raise self._refused(context, "patch", error) from error

    async def _verify(self, context: RuntimeContext, patch: Patch, live: Object | None) -> None:
        """Verify that the garden has the pools, in their order; an apply would not remove any."""
        for pause in (*VERIFICATION, None):
            if live is not None and pools_taken_over(patch.shoot, LiveShoot(live)):
                return
            if pause is not None:
                await self._clock.sleep(pause)
                live = await self._garden.read(context.present_shoot.name)
        raise _failed("Workers pool not synchronised", after=self._refusals.note(context, REFUSAL))

    def _refused(self, context: RuntimeContext, what: str, error: KubeError) -> StepError:
        if isinstance(error, Conflict):
            return _superseded("conflict error")
        text = f"Gardener API shoot {what} error: {error}"
        if _passes(error):
            return _failed(text, after=GARDEN)
        if not isinstance(error, Forbidden):
            return _failed(text, after=self._refusals.note(context, REFUSAL))
        after = self._refusals.note(context, GARDEN)
        if self._refusals.times(context) <= _MOMENTS:
            # The garden says so now and then for no reason.
            return _superseded("forbidden error", after=after)
        return _failed(text, after=after)

    async def _settle(self, context: RuntimeContext) -> None:
        """Report the moves to the rollouts that govern them, and remove the force annotation, now that what it asked
        for is done. Raises KubeError."""
        for kind in sorted(context.moving):
            await self._defaults.settle(context, kind)
        if not service.forced(context.object):
            return
        try:
            await context.patch({"metadata": {"annotations": {Annotation.FORCE_PATCH: None}}})
        except NotFound:
            return


def _passes(error: KubeError) -> bool:
    """True when the same request may be taken soon."""
    return isinstance(error, TransportError | TooManyRequests) or (
        isinstance(error, ApiError) and error.http_code >= 500
    )


def _failed(text: str, *, after: float) -> StepError:
    return StepError(text, reason=Reason.PROCESSING_ERR, condition=_KIND, actor=Actor.OPERATOR, after=after)


def _superseded(why: str, *, after: float = GARDEN) -> StepError:
    """The failure of a patch that met another writer, or a garden that refused for a moment: it is tried again soon."""
    return StepError(f"{_PENDING} {why}", reason=Reason.PROCESSING, condition=_KIND, actor=Actor.NOBODY, after=after)
