"""Gardenlets with their Seeds, in the words that commands print. Reads only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from hortus.domains.garden.gardenlets.acceptance import problems
from hortus.domains.garden.gardenlets.context import TRUE
from hortus.domains.garden.kinds.gardenlet import GARDEN_NAMESPACE, GARDENLETS, Gardenlet, GardenletCondition
from hortus.domains.garden.kinds.seed import SEEDS, RegisteredSeed
from hortus.engine import read
from hortus.kube import Client

_TYPES: Final = (
    GardenletCondition.SEED_REGISTERED,
    GardenletCondition.RECONCILED,
    GardenletCondition.SEED_HEALTHY,
)
_OWNERS: Final = {
    GardenletCondition.SEED_REGISTERED: "the operator of Gardenlets (hortus run --gardenlets)",
    GardenletCondition.RECONCILED: "the gardenlet, or hortus run --gardenlet-self-upgrade",
    GardenletCondition.SEED_HEALTHY: "the operator of Gardenlets",
}


class GardenletFacts(NamedTuple):
    """All Gardenlets, and all Seeds by name."""

    gardenlets: Sequence[Gardenlet]
    seeds: dict[str, RegisteredSeed]

    def row(self, gardenlet: Gardenlet) -> tuple[str, ...]:
        """Name, chart, version and conditions."""
        seed = self.seeds.get(gardenlet.metadata.name)
        known = {one.type: one.status for one in gardenlet.status.conditions}
        version = seed.status.gardener.version if seed is not None else ""
        return (gardenlet.metadata.name, gardenlet.chart, version, *(known.get(kind, "") for kind in _TYPES))

    def lines(self, gardenlet: Gardenlet) -> Iterator[str]:
        """The state of one gardenlet, condition by condition, and the owner of the next step."""
        yield f"{gardenlet.metadata.name}: chart {gardenlet.chart}"
        broken = list(problems(gardenlet))
        yield from (f"refused: {one}" for one in broken)
        known = {one.type: one for one in gardenlet.status.conditions}
        for kind in _TYPES:
            one = known.get(kind)
            yield f"{kind} is not reported yet" if one is None else f"{kind} is {one.status}: {one.message}"
        if (seed := self.seeds.get(gardenlet.metadata.name)) is None:
            yield "There is no Seed of this name."
        else:
            yield from (
                f"Seed: {one.type} is {one.status}: {one.message}"
                for one in seed.status.conditions
                if one.status != TRUE
            )
        yield f"Next step: {_next(gardenlet, broken)}"


def _next(gardenlet: Gardenlet, broken: Sequence[str]) -> str:
    if broken:
        return "the author of the Gardenlet: correct the fields above"
    known = {one.type: one.status for one in gardenlet.status.conditions}
    waiting = next((kind for kind in _TYPES if known.get(kind) != TRUE), "")
    return f"{_OWNERS[waiting]}, for {waiting}" if waiting else "nobody: all is well"


async def read_facts(client: Client, garden: Client) -> GardenletFacts:
    """The facts of a management cluster and its garden. Raises KubeError."""
    found = (await client.list(GARDENLETS, GARDEN_NAMESPACE)).items
    seeds = (await garden.list(SEEDS)).items
    gardenlets = sorted((read(Gardenlet, one) for one in found), key=lambda one: one.metadata.name)
    return GardenletFacts(gardenlets, {one.metadata.name: one for one in (read(RegisteredSeed, raw) for raw in seeds)})
