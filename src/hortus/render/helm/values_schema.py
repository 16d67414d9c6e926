"""values.schema.json: each chart's own values against its own schema, the subcharts' after it."""

from __future__ import annotations

import json
from typing import Any

from hortus.render.bounded import Bounded
from hortus.render.helm.chart import Chart
from hortus.render.helm.errors import ChartError
from hortus.schema.jsonschema import JsonSchema, JsonSchemaError

_KEPT_BYTES = 32 << 20
_WEIGHT = 30
"""Bytes of a compiled schema for each of its text, about."""
_SCHEMAS: Bounded[bytes, JsonSchema] = Bounded(_KEPT_BYTES, lambda data, _: _WEIGHT * len(data))


def _compiled(data: bytes) -> JsonSchema:
    found = _SCHEMAS.get(data)
    if found is None:
        try:
            found = JsonSchema.compile(json.loads(data))
        except (ValueError, RecursionError) as error:
            raise JsonSchemaError(
                f"values.schema.json cannot be used, only be passed over (skip_schema): {error}"
            ) from None
        _SCHEMAS.put(data, found)
    return found


def check_values(chart: Chart, values: dict[str, Any]) -> None:
    """Raises ChartError that names every value which does not fit."""
    problems = _problems(chart, values)
    if problems:
        text = "\n".join(problems)
        raise ChartError(f"values don't meet the specifications of the schema(s) in the following chart(s):\n{text}")


def _problems(chart: Chart, values: dict[str, Any]) -> list[str]:
    found: list[str] = []
    if chart.schema is not None:
        try:
            violations = _compiled(chart.schema).validate(values)
        except JsonSchemaError as error:
            return [f"{chart.name}:", str(error)]
        if violations:
            found += [f"{chart.name}:", *(f"- {violation}" for violation in violations)]
    for child in chart.dependencies:
        inner = values.get(child.name)
        if isinstance(inner, dict):
            found += _problems(child, inner)
    return found
