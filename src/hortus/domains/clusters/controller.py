"""The Runtime controller: a Shoot that is as its Runtime says, connected and equipped; and its deletion.

Conditions it owns: `Provisioned`, `KubeconfigReady`, `OidcConfigured`, `Configured`, `Deprovisioned` of Runtimes, with
their `status.state` and `provisioningCompleted`.
Objects it owns: the Shoot that a Runtime names, its ConfigMap with structured authentication, its GardenerCluster, and
in the cluster what `inside` puts there. It holds a Runtime by a finalizer.
It watches: Runtimes (spec and metadata), Shoots of the project (the end of an operation, not its progress),
GardenerClusters (the state of the connection, and deletion). What no watch shows is read after the times in `pauses`.
It never: serves a Runtime that awaits its release (`adoption`), adopts, changes or deletes a Shoot that belongs to
somebody else or that the Runtime's namespace may not (`permits`), polls what is at rest, writes a status that says
nothing new, shows a credential.
"""

from __future__ import annotations

import structlog

from hortus.domains.clusters import claims, service
from hortus.domains.clusters.claiming import Claiming
from hortus.domains.clusters.connecting import Connecting
from hortus.domains.clusters.context import RuntimeContext
from hortus.domains.clusters.creation import Creation
from hortus.domains.clusters.defaults import DefaultMoves
from hortus.domains.clusters.garden import Garden
from hortus.domains.clusters.metrics import RuntimeMetrics
from hortus.domains.clusters.patching import Patching
from hortus.domains.clusters.pauses import GARDEN, REFUSAL
from hortus.domains.clusters.permits import Permits
from hortus.domains.clusters.reading import spec_problem
from hortus.domains.clusters.refusals import Refusals
from hortus.domains.clusters.retirement import Retirement
from hortus.domains.clusters.types import (
    FIELD_MANAGER,
    FINALIZER,
    NOT_PERMITTED,
    ConditionType,
    Reason,
    Runtime,
    State,
)
from hortus.domains.clusters.waiting import await_beginning, await_operation
from hortus.engine import (
    DONE,
    FALSE,
    NEVER,
    UNKNOWN,
    Actor,
    KindController,
    Result,
    StepError,
    Steps,
    Wiring,
    has_finalizer,
)
from hortus.kube.errors import KubeError
from hortus.kube.objects import Object, ObjectKey

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class RuntimeController(KindController[RuntimeContext]):
    """Reconciles one Runtime at a time; see the module's head."""

    kind = Runtime
    field_manager = FIELD_MANAGER

    def __init__(
        self,
        wiring: Wiring[Runtime],
        *,
        garden: Garden,
        permits: Permits,
        metrics: RuntimeMetrics,
        claiming: Claiming,
        creation: Creation,
        defaults: DefaultMoves,
        patching: Patching,
        connecting: Connecting,
        retirement: Retirement,
        refusals: Refusals,
    ) -> None:
        super().__init__(wiring)
        self._refusals = refusals
        self._garden = garden
        self._permits = permits
        self._metrics = metrics
        self._claiming = claiming
        self._creation = creation
        self._defaults = defaults
        self._patching = patching
        self._connecting = connecting
        self._retirement = retirement

    def steps(self, context: RuntimeContext) -> Steps:
        return (
            self._check_spec,
            self._find_shoot,
            self._check_permits,
            self._ensure_finalizer,
            self._initialise,
            self._claiming.check,
            self._creation.await_change,
            self._creation.find_seed,
            self._creation.create,
            self._claiming.record,
            await_beginning,
            self._defaults.ask,
            self._patching.patch,
            self._rest,
            await_operation,
            self._connecting.request,
            self._connecting.await_kubeconfig,
            self._connecting.equip,
        )

    def finalize_steps(self, context: RuntimeContext) -> Steps:
        return (
            self._claiming.check_nameless,
            self._find_shoot,
            self._claiming.check_left_behind,
            self._retirement.verify,
            self._retirement.disconnect,
            self._retirement.report_disconnected,
            self._retirement.delete_shoot,
            self._retirement.release,
        )

    def make_context(self, raw: Object) -> RuntimeContext:
        return RuntimeContext(self.wiring, raw)

    def context(self, key: ObjectKey) -> RuntimeContext | None:
        """None as well for a Runtime that awaits its release: nothing is done for it, and no metric shows it."""
        found = super().context(key)
        if found is None or (service.locked(found.object) and not has_finalizer(found.raw, FINALIZER)):
            return None
        return found

    async def gone(self, key: ObjectKey) -> Result | None:
        self._metrics.clear(key)
        self._refusals.forget(key)
        return None

    def report(self, context: RuntimeContext, error: StepError) -> None:
        """Draft the condition that the error names, if any, and the state: Pending where waiting is enough, or where
        the cluster itself has to answer, and otherwise Failed."""
        kind, reason, message = error.condition, error.reason, error.message
        if not kind:
            _log.warning("the reconcile of a Runtime stopped", reason=reason, error=message)
        elif error.actor is Actor.NOBODY:
            context.pending(kind, UNKNOWN, reason, message)
        elif error.actor is Actor.PROVIDER:
            context.pending(kind, FALSE, reason, message)
        else:
            context.failed(kind, reason, message)

    def outcome(self, context: RuntimeContext, error: StepError) -> Result | None:
        """A success, but for errors that the queue backs off from. Stops that leave somebody to act are counted."""
        if error.actor in (Actor.USER, Actor.OPERATOR) and (error.after is None or error.after >= REFUSAL):
            self._metrics.unexpected_stop()
        if error.after is None:
            raise error
        return None if error.is_final else Result(requeue_after=error.after)

    def observe(self, context: RuntimeContext) -> None:
        self._metrics.set_state(context.key, context.object, context.shoot_name)

    async def _check_spec(self, context: RuntimeContext) -> None:
        """End the reconcile of a Runtime without a spec: the contract's CRD does not demand one."""
        if context.object.spec is None:
            text = f"Runtime conversion error {spec_problem(context.raw)}"
            kind = ConditionType.PROVISIONED
            raise StepError(text, reason=Reason.CONVERSION_ERR, condition=kind, actor=Actor.USER, after=NEVER)

    async def _find_shoot(self, context: RuntimeContext) -> None:
        name = context.shoot_name
        try:
            context.shoot = await self._garden.find(name)
        except KubeError as error:
            text = f"the garden cannot be asked for shoot {name}: {error}"
            raise StepError(text, reason=Reason.GARDENER_ERR, after=GARDEN) from error

    async def _check_permits(self, context: RuntimeContext) -> None:
        """End the reconcile of a Runtime that may not have its Shoot, unless it rests and nothing would be done."""
        runtime, shoot = context.object, context.shoot
        if self._permits.trusts(runtime):
            return
        new = shoot is None or not has_finalizer(context.raw, FINALIZER)
        if new or _under_way(context) or service.patch_due(runtime, context.present_shoot):
            await self._permits.check(runtime, shoot)

    async def _ensure_finalizer(self, context: RuntimeContext) -> None:
        await context.ensure_finalizer(FINALIZER)

    async def _initialise(self, context: RuntimeContext) -> None:
        """Report, before anything else, that the Runtime is seen."""
        kind = ConditionType.PROVISIONED
        if context.shoot is None and context.found(kind) is None:
            context.pending(kind, UNKNOWN, Reason.INITIALISED, "Runtime initialized")
            await context.checkpoint()

    async def _rest(self, context: RuntimeContext) -> Result | None:
        """End the reconcile of a Runtime that is Ready or has failed, so that a restart does not stir a whole fleet.

        A missing kubeconfig is the exception: it is made again. So is a dispute about the Shoot that is settled.
        """
        if context.unchanged or _under_way(context):
            return None
        return await self._connecting.restore(context) or DONE


def _under_way(context: RuntimeContext) -> bool:
    """True when the state asks for work."""
    if service.state_of(context.object) in ("", State.PENDING):
        return True
    if context.says(ConditionType.CONFIGURED, FALSE, Reason.CONFIGURATION_ERR):
        return True
    if any(context.says(kind, FALSE, NOT_PERMITTED) for kind in (ConditionType.PROVISIONED, ConditionType.CONFIGURED)):
        return True
    provisioned = context.found(ConditionType.PROVISIONED)
    return provisioned is not None and provisioned.message.startswith(claims.DISPUTED)
