"""Alerts as one table: Prometheus rules, runbook pages and the tests of both are made from it.

An alert fires only when a person has something to do; its runbook says what, in the order in which to try. Each part of
the program keeps its alerts in a file next to its metrics (`alerts.yaml` of a domain).

Other operators export series of the same names (`workqueue_depth`, say), so every selector of an expression begins with
`$own`, in whose place come matchers for the pods of one installation.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from hortus.kube import durations, yaml
from hortus.kube.objects import Object

USUAL = 'namespace="hortus-system",container="hortus"'
"""The matchers of an installation with the chart's defaults, scraped by a PodMonitor or ServiceMonitor."""
_OWN = "$own"

Severity = Literal["critical", "warning", "info"]


class Alert(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One alert with its runbook."""

    name: str
    expression: str
    """PromQL; what it yields fires. `$own` stands for the matchers of the installation's own series."""
    wait: float
    """Seconds for which that must hold."""
    severity: Severity
    summary: str
    """One line for a pager; may use `{{ $labels.x }}` and `{{ $value }}`."""
    meaning: str
    """The problem, and the people to whom it matters."""
    causes: tuple[str, ...]
    """Likely ones first."""
    steps: tuple[str, ...]
    """The steps to take, in order; each may hold a command in backquotes."""


def read_alerts(path: Path) -> tuple[Alert, ...]:
    """The alerts of a file: a list of mappings with the fields of `Alert`, `wait` as 5m; none without the file.

    Raises YamlError, msgspec.ValidationError.
    """
    if not path.exists():
        return ()
    found = yaml.load(path.read_bytes())
    return msgspec.convert([{**one, "wait": durations.seconds(one["wait"])} for one in found], tuple[Alert, ...])


def own_series(expression: str, matchers: str) -> str:
    """The expression with `matchers`, as `namespace="a",container="hortus"`, in place of `$own`; may be empty."""
    if not matchers:
        return expression.replace(f"{{{_OWN}}}", "").replace(f"{_OWN},", "")
    return expression.replace(_OWN, matchers)


def rule(alert: Alert, matchers: str = _OWN) -> Object:
    """The alerting rule of Prometheus; the chart puts its matchers in place of `$own`."""
    return {
        "alert": alert.name,
        "expr": own_series(alert.expression, matchers),
        "for": durations.from_seconds(alert.wait),
        "labels": {"severity": alert.severity},
        "annotations": {"summary": alert.summary, "description": alert.meaning},
    }


def groups(named: Sequence[tuple[str, Sequence[Alert]]]) -> Object:
    """A file of rules: one group for each part of the program."""
    return {"groups": [{"name": f"hortus.{name}", "rules": [rule(alert) for alert in found]} for name, found in named]}


def runbook(alert: Alert) -> str:
    """The page of an alert, in Markdown."""
    causes = "\n".join(f"- {cause}" for cause in alert.causes)
    steps = "\n".join(f"{number}. {step}" for number, step in enumerate(alert.steps, 1))
    return (
        f"# {alert.name}\n\n"
        f"**{alert.severity.capitalize()}**, when it holds for {durations.from_seconds(alert.wait)}.\n\n"
        f"```promql\n{own_series(alert.expression, USUAL)}\n```\n\n"
        f"## What it means\n\n{alert.meaning}\n\n"
        f"## Likely causes\n\n{causes}\n\n"
        f"## What to do\n\n{steps}\n"
    )


__all__ = ["USUAL", "Alert", "Severity", "groups", "own_series", "read_alerts", "rule", "runbook"]
