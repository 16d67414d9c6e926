"""Observability of a fleet: alerts with their runbooks, dashboards, and a page for debugging a process.

The alerts and the dashboard of every process of controllers, whatever its domains, are in `FOLDER`.
"""

from pathlib import Path

from hortus.engine.observing.alerts import USUAL, Alert, Severity, groups, own_series, read_alerts, rule, runbook
from hortus.engine.observing.dashboards import Board, dashboard, expressions, read_boards

FOLDER = Path(__file__).parent

__all__ = [
    "FOLDER",
    "USUAL",
    "Alert",
    "Board",
    "Severity",
    "dashboard",
    "expressions",
    "groups",
    "own_series",
    "read_alerts",
    "read_boards",
    "rule",
    "runbook",
]
