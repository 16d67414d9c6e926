"""A plan as text for a terminal, and as Markdown for a review."""

from __future__ import annotations

from collections.abc import Iterator

from hortus.simulation.plan import texts
from hortus.simulation.plan.model import ClusterGroup, FleetPlan, ObjectChange
from hortus.simulation.plan.sections import sections
from hortus.simulation.plan.texts import (
    SIGNS,
    facts,
    field_lines,
    group_rows,
    place,
    remarks,
    rows_of,
    where,
)
from hortus.terminal.escaping import markdown as escaped


def lines(plan: FleetPlan) -> Iterator[str]:
    """The plan as lines of text."""
    yield texts.headline(plan)
    yield ""
    for title, text in facts(plan):
        yield f"  {title:<13}{text}"
    for group in plan.groups:
        yield ""
        yield f"{texts.group_title(group)}   ({texts.group_time(group)})"
        yield from _changes(group)
    if plan.shared:
        yield ""
        yield "fleet-wide:"
        for row in rows_of((change, 1) for change in plan.shared):
            yield from _change(*row)
    yield from _rest(plan)


def _changes(group: ClusterGroup) -> Iterator[str]:
    for change, count in group_rows(group):
        yield from _change(change, count)


def _change(change: ObjectChange, count: int) -> Iterator[str]:
    remark = remarks(change, count)
    yield f"  {SIGNS[change.action]} {place(change)}  [{where(change)}]{f'  {remark}' if remark else ''}"
    for line in field_lines(change.fields):
        yield f"      {line}"


def _rest(plan: FleetPlan) -> Iterator[str]:
    for title, entries in sections(plan):
        yield ""
        yield f"{title}:"
        for entry in entries:
            yield f"  {entry.title}"
            yield from (f"      {line}" for line in entry.lines)


def markdown(plan: FleetPlan) -> Iterator[str]:
    """The plan as Markdown, for a pull request."""
    yield f"## Plan: {texts.headline(plan)}"
    yield ""
    yield "| | |"
    yield "|---|---|"
    for title, text in facts(plan):
        yield f"| {title} | {escaped(text)} |"
    for group in plan.groups:
        yield ""
        yield f"### {escaped(texts.group_title(group))}"
        yield ""
        yield from _table([*group_rows(group)])
    if plan.shared:
        yield ""
        yield "### Fleet-wide"
        yield ""
        yield from _table([*rows_of((change, 1) for change in plan.shared)])
    for title, entries in sections(plan):
        yield ""
        yield f"### {title.capitalize()}"
        yield ""
        for entry in entries:
            yield f"- {escaped(entry.title)}{''.join(f'<br>{escaped(line)}' for line in entry.lines)}"


def _table(rows: list[tuple[ObjectChange, int]]) -> Iterator[str]:
    yield "| | object | where | fields |"
    yield "|---|---|---|---|"
    for change, count in rows:
        remark = remarks(change, count)
        title = f"{place(change)}{f' ({remark})' if remark else ''}"
        fields = "<br>".join(escaped(line) for line in field_lines(change.fields))
        yield f"| {SIGNS[change.action]} | {escaped(title)} | {escaped(where(change))} | {fields} |"
