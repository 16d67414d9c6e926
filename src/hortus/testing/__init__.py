"""Public test tools: what our tests stand on, and what authors of modules, stacks and controllers may use in theirs."""

from __future__ import annotations

from hortus.testing.clock import FakeClock, SkewedClock

__all__ = ["FakeClock", "SkewedClock"]
