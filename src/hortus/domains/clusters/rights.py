"""What this domain may do, and where; the roles of the chart come from here."""

from __future__ import annotations

from hortus.domains.clusters.types import RUNTIMES
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.engine.rights import Right

_GROUP, _RUNTIMES = RUNTIMES.group, RUNTIMES.plural
_CORE = "core.gardener.cloud"

MANAGEMENT: tuple[Right, ...] = (
    Right(_GROUP, (_RUNTIMES,), ("list", "watch"), "follows the Runtimes"),
    Right(_GROUP, (_RUNTIMES,), ("patch",), "holds what it must clean up, takes off what asked for a patch"),
    Right(_GROUP, (f"{_RUNTIMES}/status",), ("patch",), "says how the Runtimes are"),
    Right(_GROUP, (GARDENER_CLUSTERS.plural,), ("list", "watch", "create", "delete"), "asks for kubeconfigs"),
    Right("", ("secrets",), ("get",), "enters the clusters"),
    Right("", ("configmaps",), ("get",), "reads the operator's own address ranges, where ACLs are on"),
)
"""In the namespace of the Runtimes."""

GARDEN: tuple[Right, ...] = (
    Right(_CORE, ("shoots",), ("get", "list", "watch", "create", "patch", "delete"), "makes and changes the clusters"),
    Right("", ("configmaps",), ("create", "patch", "delete"), "keeps structured authentication"),
)
"""In the namespace of the Gardener project. An apply that creates asks for both patch and create."""

GARDEN_WIDE: tuple[Right, ...] = (
    Right(_CORE, ("seeds",), ("list",), "looks for a seed in the region of a cluster"),
    Right(_CORE, ("cloudprofiles",), ("list", "watch"), "knows what the garden offers"),
)
"""In the whole garden."""
