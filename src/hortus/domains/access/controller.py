"""The ClusterAccess controller: a kubeconfig with the rights that were asked for and no others, always fresh.

Conditions it owns: Ready, Reconciling and Stalled of ClusterAccesses, and all of their status.
Objects it owns: in the cluster one ServiceAccount in kube-system, a Role with its RoleBinding in each namespace or a
ClusterRole with its ClusterRoleBinding; on the management cluster the Secret that the request names, in its namespace.
It watches: ClusterAccesses, GardenerClusters, their kubeconfig Secrets, its own Secrets, its own objects in clusters.
It never: touches an object that is not marked as the request's own, gives more than the operator's policy allows, hands
out a kubeconfig that was not seen to work, replaces one before the next was seen to work, puts a token into a log, an
event, a condition or a metric, or makes a ServiceAccount token that does not end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NoReturn

import orjson
import structlog

from hortus.domains.access import service
from hortus.domains.access.coverage import are_rules
from hortus.domains.access.inside import Clusters, StatusParent, by_mark
from hortus.domains.access.issuing import Proof, kubeconfig_of, seconds_of, token_for
from hortus.domains.access.lookup import ClusterLookup
from hortus.domains.access.manifests import (
    ACCOUNT_NAMESPACE,
    ACCOUNTS,
    CLUSTER_ROLES,
    ROLES,
    account_of,
    mark_of,
    namespaces_of,
    objects_of,
    rules_within,
)
from hortus.domains.access.metrics import AccessMetrics
from hortus.domains.access.service import Issued, Setback
from hortus.domains.access.settings import Settings
from hortus.domains.access.types import CLUSTER_ACCESSES, FINALIZER, MANAGER, Annotation, Label, Reason
from hortus.domains.access.vault import Vault
from hortus.engine import (
    NEVER,
    NORMAL,
    WARNING,
    Actor,
    Cache,
    EventRecorder,
    Result,
    StatusDraft,
    StepError,
    add_finalizer,
    by_owner_uid,
    find_condition,
    has_finalizer,
    is_deleting,
    redact_text,
    remove_finalizer,
)
from hortus.engine.applysets import Action, Report
from hortus.engine.applysets.inventory import Member
from hortus.engine.remote import Place, RemoteUnavailable
from hortus.kube import Client
from hortus.kube.clock import Clock
from hortus.kube.errors import ApiError, Garbage, KubeError, NotFound, TransportError
from hortus.kube.objects import Object, ObjectKey, Resource, format_time, key_of, parse_time

UNWATCHED_PAUSE = 60.0
"""Seconds until what no watch tells is looked at again: a Secret or a namespace of somebody else, a missing role."""
ROLE_PAUSE = 600.0
"""Seconds after which a role by reference is read again."""
EDITED_PAUSE = 10.0
"""Seconds between two tokens where somebody edits the Secret over and over."""
REMOVAL_PAUSE = 15.0
"""Seconds between two attempts to remove what lies in a cluster that does not answer."""

_NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class ClusterAccessController:
    """Reconciles one ClusterAccess at a time; see the module's head."""

    def __init__(
        self,
        *,
        client: Client,
        accesses: Cache,
        secrets: Cache,
        lookup: ClusterLookup,
        clusters: Clusters,
        proof: Proof,
        settings: Settings,
        metrics: AccessMetrics,
        events: EventRecorder,
        clock: Clock,
    ) -> None:
        self._client = client
        self._accesses = accesses
        self._vault = Vault(client, secrets)
        self._lookup = lookup
        self._clusters = clusters
        self._proof = proof
        self._settings = settings
        self._metrics = metrics
        self._events = events
        self._clock = clock
        accesses.add_index("mark", by_mark)
        secrets.add_index("owner", by_owner_uid)
        clusters.route(lambda mark: accesses.keys_by("mark", mark))

    async def reconcile(self, key: ObjectKey) -> Result | None:
        access = self._accesses.get(key)
        if access is None:
            self._clusters.leave(key)
            self._metrics.clear(key)
            return None
        parent = StatusParent(self._client, access, self._accesses)
        if is_deleting(access):
            return await self._let_go(key, parent)
        try:
            return await self._serve(key, parent)
        except Setback as setback:
            text, after = str(setback), setback.after
            if setback.withdraw and (problem := await self._withdraw(key, parent)):
                text, after = f"{text}; what was granted before is still being taken back: {problem}", REMOVAL_PAUSE
            await self._fail(parent, setback.reason, text, setback.actor, after=after)
        except KubeError as error:
            await self._fail_for(parent, error)

    async def _serve(self, key: ObjectKey, parent: StatusParent) -> Result:
        access = parent.access
        rules: Sequence[Object] = access["spec"].get("rules") or ()
        service.check_account(self._settings.policy, access)
        service.check_rules(self._settings.policy, access, rules, "spec.rules")
        cluster, place = await self._way_in(access)
        secret = await self._vault.find(access)
        parent.access = access = await self._hold(access)
        self._clusters.enter(key, cluster, place)
        parent.cluster = f"{cluster.namespace}/{cluster.name}"
        if not rules:
            rules = await self._copied(self._clusters.pool.at(place), access)
        await self._provide(parent, cluster, place, rules)
        home = await self._home(parent, place, rules)
        why, left = service.renewal(access, secret, home, self._clock.now())
        if secret is not None and why and (pause := self._edited_just_now(secret, why)):
            return Result(requeue_after=pause)
        if why or secret is None:
            secret = await self._issue(access, secret, place, rules, home, why)
            left = service.time_left(access, secret, self._clock.now())
        else:
            secret = await self._vault.mend(access, secret)
        await self._vault.clear(access, but=secret["metadata"]["name"])
        await self._show_ready(parent, cluster, secret)
        return Result(requeue_after=min(left, ROLE_PAUSE) if access["spec"].get("roleRef") else left)

    # The steps.

    async def _way_in(self, access: Object) -> tuple[ObjectKey, Place]:
        """The GardenerCluster of a request, and where its kubeconfig lies. Raises Setback."""
        cluster = await self._lookup.cluster_of(access)
        service.check_grant(access, cluster)
        place = service.place_of(cluster, self._lookup.kubeconfigs_of(cluster))
        metadata = cluster["metadata"]
        return ObjectKey(metadata["namespace"], metadata["name"]), place

    async def _hold(self, access: Object) -> Object:
        held = await add_finalizer(self._client, CLUSTER_ACCESSES, access, FINALIZER)
        if held is not access:
            self._accesses.learn(held)
        return held

    async def _copied(self, remote: Client, access: Object) -> list[Object]:
        """The rules of the role that the request refers to, in all its namespaces, checked. Raises Setback."""
        reference, namespaces = access["spec"]["roleRef"], namespaces_of(access)
        kind, name = reference.get("kind") or CLUSTER_ROLES.kind, reference["name"]
        found: list[Object] = []
        for namespace in namespaces if kind == ROLES.kind else [""]:
            try:
                role = await remote.get(ROLES if namespace else CLUSTER_ROLES, name, namespace)
            except NotFound:
                where = f" in namespace {namespace}" if namespace else ""
                raise Setback(
                    Reason.ROLE_MISSING,
                    f"spec.roleRef: there is no {kind} {name}{where} (requester: name another one)",
                    withdraw=True,
                    after=UNWATCHED_PAUSE,
                ) from None
            if not are_rules(role.get("rules")):
                problem = f"answered with a {kind} {name} whose rules are none"
                raise Garbage(remote.host, problem, "check the API server")
            rules = rules_within(role.get("rules") or (), namespaces)
            service.check_rules(self._settings.policy, access, rules, f"{kind} {name}: rules", after=ROLE_PAUSE)
            found += [rule for rule in rules if rule not in found]
        return found

    async def _provide(self, parent: StatusParent, cluster: ObjectKey, place: Place, rules: Sequence[Object]) -> None:
        """Have the account, roles and bindings in the cluster as they should be."""
        await self._check_account(place, parent.access)
        wanted = objects_of(parent.access, rules)
        report = await self._clusters.set_of(parent, cluster, place).apply(wanted, whole=True)
        if not report.complete:
            raise _trouble(report)

    async def _check_account(self, place: Place, access: Object) -> None:
        """An account of somebody else gets no rights and no tokens. Raises Setback."""
        if not access["spec"].get("serviceAccount"):
            return
        account = account_of(access)
        try:
            found = await self._clusters.pool.at(place).get(ACCOUNTS, account.name, account.namespace)
        except NotFound:
            return
        if (found["metadata"].get("labels") or {}).get(Label.REQUEST) != mark_of(access):
            raise Setback(
                Reason.ACCOUNT_TAKEN,
                f"spec.serviceAccount: ServiceAccount {account} exists and is not this request's (requester: name "
                "another one)",
                withdraw=True,
                after=UNWATCHED_PAUSE,
            )

    async def _home(self, parent: StatusParent, place: Place, rules: Sequence[Object]) -> str:
        """What a kubeconfig made now would be made for."""
        remote, access = self._clusters.pool.at(place), parent.access
        inventory = await parent.load()
        account = inventory[Member("", "ServiceAccount", *account_of(access))]
        try:
            reached = remote.access
        except RemoteUnavailable:
            await remote.get(_NAMESPACES, ACCOUNT_NAMESPACE)
            reached = remote.access
        wanted = orjson.dumps([list(rules), namespaces_of(access)], option=orjson.OPT_SORT_KEYS).decode()
        identity = self._clusters.pool.identity(place)
        return service.made_for(reached.server, reached.ca, identity, account.uid, wanted)

    def _edited_just_now(self, secret: Object, why: str) -> float:
        """Seconds to wait since the Secret was written a moment ago, and edited since; 0 when there is no need."""
        written = service.time_of(secret, Annotation.ISSUED)
        if written is None or "key" not in why:
            return 0.0
        return max(EDITED_PAUSE - abs(self._clock.now() - written), 0.0)

    async def _issue(
        self, access: Object, secret: Object | None, place: Place, rules: Sequence[Object], home: str, why: str
    ) -> Object:
        """Get a token, see that it may do what was asked for and no more, store it."""
        remote, now = self._clusters.pool.at(place), self._clock.now()
        token, ends = await token_for(remote, access, seconds_of(access, self._settings.policy.longest), self._clock)
        reached = remote.access
        kubeconfig = kubeconfig_of(access, server=reached.server, ca=reached.ca, token=token)
        await self._proof.prove(kubeconfig, remote, access, rules)
        written = await self._vault.store(access, secret, Issued(kubeconfig, now, ends, home))
        self._metrics.issued()
        if secret is not None and why != service.DUE:
            text = f"Kubeconfig in secret {written['metadata']['name']} replaced: {why}"
            self._events.event(access, NORMAL, Reason.ISSUED, text)
        return written

    # Taking back.

    async def _withdraw(self, key: ObjectKey, parent: StatusParent) -> str:
        """Take back what was granted before; "" when nothing is left of it, else what hinders that."""
        await self._vault.clear(parent.access)
        problem = await self._emptied(parent)
        if not problem:
            self._clusters.leave(key)
        return problem

    async def _let_go(self, key: ObjectKey, parent: StatusParent) -> Result | None:
        """Remove the Secret and all in the cluster, then let the request go; at the latest when its time is over."""
        access = parent.access
        if not has_finalizer(access, FINALIZER):
            return None
        await self._vault.clear(access)
        left = parse_time(access["metadata"]["deletionTimestamp"]) + self._settings.detach_after - self._clock.now()
        problem = await self._emptied(parent)
        if problem and left > 0 and not await self._lookup.gone(access):
            await self._fail(parent, Reason.REMOVING, problem, Actor.NOBODY, after=min(left + 1.0, REMOVAL_PAUSE))
        if problem:
            self._tell_detached(parent, problem)
        self._clusters.leave(key)
        self._metrics.clear(key)
        await remove_finalizer(self._client, CLUSTER_ACCESSES, access, FINALIZER)
        return None

    async def _emptied(self, parent: StatusParent) -> str:
        """Delete all in the cluster; "" when nothing is left, else what hinders it."""
        if not (parent.access.get("status") or {}).get("inventory"):
            return ""
        try:
            found = await self._lookup.known(parent.access)
            if found is None:
                return "the GardenerCluster is gone, or has no kubeconfig any more"
            report = await self._clusters.set_of(parent, *found).delete()
        except (RemoteUnavailable, TransportError, ApiError) as error:
            return str(error)
        return "" if report.complete else report.message()

    def _tell_detached(self, parent: StatusParent, problem: str) -> None:
        lines = (parent.access.get("status") or {}).get("inventory") or ()
        names = ", ".join(str(Member(*orjson.loads(line)[:4])) for line in lines)
        cluster = (parent.access.get("status") or {}).get("cluster", "")
        text = f"Let go without the cluster {cluster}: {problem}. What may be left there: {names}"
        self._events.event(parent.access, WARNING, Reason.DETACHED, text)
        self._metrics.detached()
        metadata = parent.access["metadata"]
        request = f"{metadata['namespace']}/{metadata['name']}"
        _log.warning("a request was let go without its cluster", request=request, cluster=cluster, left=names)

    # Showing.

    async def _show_ready(self, parent: StatusParent, cluster: ObjectKey, secret: Object) -> None:
        access = parent.access
        issued, expires = (service.time_of(secret, one) for one in (Annotation.ISSUED, Annotation.EXPIRES))
        draft = StatusDraft(access, clock=self._clock)
        draft.fields |= {
            "observedGeneration": access["metadata"].get("generation", 0),
            "cluster": f"{cluster.namespace}/{cluster.name}",
            "serviceAccount": str(account_of(access)),
            "secret": {"name": secret["metadata"]["name"], "uid": secret["metadata"]["uid"]},
            "issuedAt": format_time(issued or 0.0),
            "expiresAt": format_time(expires or 0.0),
        }
        name = f"{secret['metadata']['name']}, key {service.data_key(access)}"
        text = f"The kubeconfig in Secret {name} was seen to do what was asked for."
        draft.ready(reason=Reason.ISSUED, message=text)
        await draft.write(self._client, CLUSTER_ACCESSES, cache=self._accesses, field_manager=MANAGER)
        self._metrics.see(key_of(access), Reason.ISSUED, expires)

    async def _fail_for(self, parent: StatusParent, error: KubeError) -> NoReturn:
        """Show what a server said. Raises StepError."""
        away = isinstance(error, TransportError)
        reason, actor = (Reason.UNREACHABLE if away else Reason.REFUSED), Actor.PROVIDER
        hint = "tried again" if away else "cluster owner: see why it refuses; tried again"
        after = getattr(error, "retry_after", None)
        await self._fail(parent, reason, f"{error} ({hint})", actor, after=after)

    async def _fail(
        self, parent: StatusParent, reason: str, text: str, actor: Actor, *, after: float | None
    ) -> NoReturn:
        """Show the failure once. Raises StepError where only a change helps and a watch tells of it, else StepError."""
        text, access = redact_text(text), parent.access
        draft = StatusDraft(access, clock=self._clock)
        draft.fields["observedGeneration"] = access["metadata"].get("generation", 0)
        if not draft.fields.get("inventory") and actor in (Actor.USER, Actor.OPERATOR):
            for field in ("secret", "issuedAt", "expiresAt"):
                draft.fields.pop(field, None)
        if actor in (Actor.USER, Actor.OPERATOR):
            draft.stalled(reason=reason, message=text)
        else:
            draft.reconciling(reason=reason, message=text)
        before = (find_condition(access, "Ready") or {}).get("reason")
        if before != reason and actor is not Actor.NOBODY:
            self._events.event(access, WARNING, reason, text)
        await draft.write(self._client, CLUSTER_ACCESSES, cache=self._accesses, field_manager=MANAGER)
        self._metrics.see(key_of(access), reason, None)
        if "expiresAt" not in draft.fields:
            self._metrics.withdrawn(key_of(access))
        if reason in _RESTING and after is None:
            raise StepError(text, reason=reason, actor=actor, after=NEVER)
        raise StepError(text, after=after, reason=reason, actor=actor)

    # What concerns whom.

    def keys_of_cluster(self, cluster: Object) -> Iterable[ObjectKey]:
        """The requests for a GardenerCluster."""
        return self._lookup.requests_for(cluster["metadata"]["namespace"], cluster["metadata"]["name"])


_RESTING = (Reason.NOT_ALLOWED, Reason.NOT_GRANTED, Reason.CLUSTER_MISSING)
"""Nothing changes these but what is watched."""


def _trouble(report: Report) -> Exception:
    """What an unfinished run of the set means."""
    for outcome in report.failures:
        missing = isinstance(outcome.error, NotFound) and outcome.member.namespace
        if missing and outcome.member.namespace != ACCOUNT_NAMESPACE:
            return Setback(
                Reason.NAMESPACE_MISSING,
                f"spec.namespaces or spec.serviceAccount: namespace {outcome.member.namespace} is not there "
                "(requester: make it, or leave it out)",
                after=UNWATCHED_PAUSE,
            )
        if isinstance(outcome.error, TransportError):
            return outcome.error
    text = f"{report.message()} (cluster owner: see why it refuses; tried again)"
    reason = Reason.REFUSED if report.of(Action.FAILED) else Reason.REMOVING
    return Setback(reason, text, actor=Actor.PROVIDER, after=report.retry_after)
