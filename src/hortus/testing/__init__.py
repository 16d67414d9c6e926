"""Public test tools, for the tests of Hortus and for authors of modules, stacks and controllers."""

from __future__ import annotations

from hortus.testing.clock import FakeClock, SkewedClock

__all__ = ["FakeClock", "SkewedClock"]
