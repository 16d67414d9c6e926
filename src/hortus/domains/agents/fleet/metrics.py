"""Metrics of the fleet form, read from the objects themselves: every replica shows the same.

There is no label for a cluster or a configuration: `hortus agent list` names them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector, CollectorRegistry

from hortus.domains.agents.fleet.counting import AGENT_STATES, AgentClusterState, agent_state_of, is_current
from hortus.domains.agents.fleet.known import KnownPlacements
from hortus.domains.agents.types import AgentConfiguration
from hortus.engine import Change, NotReadable, TypedCache
from hortus.engine.conditions import FALSE, READY
from hortus.kube.clock import Clock
from hortus.kube.objects import ObjectKey

_NODES: Final = ("desired", "available", "updated")
_HELD_BACK: Final = frozenset({AgentClusterState.WAITING, AgentClusterState.AWAY})


class AgentFleetMetrics(Collector):
    """Counts when it is asked."""

    def __init__(
        self,
        registry: CollectorRegistry,
        placements: KnownPlacements,
        configurations: TypedCache[AgentConfiguration],
        clock: Clock,
    ) -> None:
        self._placements = placements
        self._configurations = configurations
        self._clock = clock
        self._asked: dict[ObjectKey, tuple[str, float]] = {}
        """By AgentPlacement, the version that is not in place, and since when nothing holds it back here."""
        placements.raw.subscribe(self._on_change)
        registry.register(self)

    def _on_change(self, change: Change) -> None:
        with suppress(NotReadable):
            known = self._placements.get(change.key) if change.new is not None else None
            if known is None or is_current(known.placement) or agent_state_of(known) in _HELD_BACK:
                self._asked.pop(change.key, None)
                return
            version = known.placement.spec.version
            if self._asked.get(change.key, ("",))[0] != version:
                self._asked[change.key] = version, self._clock.now()

    def describe(self) -> Iterator[Metric]:
        yield from self._families(Counter(), Counter(), unusable=0, oldest=None)

    def collect(self) -> Iterator[Metric]:
        states, nodes, asked = Counter[str](), Counter[str](), list[float]()
        for key in list(self._placements.raw):
            with suppress(NotReadable):
                known = self._placements.get(key)
                if known is None:
                    continue
                state = agent_state_of(known)
                states[state] += 1
                nodes.update({name: getattr(known.placement.status.nodes, name) for name in _NODES})
                if state == AgentClusterState.PROGRESSING and key in self._asked:
                    asked.append(self._asked[key][1])
        yield from self._families(states, nodes, unusable=self._unusable(), oldest=min(asked, default=None))

    def _unusable(self) -> int:
        """The configurations that no cluster can get."""
        found = 0
        for key in list(self._configurations.raw):
            with suppress(NotReadable):
                one = self._configurations.get(key)
                found += one is not None and any(
                    condition.type == READY and condition.status == FALSE for condition in one.status.conditions
                )
        return found

    def _families(
        self, states: Counter[str], nodes: Counter[str], *, unusable: int, oldest: float | None
    ) -> Iterator[Metric]:
        clusters = GaugeMetricFamily(
            "hortus_agent_clusters", "Clusters that an AgentConfiguration gives an agent, by state.", labels=("state",)
        )
        for state in AGENT_STATES:
            clusters.add_metric((state,), float(states[state]))
        yield clusters
        counted = GaugeMetricFamily(
            "hortus_agent_nodes", "Nodes of these clusters, by the state of their agent.", labels=("agent",)
        )
        for name in _NODES:
            counted.add_metric((name,), float(nodes[name]))
        yield counted
        yield GaugeMetricFamily(
            "hortus_agent_configurations_unusable",
            "AgentConfigurations that cannot be used as they are.",
            value=float(unusable),
        )
        change = GaugeMetricFamily(
            "hortus_agent_oldest_change_timestamp_seconds",
            "Since when a cluster lacks its version though neither a rollout nor the cluster holds it back, for the "
            "one that lacks it the longest; none while none does.",
        )
        if oldest is not None:
            change.add_metric((), oldest)
        yield change
