"""The Go program that judges schemas, for the tests in this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.oracles.programs import GoProgram, go_program


@pytest.fixture(scope="session")
def kubernetes() -> Iterator[GoProgram]:
    yield from go_program("apiextensions")
