"""Percentiles of any number of durations in bounded memory.

Values fall into buckets whose width grows with the value, so that every percentile is right within 1 % of itself, from
a microsecond to days, in at most about 1,300 small integers (the idea of HDR histograms). Adding is one logarithm.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

_GROWTH = 1.02
"""From one bucket's upper bound to the next: the middle of a bucket is at most 1 % away from all it holds."""
_LOG = math.log(_GROWTH)
_LEAST = 1e-6
"""Seconds; shorter durations count as this."""
_MOST = _LEAST * _GROWTH**1300


class Histogram:
    """Durations in seconds; or any other positive values, within the same bounds."""

    __slots__ = ("_buckets", "count", "largest", "least", "total")

    def __init__(self) -> None:
        self._buckets: dict[int, int] = {}
        self.count = 0
        self.total = 0.0
        self.largest = 0.0
        self.least = math.inf

    def add(self, value: float) -> None:
        """Count one value; negative ones, which a clock may yield, are 0."""
        value = max(value, 0.0)
        index = int(math.log(min(max(value, _LEAST), _MOST) / _LEAST) / _LOG)
        self._buckets[index] = self._buckets.get(index, 0) + 1
        self.count += 1
        self.total += value
        self.largest = max(self.largest, value)
        self.least = min(self.least, value)

    def merge(self, other: Histogram) -> None:
        """Count all of another's values too."""
        for index, count in other._buckets.items():
            self._buckets[index] = self._buckets.get(index, 0) + count
        self.count += other.count
        self.total += other.total
        self.largest = max(self.largest, other.largest)
        self.least = min(self.least, other.least)

    def quantile(self, share: float) -> float:
        """The value below or at which `share` (0 to 1) of all lie, within 1 %; 0 when there are none."""
        if not self.count:
            return 0.0
        wanted, seen = max(1, math.ceil(share * self.count)), 0
        for index, count in self._sorted():
            seen += count
            if seen >= wanted:
                middle: float = _LEAST * _GROWTH ** (index + 0.5)
                return min(max(middle, self.least), self.largest)
        return self.largest

    @property
    def mean(self) -> float:
        """The average; 0 when there are no values."""
        return self.total / self.count if self.count else 0.0

    @property
    def size(self) -> int:
        """The number of its buckets."""
        return len(self._buckets)

    def steps(self) -> list[tuple[float, float]]:
        """The cumulative distribution: (value, share of all up to it), growing in both."""
        seen, found = 0, []
        for index, count in self._sorted():
            seen += count
            found.append((_LEAST * _GROWTH ** (index + 0.5), seen / self.count))
        return found

    def _sorted(self) -> Iterator[tuple[int, int]]:
        return iter(sorted(self._buckets.items()))
