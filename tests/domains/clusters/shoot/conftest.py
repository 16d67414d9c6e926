"""Gardener's own validation behind every Shoot that the tests of this folder convert from a Runtime."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.domains.clusters.shoot import documents
from tests.gardener.shoots.judging import Judge, judge


@pytest.fixture(scope="session")
def shoot_judge() -> Iterator[Judge | None]:
    """None where the oracle is not built, which `test_judge` reports."""
    yield from judge()


@pytest.fixture(autouse=True)
def each_shoot_is_judged(shoot_judge: Judge | None) -> Iterator[None]:
    """Each Shoot that a test converts from a Runtime is one that Gardener takes."""
    documents.MADE.clear()
    yield
    if shoot_judge is not None:
        assert [refusal for shoot in documents.MADE for refusal in shoot_judge.refusals(shoot)] == []
