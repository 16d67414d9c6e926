"""Refusals of the garden that stand until something changes, so that the same request is not sent again and again.

A refused request waits for a new generation of its Runtime or of its Shoot, another label, a forced patch, a move of a
default, or another offer of the CloudProfile. What else a garden may judge by is out of sight, so the request is sent
after minutes too, each time twice as long. Kept in memory: a process starts with its configuration, and tries once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from hortus.domains.clusters import service
from hortus.domains.clusters.context import RuntimeContext
from hortus.domains.clusters.pauses import LONGEST_REFUSAL
from hortus.domains.clusters.shoot import Offer
from hortus.domains.clusters.types import Runtime
from hortus.kube.clock import Clock
from hortus.kube.errors import ApiError, KubeError
from hortus.kube.objects import ObjectKey


def refused_for_good(error: KubeError) -> bool:
    """True for an answer that the same request gets again: it breaks a rule, or cannot be read."""
    return isinstance(error, ApiError) and error.http_code in (400, 413, 422)


class _Grounds(NamedTuple):
    """The facts that a refusal is about."""

    uid: str
    generation: int
    labels: dict[str, str]
    forced: bool
    moves: frozenset[str]
    shoot: tuple[str, int] | None
    """Uid and generation."""
    offer: Offer | None


class _Refusal(NamedTuple):
    grounds: _Grounds
    times: int
    until: float


class Refusals:
    """The refusals by Runtime; each is about the latest request alone."""

    def __init__(self, clock: Clock, offer_of: Callable[[Runtime], Offer | None]) -> None:
        self._clock = clock
        self._offer_of = offer_of
        self._kept: dict[ObjectKey, _Refusal] = {}

    def pause(self, context: RuntimeContext) -> float:
        """Seconds until a refused request may be sent again; 0 when it may be sent now."""
        kept = self._standing(context)
        return max(0.0, kept.until - self._clock.monotonic()) if kept is not None else 0.0

    def times(self, context: RuntimeContext) -> int:
        """The number of refusals without a change in between."""
        kept = self._standing(context)
        return kept.times if kept is not None else 0

    def note(self, context: RuntimeContext, first: float) -> float:
        """Note another refusal. Returns the seconds to wait: `first`, and twice as long after each further one."""
        times = self.times(context)
        pause = min(first * 2.0**times, LONGEST_REFUSAL)
        self._kept[context.key] = _Refusal(self._grounds(context), times + 1, self._clock.monotonic() + pause)
        return pause

    def forget(self, key: ObjectKey) -> None:
        self._kept.pop(key, None)

    def _standing(self, context: RuntimeContext) -> _Refusal | None:
        kept = self._kept.get(context.key)
        return kept if kept is not None and kept.grounds == self._grounds(context) else None

    def _grounds(self, context: RuntimeContext) -> _Grounds:
        runtime, shoot = context.object, context.shoot
        return _Grounds(
            uid=runtime.metadata.uid,
            generation=runtime.metadata.generation,
            labels=runtime.metadata.labels,
            forced=service.forced(runtime),
            moves=context.held | context.moving,
            shoot=None if shoot is None else (shoot.uid, shoot.generation),
            offer=self._offer_of(runtime),
        )
