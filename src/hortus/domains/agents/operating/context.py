"""The part that both controllers share: the context of a reconcile, and its status when it is over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

import msgspec

from hortus.domains.agents.builders import InstanaFacts
from hortus.domains.agents.operating import verdicts
from hortus.domains.agents.operating.verdicts import AgentCondition
from hortus.engine import NORMAL, TRUE, WARNING, Announcement, ReconcileContext
from hortus.kube.objects import Object, format_time, shaped
from hortus.schema import Condition, Kind

K = TypeVar("K", bound=Kind)


class AgentContext(ReconcileContext[K]):
    """One reconcile of one object of this domain."""

    facts: InstanaFacts
    """The contribution of the world to the objects."""
    wanted: Sequence[Object] = ()
    """The objects that were built."""
    besides: Sequence[Object] = ()
    """Objects besides, which their owner alone deletes."""
    is_built = False
    """False while the steps have not come so far: then nothing is known of workloads."""
    failure = ""
    """The text of the failure."""
    failure_reason = ""
    """Its stable reason."""
    is_released = False
    """True when the last finalizer is gone, and nobody can read a status any more."""
    dates_status = False
    """True for a kind whose status says when it changed last."""

    def apply_conditions(self, conditions: Sequence[AgentCondition]) -> None:
        """Draft these conditions."""
        for one in conditions:
            if one.status is None:
                self.draft.without_condition(one.type)
            else:
                self.condition(one.type, one.status, reason=one.reason, message=one.message)

    def set_info(self, field: str, live: Object | None) -> None:
        """Draft name and UID of an object; one that never was known is left out, one that is gone becomes empty."""
        info = verdicts.info_of(live)
        if live is not None or self.drafted(field) is not None:
            self.set_status(field, info)

    def announcements(self, before: Object) -> Iterator[Announcement]:
        """One event for each condition that changed, a warning unless it is True."""
        known = {one.type: (one.status, one.reason, one.message) for one in _conditions_of(before)}
        for one in _conditions_of(self.raw):
            if known.get(one.type) != (one.status, one.reason, one.message):
                yield Announcement(NORMAL if one.status == TRUE else WARNING, one.reason, one.message)

    async def checkpoint(self) -> bool:
        if self.is_released:
            return False
        if self.dates_status and "draft" in self.__dict__ and self.draft.changed:
            self.set_status("lastUpdate", format_time(self.now))
        return await super().checkpoint()


class _Status(msgspec.Struct):
    conditions: tuple[Condition, ...] = ()


class _Reported(msgspec.Struct):
    status: _Status = msgspec.field(default_factory=_Status)


def _conditions_of(obj: Object) -> tuple[Condition, ...]:
    found = shaped(obj, _Reported)
    return found.status.conditions if found is not None else ()
