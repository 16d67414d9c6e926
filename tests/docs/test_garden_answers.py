"""The page of answers about the garden: a row for each thing that was asked for, with tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.docs.named import known_tests

ROOT = Path(__file__).parents[2]
ROWS = [
    found
    for line in (ROOT / "docs/garden/answers.md").read_text().splitlines()
    if (found := re.fullmatch(r"\| (\w+ \d+) \| (.+?) \| (\w+) \| (.+) \|", line)) is not None
]
OWED = {"ARM": 3, "ACL": 12, "Gardenlet": 5, "Audit": 10, "Flux": 6, "Habits": 3, "Gap": 7}


def test_each_topic_has_one_row_for_all_that_it_owes() -> None:
    found = [str(row[1]) for row in ROWS if not row[1].startswith("Case ")]
    assert found == [f"{topic} {number}" for topic, most in OWED.items() for number in range(1, most + 1)]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row[1]))
def test_a_row_of_the_garden_names_tests_that_exist_or_what_is_open(row: re.Match[str]) -> None:
    assert row[3] in ("settled", "partly", "open")
    assert ("Open: " in row[4]) is (row[3] != "settled")
    named = re.findall(r"`(test_\w+)`", row[4])
    assert named or row[3] == "open"
    for name in named:
        assert name in known_tests(), name
