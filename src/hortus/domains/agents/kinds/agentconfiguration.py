"""AgentConfiguration: one agent for many clusters of the inventory; AgentPlacement: that agent on one of them.

They are additions of Hortus, which the Go operator does not know. People write AgentConfigurations; AgentPlacements are
records of the controllers.
"""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from hortus.domains.agents.kinds.agent import InstanaAgentSpec
from hortus.domains.agents.names import FLEET_GROUP, FLEET_VERSION
from hortus.engine.rollouts.policies import Selector
from hortus.kube.objects import Object, Resource
from hortus.schema import (
    AGE,
    Column,
    Condition,
    Fields,
    Format,
    Kind,
    ListMap,
    ListSet,
    Shape,
    ValidationRule,
    kind,
)

_IMMUTABLE: Final = ValidationRule("self == oldSelf", message="it cannot be changed: create another AgentConfiguration")
_Name = Annotated[str, Meta(min_length=1, max_length=63, pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]
_Count = Annotated[int, Meta(ge=0)]
AGENT: Final = "instana-agent"
"""Name and namespace of the agent in a cluster where nothing else is said, as in the Go system's documentation."""


class AgentConfigurationSpec(Fields, frozen=True):
    """The clusters, and the agent that each of them gets."""

    cluster_selector: Selector
    """Labels of the ClusterProfiles that get the agent; an empty selector takes all."""
    template: Annotated[Object, Shape(InstanaAgentSpec)]
    """The spec of an InstanaAgent. Secrets that it names are read from this object's namespace and distributed."""
    per_cluster: Annotated[str, Meta(max_length=8192)] = ""
    """A CEL expression over `cluster` whose result, an object, is merged into the template for each cluster."""
    priority: int = 0
    """Decides between configurations that give one cluster the same agent: the higher one counts, then the name."""
    agent_name: Annotated[_Name, _IMMUTABLE] = AGENT
    """Name of the agent in each cluster."""
    agent_namespace: Annotated[_Name, _IMMUTABLE] = AGENT
    """Namespace of the agent in each cluster; it is created."""
    local_secrets: Annotated[tuple[str, ...], ListSet(), Meta(max_length=16)] = ()
    """Names of Secrets in the template that the clusters have themselves, and that are not distributed."""


class AgentCounts(Fields, frozen=True):
    """Numbers of clusters."""

    selected: _Count = 0
    """Clusters that get their agent from this configuration."""
    current: _Count = 0
    """Clusters that have its present version."""
    ready: _Count = 0
    """Clusters that have it and whose agents all run."""
    waiting: _Count = 0
    """Clusters that wait for a rollout."""
    failed: _Count = 0
    """Clusters that report a failure."""
    overruled: _Count = 0
    """Clusters that match, and get the same agent from another configuration."""


class NodeCounts(Fields, frozen=True):
    """Numbers of nodes."""

    desired: _Count = 0
    """Nodes that are to run the agent."""
    available: _Count = 0
    """Nodes whose agent is available."""
    updated: _Count = 0
    """Nodes whose agent has the present template."""


class SensorCounts(Fields, frozen=True):
    """Numbers of the sensor's pods."""

    desired: _Count = 0
    """Pods that are to run."""
    available: _Count = 0
    """Pods that are available."""


class TroubledCluster(Fields, frozen=True):
    """A cluster without a running agent, and the reason."""

    name: str
    """Name of its ClusterProfile."""
    reason: str
    """The cause, as one word."""
    message: str = ""
    """The cause, in a sentence."""


class AgentConfigurationStatus(Fields, frozen=True):
    """The fleet as observed."""

    observed_generation: Annotated[int, Meta(ge=0), Format("int64")] | None = None
    """The generation that this status describes."""
    version: str = ""
    """Checksum of template, expression and Secrets: the version that rollouts spread."""
    clusters: AgentCounts = AgentCounts()
    """Numbers of clusters."""
    nodes: NodeCounts = NodeCounts()
    """Nodes of all clusters."""
    worst: Annotated[tuple[TroubledCluster, ...], ListMap("name")] = ()
    """The clusters that need somebody most, up to 10."""
    conditions: Annotated[tuple[Condition, ...], ListMap("type")] = ()
    """Ready, Reconciling and Stalled, and Overlaps while another configuration selects the same clusters."""


@kind(
    group=FLEET_GROUP,
    version=FLEET_VERSION,
    status=True,
    columns=(
        Column("CLUSTERS", ".status.clusters.selected", type="integer"),
        Column("CURRENT", ".status.clusters.current", type="integer"),
        Column("READY", ".status.clusters.ready", type="integer"),
        Column("FAILED", ".status.clusters.failed", type="integer"),
        Column("NODES", ".status.nodes.available", type="integer", priority=1),
        Column("VERSION", ".status.version", priority=1),
        AGE,
    ),
)
class AgentConfiguration(Kind, frozen=True):
    """A monitoring agent for the clusters of the inventory that have certain labels."""

    spec: AgentConfigurationSpec
    """The clusters, and the agent that each of them gets."""
    status: AgentConfigurationStatus = AgentConfigurationStatus()
    """The fleet as observed."""


class AgentPlacementSpec(Fields, frozen=True):
    """The cluster, and the source of its agent."""

    cluster: Annotated[str, Meta(min_length=1, max_length=253), _IMMUTABLE]
    """Name of the ClusterProfile."""
    agent_namespace: Annotated[_Name, _IMMUTABLE]
    """Namespace of the agent in the cluster."""
    agent_name: Annotated[_Name, _IMMUTABLE]
    """Name of the agent in the cluster."""
    configuration: Annotated[str, Meta(min_length=1, max_length=253)]
    """Name of the AgentConfiguration."""
    version: str
    """The version of it that the cluster is to have."""


class AgentPlacementStatus(Fields, frozen=True):
    """The agent as observed."""

    observed_generation: Annotated[int, Meta(ge=0), Format("int64")] | None = None
    """The generation that this status describes."""
    version: str = ""
    """The version that is installed."""
    nodes: NodeCounts = NodeCounts()
    """The nodes of the cluster."""
    sensors: SensorCounts = SensorCounts()
    """The sensor's pods."""
    inventory: tuple[str, ...] = ()
    """The objects in the cluster, a line each."""
    conditions: Annotated[tuple[Condition, ...], ListMap("type")] = ()
    """Ready, Reconciling and Stalled, and AgentsReport where the option runtimeStatus asks for it."""


@kind(
    group=FLEET_GROUP,
    version=FLEET_VERSION,
    status=True,
    columns=(
        Column("CLUSTER", ".spec.cluster"),
        Column("CONFIGURATION", ".spec.configuration"),
        Column("DESIRED", ".status.nodes.desired", type="integer"),
        Column("AVAILABLE", ".status.nodes.available", type="integer"),
        Column("READY", '.status.conditions[?(@.type=="Ready")].status'),
        Column("REASON", '.status.conditions[?(@.type=="Ready")].reason'),
        Column("VERSION", ".status.version", priority=1),
        AGE,
    ),
)
class AgentPlacement(Kind, frozen=True):
    """The agent of an AgentConfiguration on one cluster. Controllers write it."""

    spec: AgentPlacementSpec
    """The cluster, and the source of its agent."""
    status: AgentPlacementStatus = AgentPlacementStatus()
    """The agent as observed."""


AGENT_CONFIGURATIONS: Final = Resource(FLEET_GROUP, FLEET_VERSION, "agentconfigurations", "AgentConfiguration")
AGENT_PLACEMENTS: Final = Resource(FLEET_GROUP, FLEET_VERSION, "agentplacements", "AgentPlacement")
