"""Owners of the next step, and the step, by a Runtime's conditions and its Shoot's last errors.

Reasons are the contract's and say what happened; people ask what to do about it. `docs/clusters/README.md` shows the
same table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from hortus.domains.clusters import service
from hortus.domains.clusters.outline import FAILED, ShootOutline
from hortus.domains.clusters.types import Annotation, ConditionType, Reason, Runtime, State
from hortus.domains.credentials.types import GardenerCluster
from hortus.engine import Actor
from hortus.schema import Condition


class Turn(NamedTuple):
    actor: Actor
    advice: str


_RETRY: Final = f"then set {Annotation.FORCE_PATCH}=true, or run `hortus reconcile`"

REASONS: Final[Mapping[str, Turn]] = {
    Reason.CONVERSION_ERR: Turn(Actor.USER, "correct the field that the message names; it is tried at once"),
    Reason.CREATION_ERR: Turn(Actor.USER, f"see the message and the shoot's errors; {_RETRY}"),
    Reason.SEED_NOT_FOUND: Turn(
        Actor.USER, "choose a region that has a seed, or set spec.shoot.enforceSeedLocation to false"
    ),
    Reason.AUDIT_LOG_ERR: Turn(Actor.OPERATOR, "add provider and region to the audit tenants"),
    Reason.OIDC_ERR: Turn(Actor.OPERATOR, "see the message: the garden, or the cluster, refused a change"),
    Reason.GARDENER_ERR: Turn(Actor.OPERATOR, "see the message: the garden refused or did not answer; tried again"),
    Reason.KUBERNETES_ERR: Turn(Actor.OPERATOR, "see the message: the management cluster refused"),
    Reason.PROCESSING_ERR: Turn(Actor.OPERATOR, f"see the shoot's errors; {_RETRY}"),
    Reason.REGISTRY_CACHE_ERR: Turn(Actor.OPERATOR, f"the cluster could not be read; {_RETRY}"),
    Reason.CONFIGURATION_ERR: Turn(Actor.PROVIDER, "the cluster does not answer as it should; tried again"),
    Reason.STRUCTURED_CONFIG_DELETED: Turn(Actor.OPERATOR, "the garden refused to delete a ConfigMap; tried again"),
    Reason.SHOOT_DELETED: Turn(Actor.OPERATOR, "the garden refused to delete the shoot; tried again"),
}
"""By the reason of a condition that is False."""

CODES: Final[Mapping[str, Turn]] = {
    "ERR_INFRA_UNAUTHENTICATED": Turn(Actor.OPERATOR, "the credentials behind the secret binding are not valid"),
    "ERR_INFRA_UNAUTHORIZED": Turn(Actor.OPERATOR, "the credentials behind the secret binding lack permissions"),
    "ERR_INFRA_QUOTA_EXCEEDED": Turn(Actor.OPERATOR, "raise the quota at the provider, or ask for less"),
    "ERR_INFRA_RATE_LIMITS_EXCEEDED": Turn(Actor.NOBODY, "the provider is busy; the garden tries again"),
    "ERR_INFRA_RESOURCES_DEPLETED": Turn(
        Actor.USER, "the provider has no such machines left: other type, zone, region"
    ),
    "ERR_INFRA_DEPENDENCIES": Turn(Actor.OPERATOR, "something at the provider still uses what is to be changed"),
    "ERR_CLEANUP_CLUSTER_RESOURCES": Turn(Actor.USER, "something in the cluster cannot be deleted: see its finalizers"),
    "ERR_CONFIGURATION_PROBLEM": Turn(Actor.USER, "the shoot's configuration is refused: see the message"),
    "ERR_PROBLEMATIC_WEBHOOK": Turn(Actor.USER, "a webhook in the cluster blocks the garden: see the message"),
    "ERR_RETRYABLE_CONFIGURATION_PROBLEM": Turn(
        Actor.USER, "the cluster is configured in a way that blocks the garden"
    ),
    "ERR_RETRYABLE_INFRA_DEPENDENCIES": Turn(Actor.NOBODY, "the provider is not ready yet; the garden tries again"),
}
"""By the code of a Shoot's last error."""


def turn_of(runtime: Runtime, shoot: ShootOutline | None, connection: str = "") -> Turn:
    """The owner of the next step, and the step. `connection` is the kubeconfig's problem; empty when there is none."""
    state = service.state_of(runtime)
    if not state and service.locked(runtime):
        return Turn(Actor.OPERATOR, "it was built from its shoot and is locked: `hortus adopt compare`, then `release`")
    if not state:
        return Turn(Actor.NOBODY, "it was not reconciled yet; do the controllers run?")
    if shoot is not None and (found := next((CODES[code] for code in shoot.codes if code in CODES), None)):
        return found
    problem = problem_of(runtime)
    if problem is not None:
        return REASONS.get(problem.reason, Turn(Actor.OPERATOR, "see the message"))
    if state == State.READY and connection:
        return Turn(Actor.OPERATOR, "the kubeconfig is not in place: see the GardenerCluster, or `hortus tree`")
    if state == State.READY:
        return Turn(Actor.NOBODY, "all is as wanted")
    if shoot is not None and shoot.state == FAILED:
        return Turn(Actor.PROVIDER, "the garden gave up for now: see the shoot's errors")
    return Turn(Actor.NOBODY, _progress(runtime))


def connection_problem(runtime: Runtime, cluster: GardenerCluster | None) -> str:
    """The problem of the kubeconfig of a Ready Runtime, by its GardenerCluster; empty when there is none."""
    if service.state_of(runtime) != State.READY or (cluster is not None and cluster.status.state == State.READY):
        return ""
    key = service.cluster_key(runtime)
    if cluster is None:
        return f"GardenerCluster {key.namespace}/{key.name} does not exist"
    messages = [one.message for one in cluster.status.conditions if one.status == "False"]
    return messages[0] if messages else f"GardenerCluster {key.namespace}/{key.name} is not Ready yet"


def problem_of(runtime: Runtime) -> Condition | None:
    """The condition that stands in the way: the last one that is False."""
    return next((one for one in reversed(_conditions(runtime)) if one.status == "False"), None)


def current(runtime: Runtime) -> Condition | None:
    """The condition that says where the Runtime is: what stands in the way, or what is not settled, or the last."""
    conditions = _conditions(runtime)
    deleting = next((one for one in conditions if one.type == ConditionType.DEPROVISIONED), None)
    unsettled = next((one for one in conditions if one.status == "Unknown"), None)
    return problem_of(runtime) or deleting or unsettled or (conditions[-1] if conditions else None)


def _conditions(runtime: Runtime) -> tuple[Condition, ...]:
    return () if runtime.status is None else runtime.status.conditions


def _progress(runtime: Runtime) -> str:
    if runtime.metadata.deletion_timestamp is not None:
        return "the garden deletes the shoot; what the infrastructure blocks may be forced: `hortus retire --force`"
    return "the garden is at work, or the cluster is being connected"
