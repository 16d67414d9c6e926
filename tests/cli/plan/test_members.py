"""Plans of agents over members, of which some cannot be reached or read, or change meanwhile."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from html import unescape
from pathlib import Path
from threading import Thread

import msgspec
import pytest
from tests.cli.plan.members import (
    AGENT,
    DAEMON_SETS,
    FLEET,
    GARDEN,
    NAMESPACES,
    NODES,
    SECRETS,
    LiveFleet,
    agents,
    applying,
    live_fleet,
    with_node,
)

from hortus.apiserver.clusters import certificate_kubeconfig
from hortus.domains.agents.types import AGENT_CONFIGURATIONS, AGENT_PLACEMENTS
from hortus.domains.inventory.types import CLUSTER_PROFILES
from hortus.kube import Access, Client
from hortus.kube.access import Impersonation
from hortus.kube.errors import Conflict, NotFound
from hortus.kube.kubeconfig import load
from hortus.kube.objects import Object, Resource
from hortus.simulation.fork import Fork, LiveReadFailed
from hortus.simulation.plan.model import MISSING, FleetPlan
from hortus.simulation.plan.page import html
from hortus.simulation.plan.printing import lines, markdown
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
    assert (installed.exit_code, installed.waits) == (2, ()), "no controller waits where all CRDs are there"

    await fleet.apply(agents())
    rolled = await fleet.plan(applying(agents(labels={"team": "a"})))
    assert _made(rolled, "DaemonSet") == {ONE: {f"Changed rolls {AGENT}"}, TWO: {f"Changed rolls {AGENT}"}}
    assert rolled.sums.rolls == 4
    assert rolled.seconds >= 30


async def test_daemon_sets_follow_the_nodes_that_a_change_brings(server: TestServer, fleet: LiveFleet) -> None:
    pod = {"metadata": {"labels": {"app": "probe"}}, "spec": {"containers": [{"name": "probe", "image": "probe"}]}}
    spec = {"selector": {"matchLabels": {"app": "probe"}}, "template": pod}
    async with Client.from_kubeconfig(server.kubeconfig_for(ONE)) as client:
        probe = {"metadata": {"name": "probe", "namespace": "default"}, "spec": spec}
        await client.apply(DAEMON_SETS, probe, field_manager="test")

    async def change(fork: Fork) -> None:
        async with fork.client(fork.names.of(server.cluster_url(ONE))) as member:
            await member.create(NODES, {"metadata": {"name": "new"}})
            ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
            await member.patch(NODES, "new", ready, subresource="status")

    plan = await fleet.plan(change)
    async with Client.from_kubeconfig(server.kubeconfig_for(ONE)) as client:
        await client.delete(DAEMON_SETS, "probe", "default")
    (probe,) = [one for cluster in plan.clusters for one in cluster.changes if one.kind == "DaemonSet"]
    assert ("status.numberReady", 2) in [(field.path, field.after) for field in probe.fields]


async def test_a_replica_that_fails_amid_a_change_leaves_it_to_the_next_one(fleet: LiveFleet) -> None:
    undisturbed = await fleet.plan(applying(agents()))
    plan = await fleet.plan(applying(agents()), replica_fails=True)
    assert plan.ended == "Rest"
    assert [group.changes for group in plan.groups] == [group.changes for group in undisturbed.groups]
    assert plan.sums.calls > undisturbed.sums.calls, "the other replica reads what it took over"


async def test_only_chosen_clusters_are_in_the_plan(fleet: LiveFleet) -> None:
    profiles: list[Object] = []

    async def recorded(fork: Fork) -> None:
        profiles.extend(await fork.server.local("root").list(CLUSTER_PROFILES))

    await fleet.plan(recorded)
    async with Client(fleet.management) as client:
        for one in profiles:
            kept = {part: one["metadata"].get(part) for part in ("name", "namespace", "labels", "annotations")}
            await client.apply(CLUSTER_PROFILES, {"metadata": kept, "spec": one["spec"]}, field_manager="test")
    plan = await fleet.plan(applying(agents()), labels="fleet.hortus.dev/purpose=production")
    for one in profiles:
        await fleet.delete(CLUSTER_PROFILES, one["metadata"]["name"])
    assert (plan.chosen, [one.name for one in plan.clusters]) == ((1, 2), [TWO])
    assert [one.kind for one in plan.shared] == ["AgentConfiguration"]


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
    async with Client.from_kubeconfig(server.kubeconfig_for(TWO)) as client:
        await _allow(client, server, TWO, "blind", but=("daemonsets",))
    blind = server.kubeconfig_dict(TWO)
    issued = server.server.clusters.issue(TWO, username="blind", groups=(), seconds=3600)
    blind["users"] = certificate_kubeconfig(issued, server=server.cluster_url(TWO), name=TWO)["users"]
    blind["contexts"][0]["context"]["user"] = blind["users"][0]["name"]
    async with live_fleet(management, server, tmp_path, {**kubeconfigs, TWO: blind}) as fleet:
        plan = await fleet.plan(applying(agents()))
    assert _made(plan, "DaemonSet") == {ONE: {f"Created {AGENT}"}}
    (unknown,) = plan.unknown
    assert (unknown.where, unknown.reason) == (TWO, 'User "blind" may not list them')
    assert unknown.kinds == ("daemonsets.apps",)
    assert unknown.fix == (
        'bind it to a ClusterRole with the rules {apiGroups: ["apps"], resources: [daemonsets], '
        "verbs: [get, list, watch]}"
    )
    _assert_reported(plan, f"{TWO}: daemonsets.apps", unknown.reason, unknown.fix)


@pytest.mark.parametrize("kinds", [("configmaps",), ("agentplacements.fleet.hortus.dev", "configmaps"), ("secrets",)])
async def test_kinds_of_the_management_cluster_that_may_not_be_listed_are_unknown_and_controllers_wait_for_them(
    management: TestServer, fleet: LiveFleet, kinds: tuple[str, ...]
) -> None:
    plurals = [kind.partition(".")[0] for kind in kinds]
    plan = await fleet.plan(applying(agents()), access=await _reader(management, but=plurals))
    (unknown,) = plan.unknown
    assert (unknown.where, unknown.kinds) == ("root", kinds)
    for plural in plurals:
        assert f"resources: [{plural}], verbs: [get, list, watch]}}" in unknown.fix
    _assert_reported(plan, unknown.reason, unknown.fix, "parts of 1 API server could not be read")
    assert {*kinds} <= {one.kind for one in plan.waits}
    assert "AgentConfiguration" in {one.kind for one in plan.shared}
    assert bool(_made(plan, "DaemonSet")) == (kinds == ("configmaps",))


async def test_without_the_crds_there_is_no_plan_and_the_error_names_the_rule(
    management: TestServer, fleet: LiveFleet
) -> None:
    access = await _reader(management, but=["customresourcedefinitions"])
    with pytest.raises(LiveReadFailed, match=r"resources: \[customresourcedefinitions\], verbs: \[get, list, watch\]"):
        await fleet.plan(applying(agents()), access=access)


async def _reader(server: TestServer, *, but: Sequence[str]) -> Access:
    """The access of a user who may read all kinds of the management cluster but some."""
    name, access = f"all-but-{'-'.join(but)}", load(server.kubeconfig).access()
    async with Client(access) as client:
        await _allow(client, server, "root", name, but=but)
    return msgspec.structs.replace(access, impersonate=Impersonation(user=name, groups=("system:authenticated",)))


async def _allow(client: Client, server: TestServer, cluster: str, user: str, *, but: Sequence[str]) -> None:
    """Lets a user read all kinds of a cluster but some."""
    plurals = {kind.resource.plural for kind in server.server.context.registry.kinds(cluster)} - {*but}
    rule = {"apiGroups": ["*"], "resources": sorted(plurals), "verbs": ["get", "list", "watch"]}
    group = "rbac.authorization.k8s.io"
    roles = Resource(group, "v1", "clusterroles", "ClusterRole", namespaced=False)
    bindings = Resource(group, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)
    role = {"apiGroup": group, "kind": "ClusterRole", "name": user}
    subjects = [{"apiGroup": group, "kind": "User", "name": user}]
    await client.apply(roles, {"metadata": {"name": user}, "rules": [rule]}, field_manager="test")
    binding = {"metadata": {"name": user}, "roleRef": role, "subjects": subjects}
    await client.apply(bindings, binding, field_manager="test")


async def test_controllers_wait_for_a_kind_whose_crd_is_missing_and_the_plan_says_so(
    server: TestServer, tmp_path: Path, kubeconfigs: dict[str, Object]
) -> None:
    with started_apiserver() as management:
        async with live_fleet(management, server, tmp_path, kubeconfigs, without=[AGENT_PLACEMENTS]) as fleet:
            plan = await fleet.plan(applying(agents()))
    assert (plan.ended, _made(plan, "DaemonSet")) == ("Rest", {})
    assert [one.kind for one in plan.shared] == ["AgentConfiguration"]
    (waits,) = plan.waits
    assert (waits.where, waits.kind, waits.reason) == ("root", "agentplacements.fleet.hortus.dev", MISSING)
    assert waits.controllers
    assert (plan.exit_code, plan.unknown) == (2, ())
    _assert_reported(plan, waits.kind, *waits.controllers, "nothing of theirs is planned")


def _assert_reported(plan: FleetPlan, *texts: str) -> None:
    """The texts stand in all formats."""
    read = unescape(re.sub(r"\\(\W|_)", r"\1", "\n".join(markdown(plan))))
    shown = "\n".join(lines(plan)), read, unescape(html(plan))
    for text in texts:
        assert [text in one for one in shown] == [True, True, True], text


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


async def test_writers_that_fight_at_one_instant_do_not_stop_time(server: TestServer, fleet: LiveFleet) -> None:
    fighting: list[asyncio.Task[None]] = []

    async def change(fork: Fork) -> None:
        await applying(agents())(fork)
        cluster, end = fork.names.of(server.cluster_url(ONE)), fork.clock.monotonic() + 600.0
        fighting.append(asyncio.create_task(_fight(fork, cluster, end)))

    plan = await fleet.plan(change)
    assert plan.ended == "Rest"
    assert fighting[0].done()
    assert fighting[0].exception() is None


async def _fight(fork: Fork, cluster: str, end: float) -> None:
    """Sets a label of a namespace back and forth, without a pause."""
    async with fork.client(cluster) as member:
        for team in itertools.cycle("ab"):
            await member.patch(NAMESPACES, "default", {"metadata": {"labels": {"team": team}}})
            if fork.clock.monotonic() >= end:
                return


async def _undo(fork: Fork, cluster: str, end: float) -> None:
    """Sets a label of the DaemonSet of one member to another value, again and again."""
    patch = {"spec": {"template": {"metadata": {"labels": {"team": "b"}}}}}
    while fork.clock.monotonic() < end:
        await fork.clock.sleep(240.0)
        with suppress(NotFound, Conflict):
            await fork.server.local(cluster, manager="somebody").patch(DAEMON_SETS, AGENT, patch, AGENT)


@pytest.mark.soak
async def test_a_change_that_never_rests_is_cut_short_by_the_budget(fleet: LiveFleet) -> None:
    working: list[asyncio.Task[None]] = []

    async def change(fork: Fork) -> None:
        working.append(asyncio.create_task(_count(fork)))

    plan = await fleet.plan(change, budget=20.0, until=1e9)
    assert (plan.ended, plan.exit_code) == ("Budget", 1)
    assert plan.passed > 3600
    _assert_reported(plan, "cut short: the budget of time was spent", "the budget of time was spent before everything")


async def _count(fork: Fork) -> None:
    """Writes something new for ever, too often to count as renewed."""
    root, number = fork.server.local("root", manager="somebody"), 0
    while True:
        number += 1
        await root.patch(SECRETS, "agent-keys", {"metadata": {"labels": {"count": str(number)}}}, FLEET)
        await fork.clock.sleep(120.0)
