"""The page and the tables of a report: whole, alone, and harmless whatever the objects were called."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

import pytest

from hortus.simulation.load import Gate, RunReport, Verdict, html
from hortus.simulation.load.histogram import Histogram
from hortus.simulation.load.measuring import Failure, Recorder
from hortus.simulation.load.report import Distribution, PhaseReport, ProcessReport, Timeline, judged
from hortus.simulation.load.striking import Struck
from hortus.simulation.load.tables import gate_rows, phase_rows, summary, titled

_VOID = {"meta"}


def histogram(*values: float) -> Histogram:
    found = Histogram()
    for value in values:
        found.add(value)
    return found


def report(**changes: object) -> RunReport:
    ready = histogram(0.2, 0.4, 3.0)
    found: dict[str, object] = {
        "scenario": "sample",
        "description": "<b>bold</b>",
        "server": "127.0.0.1:1",
        "load_id": "x",
        "seed": 1,
        "started": "2026-01-01T00:00:00Z",
        "seconds": 12.0,
        "interrupted": False,
        "planned": 3,
        "objects": 3,
        "ready": 3,
        "living": 3,
        "busy": 2.0,
        "operations": {"create": 3},
        "waits": {"time_to_ready": Distribution.of(ready, steps=True)},
        "calls": {"create.configmaps": Distribution.of(ready, steps=True)},
        "errors": {"create.configmaps: Conflict": 1},
        "lag": Distribution.of(histogram(2.0)),
        "queue_time": {"p50": 0.001, "p90": 0.01, "p99": 0.1},
        "server_calls": 30.0,
        "server_writes": 10.0,
        "struck_requests": 7,
        "calls_per_object": 10.0,
        "bytes_per_object": 2048.0,
        "processes": {"controllers": ProcessReport(cpu=1.0, peak=2.0**28, io=6144.0, restarts=1, killed=1)},
        "timeline": Timeline((0.0, 1.0, 2.0), {"ready": (0.0, 1.0, None), "cpu seconds controllers": (0.0, 0.5, 1.0)}),
        "faults": (Struck(0.5, 1.5, "latency", "controllers: 0.2"),),
        "failed": 0,
        "failures": (),
    }
    return RunReport(**{**found, **changes})  # type: ignore[arg-type]


class _Tags(HTMLParser):
    """Tags that were opened and not closed, and everything that would be loaded."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loads: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "link", "img", "iframe") or any(name in ("src", "href") for name, _ in attrs):
            self.loads.append(tag)
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        return

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_page_is_whole_and_loads_nothing() -> None:
    hostile = Failure("<img src=x onerror=alert(1)>", "</td><script>alert(1)</script>")
    page = html(report(failed=1, failures=(hostile,)))
    tags = _Tags()
    tags.feed(page)
    assert (tags.open, tags.loads) == ([], [])
    assert hostile.object in tags.text and hostile.problem in tags.text
    assert "<b>bold</b>" in tags.text
    for svg in page.split("<svg")[1:]:
        ElementTree.fromstring("<svg" + svg.partition("</svg>")[0] + "</svg>")


@pytest.mark.parametrize("changes", [{"waits": {}, "calls": {}, "timeline": Timeline((), {}), "processes": {}}])
def test_a_run_that_measured_nothing_has_a_page_too(changes: dict[str, object]) -> None:
    assert "nothing was measured" in html(report(**changes))


@pytest.mark.parametrize(
    ("gate", "shown", "passed"),
    [
        ("p99(time_to_ready) <= 5s", "3.00 s", "passed"),
        ("max(calls.create) < 1ms", "3.00 s", "failed"),
        ("count(calls) == 3", "3", "passed"),
        ("p99(queue_time) < 1s", "100 ms", "passed"),
        ("memory(controllers) <= 200MiB", "256 MiB", "failed"),
        ("cpu(controllers) < 2s", "1.00 s", "passed"),
        ("cpu(nobody) < 2s", "not measured", "failed"),
        ("p99(time_to_healed) < 2s", "not measured", "failed"),
        ("bytes_per_object < 3KiB", "2.00 KiB", "passed"),
        ("calls_per_object <= 9", "10", "failed"),
        ("errors == 0", "1", "failed"),
        ("failures == 0", "0", "passed"),
        ("seconds < 1m", "12.0 s", "passed"),
    ],
)
def test_a_gate_is_shown_with_what_was_measured(gate: str, shown: str, passed: str) -> None:
    recorder = Recorder()
    for value in (0.2, 0.4, 3.0):
        recorder.waited("time_to_ready", value)
        recorder.called("create", "configmaps", value, 10, 10)
    found = judged(report(), (Gate.parse(gate),), recorder)
    assert list(gate_rows(found)) == [(gate, shown, passed)]
    assert found.passed is (passed == "passed")


def test_without_gates_a_failure_fails_the_run() -> None:
    assert report().passed
    assert not report(failed=1).passed


def test_the_figures_that_matter_come_first() -> None:
    found = dict(summary(report()))
    assert found["time to ready, p99"] == "3.00 s"
    assert found["controllers' bytes per object"] == "2.00 KiB"
    assert found["behind the plan, at most"] == "2.00 s"
    assert titled("time_to_ready.shoots") == "shoots to ready"


def phase(name: str, *, passed: bool) -> PhaseReport:
    return PhaseReport(
        name=name,
        kind="load",
        at=1.0,
        seconds=10.0,
        objects=50,
        ready=50,
        waits={"time_to_ready": Distribution.of(histogram(2.0))},
        errors={},
        queue_time={"p99": 0.25},
        calls_per_object=10.0,
        bytes_per_object=1.0,
        processes={"controllers": ProcessReport(cpu=5.0, peak=2.0**27, io=1.0, restarts=0, killed=0)},
        failed=0,
        gates=(Verdict("p99(time_to_ready) <= 3s", 2.0, passed=passed),),
    )


def test_a_run_fails_with_a_phase_that_broke_its_gate_and_shows_where_it_ended() -> None:
    found = report(phases=(phase("slow", passed=True), phase("fast", passed=False)), phases_planned=3)
    assert not found.passed
    assert found.phases[0].throughput == 5
    assert ("phases done", "2 of 3") in list(summary(found))
    row = ("10.0 s", "50", "50", "2.00 s", "2.00 s", "250 ms", "0.50", "128 MiB")
    assert list(phase_rows(found)) == [("slow", *row, "passed"), ("fast", *row, "failed")]
    assert [cells[0] for cells in gate_rows(found)][:2] == [
        "slow: p99(time_to_ready) <= 3s",
        "fast: p99(time_to_ready) <= 3s",
    ]
    assert "<h2>Phases</h2>" in html(found)


def test_the_table_of_phases_is_left_out_where_there_is_one() -> None:
    assert list(phase_rows(report(phases=(phase("1", passed=True),), phases_planned=1))) == []
