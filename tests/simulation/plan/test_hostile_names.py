"""A plan about objects of other people, whose names, kinds and messages would be markup."""

from __future__ import annotations

import re

import pytest
from markdown_it import MarkdownIt
from tests.terminal.test_escaping import HOSTILE, read, words

from hortus.cli.plan import commands
from hortus.simulation.plan import page, printing
from hortus.simulation.plan.model import (
    ClusterGroup,
    FieldChange,
    FleetPlan,
    ObjectChange,
    Ongoing,
    PlannedProblem,
    StagePlan,
    Sums,
    UnknownPart,
    WaitingKind,
)
from hortus.terminal import OutputFormat

_RENDERER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def plan_of(text: str) -> FleetPlan:
    """A plan in which every text of others is this one."""
    fields = (FieldChange(path=text, before=text, after={text: text}),)
    changes = [
        ObjectChange(where=where, group=text, kind=text, namespace=text, name=text, action="Changed", fields=fields)
        for where in ("root", "garden", text)
    ]
    loop, renewed = (
        Ongoing(where=text, kind=text, name=text, writes=3, how=how, managers=(text, text), fields=fields, period=60.0)
        for how in ("loop", "recurring")
    )  # fmt: skip
    problem = PlannedProblem(
        cluster=text, kind=text, namespace=text, name=text, state=text, reason=text, message=text, owner=text, step=text
    )
    return FleetPlan(
        began="2026-01-01T00:00:00Z", change=(text,), ended="Rest", settled=True, seconds=60.0, sums=Sums(changed=3),
        groups=(ClusterGroup(clusters=(text,), changes=tuple(changes), counts=(1, 1, 1)),), shared=tuple(changes),
        stages=(StagePlan(rollout=text, stage=text, clusters=1, succeeded=1, failed=0, skipped=0, approved=True,
                          seconds=5.0),),
        problems=(problem,), ongoing=(loop, renewed),
        unknown=(UnknownPart(where=text, kinds=(text,), reason=text, fix=text),),
        waits=(WaitingKind(where=text, kind=text, version=text, reason=text, controllers=(text,)),),
    )  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_no_name_is_markup_in_the_markdown_of_a_plan(text: str) -> None:
    rendered = _RENDERER.render("\n".join(printing.markdown(plan_of(text))))
    # The plan's own line breaks in lists and tables are HTML, which this renderer escapes in cells of tables.
    own = re.sub(r"&lt;br&gt;|<br\s*/?>", " ", rendered)
    tags = {"h2", "h3", "ul", "li", "table", "thead", "tbody", "tr", "th", "td"}
    assert set(re.findall(r"</?([a-z0-9]+)", own)) <= tags
    assert not re.search(r"@\w|#\d", own.replace("&#", ""))
    if words(text):
        assert read(own).count(words(text)[:50]) >= 15


@pytest.mark.parametrize("text", [one for one in HOSTILE if one])
def test_no_name_is_markup_in_the_page_of_a_plan(text: str) -> None:
    plain, found = (page.html(plan_of(one)) for one in ("plain", text))
    assert re.findall(r"</?[a-z0-9!]+", found) == re.findall(r"</?[a-z0-9!]+", plain)
    assert not re.search("[\x00-\x09\x0b-\x1f\u202e\u2028]", found)


@pytest.mark.parametrize("text", HOSTILE)
def test_no_name_moves_the_cursor_of_a_terminal(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("table", "markdown", "html"):
        commands._print(plan_of(text), OutputFormat(name))
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\u2028]", capsys.readouterr().out)
