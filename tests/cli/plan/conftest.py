"""The fleet of plans: it is planned over and stays as it is, but for what two tests of `test_plan.py` do to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.scenarios.running import up

CLUSTERS = 3
POLICY = """
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
"""


@pytest.fixture(scope="session")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The state directory of the fleet, whose requests are in its audit log."""
    folder = tmp_path_factory.mktemp("plan")
    policy = folder / "audit.yaml"
    policy.write_text(POLICY)
    words = ("--ephemeral", "--clusters", str(CLUSTERS), "--audit-policy", str(policy))
    with up(folder / "state", *words) as running:
        running.expect(f"ready: runtimes {CLUSTERS}/{CLUSTERS}, kymas {CLUSTERS}/{CLUSTERS}")
        yield folder / "state"
