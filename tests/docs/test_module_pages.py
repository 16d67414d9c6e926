"""The pages on the contract of modules and on its wishes: no number is missing, and each test they name is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BASE = ROOT / "tests/domains/modules"
PAGES = ("contract", "wishes")
_STEPS = [
    *(f"2.1.2 step {number}" for number in range(1, 18)),
    *(f"2.2.1 step {number}" for number in range(1, 16)),
    *(f"2.2.3 transform {number}" for number in range(1, 7)),
    *(f"2.2.6 step {number}" for number in range(1, 6)),
]
NUMBERS = {
    *(f"2.1.{number}" for number in range(1, 13) if number != 2),
    *("2.2.2", "2.2.3", "2.2.4", "2.2.5", "2.2.7"),
    *("2.3", "2.4", "2.4 agent", "2.5", "2.5 Watchers", "2.5 rotation", "2.6", "2.7", "2.8", "2.9"),
    *_STEPS,
}
BAD_INPUTS = {
    "channel `none`",
    "unknown module",
    "unknown channel",
    "missing template",
    "wrong digest",
    "truncated layer",
    "tar with traversal, links or devices",
    "manifests of 100 MiB",
    "YAML bombs",
    "CRDs whose kinds are used in the same manifest",
    "objects in forbidden namespaces",
    "name clashes between modules",
    "registry down",
    "registry slow",
    "registry lying",
    "expired remote credentials",
    "cluster gone during each of the twelve steps",
    "two kubeconfig Secrets for one Kyma",
    "a remote Kyma with a restricted module or a foreign channel",
    "a remote Kyma with 10,000 modules or huge strings",
}
REQUIREMENTS = 13
LIMITS = "abcdefghijklmno"
WISHES = (
    "3518 3519, 3528, 3529 3520 3521 3524 3526 2904 kyma 18751 2096 1831 1847 2706, 2707 2888 272 1599 "
    "cli 2083, cli 2251 kyma 18450"
)


def rows(page: str) -> dict[str, list[str]]:
    """The rows of all tables, by their first cell."""
    text = (ROOT / f"docs/modules/{page}.md").read_text()
    found = {}
    for line in text.splitlines():
        if line.startswith("| ") and not line.startswith("|---"):
            first, *rest = (cell.strip() for cell in line.strip("|").split(" | "))
            found[first.strip()] = rest
    return found


def named(cells: list[str]) -> list[str]:
    """The tests that cells name."""
    return re.findall(r"`([\w/.]+\.py(?:::\w+)?)`", " ".join(cells))


def test_each_number_of_the_contract_has_a_row_with_tests() -> None:
    found = rows("contract")
    missing = (NUMBERS | BAD_INPUTS) - found.keys()
    assert not missing
    assert [number for number in NUMBERS | BAD_INPUTS if not named(found[number])] == []


def test_each_requirement_wish_and_limit_has_a_row_with_tests() -> None:
    found = rows("wishes")
    expected = [
        *(f"R{number}" for number in range(1, REQUIREMENTS + 1)),
        *(f"({letter})" for letter in LIMITS),
        *_wishes(),
    ]
    assert [row for row in expected if row not in found] == []
    assert [row for row in expected if not named(found[row])] == []


def _wishes() -> list[str]:
    """The issues, with those together that ask for one thing."""
    return re.findall(r"(?:(?:kyma|cli) )?\d+(?:, (?:cli )?\d+)*", WISHES)


@pytest.mark.parametrize("page", PAGES)
def test_the_tests_that_a_page_names_are_there(page: str) -> None:
    absent = []
    for cells in rows(page).values():
        for one in named(cells):
            path, _, test = one.partition("::")
            file = ROOT / path if path.startswith("tests/") else BASE / path
            if not file.is_file() or (test and not re.search(rf"def {test}\(", file.read_text())):
                absent.append(one)
    assert absent == []
