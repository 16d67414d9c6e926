"""AgentConfigurations that select the same clusters, and the one that rules there.

Of those that give a cluster the same agent one rules: by priority, then by the later name. Those with different agents
give the cluster two, and neither rules: both run on each node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from hortus.domains.agents.fleet.selection import agent_of, selector_of
from hortus.domains.agents.types import AgentConfiguration

OVERLAPS: Final = "Overlaps"
"""The condition, which is there while it is True."""
_NAMED: Final = 5
"""Clusters that a message names of each other configuration."""
_CONFIGURATIONS: Final = 5
"""Configurations that a message names."""


class OverlapReason(StrEnum):
    """The part that a configuration has in its overlaps; of several the first here is shown."""

    OVERRULED = "Overruled"
    """Another one rules in a cluster."""
    TWO_AGENTS = "TwoAgents"
    """Another one gives a cluster a second agent."""
    OVERRULES = "Overrules"
    """It rules wherever others select the same clusters."""


class Overlap(NamedTuple):
    """Two configurations and the clusters that both select."""

    reason: OverlapReason
    message: str


def overlaps(
    configuration: AgentConfiguration,
    ordered: Sequence[AgentConfiguration],
    clusters: Mapping[str, Mapping[str, str]],
) -> Overlap | None:
    """The overlaps of a configuration; `ordered` comes from `in_order`, `clusters` are the labels by name.

    Raises SelectorError.
    """
    found = sorted(_each(configuration, ordered, clusters), key=lambda one: list(OverlapReason).index(one.reason))
    if not found:
        return None
    texts = [one.message for one in found[:_CONFIGURATIONS]]
    if more := len(found) - len(texts):
        texts.append(f"and with {more} more")
    return Overlap(found[0].reason, "; ".join(texts))


def _each(
    configuration: AgentConfiguration, ordered: Sequence[AgentConfiguration], clusters: Mapping[str, Mapping[str, str]]
) -> Iterator[Overlap]:
    name, selector = configuration.metadata.name, selector_of(configuration)
    mine = {cluster: labels for cluster, labels in clusters.items() if selector.matches(labels)}
    is_before = True
    for other in ordered:
        if other.metadata.name == name:
            is_before = False
            continue
        theirs = selector_of(other)
        both = sorted(cluster for cluster, labels in mine.items() if theirs.matches(labels))
        if not both:
            continue
        first, second = (other, configuration) if is_before else (configuration, other)
        if agent_of(other) != agent_of(configuration):
            yield Overlap(OverlapReason.TWO_AGENTS, _two_agents(first, second, both))
        else:
            reason = OverlapReason.OVERRULED if is_before else OverlapReason.OVERRULES
            yield Overlap(reason, _ruled(first, second, both))


def _ruled(ruler: AgentConfiguration, other: AgentConfiguration, clusters: Sequence[str]) -> str:
    why = "by its name, which is the later one, at the same priority"
    if ruler.spec.priority != other.spec.priority:
        why = f"by priority {ruler.spec.priority} over {other.spec.priority}"
    names = f"{ruler.metadata.name} and {other.metadata.name}"
    return f"AgentConfigurations {names} select {_shown(clusters)}: {ruler.metadata.name} rules, {why}"


def _two_agents(first: AgentConfiguration, second: AgentConfiguration, clusters: Sequence[str]) -> str:
    names = f"{first.metadata.name} and {second.metadata.name}"
    agents = " and ".join(f"{agent.namespace}/{agent.name}" for agent in (agent_of(first), agent_of(second)))
    return (
        f"AgentConfigurations {names} select {_shown(clusters)}: neither rules, and each node runs both agents, "
        f"{agents}, which disturb each other; change a selector, or use the same agentName and agentNamespace"
    )


def _shown(clusters: Sequence[str]) -> str:
    named = ", ".join(clusters[:_NAMED])
    more = len(clusters) - _NAMED
    number = "cluster" if len(clusters) == 1 else f"{len(clusters)} clusters,"
    return f"{number} {named}" + (f" and {more} more" if more > 0 else "")


__all__ = ["OVERLAPS", "Overlap", "OverlapReason", "overlaps"]
