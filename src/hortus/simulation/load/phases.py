"""Measures the phases of a run one by one: how the counters of the run grew between two moments.

Nothing is counted twice but by the recorder: processes and metrics pages are marked when a phase begins and compared
with the mark when it ends.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from hortus.simulation.load.gates import Gate
from hortus.simulation.load.measuring import Recorder
from hortus.simulation.load.report import Findings, PhaseReport, judged, measured
from hortus.simulation.load.sampling import Counters, MetricsPage, Usage
from hortus.simulation.load.series import Series


class Mark(msgspec.Struct, frozen=True):
    """The counters of a run when a phase begins."""

    at: float
    recorder: Recorder
    usage: dict[str, Usage]
    pages: dict[str, Counters]
    server: Counters
    killed: dict[str, int]


class Meter(msgspec.Struct, frozen=True):
    """The counters of a run."""

    recorder: Recorder
    usage: Mapping[str, Usage]
    pages: Mapping[str, MetricsPage]
    server: Counters
    killed: Mapping[str, int]

    def mark(self, at: float) -> Mark:
        """Begins a phase `at` seconds after the run."""
        usage = {name: found.mark() for name, found in self.usage.items()}
        pages = {name: page.counters.copy() for name, page in self.pages.items()}
        return Mark(at, self.recorder.begin_phase(), usage, pages, self.server.copy(), dict(self.killed))

    def report(self, mark: Mark, at: float, name: str, kind: str, gates: tuple[Gate, ...]) -> PhaseReport:
        """Returns what was measured since `mark`, judged by `gates`."""
        empty = Counters()
        findings = Findings(
            mark.recorder,
            Series(),
            {name: found.since(mark.usage.get(name, Usage())) for name, found in self.usage.items()},
            {name: kills - mark.killed.get(name, 0) for name, kills in self.killed.items()},
            {name: page.counters.since(mark.pages.get(name, empty)) for name, page in self.pages.items()},
        )
        figures = measured(findings, self.server.since(mark.server))
        waits = {name: msgspec.structs.replace(found, steps=()) for name, found in figures["waits"].items()}
        taken = ("objects", "errors", "queue_time", "calls_per_object", "bytes_per_object", "processes", "failed")
        report = PhaseReport(
            name=name,
            kind=kind,
            at=mark.at,
            seconds=at - mark.at,
            ready=mark.recorder.done["ready"],
            waits=waits,
            **{field: figures[field] for field in taken},
        )
        return judged(report, gates, mark.recorder)
