"""The roll-out of a Deployment, step by step on a clock that the test moves."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from hortus.kube.objects import format_time
from hortus.simulation.workloads.behaviour import BEHAVIOUR, BROKEN
from hortus.simulation.workloads.deployments import (
    Deployment,
    Pods,
    deployment_of,
    late_in,
    recovered,
    status_of,
    step,
)
from hortus.simulation.workloads.pods import KubeletPace, next_due

KUBELET = KubeletPace(start=10.0)


def deployment(image: str = "web:1", replicas: int = 4, *, broken: bool = False, **spec: Any) -> dict[str, Any]:
    template: dict[str, Any] = {"spec": {"containers": [{"name": "web", "image": image}]}}
    if broken:
        template["metadata"] = {"annotations": {BEHAVIOUR: BROKEN}}
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}
    defaults = {"replicas": replicas, "template": template, "strategy": rolling, "progressDeadlineSeconds": 600}
    return {"metadata": {"name": "web", "generation": 1}, "spec": defaults | spec}


class World:
    """One Deployment, and time."""

    def __init__(self, obj: dict[str, Any]) -> None:
        self.obj = obj
        self.pods: Pods = ()
        self.now = 1_000_000.0
        self.status: dict[str, Any] = {}

    @property
    def deployment(self) -> Deployment:
        return deployment_of(self.obj)

    def step(self, seconds: float = 0.0) -> dict[str, Any]:
        self.now += seconds
        while (after := step(self.deployment, self.pods, KUBELET, self.now)) != self.pods:
            self.pods = after
        self.status = status_of(self.deployment, self.pods, self.status, self.now)
        return self.status

    def settle(self) -> list[dict[str, Any]]:
        seen = [self.step()]
        while due := next_due(self.pods, self.now, self.deployment.minimum_ready):
            seen.append(self.step(due))
        return seen


def counts(status: dict[str, Any]) -> tuple[int, int, int]:
    """Replicas, updated, available."""
    return status["replicas"], status["updatedReplicas"], status["availableReplicas"]


def reasons(status: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {one["type"]: (one["status"], one["reason"]) for one in status["conditions"]}


def test_a_deployment_becomes_available() -> None:
    world = World(deployment())
    first, last = world.settle()
    assert (counts(first), counts(last)) == ((4, 4, 0), (4, 4, 4))
    assert reasons(first) == {
        "Available": ("False", "MinimumReplicasUnavailable"),
        "Progressing": ("True", "ReplicaSetUpdated"),
    }
    name = f"web-{world.deployment.revision}"
    began, ended = format_time(1_000_000.0), format_time(1_000_010.0)
    assert last["conditions"] == [
        {
            "type": "Available",
            "status": "True",
            "reason": "MinimumReplicasAvailable",
            "message": "Deployment has minimum availability.",
            "lastUpdateTime": ended,
            "lastTransitionTime": ended,
        },
        {
            "type": "Progressing",
            "status": "True",
            "reason": "NewReplicaSetAvailable",
            "message": f'ReplicaSet "{name}" has successfully progressed.',
            "lastUpdateTime": ended,
            "lastTransitionTime": began,
        },
    ]


def test_a_changed_template_rolls_within_surge_and_unavailability() -> None:
    world = World(deployment())
    world.settle()
    world.obj = deployment("web:2")
    seen = world.settle()
    assert [counts(status) for status in seen] == [(5, 2, 3), (5, 4, 3), (4, 4, 4)]
    assert reasons(seen[0])["Available"] == ("True", "MinimumReplicasAvailable")


def test_recreate_ends_the_old_pods_first() -> None:
    world = World(deployment(strategy={"type": "Recreate"}))
    world.settle()
    world.obj = deployment("web:2", strategy={"type": "Recreate"})
    assert [counts(status) for status in world.settle()] == [(4, 4, 0), (4, 4, 4)]


def test_a_paused_deployment_is_scaled_and_not_rolled() -> None:
    world = World(deployment())
    world.settle()
    world.obj = deployment("web:2", replicas=6, paused=True)
    last = world.settle()[-1]
    assert counts(last) == (6, 0, 6)
    assert reasons(last)["Progressing"] == ("Unknown", "DeploymentPaused")
    world.obj = deployment("web:2", replicas=2, paused=True)
    assert counts(world.step()) == (2, 0, 2)
    world.obj = deployment("web:2", replicas=2)
    assert counts(world.settle()[-1]) == (2, 2, 2)


def test_a_roll_out_without_progress_exceeds_its_deadline_and_stays_so_until_it_moves() -> None:
    world = World(deployment())
    world.settle()
    world.obj = deployment("web:2", broken=True)
    stuck = world.settle()[-1]
    assert reasons(stuck)["Progressing"] == ("True", "ReplicaSetUpdated")
    assert late_in(world.deployment, stuck, world.now) == 600.0
    assert reasons(world.step(600.0))["Progressing"] == ("False", "ProgressDeadlineExceeded")
    assert reasons(world.step(10_000.0))["Progressing"] == ("False", "ProgressDeadlineExceeded")
    world.obj = deployment("web:3")
    world.obj["metadata"]["generation"] = 2
    assert reasons(world.step())["Progressing"] == ("True", "ReplicaSetUpdated")
    assert reasons(world.settle()[-1])["Progressing"] == ("True", "NewReplicaSetAvailable")


def test_a_status_at_rest_does_not_change_with_time() -> None:
    world = World(deployment())
    last = world.settle()[-1]
    assert world.step(10_000.0) == last


def test_a_simulation_that_begins_again_goes_on_from_the_status() -> None:
    world = World(deployment())
    world.settle()
    world.obj = deployment("web:2")
    status = world.step()
    world.pods = recovered(world.deployment, status, world.now)
    assert counts(world.settle()[-1]) == (4, 4, 4)


@settings(max_examples=60)
@given(
    sizes=st.lists(st.integers(0, 9), min_size=1, max_size=4),
    surge=st.sampled_from([0, 1, 3, "25%", "100%"]),
    unavailable=st.sampled_from([0, 1, 2, "25%", "50%"]),
    pauses=st.lists(st.floats(0, 15), min_size=4, max_size=4),
)
def test_a_roll_out_keeps_its_bounds_and_ends(
    sizes: list[int], surge: int | str, unavailable: int | str, pauses: list[float]
) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    size = sizes[0]
    world = World(deployment(replicas=size, strategy=strategy))
    world.settle()
    for number, pause in zip(range(len(sizes)), pauses, strict=False):
        world.obj = deployment(f"web:{number + 2}", replicas=size, strategy=strategy)
        for status in (world.step(), world.step(pause)):
            wanted = world.deployment
            assert status["availableReplicas"] >= size - wanted.unavailable
            assert status["replicas"] <= size + wanted.surge
    for other in sizes:
        world.obj = deployment("web:last", replicas=other, strategy=strategy)
        assert counts(world.settle()[-1]) == (other, other, other)
