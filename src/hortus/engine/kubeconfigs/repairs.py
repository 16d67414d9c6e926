"""Back-off of repairs: two writers that undo each other's writes to a Secret must not do so as fast as they can.

The first repair comes at once. While the same Secret is damaged again and again, each further one waits twice as long
as the one before. In memory alone: a restart may repair once more at once.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from hortus.kube.objects import ObjectKey

FIRST_PAUSE: Final = 10.0
LONGEST_PAUSE: Final = 300.0
QUIET: Final = 900.0
"""Seconds after which a damage counts as the first one again."""


class _Repairs(NamedTuple):
    times: int
    last: float


class RepairBackoff:
    """Counts the repairs of each object's Secret. Times are those of a monotonic clock."""

    def __init__(self) -> None:
        self._repairs: dict[ObjectKey, _Repairs] = {}

    def pause(self, key: ObjectKey, now: float) -> float:
        """Seconds until damage that was just seen may be repaired; 0 for at once."""
        known = self._known(key, now)
        if known is None:
            return 0.0
        return max(known.last + min(FIRST_PAUSE * 2.0 ** (known.times - 1), LONGEST_PAUSE) - now, 0.0)

    def repaired(self, key: ObjectKey, now: float) -> None:
        """Count a repair that was written. One that failed does not count."""
        known = self._known(key, now)
        self._repairs[key] = _Repairs(1 if known is None else known.times + 1, now)

    def forget(self, key: ObjectKey) -> None:
        self._repairs.pop(key, None)

    def _known(self, key: ObjectKey, now: float) -> _Repairs | None:
        known = self._repairs.get(key)
        return None if known is None or now - known.last >= QUIET else known
