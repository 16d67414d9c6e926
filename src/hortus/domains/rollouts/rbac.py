"""RBAC permissions of this domain. The chart's roles are generated from them."""

from __future__ import annotations

from hortus.domains.inventory.types import CLUSTER_PROFILES
from hortus.domains.rollouts.approval import VERB
from hortus.engine.deputies import IMPERSONATES
from hortus.engine.rbac import EVENTS, Permission
from hortus.engine.rollouts.types import CHANGE_KINDS, PLACEMENT_DECISIONS, ROLLOUT_POLICIES, ROLLOUTS

_GROUP, _MULTICLUSTER = ROLLOUTS.group, PLACEMENT_DECISIONS.group
_ROLLOUTS, _POLICIES, _KINDS = ROLLOUTS.plural, ROLLOUT_POLICIES.plural, CHANGE_KINDS.plural

FLEET: tuple[Permission, ...] = (
    Permission(_GROUP, (_POLICIES,), ("list", "watch"), "follows the policies"),
    Permission(
        _GROUP, (_ROLLOUTS,), ("list", "watch", "create", "patch", "delete"), "starts rollouts, and deletes old ones"
    ),
    Permission(_GROUP, (_ROLLOUTS,), (VERB,), "starts rollouts with the terms of the policy that governs them"),
    Permission(_GROUP, (f"{_POLICIES}/status", f"{_ROLLOUTS}/status"), ("patch",), "reports their state"),
    Permission(
        _MULTICLUSTER, (PLACEMENT_DECISIONS.plural,), ("list", "watch", "create", "patch"), "records admitted clusters"
    ),
    Permission(_MULTICLUSTER, (CLUSTER_PROFILES.plural,), ("list", "watch"), "knows the clusters"),
)
"""Permissions in the fleet's namespace."""

WIDE: tuple[Permission, ...] = (
    Permission(_GROUP, (_KINDS,), ("list", "watch", "create", "patch"), "keeps its own ChangeKinds, follows all"),
    Permission(_GROUP, (f"{_KINDS}/status",), ("patch",), "reports their state"),
    # Events about ChangeKinds, which have no namespace, lie in `default`.
    EVENTS,
    IMPERSONATES,
)
"""Permissions in the whole management cluster. Rollouts read objects of people's ChangeKinds, and set objects, with the
permissions of the deputy of their namespace."""

APPROVER: tuple[Permission, ...] = (
    Permission(_GROUP, (_ROLLOUTS,), ("get", "list", "watch", "patch", VERB), "for people who approve"),
    Permission(_GROUP, (_POLICIES,), (VERB,), "for people who may ask for approval, or stop asking"),
)
"""Permissions of people who approve and resume rollouts. Those who edit need them to write policies with approvals."""
