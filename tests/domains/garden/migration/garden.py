"""A garden with one Shoot on a seed, and the coordinator at work over simulated control planes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from tests.domains.killing import Observed
from tests.simulation.shoots import small_shoot

from hortus.domains.garden.migration.coordinator import add_coordinator
from hortus.engine import Manager
from hortus.gardener.livemigration import LIVE_MIGRATE
from hortus.gardener.shoots.completing import CREATED_BY
from hortus.kube import Client
from hortus.kube.kubeconfig import load
from hortus.kube.objects import Object
from hortus.simulation.garden.kinds import SHOOTS
from hortus.simulation.garden.livemigration.controlplane import SimulatedControlPlane
from hortus.simulation.garden.livemigration.planes import SimulatedPlanes
from hortus.simulation.settings import GardenSettings
from hortus.testing import FakeClock
from hortus.testing.apiserver import TestServer

NAMESPACE = "garden-demo"
OLD, NEW = "aws-1", "aws-2"
STEP = 0.25


class Requests:
    """The requests of the coordinator."""

    def __init__(self) -> None:
        self.on_answer: Callable[..., None] = lambda method, *_: None

    def answered(self, method: str, host: str, code: str, seconds: float) -> None:
        self.on_answer(method)


class GardenWorld:
    """One Shoot of its own name, its control plane, and processes of the coordinator over them."""

    def __init__(self, server: TestServer, client: Client, name: str) -> None:
        self.server = server
        self.client = client
        self.name = name
        self.clock = FakeClock()
        self.step = STEP
        """Seconds that pass at once. A longer step waits until the coordinator rests, so that it meets no deadline."""
        self.planes = SimulatedPlanes(GardenSettings(), self.clock)
        self._requests = Requests()

    @property
    def requests(self) -> Observed:
        return self._requests

    @asynccontextmanager
    async def controllers(self) -> AsyncIterator[None]:
        """One process of the coordinator; its time passes by itself."""
        access = load(self.server.kubeconfig_for("garden")).access()
        async with Client(access, observer=self._requests) as client:
            manager = Manager(client, clock=self.clock)
            add_coordinator(manager, client=client, planes=self.planes, workers=1)
            async with manager.running():
                time = asyncio.create_task(self._pass_time(manager), name="time")
                try:
                    yield
                finally:
                    time.cancel()
                    await asyncio.gather(time, return_exceptions=True)

    async def _pass_time(self, manager: Manager) -> None:
        while True:
            await asyncio.sleep(0.005)
            if self.step > STEP:
                for controller in manager.controllers:
                    await controller.queue.join()
            await self.clock.advance(self.step)

    async def create(self, *, is_ha: bool = True) -> None:
        plane = {"highAvailability": {"failureTolerance": {"type": "node"}}} if is_ha else {}
        shoot = small_shoot("demo", 0)
        shoot["metadata"] = {"name": self.name, "namespace": NAMESPACE}
        shoot["spec"] |= {"seedName": OLD, "controlPlane": plane}
        await self.client.create(SHOOTS, shoot)
        operation = {"type": "Create", "state": "Succeeded", "progress": 100, "description": "done"}
        await self.patch({"status": {"seedName": OLD, "lastOperation": operation}}, subresource="status")

    async def ask(self, **annotations: str) -> Object:
        """Ask for the migration."""
        return await self.patch(
            {"metadata": {"annotations": {LIVE_MIGRATE: "true", **annotations}}, "spec": {"seedName": NEW}}
        )

    async def annotate(self, **annotations: str) -> Object:
        return await self.patch({"metadata": {"annotations": annotations}})

    async def patch(self, patch: Object, subresource: str = "") -> Object:
        return await self.client.patch(SHOOTS, self.name, patch, NAMESPACE, subresource=subresource)

    async def get(self) -> Object:
        return await self.client.get(SHOOTS, self.name, NAMESPACE)

    async def plane(self) -> SimulatedControlPlane:
        found = self.planes.of(await self.get())
        assert found is not None
        return found

    async def until(self, fits: Callable[[Object], bool]) -> Object:
        """Return the Shoot once it fits, by a watch."""
        async with asyncio.timeout(60), self.client.watch(SHOOTS, NAMESPACE, initial_events=True) as events:
            async for event in events:
                if event.type != "BOOKMARK" and event.object["metadata"]["name"] == self.name and fits(event.object):
                    return event.object
        raise AssertionError("the watch ended")


def operation(shoot: Object) -> tuple[str, str]:
    last = (shoot.get("status") or {}).get("lastOperation") or {}
    return last.get("type", ""), last.get("state", "")


def conditions(shoot: Object) -> dict[str, tuple[str, str]]:
    found = (shoot["status"].get("liveMigration") or {}).get("conditions") or []
    return {one["type"]: (one["status"], one["reason"]) for one in found}


def is_over(shoot: Object) -> bool:
    """Reports whether a migration has ended, and nothing of it is left in the annotations besides Gardener's own."""
    left = (shoot["metadata"].get("annotations") or {}).keys() - {CREATED_BY}
    return operation(shoot) in {("LiveMigrate", "Succeeded"), ("LiveMigrate", "Aborted")} and not left
