"""The RBAC rules of the canary besides those for Runtimes, only where there is one."""

from __future__ import annotations

from hortus.domains.clusters.types import RUNTIMES
from hortus.engine.rights import Right

MANAGEMENT: tuple[Right, ...] = (
    Right(RUNTIMES.group, (RUNTIMES.plural,), ("create", "delete"), "grows a cluster and deletes it"),
    Right("", ("configmaps",), ("list", "watch", "create", "patch"), "keeps the book of its runs"),
)
"""In the namespace of the Runtimes."""
