"""The figures of one phase are those of that phase alone."""

from __future__ import annotations

from collections import Counter

from hortus.simulation.load.measuring import Recorder
from hortus.simulation.load.phases import Meter
from hortus.simulation.load.sampling import Counters, Usage


def test_kills_of_earlier_phases_are_not_those_of_a_later_one() -> None:
    usage, kills = Usage(), Counter[str]()
    meter = Meter(Recorder(), {"apiserver": usage}, {}, Counters(), kills)
    usage.take(1, 1.0, 10.0, 0.0)
    first = meter.mark(0.0)
    kills["apiserver"] += 1
    usage.take(2, 1.0, 10.0, 0.0)
    report = meter.report(first, 5.0, "one", "faults", ())
    assert (report.processes["apiserver"].restarts, report.processes["apiserver"].killed) == (1, 1)
    second = meter.mark(5.0)
    usage.take(3, 1.0, 10.0, 0.0)
    report = meter.report(second, 9.0, "two", "load", ())
    assert (report.processes["apiserver"].restarts, report.processes["apiserver"].killed) == (1, 0)
