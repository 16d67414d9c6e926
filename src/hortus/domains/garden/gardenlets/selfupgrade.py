"""Self-upgrade: the gardenlet of a Seed follows its Gardenlet, without the operator and its kubeconfig.

Gardener's gardenlet does so itself. Hortus does the same from a process that has a kubeconfig of the seed, so that a
gardenlet that no longer starts is replaced as well.
Conditions it owns: GardenletReconciled, and status.observedGeneration.
Objects it owns: in the seed and in the garden what `deploying` says; the annotation of an operation, once it is done.
It watches: Gardenlets and Seeds.
It never: deploys a gardenlet where there is none, nor one of a Seed that is not registered: the operator does that.
"""

from __future__ import annotations

from typing import Any, Final

from hortus.domains.garden.gardenlets.acceptance import problems
from hortus.domains.garden.gardenlets.checks import SeedChecks
from hortus.domains.garden.gardenlets.context import FALSE, PROGRESSING, TRUE, GardenletContext
from hortus.domains.garden.gardenlets.deploying import FIELD_MANAGER, GardenletDeployer
from hortus.domains.garden.gardenlets.operator import ERROR, INVALID, RECONCILED
from hortus.domains.garden.gardenlets.permits import needs_of_deployment
from hortus.domains.garden.gardenlets.reading import OpenSeed
from hortus.domains.garden.gardenlets.settings import GardenletSettings
from hortus.domains.garden.kinds.gardenlet import OPERATION, Gardenlet, GardenletCondition, GardenletOperation
from hortus.domains.garden.kinds.seed import RegisteredSeed
from hortus.engine import Actor, KindController, Result, StepError, Steps, TypedCache, Wiring
from hortus.engine.deputies import Deputies
from hortus.engine.events import NORMAL
from hortus.kube.errors import Conflict, KubeError
from hortus.kube.objects import Object, ObjectKey

SYNC: Final = 3600.0
"""Seconds after which a gardenlet at rest is compared with its Gardenlet again."""
_RETRY: Final = 10.0
"""Seconds until a Gardenlet is reconciled again whose seed has no gardenlet yet."""
_OURS: Final = (GardenletOperation.RECONCILE, GardenletOperation.RENEW_KUBECONFIG)


class GardenletSelfUpgrade(KindController[GardenletContext]):
    """Reconciles one Gardenlet at a time."""

    kind = Gardenlet
    field_manager = FIELD_MANAGER

    def __init__(
        self,
        wiring: Wiring[Any],
        *,
        seeds: TypedCache[RegisteredSeed],
        deployer: GardenletDeployer,
        settings: GardenletSettings,
        open_seed: OpenSeed,
        deputies: Deputies,
    ) -> None:
        super().__init__(wiring)
        self._seeds = seeds
        self._deployer = deployer
        self._settings = settings
        self._open_seed = open_seed
        self._deputies = deputies
        self._applied: dict[ObjectKey, tuple[int, float]] = {}
        """Generation, and monotonic time of the next comparison."""

    def make_context(self, raw: Object) -> GardenletContext:
        return GardenletContext(self.wiring, raw)

    def steps(self, context: GardenletContext) -> Steps:
        return (self._rest, self._upgrade)

    async def gone(self, key: ObjectKey) -> None:
        self._applied.pop(key, None)

    async def _rest(self, context: GardenletContext) -> Result | None:
        """Ends the reconcile where nothing is to be done."""
        if not self._settings.follows(context.key.name) or self._seed(context) is None:
            return Result()
        generation, until = self._applied.get(context.key, (0, 0.0))
        left = until - self.wiring.clock.monotonic()
        if generation == context.object.metadata.generation and left > 0 and context.object.operation not in _OURS:
            return Result(requeue_after=left)
        return None

    async def _upgrade(self, context: GardenletContext) -> Result:
        gardenlet = context.object
        async with self._open_seed(context.key.name) as target:
            if target is None:
                return Result()
            if not await SeedChecks(target).is_deployed():
                return Result(requeue_after=_RETRY)
            if found := list(problems(gardenlet)):
                raise StepError("; ".join(found), reason=INVALID, actor=Actor.USER)
            for action in needs_of_deployment(gardenlet):
                await self._deputies.require(context.key.namespace, action)
            plan = await self._deployer.deploy(gardenlet, target, self._seed(context), own=True)
        context.set_status("observedGeneration", gardenlet.metadata.generation)
        message = f"Chart {plan.digest} is applied."
        former = context.found(GardenletCondition.RECONCILED)
        if former is None or former.message != message:
            context.event(NORMAL, RECONCILED, message)
        context.report_as(GardenletCondition.RECONCILED, TRUE, RECONCILED, message)
        await context.checkpoint()
        if gardenlet.operation in _OURS:
            await context.patch({"metadata": {"annotations": {OPERATION: None}}}, goes_on=True)
        self._applied[context.key] = gardenlet.metadata.generation, self.wiring.clock.monotonic() + SYNC
        return Result(requeue_after=SYNC)

    def _seed(self, context: GardenletContext) -> RegisteredSeed | None:
        return self._seeds.get(ObjectKey("", context.key.name))

    async def on_error(self, context: GardenletContext, error: StepError | KubeError) -> StepError | None:
        self._applied.pop(context.key, None)
        if isinstance(error, StepError):
            return error
        if isinstance(error, Conflict):
            return None  # the next attempt reads the object again
        return StepError(str(error), reason="RequestFailed", actor=Actor.PROVIDER)

    def report(self, context: GardenletContext, error: StepError) -> None:
        """Drafts a refusal of the generation, or an error that may pass: a rollout counts the refusal alone."""
        status, generation = FALSE, context.object.metadata.generation
        if error.actor == Actor.USER:
            context.set_status("observedGeneration", generation)
        elif context.drafted("observedGeneration") == generation:
            former = context.found(GardenletCondition.RECONCILED)
            status = FALSE if former is not None and former.status == FALSE else PROGRESSING
        context.report_as(GardenletCondition.RECONCILED, status, ERROR, f"{error.reason}: {error.message}")
