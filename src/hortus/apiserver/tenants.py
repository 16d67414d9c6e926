"""Who shares one server with others: users of logical clusters."""

from __future__ import annotations

from collections.abc import Hashable

ROOT_CLUSTER = "root"
"""The logical cluster at `/`."""

Holder = tuple[str, str]
"""Logical cluster and user: on whose account something is held."""


def tenant_of(cluster: str, username: str) -> Hashable:
    """Who shares the loop: a logical cluster as a whole, whatever users it makes, and each user of the root cluster."""
    return username if cluster == ROOT_CLUSTER else (cluster,)
