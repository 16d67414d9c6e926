"""values.schema.json: each chart's own values against its own schema, the subcharts' after it."""

from __future__ import annotations

from typing import Any

from hortus.render.helm.chart import Chart


def check_values(chart: Chart, values: dict[str, Any]) -> None:
    del chart, values
