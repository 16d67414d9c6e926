"""`hortus plan --delete`: what goes with an object, and objects that cannot be deleted."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.plan.planning import planned
from tests.scenarios.running import kubectl, typed


def test_the_deletion_of_a_runtime_takes_its_cluster_along_and_leaves_who_needs_it_in_need(state: Path) -> None:
    plan = planned(state, "--delete", "runtime/demo-1", code=1)
    assert plan["change"] == ["deletion of runtime/demo-1"]
    (cluster,) = plan["clusters"]
    deleted = {(one["kind"], one["where"]) for one in cluster["changes"] if one["action"] == "Deleted"}
    assert {
        ("Runtime", "root"),
        ("GardenerCluster", "root"),
        ("Shoot", "garden"),
        ("ClusterProfile", "root"),
    } <= deleted
    with_data = {one["kind"] for one in cluster["changes"] if one["data"]}
    assert with_data == {"Runtime", "Shoot", "Namespace", "CustomResourceDefinition"}
    needing = {(one["kind"], one["owner"]) for one in plan["problems"]}
    assert needing == {("Kyma", "operator"), ("ClusterAccess", "cluster owner")}
    live = kubectl(state / "kubeconfig", "get", "runtime", "-n", "kcp-system", "demo-1", "-o", "name")
    assert live.stdout.strip().endswith("/demo-1"), "nothing is deleted for real"


@pytest.mark.soak
def test_many_objects_of_a_kind_are_one_row_and_what_takes_data_along_comes_first(state: Path) -> None:
    done = typed(
        "plan",
        "--state-dir",
        str(state),
        "--delete",
        "ns/stacks",
        "--delete",
        "runtimes.infrastructuremanager.kyma-project.io/demo-1",
    )
    rows = [line.split()[:3] for line in done.stdout.splitlines() if line.startswith("  - ")]
    assert rows[0][1] == "CustomResourceDefinition"
    assert ["-", "Namespace", "stacks"] in rows
    folded = [row for row in rows if row[1] == "ClusterRole"]
    assert len(folded) == 1
    assert folded[0][2].startswith("(")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--delete", "runtime/nobody"), "there is no Runtime kcp-system/nobody; -n NAMESPACE names another namespace"),
        pytest.param(
            ("--delete", "nothing/demo-1"), "neither the management cluster nor the garden", marks=pytest.mark.soak
        ),
        pytest.param(
            ("--delete", "shoot/demo-1"), "confirmation.gardener.cloud/deletion", marks=pytest.mark.soak
        ),
        pytest.param(
            ("--delete", "cm/x", "-n", "fleet"), "there is no ConfigMap fleet/x", marks=pytest.mark.soak
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_deleted_is_refused(state: Path, words: tuple[str, ...], message: str) -> None:
    done = typed("plan", "--state-dir", str(state), *words)
    assert (done.returncode, done.stdout) == (1, "")
    assert message in done.stderr


@pytest.mark.parametrize("text", ["runtime", "runtime/", "/demo-1", "a/b/c"])
def test_a_deletion_that_is_no_type_and_name_is_refused_at_once(state: Path, text: str) -> None:
    done = typed("plan", "--state-dir", str(state), "--delete", text)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: --delete {text!r} is not TYPE/NAME, such as runtime/demo-1\n"
