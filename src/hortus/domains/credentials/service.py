"""The decisions of the GardenerCluster controller, from values to values.

In: a GardenerCluster, the (sealed) Secret found for it, the policy, the time. Out: the action (`decide`), the Secret to
write (`secret_plan`, `repair`), and the failures, each a StepError with a reason of the contract. No I/O and no clock.
Contract: docs/credentials.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

import msgspec

from hortus.domains.credentials.changes import KUBECONFIG, KUBECONFIG_ROTATION
from hortus.domains.credentials.ownership import holder_of, label_of, mark_of, owner_of
from hortus.domains.credentials.types import MANAGER, Annotation, GardenerCluster, Label, Reason
from hortus.engine import TRUE, Actor, StepError
from hortus.engine.kubeconfigs import KubeconfigSecret, RotationPolicy, SecretPlan, Stamps, fraction_of
from hortus.engine.rollouts import Proposal
from hortus.engine.rollouts.types import WANTS
from hortus.kube.objects import Object, format_time
from hortus.schema import ObjectMeta

STAMPS = Stamps(
    issued=Annotation.LAST_SYNC,
    expires=Annotation.EXPIRATION,
    checksum=Annotation.CHECKSUM,
    made_for=Annotation.CLUSTER,
    adopts=True,
)
"""The annotations of a kubeconfig Secret. Those of the Go system have the first alone."""
_DATE = len("2006-01-02")


class Action(Enum):
    CREATE = "create"
    """There is no Secret yet."""
    ROTATE = "rotate"
    """A Secret is there; its kubeconfig is due, damaged or missing."""
    KEEP = "keep"
    """The kubeconfig in the Secret is good and not due."""


class Decision(NamedTuple):
    action: Action
    after: float
    """Seconds until the next reconcile of this cluster, once the action is done."""
    why: str = ""
    damaged: bool = False
    """True when the Secret is not as it was written last, and nobody asked for that."""
    latest: float | None = None
    """For a kubeconfig whose time has come and that still works: the time to which its rotation may be delayed, in
    seconds since the epoch."""


def decide(
    cluster: GardenerCluster, secret: KubeconfigSecret | None, policy: RotationPolicy, now: float, *, home: str = ""
) -> Decision:
    """The action that is due now, and the time of the next look. `home` is that of `ShootFacts`."""
    fraction = fraction_of(cluster.metadata.uid or cluster.metadata.name)
    if secret is None:
        return Decision(Action.CREATE, policy.wait(None, fraction), "no secret yet", _served(cluster))
    if is_forced(cluster.metadata) or is_forced(secret.metadata):
        return Decision(Action.ROTATE, policy.wait(None, fraction), "forced")
    issued, expires = STAMPS.issued_at(secret), STAMPS.expires_at(secret)
    due = policy.next(issued=issued, expires=expires, fraction=fraction, now=now)
    damage = _damage(cluster, secret)
    moved = "" if STAMPS.is_for(secret, home) else "the shoot was created again, or its API server has moved"
    if damage or moved:
        return Decision(Action.ROTATE, policy.wait(None, fraction), damage or moved, bool(damage))
    if due.now:
        latest = policy.latest(issued=issued, expires=expires)
        return Decision(Action.ROTATE, policy.wait(None, fraction), "due", latest=latest)
    return Decision(Action.KEEP, due.after)


def rotation(cluster: GardenerCluster, now: float, *, under_way: str) -> Proposal:
    """The change to ask for when a kubeconfig is due: the date in UTC since when it waits.

    `under_way` is the date of the rollout under way, which is joined where it is later.
    """
    since = cluster.metadata.annotations.get(f"{WANTS}{KUBECONFIG_ROTATION}") or format_time(now)[:_DATE]
    return Proposal(KUBECONFIG_ROTATION, KUBECONFIG, max(since, under_way))


def profile_name(metadata: ObjectMeta) -> str:
    """The name of the ClusterProfile of a GardenerCluster: its runtime id."""
    return metadata.labels.get(Label.RUNTIME_ID, metadata.name)


def delayed(decision: Decision, now: float) -> Decision:
    """The decision when a rollout holds a rotation back."""
    return Decision(Action.KEEP, max(0.0, (decision.latest or now) - now))


def is_forced(metadata: ObjectMeta) -> bool:
    """True when a GardenerCluster or its Secret asks for a rotation."""
    return Annotation.FORCE_ROTATION in metadata.annotations


def is_new(cluster: GardenerCluster) -> bool:
    """True before the first status of the cluster."""
    return not cluster.status.state and not cluster.status.conditions


def was_ready(cluster: GardenerCluster) -> bool:
    """True when the last reconcile ended well."""
    return cluster.condition is not None and cluster.condition.status == TRUE


def kept_reason(cluster: GardenerCluster) -> str:
    """The reason a Ready cluster keeps while nothing happens: what happened last, Created if that is not known."""
    rotated = cluster.condition is not None and cluster.condition.reason == Reason.ROTATED and was_ready(cluster)
    return Reason.ROTATED if rotated else Reason.CREATED


def secret_plan(cluster: GardenerCluster, *, shared: bool = False) -> SecretPlan:
    """The Secret as the cluster wants it: owned by it where both share a namespace, so that it never outlives it.

    `shared` says that another GardenerCluster keeps the Secret: then its labels and owners are left alone.
    """
    annotations: dict[str, str | None] = {Annotation.FORCE_ROTATION: None}
    if not cluster.is_at_home:
        annotations[Annotation.OWNER] = mark_of(cluster)
    return SecretPlan(
        key=cluster.secret.object_key,
        data_key=cluster.secret.key,
        stamps=STAMPS,
        labels={} if shared else _wanted_labels(cluster),
        annotations=annotations,
        owner=owner_of(cluster) if cluster.is_at_home and not shared else None,
    )


def repair(cluster: GardenerCluster, secret: KubeconfigSecret, *, home: str = "") -> Object | None:
    """The merge patch that restores the labels and the owner of the Secret; None when both are as planned.

    It also notes the `home` of the kubeconfig where that was not known when it was written.
    """
    plan = secret_plan(cluster)
    if home and Annotation.CLUSTER not in secret.annotations:
        plan = msgspec.structs.replace(plan, annotations={**plan.annotations, Annotation.CLUSTER: home})
    return plan.repair(secret)


def rotated(cluster: GardenerCluster, decision: Decision) -> str:
    """The message of the event about a rotation."""
    return f"Kubeconfig in secret {cluster.secret.object_key} replaced: {decision.why}"


def other_keeper(
    cluster: GardenerCluster, secret: KubeconfigSecret, others: Iterable[GardenerCluster]
) -> GardenerCluster | None:
    """The GardenerCluster of the same shoot that keeps the Secret; None when the cluster does so itself."""
    if not cluster.is_at_home:
        return None
    namespace = cluster.metadata.namespace
    claimants = [other for other in others if other.is_at_home and other.metadata.namespace == namespace]
    keeper = holder_of(secret, [cluster, *claimants])
    return None if keeper.key == cluster.key else keeper


def lacks_key(cluster: GardenerCluster, secret: KubeconfigSecret) -> bool:
    """True when the Secret has nothing under the key that this cluster wants."""
    return not secret.data.get(cluster.secret.key)


# Failures. Each names the object and the fix, and holds no credential.


def lacks_shared_key(cluster: GardenerCluster, secret: KubeconfigSecret, keeper: GardenerCluster) -> StepError:
    return StepError(
        f"secret {secret.key} is kept for GardenerCluster {keeper.key}, which has the same shoot, and lacks key "
        f"{cluster.secret.key} (cluster owner: name the same key, or delete one of the two)",
        reason=Reason.CHECK_FAILED,
        actor=Actor.USER,
    )


def secret_taken(cluster: GardenerCluster) -> StepError:
    return StepError(
        f"secret {cluster.secret.object_key} exists and its labels do not say that it belongs to this cluster "
        "(cluster owner: delete it, or name another one in spec.kubeconfig.secret)",
        reason=Reason.CREATE_FAILED,
        actor=Actor.USER,
    )


def edited_again(cluster: GardenerCluster, why: str, pause: float) -> StepError:
    return StepError(
        f"secret {cluster.secret.object_key} is changed by somebody else each time it was written: {why} (operator: "
        "see its metadata.managedFields for who does; it is written less and less often)",
        reason=Reason.UPDATE_FAILED,
        actor=Actor.OPERATOR,
        after=pause,
    )


def secret_deleted() -> StepError:
    """The failure is not shown: the next attempt follows at once."""
    return StepError("the secret was deleted while it was rotated", after=0.0, reason="SecretDeleted")


def _wanted_labels(cluster: GardenerCluster) -> dict[str, str]:
    """All labels of the cluster, and the three by which its Secret is found again."""
    return {
        **cluster.metadata.labels,
        Label.SHOOT_NAME: cluster.shoot,
        Label.MANAGED_BY: MANAGER,
        Label.CLUSTER_NAME: label_of(cluster.metadata.name),
    }


def _served(cluster: GardenerCluster) -> bool:
    """True when the cluster had its Secret: one that is missing was deleted then."""
    condition = cluster.condition
    return condition is not None and (condition.status == TRUE or condition.reason == Reason.UPDATE_FAILED)


def _damage(cluster: GardenerCluster, secret: KubeconfigSecret) -> str:
    """The damage of the (sealed) Secret's content that only another kubeconfig mends; empty when there is none."""
    if damage := STAMPS.damage(secret, cluster.secret.key):
        return damage
    if secret.labels.get(Label.SHOOT_NAME) != cluster.shoot:
        return "the secret holds the kubeconfig of another shoot"
    return ""
