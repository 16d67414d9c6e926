"""The page of the twenty wishes: a row for each, and whatever a row names is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.docs.named import known_tests

ROOT = Path(__file__).parents[2]
ROWS = [
    re.fullmatch(r"\| (\d+) \| (.+?) \| (\w+) \| (.+) \|", line)
    for line in (ROOT / "docs/clusters/wishes.md").read_text().splitlines()
    if re.match(r"\| \d", line)
]
FOLDERS = ("src/", "tests/", "examples/", ".ci/")


def test_there_are_twenty_wishes_and_an_open_one_says_what_is_missing() -> None:
    rows = [row for row in ROWS if row is not None]
    assert [int(row[1]) for row in rows] == list(range(1, 21))
    for row in rows:
        assert row[3] in ("settled", "partly", "open")
        assert ("Open: " in row[4]) is (row[3] == "partly")


@pytest.mark.parametrize("row", [row for row in ROWS if row is not None], ids=lambda row: row[2])
def test_code_and_tests_that_settle_a_wish_are_there(row: re.Match[str]) -> None:
    named = re.findall(r"`([^` ]+)`", row[4])
    for path in (name for name in named if name.startswith(FOLDERS)):
        assert (ROOT / path).exists(), path
    for name in (name for name in named if name.startswith("test_")):
        assert name in known_tests(), name
