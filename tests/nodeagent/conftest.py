from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from tests.oracles.programs import GoProgram, go_program


@pytest.fixture(scope="session")
def gardener() -> Iterator[GoProgram]:
    """The code of Gardener's own node agent."""
    yield from go_program("gardenernodeagent")


@pytest.fixture(autouse=True, scope="package")
def quick_disk() -> Iterator[None]:
    """Syncs of thousands of files would wait for the machine's disk; no test here cuts the power."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield
