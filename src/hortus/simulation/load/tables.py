"""The rows of a report, for the terminal and for the page alike."""

from __future__ import annotations

from collections.abc import Iterator

from hortus.simulation.load.amounts import number, seconds, size
from hortus.simulation.load.gates import Verdict
from hortus.simulation.load.report import PhaseReport, RunReport

Row = tuple[str, ...]
_TITLES = {
    "time_to_ready": "to ready",
    "time_to_rotated": "to rotated",
    "time_to_healed": "to healed",
    "time_to_gone": "to gone",
}
_COUNTS = frozenset({"count", ""})


def summary(report: RunReport) -> Iterator[tuple[str, str]]:
    """The summary at the top: (name, value)."""
    yield "objects created", f"{number(report.objects)} of {number(report.planned)}"
    yield "ready at the end", f"{number(report.ready)} of {number(report.living)}"
    yield "failures", number(report.failed)
    if report.throughput:
        yield "ready a second", number(report.throughput)
    if len(report.phases) < report.phases_planned:
        yield "phases done", f"{len(report.phases)} of {report.phases_planned}"
    if ready := report.waits.get("time_to_ready"):
        yield "time to ready, p50", seconds(ready.p50)
        yield "time to ready, p99", seconds(ready.p99)
    if report.queue_time:
        yield "queue time, p50", seconds(report.queue_time["p50"])
        yield "queue time, p99", seconds(report.queue_time["p99"])
    if report.server_calls:
        yield "calls of everybody", number(report.server_calls)
    if report.calls_per_object:
        yield "calls per object", number(report.calls_per_object)
    if report.bytes_per_object:
        yield "controllers' bytes per object", size(report.bytes_per_object)
    if report.faults:
        yield "faults", number(len(report.faults))
        yield "requests struck", number(report.struck_requests)
    if report.lag.max >= 1:
        yield "behind the plan, at most", seconds(report.lag.max)


def titled(name: str) -> str:
    """A wait as people read it: `time_to_ready.shoots` is `shoots to ready`."""
    base, _, kind = name.partition(".")
    return f"{kind} {_TITLES[base]}" if kind else _TITLES.get(base, base)


def gate_rows(report: RunReport) -> Iterator[Row]:
    """Each gate with what was measured; those of phases first."""
    for phase in report.phases:
        for verdict in phase.gates:
            yield f"{phase.name}: {verdict.gate}", measured(verdict), "passed" if verdict.passed else "failed"
    for verdict in report.gates:
        yield verdict.gate, measured(verdict), "passed" if verdict.passed else "failed"


PHASE_HEADS = ("phase", "for", "created", "ready", "to ready, p50", "p99", "queue, p99", "CPU", "memory", "gates")


def phase_rows(report: RunReport) -> Iterator[Row]:
    """Each phase with its figures, where there are several; CPU (cores on average) and memory are the controllers'."""
    for phase in report.phases if report.phases_planned > 1 else ():
        ready = phase.waits.get("time_to_ready")
        queue = phase.queue_time.get("p99")
        yield (
            phase.name,
            seconds(phase.seconds),
            number(phase.objects),
            number(phase.ready),
            seconds(ready.p50) if ready else "",
            seconds(ready.p99) if ready else "",
            seconds(queue) if queue is not None else "",
            *_of_controllers(phase),
            ("passed" if phase.passed else "failed") if phase.gates else "",
        )


def _of_controllers(phase: PhaseReport) -> Row:
    found = [one for name, one in phase.processes.items() if name.partition("-")[0] == "controllers"]
    if not found or not phase.seconds:
        return "", ""
    return number(sum(one.cpu for one in found) / phase.seconds), size(sum(one.peak for one in found))


def measured(verdict: Verdict) -> str:
    """The value of a gate, in the unit of its kind."""
    if verdict.value is None:
        return "not measured"
    text = verdict.gate.removeprefix("not ")
    function = text.partition("(")[0].strip() if "(" in text else ""
    if function == "memory" or text.startswith("bytes"):
        return size(verdict.value)
    if (function and function != "count") or text.startswith("seconds"):
        return seconds(verdict.value)
    return number(verdict.value)


def process_rows(report: RunReport) -> Iterator[Row]:
    """Each process with what it used."""
    for name, one in report.processes.items():
        io = "unknown" if one.io is None else size(one.io)
        yield name, seconds(one.cpu), size(one.peak), io, str(one.restarts), str(one.killed)
