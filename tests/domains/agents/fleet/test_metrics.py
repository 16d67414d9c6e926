"""The gauges of the fleet form, from AgentPlacements as a cache holds them."""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry

from hortus.domains.agents.fleet.changes import AGENT_CHANGE
from hortus.domains.agents.fleet.counting import AGENT_STATES
from hortus.domains.agents.fleet.known import KnownPlacements
from hortus.domains.agents.fleet.metrics import AgentFleetMetrics
from hortus.domains.agents.fleet.reasons import PlacementReason
from hortus.domains.agents.types import AGENT_CONFIGURATIONS, AGENT_PLACEMENTS, AgentConfiguration, AgentPlacement
from hortus.engine import Cache, TypedCache
from hortus.engine.rollouts.types import WANTS
from hortus.kube.objects import Object, ObjectKey
from hortus.testing import FakeClock

WAITS = {f"{WANTS}{AGENT_CHANGE}": "2"}


class Gauges:
    """A registry with the metrics of caches that the test fills."""

    def __init__(self) -> None:
        self.clock, self.registry = FakeClock(), CollectorRegistry()
        self.placements, self.configurations = Cache("placements"), Cache("configurations")
        AgentFleetMetrics(
            self.registry,
            KnownPlacements(TypedCache(AgentPlacement, self.placements)),
            TypedCache(AgentConfiguration, self.configurations),
            self.clock,
        )
        self._version = 0

    def put(
        self,
        cluster: str,
        reason: str = PlacementReason.RUNNING,
        status: str = "True",
        *,
        installed: str = "1",
        wanted: str = "1",
        nodes: int = 0,
        available: int = 0,
        **metadata: Any,
    ) -> None:
        spec = {
            "cluster": cluster,
            "agentNamespace": "instana-agent",
            "agentName": "instana-agent",
            "configuration": "everywhere",
            "version": wanted,
        }
        self.placements.put(
            self._object(
                AGENT_PLACEMENTS.kind,
                cluster,
                metadata,
                spec=spec,
                status={
                    "version": installed,
                    "nodes": {"desired": nodes, "available": available, "updated": nodes},
                    "conditions": [condition(status, reason)],
                },
            )
        )

    def configure(self, name: str, status: str) -> None:
        spec = {"clusterSelector": {}, "template": {"agent": {"endpointHost": "a", "endpointPort": "1"}}}
        made = self._object(
            AGENT_CONFIGURATIONS.kind, name, {}, spec=spec, status={"conditions": [condition(status, "Any")]}
        )
        self.configurations.put(made)

    def _object(self, kind: str, name: str, metadata: Object, **parts: Object) -> Object:
        self._version += 1
        named = {"name": name, "namespace": "fleet", "resourceVersion": str(self._version), **metadata}
        return {"apiVersion": AGENT_PLACEMENTS.api_version, "kind": kind, "metadata": named, **parts}

    def value(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(name, labels)

    @property
    def states(self) -> dict[str, float]:
        found = {state: self.value("hortus_agent_clusters", state=state) for state in AGENT_STATES}
        return {state: count for state, count in found.items() if count}

    @property
    def oldest(self) -> float | None:
        return self.value("hortus_agent_oldest_change_timestamp_seconds")


def condition(status: str, reason: str) -> Object:
    return {
        "type": "Ready",
        "status": status,
        "reason": reason,
        "message": "",
        "lastTransitionTime": "2024-01-01T00:00:00Z",
    }


def test_each_cluster_is_counted_by_its_state_and_nodes_in_sum() -> None:
    gauges = Gauges()
    assert {state: gauges.value("hortus_agent_clusters", state=state) for state in AGENT_STATES} == dict.fromkeys(
        AGENT_STATES, 0.0
    )
    gauges.put("one", nodes=50, available=50)
    gauges.put("two", nodes=3, available=2, reason=PlacementReason.ROLLING, status="Unknown")
    gauges.put("three", wanted="2", annotations=WAITS)
    gauges.put("four", PlacementReason.RENDER_FAILED, "False", wanted="2", annotations=WAITS)
    gauges.put("five", PlacementReason.UNREACHABLE, "Unknown", wanted="2")
    gauges.put("six", PlacementReason.NO_ACCESS, "False")
    gauges.put("seven", PlacementReason.REMOVING, "Unknown", deletionTimestamp="2024-01-01T00:00:00Z")
    assert gauges.states == {"Ready": 1, "Progressing": 1, "Waiting": 1, "Failed": 1, "Away": 2, "Leaving": 1}
    counts = {name: gauges.value("hortus_agent_nodes", agent=name) for name in ("desired", "available", "updated")}
    assert counts == {"desired": 53, "available": 52, "updated": 53}


def test_the_oldest_change_is_the_one_that_a_cluster_lacks_the_longest_and_nothing_holds_back() -> None:
    gauges = Gauges()
    began = gauges.clock.now()
    gauges.put("one")
    assert gauges.oldest is None
    for cluster, reason in (("one", PlacementReason.REQUEST_REFUSED), ("two", PlacementReason.UNREACHABLE)):
        gauges.put(cluster, reason, "Unknown", wanted="2")
    gauges.clock.skip(60.0)
    gauges.put("three", PlacementReason.ROLLING, "Unknown", wanted="2")
    gauges.put("one", PlacementReason.REQUEST_REFUSED, "Unknown", wanted="2", nodes=3)
    assert gauges.oldest == began
    gauges.put("one", wanted="2", installed="2")
    assert gauges.oldest == began + 60.0
    gauges.put("three", wanted="2", annotations=WAITS)
    assert gauges.oldest is None
    gauges.put("two", PlacementReason.ROLLING, "Unknown", wanted="2")
    assert gauges.oldest == began + 60.0
    gauges.placements.drop(ObjectKey("fleet", "two"))
    assert gauges.oldest is None


def test_a_cluster_that_refuses_requests_or_holds_an_object_waits_for_no_rollout() -> None:
    gauges = Gauges()
    began = gauges.clock.now()
    for reason in (PlacementReason.WAITS, PlacementReason.RUNNING, PlacementReason.ROLLING):
        gauges.put("one", reason, "Unknown", wanted="2", annotations=WAITS)
        assert (gauges.states, gauges.oldest) == ({"Waiting": 1}, None)
    gauges.clock.skip(7200.0)
    for reason in (PlacementReason.REQUEST_REFUSED, PlacementReason.HELD):
        gauges.put("one", reason, "Unknown", wanted="2", annotations=WAITS)
        assert (gauges.states, gauges.oldest) == ({"Progressing": 1}, began + 7200.0)


def test_time_away_counts_for_no_change() -> None:
    gauges = Gauges()
    began = gauges.clock.now()
    for reason in (PlacementReason.ROLLING, PlacementReason.UNREACHABLE):
        gauges.put("one", reason, "Unknown", wanted="2")
    gauges.clock.skip(7200.0)
    gauges.put("one", PlacementReason.ROLLING, "Unknown", wanted="2")
    assert gauges.oldest == began + 7200.0


def test_a_newer_version_begins_its_own_time() -> None:
    gauges = Gauges()
    began = gauges.clock.now()
    gauges.put("one", PlacementReason.ROLLING, "Unknown", wanted="2")
    gauges.clock.skip(30.0)
    gauges.put("one", PlacementReason.ROLLING, "Unknown", wanted="3")
    assert gauges.oldest == began + 30.0


def test_a_configuration_that_is_not_ready_for_good_is_unusable() -> None:
    gauges = Gauges()
    for name, status in (("one", "True"), ("two", "Unknown"), ("three", "False")):
        gauges.configure(name, status)
    assert gauges.value("hortus_agent_configurations_unusable") == 1.0
