"""The simulated scheduler: gives each shoot a seed that fits, as `seeds` says.

It owns: `spec.seedName` of shoots that have none, and their lastOperation as long as no seed fits.
"""

from __future__ import annotations

from contextlib import suppress

from hortus.engine import Cache, Result
from hortus.kube import Client
from hortus.kube.clock import Clock
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, ObjectKey, key_of, parse_time
from hortus.simulation.garden import operations
from hortus.simulation.garden.kinds import SHOOTS
from hortus.simulation.garden.seeds import Unschedulable, choose
from hortus.simulation.settings import GardenSettings

FIELD_MANAGER = "gardener-scheduler"
RETRY = 15.0
"""Seconds of the garden's time until a shoot without a fitting seed is tried again."""


class Scheduler:
    def __init__(self, *, client: Client, shoots: Cache, seeds: Cache, settings: GardenSettings, clock: Clock) -> None:
        self._client = client
        self._shoots = shoots
        self._seeds = seeds
        self._settings = settings
        self._clock = clock
        shoots.add_index("seed", lambda shoot: (shoot["spec"]["seedName"],) if shoot["spec"].get("seedName") else ())

    async def reconcile(self, key: ObjectKey) -> Result | None:
        shoot = self._shoots.get(key)
        if shoot is None or shoot["metadata"].get("deletionTimestamp") or shoot["spec"].get("seedName"):
            return None
        age = self._clock.now() - parse_time(shoot["metadata"]["creationTimestamp"])
        delay = self._settings.scaled(self._settings.schedule_delay)
        if age < delay:
            return Result(requeue_after=delay - age)
        with suppress(NotFound):
            try:
                seed = choose(shoot, list(self._seeds.values()), self._load, self._settings.scheduling)
            except Unschedulable as problem:
                return await self._wait(shoot, str(problem))
            await self._bind(shoot, seed)
        return None

    def _load(self, seed: str) -> int:
        return len(self._shoots.keys_by("seed", seed))

    def unscheduled(self, _: Object) -> list[ObjectKey]:
        """The shoots that wait for a seed, which a change of one may help."""
        return [key_of(shoot) for shoot in self._shoots.values() if not shoot["spec"].get("seedName")]

    async def _bind(self, shoot: Object, seed: str) -> None:
        metadata = shoot["metadata"]
        patch = {"spec": {"seedName": seed}, "metadata": {"uid": metadata["uid"]}}
        updated = await self._client.patch(
            SHOOTS, metadata["name"], patch, metadata["namespace"], subresource="binding", field_manager=FIELD_MANAGER
        )
        self._shoots.learn(updated)

    async def _wait(self, shoot: Object, why: str) -> Result:
        metadata = shoot["metadata"]
        status = operations.unscheduled(self._clock.now(), why)
        said = (operations.last_operation(shoot) or {}).get("description")
        if said != status["lastOperation"]["description"]:
            await self._client.patch(
                SHOOTS,
                metadata["name"],
                {"status": status},
                metadata["namespace"],
                subresource="status",
                field_manager=FIELD_MANAGER,
            )
        return Result(requeue_after=self._settings.scaled(RETRY))
