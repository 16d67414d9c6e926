"""`hortus agent list` and `hortus agent why` as people type them, against a real API server."""

from __future__ import annotations

import asyncio
import subprocess

from tests.domains.agents.fleet.world import FLEET, AgentWorld, is_running, ready
from tests.scenarios import running


async def typed(here: AgentWorld, *words: str) -> subprocess.CompletedProcess[str]:
    path = str(here.server.kubeconfig_for(here.name))
    return await asyncio.to_thread(running.typed, "--kubeconfig", path, "agent", *words)


async def test_list_shows_the_failed_first_and_why_names_the_next_step(here: AgentWorld) -> None:
    await here.keys()
    await here.member("one", labels={"team": "a"})
    await here.member("two")
    await here.member("three", labels={"stage": "none"})
    selector = {"matchExpressions": [{"key": "stage", "operator": "DoesNotExist"}]}
    await here.configure(clusterSelector=selector, perCluster="{'zone': {'name': cluster.labels.team}}")
    await here.configure("spare", clusterSelector=selector, priority=-1)
    async with here.controllers():
        await here.run_pods("one")
        await here.placement("one", is_running)
        await here.placement("two", lambda obj: ready(obj)[1] == "RenderFailed")
    head, *rows = (await typed(here, "list")).stdout.splitlines()
    assert head.split() == ["CLUSTER", "CONFIGURATION", "NODES", "STATE", "REASON", "VERSION"]
    assert [row.split()[:5] for row in rows] == [
        ["two", "fleet", "0/0", "Failed", "RenderFailed"],
        ["one", "fleet", "3/3", "Ready", "AgentsRunning"],
    ]
    assert len((await typed(here, "list", "-c", "spare")).stdout.splitlines()) == 1
    shown = (await typed(here, "why", "two")).stdout
    assert "Agent instana-agent/instana-agent by AgentConfiguration fleet: Failed" in shown
    assert "RenderFailed: " in shown and "no such key: team" in shown
    assert "next step: the owner of the AgentConfiguration corrects template or expression" in shown
    assert "AgentConfiguration spare selects it too; fleet counts more" in shown
    shown = (await typed(here, "why", "one")).stdout
    assert "next step: none: the agent runs on all nodes" in shown
    shown = (await typed(here, "why", "three")).stdout
    assert "AgentConfiguration fleet does not select it: its labels do not meet !stage" in shown
    missing = await typed(here, "why", "four")
    assert missing.returncode == 1
    assert f"no cluster four in namespace {FLEET}; there are: one, three, two" in missing.stderr
