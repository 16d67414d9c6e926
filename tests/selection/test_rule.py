"""The tests that `make test` runs follow from their costs and from the lines that they add."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.selection.costs import Spent
from tests.selection.rule import ADDED, CHEAP, Cost, Measured, Record, is_selected, read_measured, weighed

ROOT = Path(__file__).resolve().parents[2]


def record(test: str, own: float, *lines: str, shared: float = 0.0, worker: float = 0.0) -> Record:
    return Record(test=test, own=Spent(own, worker), shared=Spent(shared), lines=frozenset(lines))


@pytest.mark.parametrize(
    ("cost", "runs"),
    [
        (None, True),
        (Cost(CHEAP, 0), True),
        (Cost(10.0, 0), False),
        (Cost(10.0, int(10 * ADDED)), True),
        (Cost(10.0, int(10 * ADDED) - 1), False),
    ],
)
def test_a_test_runs_if_it_is_cheap_or_adds_enough_for_its_cost(cost: Cost | None, *, runs: bool) -> None:
    assert is_selected(cost) is runs


def test_a_test_adds_the_lines_that_neither_cheap_nor_better_ones_reach() -> None:
    measured = weighed(
        [
            record("a.py::slow", 10.0, "one", "two", "three", "four"),
            record("a.py::better", 2.0, "two", "three"),
            record("b.py::cheap", 0.1, "three"),
            record("b.py::repeats", 3.0, "one", "three"),
        ]
    )
    # `better` and `repeats` add half and a third of a line a second, `slow` 0.3 before them, and 0.1 after.
    assert measured == Measured(
        files={"a.py": 12.0, "b.py": 3.1},
        tests={"a.py::better": Cost(2.0, 1), "a.py::slow": Cost(10.0, 1), "b.py::repeats": Cost(3.0, 1)},
    )


def test_the_fixtures_of_a_file_are_paid_by_all_its_tests() -> None:
    measured = weighed([record("a.py::first", 0.1, shared=3.0), record("a.py::second", 0.1, shared=0.0)])
    assert measured.tests == {"a.py::first": Cost(1.6, 0), "a.py::second": Cost(1.6, 0)}


def test_a_test_that_waits_costs_the_time_of_its_worker() -> None:
    measured = weighed([record("a.py::waits", 0.1, worker=4.0), record("b.py::works", 3.0, worker=2.0)])
    assert measured.tests == {"a.py::waits": Cost(4.0, 0), "b.py::works": Cost(3.0, 0)}


def test_what_was_measured_names_files_that_are_there() -> None:
    """Others are what a rename left behind; `make costs` measures again."""
    measured = read_measured()
    named = {*measured.files, *(test.partition("::")[0] for test in measured.tests)}
    assert not sorted(name for name in named if not (ROOT / name).exists())
