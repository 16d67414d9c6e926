"""The fleet of plans: it is planned over and stays as it is, but for what the test of a plan's truth does to demo-1."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.plan.edits.shape import PROJECT
from tests.scenarios.running import kubectl, until, up

CLUSTERS = 3
ASLEEP = f"demo-{CLUSTERS}"
"""The cluster that is hibernated before anything is planned: the fleet changes for a while after that."""
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
        shoot = ("shoot", ASLEEP, "-n", PROJECT)
        patch = json.dumps({"spec": {"hibernation": {"enabled": True}}})
        made = kubectl(running.garden, "patch", *shoot, "--type=merge", "-p", patch)
        assert made.returncode == 0, made.stderr

        def sleeps() -> bool:
            status = json.loads(kubectl(running.garden, "get", *shoot, "-o", "json").stdout)["status"]
            return bool(status.get("hibernated") and status["lastOperation"]["state"] == "Succeeded")

        until(sleeps, "the hibernation")
        yield folder / "state"
