"""The verdict over a gardenlet that changed: the Seed must stay well for a while after it. Pure.

A bad gardenlet is seen by what its Seed reports. That takes the garden some time, since a Seed reads as well until its
gardenlet has missed several renewals of its Lease; so a change counts as successful only when the Seed has stayed well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from hortus.domains.garden.gardenlets.context import FALSE, PROGRESSING, TRUE
from hortus.domains.garden.kinds.common import GardenCondition
from hortus.domains.garden.kinds.gardenlet import Gardenlet, GardenletCondition
from hortus.domains.garden.kinds.seed import GARDENLET_READY, RegisteredSeed
from hortus.kube.objects import parse_time

NOT_APPLIED: Final = "NotApplied"
SETTLING: Final = "Settling"
WELL: Final = "SeedWell"
UNWELL: Final = "SeedUnwell"
REFUSED: Final = "GardenletRefused"
_SECONDS: Final = 1.0
"""Times in conditions have whole seconds."""


class SeedVerdict(NamedTuple):
    """A condition, and the seconds until it may be another one without a change."""

    status: str
    reason: str
    message: str
    after: float | None = None


def verdict(gardenlet: Gardenlet, seed: RegisteredSeed | None, *, settle: float, now: float) -> SeedVerdict:
    """The condition SeedHealthy. Its message begins with the generation, by which a rollout knows that it is meant."""
    title = f"Generation {gardenlet.metadata.generation}"
    known = {one.type: one for one in gardenlet.status.conditions}
    applied = known.get(GardenletCondition.RECONCILED)
    if applied is None or gardenlet.status.observed_generation != gardenlet.metadata.generation:
        return SeedVerdict(PROGRESSING, NOT_APPLIED, f"{title} is not applied by the gardenlet yet.")
    if applied.status == FALSE:
        return SeedVerdict(FALSE, REFUSED, f"{title} could not be applied: {applied.message}")
    troubles = list(_troubles(seed.status.conditions if seed is not None else ()))
    if troubles:
        return SeedVerdict(FALSE, UNWELL, f"{title} is applied, and the Seed is not well: {'; '.join(troubles)}")
    former = known.get(GardenletCondition.SEED_HEALTHY)
    well = SeedVerdict(TRUE, WELL, f"{title} is applied, and the Seed is well.")
    settling = f"{title} is applied; the Seed has to stay well for {settle:g} s."
    if former is not None and (former.status, former.message) == (TRUE, well.message):
        return well
    began = former is not None and former.message == settling
    left = settle + (_SECONDS if settle else 0.0)
    if former is not None and began:
        left -= now - parse_time(former.last_update_time)
    return well if left <= 0 else SeedVerdict(PROGRESSING, SETTLING, settling, left)


def _troubles(conditions: Sequence[GardenCondition]) -> Iterator[str]:
    if all(one.type != GARDENLET_READY for one in conditions):
        yield f"{GARDENLET_READY} is not reported"
    for one in conditions:
        if one.status not in (TRUE, PROGRESSING):
            yield f"{one.type} is {one.status}{f': {one.message}' if one.message else ''}"
