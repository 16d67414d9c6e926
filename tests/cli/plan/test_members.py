"""Plans of agents over members, of which some cannot be reached or read, or change meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread

import pytest
from tests.cli.plan.members import (
    AGENT,
    DAEMON_SETS,
    GARDEN,
    SECRETS,
    LiveFleet,
    agents,
    applying,
    live_fleet,
    with_node,
)

from hortus.apiserver.clusters import certificate_kubeconfig
from hortus.domains.agents.types import AGENT_CONFIGURATIONS, AGENT_PLACEMENTS
from hortus.kube.errors import Conflict, NotFound
from hortus.kube.objects import Object
from hortus.simulation.fork import Fork
from hortus.simulation.plan.model import FleetPlan
from hortus.testing.apiserver import TestServer, started_apiserver

ONE, TWO, AWAY = "one", "two", "away"
_UNDOING = 3600.0
"""Seconds for which somebody undoes the work of a controller."""


@pytest.fixture(scope="module")
def management() -> Iterator[TestServer]:
    with started_apiserver() as running:
        yield running


@pytest.fixture(scope="module")
def server() -> Iterator[TestServer]:
    """The server of the members and of the garden."""
    with started_apiserver(clusters=[ONE, TWO, GARDEN]) as running:
        yield running


@pytest.fixture
async def kubeconfigs(server: TestServer) -> dict[str, Object]:
    for name in (ONE, TWO):
        await with_node(server, name)
    return {name: server.kubeconfig_dict(name) for name in (ONE, TWO)}


@pytest.fixture
async def fleet(
    management: TestServer, server: TestServer, tmp_path: Path, kubeconfigs: dict[str, Object]
) -> AsyncIterator[LiveFleet]:
    async with live_fleet(management, server, tmp_path, kubeconfigs, purposes={TWO: "production"}) as found:
        await found.delete(AGENT_CONFIGURATIONS, "everywhere")
        yield found


def _made(plan: FleetPlan, kind: str) -> dict[str, set[str]]:
    """The clusters in which objects of a kind change, with what happens to them."""
    found: dict[str, set[str]] = {}
    for cluster in plan.clusters:
        for one in cluster.changes:
            if one.kind == kind and one.where != "root":
                found.setdefault(cluster.name, set()).add(f"{one.action}{' rolls' if one.rolls else ''} {one.name}")
    return found


async def test_agents_come_to_each_member_and_a_changed_template_rolls_them_there(fleet: LiveFleet) -> None:
    installed = await fleet.plan(applying(agents()))
    assert _made(installed, "DaemonSet") == {ONE: {f"Created {AGENT}"}, TWO: {f"Created {AGENT}"}}
    (group,) = installed.groups
    assert group.clusters == (ONE, TWO)
    assert installed.exit_code == 2

    await fleet.apply(agents())
    rolled = await fleet.plan(applying(agents(labels={"team": "a"})))
    assert _made(rolled, "DaemonSet") == {ONE: {f"Changed rolls {AGENT}"}, TWO: {f"Changed rolls {AGENT}"}}
    assert rolled.sums.rolls == 4
    assert rolled.seconds >= 30


async def test_a_replica_that_fails_amid_a_change_leaves_it_to_the_next_one(fleet: LiveFleet) -> None:
    undisturbed = await fleet.plan(applying(agents()))
    plan = await fleet.plan(applying(agents()), replica_fails=True)
    assert plan.ended == "Rest"
    assert [group.changes for group in plan.groups] == [group.changes for group in undisturbed.groups]
    assert plan.sums.calls > undisturbed.sums.calls, "the other replica reads what it took over"


async def test_only_selected_clusters_are_reported(fleet: LiveFleet) -> None:
    plan = await fleet.plan(applying(agents()), labels="fleet.hortus.dev/purpose=production")
    assert [one.name for one in plan.clusters] == [TWO]
    assert plan.shared == ()


async def test_a_plan_until_a_time_runs_up_to_it_also_when_everything_rests(fleet: LiveFleet) -> None:
    clocks = []

    async def nothing(fork: Fork) -> None:
        clocks.append(fork.clock)

    plan = await fleet.plan(nothing, until=2 * 86400.0, whole=True)
    assert plan.ended == "Horizon"
    assert clocks[0].monotonic() >= 2 * 86400
    assert (await fleet.plan(nothing)).ended == "Rest"


async def test_a_member_that_does_not_answer_is_unknown_and_the_others_are_planned(
    management: TestServer, server: TestServer, tmp_path: Path, kubeconfigs: dict[str, Object]
) -> None:
    away = server.kubeconfig_dict(TWO)
    away["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    async with live_fleet(management, server, tmp_path, {**kubeconfigs, AWAY: away}) as fleet:
        plan = await fleet.plan(applying(agents()))
        await fleet.delete(SECRETS, AWAY)
    assert _made(plan, "DaemonSet") == {ONE: {f"Created {AGENT}"}, TWO: {f"Created {AGENT}"}}
    (unknown,) = plan.unknown
    assert unknown.where == AWAY
    assert "127.0.0.1:1" in unknown.reason


async def test_kinds_of_a_member_that_may_not_be_listed_are_unknown_and_the_others_are_planned(
    management: TestServer, server: TestServer, tmp_path: Path, kubeconfigs: dict[str, Object]
) -> None:
    nobody = server.kubeconfig_dict(TWO)
    issued = server.server.clusters.issue(TWO, username="nobody", groups=(), seconds=3600)
    nobody["users"][0]["user"] = certificate_kubeconfig(issued, server=server.cluster_url(TWO), name=TWO)["users"][0][
        "user"
    ]
    async with live_fleet(management, server, tmp_path, {**kubeconfigs, TWO: nobody}) as fleet:
        plan = await fleet.plan(applying(agents()))
    assert _made(plan, "DaemonSet") == {ONE: {f"Created {AGENT}"}}
    assert {one.where for one in plan.unknown} == {TWO}
    assert any("namespaces" in one.kinds for one in plan.unknown)


async def test_controllers_wait_for_a_kind_whose_crd_is_missing_and_the_plan_ends(
    server: TestServer, tmp_path: Path, kubeconfigs: dict[str, Object]
) -> None:
    with started_apiserver() as management:
        async with live_fleet(management, server, tmp_path, kubeconfigs, without=[AGENT_PLACEMENTS]) as fleet:
            plan = await fleet.plan(applying(agents()))
    assert (plan.ended, _made(plan, "DaemonSet")) == ("Rest", {})
    assert [one.kind for one in plan.shared] == ["AgentConfiguration"]


async def test_objects_that_change_meanwhile_are_planned_as_they_were_read(fleet: LiveFleet) -> None:
    async def delete_members() -> None:
        for name in (ONE, TWO):
            await fleet.delete(SECRETS, name)

    async def change(fork: Fork) -> None:
        # The loop of the fork has no network but the fork.
        thread = Thread(target=asyncio.run, args=(delete_members(),))
        thread.start()
        thread.join()
        await applying(agents())(fork)

    plan = await fleet.plan(change)
    assert _made(plan, "DaemonSet") == {ONE: {f"Created {AGENT}"}, TWO: {f"Created {AGENT}"}}
    assert plan.unknown == ()


async def test_a_change_that_never_rests_ends_with_the_loop_and_both_writers(
    server: TestServer, fleet: LiveFleet
) -> None:
    undoing: list[asyncio.Task[None]] = []

    async def change(fork: Fork) -> None:
        await applying(agents(labels={"team": "a"}))(fork)
        cluster, end = fork.names.of(server.cluster_url(ONE)), fork.clock.monotonic() + _UNDOING
        undoing.append(asyncio.create_task(_undo(fork, cluster, end)))

    plan = await fleet.plan(change)
    (loop,) = [one for one in plan.ongoing if one.how == "loop" and one.kind == "DaemonSet"]
    assert (loop.where, loop.name) == (ONE, f"{AGENT}/{AGENT}")
    assert {"instana-agent-operator", "somebody"} <= {*loop.managers}
    assert "spec.template.metadata.labels.team" in [field.path for field in loop.fields]
    assert (plan.ended, plan.exit_code) == ("Rest", 1)
    assert plan.seconds < 0.5 * _UNDOING, "the loop counts as rest before it ends"


async def _undo(fork: Fork, cluster: str, end: float) -> None:
    """Sets a label of the DaemonSet of one member to another value, again and again."""
    patch = {"spec": {"template": {"metadata": {"labels": {"team": "b"}}}}}
    while fork.clock.monotonic() < end:
        await fork.clock.sleep(240.0)
        with suppress(NotFound, Conflict):
            await fork.server.local(cluster, manager="somebody").patch(DAEMON_SETS, AGENT, patch, AGENT)
