"""Numbers: percentiles within their promise and their memory, series that stay short, gates, pages that can be read."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hortus.simulation.load.conditions import parse_until
from hortus.simulation.load.gates import Gate, GateError
from hortus.simulation.load.histogram import Histogram
from hortus.simulation.load.measuring import Recorder
from hortus.simulation.load.plots import Band, Curve, plot, ticks
from hortus.simulation.load.sampling import Counters, Usage
from hortus.simulation.load.series import Series
from hortus.simulation.load.settings import ScenarioError

durations = st.floats(1e-6, 1e5)


@given(st.lists(durations, min_size=1, max_size=200), st.floats(0, 1))
def test_a_quantile_is_within_one_percent_of_the_true_one(values: list[float], share: float) -> None:
    histogram = Histogram()
    for value in values:
        histogram.add(value)
    true = sorted(values)[max(1, math.ceil(share * len(values))) - 1]
    assert histogram.quantile(share) == pytest.approx(true, rel=0.0101)
    assert histogram.largest == max(values)
    assert histogram.mean == pytest.approx(sum(values) / len(values))


@given(st.lists(durations), st.lists(durations))
def test_merged_histograms_are_one_of_all_values(some: list[float], others: list[float]) -> None:
    left, right, both = Histogram(), Histogram(), Histogram()
    for value in some:
        left.add(value)
        both.add(value)
    for value in others:
        right.add(value)
        both.add(value)
    left.merge(right)
    assert [left.quantile(share / 10) for share in range(11)] == [both.quantile(share / 10) for share in range(11)]
    assert (left.count, left.steps()) == (both.count, both.steps())


def test_a_histogram_stays_small_whatever_it_is_fed() -> None:
    histogram = Histogram()
    for number in range(100_000):
        histogram.add(10 ** (number / 9000 - 8))
    histogram.add(-1.0)
    assert histogram.count == 100_001
    assert histogram.size <= 1301


def test_a_series_keeps_its_span_and_stays_short() -> None:
    series = Series(longest=50)
    for second in range(10_000):
        series.add(float(second), {"grows": float(second), **({"late": 1.0} if second >= 5000 else {})})
    assert 25 <= len(series.times) <= 51
    assert series.times[0] == 0
    assert series.times[-1] >= 9000
    assert series.values["grows"] == series.times
    assert [value is None for value in series.values["late"]] == [at < 5000 for at in series.times]


@pytest.mark.parametrize(
    ("text", "value", "passed"),
    [
        ("p99(time_to_ready) <= 30s", 30.0, True),
        ("p99(time_to_ready) < 30s", 30.0, False),
        ("p50(calls.create) < 20ms", 0.019, True),
        ("memory(controllers) <= 1GiB", 2.0**30, True),
        ("failures == 0", 1.0, False),
        ("throughput>=40/s", 41.0, True),
        ("failures == 0", None, False),
    ],
)
def test_a_gate_compares_in_its_unit_and_lets_nothing_unmeasured_pass(
    text: str, value: float | None, passed: bool
) -> None:
    assert Gate.parse(text).judge(lambda function, name: value).passed is passed


def test_fail_if_is_the_opposite_but_for_what_was_not_measured() -> None:
    gate = Gate.parse("p99(time_to_ready) > 30s", fails_if=True)
    assert [gate.judge(lambda function, name, v=value: v).passed for value in (29.0, 31.0, None)] == [
        True,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("p99(time_to_redy) < 1s", "did you mean time_to_ready"),
        ("failurs == 0", "did you mean failures"),
        ("p99(calls) < soon", "is no gate"),
        ("p99(calls) < 3x", "unit 'x' is not known"),
    ],
)
def test_a_gate_that_is_none_says_what_there_is(text: str, message: str) -> None:
    with pytest.raises(GateError, match=message):
        Gate.parse(text)


READY = {
    "metadata": {"generation": 2},
    "status": {
        "state": "Ready",
        "conditions": [
            {"type": "Ready", "status": "True", "observedGeneration": 2},
            {"type": "Old", "status": "True", "observedGeneration": 1},
        ],
    },
}


@pytest.mark.parametrize(
    ("text", "met"),
    [
        ("condition=Ready", True),
        ("condition=Ready=false", False),
        ("condition=Old", False),
        ("condition=None", False),
        ("jsonpath={.status.state}=Ready", True),
        ("jsonpath=.status.state=Error", False),
        ("jsonpath={.status.conditions[?(@.type=='Old')].status}=True", True),
        ("jsonpath={.status.nothing}", False),
        ("jsonpath={.status}", True),
        ("exists", True),
    ],
)
def test_until_reads_what_kubectl_wait_reads(text: str, met: bool) -> None:
    assert parse_until(text).met(READY) is met


@pytest.mark.parametrize("text", ["", "ready", "condition=", "exists=1", "jsonpath={.a["])
def test_until_refuses_what_it_does_not_know(text: str) -> None:
    with pytest.raises(ScenarioError, match="until: "):
        parse_until(text)


def test_counters_add_up_over_a_restart_of_the_process() -> None:
    counters = Counters()
    for value in (100, 130, 5, 15):
        counters.take(f'# TYPE a counter\na{{code="200"}} {value}\nb 1\n', ("a",))
    assert counters.sum("a", code="200") == 45
    assert not counters.has("b")


def test_a_quantile_of_a_scraped_histogram_lies_within_its_bucket() -> None:
    counters = Counters()
    page = 'q_bucket{le="0.1"} %d\nq_bucket{le="1.0"} %d\nq_bucket{le="+Inf"} %d\n'
    counters.take(page % (7, 7, 7), ("q_bucket",))
    assert counters.quantile("q", 0.5) is None
    counters.take(page % (7 + 50, 7 + 100, 7 + 100), ("q_bucket",))
    assert counters.quantile("q", 0.25) == pytest.approx(0.05)
    assert counters.quantile("q", 0.75) == pytest.approx(0.55)


def test_usage_begins_at_the_first_look_and_goes_on_over_a_restart() -> None:
    usage = Usage()
    for pid, cpu in ((10, 5.0), (10, 6.0), (11, 0.5), (11, 0.75)):
        usage.take(pid, cpu, 1000.0, 0.0)
    assert (usage.cpu, usage.restarts, usage.peak) == (1.75, 1, 1000.0)


def test_what_was_used_since_a_mark_leaves_out_what_was_before() -> None:
    usage = Usage()
    usage.take(10, 5.0, 3000.0, 100.0)
    usage.take(10, 7.0, 1000.0, 150.0)
    mark = usage.mark()
    for cpu, memory, io in ((8.0, 2000.0, 160.0), (10.0, 1500.0, 170.0)):
        usage.take(10, cpu, memory, io)
    found = usage.since(mark)
    assert (found.cpu, found.peak, found.io, found.restarts) == (3.0, 2000.0, 20.0, 0)
    assert (usage.cpu, usage.peak) == (5.0, 3000.0)


def test_counters_since_a_mark_are_their_growth_since_then() -> None:
    counters = Counters()
    for value in (100, 130):
        counters.take(f"a {value}\n", ("a",))
    mark = counters.copy()
    counters.take("a 137\nb 2\n", ("a", "b"))
    assert (counters.since(mark).sum("a"), counters.since(mark).sum("b")) == (7, 2)
    assert (mark.sum("a"), counters.sum("a")) == (30, 37)


def test_a_phase_counts_what_happens_in_it_and_the_run_counts_all() -> None:
    run = Recorder()
    run.did("create")
    first = run.begin_phase()
    run.did("create")
    run.waited("time_to_ready", 1.0)
    run.called("create", "runtimes", 0.1, 5, 6)
    run.refused("create", "runtimes", TimeoutError())
    second = run.begin_phase()
    run.did("ready")
    run.fail("a", "was not ready")
    assert [dict(found.done) for found in (run, first, second)] == [
        {"create": 2, "ready": 1},
        {"create": 1},
        {"ready": 1},
    ]
    assert [found.failed for found in (run, first, second)] == [1, 0, 1]
    assert (first.waits["time_to_ready"].count, first.all_calls().count, first.errors.total()) == (1, 1, 1)
    assert not second.waits


@given(st.floats(1e-6, 1e9))
def test_ticks_are_few_and_reach_the_top(highest: float) -> None:
    found = ticks(highest)
    assert found[0] == 0
    assert found[-1] >= highest * 0.999999
    assert 2 <= len(found) <= 7


points = st.lists(st.tuples(st.floats(0.001, 1e4), st.none() | st.floats(0, 1e6)), max_size=20)


@given(st.lists(points, max_size=3), st.booleans())
def test_a_plot_is_well_formed_whatever_was_measured(lines: list[list[tuple[float, float | None]]], log: bool) -> None:
    drawn = plot(
        [Curve(f"<{number}>", sorted(line, key=lambda point: point[0])) for number, line in enumerate(lines)],
        bands=[Band(1, 2, 'a "fault" <b>')],
        logarithmic=log,
        label="<label>",
    )
    ElementTree.fromstring(f"<div>{drawn}</div>")
    assert "nan" not in drawn
