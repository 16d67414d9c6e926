"""A plan as one HTML file that prints: no script, nothing loaded from elsewhere, light or dark as the system is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from hortus.simulation.load.page import document
from hortus.simulation.plan import texts
from hortus.simulation.plan.model import ClusterGroup, FleetPlan, ObjectChange
from hortus.simulation.plan.sections import FIRST, SectionEntry, sections
from hortus.simulation.plan.texts import SIGNS, duration, facts, field_lines, group_rows, place, remarks, rows_of, where
from hortus.terminal.escaping import html as escape

_STYLE: Final = """<style>
.plan td{white-space:normal}.plan td.sign{width:1.6rem;font-weight:700;text-align:center}
.sign.Created{color:var(--good)}
.sign.Deleted,.sign.Replaced,.alarm{color:var(--bad)}.sign.Changed{color:var(--c2)}.plan td.where{white-space:nowrap;
color:var(--dim);width:9rem}.field{font:12.5px/1.5 ui-monospace,monospace;color:var(--dim);overflow-wrap:anywhere}
.field b{color:var(--text);font-weight:500}summary{cursor:pointer;font-weight:600;font-size:1.02rem}
summary .dim{font-weight:400;font-size:.9rem}details.group{background:var(--card);border:1px solid var(--edge);
border-radius:.5rem;padding:.8rem 1rem;margin-top:.8rem;overflow-x:auto}details table{margin-top:.6rem}
.names{color:var(--dim);font-size:.85rem;overflow-wrap:anywhere}.names summary{font-weight:400;font-size:.85rem}
.names p{margin:.3rem 0}
@media print{body{padding:0;background:#fff;color:#000}details.group,section{break-inside:avoid-page;border-color:#bbb}
details::details-content{content-visibility:visible}}
</style>"""


def html(plan: FleetPlan) -> str:
    """The whole document."""
    body = "".join((_STYLE, _head(plan), *_sections(plan, first=True), *_groups(plan), *_sections(plan, first=False)))
    return document(f"Plan: {texts.headline(plan)}", body)


def _head(plan: FleetPlan) -> str:
    verdict, tone = _verdict(plan)
    sums = plan.sums
    cards = [
        (str(sums.clusters), "clusters change"),
        (str(sums.created), "objects created"),
        (str(sums.changed), "changed"),
        (str(sums.replaced + sums.deleted), "deleted or replaced"),
        (str(sums.rolls), "workloads roll"),
        (str(sums.data), "deletions take data along"),
        (str(len(plan.problems)), "objects need somebody"),
        (duration(plan.seconds), "until the last write"),
    ]
    shown = "".join(f"<div><b>{escape(number)}</b><span>{escape(text)}</span></div>" for number, text in cards)
    remarks_on = "".join(
        f"<p><span class='dim'>{escape(title)}</span> {escape(text)}</p>" for title, text in facts(plan)
    )
    return (
        f'<h1>Plan<span class="verdict {tone}">{verdict}</span></h1><p class="dim">made at {escape(plan.began)}</p>'
        f'<div class="facts">{shown}</div><section>{remarks_on}</section>'
    )


def _verdict(plan: FleetPlan) -> tuple[str, str]:
    if plan.fails:
        return "fails", "bad"
    return ("changes", "good") if plan.changes_something else ("no change", "good")


def _groups(plan: FleetPlan) -> Iterator[str]:
    for number, group in enumerate(plan.groups):
        more = _names(group) if group.count > texts.NAMES else ""
        title = f"{escape(texts.group_title(group))} <span class='dim'>{escape(texts.group_time(group))}</span>"
        yield (
            f'<details class="group"{" open" if number < 8 else ""}><summary>{title}</summary>{more}'
            f"{_table(group_rows(group))}</details>"
        )
    if plan.shared:
        rows = rows_of((change, 1) for change in plan.shared)
        yield f'<details class="group" open><summary>Fleet-wide</summary>{_table(rows)}</details>'


def _names(group: ClusterGroup) -> str:
    return (
        f'<details class="names"><summary>all {group.count}</summary>'
        f"<p>{escape(', '.join(group.clusters))}</p></details>"
    )


def _table(rows: Iterable[tuple[ObjectChange, int]]) -> str:
    return f'<table class="plan">{"".join(_row(*row) for row in rows)}</table>'


def _row(change: ObjectChange, count: int) -> str:
    remark = remarks(change, count)
    tone = " alarm" if change.data or change.rolls else " dim"
    said = f' <span class="{tone.strip()}">{escape(remark)}</span>' if remark else ""
    fields = "".join(f'<div class="field">{escape(line)}</div>' for line in field_lines(change.fields))
    return (
        f'<tr><td class="sign {change.action}">{SIGNS[change.action]}</td>'
        f'<td class="where">{escape(where(change))}</td>'
        f"<td>{escape(place(change))}{said}{fields}</td></tr>"
    )


def _sections(plan: FleetPlan, *, first: bool) -> Iterator[str]:
    """The sections after the changes; those that need somebody come `first`."""
    for title, entries in sections(plan):
        if (title in FIRST) == first:
            body = "".join(_entry(one) for one in entries)
            head = f"<h2>{escape(title.capitalize())}</h2>"
            yield f'<section class="wide">{head}<table class="plan">{body}</table></section>'


def _entry(entry: SectionEntry) -> str:
    lines = "".join(f'<div class="field">{escape(line)}</div>' for line in entry.lines)
    return f"<tr><td>{escape(entry.title)}{lines}</td></tr>"
