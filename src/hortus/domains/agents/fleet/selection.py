"""The clusters of each AgentConfiguration, as a function of all configurations and all ClusterProfiles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Final, NamedTuple

import msgspec
import orjson

from hortus.domains.agents.types import AgentConfiguration, AgentPlacement, AgentPlacementSpec
from hortus.kube.objects import Object
from hortus.kube.selectors import LabelSelector, SelectorError

_LONGEST: Final = 253
"""Characters of an object's name."""


class AgentAt(NamedTuple):
    """The agent of a name, in any cluster: only one configuration decides over it in each."""

    namespace: str
    name: str


class SelectedClusters(NamedTuple):
    """The clusters of one configuration."""

    won: tuple[str, ...]
    """Names of the clusters that get their agent from it."""
    overruled: Mapping[str, str]
    """By name of a cluster that matches, the configuration that counts there instead."""


def agent_of(configuration: AgentConfiguration) -> AgentAt:
    return AgentAt(configuration.spec.agent_namespace, configuration.spec.agent_name)


def selector_of(configuration: AgentConfiguration) -> LabelSelector:
    """The selector of clusters. Raises SelectorError, which names the field."""
    try:
        return _selector(orjson.dumps(configuration.spec.cluster_selector, option=orjson.OPT_SORT_KEYS))
    except SelectorError as error:
        raise SelectorError(f"spec.clusterSelector: {error}") from None


@lru_cache(maxsize=1024)
def _selector(text: bytes) -> LabelSelector:
    return LabelSelector.from_object(orjson.loads(text)) or LabelSelector()


def in_order(configurations: Iterable[AgentConfiguration]) -> list[AgentConfiguration]:
    """The configurations that can win, the one that counts most first: by priority, then by the later name."""
    able = [one for one in configurations if one.metadata.deletion_timestamp is None and _is_valid(one)]
    return sorted(able, key=lambda one: (one.spec.priority, one.metadata.name), reverse=True)


def _is_valid(configuration: AgentConfiguration) -> bool:
    try:
        selector_of(configuration)
    except SelectorError:
        return False
    return True


def winner(
    ordered: Sequence[AgentConfiguration], agent: AgentAt, labels: Mapping[str, str]
) -> AgentConfiguration | None:
    """The configuration that decides over an agent in a cluster with these labels; None for no agent there."""
    return next((one for one in ordered if agent_of(one) == agent and selector_of(one).matches(labels)), None)


def selected(
    configuration: AgentConfiguration, ordered: Sequence[AgentConfiguration], clusters: Mapping[str, Mapping[str, str]]
) -> SelectedClusters:
    """The clusters of a configuration; `clusters` are the labels by name, `ordered` comes from `in_order`.

    Raises SelectorError.
    """
    agent, selector = agent_of(configuration), selector_of(configuration)
    won, overruled = [], {}
    for name, labels in sorted(clusters.items()):
        if not selector.matches(labels):
            continue
        first = winner(ordered, agent, labels)
        if first is not None and first.metadata.name == configuration.metadata.name:
            won.append(name)
        elif first is not None:
            overruled[name] = first.metadata.name
    return SelectedClusters(tuple(won), overruled)


def placement_name(agent: AgentAt, cluster: str) -> str:
    """The name of the AgentPlacement of an agent in a cluster, the same whichever configuration counts.

    Where `<agent>.<cluster>` could be another one's name, or is too long, a checksum follows.
    """
    plain = f"{agent.name}.{cluster}"
    if agent.namespace == agent.name and len(plain) <= _LONGEST:
        return plain
    checksum = sha256("\0".join((*agent, cluster)).encode()).hexdigest()[:10]
    return f"{plain[: _LONGEST - 11].rstrip('-.')}-{checksum}"


def spec_of(configuration: AgentConfiguration, cluster: str, version: str) -> AgentPlacementSpec:
    """The spec of the AgentPlacement that a cluster of this configuration is to have."""
    agent = agent_of(configuration)
    return AgentPlacementSpec(
        cluster=cluster,
        agent_namespace=agent.namespace,
        agent_name=agent.name,
        configuration=configuration.metadata.name,
        version=version,
    )


def placement_of(configuration: AgentConfiguration, cluster: str, version: str) -> Object:
    """The AgentPlacement that a cluster of this configuration is to have."""
    name = placement_name(agent_of(configuration), cluster)
    return {
        "apiVersion": AgentPlacement.FACTS.api_version,
        "kind": AgentPlacement.FACTS.name,
        "metadata": {"name": name, "namespace": configuration.metadata.namespace},
        "spec": msgspec.to_builtins(spec_of(configuration, cluster, version)),
    }


__all__ = [
    "AgentAt",
    "SelectedClusters",
    "agent_of",
    "in_order",
    "placement_name",
    "placement_of",
    "selected",
    "selector_of",
    "spec_of",
    "winner",
]
