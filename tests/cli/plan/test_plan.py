"""`hortus plan` over a running `hortus up`: its truth, its harmlessness, its output and its refusals."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import orjson
import pytest
from tests.cli.plan.truth import Fleet, edits, founding, outcome, quick_edits
from tests.scenarios.running import hortus, kubectl, up

from hortus.cli.flags import FLAGS

CLUSTERS = 2
PARTS, PLANNED = 4, 50
"""Fleets one after the other, and the random changes of each."""
POLICY = """
apiVersion: audit.k8s.io/v1
kind: Policy
rules: [{level: Metadata}]
"""
RIGHTS = """
apiVersion: v1
kind: ServiceAccount
metadata: {name: planner, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: planner}
rules: [{apiGroups: ["*"], resources: ["*"], verbs: [get, list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: planner}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: planner}
subjects: [{kind: ServiceAccount, name: planner, namespace: default}]
"""


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The state directory of a fleet of two clusters."""
    folder = tmp_path_factory.mktemp("plan")
    with up(folder / "state", "--ephemeral", "--clusters", str(CLUSTERS)) as running:
        running.expect(f"ready: runtimes {CLUSTERS}/{CLUSTERS}, kymas {CLUSTERS}/{CLUSTERS}")
        yield folder / "state"


def _runtime(version: str, name: str = "demo-1") -> str:
    return (
        "apiVersion: infrastructuremanager.kyma-project.io/v1\nkind: Runtime\n"
        f"metadata: {{name: {name}, namespace: kcp-system}}\nspec: {{shoot: {{kubernetes: {{version: {version}}}}}}}\n"
    )


def _limited(state: Path, file: Path, name: str) -> Path:
    """A kubeconfig like `file`, of an account that can get, list and watch."""
    applied = kubectl(file, "apply", "-f", "-", stdin=RIGHTS)
    assert applied.returncode == 0, applied.stderr
    token = kubectl(file, "create", "token", "planner", "-n", "default", "--duration=1h").stdout.strip()
    shown = json.loads(kubectl(file, "config", "view", "--raw", "--minify", "-o", "json").stdout)
    shown["users"][0]["user"] = {"token": token}
    made = state.parent / name
    made.write_text(json.dumps(shown))
    made.chmod(0o600)
    return made


def _versions(file: Path, kinds: str) -> dict[tuple[str, str, str], str]:
    """The resource versions of all objects of `kinds`."""
    items = json.loads(kubectl(file, "get", kinds, "-A", "-o", "json").stdout)["items"]
    return {
        f"{one['kind']} {one['metadata'].get('namespace')}/{one['metadata']['name']}": one["metadata"][
            "resourceVersion"
        ]
        for one in items
    }


def _requests(state: Path) -> Counter[str]:
    """The requests of plans in the audit log, by verb."""
    lines = (state / "logs" / "audit.log").read_bytes().splitlines()
    events = [orjson.loads(line) for line in lines if line]
    return Counter(one["verb"] for one in events if one.get("userAgent", "").startswith("hortus-plan"))


def _planned(state: Path, *words: str, code: int = 2) -> Any:
    done = hortus("plan", "--state-dir", str(state), *words, "-o", "json")
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout)


async def test_what_is_planned_is_what_happens(state: Path) -> None:
    fleet = Fleet(state)
    for edit in quick_edits():
        assert await outcome(fleet, edit) == [], edit.text


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("part", range(PARTS))
async def test_what_is_planned_is_what_happens_for_many_changes(tmp_path: Path, part: int) -> None:
    missed = {}
    with up(tmp_path / "state", "--ephemeral", "--clusters", "3") as running:
        running.expect("ready: runtimes 3/3, kymas 3/3")
        fleet = Fleet(tmp_path / "state")
        for edit in founding():
            assert await outcome(fleet, edit) == [], edit.text
        for number, edit in zip(range(PLANNED), edits(Random(part), 3), strict=False):
            if found := await outcome(fleet, edit):
                missed[f"{number}: {edit.text}"] = found
            print(f"{number + 1 - len(missed)} of {number + 1} changes came as planned; {edit.text}", flush=True)
    assert missed == {}, f"{PLANNED - len(missed)} of {PLANNED} changes came as planned"


def test_a_plan_leaves_the_live_side_as_it_is_and_needs_no_permission_to_write(tmp_path: Path) -> None:
    state, policy, change = tmp_path / "state", tmp_path / "audit.yaml", tmp_path / "minor.yaml"
    policy.write_text(POLICY)
    change.write_text(_runtime("1.35.0"))
    with up(state, "--ephemeral", "--clusters", "1", "--audit-policy", str(policy)) as running:
        running.expect("runtimes 1/1, kymas 1/1")
        plan = _planned_with_few_permissions(state, change)
    sent = _requests(state)  # the log is complete once the server has stopped
    assert {*sent} == {"list"}
    assert sum(sent.values()) >= plan["sums"]["reads"]


def _planned_with_few_permissions(state: Path, change: Path) -> Any:
    """The plan of an account that can only get, list and watch; asserts that nothing has another version after it."""
    management = _limited(state, state / "kubeconfig", "management.json")
    garden = _limited(state, state / "garden.kubeconfig", "garden.json")
    config = state.parent / "flags.yaml"
    given = orjson.loads((state / "controllers.json").read_bytes())
    flags = [flag.removeprefix("--").partition("=") for flag in given if "kubeconfig=" not in flag]
    plain = {flag.name for flag in FLAGS if flag.kind in ("int", "float", "bool")}
    lines = [f"{name}: {(value or 'true') if name in plain else json.dumps(value)}\n" for name, _, value in flags]
    config.write_text("".join(lines))
    kinds = "runtimes,gardenerclusters,kymas,manifests,clusterprofiles,configmaps,namespaces"
    before = _versions(state / "kubeconfig", kinds), _versions(state / "garden.kubeconfig", "shoots,seeds")
    words = ("--kubeconfig", str(management), "--garden-kubeconfig", str(garden), "--config", str(config))
    done = hortus("plan", *words, "-f", str(change), "-o", "json")
    assert done.returncode == 2, done.stdout + done.stderr
    after = _versions(state / "kubeconfig", kinds), _versions(state / "garden.kubeconfig", "shoots,seeds")
    assert after == before
    return json.loads(done.stdout)


def test_the_same_seed_gives_the_same_plan(state: Path) -> None:
    change = state.parent / "same.yaml"
    change.write_text(_runtime("1.35.0", "demo-2"))
    one, other = (_planned(state, "-f", str(change)) for _ in range(2))
    for found in (one, other):
        for group in found["groups"]:
            group.pop("seconds")  # the two began at different fractions of a second
    assert one["groups"] == other["groups"]
    assert one["shared"] == other["shared"]


@pytest.mark.parametrize("format", ["markdown", "html"])
def test_reports_name_the_clusters_and_the_fields_and_load_nothing(state: Path, format: str) -> None:
    change = state.parent / "report.yaml"
    change.write_text(_runtime("1.35.0", "demo-2"))
    done = hortus("plan", "--state-dir", str(state), "-f", str(change), "-o", format)
    assert done.returncode == 2, done.stderr
    assert "1 cluster: demo-2" in done.stdout
    assert "spec.kubernetes.version" in done.stdout
    assert "<script" not in done.stdout
    assert "src=" not in done.stdout


def test_nothing_changes_without_a_change(state: Path) -> None:
    plan = _planned(state, code=0)
    assert (plan["ended"], plan["settled"], plan["groups"], plan["shared"]) == ("Rest", True, [], [])


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("-f", "missing.yaml"), 2, "-f missing.yaml: "),
        (("-l", "==="), 2, "-l '===': "),
        (("--channel", "fast"), 2, "--channel 'fast' is not MODULE/CHANNEL=VERSION"),
        (("--channel", "unknown/fast=1.0.0"), 1, "no ModuleReleaseMeta is of module unknown"),
        (("--without", "everything"), 2, "--without 'everything' is neither seed/NAME nor registry"),
        (("--save", "no/such/folder/plan.json"), 2, "--save no/such/folder/plan.json: there is no folder"),
        (("--config", "missing.yaml"), 2, "--config missing.yaml: "),
    ],
)
def test_what_cannot_be_planned_is_refused_with_the_fix(
    state: Path, words: tuple[str, ...], code: int, message: str
) -> None:
    done = hortus("plan", "--state-dir", str(state), *words)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("kind: [", 2, "-f "),
        ("a: 1", 2, "document 1 is no object with kind and metadata.name"),
        ("apiVersion: x/v1\nkind: Unknown\nmetadata: {name: a}", 1, "does not serve x/v1 Unknown: install its CRD"),
        (_runtime("[1]"), 1, "Runtime demo-1: "),
    ],
)
def test_files_that_cannot_be_applied_are_refused(state: Path, text: str, code: int, message: str) -> None:
    file = state.parent / "bad.yaml"
    file.write_text(text)
    done = hortus("plan", "--state-dir", str(state), "-f", str(file))
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr
