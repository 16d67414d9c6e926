"""The flags of `hortus run`, and the name of its lease. Reading them loads no controllers."""

from __future__ import annotations

from typing import Final

from hortus.domains import all_domains
from hortus.engine.flags import Flag
from hortus.engine.hostflags import HOST_FLAGS

ELECTION_NAME: Final = "f1c68560.kyma-project.io"
"""The Go system's lease, so that both never work at the same time while one replaces the other."""

FLAGS: Final[tuple[Flag, ...]] = (
    *HOST_FLAGS,
    Flag("replicas", "int", 1, "Processes to start on this machine; more than one share the objects (--sharding)."),
    *(flag for domain in all_domains() for flag in domain.flags()),
)
