"""The AgentPlacements of each configuration, which are counted again whenever one of them changes.

Decoding all of them each time would take most of that time, so that a struct is kept until its object changes.
"""

from __future__ import annotations

from typing import Final

from hortus.domains.agents.fleet.changes import AGENT_CHANGE
from hortus.domains.agents.fleet.counting import PlacementState
from hortus.domains.agents.types import AgentPlacement
from hortus.engine import Cache, Change, TypedCache, read
from hortus.engine.rollouts import waits_for
from hortus.kube.objects import Object, ObjectKey

CONFIGURATION_INDEX: Final = "agent-configuration"


class KnownPlacements:
    """Read access to AgentPlacements, each decoded once for each of its states."""

    def __init__(self, placements: TypedCache[AgentPlacement]) -> None:
        self.raw: Cache = placements.raw
        self._kept: dict[ObjectKey, tuple[Object, PlacementState]] = {}
        self.raw.subscribe(self._forget)

    def get(self, key: ObjectKey) -> PlacementState | None:
        found = self.raw.get(key)
        if found is None:
            return None
        kept = self._kept.get(key)
        if kept is None or kept[0] is not found:
            state = PlacementState(read(AgentPlacement, found), waits=bool(waits_for(found, AGENT_CHANGE)))
            kept = self._kept[key] = found, state
        return kept[1]

    def of(self, configuration: ObjectKey) -> list[PlacementState]:
        """All of one configuration, those too that are being deleted."""
        states = (self.get(key) for key in self.raw.keys_by(CONFIGURATION_INDEX, str(configuration)))
        return [state for state in states if state is not None]

    def _forget(self, change: Change) -> None:
        self._kept.pop(change.key, None)
