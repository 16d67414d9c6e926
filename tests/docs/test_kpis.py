"""The page of KPIs: its metrics exist, its expressions are the alerts' or tried here, and each has its reasons."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.oracles.programs import GoProgram, go_program
from tests.production.test_observing import metric_names

from hortus.cli.install import contents
from hortus.engine.observing import own_series

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/clusters/kpis.md").read_text()
SECTIONS: dict[str, str] = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE))
EXPRESSIONS = {title: re.findall(r"```promql\n(.*?)\n```", text, re.DOTALL) for title, text in SECTIONS.items()}
ALERTS = {alert.name: alert for _, found in contents.ALERTS for alert in found}
STATE = "infrastructure_manager_im_runtime_state"
DAY = 24 * 60


def state(name: str, state: str, values: str) -> tuple[str, str]:
    return f'{STATE}{{runtimeId="{name}",state="{state}",message="m"}}', values


EXAMPLES: dict[str, tuple[float, list[tuple[str, str]], list[tuple[str, str]]]] = {
    "Time to ready": (
        7200.0,
        [state("a", "Pending", "1x40 _x90"), state("a", "Ready", "_x40 1x90")],
        [state("a", "Pending", "1x9 _x120"), state("a", "Ready", "_x9 1x120")],
    ),
    "Runtimes that are Ready": (
        600.0,
        [state("a", "Pending", "1x30")],
        [state(str(number), "Ready", "1x30") for number in range(5)],
    ),
    "Failed Runtimes": (
        600.0,
        [state("a", "Failed", "1x30"), *(state(str(number), "Ready", "1x30") for number in range(50))],
        [state(str(number), "Ready", "1x30") for number in range(50)],
    ),
    "Rotation lag": (
        600.0,
        [('infrastructure_manager_im_kubeconfig_expiration{runtimeId="a"}', f"{8 * 3600}x30")],
        [('infrastructure_manager_im_kubeconfig_expiration{runtimeId="a"}', f"{10 * 3600}x30")],
    ),
    "Calls to the garden": (
        1800.0,
        [('rest_client_requests_total{host="api.garden.example.org",code="200"}', "0+270x60")],
        [('rest_client_requests_total{host="api.garden.example.org",code="200"}', "0+180x60")],
    ),
    "Canary success": (
        DAY * 60.0,
        [
            ('hortus_canary_runs_total{result="succeeded"}', f"0+1x{DAY}"),
            ('hortus_canary_runs_total{result="failed"}', f"0x600 0+1x{DAY}"),
        ],
        [
            ('hortus_canary_runs_total{result="succeeded"}', f"0+1x{DAY}"),
            ('hortus_canary_runs_total{result="failed"}', f"0x600 1x{DAY}"),
        ],
    ),
    "Canary's time to grow": (
        600.0,
        [('hortus_canary_phase_duration_seconds{phase="Grow"}', "1000x30")],
        [('hortus_canary_phase_duration_seconds{phase="Grow"}', "400x30")],
    ),
    "Processor time": (
        1800.0,
        [('process_cpu_seconds_total{job="hortus",pod="p"}', "0+27x60")],
        [('process_cpu_seconds_total{job="hortus",pod="p"}', "0+12x60")],
    ),
    "Memory": (
        600.0,
        [('process_resident_memory_bytes{job="hortus",pod="p"}', "1000000000x30")],
        [('process_resident_memory_bytes{job="hortus",pod="p"}', "300000000x30")],
    ),
}
"""When to look, series that cross the threshold, series that do not; of the KPIs that are no alert's expression."""


@pytest.fixture(scope="module")
def prometheus() -> Iterator[GoProgram]:
    yield from go_program("promql")


def test_every_kpi_has_one_expression_and_is_explained() -> None:
    assert len(SECTIONS) > 10
    for title, text in SECTIONS.items():
        assert len(EXPRESSIONS[title]) == 1, title
        for word in ("- **Threshold**: ", "- **Why**: ", "- **Do**: "):
            assert text.count(word) == 1, f"{title}: {word}"
        assert f"| [{title}](#" in PAGE, f"{title} is not in the table"


def test_the_expressions_read_only_metrics_that_exist() -> None:
    named = r"\b(?:controller_runtime|workqueue|rest_client|hortus|infrastructure_manager|process)_\w+"
    for title, (expression,) in EXPRESSIONS.items():
        read = set(re.findall(named, expression))
        assert read and read <= metric_names(), title


def test_a_kpi_with_an_alert_has_its_expression_and_all_others_have_examples() -> None:
    for title, (expression,) in EXPRESSIONS.items():
        alert = re.search(r"\*\*Do\*\*: alert \[(\w+)\]", SECTIONS[title])
        if alert is None:
            assert title in EXAMPLES
        else:
            assert expression == own_series(ALERTS[alert[1]].expression, ""), title


@pytest.mark.oracle
@pytest.mark.parametrize("title", EXAMPLES)
def test_a_threshold_is_crossed_when_it_should_be_and_only_then(title: str, prometheus: GoProgram) -> None:
    at, crossed, kept = EXAMPLES[title]
    for series, fires in ((crossed, True), (kept, False)):
        found = prometheus.ask(expr=EXPRESSIONS[title][0], wait=0, at=at, series=series)
        assert found == {"fires": fires}
