"""The fleet of plans, unless a file makes its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.scenarios.running import up


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The state directory of a fleet of one cluster."""
    folder = tmp_path_factory.mktemp("plan")
    with up(folder / "state", "--ephemeral", "--clusters", "1") as running:
        running.expect("runtimes 1/1, kymas 1/1")
        yield folder / "state"
