"""Grafana dashboards from a few words: rows of panels, each a title, a unit and its queries.

The JSON is schema version 39 of Grafana, with variables for the Prometheus data source and for namespace, job and pods
of the installation, so that it can be imported anywhere. `$own` in an expression stands for matchers by these
variables.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from hortus.engine.observing.alerts import own_series
from hortus.kube import yaml
from hortus.kube.objects import Object

Kind = Literal["timeseries", "stat", "table", "piechart"]

_COLUMNS = 24
_HEIGHT = 8
_VARIABLES = ("namespace", "job", "pod")
_MATCHERS = ",".join(f'{name}=~"${name}"' for name in _VARIABLES)
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}


class Query(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """PromQL, and how its series are named: `{{label}}` stands for a label."""

    expression: str
    legend: str = ""


class Panel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One picture. `unit` is one of Grafana's: short, s, percentunit, reqps, bytes, dateTimeFromNow."""

    title: str
    queries: tuple[Query, ...]
    kind: Kind = "timeseries"
    unit: str = "short"
    text: str = ""
    """The meaning of the panel and when to act, for its corner."""


class Board(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One dashboard: titled rows of panels, side by side."""

    uid: str
    title: str
    rows: dict[str, tuple[Panel, ...]]


def read_boards(path: Path) -> tuple[Board, ...]:
    """The dashboards of a file: a list of mappings with the fields of `Board`; none without the file.

    Raises YamlError, msgspec.ValidationError.
    """
    return msgspec.convert(yaml.load(path.read_bytes()), tuple[Board, ...]) if path.exists() else ()


def dashboard(board: Board) -> Object:
    """The document that Grafana imports."""
    panels: list[Object] = []
    top = 0
    for title, row in board.rows.items():
        panels.append(_row(title, top))
        panels += [_panel(panel, top + 1, place, len(row)) for place, panel in enumerate(row)]
        top += 1 + _HEIGHT
    for number, panel in enumerate(panels, 1):
        panel["id"] = number
    return {
        "uid": board.uid,
        "title": board.title,
        "tags": ["hortus"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "browser",
        "templating": {"list": [_datasource(), *(_variable(name) for name in _VARIABLES)]},
        "links": [
            {"type": "dashboards", "title": "Hortus", "tags": ["hortus"], "asDropdown": True, "includeVars": True}
        ],
        "panels": panels,
    }


def expressions(board: Board) -> Sequence[str]:
    """Every query of the board."""
    return [query.expression for row in board.rows.values() for panel in row for query in panel.queries]


def _datasource() -> Object:
    return {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source", "hide": 0}


def _variable(name: str) -> Object:
    """A choice of the label's values among the series of Hortus, those of the variables before it; all at first."""
    before = ",".join(f'{other}=~"${other}"' for other in _VARIABLES[: _VARIABLES.index(name)])
    query = f"label_values(hortus_build_info{{{before}}}, {name})"
    return {
        "name": name,
        "label": name.capitalize(),
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": query, "refId": name},
        "definition": query,
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
        "hide": 0,
    }


def _row(title: str, top: int) -> Object:
    return {
        "type": "row",
        "title": title,
        "collapsed": False,
        "gridPos": {"x": 0, "y": top, "w": _COLUMNS, "h": 1},
        "panels": [],
    }


def _panel(panel: Panel, top: int, place: int, of: int) -> Object:
    width = _COLUMNS // of
    made: Object = {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.text,
        "datasource": _SOURCE,
        "gridPos": {"x": place * width, "y": top, "w": width, "h": _HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "options": _OPTIONS[panel.kind],
        "targets": [
            {
                "refId": chr(ord("A") + number),
                "datasource": _SOURCE,
                "expr": own_series(query.expression, _MATCHERS),
                "legendFormat": query.legend or "__auto",
                "instant": panel.kind == "table",
                "format": "table" if panel.kind == "table" else "time_series",
            }
            for number, query in enumerate(panel.queries)
        ],
    }
    return made


_OPTIONS: dict[str, Object] = {
    "timeseries": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
    "stat": {"reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "value"},
    "table": {"showHeader": True},
    "piechart": {"legend": {"displayMode": "list", "placement": "right"}, "pieType": "donut"},
}

__all__ = ["Board", "Panel", "Query", "dashboard", "expressions", "read_boards"]
