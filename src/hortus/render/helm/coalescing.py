"""Values of a chart and its subcharts laid over each other, with Helm's rules.

What the user gives wins over the chart's defaults, tables are merged, everything else is replaced; `null` takes a key
away. A parent's values for a subchart, and its `global` table, reach the subchart. `merge` keeps nulls where
coalescing drops their keys: what comes later must still see them.
"""

from __future__ import annotations

from typing import Any

from hortus.render.gotemplate.values import type_name
from hortus.render.helm.chart import Chart
from hortus.render.helm.errors import ChartError

GLOBAL = "global"
_DEEPEST = 200
Table = dict[str, Any]


def copied(value: Any, depth: int = 0) -> Any:
    """A deep copy; whole numbers become float64, as all numbers of a values file are. Raises ChartError."""
    if depth > _DEEPEST:
        raise ChartError(f"values are nested deeper than {_DEEPEST} levels")
    kind = type(value)
    if kind is dict:
        return {key: copied(part, depth + 1) for key, part in value.items()}
    if kind is list:
        return [copied(part, depth + 1) for part in value]
    if kind is int:
        return float(value)
    if isinstance(value, dict):
        return {str(key): copied(part, depth + 1) for key, part in value.items()}
    if isinstance(value, tuple):
        return [copied(part, depth + 1) for part in value]
    return value


def coalesced(chart: Chart, values: Table, *, merge: bool = False) -> Table:
    """The values that the chart's templates see. Raises ChartError."""
    return _coalesce(chart, copied(values), merge)


def _coalesce(chart: Chart, values: Table, merge: bool) -> Table:
    _lay_defaults(chart, values, merge)
    for child in chart.dependencies:
        known = values.setdefault(child.name, {})
        if type(known) is not dict:
            raise ChartError(f"type mismatch on {child.name}: a table is wanted, not {type_name(known)}")
        _lay_globals(known, values)
        values[child.name] = _coalesce(child, known, merge)
    return values


def _lay_defaults(chart: Chart, values: Table, merge: bool) -> None:
    children = {child.name for child in chart.dependencies}
    for key, default in copied(chart.values).items():
        if key not in values:
            values[key] = default
        elif values[key] is None:
            if not merge:
                del values[key]
        elif type(values[key]) is dict and type(default) is dict:
            lay_under(values[key], default, merge=merge or key in children)


def _lay_globals(target: Table, source: Table) -> None:
    """The parent's global table over the child's."""
    known = target.get(GLOBAL, {})
    given = source.get(GLOBAL, {})
    if type(known) is not dict or type(given) is not dict:
        return
    for key, value in given.items():
        if type(value) is dict:
            copy = dict(value)
            if key not in known:
                known[key] = copy
            elif type(known[key]) is dict:
                lay_under(copy, known[key], merge=True)
                known[key] = copy
        elif type(known.get(key)) is not dict:
            known[key] = value
    target[GLOBAL] = known


def lay_under(target: Table, source: Table, *, merge: bool) -> Table:
    """The target with what only the source has; the target's own values stay. Changes both, as Helm does."""
    real = {key for key, value in source.items() if value is not None}
    for key, value in target.items():
        if value is None:
            source[key] = None
    for key, value in source.items():
        if key not in target:
            target[key] = value
            continue
        known = target[key]
        if known is None and not merge and key in real:
            del target[key]
        elif type(value) is dict and type(known) is dict:
            lay_under(known, value, merge=merge)
    return target


def merged_values(*layers: Table) -> Table:
    """Values files laid over each other, the later over the earlier; a null stays, to take a default away later."""
    found: Table = {}
    for layer in layers:
        found = _overlaid(found, layer)
    return found


def _overlaid(below: Table, above: Table) -> Table:
    found = dict(below)
    for key, value in above.items():
        known = found.get(key)
        found[key] = _overlaid(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return found


class NoValue(LookupError):
    """No such table or value."""


def table_at(values: Table, path: str) -> Table:
    """The table at a dotted path. Raises NoValue."""
    found = values
    for name in path.split("."):
        inner = found.get(name)
        if not isinstance(inner, dict):
            raise NoValue(f'"{name}" is not a table')
        found = inner
    return found


def value_at(values: Table, path: str) -> Any:
    """The value at a dotted path, which must not be a table. Raises NoValue."""
    before, _, name = path.rpartition(".")
    try:
        table = table_at(values, before) if before else values
    except NoValue:
        raise NoValue(f'"{name}" is not a value') from None
    if name not in table or isinstance(table[name], dict):
        raise NoValue(f'"{name}" is not a value')
    return table[name]
