"""`hortus plan` over a running `hortus up`: its truth, its harmlessness, its output and its refusals."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import orjson
import pytest
from tests.cli.plan.conftest import CLUSTERS
from tests.cli.plan.edits.choosing import edits, founding
from tests.cli.plan.edits.shape import GARDEN, HOME, PROJECT, RUNTIMES, SHOOTS, Edit, member, patched
from tests.cli.plan.planning import planned
from tests.cli.plan.reads import lists_of, verbs_of
from tests.cli.plan.truth import CONFIG, Fleet, Tally, outcome, rest
from tests.scenarios.running import kubectl, typed, until, up
from tests.waiting import until as waited_until

from hortus.cli.flags import FLAGS
from hortus.engine.logging import LogSettings, configure_logging
from hortus.simulation.plan.model import FleetPlan
from hortus.simulation.plan.printing import markdown

PARTS, PLANNED = 4, 50
"""Fleets one after the other, and the random changes of each."""
STACK = """
apiVersion: clusterstack.x-k8s.io/v1alpha1
kind: ClusterStack
metadata: {name: sample-1-35, namespace: stacks}
spec: {provider: docker, name: sample, kubernetesVersion: "1.35", noProvider: true}
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


def _log(state: Path) -> bytes:
    return (state / "logs" / "audit.log").read_bytes()


def _listed(state: Path, since: int) -> set[str]:
    """The clusters of which plans have listed something since the log had this size."""
    return {cluster for cluster, _ in lists_of(_log(state)[since:])}


async def test_what_is_planned_is_what_happens(state: Path) -> None:
    people = {"spec": {"security": {"administrators": ["somebody@example.org"]}}}
    edit = Edit("clusters", "other administrators", (patched(RUNTIMES, "demo-1", HOME, **people),))
    found = await outcome(Fleet(state), edit)
    assert found.missed == ()
    assert found.follows


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("part", range(PARTS))
async def test_what_is_planned_is_what_happens_for_many_changes(tmp_path: Path, part: int) -> None:
    configure_logging(LogSettings(level=logging.CRITICAL))  # hours of debug lines cost a share of the time
    tally, random = Tally(), Random(part)
    with up(tmp_path / "state", "--ephemeral", "--clusters", "3", config=CONFIG) as running:
        running.expect("ready: runtimes 3/3, kymas 3/3")
        fleet = Fleet(tmp_path / "state")
        await rest(fleet)
        for edit in founding():
            assert (await outcome(fleet, edit)).missed == (), edit.text
        async for edit in edits(random, fleet):
            found = await outcome(fleet, edit)
            tally.take(found)
            print(tally.line(found), flush=True)
            if tally.changes == PLANNED:
                break
            await fleet.make(edit.undone)
            if found.missed or edit.undone:
                await rest(fleet)
    print(tally.table(), flush=True)
    assert tally.missed == {}, tally.table()


@pytest.mark.soak
def test_a_new_stack_and_the_upgrade_of_a_cluster_to_it_areplanned(tmp_path: Path) -> None:
    with up(tmp_path / "state", "--ephemeral", "--clusters", "1") as running:
        running.expect("Hortus is up")
        state = tmp_path / "state"
        made = kubectl(state / "kubeconfig", "apply", "-f", "-", stdin=_cluster("1-34", "v1.34.1"))
        assert made.returncode == 0, made.stderr
        waited = ("cluster", "shop", "-n", "stacks", "--for=jsonpath={.status.phase}=Provisioned", "--timeout=120s")
        assert kubectl(state / "kubeconfig", "wait", *waited).returncode == 0
        change = tmp_path / "upgrade.yaml"
        change.write_text(f"{STACK}---\n{_cluster('1-35', 'v1.35.0')}")
        plan = planned(state, "-f", str(change))
    (cluster,) = plan["clusters"]
    assert (cluster["name"], plan["ended"], plan["unknown"]) == ("shop", "Rest", [])
    assert sorted(f"{one['action']} {one['kind']}" for one in cluster["changes"]) == [
        "Changed Cluster",
        "Changed ClusterAddon",
        "Changed Deployment",
        "Changed Deployment",
        "Changed KubeadmControlPlane",
        "Created Node",
        "Deleted Node",
    ]
    assert {f"{one['action']} {one['kind']} {one['name']}" for one in plan["shared"]} == {
        "Created ClusterClass docker-sample-1-35-v1",
        "Created ClusterStack sample-1-35",
        "Created ClusterStackRelease docker-sample-1-35-v1",
        "Created DockerClusterTemplate docker-sample-1-35-v1-cluster",
        "Created KubeadmControlPlaneTemplate docker-sample-1-35-v1-control-plane",
    }
    upgraded = next(one for one in cluster["changes"] if one["kind"] == "KubeadmControlPlane")
    versions = {field["path"]: (field["before"], field["after"]) for field in upgraded["fields"]}
    assert versions["spec.version"] == ("v1.34.1", "v1.35.0")


def _cluster(stack: str, version: str) -> str:
    return (
        "apiVersion: cluster.x-k8s.io/v1beta1\nkind: Cluster\nmetadata: {name: shop, namespace: stacks}\n"
        f"spec: {{topology: {{class: docker-sample-{stack}-v1, version: {version}}}}}\n"
    )


def test_a_plan_leaves_the_live_side_as_it_is_and_needs_no_permission_to_write(state: Path) -> None:
    change, before = state.parent / "few.yaml", len(_log(state))
    change.write_text(_runtime("1.35.0"))
    _plan_with_few_permissions(state, change)
    # The log is written a moment after the answer, and the reads of the members are the last.
    members = {member(f"demo-{number + 1}") for number in range(CLUSTERS)}
    until(lambda: _listed(state, before) == {"root", "garden", *members}, "the lists")
    log = _log(state)[before:]
    assert {*verbs_of(log)} == {"list"}
    assert set(lists_of(log).values()) == {1}, "a kind of a cluster was listed more than once"


def _plan_with_few_permissions(state: Path, change: Path) -> None:
    """Plans as an account that can only get, list and watch; asserts that nothing has another version after it."""
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
    done = typed("plan", *words, "-f", str(change), "-o", "html")
    assert done.returncode == 2, done.stdout + done.stderr
    _assert_report(done.stdout, "demo-1")
    after = _versions(state / "kubeconfig", kinds), _versions(state / "garden.kubeconfig", "shoots,seeds")
    assert after == before


def test_a_plan_of_chosen_clusters_reads_no_others(state: Path) -> None:
    labeled = kubectl(state / "kubeconfig", "label", "runtime", "-n", "kcp-system", "demo-2", "ring=late")
    assert labeled.returncode == 0, labeled.stderr
    change, before = state.parent / "late.yaml", len(_log(state))
    change.write_text(_runtime("1.35.0", "demo-2"))
    plan = planned(state, "-f", str(change), "-l", "ring=late")
    assert (plan["chosen"], [one["name"] for one in plan["clusters"]]) == ([1, CLUSTERS], ["demo-2"])
    assert {one["action"] for one in plan["shared"]} <= {"Changed"}
    until(lambda: _listed(state, before) == {"root", "garden", member("demo-2")}, "the lists")


def _assert_report(report: str, cluster: str) -> None:
    assert f"1 cluster: {cluster}" in report
    assert "spec.kubernetes.version" in report
    assert "<script" not in report
    assert "src=" not in report


@pytest.fixture(scope="module")
def minor(state: Path) -> Any:
    """The plan of another Kubernetes version for one cluster, as JSON."""
    change = state.parent / "minor.yaml"
    change.write_text(_runtime("1.35.0", "demo-2"))
    return planned(state, "-f", str(change))


@pytest.mark.soak
def test_the_same_seed_gives_the_same_plan(state: Path, minor: Any) -> None:
    other = planned(state, "-f", str(state.parent / "minor.yaml"))
    for found in (minor, other):
        for group in found["groups"]:
            group.pop("seconds", None)  # the two began at different fractions of a second
    assert minor["groups"] == other["groups"]
    assert minor["shared"] == other["shared"]


@pytest.mark.soak
def test_a_report_names_the_clusters_and_the_fields_and_loads_nothing(minor: Any) -> None:
    _assert_report("\n".join(markdown(msgspec.convert(minor, FleetPlan))), "demo-2")


def test_nothing_changes_without_a_change(state: Path) -> None:
    plan = planned(state, code=0)
    assert (plan["ended"], plan["settled"], plan["groups"], plan["shared"]) == ("Rest", True, [], [])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-f", "missing.yaml"), "-f missing.yaml: "),
        (("-l", "==="), "-l '===': "),
        (("--channel", "fast"), "--channel 'fast' is not MODULE/CHANNEL=VERSION"),
        (("--without", "everything"), "--without 'everything' is neither seed/NAME nor registry"),
        (("--save", "no/such/folder/plan.json"), "--save no/such/folder/plan.json: there is no folder"),
        (("--config", "missing.yaml"), "--config missing.yaml: "),
    ],
)
def test_what_cannot_be_planned_is_refused_with_the_fix(state: Path, words: tuple[str, ...], message: str) -> None:
    assert message in _refused_at_once(state, *words)


@pytest.mark.parametrize(
    ("text", "message"),
    [("kind: [", "-f "), ("a: 1", "document 1 is no object with kind and metadata.name")],
)
def test_files_that_hold_no_objects_are_refused(state: Path, text: str, message: str) -> None:
    file = state.parent / "bad.yaml"
    file.write_text(text)
    assert message in _refused_at_once(state, "-f", str(file))


def _refused_at_once(state: Path, *words: str) -> str:
    """The errors of a plan that is refused before anything is read."""
    done = typed("plan", "--state-dir", str(state), *words)
    assert (done.returncode, done.stdout) == (2, "")
    return done.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("apiVersion: x/v1\nkind: Unknown\nmetadata: {name: a}", "does not serve x/v1 Unknown: install its CRD"),
        pytest.param(_runtime("[1]"), "Runtime demo-1: ", marks=pytest.mark.soak),
    ],
)
def test_objects_that_cannot_be_applied_are_refused(state: Path, text: str, message: str) -> None:
    file = state.parent / "bad.yaml"
    file.write_text(text)
    _assert_refused(state, "-f", str(file), message=message)


@pytest.mark.soak
def test_labels_that_no_cluster_has_are_refused(state: Path) -> None:
    _assert_refused(state, "-l", "ring=none", message="-l ring=none: no Runtime or ClusterProfile has these labels")


@pytest.mark.soak
def test_a_channel_of_a_module_that_does_not_exist_is_refused(state: Path) -> None:
    _assert_refused(state, "--channel", "unknown/fast=1.0.0", message="no ModuleReleaseMeta is of module unknown")


def _assert_refused(state: Path, *words: str, message: str) -> None:
    done = typed("plan", "--state-dir", str(state), *words)
    assert (done.returncode, done.stdout) == (1, "")
    assert message in done.stderr


async def test_a_change_of_a_cluster_that_sleeps_is_planned_to_its_end(state: Path) -> None:
    # The last test of this file: hours pass until all controllers have noticed that a cluster sleeps.
    asleep = f"demo-{CLUSTERS}"
    fleet = Fleet(state)
    await fleet.make([patched(SHOOTS, asleep, PROJECT, GARDEN, spec={"hibernation": {"enabled": True}})])

    async def sleeps() -> bool:
        (shoot,) = [one for one in await fleet.list(SHOOTS, GARDEN) if one["metadata"]["name"] == asleep]
        status = shoot["status"]
        return bool(status.get("hibernated") and status["lastOperation"]["state"] == "Succeeded")

    await waited_until(sleeps)
    version = {"spec": {"shoot": {"kubernetes": {"version": "1.35.0"}}}}
    upgrade = Edit("clusters", f"{asleep} to 1.35.0", (patched(RUNTIMES, asleep, HOME, **version),))
    run = await asyncio.to_thread(fleet.plan, upgrade)
    before, after = (
        orjson.loads(each.buckets["garden/core.gardener.cloud/shoots"][f"{PROJECT}/{asleep}"])
        for each in (run.before, run.after)
    )
    assert before["status"]["hibernated"]
    assert after["spec"]["kubernetes"]["version"] == "1.35.0"
    assert after["status"]["lastOperation"]["state"] == "Succeeded"
