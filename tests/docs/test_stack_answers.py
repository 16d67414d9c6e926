"""The page of answers about cluster stacks: a row for each objection, wish and defect, with tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.docs.named import known_tests

ROOT = Path(__file__).parents[2]
ROWS = [
    found
    for line in (ROOT / "docs/stacks/answers.md").read_text().splitlines()
    if (found := re.fullmatch(r"\| (\w+(?: \d+)?) \| (.+?) \| (\w+) \| (.+) \|", line)) is not None
]
ROWS = [row for row in ROWS if row[1] != "row"]
OWED = [*map(str, range(1, 17)), *(f"D{number}" for number in range(1, 22))]
WORDS: tuple[str, ...] = (
    "ClusterStack",
    "ClusterStackRelease",
    "ClusterAddon",
    "ClusterClass",
    "Release",
    "Tag",
    "Channel",
    "Catalog",
)


def test_each_objection_and_each_defect_has_one_row() -> None:
    found = [row[1] for row in ROWS]
    assert [one for one in found if one in OWED] == OWED
    assert len(found) == len(set(found))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row[1]))
def test_a_row_names_tests_that_exist_or_what_is_open(row: re.Match[str]) -> None:
    assert row[3] in ("settled", "partly", "open")
    assert ("Open: " in row[4]) is (row[3] != "settled")
    named = re.findall(r"`(test_\w+)`", row[4])
    assert named or row[3] != "settled"
    for name in named:
        assert name in known_tests(), name


def test_every_word_that_the_glossary_owes_is_there() -> None:
    page = (ROOT / "docs/stacks/glossary.md").read_text()
    for word in WORDS:
        assert f"**{word}**" in page, word
