"""The simulated scheduler: gives each shoot a seed of its provider, the one with the fewest shoots.

It owns: `spec.seedName` of shoots that have none, and their lastOperation as long as no seed fits.
A real scheduler writes through `shoots/binding`; here the field is patched, which the generation shows alike.
"""

from __future__ import annotations

from hortus.engine import Cache, Result
from hortus.kube import Client
from hortus.kube.clock import Clock
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, ObjectKey, parse_time
from hortus.simulation.garden import operations
from hortus.simulation.garden.kinds import SHOOTS
from hortus.simulation.settings import GardenSettings

FIELD_MANAGER = "gardener-scheduler"
RETRY = 15.0
"""Seconds of the garden's time until a shoot without a fitting seed is looked at again."""


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
        seed = self._choose(shoot)
        try:
            return await (self._bind(shoot, seed) if seed else self._wait(shoot))
        except NotFound:
            return None

    def _choose(self, shoot: Object) -> str | None:
        fitting = [seed["metadata"]["name"] for seed in self._seeds.values() if usable(seed, shoot)]
        return min(fitting, key=lambda name: (len(self._shoots.keys_by("seed", name)), name), default=None)

    async def _bind(self, shoot: Object, seed: str) -> None:
        metadata = shoot["metadata"]
        patch = {"spec": {"seedName": seed}, "metadata": {"uid": metadata["uid"]}}
        updated = await self._client.patch(
            SHOOTS, metadata["name"], patch, metadata["namespace"], field_manager=FIELD_MANAGER
        )
        self._shoots.learn(updated)

    async def _wait(self, shoot: Object) -> Result:
        metadata = shoot["metadata"]
        provider = shoot["spec"]["provider"]["type"]
        why = f'none out of the {len(self._seeds)} seeds has a matching provider for "{provider}"'
        status = operations.unscheduled(self._clock.now(), why)
        if operations.last_operation(shoot) is None:
            await self._client.patch(
                SHOOTS,
                metadata["name"],
                {"status": status},
                metadata["namespace"],
                subresource="status",
                field_manager=FIELD_MANAGER,
            )
        return Result(requeue_after=self._settings.scaled(RETRY))


def usable(seed: Object, shoot: Object) -> bool:
    """Whether `seed` can take `shoot`: same provider, healthy, visible, labels as its selector wants."""
    spec = seed.get("spec") or {}
    conditions = {c["type"]: c["status"] for c in (seed.get("status") or {}).get("conditions") or ()}
    scheduling = (spec.get("settings") or {}).get("scheduling") or {}
    wanted = (shoot["spec"].get("seedSelector") or {}).get("matchLabels") or {}
    labels = seed["metadata"].get("labels") or {}
    return (
        (spec.get("provider") or {}).get("type") == shoot["spec"]["provider"]["type"]
        and not seed["metadata"].get("deletionTimestamp")
        and scheduling.get("visible", True)
        and conditions.get("GardenletReady") == "True"
        and all(labels.get(name) == value for name, value in wanted.items())
    )
