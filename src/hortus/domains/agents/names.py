"""Names that the agents domain and the Go operator share (instana/instana-agent-operator, `api/v1` and `internal/`)."""

from __future__ import annotations

from typing import Final

GROUP: Final = "instana.io"
VERSION: Final = "v1"
FLEET_GROUP: Final = "fleet.hortus.dev"
FLEET_VERSION: Final = "v1alpha1"
CATEGORIES: Final = ("monitoring", "openshift-optional")
