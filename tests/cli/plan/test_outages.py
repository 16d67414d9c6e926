"""`hortus plan` with outages: a seed without gardenlet, and a plan without the registry."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.scenarios.running import hortus, kubectl, up

pytestmark = pytest.mark.soak
CLUSTER = "demo-1"
MINOR = f"""
apiVersion: infrastructuremanager.kyma-project.io/v1
kind: Runtime
metadata: {{name: {CLUSTER}, namespace: kcp-system}}
spec: {{shoot: {{kubernetes: {{version: 1.35.0}}}}}}
"""


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The state directory of a fleet of one cluster."""
    folder = tmp_path_factory.mktemp("plan")
    with up(folder / "state", "--ephemeral", "--clusters", "1") as running:
        running.expect("runtimes 1/1, kymas 1/1")
        yield folder / "state"


def _planned(state: Path, *words: str, code: int) -> Any:
    done = hortus("plan", "--state-dir", str(state), *words, "-o", "json")
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_a_seed_without_gardenlet_leaves_its_clusters_as_they_are(state: Path) -> None:
    change = state.parent / "seed.yaml"
    change.write_text(MINOR)
    shoots = json.loads(kubectl(state / "garden.kubeconfig", "get", "shoots", "-o", "json").stdout)["items"]
    seed = next(one["spec"]["seedName"] for one in shoots if one["metadata"]["name"] == CLUSTER)
    plan = _planned(state, "-f", str(change), "--without", f"seed/{seed}", "--until", "1d", code=2)
    (cluster,) = (one for one in plan["clusters"] if one["name"] == CLUSTER)
    assert "Shoot" in {one["kind"] for one in cluster["changes"]}
    assert "Node" not in {one["kind"] for one in cluster["changes"]}
    assert plan["ended"] == "Horizon"


def test_a_release_that_is_not_here_yet_fails_offline(state: Path) -> None:
    plan = _planned(state, "--channel", "template-operator/regular=1.1.0", "--offline", code=1)
    assert plan["problems"], "the module cannot be read"
    assert not [one for one in plan["clusters"] for change in one["changes"] if change["rolls"]]
