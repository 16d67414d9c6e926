"""The rows and the sentences of `hortus agent list` and `hortus agent why`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from hortus.domains.agents.fleet.counting import (
    AgentClusterState,
    PlacementState,
    agent_state_of,
    is_current,
    is_failed,
    is_ready,
    ready_of,
)
from hortus.domains.agents.fleet.reasons import PlacementReason
from hortus.domains.agents.fleet.selection import AgentAt, agent_of, in_order, selector_of, winner
from hortus.domains.agents.names import AGENTS_REPORT
from hortus.domains.agents.types import AgentConfiguration, AgentPlacement
from hortus.engine.conditions import FALSE, TRUE
from hortus.kube.selectors import SelectorError

HEADS: Final = ("Cluster", "Configuration", "Nodes", "State", "Reason", "Version")
_OWNERS: Final = {
    PlacementReason.RENDER_FAILED: "the owner of the AgentConfiguration corrects template or expression, or the labels "
    "of the cluster",
    PlacementReason.NOTHING_TO_RUN: "the owner of the AgentConfiguration names a Secret with the agent key",
    PlacementReason.OPERATED: "the operator of the cluster stops the other operator, or this cluster is left out",
    PlacementReason.OTHER_WORKLOAD: "the owner of the cluster renames or deletes the DaemonSet",
    PlacementReason.REFUSED: "the owner of the cluster sees why it refuses the object; it is tried again",
    PlacementReason.HELD: "the owner of the cluster sees what the finalizers of the object wait for; it is tried again",
    PlacementReason.NO_ACCESS: "the operator gives the cluster a kubeconfig",
    PlacementReason.UNREACHABLE: "the owner of the cluster; it is tried again by itself",
    PlacementReason.REQUEST_REFUSED: "the owner of the cluster sees why it refuses requests; it is tried again",
    PlacementReason.CONFIGURATION_MISSING: "the operator creates the AgentConfiguration again, or deletes the "
    "AgentPlacement",
    PlacementReason.WAITS: "the rollout: hortus rollout list",
}
_NOBODY: Final = "nobody: waiting is enough"


def rows(states: Iterable[PlacementState]) -> Iterator[tuple[str, ...]]:
    """A row for each cluster, those that failed first, then those without a running agent, then by name."""

    def rank(state: PlacementState) -> tuple[bool, bool, str]:
        placement = state.placement
        return not is_failed(placement), is_ready(placement), placement.spec.cluster

    for state in sorted(states, key=rank):
        placement, nodes = state.placement, state.placement.status.nodes
        yield (
            placement.spec.cluster,
            placement.spec.configuration,
            f"{nodes.available}/{nodes.desired}",
            agent_state_of(state),
            _reason(placement),
            placement.status.version or "none",
        )


def _reason(placement: AgentPlacement) -> str:
    """The reason of a row: that of Ready, unless the agents themselves report problems of what is in place."""
    ready = ready_of(placement)
    if ready is not None and ready.status == TRUE:
        ill = (one.reason for one in placement.status.conditions if one.type == AGENTS_REPORT and one.status == FALSE)
        return next(ill, ready.reason)
    return ready.reason if ready is not None else ""


def explained(
    cluster: str,
    labels: Mapping[str, str] | None,
    configurations: Sequence[AgentConfiguration],
    states: Sequence[PlacementState],
) -> Iterator[str]:
    """The lines about a cluster; `labels` are those of its ClusterProfile, None where it has none."""
    own = [state for state in states if state.placement.spec.cluster == cluster]
    for state in own:
        yield from _of_placement(state)
    if labels is None:
        yield f"Cluster {cluster} has no ClusterProfile: no AgentConfiguration can select it (hortus clusters)"
        return
    ordered = in_order(configurations)
    for configuration in sorted(configurations, key=lambda one: one.metadata.name):
        yield from _of_configuration(configuration, ordered, labels, own)
    if not configurations:
        yield "There is no AgentConfiguration in this namespace"


def _of_placement(state: PlacementState) -> Iterator[str]:
    placement = state.placement
    spec, ready = placement.spec, ready_of(placement)
    agent = f"{spec.agent_namespace}/{spec.agent_name}"
    yield f"Agent {agent} by AgentConfiguration {spec.configuration}: {agent_state_of(state)}"
    if ready is not None:
        yield f"  {ready.reason}: {ready.message}"
    for one in placement.status.conditions:
        if one.type == AGENTS_REPORT:
            yield f"  {one.reason}: {one.message}"
    if not is_current(placement):
        yield f"  version {placement.status.version or 'none'} is installed, {spec.version} is wanted"
    waits = agent_state_of(state) == AgentClusterState.WAITING
    yield f"  next step: {_OWNERS[PlacementReason.WAITS] if waits else next_step(placement)}"


def next_step(placement: AgentPlacement) -> str:
    """The next step of an agent that does not wait for a rollout, with its owner."""
    ready = ready_of(placement)
    if is_ready(placement):
        return "none: the agent runs on all nodes"
    return _OWNERS.get(ready.reason, _NOBODY) if ready is not None else _NOBODY


def _of_configuration(
    configuration: AgentConfiguration,
    ordered: Sequence[AgentConfiguration],
    labels: Mapping[str, str],
    own: Sequence[PlacementState],
) -> Iterator[str]:
    """The reason for which a configuration does not count in a cluster; nothing for the one that does."""
    name, agent = configuration.metadata.name, agent_of(configuration)
    try:
        selector = selector_of(configuration)
    except SelectorError as error:
        yield f"AgentConfiguration {name} selects nothing: {error}"
        return
    if not selector.matches(labels):
        lacking = next(str(one) for one in selector.requirements if not one.matches(labels))
        yield f"AgentConfiguration {name} does not select it: its labels do not meet {lacking}"
        return
    first = winner(ordered, agent, labels)
    if first is not None and first.metadata.name != name:
        yield f"AgentConfiguration {name} selects it too; {first.metadata.name} counts more (spec.priority, then name)"
        return
    yield from _second_agents(configuration, ordered, labels)
    if not any(_is_of(one.placement, name, agent) for one in own):
        yield f"AgentConfiguration {name} selects it, and has not placed its agent yet: {_obstacle(configuration)}"


def _second_agents(
    configuration: AgentConfiguration, ordered: Sequence[AgentConfiguration], labels: Mapping[str, str]
) -> Iterator[str]:
    """The configurations that give the cluster another agent, each pair once."""
    name, agent = configuration.metadata.name, agent_of(configuration)
    for other in ordered:
        theirs = agent_of(other)
        if theirs == agent or other.metadata.name < name or not selector_of(other).matches(labels):
            continue
        yield (
            f"AgentConfigurations {name} and {other.metadata.name} give it two agents, {agent.namespace}/{agent.name} "
            f"and {theirs.namespace}/{theirs.name}, which disturb each other"
        )


def _is_of(placement: AgentPlacement, configuration: str, agent: AgentAt) -> bool:
    spec = placement.spec
    return (spec.configuration, spec.agent_namespace, spec.agent_name) == (configuration, *agent)


def _obstacle(configuration: AgentConfiguration) -> str:
    found = next((one for one in configuration.status.conditions if one.type == "Ready"), None)
    return found.message if found is not None else "no controller has seen it (hortus run --agents --inventory)"
