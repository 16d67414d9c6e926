"""The status of an Extension in Gardener's form: operation, error with codes, conditions. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from hortus.domains.garden.extension.topic import TopicCondition
from hortus.domains.garden.kinds.common import GardenCondition, GardenError, GardenOperation
from hortus.engine import Actor, StepError
from hortus.kube.objects import format_time

CONFIGURATION_PROBLEM: Final = "ERR_CONFIGURATION_PROBLEM"
"""The code of an error that the owner of the Shoot has to mend; gardenlet does not retry a Shoot with it."""


def operation(
    former: GardenOperation | None, type_: str, state: str, progress: int, description: str, *, now: float
) -> dict[str, Any]:
    """The value of lastOperation; the time of `former` stays where nothing else differs."""
    same = former is not None and (former.type, former.state, former.progress, former.description) == (
        type_,
        state,
        progress,
        description,
    )
    return {
        "type": type_,
        "state": state,
        "progress": progress,
        "description": description,
        "lastUpdateTime": (former.last_update_time if former is not None and same else None) or format_time(now),
    }


def error(failure: StepError, *, former: GardenError | None, now: float) -> dict[str, Any]:
    """The value of lastError; the time of `former` stays where nothing else differs."""
    codes = (CONFIGURATION_PROBLEM,) if failure.actor is Actor.USER else ()
    same = former is not None and (former.description, former.codes) == (failure.message, codes)
    return {
        "description": failure.message,
        "lastUpdateTime": former.last_update_time if former is not None and same else format_time(now),
        **({"codes": list(codes)} if codes else {}),
    }


def conditions(former: Sequence[GardenCondition], wanted: Sequence[TopicCondition], *, now: float) -> list[Any]:
    """The conditions to report: those of `wanted`, with the times of `former` where these hold."""
    known = {one.type: one for one in former}
    return [_condition(known.get(one.type), one, format_time(now)) for one in wanted]


def _condition(old: GardenCondition | None, new: TopicCondition, now: str) -> dict[str, Any]:
    flipped = old is None or old.status != new.status
    changed = old is None or flipped or (old.reason, old.message) != (new.reason, new.message)
    return {
        "type": new.type,
        "status": new.status,
        "reason": new.reason,
        "message": new.message,
        "lastTransitionTime": now if old is None or flipped else old.last_transition_time,
        "lastUpdateTime": now if old is None or changed else old.last_update_time,
    }
