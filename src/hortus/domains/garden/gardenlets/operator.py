"""The operator of Gardenlets: the first deployment into a seed, by kubeconfig, until the Seed is registered.

Conditions it owns: SeedRegistered and SeedHealthy.
Objects it owns: the kubeconfig Secret of a Gardenlet from its registration on, which it deletes; in the garden and in
the seed what `deploying` says.
It watches: Gardenlets and Seeds.
It never: changes a gardenlet whose Seed is registered, unless asked by force-redeploy; deploys again where a Seed that
was registered is gone, since it has no kubeconfig of that cluster any more; deletes a gardenlet, unless
decommissioning is on; does for a Gardenlet of a namespace that is not trusted what its deputy may not (`permits`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

from hortus.domains.garden.gardenlets.acceptance import problems
from hortus.domains.garden.gardenlets.bootstrap import SECRETS
from hortus.domains.garden.gardenlets.changes import GARDENLET_CHANGE, proposal
from hortus.domains.garden.gardenlets.checks import SeedChecks
from hortus.domains.garden.gardenlets.context import FALSE, PROGRESSING, TRUE, GardenletContext
from hortus.domains.garden.gardenlets.decommission import FINALIZER, Decommission
from hortus.domains.garden.gardenlets.deploying import FIELD_MANAGER, GardenletDeployer
from hortus.domains.garden.gardenlets.health import verdict
from hortus.domains.garden.gardenlets.permits import needs_of_deployment, removal_of
from hortus.domains.garden.gardenlets.reading import KUBECONFIG_KEY, seed_client, value_of
from hortus.domains.garden.gardenlets.settings import GardenletSettings
from hortus.domains.garden.kinds.gardenlet import (
    OPERATION,
    Gardenlet,
    GardenletCondition,
    GardenletOperation,
)
from hortus.domains.garden.kinds.seed import RegisteredSeed
from hortus.engine import DONE, WARNING, Actor, KindController, Result, StepError, Steps, TypedCache, Wiring
from hortus.engine.deputies import Deputies, refusal
from hortus.engine.rollouts import RolloutGate
from hortus.kube import Client
from hortus.kube.dialing import Network
from hortus.kube.errors import Conflict, Forbidden, KubeError, NotFound
from hortus.kube.kubeconfig import Trust
from hortus.kube.objects import Object, ObjectKey

AUTO_UPDATE: Final = "operator.gardener.cloud/auto-update-gardenlet-helm-chart-ref"
"""Label of Gardenlets that move to the operator's chart."""
WAIT: Final = 30.0
"""Seconds until a Gardenlet is reconciled again whose Seed is not registered."""
RECONCILED: Final = "Reconciled"
ERROR: Final = "ReconcileError"
"""Reasons of SeedRegistered."""
MISSING: Final = "SeedMissing"
"""Reason of SeedRegistered where the Seed was registered once."""
LEFT: Final = "SeedLeft"
"""Reason of the event about a Gardenlet that is released with its Seed where it is."""
INVALID: Final = "InvalidGardenlet"
OWN_CLUSTER: Final = "OwnClusterForbidden"
"""Reason of the error where a gardenlet would go into Hortus' own cluster, and the account must not."""


class GardenletOperator(KindController[GardenletContext]):
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
        gate: RolloutGate,
        deputies: Deputies,
        trust: Trust,
        deny: tuple[Network, ...] = (),
        decommission: Decommission | None = None,
    ) -> None:
        """Without `decommission` a Gardenlet that is deleted leaves everything where it is."""
        super().__init__(wiring)
        self._seeds = seeds
        self._deployer = deployer
        self._settings = settings
        self._gate = gate
        self._deputies = deputies
        self._trust = trust
        self._deny = deny
        self._decommission = decommission

    def make_context(self, raw: Object) -> GardenletContext:
        return GardenletContext(self.wiring, raw)

    def steps(self, context: GardenletContext) -> Steps:
        return (self._ensure_finalizer, self._check, self._update, self._deploy, self._register, self._judge)

    def finalize_steps(self, context: GardenletContext) -> Steps:
        if self._decommission is None:
            return (self._release,)
        steps = self._decommission
        return (self._check_removal, steps.wait_for_shoots, steps.delete_seed, steps.remove_objects, steps.release)

    def waiting(self) -> Iterable[ObjectKey]:
        """All Gardenlets."""
        return tuple(self.wiring.cache.raw)

    # Steps.

    async def _ensure_finalizer(self, context: GardenletContext) -> None:
        if self._decommission is not None:
            await context.ensure_finalizer(FINALIZER)

    async def _release(self, context: GardenletContext) -> None:
        """Removes the finalizer of an operator that had decommissioning on."""
        await context.remove_finalizer(FINALIZER)

    async def _check_removal(self, context: GardenletContext) -> Result | None:
        """Release a Gardenlet whose namespace may not delete its Seed, with everything where it is."""
        namespace, removal = context.key.namespace, removal_of(context.key.name)
        if await self._deputies.may(namespace, removal):
            return None
        context.event(WARNING, LEFT, f"Seed and gardenlet stay: {refusal(namespace, removal)}")
        await context.remove_finalizer(FINALIZER)
        return DONE

    async def _check(self, context: GardenletContext) -> None:
        if found := list(problems(context.object)):
            raise StepError("; ".join(found), reason=INVALID, actor=Actor.USER)

    async def _update(self, context: GardenletContext) -> None:
        """Moves a Gardenlet with the label to the operator's chart, once a rollout admits it."""
        gardenlet, chart = context.object, self._settings.chart
        if not chart or (gardenlet.metadata.labels or {}).get(AUTO_UPDATE) != "true":
            return
        if gardenlet.chart == chart:
            await self._gate.settle(context, GARDENLET_CHANGE, chart)
            return
        if (await self._gate.admit(context, proposal(chart), context.key.name)).allowed:
            place = {"deployment": {"helm": {"ociRepository": {"ref": chart}}}}
            await context.patch({"spec": place})

    async def _deploy(self, context: GardenletContext) -> Result | None:
        gardenlet, seed = context.object, self._seed(context)
        forced = gardenlet.operation == GardenletOperation.FORCE_REDEPLOY
        if seed is not None and not forced:
            return None
        if _was_registered(context) and gardenlet.spec.kubeconfig_secret_ref is None and not forced:
            raise StepError(
                f"Seed {context.key.name} was registered, and is gone: its gardenlet creates it again; if that is "
                f"gone, give spec.kubeconfigSecretRef. {OPERATION}={GardenletOperation.FORCE_REDEPLOY} without it "
                "deploys into the cluster of Hortus itself",
                reason=MISSING,
                actor=Actor.OPERATOR,
                after=WAIT,
            )
        for action in needs_of_deployment(gardenlet):
            await self._deputies.require(context.key.namespace, action)
        async with self._target(context) as target:
            plan = await self._deployer.deploy(gardenlet, target, seed)
        if forced:
            await context.patch({"metadata": {"annotations": {OPERATION: None}}}, goes_on=True)
        if seed is not None:
            return None
        context.report_as(
            GardenletCondition.SEED_REGISTERED,
            PROGRESSING,
            "WaitingForRegistration",
            f"Chart {plan.digest} is deployed; the gardenlet has not registered the Seed yet.",
        )
        return Result(requeue_after=WAIT)

    async def _register(self, context: GardenletContext) -> None:
        """Drops the kubeconfig of a seed that is registered, the Secret before the reference to it."""
        reference = context.object.spec.kubeconfig_secret_ref
        if reference is not None:
            with suppress(NotFound):
                namespace = context.key.namespace
                await self._deputies.client(namespace).delete(SECRETS, reference.name, namespace)
            await context.patch({"spec": {"kubeconfigSecretRef": None}})
        context.report_as(GardenletCondition.SEED_REGISTERED, TRUE, RECONCILED, "The Seed is registered.")

    async def _judge(self, context: GardenletContext) -> Result | None:
        found = verdict(context.object, self._seed(context), settle=self._settings.settle, now=context.now)
        context.report_as(GardenletCondition.SEED_HEALTHY, found.status, found.reason, found.message)
        return None if found.after is None else Result(requeue_after=found.after)

    # Parts.

    @asynccontextmanager
    async def _target(self, context: GardenletContext) -> AsyncIterator[Client]:
        """The cluster to deploy into."""
        reference, namespace = context.object.spec.kubeconfig_secret_ref, context.key.namespace
        if reference is None:
            own = self._deputies.client(namespace)
            await self._check_access(own, self._deputies.account(namespace))
            yield own
            return
        field = "spec.kubeconfigSecretRef"
        document = await value_of(self.wiring.client, namespace, reference.name, KUBECONFIG_KEY, field=field)
        origin = f"{field}: Secret {namespace}/{reference.name}"
        async with seed_client(document, origin=origin, trust=self._trust, deny=self._deny) as client:
            yield client

    async def _check_access(self, own: Client, account: str) -> None:
        """Raises StepError where `account` must not deploy into the cluster of Hortus, by `own`; KubeError."""
        try:
            await SeedChecks(own).is_deployed()
        except Forbidden as error:
            raise StepError(
                "without spec.kubeconfigSecretRef the gardenlet is deployed into the cluster of Hortus itself, and "
                f"the account of {account} must not: {error}; give spec.kubeconfigSecretRef, or grant the account the "
                "objects of the chart",
                reason=OWN_CLUSTER,
                actor=Actor.OPERATOR,
                after=WAIT,
            ) from error

    def _seed(self, context: GardenletContext) -> RegisteredSeed | None:
        return self._seeds.get(ObjectKey("", context.key.name))

    # Failures.

    async def on_error(self, context: GardenletContext, error: StepError | KubeError) -> StepError | None:
        if isinstance(error, StepError):
            return error
        if isinstance(error, Conflict):
            return None  # the next attempt reads the object again
        return StepError(str(error), reason="RequestFailed", actor=Actor.PROVIDER)

    def report(self, context: GardenletContext, error: StepError) -> None:
        reason = MISSING if error.reason == MISSING else ERROR
        context.report_as(GardenletCondition.SEED_REGISTERED, FALSE, reason, f"{error.reason}: {error.message}")


def _was_registered(context: GardenletContext) -> bool:
    """Reports whether the Seed existed once. SeedHealthy is reported from then on alone, and no failure replaces it."""
    former = context.found(GardenletCondition.SEED_REGISTERED)
    known = former is not None and former.reason in (RECONCILED, MISSING)
    return known or context.found(GardenletCondition.SEED_HEALTHY) is not None
