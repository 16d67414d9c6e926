"""Reasons of the condition Ready of AgentPlacements."""

from __future__ import annotations

from typing import Final


class PlacementReason:
    """Reasons of the condition Ready of AgentPlacements."""

    RUNNING: Final = "AgentsRunning"
    """The agent runs on every node that is to have it."""
    ROLLING: Final = "AgentsRolling"
    """The objects are in place; pods are still being started or replaced."""
    HELD: Final = "ObjectsBeingDeleted"
    """An object of the agent is being deleted in the cluster, and finalizers hold it: it is applied when it is gone."""
    WAITS: Final = "WaitsForRollout"
    HIBERNATED: Final = "Hibernated"
    REMOVING: Final = "Removing"
    CONFIGURATION_MISSING: Final = "ConfigurationMissing"
    CLUSTER_MISSING: Final = "ClusterMissing"
    NO_ACCESS: Final = "NoAccess"
    UNREACHABLE: Final = "ClusterUnreachable"
    REQUEST_REFUSED: Final = "RequestRefused"
    SECRET_CHANGED: Final = "SecretChanged"  # noqa: S105 - a reason
    SECRET_KEPT: Final = "SecretNotDistributable"  # noqa: S105 - a reason
    """The owner of a Secret has not permitted copies in clusters."""
    RENDER_FAILED: Final = "RenderFailed"
    """The template with the values of this cluster is no valid agent."""
    NOTHING_TO_RUN: Final = "NothingToRun"
    """The template has no key, so that there is no DaemonSet."""
    OTHER_WORKLOAD: Final = "OtherWorkload"
    """A DaemonSet of the agent's name is something else."""
    OPERATED: Final = "OperatedInCluster"
    """The cluster has an InstanaAgent of that name, whose operator would undo what is applied here."""
    TAKEN: Final = "ObjectTaken"
    """The cluster has an object of the name of an agent's that is somebody else's."""
    REFUSED: Final = "ObjectsRefused"
    """The cluster refuses an object."""


FAILURES: Final = frozenset(
    {
        PlacementReason.RENDER_FAILED,
        PlacementReason.NOTHING_TO_RUN,
        PlacementReason.OTHER_WORKLOAD,
        PlacementReason.OPERATED,
        PlacementReason.TAKEN,
        PlacementReason.REFUSED,
    }
)
"""Reasons that count as a failure in a rollout. A cluster that does not answer has the time that the policy allows."""
