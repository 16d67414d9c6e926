"""The findings of a run, as values: made once at the end, then shown as a table, JSON or a page.

Durations are seconds, sizes bytes. Names of quantities are those that gates use.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from hortus.simulation.load.gates import QUANTILES, Gate, Verdict
from hortus.simulation.load.histogram import Histogram
from hortus.simulation.load.measuring import Failure, Recorder
from hortus.simulation.load.sampling import QUEUE_TIME, Counters, Usage
from hortus.simulation.load.series import Series
from hortus.simulation.load.striking import Struck


class Distribution(msgspec.Struct, frozen=True):
    """Percentiles of something, right within 1 %."""

    count: int
    mean: float
    p50: float
    p90: float
    p99: float
    max: float
    steps: tuple[tuple[float, float], ...] = ()
    """(value, share of all up to it), for plots."""

    @classmethod
    def of(cls, found: Histogram, *, steps: bool = False) -> Distribution:
        """A histogram's percentiles; with `steps` its whole shape."""
        return cls(
            count=found.count,
            mean=found.mean,
            p50=found.quantile(0.5),
            p90=found.quantile(0.9),
            p99=found.quantile(0.99),
            max=found.largest,
            steps=tuple(found.steps()) if steps else (),
        )


class ProcessReport(msgspec.Struct, frozen=True):
    """The resources that a process used."""

    cpu: float
    """Seconds."""
    peak: float
    """Bytes resident."""
    io: float | None
    """Bytes read and written, TLS and files included; None where it is not known."""
    restarts: int
    killed: int
    """The number of restarts that were on purpose."""


class PhaseReport(msgspec.Struct, frozen=True, kw_only=True):
    """One phase of a run, measured alone."""

    name: str
    kind: str
    """`load`, `fleet`, `faults` or `rest`; several with commas between them."""
    at: float
    """When it began, in seconds after the run."""
    seconds: float
    objects: int
    """Objects created in it."""
    ready: int
    """Objects that became ready in it."""
    waits: dict[str, Distribution]
    errors: dict[str, int]
    queue_time: dict[str, float]
    calls_per_object: float
    bytes_per_object: float
    processes: dict[str, ProcessReport]
    """CPU in the phase, and the most memory in it."""
    failed: int
    gates: tuple[Verdict, ...] = ()

    @property
    def throughput(self) -> float:
        """Objects that became ready a second."""
        return self.ready / self.seconds if self.seconds > 0 else 0.0

    @property
    def passed(self) -> bool:
        """True when all gates of the phase hold."""
        return all(verdict.passed for verdict in self.gates)


class Timeline(msgspec.Struct, frozen=True):
    """Samples over time."""

    times: tuple[float, ...]
    values: dict[str, tuple[float | None, ...]]


class RunReport(msgspec.Struct, frozen=True, kw_only=True):
    """One run."""

    scenario: str
    description: str
    server: str
    load_id: str
    seed: int
    started: str
    """RFC 3339."""
    seconds: float
    interrupted: bool
    planned: int
    """Objects that the plan creates."""
    objects: int
    """Objects created."""
    ready: int
    """Objects seen to be ready."""
    living: int
    """Objects that should exist at the end."""
    busy: float
    """Seconds from the begin until the last object was first seen ready."""
    operations: dict[str, int]
    waits: dict[str, Distribution]
    calls: dict[str, Distribution]
    """Our own calls, by `verb.resource`."""
    errors: dict[str, int]
    """Our own calls that failed for good, by `verb.resource: reason`."""
    lag: Distribution
    """By how much operations began later than planned."""
    queue_time: dict[str, float]
    """p50, p90, p99 of the controllers' queues; empty where it is not known."""
    server_calls: float
    """Requests that the API server answered meanwhile, of everybody; 0 where it is not known."""
    server_writes: float
    """The writes among these."""
    struck_requests: int
    """Requests that faults were done to."""
    calls_per_object: float
    bytes_per_object: float
    """Read and written by the controllers; 0 where it is not known."""
    processes: dict[str, ProcessReport]
    timeline: Timeline
    faults: tuple[Struck, ...]
    failed: int
    failures: tuple[Failure, ...]
    gates: tuple[Verdict, ...] = ()
    phases: tuple[PhaseReport, ...] = ()
    """The phases that ended; the last of them may be the one that broke a gate."""
    phases_planned: int = 0

    @property
    def throughput(self) -> float:
        """Objects ready a second while any became so."""
        return self.operations.get("ready", 0) / self.busy if self.busy > 0 else 0.0

    @property
    def passed(self) -> bool:
        """True when nothing failed that should not: with gates they decide, without them any failure does."""
        verdicts = [*self.gates, *(verdict for phase in self.phases for verdict in phase.gates)]
        return all(verdict.passed for verdict in verdicts) if verdicts else not self.failed


class Findings(msgspec.Struct):
    """The findings that a run hands over to be reported."""

    recorder: Recorder
    series: Series
    usage: dict[str, Usage]
    killed: dict[str, int]
    pages: dict[str, Counters]


def measured(findings: Findings, server: Counters) -> dict[str, Any]:
    """The fields of a report that are figures of what was counted."""
    recorder, timeline = findings.recorder, findings.series
    calls, writes = server_calls(server)
    created, used = recorder.done["create"], processes(findings)
    return {
        "objects": created,
        "operations": dict(recorder.done),
        "waits": {name: Distribution.of(found, steps=True) for name, found in sorted(recorder.waits.items())},
        "calls": {
            f"{verb}.{resource}": Distribution.of(found, steps=True)
            for (verb, resource), found in sorted(recorder.calls.items())
        },
        "errors": {f"{verb}.{kind}: {reason}": count for (verb, kind, reason), count in recorder.errors.items()},
        "lag": Distribution.of(recorder.lag),
        "queue_time": queue_time(findings.pages),
        "server_calls": calls,
        "server_writes": writes,
        "calls_per_object": calls / created if created else 0.0,
        "bytes_per_object": controllers_io(used) / created if created else 0.0,
        "processes": used,
        "timeline": Timeline(tuple(timeline.times), {name: tuple(row) for name, row in timeline.values.items()}),
        "failed": recorder.failed,
        "failures": tuple(recorder.failures),
    }


_WRITES = ("CREATE", "UPDATE", "PATCH", "DELETE", "POST", "PUT", "APPLY", "DELETECOLLECTION")


def server_calls(counters: Counters) -> tuple[float, float]:
    """All requests and the writes among them."""
    total = counters.sum("apiserver_request_total")
    writes = sum(counters.sum("apiserver_request_total", verb=verb) for verb in _WRITES)
    return total, writes


def processes(findings: Findings) -> dict[str, ProcessReport]:
    """Reads /proc for processes of this machine, else their metrics. Of ourselves traffic is that of our calls."""
    found = {
        name: ProcessReport(one.cpu, one.peak, one.io, one.restarts, findings.killed.get(name, 0))
        for name, one in findings.usage.items()
    }
    if own := found.get("simulate"):
        traffic = float(findings.recorder.sent + findings.recorder.received)
        found["simulate"] = msgspec.structs.replace(own, io=traffic)
    for name, counters in findings.pages.items():
        if name not in found and counters.has("process_cpu_seconds_total"):
            peak = findings.series.largest(f"memory {name}")
            found[name] = ProcessReport(counters.sum("process_cpu_seconds_total"), peak, None, 0, 0)
    return found


def queue_time(pages: dict[str, Counters]) -> dict[str, float]:
    """The times over the queues of all pages together."""
    merged = Counters()
    for counters in pages.values():
        for series, value in counters.total.items():
            merged.total[series] = merged.total.get(series, 0.0) + value
    found = {name: merged.quantile(QUEUE_TIME, QUANTILES[name]) for name in ("p50", "p90", "p99")}
    return {name: value for name, value in found.items() if value is not None}


def controllers_io(found: dict[str, ProcessReport]) -> float:
    """Bytes read and written by all replicas of the controllers."""
    return sum(one.io or 0.0 for name, one in found.items() if name.partition("-")[0] == "controllers")


Reported = TypeVar("Reported", RunReport, PhaseReport)


def judged(report: Reported, gates: tuple[Gate, ...], recorder: Recorder) -> Reported:
    """The report of a run or a phase with what became of its gates."""

    def asked(function: str, name: str) -> float | None:
        return quantity(report, recorder, function, name)

    return msgspec.structs.replace(report, gates=tuple(gate.judge(asked) for gate in gates))


def quantity(report: RunReport | PhaseReport, recorder: Recorder, function: str, name: str) -> float | None:
    """The value that a gate asks for; None when it was not measured."""
    if function in ("memory", "cpu"):
        process = report.processes.get(name)
        return None if process is None else process.peak if function == "memory" else process.cpu
    if not function:
        return _scalar(report, name)
    if name == "queue_time":
        return report.queue_time.get(function)
    if name.partition(".")[0] == "calls":
        found = recorder.all_calls(name.partition(".")[2])
    else:
        found = recorder.waits.get(name) or Histogram()
    if function == "count":
        return float(found.count)
    if not found.count:
        return None
    if function in QUANTILES:
        return found.quantile(QUANTILES[function])
    return {"min": found.least, "max": found.largest, "mean": found.mean}[function]


def _scalar(report: RunReport | PhaseReport, name: str) -> float | None:
    if name == "failures":
        return float(report.failed)
    if name == "errors":
        return float(sum(report.errors.values()))
    value: float = getattr(report, name)
    return None if name in ("calls_per_object", "bytes_per_object") and not value else float(value)
