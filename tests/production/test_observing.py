"""Alerts and dashboards: judged by Prometheus' own engine, and by the metrics that the program really has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from tests.oracles.programs import GoProgram, go_program

from hortus.cli.install import contents
from hortus.domains.access.metrics import AccessMetrics
from hortus.domains.canary.book import Book
from hortus.domains.canary.metrics import families as canary_families
from hortus.domains.clusters.metrics import RuntimeMetrics
from hortus.domains.credentials.metrics import CredentialMetrics
from hortus.engine import EngineMetrics
from hortus.engine.observing import dashboard, expressions
from hortus.kube import RequestMetrics, durations, yaml

ROOT = Path(__file__).resolve().parents[2]
ALERTS = [alert for _, found in contents.ALERTS for alert in found]
BUILT_IN = {"process_cpu_seconds_total", "process_resident_memory_bytes"}
"""Of the Prometheus client itself."""


class Example(NamedTuple):
    """Series in the notation of promtool, and whether an alert fires at a time."""

    alert: str
    series: dict[str, str]
    at: float
    """Seconds from the start of the series."""
    fires: bool


def _examples(part: str) -> Iterator[Example]:
    """The examples of the file `alerts.yaml` next to the tests of a part."""
    folder = ROOT / "tests" / (part if part == "engine" else f"domains/{part}")
    for alert, found in yaml.load((folder / "alerts.yaml").read_bytes()).items():
        for one in found:
            yield Example(alert, one["series"], durations.seconds(one["at"]), one["fires"])


EXAMPLES = [example for part, found in contents.ALERTS if found for example in _examples(part)]


@pytest.fixture(scope="module")
def prometheus() -> Iterator[GoProgram]:
    yield from go_program("promql")


@pytest.mark.oracle
@pytest.mark.parametrize(
    "example", EXAMPLES, ids=[f"{example.alert}-{'fires' if example.fires else 'quiet'}" for example in EXAMPLES]
)
def test_an_alert_fires_when_it_should_and_only_then(example: Example, prometheus: GoProgram) -> None:
    alert = next(alert for alert in ALERTS if alert.name == example.alert)
    series = list(example.series.items())
    found = prometheus.ask(expr=alert.expression, wait=alert.wait, at=example.at, series=series)
    assert found == {"fires": example.fires}


@pytest.mark.oracle
def test_every_query_of_the_dashboards_is_promql(prometheus: GoProgram) -> None:
    for board in contents.BOARDS:
        for expression in expressions(board):
            assert prometheus.ask(expr=expression, wait=0, at=0, series=[]) == {"fires": False}, expression


def test_every_alert_has_an_example_that_fires_and_one_that_is_quiet() -> None:
    fires = {alert.name: {example.fires for example in EXAMPLES if example.alert == alert.name} for alert in ALERTS}
    assert fires == {alert.name: {True, False} for alert in ALERTS}


def metric_names() -> set[str]:
    """What the program exports, with the suffixes of counters and histograms."""
    registry = CollectorRegistry()
    metrics = EngineMetrics(registry)
    metrics.controller("c", workers=1)
    metrics.queue("c")
    metrics.leader("l", lambda: True)
    metrics.sharded("g", _Shards())
    metrics.held("c", lambda: 1)
    requests = RequestMetrics(registry)
    requests.answered("GET", "h", "200", 0.1)
    CredentialMetrics(registry)
    RuntimeMetrics(registry)
    found_canary = {name for family in canary_families(Book(opened=0.0)) for name in _names(family)}
    AccessMetrics(registry)
    found = {name for family in registry.collect() for name in _names(family)}
    return found | found_canary | BUILT_IN | _named_in_sources()


def _names(family: Metric) -> Iterator[str]:
    suffixes = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}.get(family.type, ("",))
    return (family.name + suffix for suffix in suffixes)


def _named_in_sources() -> set[str]:
    """Metrics of the pool of remote clusters and of the configuration, which need more than a registry to be made."""
    texts = [(ROOT / "src/hortus/engine" / name).read_text() for name in ("remote/metrics.py", "configuration.py")]
    return {name for text in texts for name in re.findall(r'"(hortus_[a-z_]+)"', text)}


class _Counts:
    changes = gained = interrupted = lost = 0


class _Shards:
    members: list[str] = []  # noqa: RUF012
    joined = True
    counts = _Counts()


def test_alerts_and_dashboards_read_only_metrics_that_exist() -> None:
    known = metric_names()
    asked = [alert.expression for alert in ALERTS]
    asked += [expression for board in contents.BOARDS for expression in expressions(board)]
    pattern = (
        r"\b(?:controller_runtime|workqueue|rest_client|hortus|infrastructure_manager|leader|process|unexpected)_\w+"
    )
    read = {name for text in asked for name in re.findall(pattern, text)}
    assert read - known == set()
    assert len(read) > 15


def test_every_panel_lies_in_the_grid_beside_the_others() -> None:
    for board in contents.BOARDS:
        taken: set[tuple[int, int]] = set()
        panels = dashboard(board)["panels"]
        assert len({panel["id"] for panel in panels}) == len(panels)
        for panel in panels:
            place = panel["gridPos"]
            cells = {
                (x, y)
                for x in range(place["x"], place["x"] + place["w"])
                for y in range(place["y"], place["y"] + place["h"])
            }
            assert not cells & taken, panel["title"]
            assert max(x for x, _ in cells) < 24
            taken |= cells


def test_a_runbook_names_only_alerts_and_pages_that_exist() -> None:
    names = {alert.name for alert in ALERTS}
    for page in (ROOT / "docs" / "runbooks").glob("Hortus*.md"):
        text = page.read_text()
        assert set(re.findall(r"\bHortus[A-Z]\w+", text)) <= names, page.name
        for mentioned in re.findall(r"docs/([\w-]+\.md)", text):
            assert (ROOT / "docs" / mentioned).exists(), f"{page.name}: {mentioned}"
