"""Failures of addons as conditions of their ClusterAddon."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hortus.domains.stacks.addons.context import AddonContext
from hortus.domains.stacks.addons.reasons import AGAIN, CONTROL_PLANE_NOT_READY, SILENT_AGAIN, AddonCondition
from hortus.domains.stacks.conditions import Severity
from hortus.domains.stacks.context import ConditionError
from hortus.engine import Actor
from hortus.engine.outcomes import NEVER
from hortus.kube.errors import KubeError


def condition_error(
    condition: str,
    reason: str,
    message: str,
    *,
    severity: Severity = Severity.INFO,
    after: float | None = None,
    watched: bool = False,
) -> ConditionError:
    """The failure that a condition reports; it is tried again after 20 s unless `after` or `watched` says otherwise."""
    return ConditionError(
        message,
        condition=condition,
        reason=reason,
        severity=severity,
        actor=Actor.PROVIDER,
        after=NEVER if watched else after or AGAIN,
        watched=watched,
    )


@asynccontextmanager
async def workload_errors(context: AddonContext) -> AsyncIterator[None]:
    """Maps errors of the workload cluster's API to the condition ClusterReady."""
    try:
        yield
    except KubeError as error:
        raise ConditionError(
            f"workload cluster of Cluster {context.cluster.key}: {error}",
            condition=AddonCondition.CLUSTER_READY,
            reason=CONTROL_PLANE_NOT_READY,
            severity=Severity.INFO,
            actor=Actor.PROVIDER,
            after=getattr(error, "retry_after", None) or SILENT_AGAIN,
        ) from error


def unusable(
    context: AddonContext, error: Exception, condition: str, reason: str, *, after: float, event: str = ""
) -> ConditionError:
    """The failure of a release whose addons cannot be read or rendered, with the name of the release."""
    title = f"release {context.release.name.tag}: "
    return ConditionError(
        title + str(error).removeprefix(title),
        condition=condition,
        reason=reason,
        severity=Severity.ERROR,
        actor=Actor.PROVIDER,
        after=after,
        event=event,
    )
