"""Reads and checks in the cluster before anything is granted there, and the meaning of a set that is not complete."""

from __future__ import annotations

import msgspec

from hortus.domains.access import service
from hortus.domains.access.coverage import RbacRule, read_rules
from hortus.domains.access.manifests import (
    ACCOUNT_NAMESPACE,
    ACCOUNTS,
    CLUSTER_ROLES,
    ROLES,
    account_of,
    mark_of,
    rules_within,
)
from hortus.domains.access.policy import AccessPolicy
from hortus.domains.access.service import Withdrawal
from hortus.domains.access.types import ClusterAccess, Label, Reason, RoleRef
from hortus.engine import Actor, StepError, metadata_of
from hortus.engine.applysets import ApplyReport, ObjectAction
from hortus.kube import Client
from hortus.kube.errors import Garbage, KubeError, NotFound, TransportError
from hortus.kube.objects import shaped

UNWATCHED_PAUSE = 60.0
"""Seconds until an object that is not watched is read again: a namespace, an account, a missing role."""
ROLE_PAUSE = 600.0
"""Seconds after which a role by reference is read again."""


class _Role(msgspec.Struct):
    """A Role or ClusterRole as a cluster sends it."""

    rules: object = None


async def copied_rules(
    remote: Client, access: ClusterAccess, reference: RoleRef, policy: AccessPolicy
) -> list[RbacRule]:
    """The rules of the role in all namespaces of the request, checked. Raises Withdrawal, KubeError."""
    namespaces = access.spec.namespaces
    found: dict[RbacRule, None] = {}
    for namespace in namespaces if reference.kind == ROLES.kind else ("",):
        rules = rules_within(await _rules_of_role(remote, reference, namespace), namespaces)
        service.check_rules(policy, access, rules, f"{reference.kind} {reference.name}: rules", after=ROLE_PAUSE)
        found |= dict.fromkeys(rules)
    return list(found)


async def _rules_of_role(remote: Client, reference: RoleRef, namespace: str) -> list[RbacRule]:
    title = f"{reference.kind} {reference.name}"
    try:
        role = await remote.get(ROLES if namespace else CLUSTER_ROLES, reference.name, namespace)
    except NotFound:
        where = f" in namespace {namespace}" if namespace else ""
        raise Withdrawal(
            f"spec.roleRef: there is no {title}{where} (requester: name another one)",
            reason=Reason.ROLE_MISSING,
            actor=Actor.USER,
            after=UNWATCHED_PAUSE,
        ) from None
    found = shaped(role, _Role)
    rules = read_rules(found.rules) if found is not None else None
    if rules is None:
        raise Garbage(remote.host, f"answered with a {title} whose rules are none", "check the API server")
    return rules


async def check_account(remote: Client, access: ClusterAccess) -> None:
    """Refuse an account of somebody else, which gets no permissions and no tokens. Raises Withdrawal, KubeError."""
    if access.spec.service_account is None:
        return
    account = account_of(access)
    try:
        found = await remote.get(ACCOUNTS, account.name, account.namespace)
    except NotFound:
        return
    if metadata_of(found).labels.get(Label.REQUEST) != mark_of(access):
        raise Withdrawal(
            f"spec.serviceAccount: ServiceAccount {account} exists and is not this request's (requester: name "
            "another one)",
            reason=Reason.ACCOUNT_TAKEN,
            actor=Actor.USER,
            after=UNWATCHED_PAUSE,
        )


def failure_of_set(report: ApplyReport) -> StepError | KubeError:
    """The error that an incomplete run of the set means."""
    for outcome in report.failures:
        missing = isinstance(outcome.error, NotFound) and outcome.member.namespace
        if missing and outcome.member.namespace != ACCOUNT_NAMESPACE:
            return StepError(
                f"spec.namespaces or spec.serviceAccount: namespace {outcome.member.namespace} is not there "
                "(requester: make it, or leave it out)",
                reason=Reason.NAMESPACE_MISSING,
                actor=Actor.USER,
                after=UNWATCHED_PAUSE,
            )
        if isinstance(outcome.error, TransportError):
            return outcome.error
    return StepError(
        f"{report.message()} (cluster owner: see why it refuses; tried again)",
        reason=Reason.REFUSED if report.of(ObjectAction.FAILED) else Reason.REMOVING,
        actor=Actor.PROVIDER,
        after=report.retry_after,
    )


def failure_of_server(error: KubeError) -> StepError:
    """The failure to report for an error of a server that no step expected."""
    away = isinstance(error, TransportError)
    hint = "tried again" if away else "cluster owner: see why it refuses; tried again"
    return StepError(
        f"{error} ({hint})",
        reason=Reason.UNREACHABLE if away else Reason.REFUSED,
        actor=Actor.PROVIDER,
        after=getattr(error, "retry_after", None),
    )
