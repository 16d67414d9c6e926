"""A plan as text for a terminal, and as Markdown for a review."""

from __future__ import annotations

from collections.abc import Iterator

from hortus.simulation.plan import texts
from hortus.simulation.plan.model import ClusterGroup, FleetPlan, ObjectChange
from hortus.simulation.plan.texts import SIGNS, facts, field_lines, group_rows, place, remarks, stage_time, where


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
        yield "no one cluster:"
        for change in plan.shared:
            yield from _change(change, 1)
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
    if plan.stages:
        yield ""
        yield "stages:"
        for stage in plan.stages:
            yield f"  {stage.rollout} {stage.stage}: {stage.succeeded} of {stage.clusters} done, {stage_time(stage)}"
    if plan.problems:
        yield ""
        yield "what needs somebody:"
        for one in plan.problems:
            yield f"  {one.kind} {one.namespace}/{one.name} {one.state} ({one.owner}): {one.message or one.reason}"
            if one.step:
                yield f"      {one.step}"
    if plan.ongoing:
        yield ""
        yield "what never rests:"
        for restless in plan.ongoing:
            yield f"  {texts.ongoing_line(restless)}"
    if plan.unknown:
        yield ""
        yield "unknown, since it could not be read:"
        for part in plan.unknown:
            yield f"  {texts.side(part.where)}: {', '.join(part.kinds)}: {part.reason}"


def markdown(plan: FleetPlan) -> Iterator[str]:
    """The plan as Markdown, for a pull request."""
    yield f"## Plan: {texts.headline(plan)}"
    yield ""
    yield "| | |"
    yield "|---|---|"
    for title, text in facts(plan):
        yield f"| {title} | {_cell(text)} |"
    for group in plan.groups:
        yield ""
        yield f"### {texts.group_title(group)}"
        yield ""
        yield from _table([*group_rows(group)])
    if plan.shared:
        yield ""
        yield "### No one cluster"
        yield ""
        yield from _table([(change, 1) for change in plan.shared])
    rest = [*_rest(plan)]
    for line in rest:
        yield f"### {line[:-1].capitalize()}\n" if line.endswith(":") and not line.startswith(" ") else _item(line)


def _table(rows: list[tuple[ObjectChange, int]]) -> Iterator[str]:
    yield "| | object | where | fields |"
    yield "|---|---|---|---|"
    for change, count in rows:
        remark = remarks(change, count)
        title = f"{place(change)}{f' ({remark})' if remark else ''}"
        fields = "<br>".join(_cell(line) for line in field_lines(change.fields))
        yield f"| {SIGNS[change.action]} | {_cell(title)} | {where(change)} | {fields} |"


def _item(line: str) -> str:
    return f"- {_cell(line.strip())}" if line.strip() else ""


def _cell(text: str) -> str:
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|").replace("\n", " ")
    return escaped.replace("*", "\\*").replace("_", "\\_")
