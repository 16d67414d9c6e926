"""Versions of an AgentConfiguration as changes that a RolloutPolicy governs."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from tests.domains.agents.fleet.world import (
    AGENT,
    DAEMON_SETS,
    FLEET,
    AgentWorld,
    clusters,
    is_running,
    message,
    ready,
    version,
)
from tests.waiting import until

from hortus.domains.agents.fleet.changes import AGENT_CHANGE, CHANGE_KIND
from hortus.domains.agents.types import AGENT_PLACEMENTS
from hortus.engine import Manager, without_managed_fields
from hortus.engine.rollouts import RolloutGate
from hortus.engine.rollouts.types import MOVED, ROLLOUT_POLICIES, WANTS, PlacementDecision, Rollout, RolloutPolicy
from hortus.kube.objects import Object
from hortus.schema.cel.program import compile_expression
from hortus.testing.clusters import install


async def govern(here: AgentWorld) -> None:
    await install(here.client, RolloutPolicy, Rollout, PlacementDecision)
    here.gate = _gate


def _gate(manager: Manager) -> RolloutGate:
    return RolloutGate(partial(manager.cache, namespace=FLEET, transform=without_managed_fields))


async def governed(manager: Manager) -> None:
    """Returns when the gate knows the policy: a change that another watch shows before would not wait."""
    cache = manager.cache(ROLLOUT_POLICIES, namespace=FLEET, transform=without_managed_fields)
    await until(lambda: [*cache.values()])


async def policy(here: AgentWorld) -> None:
    await here.client.create(
        ROLLOUT_POLICIES,
        {
            "apiVersion": ROLLOUT_POLICIES.api_version,
            "kind": ROLLOUT_POLICIES.kind,
            "metadata": {"name": "calm", "namespace": FLEET},
            "spec": {"changes": [{"kind": AGENT_CHANGE, "subjects": ["*"]}], "stages": [{"name": "all"}]},
        },
    )


async def test_an_upgrade_of_the_operator_waits_for_its_rollout_and_replaces_no_pod(here: AgentWorld) -> None:
    await govern(here)
    await here.keys()
    await here.member("one")
    await here.configure()
    async with here.controllers():
        await here.run_pods("one")
        await here.placement("one", is_running)
    before = await here.inside_object("one", DAEMON_SETS, AGENT)
    await policy(here)
    here.operator_version = "v2.2.16"
    async with here.controllers():
        await here.placement("one", lambda obj: "A change waits" in message(obj))
        assert await here.inside_object("one", DAEMON_SETS, AGENT) == before
        await here.client.delete(ROLLOUT_POLICIES, "calm", FLEET)
        await here.placement("one", lambda obj: version(obj) == obj["spec"]["version"])
    after = await here.inside_object("one", DAEMON_SETS, AGENT)
    assert before is not None and after is not None
    assert after["metadata"]["labels"]["app.kubernetes.io/version"] == "v2.2.16"
    assert after["metadata"]["generation"] == before["metadata"]["generation"]


async def test_a_new_version_waits_for_its_rollout_with_the_old_one_running(here: AgentWorld) -> None:
    await govern(here)
    await here.keys()
    await here.member("one")
    await here.configure()
    async with here.controllers() as manager:
        await here.run_pods("one")
        before = await here.placement("one", is_running)
        await policy(here)
        await governed(manager)
        await here.keys(key="another-key")
        found = await here.placement("one", lambda obj: "A change waits" in message(obj))
        wanted = found["spec"]["version"]
        assert found["metadata"]["annotations"][f"{WANTS}{AGENT_CHANGE}"] == wanted
        assert found["status"]["version"] == before["status"]["version"] != wanted
        assert ready(found) == ("True", "AgentsRunning")
        fleet = await here.configuration(lambda obj: clusters(obj).get("waiting") == 1)
        assert "1 wait for a rollout" in message(fleet)
        await here.client.delete(ROLLOUT_POLICIES, "calm", FLEET)
        found = await here.placement("one", lambda obj: version(obj) == wanted)
        found = await here.placement(
            "one", lambda obj: f"{MOVED}{AGENT_CHANGE}" in (obj["metadata"].get("annotations") or {})
        )
        assert f"{WANTS}{AGENT_CHANGE}" not in found["metadata"]["annotations"]


async def test_a_first_installation_waits_too_and_a_version_taken_back_waits_no_more(here: AgentWorld) -> None:
    await govern(here)
    await here.keys()
    await policy(here)
    await here.member("one")
    await here.configure()
    async with here.controllers() as manager:
        found = await here.placement("one", lambda obj: ready(obj)[1] == "WaitsForRollout")
        assert "policy calm governs it" in message(found)
        assert await here.inside_object("one", DAEMON_SETS, AGENT) is None
        await here.client.delete(ROLLOUT_POLICIES, "calm", FLEET)
        await here.run_pods("one")
        await here.placement("one", is_running)
        await policy(here)
        await governed(manager)
        await here.keys(key="another-key")
        await here.placement("one", lambda obj: "A change waits" in message(obj))
        await here.keys()
        found = await here.placement(
            "one", lambda obj: f"{WANTS}{AGENT_CHANGE}" not in (obj["metadata"].get("annotations") or {})
        )
        assert found["spec"]["version"] == found["status"]["version"]


def seen(placement: Object, expression: str) -> Any:
    return compile_expression(expression, {"self": "any", "to": "string"}).run({"self": placement, "to": "b"})


@pytest.mark.parametrize(
    ("status", "reason", "installed", "succeeded", "failed"),
    [
        ("True", "AgentsRunning", "b", True, False),
        ("True", "AgentsRunning", "a", False, False),
        ("Unknown", "AgentsRolling", "b", False, False),
        ("False", "ObjectsRefused", "a", False, True),
        ("Unknown", "ClusterUnreachable", "a", False, False),
    ],
)
def test_a_change_is_seen_in_its_placement(
    status: str, reason: str, installed: str, succeeded: bool, failed: bool
) -> None:
    spec = CHANGE_KIND.spec
    placement: Object = {
        "apiVersion": AGENT_PLACEMENTS.api_version,
        "kind": AGENT_PLACEMENTS.kind,
        "metadata": {"name": "instana-agent.one"},
        "spec": {"cluster": "one", "configuration": "fleet", "version": "b"},
        "status": {
            "version": installed,
            "conditions": [{"type": "Ready", "status": status, "reason": reason, "message": "why"}],
        },
    }
    assert [seen(placement, text) for text in (spec.cluster, spec.subject, spec.version, spec.message)] == [
        "one",
        "fleet",
        installed,
        "why",
    ]
    assert (seen(placement, spec.succeeded), seen(placement, spec.failed)) == (succeeded, failed)
    bare: Object = {"metadata": {"name": "instana-agent.one"}, "spec": {"cluster": "one", "configuration": "fleet"}}
    assert [seen(bare, text) for text in (spec.version, spec.succeeded, spec.failed, spec.message)] == [
        "",
        False,
        False,
        "",
    ]
