"""Tables of figures name the commit that their figures are from, in one form on all pages."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from tests.docs.consoles import ROOT

PERFORMANCE = ROOT / "docs" / "performance.md"
OTHERS = (
    "docs/agents/scale.md",
    "docs/clusters/load.md",
    "docs/dashboard.md",
    "docs/garden/audit.md",
    "docs/garden/migration.md",
    "docs/inventory.md",
    "docs/modules/scale.md",
    "docs/modules/watching.md",
    "docs/nodeagent/README.md",
    "docs/plan.md",
    "docs/stacks/scale.md",
)
"""Other pages whose figures the benchmarks print."""
NOTE = re.compile(
    r"^Figures: \[?(?:measured at|written with)(?:\]\(\S*performance\.md#commits-of-figures\))? [0-9a-f]{8}\b"
)
_TABLE = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)
_RULE = re.compile(r"^\|[-:| ]+\|$")
_VALUE = re.compile(r"\d")


def tables(text: str) -> Iterator[tuple[str, str]]:
    """The tables with figures in other columns than the first, each with the paragraph below it."""
    for found in _TABLE.finditer(text):
        head, rule, *rows = found.group().splitlines()
        assert _RULE.match(rule), head
        if any(_VALUE.search(cell) for row in rows for cell in row.strip("|").split("|")[1:]):
            yield head, text[found.end() :].lstrip("\n").partition("\n\n")[0]


def test_each_table_of_the_performance_page_names_its_commit_below() -> None:
    found = list(tables(PERFORMANCE.read_text()))
    assert len(found) > 20
    assert [head for head, below in found if not NOTE.match(below)] == []


@pytest.mark.parametrize("name", OTHERS)
def test_a_page_with_figures_names_their_commits(name: str) -> None:
    notes = [line for line in (ROOT / name).read_text().splitlines() if line.startswith("Figures:")]
    assert notes
    assert [note for note in notes if not NOTE.match(note)] == []
    assert "performance.md#commits-of-figures" in notes[0], "the first note of a page leads to what it says"


def test_no_other_page_has_a_benchmark_without_a_commit() -> None:
    named = {PERFORMANCE, *(ROOT / name for name in OTHERS)}
    pages = [page for page in ROOT.glob("docs/**/*.md") if "tests.benchmarks" in page.read_text()]
    assert [str(page.relative_to(ROOT)) for page in pages if page not in named and list(tables(page.read_text()))] == []
