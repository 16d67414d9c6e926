"""`hortus simulate rollout` as people type it: the report, the exit code, and the answers to wrong input."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hortus.cli.shell import app
from hortus.kube import yaml

POLICY = {
    "apiVersion": "fleet.hortus.dev/v1alpha1",
    "kind": "RolloutPolicy",
    "metadata": {"name": "kubernetes", "namespace": "fleet"},
    "spec": {
        "changes": [{"kind": "kubernetes-version"}],
        "stages": [
            {"name": "canary", "clusters": {"matchLabels": {"ring": "canary"}}, "minSuccessTime": "2h"},
            {"name": "rest", "maxConcurrency": "10%", "maxFailures": "2%"},
        ],
    },
}


def simulate(folder: Path, *words: str, policy: object = POLICY) -> Result:
    path = folder / "policy.yaml"
    path.write_text(yaml.dump(policy))
    return CliRunner().invoke(app, ["simulate", "rollout", str(path), *words])


def changed(**spec: object) -> object:
    return {**POLICY, "spec": {**POLICY["spec"], **spec}}  # type: ignore[dict-item]


def test_the_exit_code_says_whether_the_rollout_succeeded(tmp_path: Path) -> None:
    good = simulate(tmp_path, "--label", "ring=canary:3%")
    assert (good.exit_code, good.output.splitlines()[0].split(" after")[0]) == (0, "kubernetes: Succeeded")
    halted = simulate(tmp_path, "--fail", "10%")
    assert halted.exit_code == 1
    assert "kubernetes: Halted" in halted.output and "stage canary has 1 failed cluster and bears 0" in halted.output
    assert simulate(tmp_path, "--fail", "10%", "--resume").exit_code == 0


def test_json_has_each_stage(tmp_path: Path) -> None:
    found = json.loads(simulate(tmp_path, "--label", "ring=canary:3%", "-o", "json").output)
    assert (found["policy"], found["phase"], found["seed"]) == ("kubernetes", "Succeeded", 1)
    canary, rest, _ = found["stages"]
    assert (canary["clusters"], canary["most_in_work"], rest["clusters"], rest["limit"]) == (3, 1, 97, 9)
    assert canary["ended"] - canary["settled"] == 7200
    assert rest["began"] == canary["ended"]


def test_the_page_draws_each_stage_over_time(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    words = ("--clusters", "300", "--fail", "10%", "--late", "5%", "--label", "ring=canary:10%", "--resume")
    assert simulate(tmp_path, *words, "--html", str(page)).exit_code == 0
    text = page.read_text()
    drawn = [ElementTree.fromstring("<svg" + part.partition("</svg>")[0] + "</svg>") for part in text.split("<svg")[1:]]
    labels = ["clusters that changed in each stage", "clusters of stage canary", "clusters of stage rest"]
    assert [one.get("aria-label") for one in drawn] == [f"{label} over time" for label in labels]
    curves = [[title.text for title in one.iterfind("path/title")] for one in drawn]
    assert curves == [["canary", "rest"], *[["waiting", "working", "succeeded", "failed"]] * 2]
    assert "soak and approval" in text and "halted: stage canary has" in text
    assert "10 % fail · 5 % join late · a change takes 15 min 0 s · resumed after each halt" in text


def test_the_page_of_a_halt_says_why_and_which_stages_have_not_begun(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    assert simulate(tmp_path, "--fail", "10%", "--html", str(page)).exit_code == 1
    text = page.read_text()
    assert "<p>stage canary has 1 failed cluster and bears 0</p><p>with --resume it goes on after a halt</p>" in text
    assert "has not begun." in text


@pytest.mark.parametrize(
    ("policy", "answer"),
    [
        (changed(maxFailure=3), "spec.maxFailure: unknown field: remove it or correct its name"),
        (changed(maxFailures="many"), 'spec.maxFailures: Invalid value: "many"'),
        (changed(unselected="First"), 'spec.unselected: Unsupported value: "First": supported values: "Last"'),
        (changed(stages=[{"name": "a"}, {"name": "a"}]), "stages have different names"),
        (changed(stages=[{"name": "unselected"}]), "spec.stage unselected: the name is taken"),
        (
            changed(stages=[{"name": "a", "clusters": {"matchExpressions": [{"key": "x", "operator": "In"}]}}]),
            "spec.stage a: clusters:",
        ),
        ({**POLICY, "kind": "Rollout"}, "has 0 objects with apiVersion fleet.hortus.dev/v1alpha1 and kind"),
        ("text", "has 0 objects"),
    ],
)
def test_a_wrong_policy_is_answered_with_the_field(tmp_path: Path, policy: object, answer: str) -> None:
    found = simulate(tmp_path, policy=policy)
    assert found.exit_code == 2
    assert f"{tmp_path}/policy.yaml: " in found.output and answer in found.output


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (("--fail", "120%"), "'120%' is not a share, 0% to 100% or 0 to 1"),
        (("--fail", "60%", "--hang", "50%"), "--fail, --hang and --flap are more than 100% together"),
        (("--label", "ring"), "--label 'ring' must be KEY=VALUE:SHARE,..."),
        (("--label", "ring=canary"), "--label 'ring=canary' must be KEY=VALUE:SHARE,..."),
        (("--label", "ri ng=canary:3%"), "--label 'ri ng=canary:3%' must be"),
        (("--label", "ring=a:60%,b:60%"), "the shares are more than 100% together"),
        (("--window", "nights"), "--window: maintenance window 'nights' is not like 220000+0100-230000+0100"),
        (("--clusters", "0"), "'0' is not a whole number, 1 to 20000"),
    ],
)
def test_a_wrong_option_is_answered_with_the_form(tmp_path: Path, words: tuple[str, ...], answer: str) -> None:
    found = simulate(tmp_path, *words)
    assert (found.exit_code, answer in " ".join(found.output.split())) == (2, True), found.output
