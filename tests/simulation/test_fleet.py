"""The fleet that `hortus up` begins with."""

from __future__ import annotations

from hortus.engine import Cache
from hortus.kube.errors import AlreadyExists
from hortus.kube.objects import Object, ObjectKey, Resource
from hortus.simulation.fleet import FleetController, fleet_shoot


class _Management:
    """Takes GardenerClusters like an API server, and remembers what was asked."""

    def __init__(self) -> None:
        self.held: set[str] = set()
        self.asked: list[str] = []

    async def create(self, resource: Resource, obj: Object) -> Object:
        name = obj["metadata"]["name"]
        self.asked.append(name)
        if name in self.held:
            raise AlreadyExists(name)
        self.held.add(name)
        return obj


def _built(version: int) -> Object:
    shoot = fleet_shoot("demo", 1)
    shoot["metadata"] |= {"uid": "u-1", "resourceVersion": str(version)}
    shoot["status"] = {"lastOperation": {"type": "Create", "state": "Succeeded"}}
    return shoot


async def test_a_cluster_that_somebody_deleted_does_not_come_back_with_the_next_event_of_its_shoot() -> None:
    shoots, management = Cache("shoots"), _Management()
    fleet = FleetController(client=management, shoots=shoots)  # type: ignore[arg-type]
    key = ObjectKey("garden-demo", "demo-1")
    shoots.put(_built(1))
    await fleet.reconcile(key)
    management.held.clear()
    shoots.put(_built(2))
    await fleet.reconcile(key)
    assert management.asked == ["demo-1"]
    assert management.held == set()
