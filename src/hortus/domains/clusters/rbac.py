"""RBAC permissions of this domain. The chart's roles are generated from them."""

from __future__ import annotations

from hortus.domains.clusters.types import RUNTIMES
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.engine.deputies import REVIEWS
from hortus.engine.rbac import Permission

_GROUP, _RUNTIMES = RUNTIMES.group, RUNTIMES.plural
_CORE, _SECURITY = "core.gardener.cloud", "security.gardener.cloud"

MANAGEMENT: tuple[Permission, ...] = (
    Permission(_GROUP, (_RUNTIMES,), ("list", "watch"), "follows the Runtimes"),
    Permission(_GROUP, (_RUNTIMES,), ("patch",), "holds what it must clean up, takes off what asked for a patch"),
    Permission(_GROUP, (f"{_RUNTIMES}/status",), ("patch",), "says how the Runtimes are"),
    Permission(_GROUP, (GARDENER_CLUSTERS.plural,), ("list", "watch", "create", "delete"), "asks for kubeconfigs"),
    Permission("", ("secrets",), ("get",), "enters the clusters"),
    Permission("", ("configmaps",), ("get",), "reads the operator's own address ranges, where ACLs are on"),
)
"""Permissions in the namespace of the Runtimes."""

WIDE: tuple[Permission, ...] = (REVIEWS,)
"""Permissions in the whole management cluster, where all namespaces are watched: one watched namespace is trusted."""

GARDEN: tuple[Permission, ...] = (
    Permission(
        _CORE, ("shoots",), ("get", "list", "watch", "create", "patch", "delete"), "makes and changes the clusters"
    ),
    Permission("", ("configmaps",), ("create", "patch", "delete"), "keeps structured authentication"),
    Permission(_CORE, ("secretbindings",), ("get",), "knows the Secret of a cluster that leaves its SecretBinding"),
    Permission(_SECURITY, ("credentialsbindings",), ("list",), "finds the CredentialsBinding of the same Secret"),
)
"""Permissions in the namespace of the Gardener project. An apply that creates needs both patch and create."""

GARDEN_WIDE: tuple[Permission, ...] = (
    Permission(_CORE, ("seeds",), ("list",), "looks for a seed in the region of a cluster"),
    Permission(_CORE, ("cloudprofiles",), ("list", "watch"), "knows what the garden offers"),
)
"""Permissions in all namespaces of the garden."""
