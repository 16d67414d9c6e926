"""Times in which seeds do not work, as the settings say: their conditions tell, and gardenlet and scheduler follow.

It owns the conditions of seeds that some outage of the settings names. It never touches another seed: who marks one by
hand takes it out of the simulation in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple

from hortus.engine import Cache, Result
from hortus.kube import Client
from hortus.kube.clock import Clock
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, ObjectKey, format_time
from hortus.simulation.garden.kinds import SEEDS
from hortus.simulation.settings import GardenSettings, Outage

FIELD_MANAGER = "gardener-controller-manager"
_STRUCK: Final = {
    "gardenlet": ("GardenletReady", "Unknown", "SeedStatusUnknown", "Gardenlet stopped posting seed status."),
    "seed": ("SeedSystemComponentsHealthy", "False", "DeploymentUnhealthy", "gardener-resource-manager is unhealthy"),
}


class State(NamedTuple):
    struck: bool
    until: float | None
    """Seconds until it may change; None: never."""


def state(outage: Outage, passed: float) -> State:
    """The state of an outage when so many of the garden's seconds have passed since the start."""
    since = passed - outage.after
    if since < 0:
        return State(False, -since)
    if outage.every:
        since %= outage.every
    if since < outage.seconds:
        return State(True, outage.seconds - since)
    return State(False, outage.every - since if outage.every else None)


class Outages:
    def __init__(self, *, client: Client, seeds: Cache, settings: GardenSettings, clock: Clock) -> None:
        self._client = client
        self._seeds = seeds
        self._settings = settings
        self._clock = clock
        self._began = clock.monotonic()

    async def reconcile(self, key: ObjectKey) -> Result | None:
        seed = self._seeds.get(key)
        concerned = [outage for outage in self._settings.outages if fnmatchcase(key.name, outage.seeds)]
        if seed is None or not concerned:
            return None
        passed = (self._clock.monotonic() - self._began) * self._settings.time_factor
        states = [(outage.what, state(outage, passed)) for outage in concerned]
        wanted = _conditions(seed, {what for what, found in states if found.struck}, self._clock.now())
        if wanted is not None:
            await self._write(key, wanted)
        waits = [found.until for _, found in states if found.until is not None]
        return Result(requeue_after=max(self._settings.scaled(min(waits)), 0.01)) if waits else None

    async def _write(self, key: ObjectKey, conditions: list[dict[str, Any]]) -> None:
        patch = {"status": {"conditions": conditions}}
        try:
            self._seeds.learn(await self._client.patch(SEEDS, key.name, patch, field_manager=FIELD_MANAGER))
        except NotFound:
            return


def _conditions(seed: Object, struck: Iterable[str], now: float) -> list[dict[str, Any]] | None:
    """The seed's conditions as they are to be, None when they are so."""
    struck_by = {_STRUCK[what][0]: _STRUCK[what] for what in struck}
    before: list[dict[str, Any]] = (seed.get("status") or {}).get("conditions") or []
    after = [_condition(found, struck_by.get(found["type"]), now) for found in before]
    return after if after != before else None


def _condition(found: dict[str, Any], struck_by: tuple[str, str, str, str] | None, now: float) -> dict[str, Any]:
    kind, status, reason, message = struck_by or (found["type"], "True", found["type"], "simulated")
    if found["status"] == status:
        return found
    stamp = format_time(now)
    return {
        **found,
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": stamp,
        "lastUpdateTime": stamp,
    }
