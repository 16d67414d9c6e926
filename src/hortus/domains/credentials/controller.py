"""The GardenerCluster controller: a Secret with a kubeconfig that works, for every GardenerCluster, always.

Conditions it owns: `KubeconfigManagement` of GardenerClusters, and their `status.state`.
Objects it owns: the Secrets that GardenerClusters name; it also takes off the force-rotation annotation, and holds a
GardenerCluster by a finalizer when its Secret lies where it does not watch.
It watches: GardenerClusters (spec and metadata), Secrets with a shoot label, Shoots (that one has come to be).
It asks the garden only when a kubeconfig is due, and writes nothing when nothing changed.
It never: changes a Shoot, adopts or deletes a Secret whose labels do not say it is ours, drops a kubeconfig before the
next one was seen to work, puts a credential into a log, an event or a condition.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NoReturn

import structlog

from hortus.domains.credentials import secrets as kept
from hortus.domains.credentials import service
from hortus.domains.credentials.garden import Garden, GardenFailure, Grant
from hortus.domains.credentials.metrics import CredentialMetrics
from hortus.domains.credentials.proof import Proof, ProofFailed
from hortus.domains.credentials.service import Action, AmbiguousSecret, Decision
from hortus.domains.credentials.settings import Settings
from hortus.domains.credentials.types import FINALIZER, GARDENER_CLUSTERS, Annotation, Label, Reason
from hortus.domains.credentials.vault import FIELD_MANAGER, Vault
from hortus.engine import (
    Actor,
    Cache,
    EventRecorder,
    Priority,
    Result,
    Retry,
    Trigger,
    add_finalizer,
    has_finalizer,
    is_deleting,
    redact_text,
    remove_finalizer,
)
from hortus.kube import Client
from hortus.kube.clock import Clock
from hortus.kube.errors import AlreadyExists, KubeError, NotFound
from hortus.kube.objects import Object, ObjectKey

MISSING_SHOOT_PAUSE = 300.0
"""Seconds until a shoot that does not exist is asked for again; its appearing is watched, this is for gardens that do
not let us watch."""
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
        proof: Proof,
        settings: Settings,
        metrics: CredentialMetrics,
        events: EventRecorder,
        clock: Clock,
    ) -> None:
        self._client = client
        self._clusters = clusters
        self._secrets = secrets
        self._vault = Vault(client, secrets)
        self._shoots = shoots
        self._garden = garden
        self._proof = proof
        self._settings = settings
        self._metrics = metrics
        self._events = events
        self._clock = clock
        self.again = Trigger()
        """A source for the controller: clusters whose turn may have changed without anything of theirs."""
        self._making: dict[str, ObjectKey] = {}
        """By shoot, which cluster makes its Secret now."""
        clusters.add_index("shoot", lambda cluster: (service.shoot_name(cluster),))
        clusters.add_index("label", lambda cluster: (kept.label_of(cluster["metadata"]["name"]),))
        secrets.add_index("shoot", kept.by_shoot)
        secrets.add_index("cluster", kept.by_cluster)

    def become(self, settings: Settings) -> None:
        """Rotate by `settings` from now on; every cluster is looked at again."""
        self._settings = settings
        for key in self._clusters:
            self.again.fire(key, priority=Priority.RESYNC)

    async def reconcile(self, key: ObjectKey) -> Result | None:
        cluster = self._clusters.get(key)
        if cluster is None:
            await self._gone(key)
            return None
        if is_deleting(cluster):
            await self._let_go(cluster)
            return None
        cluster = await self._hold(cluster)
        secret = await self._find_secret(cluster)
        if secret is not None:
            return await self._tend(cluster, secret)
        # Of two that each made one, neither could be told to be the shoot's.
        shoot = service.shoot_name(cluster)
        if self._making.setdefault(shoot, key) != key:
            return Result(requeue_after=TWIN_PAUSE)
        try:
            return await self._tend(cluster, None)
        finally:
            del self._making[shoot]

    async def _tend(self, cluster: Object, secret: Object | None) -> Result:
        shared = secret is not None and await self._shared(cluster, secret)
        decision = service.decide(cluster, secret, self._settings.policy, self._clock.now(), home=self._home(cluster))
        if decision.action is Action.KEEP and secret is not None:
            if not shared:
                await self._repair(cluster, secret)
            reason = service.kept_reason(cluster)
        else:
            reason, secret = await self._renew(cluster, secret, decision, shared=shared)
        if decision.forced:
            await self._settle(cluster)
        await self._show(cluster, service.ready_status(cluster, reason, self._clock.now()))
        if (last_sync := service.last_sync(secret)) is not None:
            self._metrics.set_expiration(cluster, last_sync, self._settings.policy)
        return Result(requeue_after=decision.after)

    def keys_of_secret(self, secret: Object) -> Iterable[ObjectKey]:
        """The GardenerClusters that a Secret concerns: by its cluster label, and by its shoot label."""
        metadata = secret["metadata"]
        name = (metadata.get("labels") or {}).get(Label.CLUSTER_NAME)
        found = dict.fromkeys(self._clusters.keys_by("label", name)) if name else {}
        for shoot in kept.by_shoot(secret):
            found |= dict.fromkeys(self._clusters.keys_by("shoot", shoot))
        if name and not found:
            # Its GardenerCluster is gone, perhaps while we were down: the key lets `_gone` clean up.
            found[ObjectKey(metadata["namespace"], name)] = None
        return found

    def keys_of_shoot(self, shoot: Object) -> Iterable[ObjectKey]:
        """The GardenerClusters that wait for this shoot."""
        return self._clusters.keys_by("shoot", shoot["metadata"]["name"])

    async def _gone(self, key: ObjectKey) -> None:
        """Take the Secrets of a GardenerCluster along that is no more."""
        label = kept.label_of(key.name)
        namesakes = self._clusters.by("label", label)
        if not namesakes:
            self._metrics.clear(key.name)
        for secret in self._secrets.by("cluster", label):
            if not _wanted(secret, namesakes) and not _wanted(secret, await self._surely_living(label)):
                await self._vault.delete(secret)

    async def _surely_living(self, label: str) -> Sequence[Object]:
        """Ask the server itself: a cache that is behind must not cost anybody a credential."""
        # A label as long as labels get may stand for a longer name.
        fields = f"metadata.name={label}" if len(label) < kept.LABEL_LIMIT else ""
        listed = await self._client.list(GARDENER_CLUSTERS, self._settings.namespace, fields=fields, limit=500)
        return [cluster for cluster in listed.items if kept.label_of(cluster["metadata"]["name"]) == label]

    async def _hold(self, cluster: Object) -> Object:
        """See to it that a Secret which we do not watch is not forgotten when its cluster goes."""
        if self._watches(service.secret_reference(cluster).namespace):
            return cluster
        held = await add_finalizer(self._client, GARDENER_CLUSTERS, cluster, FINALIZER)
        if held is not cluster:
            self._clusters.learn(held)
        return held

    async def _let_go(self, cluster: Object) -> None:
        """Delete the Secret that the finalizer stands for, then let the cluster go."""
        if not has_finalizer(cluster, FINALIZER):
            return
        secret = service.choose_secret(cluster, (), await self._vault.read(service.secret_reference(cluster)))
        if secret is not None:
            await self._vault.delete(secret)
        await remove_finalizer(self._client, GARDENER_CLUSTERS, cluster, FINALIZER)

    def _watches(self, namespace: str) -> bool:
        return self._settings.namespace in ("", namespace)

    def _home(self, cluster: Object) -> str:
        shoot = self._shoots.get(ObjectKey(self._settings.garden_namespace, service.shoot_name(cluster)))
        return service.home_of(shoot)

    async def _find_secret(self, cluster: Object) -> Object | None:
        reference = service.secret_reference(cluster)
        named = self._secrets.get(ObjectKey(reference.namespace, reference.name))
        try:
            if named is None and not self._watches(reference.namespace):
                named = await self._vault.read(reference)
            by_shoot = self._secrets.by("shoot", service.shoot_name(cluster))
            return service.choose_secret(cluster, by_shoot, named)
        except (AmbiguousSecret, KubeError) as error:
            await self._fail(cluster, Reason.CHECK_FAILED, str(error), actor=Actor.OPERATOR)

    async def _shared(self, cluster: Object, secret: Object) -> bool:
        """Whether another GardenerCluster of the same shoot keeps this Secret; then only a renewal of it is ours."""
        claimants = self._clusters.by("shoot", service.shoot_name(cluster))
        holder = service.holder_of(secret, [cluster, *claimants])["metadata"]
        mine = (cluster["metadata"]["namespace"], cluster["metadata"]["name"])
        if mine == (holder["namespace"], holder["name"]):
            return False
        if service.lacks_key(cluster, secret):
            text = (
                f"secret {secret['metadata']['namespace']}/{secret['metadata']['name']} is kept for GardenerCluster "
                f"{holder['namespace']}/{holder['name']}, which has the same shoot, and lacks key "
                f"{service.secret_reference(cluster).key} (cluster owner: name the same key, or delete one of the two)"
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
            raise Retry("the secret was deleted while it was rotated", after=0.0, reason="SecretDeleted")
        self._tell_rotated(cluster, decision)
        return Reason.ROTATED, written

    async def _fetch(self, cluster: Object) -> Grant:
        shoot = service.shoot_name(cluster)
        try:
            return await self._garden.admin_kubeconfig(shoot, int(self._settings.policy.lifetime))
        except GardenFailure as error:
            after = MISSING_SHOOT_PAUSE if error.missing else error.retry_after
            await self._fail(cluster, Reason.KUBECONFIG_FAILED, str(error), actor=error.actor, after=after)

    async def _prove(self, cluster: Object, grant: Grant) -> None:
        shoot = service.shoot_name(cluster)
        try:
            await self._proof.prove(grant.kubeconfig, shoot=shoot)
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
        reference = service.secret_reference(cluster)
        try:
            found = service.choose_secret(cluster, (), await self._vault.read(reference))
        except KubeError as error:
            await self._fail(cluster, Reason.CHECK_FAILED, str(error), actor=Actor.OPERATOR)
        if found is None:
            text = (
                f"secret {reference.namespace}/{reference.name} exists and its labels do not say that it belongs to "
                "this cluster (cluster owner: delete it, or name another one in spec.kubeconfig.secret)"
            )
            await self._fail(cluster, Reason.CREATE_FAILED, text, actor=Actor.USER)
        return found

    async def _repair(self, cluster: Object, secret: Object) -> None:
        patch = service.repair(cluster, secret, home=self._home(cluster))
        if patch is not None:
            await self._update(cluster, secret, patch)

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
        raise Retry(error, after=after, reason=reason, actor=actor)

    def _tell_rotated(self, cluster: Object, decision: Decision) -> None:
        secret = service.secret_reference(cluster)
        text = f"Kubeconfig in secret {secret.namespace}/{secret.name} replaced: {decision.why}"
        self._events.event(cluster, "Normal", Reason.ROTATED, text)


def _wanted(secret: Object, clusters: Iterable[Object]) -> bool:
    """Whether one of `clusters`, which all have the name on the Secret's label, has its shoot."""
    shoots = kept.by_shoot(secret)
    return any(service.shoot_name(cluster) in shoots for cluster in clusters)
