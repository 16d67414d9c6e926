"""`hortus plan` with outages: a seed without gardenlet, and a plan without the registry."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.plan.planning import planned
from tests.scenarios.running import kubectl, up

pytestmark = pytest.mark.soak
CLUSTER = "demo-1"
MINOR = f"""
apiVersion: infrastructuremanager.kyma-project.io/v1
kind: Runtime
metadata: {{name: {CLUSTER}, namespace: kcp-system}}
spec: {{shoot: {{kubernetes: {{version: 1.35.0}}}}}}
"""
STACK = """
apiVersion: clusterstack.x-k8s.io/v1alpha1
kind: ClusterStack
metadata: {{name: sample-1-35, namespace: stacks}}
spec:
  {{provider: docker, name: sample, kubernetesVersion: "1.35", noProvider: true, versions: {}, autoSubscribe: {}}}
"""
STACK_CLUSTER = """
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: shop, namespace: stacks}
spec: {topology: {class: docker-sample-1-34-v1, version: v1.34.1}}
"""


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The state directory of a fleet of one cluster: what fails, fails once."""
    folder = tmp_path_factory.mktemp("plan")
    with up(folder / "state", "--ephemeral", "--clusters", "1") as running:
        running.expect("runtimes 1/1, kymas 1/1")
        yield folder / "state"


def test_a_seed_without_gardenlet_leaves_its_clusters_as_they_are(state: Path) -> None:
    change = state.parent / "seed.yaml"
    change.write_text(MINOR)
    shoots = json.loads(kubectl(state / "garden.kubeconfig", "get", "shoots", "-o", "json").stdout)["items"]
    seed = next(one["spec"]["seedName"] for one in shoots if one["metadata"]["name"] == CLUSTER)
    plan = planned(state, "-f", str(change), "--without", f"seed/{seed}", "--until", "1d", code=2)
    (cluster,) = (one for one in plan["clusters"] if one["name"] == CLUSTER)
    assert "Shoot" in {one["kind"] for one in cluster["changes"]}
    assert "Node" not in {one["kind"] for one in cluster["changes"]}
    assert plan["ended"] == "Horizon"


@pytest.mark.parametrize("outage", [("--offline",), ("--without", "registry")])
def test_a_module_version_that_is_not_here_yet_fails_and_everything_else_isplanned(
    state: Path, outage: tuple[str, ...]
) -> None:
    change = state.parent / "placed.yaml"
    change.write_text(MINOR)
    plan = planned(state, "--channel", "template-operator/regular=1.1.0", "-f", str(change), *outage, code=1)
    (problem,) = plan["problems"]
    assert (problem["kind"], problem["name"], problem["owner"]) == ("Kyma", CLUSTER, "operator")
    assert "template-operator 1.1.0" in problem["message"]
    assert "cannot be reached" in problem["message"]
    assert problem["step"]
    (cluster,) = plan["clusters"]
    assert not [change for change in cluster["changes"] if change["rolls"]], "the module cannot be read"
    shoot = next(change for change in cluster["changes"] if change["kind"] == "Shoot")
    versions = {field["path"]: field["after"] for field in shoot["fields"]}
    assert versions["spec.kubernetes.version"] == "1.35.0"


@pytest.mark.parametrize("release", ["", "[v1]"])
def test_a_stack_release_that_is_not_here_yet_needs_somebody(state: Path, release: str) -> None:
    change = state.parent / "stack.yaml"
    change.write_text(STACK.format(release or "[]", json.dumps(not release)))
    plan = planned(state, "-f", str(change), "--without", "registry", code=1)
    problems = {problem["kind"]: problem for problem in plan["problems"]}
    problem = problems["ClusterStackRelease" if release else "ClusterStack"]
    assert problem["owner"] == "operator"
    assert "cannot be reached" in problem["message"]
    assert plan["ended"] == "Rest"


def test_a_stack_release_that_was_fetched_before_is_there_without_the_registry(state: Path) -> None:
    change = state.parent / "cluster.yaml"
    change.write_text(STACK_CLUSTER)
    plan = planned(state, "-f", str(change), "--without", "registry", code=2)
    (cluster,) = plan["clusters"]
    assert "ClusterAddon" in {one["kind"] for one in cluster["changes"]}
