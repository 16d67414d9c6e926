"""The way back: the Go operator, with its own permissions alone, goes on where Hortus stopped."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.domains.agents.operating.go_operator import FINALIZER, VERSION, GoOperator, go_account
from tests.domains.agents.operating.test_take_over import templates
from tests.domains.agents.operating.world import HOME, AgentsWorld, base

from hortus.domains.agents.builders.facts import SECRETS_VOLUME
from hortus.domains.agents.operating.objects import BUDGETS, CONFIG_MAPS, DAEMON_SETS, FIELD_MANAGER
from hortus.domains.agents.types import INSTANA_AGENTS
from hortus.kube import Client
from hortus.kube.objects import Object

SENSOR = f"{HOME}-k8sensor"
RECORD = f"{HOME}-dependents"


@pytest.fixture
async def go(here: AgentsWorld, upstream: Path, tmp_path: Path) -> AsyncIterator[GoOperator]:
    path = await go_account(here, upstream, tmp_path)
    async with Client.from_kubeconfig(path) as client:
        yield GoOperator(client)


async def run_by_hortus(here: AgentsWorld) -> dict[str, Object]:
    """The objects that it leaves behind."""
    async with here.controllers():
        await here.reconciled()
        await here.at_rest()
    return await here.owned()


async def test_the_go_operator_takes_over_what_hortus_made_and_replaces_no_pod(
    here: AgentsWorld, go: GoOperator
) -> None:
    backends = [{"endpointHost": "other.example.org", "endpointPort": "443", "key": "another"}]
    await here.agent(agent=base(additionalBackends=backends), k8s_sensor={"podDisruptionBudget": {"enabled": True}})
    before = await run_by_hortus(here)
    await go.reconcile(HOME, HOME)
    after = await here.owned()
    assert len(templates(before)) == 3
    assert templates(after) == templates(before)
    # No second manager or owner is left in any object.
    # The Go operator's Role in kube-system has an owner in another namespace, and garbage collection may delete it.
    assert {name for name in before if "/kube-system/" not in name.replace(" ", "/")} <= set(after) <= set(before)
    for name, obj in after.items():
        managers = {entry["manager"] for entry in obj["metadata"]["managedFields"]}
        assert managers == {FIELD_MANAGER}, name
        owners = obj["metadata"].get("ownerReferences", [])
        assert [one["name"] for one in owners] == ([] if name.startswith("Cluster") else [HOME]), name
    agent = await here.get(INSTANA_AGENTS, HOME)
    assert agent is not None
    assert agent["metadata"]["finalizers"] == [FINALIZER]


async def test_the_go_operator_deletes_what_the_record_of_hortus_names(here: AgentsWorld, go: GoOperator) -> None:
    await here.agent(k8s_sensor={"podDisruptionBudget": {"enabled": True}})
    await run_by_hortus(here)
    spec = {"zones": [{"name": "a"}], "k8s_sensor": {"podDisruptionBudget": None}}
    await here.change(INSTANA_AGENTS, HOME, {"spec": spec})
    await go.reconcile(HOME, HOME)
    assert await here.get(BUDGETS, SENSOR) is None
    assert await here.get(DAEMON_SETS, HOME) is None
    record = await here.get(CONFIG_MAPS, RECORD)
    assert record is not None
    assert list(record["data"]) == [f"{VERSION}_2"]


async def test_the_go_operator_finds_all_objects_of_an_agent_that_is_deleted(here: AgentsWorld, go: GoOperator) -> None:
    await here.agent(k8s_sensor={"podDisruptionBudget": {"enabled": True}})
    await run_by_hortus(here)
    await here.client.delete(INSTANA_AGENTS, HOME, HOME)
    await go.reconcile(HOME, HOME)
    await here.gone(INSTANA_AGENTS, HOME)
    assert set(await here.owned()) <= {f"ConfigMap {HOME}/{RECORD}"}  # its owner takes it along


async def test_a_change_that_hortus_did_not_end_is_ended_by_the_go_operator(here: AgentsWorld, go: GoOperator) -> None:
    """Hortus stops between its record and its deletions: the record names the objects of both sets."""
    await here.agent()
    await run_by_hortus(here)
    record = await here.get(CONFIG_MAPS, RECORD)
    assert record is not None
    former = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "former", "namespace": HOME}}
    await here.create(CONFIG_MAPS, "former")
    (key,) = record["data"]
    entries = [*json.loads(record["data"][key]), former]
    await here.change(CONFIG_MAPS, RECORD, {"data": {f"{key}-dirty": json.dumps(entries)}})
    await go.reconcile(HOME, HOME)
    assert await here.get(CONFIG_MAPS, "former") is None
    assert await here.get(DAEMON_SETS, HOME) is not None


async def test_hortus_again_after_the_go_operator_replaces_no_pod(here: AgentsWorld, go: GoOperator) -> None:
    await here.agent()
    before = await run_by_hortus(here)
    await go.reconcile(HOME, HOME)
    await here.change(INSTANA_AGENTS, HOME, {"metadata": {"labels": {"touched": "yes"}}})
    again = await run_by_hortus(here)
    assert templates(again) == templates(before)
    roles = [obj for name, obj in again.items() if name.startswith("Role")]
    assert [obj["metadata"].get("ownerReferences") for obj in roles] == [None, None]


async def test_keys_of_a_users_secret_are_the_only_part_of_a_template_that_the_go_operator_has_otherwise(
    here: AgentsWorld, go: GoOperator
) -> None:
    await here.secret("keys", key=b"some-key")
    await here.agent(agent=base(key="", keysSecret="keys"))
    before = templates(await run_by_hortus(here))
    await go.reconcile(HOME, HOME)
    after = templates(await here.owned())
    name = f"DaemonSet {HOME}/{HOME}"

    def without_secrets(template: Object) -> Object:
        spec = template["spec"]
        return {
            **template,
            "spec": {**spec, "volumes": [one for one in spec["volumes"] if one["name"] != SECRETS_VOLUME]},
        }

    assert without_secrets(after[name][0]) == without_secrets(before[name][0])
    assert after[name][0] != before[name][0]
