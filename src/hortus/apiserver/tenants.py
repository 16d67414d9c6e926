"""Tenants of one server: users of logical clusters."""

from __future__ import annotations

from collections.abc import Hashable

ROOT_CLUSTER = "root"
"""The logical cluster at `/`."""

Holder = tuple[str, str]
"""Logical cluster and user: the account that a resource is charged to."""


def tenant_of(cluster: str, username: str) -> Hashable:
    """The tenant of a request: a logical cluster with all its users; in the root cluster each user."""
    return username if cluster == ROOT_CLUSTER else (cluster,)
