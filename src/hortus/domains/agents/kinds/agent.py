"""InstanaAgent: the agent on every node of a cluster.

Every field has a Python default, so that an object without a spec, which the schema accepts, can be read; the CRD still
requires what the Go system's requires.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final

import msgspec
from msgspec import Meta

from hortus.domains.agents.kinds.core import (
    Affinity,
    InstanaCreate,
    InstanaEnabled,
    InstanaName,
    InstanaObjectInfo,
    InstanaServiceAccount,
    Int32,
    SemanticVersion,
    Tolerations,
)
from hortus.domains.agents.kinds.process import InstanaBaseAgent, InstanaMesh
from hortus.domains.agents.kinds.sensor import InstanaDeprecatedSensor, InstanaSensor
from hortus.domains.agents.names import CATEGORIES, GROUP, VERSION
from hortus.kube.objects import Resource
from hortus.schema import Condition, Fields, Format, Kind, ListMap, kind


class InstanaTelemetryPort(Fields, frozen=True):
    """One protocol of OpenTelemetry."""

    enabled: bool | None = None
    """On or off; not set follows the switch of all of OpenTelemetry."""
    port: Int32 = None
    """The port; not set uses the protocol's own."""


class InstanaTelemetry(Fields, frozen=True):
    """The reception of OpenTelemetry data."""

    enabled: bool | None = None
    """On or off; not set means on."""
    grpc: InstanaTelemetryPort = InstanaTelemetryPort()
    """OTLP over gRPC."""
    http: InstanaTelemetryPort = InstanaTelemetryPort()
    """OTLP over HTTP."""


class InstanaPrometheus(Fields, frozen=True):
    """The reception of Prometheus data."""

    remote_write: InstanaEnabled = InstanaEnabled()
    """Remote write to the agent; not set means off."""


class InstanaPodSecurityPolicy(Fields, frozen=True):
    """PodSecurityPolicies, which Kubernetes no longer has. Accepted without effect."""

    enabled: bool | None = None
    """Accepted without effect."""
    name: str = ""
    """Accepted without effect."""


class InstanaZone(Fields, frozen=True):
    """A part of the cluster's nodes with agents of its own."""

    name: str = ""
    """Name of the zone."""
    mode: str = ""
    """Amount of monitoring in this zone."""
    tolerations: Tolerations = ()
    """Taints of this zone's nodes that the agent tolerates."""
    affinity: Affinity = None
    """The nodes of this zone."""


class InstanaAgentSpec(Fields, frozen=True):
    """The agent, and what it is to see of the cluster."""

    __schema__: ClassVar[dict[str, Any]] = {"required": ["agent"]}

    agent: InstanaBaseAgent = InstanaBaseAgent()
    """The agent itself."""
    use_secret_mounts: bool | None = None
    """Give keys and passwords to the containers as files instead of variables; not set means true."""
    cluster: InstanaName = InstanaName()
    """The cluster's name in the backend."""
    zone: InstanaName = InstanaName()
    """The zone's name in the backend, for all nodes."""
    zones: tuple[InstanaZone, ...] = ()
    """Zones by parts of the nodes, each with a DaemonSet of its own."""
    openshift: bool | None = None
    """The cluster is OpenShift; not set finds out."""
    rbac: InstanaCreate = InstanaCreate()
    """Accepted without effect: RBAC rules are always created."""
    service: InstanaCreate = InstanaCreate()
    """The Service of the agent."""
    opentelemetry: InstanaTelemetry = InstanaTelemetry()
    """The reception of OpenTelemetry data."""
    prometheus: InstanaPrometheus = InstanaPrometheus()
    """The reception of Prometheus data."""
    service_account: InstanaServiceAccount = InstanaServiceAccount()
    """The ServiceAccount of the agent's pods."""
    pod_security_policy: InstanaPodSecurityPolicy = InstanaPodSecurityPolicy()
    """Accepted without effect."""
    kubernetes: InstanaDeprecatedSensor = InstanaDeprecatedSensor()
    """Accepted without effect: settings of the sensor before the k8sensor."""
    k8s_sensor: InstanaSensor = msgspec.field(name="k8s_sensor", default=InstanaSensor())
    """The k8sensor, which watches the API server."""
    pinned_chart_version: str = ""
    """Accepted without effect."""
    service_mesh: InstanaMesh = InstanaMesh()
    """Accepted without effect: see `agent.serviceMesh`."""


class InstanaAgentStatus(Fields, frozen=True):
    """The agents as observed."""

    configsecret: InstanaObjectInfo | None = msgspec.field(name="configsecret", default=None)
    """The Secret with the agent's configuration."""
    namespacesconfigmap: InstanaObjectInfo | None = msgspec.field(name="namespacesconfigmap", default=None)
    """The ConfigMap with the labels of namespaces."""
    daemonset: InstanaObjectInfo | None = msgspec.field(name="daemonset", default=None)
    """The DaemonSet, where there is exactly one."""
    configmap: InstanaObjectInfo | None = msgspec.field(name="configmap", default=None)
    """Never set; kept for readers of former versions."""
    leading_agent_pod: dict[str, InstanaObjectInfo] = {}
    """Never set; kept for readers of former versions."""
    status: str = ""
    """Running or Failed."""
    reason: str = ""
    """The error of the last reconcile; empty when it succeeded."""
    last_update: Annotated[str, Format("date-time")] | None = None
    """When this status last changed."""
    old_versions_updated: bool = False
    """True once nothing of former versions is left; it stays true."""
    conditions: Annotated[tuple[Condition, ...], ListMap("type")] = ()
    """The availability of the agents, and the results of the last reconcile."""
    observed_generation: Annotated[int, Meta(ge=0), Format("int64")] | None = None
    """The generation of the object that this status describes."""
    operator_version: SemanticVersion = ""
    """The version of the operator that wrote this status."""


@kind(
    group=GROUP,
    version=VERSION,
    plural="agents",
    singular="agent",
    short_names=("ia", "instanaagent", "instanaagents"),
    categories=CATEGORIES,
    status=True,
)
class InstanaAgent(Kind, frozen=True):
    """The monitoring agent on every node of a cluster, with the sensor of its API server."""

    spec: InstanaAgentSpec = InstanaAgentSpec()
    """The agent, and what it is to see of the cluster."""
    status: InstanaAgentStatus = InstanaAgentStatus()
    """The agents as observed."""


INSTANA_AGENTS: Final = Resource(GROUP, VERSION, "agents", "InstanaAgent")
