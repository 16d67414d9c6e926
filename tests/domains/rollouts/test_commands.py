"""`hortus rollout` as people type it, against a real API server and its controllers."""

from __future__ import annotations

import asyncio
import json
import subprocess
import time
from pathlib import Path

from msgspec.structs import replace
from structlog.testing import capture_logs
from tests.cli.terminals import terminal
from tests.domains.rollouts.world import APPLIANCE_KIND, FLEET, RolloutWorld
from tests.scenarios import running

from hortus.domains.rollouts.rows import RolloutRows, RolloutSubject
from hortus.engine import Actor
from hortus.engine.fleet import FleetRow, RowStanding
from hortus.engine.planfile import PlanFile, PlanFileObject, save, state_of
from hortus.engine.rollouts.types import CHANGE_KINDS, ROLLOUTS, Rollout, RolloutPhase
from hortus.kube import Resource, yaml
from hortus.kube.objects import format_time
from hortus.schema import decode

RINGS = [
    {"name": "canary", "clusters": {"matchLabels": {"ring": "canary"}}, "approval": "After"},
    {"name": "rest", "maxConcurrency": 2},
]


async def _typed(here: RolloutWorld, *words: str) -> subprocess.CompletedProcess[str]:
    # Controllers of the test log to the output of this process, which is that of the command.
    with capture_logs():
        return await asyncio.to_thread(running.typed, "--kubeconfig", str(here.kubeconfig), "rollout", *words)


async def _said(here: RolloutWorld, *words: str) -> str:
    done = await _typed(here, *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


async def _fleet(here: RolloutWorld) -> None:
    await here.client.create(CHANGE_KINDS, APPLIANCE_KIND)
    for number in range(4):
        await here.add_cluster(f"c{number}", labels={"ring": "canary" if number == 0 else "rest"})
    await here.set_policy(stages=RINGS)


async def test_a_rollout_is_started_approved_and_followed_to_its_end(here: RolloutWorld) -> None:
    await _fleet(here)
    async with here.controllers(), here.owner(follows=False):
        started = await _said(here, "start", "appliance", "--subject", "press", "--from", "1", "--to", "2")
        name = started.split()[1]
        await here.until(
            lambda one: "waits for approval" in one.status.conditions[0].message if one.status.conditions else False
        )
        shown = await _said(here, "show", name)
        assert "appliance of press: 1 -> 2" in shown
        assert f"  canary  [{'#' * 30}]  1 of 1" in shown
        assert shown.endswith(f"  hortus rollout approve {name} --stage canary\n")
        assert await _said(here, "approve", name) == f"stage canary of rollout {name} approved\n"
        followed = await _said(here, "watch", name)
        assert followed.splitlines()[-1] == "Succeeded  4/4 done, 0 failed  all clusters have changed"
    assert set((await here.versions()).values()) == {"2"}
    listed = json.loads(await _said(here, "history", "-o", "json"))
    assert [(one["name"], one["phase"], one["policy"]) for one in listed] == [(name, "Succeeded", "presses")]
    assert (
        await _typed(here, "list")
    ).stderr == "No rollouts under way in namespace fleet; 1 ended: `hortus rollout history`.\n"


async def test_a_plan_counts_for_its_rollout_in_its_fleet_for_a_week(here: RolloutWorld, tmp_path: Path) -> None:
    await _fleet(here)
    async with here.controllers(), here.owner(follows=False):
        await here.start("press-2", policyName="presses", execute="Patch")
        await here.until(lambda one: "waits for approval" in str(one.status.conditions))
        namespace = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
        cluster = (await here.client.get(namespace, "kube-system"))["metadata"]["uid"]
        obj = await here.client.get(ROLLOUTS, "press-2", FLEET)
        rollout = PlanFileObject(
            group=ROLLOUTS.group, version=ROLLOUTS.version, plural=ROLLOUTS.plural, kind=ROLLOUTS.kind,
            namespace=FLEET, name="press-2", states=(state_of(obj),),
        )  # fmt: skip
        began = format_time(time.time() - 3 * 86400)
        good = PlanFile(server="https://by-another-name", cluster=cluster, objects=(rollout,), plan={"began": began})
        path = tmp_path / "plan.json"
        for file, message in (
            (replace(good, cluster="other"), "was made for another fleet, https://by-another-name, and this is"),
            (replace(good, cluster=""), "was made for another fleet, https://by-another-name, and this is"),
            (
                replace(good, plan={"began": format_time(time.time() - 9 * 86400)}),
                "was made 9 days ago, and after 7 days",
            ),
            (replace(good, plan={}), "does not say when it was made"),
            (replace(good, plan={"began": began, "chosen": [1, 3]}), "plans for some of the clusters"),
            (replace(good, objects=()), "does not plan for rollout press-2"),
            (replace(good, objects=(replace(rollout, states=("else",)),)), "Rollout fleet/press-2 has changed"),
        ):
            save(file, path)
            refused = await _typed(here, "approve", "press-2", "--plan", str(path))
            assert (refused.returncode, refused.stdout) == (1, ""), message
            assert message in refused.stderr
            assert f"lan again with `hortus plan --save {path}`" in refused.stderr
        save(good, path)
        assert await _said(here, "approve", "press-2", "--plan", str(path)) == (
            "stage canary of rollout press-2 approved\n"
        )


async def test_a_version_that_no_cluster_has_is_answered_with_those_that_they_have(here: RolloutWorld) -> None:
    await _fleet(here)
    words = ("start", "appliance", "--subject", "press", "--to", "2", "--dry-run", "--from")
    refused = await _typed(here, *words, "7")
    assert refused.stderr == "error: --from 7: no appliances are at this version; there are: 1 (4)\n"
    assert "from: '1'" in await _said(here, *words, "1")


async def test_a_kind_is_found_by_its_only_subject_too(here: RolloutWorld) -> None:
    spec = {**APPLIANCE_KIND["spec"], "subject": "'press'"}
    await here.client.create(CHANGE_KINDS, {**APPLIANCE_KIND, "spec": spec})
    document = yaml.load(await _said(here, "start", "press", "--to", "2", "--dry-run"))
    assert document["spec"]["change"] == {"kind": "appliance", "subject": "press", "to": "2"}
    refused = await _typed(here, "start", "pres", "--to", "2")
    assert refused.stderr == "error: no ChangeKind pres; there are: appliance\n"
    await here.client.create(CHANGE_KINDS, {**APPLIANCE_KIND, "metadata": {"name": "other"}, "spec": spec})
    refused = await _typed(here, "start", "press", "--to", "2")
    assert refused.stderr == "error: several ChangeKinds have the subject press; there are: appliance, other\n"


async def test_a_halted_rollout_names_its_failures_and_both_ways_on(here: RolloutWorld) -> None:
    await _fleet(here)
    here.outcomes = lambda cluster: "Broken"
    async with here.controllers(), here.owner(follows=False):
        await here.start("press-2", policyName="presses", execute="Patch")
        await here.until(lambda one: one.status.phase == RolloutPhase.HALTED)
        shown = await _said(here, "show", "press-2")
        assert "  c0  (canary)  no ink\n" in shown
        assert "  hortus rollout resume press-2\n  hortus rollout abort press-2\n" in shown
        followed = await _typed(here, "watch", "press-2")
        assert followed.returncode == 1
        assert "error: Rollout press-2: stage canary has 1 failed cluster and bears 0" in followed.stderr
        assert "give -y to agree" in (await _typed(here, "abort", "press-2")).stderr
        assert (
            await _said(here, "abort", "press-2", "-y") == "rollout press-2 aborted: clusters that have begun finish\n"
        )
        await here.until(lambda one: one.status.phase == RolloutPhase.ABORTED)
        assert (await _typed(here, "resume", "press-2")).stderr == "error: Rollout press-2 is over: Aborted\n"


async def test_a_terminal_shows_one_page_that_is_drawn_again(here: RolloutWorld) -> None:
    await _fleet(here)
    async with here.controllers(), here.owner(follows=False):
        await here.start("press-2", policyName="presses", execute="Patch")
        words = ("--kubeconfig", str(here.kubeconfig), "rollout", "watch", "press-2")
        with terminal(*words, width=70, height=20) as screen:
            shown = await asyncio.to_thread(screen.until, _waits, "the stage to wait for approval")
            assert shown[0] == "appliance of press: -> 2"
            await here.order("press-2", approved=["canary"])
            shown = await asyncio.to_thread(screen.until, _is_over, "the end")
            assert await asyncio.to_thread(screen.ended) == 0
    assert [line for line in shown if line.startswith("appliance of press")] == ["appliance of press: -> 2"]


def _waits(lines: list[str]) -> bool:
    return any("waits for approval" in line for line in lines)


def _is_over(lines: list[str]) -> bool:
    return any(line.startswith("phase     Succeeded") for line in lines)


def test_rows_of_the_fleet_say_who_has_to_act() -> None:
    def row(phase: str, reason: str, status: str, message: str) -> FleetRow:
        condition = {"type": "Progressing", "status": status, "reason": reason, "message": message}
        return RolloutRows().row(
            RolloutSubject(
                decode(
                    Rollout,
                    {
                        "metadata": {"name": "r", "namespace": "fleet", "creationTimestamp": "2026-01-01T00:00:00Z"},
                        "spec": {"change": {"kind": "k", "subject": "s", "to": "2"}},
                        "status": {
                            "phase": phase,
                            "conditions": [condition | {"lastTransitionTime": "2026-01-01T00:00:00Z"}],
                        },
                    },
                )
            )
        )

    rows = [
        row("Halted", "Halted", "False", "too many"),
        row("", "ChangeKindNotReady", "False", "no such kind"),
        row("Progressing", "Progressing", "True", "stage a waits for approval"),
        row("Progressing", "Progressing", "True", "stage a: 1 of 2"),
    ]
    assert [(one.standing, one.owner) for one in rows] == [
        (RowStanding.FAILED, Actor.OPERATOR),
        (RowStanding.FAILED, Actor.OPERATOR),
        (RowStanding.WAITING, Actor.OPERATOR),
        (RowStanding.WAITING, Actor.NOBODY),
    ]
    assert rows[0].step == "`hortus rollout resume r` or `hortus rollout abort r`"


async def test_a_wrong_word_is_answered_with_what_there_is(here: RolloutWorld) -> None:
    await _fleet(here)
    assert (await _typed(here, "show", "x")).stderr == "error: no Rollout x in namespace fleet; there are: none\n"
    for words, reason in (
        (("start", "press", "--to", "2"), "no ChangeKind press; there are: appliance"),
        (("start", "appliance", "--to", "2"), "ChangeKind appliance has many subjects: give --subject"),
        (
            ("start", "appliance", "--to", "2", "--subject", "press", "--policy", "x"),
            "no RolloutPolicy x; there are: presses",
        ),
    ):
        assert (await _typed(here, *words)).stderr == f"error: {reason}\n"
