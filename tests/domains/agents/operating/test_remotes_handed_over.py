"""Remotes between the Go operator and Hortus, there and back: no pod is replaced, but for a new one's probe."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.domains.agents.operating.go_operator import FINALIZER, VERSION, GoOperator, go_account
from tests.domains.agents.operating.test_take_over import templates
from tests.domains.agents.operating.world import HOME, AgentsWorld, base

from hortus.domains.agents.operating.objects import ACCOUNTS, CONFIG_MAPS, DEPLOYMENTS, FIELD_MANAGER, SECRETS
from hortus.domains.agents.types import INSTANA_AGENTS_REMOTE
from hortus.kube import Client
from hortus.kube.objects import Object

NAME = "outside"
WORKLOAD = f"instana-agent-r-{NAME}"
ACCOUNT = "instana-agent-remote"
RECORD = f"{NAME}-dependents"
OBJECTS = {
    f"Deployment {HOME}/{WORKLOAD}",
    f"Secret {HOME}/{NAME}",
    f"Secret {HOME}/{WORKLOAD}-config",
    f"ServiceAccount {HOME}/{ACCOUNT}",
}
BACKENDS = [{"endpointHost": "other.example.org", "endpointPort": "443", "key": "another"}]


@pytest.fixture
async def go(here: AgentsWorld, upstream: Path, tmp_path: Path) -> AsyncIterator[GoOperator]:
    path = await go_account(here, upstream, tmp_path)
    async with Client.from_kubeconfig(path) as client:
        yield GoOperator(client, INSTANA_AGENTS_REMOTE)


async def run_by_hortus(here: AgentsWorld) -> dict[str, Object]:
    """The objects that it leaves behind."""
    async with here.controllers():
        await here.reconciled(NAME, resource=INSTANA_AGENTS_REMOTE)
        await here.at_rest()
    return await here.owned()


def probe(objects: dict[str, Object]) -> Object:
    (container,) = objects[f"Deployment {HOME}/{WORKLOAD}"]["spec"]["template"]["spec"]["containers"]
    found: Object = container["livenessProbe"]["httpGet"]
    return found


async def test_taking_over_a_remote_changes_no_pod_template(here: AgentsWorld, go: GoOperator) -> None:
    await here.remote(NAME, agent=base(additionalBackends=BACKENDS))
    await go.reconcile(NAME, HOME)
    before = await here.owned()
    after = await run_by_hortus(here)
    assert before.keys() - {f"ConfigMap {HOME}/{RECORD}"} == OBJECTS
    assert after.keys() == before.keys()
    assert templates(after) == templates(before)
    assert probe(after)["host"] == "127.0.0.1"


async def test_what_the_go_operator_recorded_of_former_sets_is_deleted(here: AgentsWorld, go: GoOperator) -> None:
    await here.remote(NAME)
    await go.reconcile(NAME, HOME)
    await here.change(INSTANA_AGENTS_REMOTE, NAME, {"spec": {"agent": {"key": "", "keysSecret": "keys"}}})
    await here.secret("keys", key=b"some-key")
    await run_by_hortus(here)
    assert await here.get(SECRETS, NAME) is None
    record = await here.get(CONFIG_MAPS, RECORD)
    assert record is not None
    assert not [key for key in record["data"] if key.startswith(VERSION)]


async def test_the_way_back_replaces_the_pods_for_nothing_but_the_probe(here: AgentsWorld, go: GoOperator) -> None:
    await here.remote(NAME)
    before = await run_by_hortus(here)
    assert "host" not in probe(before)
    await go.reconcile(NAME, HOME)
    after = await here.owned()
    assert after.keys() == before.keys()
    assert probe(after).pop("host") == "127.0.0.1"
    workload = f"Deployment {HOME}/{WORKLOAD}"
    assert after[workload]["spec"]["template"] == before[workload]["spec"]["template"]
    for name, obj in after.items():
        assert {entry["manager"] for entry in obj["metadata"]["managedFields"]} == {FIELD_MANAGER}, name
        assert [one["name"] for one in obj["metadata"]["ownerReferences"]] == [NAME], name
    remote = await here.get(INSTANA_AGENTS_REMOTE, NAME)
    assert remote is not None
    assert remote["metadata"]["finalizers"] == [FINALIZER]
    gone_back = templates(await here.owned())
    again = await run_by_hortus(here)
    assert templates(again) == gone_back
    assert probe(again)["host"] == "127.0.0.1"


async def test_each_deletes_all_that_the_other_recorded(here: AgentsWorld, go: GoOperator) -> None:
    await here.remote(NAME)
    await run_by_hortus(here)
    await here.client.delete(INSTANA_AGENTS_REMOTE, NAME, HOME)
    await go.reconcile(NAME, HOME)
    await here.gone(INSTANA_AGENTS_REMOTE, NAME)
    assert set(await here.owned()) <= {f"ConfigMap {HOME}/{RECORD}"}  # its owner takes it along
    await here.gone(CONFIG_MAPS, RECORD)
    await here.remote(NAME)
    await go.reconcile(NAME, HOME)
    await here.client.delete(INSTANA_AGENTS_REMOTE, NAME, HOME)
    async with here.controllers():
        await here.gone(INSTANA_AGENTS_REMOTE, NAME)
        await here.gone(DEPLOYMENTS, WORKLOAD)
        await here.gone(ACCOUNTS, ACCOUNT)
