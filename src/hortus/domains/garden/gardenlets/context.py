"""The reconcile of a Gardenlet, and the conditions that Hortus writes. They are in Gardener's form.

Several controllers write conditions of one object, of which some are not Hortus' own, into one list. So a status is
written only over the version of the object that was read.
"""

from __future__ import annotations

from functools import cached_property
from typing import Final

import msgspec

from hortus.domains.garden.kinds.common import GardenCondition, with_condition
from hortus.domains.garden.kinds.gardenlet import Gardenlet
from hortus.engine import ReconcileContext
from hortus.engine.cache import Cache
from hortus.engine.status import Patcher, StatusDraft
from hortus.kube.objects import Object, Resource

TRUE: Final = "True"
FALSE: Final = "False"
PROGRESSING: Final = "Progressing"


class _ExclusiveDraft(StatusDraft):
    """A status whose conditions have several writers."""

    async def write(
        self,
        client: Patcher,
        resource: Resource,
        *,
        cache: Cache | None = None,
        field_manager: str = "",
        exclusive: bool = True,
    ) -> Object | None:
        return await super().write(client, resource, cache=cache, field_manager=field_manager, exclusive=exclusive)


class GardenletContext(ReconcileContext[Gardenlet]):
    """One reconcile of one Gardenlet."""

    @cached_property
    def draft(self) -> StatusDraft:
        return _ExclusiveDraft(self.raw, clock=self.wiring.clock)

    @property
    def conditions(self) -> list[GardenCondition]:
        """The conditions as they are drafted."""
        return msgspec.convert(self.drafted("conditions") or [], list[GardenCondition])

    def found(self, kind: str) -> GardenCondition | None:
        """The condition of a type."""
        return next((one for one in self.conditions if one.type == kind), None)

    def report_as(self, kind: str, status: str, reason: str, message: str) -> None:
        """Draft a condition; nothing changes where it says so already."""
        before = self.conditions
        after = with_condition(before, kind, status, reason, self._shown(kind, message), self.now)
        if after != before:
            self.set_status("conditions", msgspec.to_builtins(after))
