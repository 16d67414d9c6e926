"""The kinds of the monitoring agent: group instana.io, v1."""

from __future__ import annotations

from hortus.domains.agents.kinds.agent import (
    INSTANA_AGENTS,
    InstanaAgent,
    InstanaAgentSpec,
    InstanaAgentStatus,
    InstanaPodSecurityPolicy,
    InstanaPrometheus,
    InstanaTelemetry,
    InstanaTelemetryPort,
    InstanaZone,
)
from hortus.domains.agents.kinds.core import (
    InstanaCreate,
    InstanaEnabled,
    InstanaName,
    InstanaObjectInfo,
    InstanaServiceAccount,
)
from hortus.domains.agents.kinds.process import (
    InstanaAgentImage,
    InstanaBackend,
    InstanaBaseAgent,
    InstanaHost,
    InstanaImage,
    InstanaMesh,
    InstanaPod,
    InstanaRollingUpdate,
    InstanaTls,
    InstanaUpdateStrategy,
)
from hortus.domains.agents.kinds.remote import (
    INSTANA_AGENTS_REMOTE,
    InstanaAgentRemote,
    InstanaAgentRemoteSpec,
    InstanaAgentRemoteStatus,
)
from hortus.domains.agents.kinds.sensor import (
    InstanaCaFile,
    InstanaEtcd,
    InstanaFeatureFlags,
    InstanaRestClient,
    InstanaSensor,
    InstanaSensorDeployment,
    InstanaSensorPod,
)

__all__ = [
    "INSTANA_AGENTS",
    "INSTANA_AGENTS_REMOTE",
    "InstanaAgent",
    "InstanaAgentImage",
    "InstanaAgentRemote",
    "InstanaAgentRemoteSpec",
    "InstanaAgentRemoteStatus",
    "InstanaAgentSpec",
    "InstanaAgentStatus",
    "InstanaBackend",
    "InstanaBaseAgent",
    "InstanaCaFile",
    "InstanaCreate",
    "InstanaEnabled",
    "InstanaEtcd",
    "InstanaFeatureFlags",
    "InstanaHost",
    "InstanaImage",
    "InstanaMesh",
    "InstanaName",
    "InstanaObjectInfo",
    "InstanaPod",
    "InstanaPodSecurityPolicy",
    "InstanaPrometheus",
    "InstanaRestClient",
    "InstanaRollingUpdate",
    "InstanaSensor",
    "InstanaSensorDeployment",
    "InstanaSensorPod",
    "InstanaServiceAccount",
    "InstanaTelemetry",
    "InstanaTelemetryPort",
    "InstanaTls",
    "InstanaUpdateStrategy",
    "InstanaZone",
]
