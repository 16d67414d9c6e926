"""The roll-out of a DaemonSet, step by step on a clock that the test moves."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hortus.simulation.workloads.behaviour import BEHAVIOUR, BROKEN
from hortus.simulation.workloads.daemons import Daemon, Pods, daemon_of, recovered, status_of, step
from hortus.simulation.workloads.placement import Node
from hortus.simulation.workloads.pods import KubeletPace, next_due

KUBELET = KubeletPace(start=10.0)


def daemon_set(
    image: str = "agent:1", *, generation: int = 1, minimum: int = 0, broken: bool = False, **rolling: Any
) -> dict[str, Any]:
    strategy: dict[str, Any] = {"type": rolling.pop("type", "RollingUpdate")}
    if strategy["type"] == "RollingUpdate":
        strategy["rollingUpdate"] = {"maxUnavailable": 1, "maxSurge": 0} | rolling
    template: dict[str, Any] = {"spec": {"containers": [{"name": "agent", "image": image}]}}
    if broken:
        template["metadata"] = {"annotations": {BEHAVIOUR: BROKEN}}
    spec = {"template": template, "updateStrategy": strategy, "minReadySeconds": minimum}
    return {"metadata": {"name": "agent", "generation": generation}, "spec": spec}


class Cluster:
    """Nodes, one DaemonSet, and time."""

    def __init__(self, count: int, **options: Any) -> None:
        self.nodes = {f"n{number}": Node(f"n{number}") for number in range(count)}
        self.obj = daemon_set(**options)
        self.pods: Pods = {}
        self.now = 1000.0

    @property
    def daemon(self) -> Daemon:
        return daemon_of(self.obj, self.nodes)

    def step(self, seconds: float = 0.0) -> dict[str, Any]:
        self.now += seconds
        while (after := step(self.daemon, self.pods, KUBELET, self.now)) != self.pods:
            self.pods = after
        return status_of(self.daemon, self.pods, self.now)

    def settle(self) -> list[dict[str, Any]]:
        """The statuses until nothing is due."""
        seen = [self.step()]
        while due := next_due(
            (pod for here in self.pods.values() for pod in here), self.now, self.daemon.minimum_ready
        ):
            seen.append(self.step(due))
        return seen


def counts(status: dict[str, Any]) -> tuple[int, int, int, int]:
    """Desired, updated, ready, available."""
    names = ("desiredNumberScheduled", "updatedNumberScheduled", "numberReady", "numberAvailable")
    return tuple(status[name] for name in names)  # type: ignore[return-value]


def test_a_pod_appears_on_each_node_and_becomes_ready_then_available() -> None:
    cluster = Cluster(3, minimum=5)
    assert [counts(status) for status in cluster.settle()] == [(3, 3, 0, 0), (3, 3, 3, 0), (3, 3, 3, 3)]
    assert cluster.now == 1015.0


def test_a_changed_template_rolls_node_by_node() -> None:
    cluster = Cluster(3)
    cluster.settle()
    cluster.obj = daemon_set("agent:2", generation=2)
    assert [counts(status) for status in cluster.settle()] == [(3, 1, 2, 2), (3, 2, 2, 2), (3, 3, 2, 2), (3, 3, 3, 3)]
    assert cluster.now == 1040.0


def test_the_share_of_unavailable_pods_rounds_up() -> None:
    cluster = Cluster(5)
    cluster.settle()
    cluster.obj = daemon_set("agent:2", maxUnavailable="30%")
    assert [counts(status)[1] for status in cluster.settle()] == [2, 4, 5, 5]


def test_a_surge_starts_the_new_pod_before_the_old_one_ends() -> None:
    cluster = Cluster(3)
    cluster.settle()
    cluster.obj = daemon_set("agent:2", maxUnavailable=0, maxSurge=1)
    seen = cluster.settle()
    assert {status["numberAvailable"] for status in seen} == {3}
    assert [counts(status)[1] for status in seen] == [0, 1, 2, 3]


def test_a_surge_that_is_taken_back_leaves_the_old_pods() -> None:
    cluster = Cluster(2)
    before = cluster.settle()[-1]
    cluster.obj = daemon_set("agent:2", maxUnavailable=0, maxSurge=2)
    cluster.step()
    assert {len(here) for here in cluster.pods.values()} == {2}
    cluster.obj = daemon_set("agent:1", maxUnavailable=0, maxSurge=2)
    assert cluster.step() == before
    assert {len(here) for here in cluster.pods.values()} == {1}


def test_on_delete_leaves_old_pods_and_starts_the_new_one_after_a_deletion() -> None:
    cluster = Cluster(2)
    cluster.settle()
    cluster.obj = daemon_set("agent:2", type="OnDelete")
    assert counts(cluster.settle()[-1]) == (2, 0, 2, 2)
    del cluster.pods["n0"]
    assert counts(cluster.settle()[-1]) == (2, 1, 2, 2)


def test_a_template_that_does_not_work_stops_its_roll_out_at_the_first_pods() -> None:
    cluster = Cluster(4)
    cluster.settle()
    cluster.obj = daemon_set("agent:2", broken=True)
    assert counts(cluster.settle()[-1]) == (4, 1, 3, 3)
    cluster.obj = daemon_set("agent:3")
    assert counts(cluster.settle()[-1]) == (4, 4, 4, 4)


def test_node_pools_come_and_go() -> None:
    cluster = Cluster(2)
    cluster.settle()
    cluster.nodes["n9"] = Node("n9")
    assert counts(cluster.step()) == (3, 3, 2, 2)
    del cluster.nodes["n0"]
    assert counts(cluster.settle()[-1]) == (2, 2, 2, 2)
    assert sorted(cluster.pods) == ["n1", "n9"]


def test_a_pod_on_a_node_that_no_longer_wants_pods_is_misscheduled() -> None:
    cluster = Cluster(2)
    cluster.settle()
    cluster.nodes["n0"] = Node("n0", taints=(("dedicated", "", "NoSchedule"),))
    status = cluster.step()
    assert (status["numberMisscheduled"], status["desiredNumberScheduled"]) == (1, 1)
    cluster.nodes["n0"] = Node("n0", taints=(("dedicated", "", "NoExecute"),))
    assert cluster.step()["numberMisscheduled"] == 0
    assert sorted(cluster.pods) == ["n1"]


@pytest.mark.parametrize("node", [Node("n0", ready=False), Node("n0", works=False)])
def test_pods_of_a_node_that_is_down_are_not_ready(node: Node) -> None:
    cluster = Cluster(2)
    cluster.settle()
    cluster.nodes["n0"] = node
    assert counts(cluster.step()) == (2, 2, 1, 1)
    cluster.nodes["n0"] = Node("n0")
    assert counts(cluster.step()) == (2, 2, 2, 2)


def test_a_restarted_container_is_not_ready_for_a_while() -> None:
    pod = KubeletPace(start=10.0, restart_period=100.0).run("n0", "one", 0.0, broken=False)
    assert 50.0 <= pod.restarts_at <= 100.0
    again = KubeletPace(start=10.0, restart_period=100.0).restarted(pod, pod.restarts_at)
    assert (again.restarts, again.ready(pod.restarts_at), again.ready(pod.restarts_at + 10.0)) == (1, False, True)


@settings(max_examples=60)
@given(
    count=st.integers(0, 8),
    unavailable=st.one_of(st.integers(1, 4), st.sampled_from(["10%", "50%", "100%"])),
    surge=st.integers(0, 3),
    minimum=st.integers(0, 20),
    pauses=st.lists(st.floats(0, 30), max_size=4),
)
def test_a_roll_out_keeps_its_bounds_and_ends_however_often_the_template_changes(
    count: int, unavailable: int | str, surge: int, minimum: int, pauses: list[float]
) -> None:
    budget: dict[str, Any] = {"maxSurge": surge} if surge else {"maxUnavailable": unavailable}
    cluster = Cluster(count, minimum=minimum, **budget)
    cluster.settle()
    allowed = cluster.daemon.unavailable if not surge else 0
    for number, pause in enumerate(pauses):
        cluster.obj = daemon_set(f"agent:{number + 2}", generation=number + 2, minimum=minimum, **budget)
        # A pod that is not available yet may be replaced again at once, so the bound holds at every instant.
        assert cluster.step()["numberUnavailable"] <= allowed
        assert cluster.step(pause)["numberUnavailable"] <= allowed
    assert all(status["numberUnavailable"] <= allowed for status in cluster.settle())
    assert counts(cluster.step()) == (count, count, count, count)


def test_a_simulation_that_begins_again_goes_on_from_the_status() -> None:
    cluster = Cluster(4)
    cluster.settle()
    cluster.obj = daemon_set("agent:2", generation=2)
    cluster.step()
    status = cluster.step(KUBELET.start)
    cluster.pods = recovered(cluster.daemon, status, cluster.now)
    assert counts(status_of(cluster.daemon, cluster.pods, cluster.now))[:2] == counts(status)[:2]
    assert counts(cluster.settle()[-1]) == (4, 4, 4, 4)
