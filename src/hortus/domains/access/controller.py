"""The ClusterAccess controller: a kubeconfig with the permissions that were asked for and no others, always fresh.

Conditions it owns: Ready, Reconciling and Stalled of ClusterAccesses, and all of their status.
Objects it owns: in the cluster one ServiceAccount in kube-system, a Role with its RoleBinding in each namespace or a
ClusterRole with its ClusterRoleBinding; on the management cluster the Secret that the request names, in its namespace.
It watches: ClusterAccesses, GardenerClusters, their kubeconfig Secrets, its own Secrets, its own objects in clusters.
It never: serves a request whose namespace may not have access to the cluster, touches an object that is not marked as
the request's own, gives more than the operator's policy allows, hands out a kubeconfig that was not seen to work,
replaces one before the next was seen to work, puts a token into a log, an event, a condition or a metric, or makes a
ServiceAccount token that does not end.
"""

from __future__ import annotations

from typing import Any

import orjson

from hortus.domains.access import grants, service
from hortus.domains.access.context import AccessContext, StatusInventory, ready_reason
from hortus.domains.access.grants import ROLE_PAUSE
from hortus.domains.access.inside import Clusters
from hortus.domains.access.issuing import AccessIssuer
from hortus.domains.access.lookup import ClusterLookup
from hortus.domains.access.manifests import ACCOUNT_NAMESPACE, account_of, mark_of, objects_of
from hortus.domains.access.metrics import AccessMetrics
from hortus.domains.access.service import STAMPS, Withdrawal
from hortus.domains.access.settings import Settings
from hortus.domains.access.types import FINALIZER, MANAGER, VERB, ClusterAccess, Reason
from hortus.domains.access.vault import Vault
from hortus.domains.access.withdrawing import AccessRemoval
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.engine import (
    NORMAL,
    Actor,
    KindController,
    NotReadable,
    Result,
    StepError,
    Steps,
    Wiring,
    has_finalizer,
)
from hortus.engine.applysets.inventory import Member
from hortus.engine.deputies import Action, Deputies
from hortus.engine.leftovers import LeftoverRecorder
from hortus.engine.remote import RemoteUnavailable
from hortus.kube.errors import KubeError
from hortus.kube.objects import Object, ObjectKey, Resource, format_time, parse_time

_NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)


class ClusterAccessController(KindController[AccessContext]):
    """Serves one request at a time."""

    kind = ClusterAccess
    field_manager = MANAGER

    def __init__(
        self,
        wiring: Wiring[Any],
        *,
        vault: Vault,
        lookup: ClusterLookup,
        clusters: Clusters,
        issuer: AccessIssuer,
        deputies: Deputies,
        leftovers: LeftoverRecorder,
        settings: Settings,
        metrics: AccessMetrics,
    ) -> None:
        super().__init__(wiring)
        self._vault = vault
        self._lookup = lookup
        self._clusters = clusters
        self._issuer = issuer
        self._deputies = deputies
        self._settings = settings
        self._metrics = metrics
        self._removal = AccessRemoval(
            vault=vault,
            lookup=lookup,
            clusters=clusters,
            leftovers=leftovers,
            metrics=metrics,
            detach_after=settings.detach_after,
        )
        accesses = wiring.cache
        accesses.add_index("mark", lambda access: (mark_of(access),))
        clusters.route(lambda mark: accesses.keys_by("mark", mark))

    def make_context(self, raw: Object) -> AccessContext:
        return AccessContext(self.wiring, raw)

    def steps(self, context: AccessContext) -> Steps:
        return (
            self._check_policy,
            self._find_cluster,
            self._find_secret,
            self._enter_cluster,
            self._find_rules,
            self._provide_account,
            self._provide_kubeconfig,
            self._report_ready,
        )

    def finalize_steps(self, context: AccessContext) -> Steps:
        if not has_finalizer(context.raw, FINALIZER):
            return ()
        return (self._removal.delete_secrets, self._removal.delete_objects, self._removal.release)

    async def gone(self, key: ObjectKey) -> None:
        self._clusters.leave(key)
        self._metrics.clear(key)

    # Serving.

    async def _check_policy(self, context: AccessContext) -> None:
        access, policy = context.object, self._settings.policy
        context.rules = service.rules_of_request(access)
        service.check_account(policy, access)
        service.check_rules(policy, access, context.rules, "spec.rules")

    async def _find_cluster(self, context: AccessContext) -> None:
        key = await self._lookup.key_of(context.object)
        await self._check_permission(context, key)
        cluster = self._lookup.cluster_at(key)
        context.place = self._lookup.place_of(cluster)
        context.cluster, context.shoot = cluster.key, cluster.shoot

    async def _check_permission(self, context: AccessContext, cluster: ObjectKey) -> None:
        """Raises Withdrawal where requests of the namespace may not reach the cluster, which need not be there."""
        namespace = context.key.namespace
        action = Action(VERB, GARDENER_CLUSTERS.group, GARDENER_CLUSTERS.plural, cluster.namespace, cluster.name)
        try:
            await self._deputies.require(namespace, action)
        except StepError as error:
            raise Withdrawal(error.message, reason=error.reason, actor=error.actor, after=error.after) from error

    async def _find_secret(self, context: AccessContext) -> None:
        context.secret = await self._vault.find(context.object)

    async def _enter_cluster(self, context: AccessContext) -> None:
        await context.ensure_finalizer(FINALIZER)
        if self.wiring.holds(context.key):
            # A reconcile that drains after a handover has left the cluster already, and reads from its server.
            self._clusters.enter(context.key, context.cluster, context.place)
        context.remote = self._clusters.pool.at(context.place)

    async def _find_rules(self, context: AccessContext) -> None:
        access = context.object
        if access.spec.role_ref is not None:
            policy = self._settings.policy
            context.rules = await grants.copied_rules(context.remote, access, access.spec.role_ref, policy)

    async def _provide_account(self, context: AccessContext) -> None:
        """Create or repair the account, roles and bindings in the cluster."""
        await grants.check_account(context.remote, context.object)
        parent = StatusInventory(context, context.cluster)
        found = self._clusters.set_of(parent, context.cluster, context.place)
        report = await found.apply(objects_of(context.object, context.rules), whole=True)
        if not report.complete:
            raise grants.failure_of_set(report)
        account = Member("", "ServiceAccount", *account_of(context.object))
        context.account_uid = (await parent.load())[account].uid

    async def _provide_kubeconfig(self, context: AccessContext) -> Result | None:
        """Ensure that the Secret holds a kubeconfig that is intact, fresh and for this account."""
        access, secret, made_for = context.object, context.secret, await self._made_for(context)
        why = "no secret yet" if secret is None else service.renewal(access, secret, made_for, context.now)
        if secret is not None and not why:
            context.secret = await self._vault.repair(access, secret)
            return None
        if secret is not None and (pause := service.edit_pause(access, secret, context.now)):
            return Result(requeue_after=pause)
        issued = await self._issuer.issue(context.remote, access, context.rules, made_for=made_for)
        context.secret = written = await self._vault.put(access, secret, issued)
        self._metrics.issued()
        if secret is not None and why != service.DUE:
            context.event(NORMAL, Reason.ISSUED, f"Kubeconfig in secret {written.key.name} replaced: {why}")
        return None

    async def _made_for(self, context: AccessContext) -> str:
        """Identifies the kubeconfigs that could be made now."""
        try:
            reached = context.remote.access
        except RemoteUnavailable:
            await context.remote.get(_NAMESPACES, ACCOUNT_NAMESPACE)
            reached = context.remote.access
        rules = [rule.manifest() for rule in context.rules]
        permissions = orjson.dumps([rules, context.object.spec.namespaces], option=orjson.OPT_SORT_KEYS).decode()
        uid = self._clusters.pool.identity(context.place).uid
        return service.made_for(reached.server, reached.ca, uid, context.account_uid, permissions)

    async def _report_ready(self, context: AccessContext) -> Result:
        access, secret = context.object, context.secret
        assert secret is not None
        await self._vault.clear(access, but=secret.key.name)
        for field, value in {
            "observedGeneration": access.metadata.generation,
            "cluster": str(context.cluster),
            "shoot": context.shoot,
            "serviceAccount": str(account_of(access)),
            "secret": {"name": secret.key.name, "uid": secret.metadata.uid},
            "issuedAt": format_time(STAMPS.issued_at(secret) or 0.0),
            "expiresAt": format_time(STAMPS.expires_at(secret) or 0.0),
        }.items():
            context.set_status(field, value)
        name = f"{secret.key.name}, key {access.spec.secret.key}"
        context.ready(Reason.ISSUED, f"The kubeconfig in Secret {name} was seen to do what was asked for.")
        left = service.due_of(access, secret, context.now).after
        # Neither a role in the cluster nor a grant on the management cluster is watched.
        looks_again = access.spec.role_ref is not None or not self._deputies.trusts(context.key.namespace)
        return Result(requeue_after=min(left, ROLE_PAUSE) if looks_again else left)

    # Failures.

    async def on_error(self, context: AccessContext, error: StepError | KubeError) -> StepError | None:
        if isinstance(error, Withdrawal):
            return await self._removal.withdraw(context, error)
        if isinstance(error, KubeError) and not context.is_deleting:
            return grants.failure_of_server(error)
        return await super().on_error(context, error)

    def report(self, context: AccessContext, error: StepError) -> None:
        context.failure = error
        context.set_status("observedGeneration", context.draft.generation)
        if error.actor not in (Actor.USER, Actor.OPERATOR):
            context.reconciling(error.reason, error.message)
            return
        if not context.inventory:
            for field in ("secret", "issuedAt", "expiresAt"):
                context.set_status(field, None)
        context.stalled(error.reason, error.message)

    def observe(self, context: AccessContext) -> None:
        try:
            access = context.object
        except NotReadable:
            return
        if context.released:
            self._metrics.clear(context.key)
        elif reason := ready_reason(access):
            expires = access.status.expires_at
            self._metrics.see(context.key, reason, parse_time(expires) if expires else None)
