"""A report on the terminal: the figures first, then what was slow, what broke, and which gate does not hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import click

from hortus.simulation.load import RunReport
from hortus.simulation.load.amounts import number, seconds
from hortus.simulation.load.report import Distribution
from hortus.simulation.load.tables import PHASE_HEADS, gate_rows, phase_rows, process_rows, summary, titled
from hortus.terminal import Table, clean, print_line, print_table

_SHOWN = 10
"""Failures shown; all that were kept are in JSON and on the page."""


def show(report: RunReport) -> None:
    """Print it."""
    click.echo(f"{clean(report.scenario)}: {verdict(report)} after {seconds(report.seconds)}")
    facts = [f"server {report.server}", f"load id {report.load_id}", f"seed {report.seed}"]
    click.echo(", ".join(facts) + "\n")
    for name, value in summary(report):
        print_line(f"{name:<30} {value}")
    waits = [(titled(name), found) for name, found in report.waits.items()]
    _distributions("TIME", waits)
    _distributions("CALL", report.calls.items())
    _table([head.upper() for head in PHASE_HEADS], list(phase_rows(report)))
    heads = ("PROCESS", "CPU", "MEMORY, PEAK", "READ AND WRITTEN", "RESTARTS", "ON PURPOSE")
    _table(heads, list(process_rows(report)))
    _table(("CALLS THAT FAILED", "TIMES"), [(name, number(count)) for name, count in report.errors.items()])
    failures = [(failure.object, failure.problem) for failure in report.failures[:_SHOWN]]
    _table(("FAILURE", "PROBLEM"), failures)
    if report.failed > len(failures):
        click.echo(f"... and {report.failed - len(failures)} more")
    _table(("GATE", "MEASURED", "RESULT"), list(gate_rows(report)))


def verdict(report: RunReport) -> str:
    """One word."""
    return "interrupted" if report.interrupted else "passed" if report.passed else "failed"


def _distributions(head: str, found: Iterable[tuple[str, Distribution]]) -> None:
    rows = [
        (name, number(one.count), seconds(one.p50), seconds(one.p90), seconds(one.p99), seconds(one.max))
        for name, one in found
    ]
    _table((head, "COUNT", "P50", "P90", "P99", "MAX"), rows)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    if rows:
        click.echo("")
        print_table(Table(list(heads), [list(map(clean, row)) for row in rows]))
