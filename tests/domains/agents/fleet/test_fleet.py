"""An AgentConfiguration brings its agent to the clusters that it selects, and takes it away again."""

from __future__ import annotations

import base64

import orjson
import pytest
from tests.domains.agents.fleet.world import (
    AGENT,
    DAEMON_SETS,
    DEPLOYMENTS,
    FLEET,
    NAMESPACES,
    AgentWorld,
    clusters,
    is_running,
    message,
    ready,
    version,
)
from tests.waiting import until

from hortus.domains.agents.fleet import removal
from hortus.domains.agents.types import AGENT_CONFIGURATIONS, AGENT_PLACEMENTS
from hortus.engine.kubeconfigs import SECRETS
from hortus.kube.objects import Object
from hortus.testing.waiting import wait_gone


async def test_the_agent_goes_to_the_clusters_of_the_selector_with_their_own_values(here: AgentWorld) -> None:
    await here.keys()
    for name, stage in (("one", "test"), ("two", "test"), ("three", "live")):
        await here.member(name, labels={"stage": stage}, provider="aws" if name == "one" else "azure")
    expression = "{'zone': {'name': cluster.region}, 'agent': {'pod': {'labels': {'provider': cluster.provider}}}}"
    await here.configure(clusterSelector={"matchLabels": {"stage": "test"}}, perCluster=expression)
    async with here.controllers():
        for name in ("one", "two"):
            await here.run_pods(name)
            await here.placement(name, is_running)
        fleet = await here.configuration(lambda obj: ready(obj) == ("True", "AllReady"))
        assert fleet["status"]["clusters"] == {
            "selected": 2,
            "current": 2,
            "ready": 2,
            "waiting": 0,
            "failed": 0,
            "overruled": 0,
        }
        assert fleet["status"]["nodes"] == {"desired": 6, "available": 6, "updated": 6}
        assert "worst" not in fleet["status"]
        assert await here.placed() == {"one", "two"}
        for name, provider in (("one", "aws"), ("two", "azure")):
            found = await here.inside_object(name, DAEMON_SETS, AGENT)
            assert found is not None
            template = found["spec"]["template"]
            env = {one["name"]: one.get("value") for one in template["spec"]["containers"][0]["env"]}
            assert env["INSTANA_KUBERNETES_CLUSTER_NAME"] == name
            assert env["INSTANA_ZONE"] == "eu-central-1"
            assert template["metadata"]["labels"]["provider"] == provider
            secret = await here.inside_object(name, SECRETS, "agent-keys")
            assert secret is not None and base64.b64decode(secret["data"]["key"]) == b"replace-key"
        assert await here.inside_object("three", NAMESPACES, AGENT) is None


async def test_a_fleet_at_rest_costs_no_request_and_a_restart_no_write(here: AgentWorld) -> None:
    await here.keys()
    await here.member("one")
    await here.configure()
    async with here.controllers() as manager:
        await here.run_pods("one")
        await here.placement("one", is_running)
        await here.configuration(lambda obj: ready(obj) == ("True", "AllReady"))
        await here.at_rest(manager)

        async def requests() -> int:
            """The number of requests while everything is reconciled once."""
            before = len(here.requests.home) + len(here.requests.remote)
            for controller in manager.controllers:
                controller.enqueue_all()
            await here.at_rest(manager)
            return len(here.requests.home) + len(here.requests.remote) - before

        async def costs_nothing() -> bool:
            return await requests() == 0 and await requests() == 0

        await until(costs_nothing)  # a report that was put off may still be due
    async with here.controllers() as manager:
        await until(lambda: len(here.requests.remote) > 20)
        await here.at_rest(manager)
        assert here.requests.writes == []


async def test_a_cluster_that_leaves_the_selection_loses_the_agent(here: AgentWorld) -> None:
    await here.keys()
    for name in ("one", "two"):
        await here.member(name, labels={"stage": "test"})
    await here.configure(clusterSelector={"matchLabels": {"stage": "test"}})
    async with here.controllers():
        for name in ("one", "two"):
            await here.run_pods(name)
            await here.placement(name, is_running)
        await here.label("one", stage="live")
        await wait_gone(here.client, AGENT_PLACEMENTS, f"{AGENT}.one", FLEET)
        for resource, name in ((DAEMON_SETS, AGENT), (SECRETS, "agent-keys"), (NAMESPACES, AGENT)):
            assert await here.inside_object("one", resource, name) is None
        await here.configuration(lambda obj: clusters(obj).get("selected") == 1)
        assert await here.inside_object("two", DAEMON_SETS, AGENT) is not None
        await here.client.delete(AGENT_CONFIGURATIONS, "fleet", FLEET)
        await wait_gone(here.client, AGENT_CONFIGURATIONS, "fleet", FLEET)
    assert await here.placed() == set()
    assert await here.inside_object("two", DEPLOYMENTS, f"{AGENT}-k8sensor") is None


async def test_a_namespace_that_finalizers_hold_is_awaited_by_its_watch(
    here: AgentWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "PAUSE", 300.0)
    await here.keys()
    await here.member("one")
    await here.configure()
    async with here.controllers(), here.inside("one") as inside:
        await here.placement("one", lambda obj: "version" in (obj.get("status") or {}))
        await inside.patch(NAMESPACES, AGENT, {"metadata": {"finalizers": ["example.org/hold"]}})
        await here.client.delete(AGENT_CONFIGURATIONS, "fleet", FLEET)
        await here.placement("one", lambda obj: "its finalizers hold it" in message(obj))
        await inside.patch(NAMESPACES, AGENT, {"metadata": {"finalizers": None}})
        await wait_gone(here.client, AGENT_PLACEMENTS, f"{AGENT}.one", FLEET)


async def test_a_rotated_key_reaches_every_cluster_as_a_new_version(here: AgentWorld) -> None:
    await here.keys()
    for name in ("one", "two"):
        await here.member(name)
    await here.configure()
    async with here.controllers():
        first = {}
        for name in ("one", "two"):
            await here.run_pods(name)
            first[name] = (await here.placement(name, is_running))["status"]["version"]
        assert len(set(first.values())) == 1
        await here.keys(key="another-key")
        for name in ("one", "two"):
            found = await here.placement(name, lambda obj: version(obj) not in ("", *first.values()))
            secret = await here.inside_object(name, SECRETS, "agent-keys")
            assert secret is not None and base64.b64decode(secret["data"]["key"]) == b"another-key"
            assert found["status"]["version"] == found["spec"]["version"]
        written = orjson.dumps((await here.client.list(AGENT_PLACEMENTS, FLEET)).items)
        assert b"another-key" not in written and base64.b64encode(b"another-key") not in written


async def test_of_two_configurations_the_one_with_the_higher_priority_counts(here: AgentWorld) -> None:
    await here.keys()
    await here.member("one")
    await here.configure("common", agent={"mode": "APM"})
    async with here.controllers():
        await here.run_pods("one")
        await here.placement("one", is_running)
        uid = (await here.inside_object("one", DAEMON_SETS, AGENT) or {})["metadata"]["uid"]
        await here.configure("special", agent={"mode": "INFRASTRUCTURE"}, priority=1)
        await here.placement("one", lambda obj: obj["spec"]["configuration"] == "special")
        await here.configuration(lambda obj: clusters(obj).get("overruled") == 1, "common")
        await here.placement("one", lambda obj: version(obj) == obj["spec"]["version"])
        found = await here.inside_object("one", DAEMON_SETS, AGENT)
        assert found is not None and found["metadata"]["uid"] == uid
        assert found["spec"]["template"]["metadata"]["labels"]["instana/agent-mode"] == "INFRASTRUCTURE"
        await here.client.delete(AGENT_CONFIGURATIONS, "special", FLEET)
        await wait_gone(here.client, AGENT_CONFIGURATIONS, "special", FLEET)
        await here.placement("one", lambda obj: obj["spec"]["configuration"] == "common")
        assert (await here.inside_object("one", DAEMON_SETS, AGENT) or {})["metadata"]["uid"] == uid


async def test_what_somebody_changes_in_a_cluster_is_repaired_at_once(here: AgentWorld) -> None:
    await here.keys()
    await here.member("one")
    await here.configure()
    async with here.controllers(), here.inside("one") as client:
        await here.run_pods("one")
        await here.placement("one", is_running)
        await client.patch(DAEMON_SETS, AGENT, {"spec": {"template": {"spec": {"hostPID": False}}}}, AGENT)

        async def repaired() -> Object | None:
            found = await client.get(DAEMON_SETS, AGENT, AGENT)
            return found if found["spec"]["template"]["spec"].get("hostPID") else None

        assert await until(repaired)
        await client.delete(DEPLOYMENTS, f"{AGENT}-k8sensor", AGENT)

        async def again() -> bool:
            return bool((await client.list(DEPLOYMENTS, AGENT)).items)

        assert await until(again)


async def test_numbers_show_the_nodes_without_an_agent(here: AgentWorld) -> None:
    await here.keys()
    await here.member("one")
    await here.configure()
    async with here.controllers():
        await here.run_pods("one", nodes=5, available=3)
        found = await here.placement("one", lambda obj: (obj.get("status") or {}).get("nodes", {}).get("desired") == 5)
        assert found["status"]["nodes"] == {"desired": 5, "available": 3, "updated": 5}
        assert ready(found) == ("Unknown", "AgentsRolling")
        assert "available on 3 of 5 nodes" in message(found)
        fleet = await here.configuration(lambda obj: (obj.get("status") or {}).get("worst"))
        assert [one["name"] for one in fleet["status"]["worst"]] == ["one"]
