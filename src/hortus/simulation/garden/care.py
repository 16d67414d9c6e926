"""The simulated care loop: looks after each operation whether the shoot is well, and keeps its status label.

When nothing is heard of a seed's gardenlet any more, what its shoots' conditions say is Unknown.

It owns: a Shoot's conditions and constraints between operations, and the label `shoot.gardener.cloud/status`.
"""

from __future__ import annotations

from hortus.engine import Cache, Result
from hortus.kube import Client
from hortus.kube.clock import Clock
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, ObjectKey, parse_time
from hortus.simulation.garden import operations
from hortus.simulation.garden.health import STATUS_LABEL, after_care, status_label, unheard
from hortus.simulation.garden.kinds import SHOOTS
from hortus.simulation.garden.seeds import gardenlet_ready
from hortus.simulation.settings import GardenSettings

FIELD_MANAGER = "gardenlet-care"


class Care:
    def __init__(
        self, *, client: Client, shoots: Cache, settings: GardenSettings, clock: Clock, seeds: Cache | None = None
    ) -> None:
        """Without `seeds` all gardenlets are well."""
        self._seeds = seeds
        self._client = client
        self._shoots = shoots
        self._settings = settings
        self._clock = clock

    async def reconcile(self, key: ObjectKey) -> Result | None:
        shoot = self._shoots.get(key)
        if shoot is None or shoot["metadata"].get("deletionTimestamp") or operations.last_operation(shoot) is None:
            # No operation has begun: a label now would conflict with the first write of one.
            return None
        silent = self._silent(shoot)
        wait = None if silent else self._wait(shoot)
        if silent and (status := unheard(shoot, self._clock.now())):
            shoot = await self._patch(shoot, {"status": status}, subresource="status") or shoot
        if wait is not None and wait <= 0:
            shoot = await self._look(shoot)
            wait = None
        label = status_label(shoot)
        if (shoot["metadata"].get("labels") or {}).get(STATUS_LABEL) != label:
            await self._patch(shoot, {"metadata": {"labels": {STATUS_LABEL: label}}})
        return None if wait is None else Result(requeue_after=wait)

    def _wait(self, shoot: Object) -> float | None:
        """Seconds until conditions are to be looked at; None when there is nothing to look at."""
        found = [
            condition
            for field in ("conditions", "constraints")
            for condition in (shoot.get("status") or {}).get(field) or ()
            if condition["status"] in ("Progressing", "Unknown")
        ]
        if not found:
            return None
        latest = max(parse_time(condition["lastUpdateTime"]) for condition in found)
        return latest + self._settings.scaled(self._settings.care_period) - self._clock.now()

    def _silent(self, shoot: Object) -> bool:
        """True when the gardenlet of the shoot is silent."""
        name = shoot["spec"].get("seedName")
        seed = self._seeds.get(ObjectKey("", name)) if self._seeds is not None and name else None
        return seed is not None and not gardenlet_ready(seed)

    async def _look(self, shoot: Object) -> Object:
        threshold = self._settings.scaled(self._settings.condition_threshold)
        status = after_care(shoot, {}, self._clock.now(), threshold)
        return await self._patch(shoot, {"status": status}, subresource="status") or shoot

    async def _patch(self, shoot: Object, patch: Object, *, subresource: str = "") -> Object | None:
        metadata = shoot["metadata"]
        try:
            updated = await self._client.patch(
                SHOOTS,
                metadata["name"],
                patch,
                metadata["namespace"],
                subresource=subresource,
                field_manager=FIELD_MANAGER,
            )
        except NotFound:
            return None
        self._shoots.learn(updated)
        return updated
