"""The controller of ClusterProfiles: one for each cluster that a source names, and none for any other.

Conditions it owns: Joined, ControlPlaneHealthy, CredentialsFresh and IdentityProven of its own profiles, and all of
their status.
Objects it owns: the ClusterProfiles whose manager is `hortus`; of these the spec, the labels and the annotation that it
applies. Labels and annotations of others stay.
It watches: the sources, ClusterProfiles, kubeconfig Secrets, Shoots; in the clusters nodes and ClusterProperties.
It never: writes a profile of another manager, changes a source, writes anything but its mark into a cluster, or
writes a profile of which nothing has changed. What a cluster says of itself never takes a profile from another one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import structlog

from hortus.domains.credentials.types import Annotation as SecretAnnotation
from hortus.domains.inventory import service
from hortus.domains.inventory.claims import ClusterClaim
from hortus.domains.inventory.identity import AGAIN, Identities, RecordedIdentity
from hortus.domains.inventory.member import VERSION_PERIOD, RemoteClusters
from hortus.domains.inventory.metrics import InventoryMetrics
from hortus.domains.inventory.registry import FleetRegistry, format_sources, parse_sources
from hortus.domains.inventory.service import CONNECTING, ClusterFacts, ConditionDraft
from hortus.domains.inventory.settings import LabelFilter
from hortus.domains.inventory.shoots import ShootStates
from hortus.domains.inventory.sources import SecretSource
from hortus.domains.inventory.types import (
    CLUSTER_PROFILES,
    MANAGER,
    ClusterProfile,
    ProfileAnnotation,
    ProfileCondition,
    ProfileReason,
)
from hortus.engine import (
    FALSE,
    NORMAL,
    TRUE,
    WARNING,
    Actor,
    Announcement,
    KindController,
    ReconcileContext,
    Result,
    StepError,
    Steps,
    TypedCache,
    Wiring,
    find_condition,
    is_deleting,
)
from hortus.engine.kubeconfigs import KubeconfigSecret
from hortus.engine.outcomes import DONE
from hortus.engine.remote import KubeconfigRef, Phase
from hortus.kube import PatchKind
from hortus.kube.errors import Conflict, NotFound
from hortus.kube.objects import Object, ObjectKey, format_time, key_of, parse_time, shaped
from hortus.schema import Condition

FIELD_MANAGER = "hortus-inventory"
LONGEST_TRIAL = 15.0
"""Seconds after which a cluster gets its profile though it has not said yet which one it is."""
TRIAL_PAUSE = 1.0
"""Seconds between two looks at a cluster that tries another credential, whose success no state reports."""
NAMESPACE_PAUSE = 30.0
"""Seconds until it is tried again to make a profile in a namespace that does not exist."""
_CONDITIONS = (
    ProfileCondition.JOINED,
    ProfileCondition.CONTROL_PLANE_HEALTHY,
    ProfileCondition.CREDENTIALS_FRESH,
    ProfileCondition.IDENTITY_PROVEN,
)

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class ProfileContext(ReconcileContext[ClusterProfile]):
    """One reconcile of one profile."""

    claims: Sequence[ClusterClaim] = ()
    facts: ClusterFacts

    @property
    def is_ours(self) -> bool:
        return self.object.spec.cluster_manager.name == MANAGER

    @property
    def known_properties(self) -> Mapping[str, str]:
        return {one.name: one.value for one in self.object.status.properties}

    def announcements(self, before: Object) -> Iterator[Announcement]:
        """A warning for a condition that becomes False, and an event for one that does no longer."""
        for kind in _CONDITIONS:
            old, new = (shaped(find_condition(raw, kind), Condition) for raw in (before, self.raw))
            was = old.status if old is not None else ""
            if new is None or new.status == was or FALSE not in (new.status, was):
                continue
            if was or new.reason != ProfileReason.NO_KUBECONFIG:  # a new cluster has none yet
                yield Announcement(WARNING if new.status == FALSE else NORMAL, new.reason, new.message)


class ClusterProfileController(KindController[ProfileContext]):
    """Reconciles one profile at a time; see the module's head."""

    kind = ClusterProfile
    field_manager = FIELD_MANAGER

    def __init__(
        self,
        wiring: Wiring[ClusterProfile],
        *,
        registry: FleetRegistry,
        members: RemoteClusters,
        shoots: ShootStates,
        secrets: Sequence[TypedCache[KubeconfigSecret]],
        labels: LabelFilter,
        metrics: InventoryMetrics,
    ) -> None:
        super().__init__(wiring)
        self._registry = registry
        self._members = members
        self._identities = Identities(members, registry, wiring.cache, self._place)
        self._shoots = shoots
        self._secrets = secrets
        self._labels = labels
        self._metrics = metrics
        self._trials: dict[ObjectKey, float] = {}

    def make_context(self, raw: Object) -> ProfileContext:
        return ProfileContext(self.wiring, raw)

    def steps(self, context: ProfileContext) -> Steps:
        return (self._check_manager, self._find_cluster, self._identify, self._apply, self._report)

    def report(self, context: ProfileContext, error: StepError) -> None:
        """A profile has the conditions of the Cluster Inventory API alone: failures of ours are logged."""

    async def gone(self, key: ObjectKey) -> Result | None:
        """Make the profile of a cluster that has none."""
        claims = self._registry.claims_of(key.name)
        if not claims:
            self._forget(key)
            return None
        facts = await self._facts(key, claims)
        if self._is_undecided(key, facts):
            return Result(requeue_after=TRIAL_PAUSE)
        self._trials.pop(key, None)
        found = await self._identities.find(key, claims, RecordedIdentity())
        if found.takes_over:
            await self._hand_over(ObjectKey(key.namespace, found.takes_over), claims)
            return DONE
        sources = format_sources((claim.origin, "") for claim in claims)
        await self._write(service.profile(key, facts, self._labels, sources, {}))
        return DONE

    # The steps.

    async def _check_manager(self, context: ProfileContext) -> Result | None:
        if context.is_ours:
            return None
        self._forget(context.key)
        return DONE

    async def _find_cluster(self, context: ProfileContext) -> Result | None:
        """Find the claims and collect the facts; delete the profile of a cluster that no source names."""
        key, metadata = context.key, context.object.metadata
        context.claims = self._registry.claims_of(key.name)
        if context.claims:
            context.facts = await self._facts(key, context.claims)
            return None
        self._forget(key)
        try:
            await self.wiring.client.delete(CLUSTER_PROFILES, key.name, key.namespace, uid=metadata.uid)
        except (NotFound, Conflict):
            return DONE  # it is gone, or another one of that name is there, which the watch reports
        return DONE

    async def _identify(self, context: ProfileContext) -> Result | None:
        """Prove the identity; give the sources to the profile that stays, where two are of one cluster."""
        found = await self._identities.find(context.key, context.claims, RecordedIdentity.of(context.object))
        if found.takes_over:
            await self._hand_over(ObjectKey(context.key.namespace, found.takes_over), context.claims)
            return DONE
        context.facts = context.facts._replace(identity=found)
        return None

    async def _apply(self, context: ProfileContext) -> Result | None:
        """Apply spec, labels and the sources; the reconcile goes on with the object as it is then."""
        facts, before = context.facts, context.object
        moved = facts.identity.moved
        sources = format_sources(
            (claim.origin, mark)
            for claim in context.claims
            # Sources that were absorbed belong to the cluster that had the name before: they are found again.
            if not ((mark := self._registry.recorded(context.key.name, claim.origin)) and moved)
        )
        wanted = service.profile(context.key, facts, self._labels, sources, before.metadata.labels)
        if self.wiring.applier.matches(context.raw, wanted):
            return None
        await self._write(wanted, context.raw)
        return DONE  # the watch brings it back as it is now

    async def _report(self, context: ProfileContext) -> Result:
        facts, now = context.facts, context.now
        was_joined = _status(context, ProfileCondition.JOINED) == TRUE
        verdicts = {
            ProfileCondition.JOINED: service.joined(facts, was_joined=was_joined),
            ProfileCondition.CONTROL_PLANE_HEALTHY: service.control_plane(facts),
            ProfileCondition.CREDENTIALS_FRESH: service.credentials(facts, now),
            ProfileCondition.IDENTITY_PROVEN: service.identity(facts, context.key.namespace),
        }
        for kind, verdict in verdicts.items():
            self._set(context, kind, verdict)
        if facts.kubernetes:
            context.set_status("version", {"kubernetes": facts.kubernetes})
        context.set_status("properties", _stamped(context, facts, now) or None)
        provider = service.access_provider(facts)
        if provider is not None or facts.place is None:
            context.set_status("accessProviders", [provider] if provider is not None else None)
        return Result(requeue_after=self._next(facts, now))

    def observe(self, context: ProfileContext) -> None:
        if context.is_ours:
            conditions = {one.type: one.status for one in context.object.status.conditions}
            self._metrics.see(context.key, {kind: conditions.get(kind, "") for kind in _CONDITIONS})

    # Facts.

    async def _facts(self, key: ObjectKey, claims: Sequence[ClusterClaim]) -> ClusterFacts:
        """The facts about a cluster, which is watched from now on. Its version may be asked for."""
        place, members = self._place(claims), self._members
        members.enter(key, place)
        shoot = next((found for claim in claims if (found := self._shoots.get(claim.shoot))), None)
        remote = members.state(key)
        ready = remote is not None and remote.phase is Phase.READY
        version = await members.version(key) if ready and not (shoot and shoot.version) else ""
        return ClusterFacts(
            claims=claims,
            shoot=shoot,
            nodes=members.nodes(key),
            properties=members.properties(key),
            version=version,
            reached=members.identity(key),
            place=place,
            remote=remote,
            access=members.access(key),
            expires=self._expiry(place),
            shoots_known=self._shoots.cache.has_synced,
        )

    def _place(self, claims: Sequence[ClusterClaim]) -> KubeconfigRef | None:
        """The place of the kubeconfig of the cluster that these claims are about."""
        return next((claim.place for claim in claims if self._is_filled(claim)), None)

    def _is_filled(self, claim: ClusterClaim) -> bool:
        """True when its Secret exists: a connection that is tried before would count as a failed one, for all domains.

        A Secret that no cache shows is taken to exist when its keeper says so.
        """
        kept = claim.credential is not None and claim.credential.status == TRUE
        return claim.place is not None and (kept or self._secret(claim.place) is not None)

    def _secret(self, place: KubeconfigRef | None) -> KubeconfigSecret | None:
        if place is None:
            return None
        key = ObjectKey(place.namespace, place.name)
        return next((found for cache in self._secrets if (found := cache.get(key)) is not None), None)

    def _expiry(self, place: KubeconfigRef | None) -> float | None:
        secret = self._secret(place)
        text = secret.annotations.get(SecretAnnotation.EXPIRATION) if secret is not None else None
        try:
            return parse_time(text) if text else None
        except ValueError:
            return None

    def _is_undecided(self, key: ObjectKey, facts: ClusterFacts) -> bool:
        """True while it may yet turn out that the cluster has a profile. Runtimes and GardenerClusters have ids."""
        remote = facts.remote
        if facts.claims[0].rank < SecretSource.rank or remote is None or facts.reached is not None:
            return False
        if not remote.usable or (remote.phase is Phase.READY and not self._members.is_trying(key)):
            return False
        now = self.wiring.clock.monotonic()
        return now - self._trials.setdefault(key, now) < LONGEST_TRIAL

    async def _hand_over(self, to: ObjectKey, claims: Sequence[ClusterClaim]) -> None:
        raw = self.wiring.cache.raw.get(to)
        if raw is None or is_deleting(raw):
            return
        profile = self.wiring.cache.get(to)
        assert profile is not None
        sources = dict(parse_sources(profile.metadata.annotations))
        added = {claim.origin: claim.fingerprint for claim in claims if sources.get(claim.origin) != ""}
        annotations = {ProfileAnnotation.SOURCES: format_sources({**sources, **added}.items())}
        patch = {"metadata": {"resourceVersion": profile.metadata.resource_version, "annotations": annotations}}
        written = await self.wiring.client.patch(
            CLUSTER_PROFILES, to.name, patch, to.namespace, PatchKind.MERGE, field_manager=FIELD_MANAGER
        )
        self.wiring.cache.raw.learn(written)
        _log.info("one cluster, two sources", profile=str(to), sources=[str(claim.origin) for claim in claims])

    # Writing.

    async def _write(self, wanted: Object, live: Object | None = None) -> None:
        try:
            await self.wiring.applier.apply(CLUSTER_PROFILES, wanted, cache=self.wiring.cache.raw, live=live)
        except NotFound as error:
            namespace = key_of(wanted).namespace
            raise StepError(
                f"namespace {namespace} does not exist: create it, or choose another with --fleet-namespace",
                reason="NamespaceMissing",
                actor=Actor.OPERATOR,
                after=NAMESPACE_PAUSE,
            ) from error

    def _set(self, context: ProfileContext, kind: str, verdict: ConditionDraft | None) -> None:
        if verdict is None:
            if _status(context, kind):
                return
            verdict = CONNECTING
        context.condition(kind, verdict.status, reason=verdict.reason, message=verdict.message)

    def _next(self, facts: ClusterFacts, now: float) -> float | None:
        """Seconds until something changes that nothing reports."""
        due = [AGAIN if facts.identity.unfinished else math.inf]
        if facts.expires is not None and facts.expires > now:
            due.append(facts.expires - now + 1.0)
        if facts.place is not None and (facts.shoot is None or not facts.shoot.version):
            due.append(VERSION_PERIOD)
        after = min(due)
        return None if math.isinf(after) else after

    def _forget(self, key: ObjectKey) -> None:
        self._members.leave(key)
        self._identities.forget(key)
        self._trials.pop(key, None)
        self._metrics.clear(key)


def _status(context: ProfileContext, kind: str) -> str:
    return next((one.status for one in context.object.status.conditions if one.type == kind), "")


def _stamped(context: ProfileContext, facts: ClusterFacts, now: float) -> list[dict[str, Any]]:
    """The properties, each with the time since which it has its value."""
    known = {one.name: one for one in context.object.status.properties}
    found = []
    for name, value in sorted(service.properties(facts, context.known_properties).items()):
        before = known.get(name)
        since = before.last_observed_time if before is not None and before.value == value else None
        found.append({"name": name, "value": value, "lastObservedTime": since or format_time(now)})
    return found
