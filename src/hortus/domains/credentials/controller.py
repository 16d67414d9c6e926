"""The GardenerCluster controller: a Secret with a kubeconfig that works, for every GardenerCluster, always.

Conditions it owns: `KubeconfigManagement` of GardenerClusters, and their `status.state`.
Objects it owns: the Secrets that GardenerClusters name; it also takes off the force-rotation annotation, and holds a
GardenerCluster by a finalizer when its Secret lies where it does not watch.
It watches: GardenerClusters (spec and metadata), Secrets with a shoot label, Shoots (that one has come to be).
It asks the garden only when a kubeconfig is due, and writes nothing when nothing changed.
It never: changes a Shoot, adopts or deletes a Secret that belongs to another GardenerCluster (`ownership`), fetches or
stores more than the operator grants (`grants`), drops a kubeconfig before the next one was seen to work, undoes another
writer as fast as it can (`RepairBackoff`), puts a credential into a log, an event or a condition.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

import structlog

from hortus.domains.credentials import service
from hortus.domains.credentials.cleanup import Cleanup
from hortus.domains.credentials.garden import Garden, GardenFailure, Grant
from hortus.domains.credentials.metrics import CredentialMetrics
from hortus.domains.credentials.ownership import (
    AmbiguousSecret,
    Claim,
    by_claim,
    by_shoot,
    choose_secret,
    claim_of,
    holder_of,
    is_at_home,
    is_ours,
    key_of_claim,
    secret_reference,
    shoot_name,
)
from hortus.domains.credentials.service import Action, Decision
from hortus.domains.credentials.settings import Settings
from hortus.domains.credentials.types import GARDENER_CLUSTERS, Annotation, Reason, State
from hortus.domains.credentials.vault import FIELD_MANAGER, Vault
from hortus.engine import (
    Actor,
    Cache,
    EventRecorder,
    Priority,
    Result,
    StepError,
    Trigger,
    is_deleting,
    redact_text,
)
from hortus.engine.kubeconfigs import KubeconfigProof, ProofFailed, RepairBackoff
from hortus.kube import Client
from hortus.kube.clock import Clock
from hortus.kube.errors import AlreadyExists, BadRequest, KubeError, NotFound
from hortus.kube.objects import Object, ObjectKey, key_of

MISSING_SHOOT_PAUSE = 300.0
"""Seconds until a shoot that does not exist is asked for again; its appearing is watched, this is for gardens that do
not let us watch."""
UNKNOWN_PAUSE = 10.0
"""Seconds until a cluster is looked at again whose shoot may allow it, while the garden's shoots are not known yet."""
TWIN_PAUSE = 1.0
"""Seconds until a cluster looks again whether another one of the same shoot has made the Secret they share; that it has
is watched, this is for when it fails."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class GardenerClusterController:
    """Reconciles one GardenerCluster at a time; see the module's head."""

    def __init__(
        self,
        *,
        client: Client,
        clusters: Cache,
        secrets: Cache,
        shoots: Cache,
        garden: Garden,
        proof: KubeconfigProof,
        settings: Settings,
        metrics: CredentialMetrics,
        events: EventRecorder,
        clock: Clock,
    ) -> None:
        self._client = client
        self._clusters = clusters
        self._secrets = secrets
        self._vault = Vault(client, secrets)
        self._cleanup = Cleanup(
            client=client, clusters=clusters, secrets=secrets, vault=self._vault, namespace=settings.namespace
        )
        self._repairs = RepairBackoff()
        self._shoots = shoots
        self._garden = garden
        self._proof = proof
        self._settings = settings
        self._metrics = metrics
        self._events = events
        self._clock = clock
        self.again = Trigger()
        """A source for the controller: clusters whose turn may have changed without anything of theirs."""
        self._making: dict[tuple[str, str], ObjectKey] = {}
        """By namespace and shoot, which cluster makes its Secret now."""
        clusters.add_index("shoot", lambda cluster: (shoot_name(cluster),))
        clusters.add_index("name", lambda cluster: (cluster["metadata"]["name"],))
        clusters.add_index("claim", lambda cluster: (key_of_claim(cluster),))
        secrets.add_index("shoot", by_shoot)
        secrets.add_index("claim", by_claim)

    def become(self, settings: Settings) -> None:
        """Rotate by `settings` from now on; every cluster is looked at again."""
        self._settings = settings
        for key in self._clusters:
            self.again.fire(key, priority=Priority.RESYNC)

    async def reconcile(self, key: ObjectKey) -> Result | None:
        cluster = self._clusters.get(key)
        if cluster is None:
            self._repairs.forget(key)
            if not self._clusters.by("name", key.name):
                self._metrics.clear(key.name)
            await self._cleanup.after(key)
            return None
        if is_deleting(cluster):
            await self._cleanup.release(cluster)
            return None
        if not await self._granted(cluster):
            return Result(requeue_after=UNKNOWN_PAUSE)
        cluster = await self._cleanup.hold(cluster)
        secret = await self._find_secret(cluster)
        if secret is not None:
            return await self._tend(cluster, secret)
        # Of two that each made one, neither could be told to be the shoot's.
        place = (secret_reference(cluster).namespace, shoot_name(cluster))
        if self._making.setdefault(place, key) != key:
            return Result(requeue_after=TWIN_PAUSE)
        try:
            return await self._tend(cluster, await self._named_secret(cluster))
        finally:
            del self._making[place]

    async def _granted(self, cluster: Object) -> bool:
        """True when it is known that the cluster may have what it asks for. Fails it when it may not."""
        grants = self._settings.grants
        if refusal := grants.secret_refusal(cluster):
            await self._fail(cluster, Reason.CREATE_FAILED, refusal, actor=Actor.USER, after=MISSING_SHOOT_PAUSE)
        shoot = self._shoots.get(ObjectKey(self._settings.garden_namespace, shoot_name(cluster))) or {}
        refusal = grants.shoot_refusal(cluster, shoot.get("allowed", ()))
        if refusal and not self._shoots.has_synced and (cluster.get("status") or {}).get("state") == State.READY:
            # It was allowed before this process began, and what the shoot allows is not known yet.
            return False
        if refusal:
            after = MISSING_SHOOT_PAUSE
            await self._fail(cluster, Reason.KUBECONFIG_FAILED, refusal, actor=Actor.OPERATOR, after=after)
        return True

    async def _tend(self, cluster: Object, secret: Object | None) -> Result:
        shared = secret is not None and await self._shared(cluster, secret)
        decision = service.decide(cluster, secret, self._settings.policy, self._clock.now(), home=self._home(cluster))
        if decision.action is Action.KEEP and secret is not None:
            if not shared:
                await self._repair(cluster, secret)
            reason = service.kept_reason(cluster)
        else:
            if decision.damaged:
                await self._take_turns(cluster, decision.why)
            reason, secret = await self._renew(cluster, secret, decision, shared=shared)
            if decision.damaged:
                self._repairs.repaired(key_of(cluster), self._clock.monotonic())
        if service.is_forced(cluster):
            await self._settle(cluster)
        await self._show(cluster, service.ready_status(cluster, reason, self._clock.now()))
        if (last_sync := service.last_sync(secret)) is not None:
            self._metrics.set_expiration(cluster, last_sync, self._settings.policy)
        return Result(requeue_after=decision.after)

    def keys_of_secret(self, secret: Object) -> Iterable[ObjectKey]:
        """The GardenerClusters that a Secret concerns: the one it belongs to, and those of its shoot."""
        claim = claim_of(secret)
        found = dict.fromkeys(self._clusters.keys_by("claim", claim.key)) if claim is not None else {}
        if claim is not None and not found:
            # Its GardenerCluster is gone, perhaps while we were down: the key has it cleaned up.
            found[ObjectKey(claim.namespace, claim.name)] = None
        for shoot in by_shoot(secret):
            found |= dict.fromkeys(self._clusters.keys_by("shoot", shoot))
        return found

    def keys_of_shoot(self, shoot: Object) -> Iterable[ObjectKey]:
        """The GardenerClusters that wait for this shoot."""
        return self._clusters.keys_by("shoot", shoot["metadata"]["name"])

    def _home(self, cluster: Object) -> str:
        shoot = self._shoots.get(ObjectKey(self._settings.garden_namespace, shoot_name(cluster)))
        return service.home_of(shoot)

    async def _find_secret(self, cluster: Object) -> Object | None:
        """The Secret of the cluster, as far as the watch shows it."""
        named = self._cached_secret(cluster)
        by_shoot = self._secrets.by("shoot", shoot_name(cluster))
        try:
            return choose_secret(cluster, by_shoot, named, self._holder)
        except AmbiguousSecret as error:
            await self._fail(cluster, Reason.CHECK_FAILED, str(error), actor=Actor.OPERATOR)

    def _cached_secret(self, cluster: Object) -> Object | None:
        """The Secret that has the wanted name, its own or not, as far as the watch shows it."""
        return self._secrets.get(ObjectKey(*secret_reference(cluster)[:2]))

    async def _named_secret(self, cluster: Object) -> Object | None:
        """The Secret that has the wanted name, if it is ours: it lost its label, or lies where nobody watches.

        Asked for first, so that the garden is asked for nothing that could not be written; but not for a new cluster,
        which has no Secret as a rule, and whose creation of one says when the name is taken.
        """
        if not cluster.get("status") and self._cached_secret(cluster) is None:
            return None
        try:
            named = await self._vault.read(secret_reference(cluster))
        except BadRequest:
            # No name of a Secret: its creation says so, in the words of the API server.
            return None
        except KubeError as error:
            await self._fail(cluster, Reason.CHECK_FAILED, str(error), actor=Actor.OPERATOR)
        if named is not None and not is_ours(cluster, named):
            await self._fail_taken(cluster)
        return named

    def _holder(self, claim: Claim) -> Object | None:
        return next(iter(self._clusters.by("claim", claim.key)), None)

    async def _shared(self, cluster: Object, secret: Object) -> bool:
        """Whether another GardenerCluster of the same shoot keeps this Secret; then only a renewal of it is ours."""
        if not is_at_home(cluster):
            return False
        namespace = cluster["metadata"]["namespace"]
        claimants = [
            other
            for other in self._clusters.by("shoot", shoot_name(cluster))
            if is_at_home(other) and other["metadata"]["namespace"] == namespace
        ]
        holder = holder_of(secret, [cluster, *claimants])["metadata"]
        mine = (cluster["metadata"]["namespace"], cluster["metadata"]["name"])
        if mine == (holder["namespace"], holder["name"]):
            return False
        if service.lacks_key(cluster, secret):
            text = (
                f"secret {secret['metadata']['namespace']}/{secret['metadata']['name']} is kept for GardenerCluster "
                f"{holder['namespace']}/{holder['name']}, which has the same shoot, and lacks key "
                f"{secret_reference(cluster).key} (cluster owner: name the same key, or delete one of the two)"
            )
            await self._fail(cluster, Reason.CHECK_FAILED, text, actor=Actor.USER)
        return True

    async def _renew(
        self, cluster: Object, secret: Object | None, decision: Decision, *, shared: bool
    ) -> tuple[str, Object]:
        """Fetch a kubeconfig, see that it works, store it."""
        home = self._home(cluster)
        grant = await self._fetch(cluster)
        await self._prove(cluster, grant)
        now = self._clock.now()
        if secret is None:
            created = await self._create(cluster, grant, now, home)
            if created is not None:
                return Reason.CREATED, created
            secret = await self._taken_secret(cluster)
        patch = service.renewal(
            cluster, secret, grant.kubeconfig, now=now, expires=grant.expires, home=home, shared=shared
        )
        written = await self._update(cluster, secret, patch)
        if written is None:
            raise StepError("the secret was deleted while it was rotated", after=0.0, reason="SecretDeleted")
        self._tell_rotated(cluster, decision)
        return Reason.ROTATED, written

    async def _take_turns(self, cluster: Object, why: str) -> None:
        """Have a Secret that is damaged again and again mended less and less often, and say so."""
        pause = self._repairs.pause(key_of(cluster), self._clock.monotonic())
        if not pause:
            return
        reference = secret_reference(cluster)
        text = (
            f"secret {reference.namespace}/{reference.name} is changed by somebody else each time it was written: "
            f"{why} (operator: see its metadata.managedFields for who does; it is written less and less often)"
        )
        await self._fail(cluster, Reason.UPDATE_FAILED, text, actor=Actor.OPERATOR, after=pause)

    async def _fetch(self, cluster: Object) -> Grant:
        shoot = shoot_name(cluster)
        try:
            return await self._garden.admin_kubeconfig(shoot, int(self._settings.policy.lifetime))
        except GardenFailure as error:
            after = MISSING_SHOOT_PAUSE if error.missing else error.retry_after
            await self._fail(cluster, Reason.KUBECONFIG_FAILED, str(error), actor=error.actor, after=after)

    async def _prove(self, cluster: Object, grant: Grant) -> None:
        shoot = shoot_name(cluster)
        try:
            await self._proof.prove(grant.kubeconfig, origin=f"kubeconfig of shoot {shoot}")
        except ProofFailed as error:
            if error.unreachable and await self._sleeps(shoot):
                return
            await self._fail(cluster, Reason.KUBECONFIG_FAILED, str(error), actor=Actor.PROVIDER)

    async def _sleeps(self, shoot: str) -> bool:
        """Whether nothing can be proven since the cluster is hibernated: its kubeconfig must be there when it wakes."""
        try:
            return await self._garden.hibernated(shoot)
        except GardenFailure:
            return False

    async def _update(self, cluster: Object, secret: Object, patch: Object) -> Object | None:
        """The Secret after `patch`; None when it has gone meanwhile."""
        try:
            return await self._vault.amend(secret, patch)
        except KubeError as error:
            await self._fail(cluster, Reason.UPDATE_FAILED, str(error), actor=Actor.OPERATOR)

    async def _create(self, cluster: Object, grant: Grant, now: float, home: str) -> Object | None:
        """The new Secret; None when there is one of that name which our cache does not show."""
        secret = service.new_secret(cluster, grant.kubeconfig, now=now, expires=grant.expires, home=home)
        try:
            return await self._vault.create(secret)
        except AlreadyExists:
            return None
        except KubeError as error:
            await self._fail(cluster, Reason.CREATE_FAILED, str(error), actor=Actor.OPERATOR)

    async def _taken_secret(self, cluster: Object) -> Object:
        """The Secret that has the wanted name already, if it is ours: somebody took its shoot label off."""
        try:
            found = choose_secret(cluster, (), await self._vault.read(secret_reference(cluster)))
        except KubeError as error:
            await self._fail(cluster, Reason.CHECK_FAILED, str(error), actor=Actor.OPERATOR)
        if found is None:
            await self._fail_taken(cluster)
        return found

    async def _fail_taken(self, cluster: Object) -> NoReturn:
        reference = secret_reference(cluster)
        text = (
            f"secret {reference.namespace}/{reference.name} exists and its labels do not say that it belongs to "
            "this cluster (cluster owner: delete it, or name another one in spec.kubeconfig.secret)"
        )
        await self._fail(cluster, Reason.CREATE_FAILED, text, actor=Actor.USER)

    async def _repair(self, cluster: Object, secret: Object) -> None:
        patch = service.repair(cluster, secret, home=self._home(cluster))
        if patch is None:
            return
        if damaged := bool(patch["metadata"].keys() - {"annotations"}):
            await self._take_turns(cluster, "its labels or owners are taken off")
        await self._update(cluster, secret, patch)
        if damaged:
            self._repairs.repaired(key_of(cluster), self._clock.monotonic())

    async def _settle(self, cluster: Object) -> None:
        """Take the force annotation off, now that what it asked for is done."""
        metadata = cluster["metadata"]
        patch = {"metadata": {"annotations": {Annotation.FORCE_ROTATION: None}}}
        try:
            updated = await self._client.patch(
                GARDENER_CLUSTERS, metadata["name"], patch, metadata["namespace"], field_manager=FIELD_MANAGER
            )
        except NotFound:
            return
        self._clusters.learn(updated)

    async def _show(self, cluster: Object, status: Object) -> None:
        """Write the status if it says anything new."""
        condition = status["conditions"][-1]
        self._metrics.set_state(cluster, status["state"], condition["reason"])
        if cluster.get("status") == status:
            return
        metadata = cluster["metadata"]
        try:
            updated = await self._client.patch(
                GARDENER_CLUSTERS,
                metadata["name"],
                {"status": status},
                metadata["namespace"],
                subresource="status",
                field_manager=FIELD_MANAGER,
            )
        except NotFound:
            return
        self._clusters.learn(updated)

    async def _fail(
        self, cluster: Object, reason: str, error: str, *, actor: Actor, after: float | None = None
    ) -> NoReturn:
        """Show the failure and have the queue try again."""
        error = redact_text(error)
        before = cluster.get("status")
        status = service.error_status(cluster, reason, error, self._clock.now())
        if before != status:
            self._events.event(cluster, "Warning", reason, error)
        await self._show(cluster, status)
        raise StepError(error, after=after, reason=reason, actor=actor)

    def _tell_rotated(self, cluster: Object, decision: Decision) -> None:
        secret = secret_reference(cluster)
        text = f"Kubeconfig in secret {secret.namespace}/{secret.name} replaced: {decision.why}"
        self._events.event(cluster, "Normal", Reason.ROTATED, text)
