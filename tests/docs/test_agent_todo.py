"""The page about the list of the Go operator's maintainers names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.docs.named import known_tests

ROOT = Path(__file__).parents[2]
AGENTS = ROOT / "tests/domains/agents"
PAGE = (ROOT / "docs/agents/todo.md").read_text()
ROWS = [
    found for line in PAGE.splitlines() if (found := re.fullmatch(r"\| (.+?) \| (.+) \| (.+) \|", line)) is not None
]
ROWS = [row for row in ROWS if row[1] != "item"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row[1]))
def test_a_row_names_tests_that_exist(row: re.Match[str]) -> None:
    named = re.findall(r"`([^`]+)`", row[3])
    assert named or row[3] == "the same"
    for name in named:
        if "/" in name:
            assert (ROOT / name).exists(), name
        elif name.endswith(".py"):
            assert list(AGENTS.rglob(name)), name
        else:
            assert name in known_tests(), name


def test_the_page_has_a_row_for_each_item() -> None:
    assert len(ROWS) == len({row[1] for row in ROWS}) > 25
