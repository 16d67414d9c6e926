"""ChangeKind, RolloutPolicy, Rollout and PlacementDecision: one way to change many clusters.

The first three are Hortus' own (`fleet.hortus.dev`). PlacementDecision is SIG Multicluster's. Domains and controllers
of others read these kinds; the rollouts domain alone writes Rollouts' status and the slices.
"""

from __future__ import annotations

from hortus.engine.rollouts.changekinds import (
    CHANGE_KINDS,
    MOVED,
    WANTS,
    ChangedResource,
    ChangeKind,
    ChangeKindSpec,
    ChangeKindStatus,
    Proposal,
)
from hortus.engine.rollouts.placements import (
    PLACEMENT_DECISIONS,
    ClusterDecision,
    ClusterProfileRef,
    Label,
    PlacementDecision,
)
from hortus.engine.rollouts.policies import (
    ROLLOUT_POLICIES,
    GovernedChange,
    PolicyTerms,
    RolloutPolicy,
    RolloutPolicySpec,
    RolloutPolicyStatus,
    Stage,
)
from hortus.engine.rollouts.rollouts import (
    ENDED,
    REVERT,
    ROLLOUTS,
    ClusterFailure,
    Rollout,
    RolloutChange,
    RolloutCondition,
    RolloutPhase,
    RolloutSpec,
    RolloutStatus,
    StageStatus,
    age_of,
    sequence_of,
)

__all__ = [
    "CHANGE_KINDS",
    "ENDED",
    "MOVED",
    "PLACEMENT_DECISIONS",
    "REVERT",
    "ROLLOUTS",
    "ROLLOUT_POLICIES",
    "WANTS",
    "ChangeKind",
    "ChangeKindSpec",
    "ChangeKindStatus",
    "ChangedResource",
    "ClusterDecision",
    "ClusterFailure",
    "ClusterProfileRef",
    "GovernedChange",
    "Label",
    "PlacementDecision",
    "PolicyTerms",
    "Proposal",
    "Rollout",
    "RolloutChange",
    "RolloutCondition",
    "RolloutPhase",
    "RolloutPolicy",
    "RolloutPolicySpec",
    "RolloutPolicyStatus",
    "RolloutSpec",
    "RolloutStatus",
    "Stage",
    "StageStatus",
    "age_of",
    "sequence_of",
]
