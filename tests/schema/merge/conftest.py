"""The Go libraries that structured merge is compared with."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, settings
from tests.oracles.programs import GoProgram, go_program

# HORTUS_ORACLE_EXAMPLES=5000 looks far deeper than the default run has time for.
EXAMPLES = int(os.environ.get("HORTUS_ORACLE_EXAMPLES") or 25)
ORACLE = settings(
    max_examples=EXAMPLES,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # shrinking takes minutes; failures print all they need
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
)


@pytest.fixture(scope="session")
def go() -> Iterator[GoProgram]:
    yield from go_program("structuredmerge")
