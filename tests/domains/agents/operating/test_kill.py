"""A process that is killed at any of its requests is replaced without a trace: every await of a life is enumerated.

Each attempt has a cluster of its own. The first process is killed at one answer, an attempt later at the next; a second
process ends the work. All objects then are those of a work that nobody interrupted, down to the generations of
workloads: no pod was replaced once more.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

import pytest
from tests.domains.agents.operating.test_take_over import PODS, left_by_the_go_operator, left_by_the_operator_of_2_0
from tests.domains.agents.operating.world import HOME, AgentsWorld, agents_world
from tests.domains.attempts import Attempts, one_of

from hortus.domains.agents.operating.composition import AGENT, REMOTE
from hortus.domains.agents.operating.objects import BUDGETS, CONFIG_MAPS, DAEMON_SETS, DEPLOYMENTS, SECRETS
from hortus.domains.agents.ownership import MARK
from hortus.domains.agents.types import INSTANA_AGENTS, INSTANA_AGENTS_REMOTE
from hortus.kube.objects import Object
from hortus.testing.apiserver import TestServer

SENSOR = f"{HOME}-k8sensor"
RECORD = f"ConfigMap {HOME}/{HOME}-dependents"
UNSEEN = (f"ConfigMap {HOME}/kube-root-ca.crt",)
"""Objects of others, which come at some time."""
PARTS = 30
MINE, THEIRS = "v3.agent.instana.io/finalizer", "agent.instana.io/finalizer"
_OF_ONE_ATTEMPT = frozenset(
    (
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "managedFields",
        "lastTransitionTime",
        "lastUpdate",
        "clusterIP",
        "clusterIPs",
        MARK,
    )
)
Work = Callable[[AgentsWorld], Awaitable[object]]


def same_in_all(value: Any) -> Any:
    """A value without the parts that belong to one attempt."""
    if isinstance(value, Mapping):
        return {key: same_in_all(below) for key, below in value.items() if key not in _OF_ONE_ATTEMPT}
    return [same_in_all(item) for item in value] if isinstance(value, list) else value


async def state(here: AgentsWorld) -> Object:
    """All that agents consist of, with their CRs."""
    await here.at_rest()
    found: Object = dict(await here.owned())
    for resource in (INSTANA_AGENTS, INSTANA_AGENTS_REMOTE, PODS):
        for obj in (await here.client.list(resource, "")).items:
            found[f"{resource.kind} {obj['metadata']['name']}"] = obj
    for resource in (CONFIG_MAPS, SECRETS):
        for obj in (await here.client.list(resource, HOME)).items:
            found.setdefault(f"{resource.kind} {HOME}/{obj['metadata']['name']}", obj)
    for name in UNSEEN:
        found.pop(name, None)
    whole: Object = same_in_all(found)
    return whole


AGENTS = Attempts[AgentsWorld](AGENT, state, parts=PARTS)
REMOTES = Attempts[AgentsWorld](REMOTE, state, parts=PARTS)
BUDGET = {"podDisruptionBudget": {"enabled": True}}


async def wanted(here: AgentsWorld) -> None:
    await here.agent(k8s_sensor=BUDGET)


async def changed(here: AgentsWorld) -> None:
    """An agent that runs gets zones, another backend and its key from a Secret, and loses its budget."""
    await wanted(here)
    async with here.controllers():
        await here.reconciled()
    await here.secret("keys", key=b"a", key_1=b"b")
    backends = [{"endpointHost": "other.example.org", "endpointPort": "443"}]
    agent = {"keysSecret": "keys", "key": None, "additionalBackends": backends}
    spec = {"agent": agent, "zones": [{"name": "a"}, {"name": "b"}], "k8s_sensor": {"podDisruptionBudget": None}}
    await here.change(INSTANA_AGENTS, HOME, {"spec": spec})


async def changed_in_full(here: AgentsWorld) -> None:
    await here.reconciled()
    for resource, name in ((DAEMON_SETS, HOME), (BUDGETS, SENSOR), (SECRETS, HOME)):
        await here.gone(resource, name)


async def taken_over(here: AgentsWorld) -> None:
    await here.reconciled()
    await here.gone(CONFIG_MAPS, "former")


async def migrated(here: AgentsWorld) -> None:
    await here.reconciled()
    await here.ready(DAEMON_SETS, HOME)
    await here.ready(DEPLOYMENTS, SENSOR)
    await here.until(lambda agent: agent["metadata"].get("finalizers") == [MINE])


@pytest.mark.parametrize(
    ("prepare", "work", "least"),
    [
        (wanted, AgentsWorld.reconciled, 30),
        (changed, changed_in_full, 30),
        (left_by_the_go_operator, taken_over, 10),
        (left_by_the_operator_of_2_0, migrated, 40),
    ],
    ids=["installation", "change", "take-over", "take-over from 2.0"],
)
@one_of(PARTS)
async def test_a_kill_at_any_await_leaves_no_trace(
    server: TestServer, prepare: Work, work: Work, least: int, part: int
) -> None:
    await AGENTS.assert_no_kill_shows(partial(agents_world, server), part, prepare, work, least=least)


# Deletion.


async def deleted(here: AgentsWorld) -> None:
    await wanted(here)
    async with here.controllers():
        await here.reconciled()
    await here.client.delete(INSTANA_AGENTS, HOME, HOME)


async def deleted_before_its_migration(here: AgentsWorld) -> None:
    await left_by_the_operator_of_2_0(here)
    await here.client.delete(INSTANA_AGENTS, HOME, HOME)


async def remote_deleted_next_to_another(here: AgentsWorld) -> None:
    await here.remote("outside")
    await here.remote("staying")
    async with here.controllers():
        for name in ("outside", "staying"):
            await here.reconciled(name, resource=INSTANA_AGENTS_REMOTE)
        await here.at_rest()
    await here.client.delete(INSTANA_AGENTS_REMOTE, "outside", HOME)


async def agent_gone(here: AgentsWorld) -> None:
    await here.gone(INSTANA_AGENTS, HOME)


async def remote_gone(here: AgentsWorld) -> None:
    await here.gone(INSTANA_AGENTS_REMOTE, "outside")


async def left(here: AgentsWorld) -> Object:
    """All that remains but the record, which garbage collection deletes at some time after its owner."""
    found = await state(here)
    return {name: obj for name, obj in found.items() if not name.endswith("-dependents") or "staying" in name}


@pytest.mark.parametrize(
    ("prepare", "least"), [(deleted, 30), (deleted_before_its_migration, 5)], ids=["of ours", "of 2.0"]
)
@one_of(PARTS)
async def test_a_kill_at_any_await_of_a_deletion_leaves_nothing_behind(
    server: TestServer, prepare: Work, least: int, part: int
) -> None:
    world = partial(agents_world, server)
    await AGENTS.assert_no_kill_shows(world, part, prepare, agent_gone, least=least, state=left)


@one_of(PARTS)
async def test_a_kill_at_any_await_of_the_deletion_of_a_remote_leaves_the_account_to_the_other(
    server: TestServer, part: int
) -> None:
    world = partial(agents_world, server)
    prepare = remote_deleted_next_to_another
    await REMOTES.assert_no_kill_shows(world, part, prepare, remote_gone, least=10, state=left)
