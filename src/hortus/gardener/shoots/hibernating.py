"""Hibernation by schedules: what is due now, and when the next look is. Pure.

Source: gardener, pkg/controllermanager/controller/shoot/hibernation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hortus.gardener.shoots.cron import Cron, cron
from hortus.kube.objects import Object, parse_time

LATEST: Final = 2 * 3600.0
"""Seconds after which a time that was missed is not caught up on (Gardener's default triggerDeadlineDuration)."""
_AGO: Final = 7 * 24 * 3600.0
_PADDING: Final = 0.1
"""Seconds after the time of a schedule at which Gardener looks again."""


def due(shoot: Object, now: float, *, latest: float | None = LATEST) -> bool | None:
    """True to hibernate, False to wake up by the schedule whose time passed last; None where none is due."""
    since = parse_time(
        (shoot.get("status") or {}).get("lastHibernationTriggerTime") or shoot["metadata"]["creationTimestamp"]
    )
    since = max(since, now - _AGO, *((now - latest,) if latest is not None else ()))
    best: tuple[float, bool] | None = None
    for schedule, sleeps in _schedules(shoot):
        at = schedule.latest(since, now)
        if at is not None and (best is None or at > best[0]):
            best = at, sleeps
    return None if best is None else best[1]


def following(shoot: Object, now: float) -> float | None:
    """Seconds until the next time of any schedule; None without schedules."""
    times = [at for schedule, _ in _schedules(shoot) if (at := schedule.following(now)) is not None]
    return min(times) + _PADDING - now if times else None


def _schedules(shoot: Object) -> Iterator[tuple[Cron, bool]]:
    for one in (shoot["spec"].get("hibernation") or {}).get("schedules") or ():
        for field, sleeps in (("start", True), ("end", False)):
            if text := one.get(field):
                yield cron(text, one.get("location") or ""), sleeps
