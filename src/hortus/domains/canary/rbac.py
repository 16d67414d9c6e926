"""The RBAC rules of the canary besides those for Runtimes, only where there is one."""

from __future__ import annotations

from hortus.domains.clusters.types import RUNTIMES
from hortus.engine.rbac import Permission

MANAGEMENT: tuple[Permission, ...] = (
    Permission(RUNTIMES.group, (RUNTIMES.plural,), ("create", "delete"), "grows a cluster and deletes it"),
    Permission("", ("configmaps",), ("list", "watch", "create", "patch"), "keeps the book of its runs"),
)
"""In the namespace of the Runtimes."""
