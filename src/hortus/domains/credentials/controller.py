"""The GardenerCluster controller: a Secret with a kubeconfig that works, for every GardenerCluster, always.

Conditions it owns: `KubeconfigManagement` of GardenerClusters, and their `status.state`.
Objects it owns: the Secrets that GardenerClusters name; it also takes off the force-rotation annotation.
It watches: GardenerClusters (spec and metadata), Secrets with a shoot label, Shoots (that one has come to be).
It asks the garden only when a kubeconfig is due, and writes nothing when nothing changed.
It never: changes a Shoot, adopts or deletes a Secret whose labels do not say it is ours, drops a kubeconfig before the
next one was seen to work, puts a credential into a log, an event or a condition.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

import structlog

from hortus.domains.credentials import secrets as kept
from hortus.domains.credentials import service
from hortus.domains.credentials.garden import Garden, GardenFailure, Grant
from hortus.domains.credentials.metrics import CredentialMetrics
from hortus.domains.credentials.proof import Proof, ProofFailed
from hortus.domains.credentials.service import Action, AmbiguousSecret, Decision
from hortus.domains.credentials.settings import Settings
from hortus.domains.credentials.types import GARDENER_CLUSTERS, Annotation, Label, Reason
from hortus.engine import Actor, Cache, EventRecorder, Result, Retry
from hortus.kube import Client
from hortus.kube.clock import Clock
from hortus.kube.errors import AlreadyExists, KubeError, NotFound
from hortus.kube.objects import Object, ObjectKey, Resource

SECRETS = Resource("", "v1", "secrets", "Secret")
FIELD_MANAGER = "infrastructure-manager"
MISSING_SHOOT_PAUSE = 300.0
"""Seconds until a shoot that does not exist is asked for again; its appearing is watched, this is for gardens that do
not let us watch."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class GardenerClusterController:
    """Reconciles one GardenerCluster at a time; see the module's head."""

    def __init__(
        self,
        *,
        client: Client,
        clusters: Cache,
        secrets: Cache,
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
        self._garden = garden
        self._proof = proof
        self._settings = settings
        self._metrics = metrics
        self._events = events
        self._clock = clock
        clusters.add_index("shoot", lambda cluster: (service.shoot_name(cluster),))
        clusters.add_index("name", lambda cluster: (cluster["metadata"]["name"],))
        secrets.add_index("shoot", kept.by_shoot)
        secrets.add_index("cluster", kept.by_cluster)

    async def reconcile(self, key: ObjectKey) -> Result | None:
        cluster = self._clusters.get(key)
        if cluster is None:
            await self._gone(key)
            return None
        if cluster["metadata"].get("deletionTimestamp"):
            return None
        secret = await self._find_secret(cluster)
        decision = service.decide(cluster, secret, self._settings.policy, self._clock.now())
        if decision.action is Action.KEEP and secret is not None:
            await self._repair(cluster, secret)
            reason = service.kept_reason(cluster)
        else:
            reason, secret = await self._renew(cluster, secret, decision)
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
        found = dict.fromkeys(self._clusters.keys_by("name", name)) if name else {}
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
        self._metrics.clear(key.name)
        if self._clusters.keys_by("name", key.name):
            return
        for secret in self._secrets.by("cluster", key.name):
            if not await self._surely_gone(key):
                return
            metadata = secret["metadata"]
            try:
                await self._client.delete(SECRETS, metadata["name"], metadata["namespace"], uid=metadata["uid"])
            except NotFound:
                continue
            _log.info(
                "deleted the secret of a cluster that is gone", secret=f"{metadata['namespace']}/{metadata['name']}"
            )

    async def _surely_gone(self, key: ObjectKey) -> bool:
        """Ask the server itself: a cache that is behind must not cost anybody a credential."""
        try:
            await self._client.get(GARDENER_CLUSTERS, key.name, key.namespace)
        except NotFound:
            return True
        return False

    async def _find_secret(self, cluster: Object) -> Object | None:
        reference = service.secret_reference(cluster)
        named = self._secrets.get(ObjectKey(reference.namespace, reference.name))
        try:
            if named is None and self._settings.namespace not in ("", reference.namespace):
                named = await self._read_secret(reference)
            return service.choose_secret(cluster, self._secrets.by("shoot", service.shoot_name(cluster)), named)
        except (AmbiguousSecret, KubeError) as error:
            await self._fail(cluster, Reason.CHECK_FAILED, str(error), actor=Actor.OPERATOR)

    async def _read_secret(self, reference: service.SecretReference) -> Object | None:
        try:
            return kept.sealed(await self._client.get(SECRETS, reference.name, reference.namespace))
        except NotFound:
            return None

    async def _renew(self, cluster: Object, secret: Object | None, decision: Decision) -> tuple[str, Object]:
        """Fetch a kubeconfig, see that it works, store it."""
        grant = await self._fetch(cluster)
        await self._prove(cluster, grant)
        now = self._clock.now()
        if secret is None:
            created = await self._create(cluster, grant, now)
            if created is not None:
                return Reason.CREATED, created
            secret = await self._taken_secret(cluster)
        patch = service.renewal(cluster, secret, grant.kubeconfig, now=now, expires=grant.expires)
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
        metadata = secret["metadata"]
        try:
            written = await self._client.patch(
                SECRETS, metadata["name"], patch, metadata["namespace"], field_manager=FIELD_MANAGER
            )
        except NotFound:
            return None
        except KubeError as error:
            await self._fail(cluster, Reason.UPDATE_FAILED, str(error), actor=Actor.OPERATOR)
        return self._learn(written)

    async def _create(self, cluster: Object, grant: Grant, now: float) -> Object | None:
        """The new Secret; None when there is one of that name which our cache does not show."""
        secret = service.new_secret(cluster, grant.kubeconfig, now=now, expires=grant.expires)
        try:
            return self._learn(await self._client.create(SECRETS, secret, field_manager=FIELD_MANAGER))
        except AlreadyExists:
            return None
        except KubeError as error:
            await self._fail(cluster, Reason.CREATE_FAILED, str(error), actor=Actor.OPERATOR)

    async def _taken_secret(self, cluster: Object) -> Object:
        """The Secret that has the wanted name already, if it is ours: somebody took its shoot label off."""
        reference = service.secret_reference(cluster)
        try:
            found = service.choose_secret(cluster, (), await self._read_secret(reference))
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
        patch = service.repair(cluster, secret)
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
        before = cluster.get("status")
        status = service.error_status(cluster, reason, error, self._clock.now())
        if before != status:
            self._events.event(cluster, "Warning", reason, error)
        await self._show(cluster, status)
        raise Retry(error, after=after, reason=reason, actor=actor)

    def _learn(self, written: Object) -> Object:
        self._secrets.learn(written)
        return written

    def _tell_rotated(self, cluster: Object, decision: Decision) -> None:
        secret = service.secret_reference(cluster)
        text = f"Kubeconfig in secret {secret.namespace}/{secret.name} replaced: {decision.why}"
        self._events.event(cluster, "Normal", Reason.ROTATED, text)
