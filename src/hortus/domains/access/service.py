"""Decisions of the ClusterAccess controller, from values to values, without I/O and without a clock.

In: a request, the GardenerCluster it names, the Secrets around both, the policy. Out: a StepError where the request may
not have what it asks for, the time at which its kubeconfig is due, and the Secret to write.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from hortus.domains.access.coverage import RbacRule
from hortus.domains.access.manifests import mark_of
from hortus.domains.access.policy import SYSTEM_NAMESPACES, AccessPolicy
from hortus.domains.access.powers import SYSTEM
from hortus.domains.access.types import CLUSTER_ACCESSES, MANAGER, Annotation, ClusterAccess, Label, Reason
from hortus.domains.credentials.types import GardenerCluster
from hortus.domains.credentials.types import Label as ClusterLabel
from hortus.engine import NEVER, Actor, StepError
from hortus.engine.kubeconfigs import Due, KubeconfigSecret, RotationPolicy, SecretPlan, Stamps, fraction_of
from hortus.engine.remote import KubeconfigRef
from hortus.kube.objects import ObjectKey
from hortus.schema import OwnerReference

DUE = "due"
SPREAD = 0.1
"""Largest share taken off the wait: 3.6 min of 36 min."""
LEAST_WAIT = 30.0
"""Seconds between two kubeconfigs at least, however short a life a cluster grants."""
EDITED_PAUSE = 10.0
"""Seconds between two tokens where somebody edits the Secret over and over."""
STAMPS = Stamps(
    issued=Annotation.ISSUED,
    expires=Annotation.EXPIRES,
    checksum=Annotation.CHECKSUM,
    made_for=Annotation.MADE_FOR,
)
_SHOWN_REFUSALS = 5


class Withdrawal(StepError):
    """The request is refused, and what was granted to it before is taken back."""


def secret_key(access: ClusterAccess) -> ObjectKey:
    return ObjectKey(access.metadata.namespace, access.spec.secret.name)


def rules_of_request(access: ClusterAccess) -> list[RbacRule]:
    """The rules that stand in the request itself; none where it refers to a role."""
    return [
        RbacRule(one.verbs, one.api_groups, one.resources, one.resource_names, one.non_resource_urls)
        for one in access.spec.rules
    ]


_MOST_PERMISSIONS = 100_000
"""Permissions of one request, above all that Kubernetes serves; about 0.1 s of work."""


def check_rules(
    policy: AccessPolicy, access: ClusterAccess, rules: Sequence[RbacRule], place: str, *, after: float = NEVER
) -> None:
    """Refuse what the operator's policy does not allow. Raises Withdrawal, with `after`.

    A rule multiplies its lists, and a cluster's own role may be of any size: beyond a bound that alone is refused.
    """
    if sum(len(rule.verbs) * len(rule.api_groups) * len(rule.resources) for rule in rules) > _MOST_PERMISSIONS:
        raise Withdrawal(
            f"{place}: more than {_MOST_PERMISSIONS} permissions, a verb on a resource of a group each (requester: ask "
            "for less)",
            reason=Reason.NOT_ALLOWED,
            actor=Actor.USER,
            after=after,
        )
    found = policy.refusals(access.metadata.namespace, rules, access.spec.namespaces, place)
    if not found:
        return
    shown = "; ".join(str(refusal) for refusal in found[:_SHOWN_REFUSALS])
    more = f"; and {len(found) - _SHOWN_REFUSALS} more" if len(found) > _SHOWN_REFUSALS else ""
    powers = ", ".join(sorted({refusal.power for refusal in found}))
    raise Withdrawal(
        f"{shown}{more} (requester: ask for less; or operator: allow {powers} with --access-allow)",
        reason=Reason.NOT_ALLOWED,
        actor=Actor.USER,
        after=after,
    )


def check_account(policy: AccessPolicy, access: ClusterAccess) -> None:
    """Refuse an account in a namespace where it may not lie. Raises Withdrawal."""
    account = access.spec.service_account
    wanted = account.namespace if account is not None else ""
    if wanted in SYSTEM_NAMESPACES and SYSTEM not in policy.powers(access.metadata.namespace):
        raise Withdrawal(
            f"spec.serviceAccount.namespace: namespace {wanted} is the system's (power {SYSTEM}) (requester: name "
            f"another one, or leave serviceAccount out; or operator: allow {SYSTEM} with --access-allow)",
            reason=Reason.NOT_ALLOWED,
            actor=Actor.USER,
            after=NEVER,
        )


def place_of(cluster: GardenerCluster, secrets: Iterable[KubeconfigSecret]) -> KubeconfigRef:
    """The place of a GardenerCluster's admin kubeconfig. Raises StepError.

    Only a Secret that was written for this very GardenerCluster, in its own namespace: a user
    who may create GardenerClusters must not reach another's kubeconfig by naming its Secret.
    """
    metadata, reference = cluster.metadata, cluster.spec.kubeconfig.secret
    title = f"GardenerCluster {metadata.namespace}/{metadata.name}"
    if reference.namespace != metadata.namespace:
        raise StepError(
            f"{title}: its kubeconfig is kept in namespace {reference.namespace}; access is given only to clusters "
            "whose kubeconfig is in their own namespace (cluster owner: change spec.kubeconfig.secret.namespace)",
            reason=Reason.CLUSTER_MISSING,
            actor=Actor.USER,
            after=NEVER,
        )
    for secret in secrets:
        shoot = secret.labels.get(ClusterLabel.SHOOT_NAME)
        if shoot == cluster.spec.shoot.name and metadata.uid in secret.owner_uids:
            return KubeconfigRef(metadata.namespace, secret.metadata.name, reference.key)
    raise StepError(
        f"{title} has no kubeconfig yet (nobody needs to act: it is waited for; else see its condition)",
        reason=Reason.CLUSTER_MISSING,
        after=NEVER,
    )


def made_for(server: str, ca: bytes, cluster: str, account: str, permissions: str) -> str:
    """Identifies the kubeconfigs for this account of this cluster with these permissions."""
    text = "\n".join((server, hashlib.sha256(ca).hexdigest(), cluster, account, permissions))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def is_ours(access: ClusterAccess, secret: KubeconfigSecret) -> bool:
    """True when this very request made the Secret; its labels may be gone, its name alone says nothing.

    Nor does the uid in the status alone, which needs no right to Secrets to write: the Secret itself must have our
    annotations, and no mark of another request.
    """
    if access.metadata.uid in secret.owner_uids:
        return True
    noted = access.status.secret
    marked = secret.labels.get(Label.REQUEST, mark_of(access))
    return (
        noted is not None
        and bool(noted.uid)
        and noted.uid == secret.metadata.uid
        and Annotation.MADE_FOR in secret.annotations
        and marked == mark_of(access)
    )


def plan_of(access: ClusterAccess) -> SecretPlan:
    """The Secret of a request, owned by it so that it is deleted with it."""
    metadata = access.metadata
    return SecretPlan(
        key=secret_key(access),
        data_key=access.spec.secret.key,
        stamps=STAMPS,
        labels={Label.REQUEST: mark_of(access), Label.MANAGED_BY: MANAGER},
        owner=OwnerReference(
            api_version=CLUSTER_ACCESSES.api_version,
            kind=CLUSTER_ACCESSES.kind,
            name=metadata.name,
            uid=metadata.uid,
            controller=True,
            block_owner_deletion=True,
        ),
        exclusive=True,
    )


def renewal(access: ClusterAccess, secret: KubeconfigSecret, wanted_for: str, now: float) -> str:
    """The reason to replace the kubeconfig in the Secret; "" when there is none."""
    if damage := STAMPS.damage(secret, access.spec.secret.key):
        return damage
    if not STAMPS.is_for(secret, wanted_for):
        return "the cluster, its address or the account is another one now"
    return DUE if due_of(access, secret, now).now else ""


def due_of(access: ClusterAccess, secret: KubeconfigSecret, now: float) -> Due:
    """The time at which the kubeconfig in the Secret is to be replaced."""
    policy = RotationPolicy(share=access.spec.rotate_at_percent / 100, spread=SPREAD, least=LEAST_WAIT)
    fraction = fraction_of(access.metadata.uid)
    return policy.next(issued=STAMPS.issued_at(secret), expires=STAMPS.expires_at(secret), fraction=fraction, now=now)


def edit_pause(access: ClusterAccess, secret: KubeconfigSecret, now: float) -> float:
    """Seconds until a Secret that somebody edits over and over is written again; 0 for at once."""
    written = STAMPS.issued_at(secret)
    if written is None or not STAMPS.damage(secret, access.spec.secret.key):
        return 0.0
    return max(EDITED_PAUSE - abs(now - written), 0.0)
