"""Measurements over time, in bounded memory: when a series grows too long, every second sample is dropped.

A run of hours ends with samples further apart and of the same number as a run of minutes; a plot shows no difference.
"""

from __future__ import annotations

from collections.abc import Mapping

LONGEST = 600
"""Samples kept at most; more than a plot has columns of pixels to tell apart."""


class Series:
    """Samples of several named values, all taken at the same moments."""

    def __init__(self, *, longest: int = LONGEST) -> None:
        self.times: list[float] = []
        self.values: dict[str, list[float | None]] = {}
        """By name; None where a value was not known at that time."""
        self._longest = longest
        self._stride = 1
        self._offered = 0

    def add(self, at: float, values: Mapping[str, float]) -> None:
        """Take a sample `at` seconds after the begin; it is dropped when the series is thinned out already."""
        offered, self._offered = self._offered, self._offered + 1
        if offered % self._stride:
            return
        for name in values:
            if name not in self.values:
                self.values[name] = [None] * len(self.times)
        self.times.append(at)
        for name, column in self.values.items():
            column.append(values.get(name))
        if len(self.times) > self._longest:
            self._thin()

    def _thin(self) -> None:
        self._stride *= 2
        self.times = self.times[::2]
        self.values = {name: column[::2] for name, column in self.values.items()}

    def largest(self, name: str) -> float:
        """The largest sample of `name`; 0 when there is none."""
        return max((value for value in self.values.get(name, ()) if value is not None), default=0.0)
