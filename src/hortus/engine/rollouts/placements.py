"""PlacementDecision, of SIG Multicluster (kubernetes-sigs/cluster-inventory-api): slices of at most 100 clusters."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from hortus.kube.objects import Resource
from hortus.schema import Fields, Kind, kind


class ClusterProfileRef(Fields, frozen=True):
    """A ClusterProfile."""

    name: str
    """Its name."""
    namespace: str = ""
    """Its namespace; that of the decision when empty."""


class ClusterDecision(Fields, frozen=True):
    """One cluster that was chosen."""

    cluster_profile_ref: ClusterProfileRef
    """The cluster."""
    reason: str = ""
    """The reason for which it was chosen."""


@kind(group="multicluster.x-k8s.io", version="v1alpha1")
class PlacementDecision(Kind, frozen=True):
    """A slice of at most 100 clusters of one decision."""

    decisions: Annotated[tuple[ClusterDecision, ...], Meta(max_length=100)]
    """The clusters."""
    scheduler_name: str = ""
    """The scheduler that made the decision."""


PLACEMENT_DECISIONS: Final = Resource("multicluster.x-k8s.io", "v1alpha1", "placementdecisions", "PlacementDecision")


class Label:
    DECISION_KEY: Final = "multicluster.x-k8s.io/decision-key"
    """On slices: the name of the Rollout."""
    DECISION_INDEX: Final = "multicluster.x-k8s.io/decision-index"
    """On slices: their order, from 0."""
    PLACEMENT_KEY: Final = "multicluster.x-k8s.io/placement-key"
    """On slices: the RolloutPolicy."""
