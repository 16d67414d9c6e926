"""The simulated gardenlet where it has nothing to do."""

from __future__ import annotations

from typing import Any, cast

from hortus.engine import Cache
from hortus.kube import Client
from hortus.kube.objects import Object, ObjectKey, format_time
from hortus.simulation.faults import Faults
from hortus.simulation.garden.gardenlet import ShootGardenlet
from hortus.simulation.garden.workload import WorkloadClusters
from hortus.simulation.settings import GardenSettings
from hortus.testing import FakeClock

KEY = ObjectKey("garden-demo", "tulip")


class Server:
    """Takes merge patches of one shoot's status and keeps what they say."""

    def __init__(self, shoot: Object) -> None:
        self.shoot = shoot
        self.patches: list[Object] = []

    async def patch(self, _resource: object, _name: str, patch: Object, *_: object, **__: object) -> Object:
        self.patches.append(patch)
        version = str(int(self.shoot["metadata"]["resourceVersion"]) + 1)
        self.shoot = {
            **self.shoot,
            "metadata": {**self.shoot["metadata"], "resourceVersion": version},
            "status": {**self.shoot["status"], **patch["status"]},
        }
        return self.shoot


def built(now: float, url: str) -> Object:
    status: dict[str, Any] = {
        "technicalID": "shoot--demo--tulip",
        "uid": "status-uid",
        "observedGeneration": 1,
        "lastOperation": {
            "type": "Create",
            "state": "Succeeded",
            "progress": 100,
            "description": "",
            "lastUpdateTime": format_time(now),
        },
        "advertisedAddresses": [
            {"name": name, "url": f"{url}/clusters/shoot--demo--tulip"}
            for name in ("external", "internal", "service-account-issuer")
        ],
    }
    metadata = {"name": "tulip", "namespace": "garden-demo", "uid": "u", "generation": 1, "resourceVersion": "7"}
    return {"metadata": metadata, "spec": {"seedName": "aws-1"}, "status": status}


def gardenlet(server: Server, clock: FakeClock) -> ShootGardenlet:
    shoots = Cache("shoots")
    shoots.put(server.shoot)
    client = cast(Client, server)
    return ShootGardenlet(
        client=client,
        shoots=shoots,
        workload=WorkloadClusters(client, with_nodes=True),
        server_url="https://127.0.0.1:2",
        faults=Faults(()),
        settings=GardenSettings(),
        clock=clock,
    )


async def test_an_idle_shoot_advertises_the_new_address_of_its_server() -> None:
    clock = FakeClock()
    server = Server(built(clock.now(), "https://127.0.0.1:1"))
    garden = gardenlet(server, clock)
    await garden.reconcile(KEY)
    assert {address["url"] for address in server.shoot["status"]["advertisedAddresses"]} == {
        "https://127.0.0.1:2/clusters/shoot--demo--tulip"
    }
    await garden.reconcile(KEY)
    assert len(server.patches) == 1


async def test_a_shoot_at_rest_costs_no_write() -> None:
    clock = FakeClock()
    server = Server(built(clock.now(), "https://127.0.0.1:2"))
    await gardenlet(server, clock).reconcile(KEY)
    assert server.patches == []
