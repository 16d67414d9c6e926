"""Names that the agents domain and the Go operator share (instana/instana-agent-operator, `api/v1` and `internal/`)."""

from __future__ import annotations

from typing import Final

from hortus.kube.objects import Resource

GROUP: Final = "instana.io"
VERSION: Final = "v1"
FLEET_GROUP: Final = "fleet.hortus.dev"
FLEET_VERSION: Final = "v1alpha1"
CERTIFICATES: Final = Resource("cert-manager.io", "v1", "certificates", "Certificate")
"""The kind by which cert-manager issues certificates."""
CATEGORIES: Final = ("monitoring", "openshift-optional")
OPERATOR_LEASE: Final = "819a9291.instana.io"
"""The Lease by which the Go operator elects its leader, in the namespace of its pod."""
AGENTS_REPORT: Final = "AgentsReport"
"""The condition by which agents that were asked for their status pages say that they run."""
