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
from hortus.domains.stacks.metrics import RenderMetrics
from hortus.engine.metrics import EngineMetrics
from hortus.engine.observing import USUAL, Alert, dashboard, expressions, own_series
from hortus.kube import RequestMetrics, durations, yaml
from hortus.render.helm import RenderCounts

ROOT = Path(__file__).resolve().parents[2]
ALERTS = [alert for _, found in contents.ALERTS for alert in found]
BUILT_IN = {"process_cpu_seconds_total", "process_resident_memory_bytes"}
"""Metrics that the Prometheus client itself exports."""


_PREFIXES = (
    *("controller_runtime", "workqueue", "rest_client", "hortus", "infrastructure_manager", "leader", "process"),
    *("unexpected", "lifecycle_mgr", "watcher_listener", "reconcile_duration"),
)
_METRIC = rf"\b(?:{'|'.join(_PREFIXES)})_\w+"


class Example(NamedTuple):
    """Series in the notation of promtool, and whether an alert fires at a time."""

    alert: str
    series: dict[str, str]
    at: float
    """Seconds from the start of the series."""
    fires: bool
    value: float | None = None
    """The value that the alert names."""


def _examples(part: str) -> Iterator[Example]:
    """The examples of the file `alerts.yaml` next to the tests of a part."""
    folder = ROOT / "tests" / (part if part == "engine" else f"domains/{part}")
    for alert, found in yaml.load((folder / "alerts.yaml").read_bytes()).items():
        for one in found:
            yield Example(alert, one["series"], durations.seconds(one["at"]), one["fires"], one.get("value"))


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
    assert fires(prometheus, alert, example, USUAL) == example.fires


FOREIGN = 'namespace="kube-system",container="kubelet",job="kubelet"'


@pytest.mark.oracle
@pytest.mark.parametrize(
    "example", [one for one in EXAMPLES if one.fires], ids=lambda example: f"{example.alert}-of-others"
)
def test_series_of_other_operators_make_no_alert_fire_but_that_hortus_is_gone(
    example: Example, prometheus: GoProgram
) -> None:
    alert = next(alert for alert in ALERTS if alert.name == example.alert)
    assert fires(prometheus, alert, example, FOREIGN) == (alert.name == "HortusDown")


@pytest.mark.oracle
def test_without_any_series_one_alert_fires(prometheus: GoProgram) -> None:
    fired = {
        alert.name
        for alert in ALERTS
        if prometheus.ask(
            expr=own_series(alert.expression, USUAL), wait=alert.wait, at=alert.wait + 60, series=[["other", "1x100"]]
        )["fires"]
    }
    assert fired == {"HortusDown"}


def test_every_selector_is_for_the_installations_own_series() -> None:
    asked = [alert.expression for alert in ALERTS]
    asked += [expression for board in contents.BOARDS for expression in expressions(board)]
    for expression in asked:
        assert re.findall(rf"{_METRIC}(?!\w|{{\$own)", expression) == [], expression


def fires(prometheus: GoProgram, alert: Alert, example: Example, labels: str) -> bool:
    """True when the alert of an installation with the usual labels fires on the series with these `labels`."""
    series = [(labelled(name, labels), values) for name, values in example.series.items()]
    expression = own_series(alert.expression, USUAL)
    if example.value is not None:
        expression = f"({expression}) == {example.value}"
    return bool(prometheus.ask(expr=expression, wait=alert.wait, at=example.at, series=series)["fires"])


def labelled(series: str, labels: str) -> str:
    """The series with further labels, unless it has them."""
    name, _, rest = series.partition("{")
    known = {label.partition("=")[0] for label in rest.rstrip("}").split(",")}
    more = [label for label in labels.split(",") if label.partition("=")[0] not in known]
    return f"{name}{{{','.join([*more, *filter(None, [rest.rstrip('}')])])}}}"


@pytest.mark.oracle
def test_every_query_of_the_dashboards_is_promql(prometheus: GoProgram) -> None:
    for board in contents.BOARDS:
        for expression in expressions(board):
            expression = own_series(expression, USUAL)
            assert prometheus.ask(expr=expression, wait=0, at=0, series=[]) == {"fires": False}, expression


def test_every_alert_has_an_example_that_fires_and_one_that_is_quiet() -> None:
    fires = {alert.name: {example.fires for example in EXAMPLES if example.alert == alert.name} for alert in ALERTS}
    assert fires == {alert.name: {True, False} for alert in ALERTS}


def metric_names() -> set[str]:
    """Names of all exported metrics, with the suffixes of counters and histograms."""
    registry = CollectorRegistry()
    metrics = EngineMetrics(registry)
    metrics.controller("c", workers=1)
    metrics.queue("c")
    metrics.leader("l", lambda: True)
    metrics.sharded("g", _Shards())
    metrics.held("c", lambda: 1)
    metrics.rival("l", lambda: True)
    requests = RequestMetrics(registry)
    requests.answered("GET", "h", "200", 0.1)
    CredentialMetrics(registry)
    RuntimeMetrics(registry)
    registry.register(RenderMetrics(RenderCounts()))
    found_canary = {name for family in canary_families(Book(opened=0.0)) for name in _names(family)}
    AccessMetrics(registry)
    found = {name for family in registry.collect() for name in _names(family)}
    return found | found_canary | BUILT_IN | _named_in_sources()


def _names(family: Metric) -> Iterator[str]:
    suffixes = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}.get(family.type, ("",))
    return (family.name + suffix for suffix in suffixes)


def _named_in_sources() -> set[str]:
    """Metrics of parts that need more than a registry to be made."""
    places = (
        "domains/agents/fleet/metrics.py",
        "domains/agents/operating/metrics.py",
        "domains/inventory/metrics.py",
        "domains/leftovers/metrics.py",
        "domains/modules/kyma/parts.py",
        "domains/modules/kyma/metrics.py",
        "domains/modules/manifests/metrics.py",
        "domains/modules/metrics.py",
        "domains/modules/watching/metrics.py",
        "domains/rollouts/metrics.py",
        "domains/stacks/metrics.py",
        "engine/remote/metrics.py",
        "engine/reloading.py",
        "cli/program.py",
    )
    texts = [(ROOT / "src/hortus" / place).read_text() for place in places]
    recorder = (ROOT / "src/hortus/engine/leftovers/recorder.py").read_text()
    counted = {f"{name}_total" for name in re.findall(r'"(hortus_[a-z_]+)"', recorder)}
    return counted | {
        name
        for text in texts
        for name in re.findall(r'"((?:hortus|lifecycle_mgr|watcher_listener|reconcile)_[a-z_]+)"', text)
    }


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
    read = {name for text in asked for name in re.findall(rf"{_METRIC}\b", text)}
    assert read - known == set()
    assert len(read) > 15


def test_no_panel_of_the_grid_lies_over_another() -> None:
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
