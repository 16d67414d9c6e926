"""The GardenerCluster controller: a Secret with a kubeconfig that works, for every GardenerCluster, always.

Conditions it owns: `KubeconfigManagement` of GardenerClusters, and their `status.state`.
Objects it owns: the Secrets that GardenerClusters name; it also removes the force-rotation annotation, and adds a
finalizer to a GardenerCluster whose Secret lies where it does not watch, or where its deputy writes it.
It watches: GardenerClusters (spec and metadata), Secrets with a shoot label, Shoots (that one has come to be).
It asks the garden only when a kubeconfig is due, and writes nothing when nothing changed. A rotation that is due waits
for the rollout that governs it, where there is one, and never until the kubeconfig ends.
It never: changes a Shoot, adopts or deletes a Secret that belongs to another GardenerCluster (`ownership`), fetches or
stores more than the namespace of a GardenerCluster may (`engine.deputies`), drops a kubeconfig before the next one was
seen to work, undoes another writer as fast as it can (`RepairBackoff`), puts a credential into a log, an event or a
condition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hortus.domains.credentials import service
from hortus.domains.credentials.changes import KUBECONFIG, KUBECONFIG_ROTATION
from hortus.domains.credentials.cleanup import Cleanup
from hortus.domains.credentials.debts import RELEASE_AFTER, secret_debt
from hortus.domains.credentials.garden import SHOOTS
from hortus.domains.credentials.issuing import MISSING_SHOOT_PAUSE, KubeconfigIssuer
from hortus.domains.credentials.metrics import CredentialMetrics
from hortus.domains.credentials.ownership import Creations
from hortus.domains.credentials.secrets import ClusterSecrets
from hortus.domains.credentials.service import STAMPS, Decision
from hortus.domains.credentials.settings import Settings
from hortus.domains.credentials.shoots import ShootFactsCache
from hortus.domains.credentials.types import (
    CONDITION,
    FINALIZER,
    MANAGER,
    MESSAGES,
    Annotation,
    GardenerCluster,
    Reason,
    State,
)
from hortus.engine import (
    FALSE,
    NORMAL,
    TRUE,
    WARNING,
    Announcement,
    KindController,
    Priority,
    ReconcileContext,
    Result,
    StepError,
    Steps,
    Trigger,
    Wiring,
    metadata_of,
)
from hortus.engine.deputies import Action, Deputies
from hortus.engine.kubeconfigs import SECRETS, KubeconfigSecret, RepairBackoff, restores_identity
from hortus.engine.leftovers import LeftoverRecorder
from hortus.engine.rollouts import RolloutGate, waits_for
from hortus.kube.errors import KubeError, NotFound
from hortus.kube.objects import Object, ObjectKey, key_of, parse_time

UNKNOWN_PAUSE = 10.0
"""Seconds to the next reconcile of a cluster whose rotation is due, while the rollouts are not known yet."""
TWIN_PAUSE = 1.0
"""Seconds to the next reconcile of a cluster while another one of the same shoot makes the Secret they share; that it
has is watched, this is for when it fails."""


class ClusterContext(ReconcileContext[GardenerCluster]):
    """One reconcile of one GardenerCluster, with what its steps have found and decided."""

    secret: KubeconfigSecret | None = None
    shared = False
    """True when another GardenerCluster of the same shoot keeps the Secret; then only a renewal of it is ours."""
    home = ""
    """That of `ShootFacts`."""
    decision: Decision
    waits = False
    """True when a rollout holds the rotation back."""
    reason: str
    """The reason to report once all steps are over."""
    failure: Announcement | None = None
    state: tuple[str, str] | None = None
    """The state and its reason to be measured."""
    last_sync: float | None = None
    """When the kubeconfig was written, to be measured."""

    def report_state(self, state: str, reason: str, error: str = "") -> None:
        """Draft the status; `error` names the failure and the owner of the next step, and never a credential."""
        message = f"{MESSAGES[reason]} Error: {error}" if error else MESSAGES[reason]
        self.set_status("state", state)
        self.condition(CONDITION, TRUE if state == State.READY else FALSE, reason=reason, message=message)

    def announcements(self, before: Object) -> Iterator[Announcement]:
        if self.failure is not None:
            yield self.failure


class GardenerClusterController(KindController[ClusterContext]):
    """Reconciles one GardenerCluster at a time; see the module's head."""

    kind = GardenerCluster
    field_manager = MANAGER

    def __init__(
        self,
        wiring: Wiring[GardenerCluster],
        *,
        secrets: ClusterSecrets,
        cleanup: Cleanup,
        issuer: KubeconfigIssuer,
        shoots: ShootFactsCache,
        deputies: Deputies,
        leftovers: LeftoverRecorder,
        settings: Settings,
        metrics: CredentialMetrics,
        gate: RolloutGate,
    ) -> None:
        super().__init__(wiring)
        self._gate = gate
        self._secrets = secrets
        self._cleanup = cleanup
        self._issuer = issuer
        self._shoots = shoots
        self._deputies = deputies
        self._leftovers = leftovers
        self._settings = settings
        self._metrics = metrics
        self._repairs = RepairBackoff()
        self._creations = Creations()
        self.again = Trigger()
        """A source for the controller: clusters that are reconciled again though nothing of theirs has changed."""
        self._clusters = wiring.cache
        self._clusters.raw.add_index("name", lambda cluster: (key_of(cluster).name,))
        self._clusters.raw.add_index("profile", lambda cluster: (service.profile_name(metadata_of(cluster)),))
        self._clusters.raw.add_index("waits", lambda one: ("yes",) if waits_for(one, KUBECONFIG_ROTATION) else ())

    def become(self, settings: Settings) -> None:
        """Replace the settings; every cluster is reconciled again."""
        self._settings = settings
        for key in self._clusters.raw:
            self.again.fire(key, priority=Priority.RESYNC)

    def keys_of_shoot(self, shoot: Object) -> Iterable[ObjectKey]:
        """The GardenerClusters that wait for this shoot."""
        return self._clusters.keys_by("shoot", key_of(shoot).name)

    def keys_of_profile(self, name: str) -> Iterable[ObjectKey]:
        """The GardenerClusters of this ClusterProfile."""
        return self._clusters.keys_by("profile", name)

    def waiting(self) -> Iterable[ObjectKey]:
        """The GardenerClusters that a rollout holds back."""
        return self._clusters.keys_by("waits", "yes")

    # The shape.

    def make_context(self, raw: Object) -> ClusterContext:
        return ClusterContext(self.wiring, raw)

    def steps(self, context: ClusterContext) -> Steps:
        return (
            self._find_secret,
            self._ensure_finalizer,
            self._find_keeper,
            self._decide,
            self._ask,
            self._renew,
            self._repair,
            self._acknowledge_force,
            self._settle,
            self._report_ready,
        )

    def finalize_steps(self, context: ClusterContext) -> Steps:
        return (self._delete_secret,)

    async def gone(self, key: ObjectKey) -> Result | None:
        self._repairs.forget(key)
        if not self._clusters.keys_by("name", key.name):
            self._metrics.clear(key.name)
        await self._cleanup.delete_secrets_of(key)
        return None

    async def reconcile(self, key: ObjectKey) -> Result | None:
        try:
            return await super().reconcile(key)
        finally:
            self._creations.end(key)

    def report(self, context: ClusterContext, error: StepError) -> None:
        """Draft the failure; one without a reason of the contract only when nothing but a change helps."""
        if error.reason in MESSAGES:
            context.state = (State.ERROR, error.reason)
        elif not error.is_final:
            return
        reason = error.reason if error.reason in MESSAGES else Reason.CHECK_FAILED
        context.report_state(State.ERROR, reason, error.message)
        context.failure = Announcement(WARNING, reason, error.message)

    def observe(self, context: ClusterContext) -> None:
        if context.state is not None:
            self._metrics.set_state(context.object, *context.state)
        if context.last_sync is not None:
            self._metrics.set_expiration(context.object, context.last_sync, self._settings.policy)

    # The steps.

    async def _find_secret(self, context: ClusterContext) -> Result | None:
        """Find the Secret, first of all, so that the garden is asked for nothing that could not be written."""
        cluster = context.object
        context.secret = self._secrets.find(cluster)
        if context.secret is not None:
            return None
        if not self._creations.begin(cluster):
            return Result(requeue_after=TWIN_PAUSE)
        if not cluster.is_at_home:
            creation = Action("create", SECRETS.group, SECRETS.plural, cluster.secret.namespace)
            await self._require(cluster, creation, Reason.CREATE_FAILED)
        context.secret = await self._secrets.find_unlabelled(cluster)
        return None

    async def _ensure_finalizer(self, context: ClusterContext) -> None:
        """Add the finalizer before there is a Secret that it stands for."""
        if self._cleanup.needs_finalizer(context.object):
            await context.ensure_finalizer(FINALIZER)

    async def _find_keeper(self, context: ClusterContext) -> None:
        if context.secret is not None:
            context.shared = self._secrets.keeper(context.object, context.secret) is not None

    async def _decide(self, context: ClusterContext) -> None:
        cluster, shoot = context.object, self._shoots.get(context.object.shoot)
        context.home = "" if shoot is None else shoot.home
        context.decision = service.decide(
            cluster, context.secret, self._settings.policy, context.now, home=context.home
        )
        context.reason = service.kept_reason(cluster)

    async def _ask(self, context: ClusterContext) -> None:
        """Keep a kubeconfig that is due and works until the rollout that governs its rotation admits it."""
        decision, cluster = context.decision, context.object
        if decision.latest is None:
            return
        under_way = self._gate.under_way(KUBECONFIG_ROTATION, KUBECONFIG)
        proposal = service.rotation(cluster, context.now, under_way=under_way)
        name = service.profile_name(cluster.metadata)
        answer = await self._gate.admit(context, proposal, name, latest=decision.latest)
        if not answer.allowed:
            context.waits = True
            context.decision = service.delayed(decision, context.now)
            if not self._gate.has_synced:
                context.decision = context.decision._replace(after=UNKNOWN_PAUSE)

    async def _renew(self, context: ClusterContext) -> None:
        """Fetch a kubeconfig, prove it, store it."""
        decision, cluster = context.decision, context.object
        if decision.action is service.Action.KEEP:
            return
        fetching = Action(
            "create", SHOOTS.group, f"{SHOOTS.plural}/adminkubeconfig", self._settings.garden_namespace, cluster.shoot
        )
        await self._require(cluster, fetching, Reason.KUBECONFIG_FAILED)
        if decision.damaged:
            self._pause_repairs(context, decision.why)
        kubeconfig = await self._issuer.issue(cluster, seconds=int(self._settings.policy.lifetime), home=context.home)
        created = await self._secrets.create(cluster, kubeconfig) if context.secret is None else None
        if created is not None:
            context.secret, context.reason = created, Reason.CREATED
        else:
            secret = context.secret or await self._secrets.taken(cluster)
            plan = service.secret_plan(cluster, shared=context.shared)
            context.secret = await self._secrets.change(cluster, secret, plan.renewal(secret, kubeconfig))
            context.reason = Reason.ROTATED
            if context.secret is None:
                raise service.secret_deleted()
            context.event(NORMAL, Reason.ROTATED, service.rotated(cluster, decision))
        if decision.damaged:
            self._repairs.repaired(context.key, self.wiring.clock.monotonic())

    async def _repair(self, context: ClusterContext) -> None:
        """Restore the labels and the owner of a Secret whose kubeconfig is kept."""
        secret = context.secret
        if context.decision.action is not service.Action.KEEP or secret is None or context.shared:
            return
        patch = service.repair(context.object, secret, home=context.home)
        if patch is None:
            return
        if damaged := restores_identity(patch):
            self._pause_repairs(context, "its labels or owners are taken off")
        await self._secrets.change(context.object, secret, patch)
        if damaged:
            self._repairs.repaired(context.key, self.wiring.clock.monotonic())

    async def _acknowledge_force(self, context: ClusterContext) -> None:
        """Remove the force annotation, now that what it asked for is done."""
        if service.is_forced(context.object.metadata):
            try:
                await context.patch({"metadata": {"annotations": {Annotation.FORCE_ROTATION: None}}})
            except NotFound:
                return

    async def _settle(self, context: ClusterContext) -> None:
        """Report the rotation to the rollout that governs it."""
        if not context.waits:
            await self._gate.settle(context, KUBECONFIG_ROTATION)

    async def _report_ready(self, context: ClusterContext) -> Result:
        secret = context.secret
        context.report_state(State.READY, context.reason)
        context.state = (State.READY, context.reason)
        context.last_sync = None if secret is None else STAMPS.issued_at(secret)
        return Result(requeue_after=context.decision.after)

    async def _delete_secret(self, context: ClusterContext) -> None:
        """Delete the Secret that the finalizer stands for, then the finalizer."""
        if FINALIZER not in context.object.metadata.finalizers:
            return
        try:
            await self._cleanup.delete_secret_of(context.object)
        except KubeError as error:
            if not await self._record(context, error):
                raise
        await context.remove_finalizer(FINALIZER)

    async def _record(self, context: ClusterContext, error: KubeError) -> bool:
        """Record the Secret as left, once its deletion has failed for long enough; returns whether to release it.

        Without a record a Secret stays that Hortus may delete. Raises KubeError.
        """
        began = parse_time(context.object.metadata.deletion_timestamp or "")
        if context.now < began + RELEASE_AFTER:
            return False
        recorded = await self._leftovers.record(secret_debt(context.object, error))
        if not recorded and self._deputies.trusts(context.key.namespace):
            return False
        secret = context.object.secret.object_key
        text = f"released without its secret {secret}, which could not be deleted: {error}"
        context.event(WARNING, Reason.DELETE_FAILED, text)
        return True

    async def _require(self, cluster: GardenerCluster, action: Action, reason: str) -> None:
        """Raises StepError with a reason of the contract for what the cluster's namespace may not have done."""
        await self._deputies.require(cluster.metadata.namespace, action, reason=reason, after=MISSING_SHOOT_PAUSE)

    def _pause_repairs(self, context: ClusterContext, why: str) -> None:
        """Report a Secret that is damaged again and again, and repair it less and less often."""
        if pause := self._repairs.pause(context.key, self.wiring.clock.monotonic()):
            raise service.edited_again(context.object, why, pause)
