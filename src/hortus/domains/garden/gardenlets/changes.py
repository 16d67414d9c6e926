"""Charts of gardenlets as a change that a RolloutPolicy may spread over the seeds.

A Gardenlet is the object of the change, and the ClusterProfile of its seed has its name. The chart is in place when the
gardenlet has applied the generation with it, and it works when the Seed stayed well after that.
"""

from __future__ import annotations

from typing import Final

from hortus.domains.garden.kinds.gardenlet import GARDENLETS, GardenletCondition
from hortus.engine.rollouts.types import ChangedResource, ChangeKind, ChangeKindSpec, Proposal
from hortus.schema import ObjectMeta

GARDENLET_CHANGE: Final = "gardenlet"
"""Name of the ChangeKind, and its only subject."""
_CONDITIONS: Final = "self.?status.?conditions.orValue([])"
_HEALTH: Final = (
    f"c.type == '{GardenletCondition.SEED_HEALTHY}'"
    " && c.?message.orValue('').startsWith('Generation ' + string(self.metadata.generation) + ' ')"
)
"""A condition of an older generation says nothing."""
_REFUSED: Final = (
    f"(c.type == '{GardenletCondition.RECONCILED}' && c.status == 'False'"
    " && self.status.?observedGeneration.orValue(0) == self.metadata.generation)"
)

CHANGE_KIND: Final = ChangeKind(
    metadata=ObjectMeta(name=GARDENLET_CHANGE),
    spec=ChangeKindSpec(
        resource=ChangedResource(group=GARDENLETS.group, version=GARDENLETS.version, resource=GARDENLETS.plural),
        cluster="self.metadata.name",
        subject=f"'{GARDENLET_CHANGE}'",
        version="cel.bind(r, self.spec.deployment.helm.ociRepository, has(r.ref) ? r.ref"
        " : r.repository + (has(r.digest) ? '@' + r.digest : has(r.tag) ? ':' + r.tag : ''))",
        succeeded=f"{_CONDITIONS}.exists(c, {_HEALTH} && c.status == 'True')",
        failed=f"{_CONDITIONS}.exists(c, {_HEALTH} && c.status == 'False' || {_REFUSED})",
        message=f"{_CONDITIONS}.filter(c, {_HEALTH} && c.status == 'False' || {_REFUSED})"
        ".map(c, c.?message.orValue('')).join(' ')",
        patch="{'spec': {'deployment': {'helm': {'ociRepository': {'ref': to}}}}}",
    ),
)


def proposal(chart: str) -> Proposal:
    """The change to a chart."""
    return Proposal(GARDENLET_CHANGE, GARDENLET_CHANGE, chart)
