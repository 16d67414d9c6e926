"""What operators see of a fleet: alerts with their runbooks, dashboards, and a page for debugging a process."""

from hortus.engine.observing.alerts import Alert, Example, Severity, groups, rule, runbook
from hortus.engine.observing.dashboards import Board, Panel, Query, dashboard, expressions

__all__ = [
    "Alert",
    "Board",
    "Example",
    "Panel",
    "Query",
    "Severity",
    "dashboard",
    "expressions",
    "groups",
    "rule",
    "runbook",
]
