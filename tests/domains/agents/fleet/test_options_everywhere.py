"""Options of an AgentConfiguration: they reach every cluster as a version of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.domains.agents.fleet.world import (
    AGENT,
    DAEMON_SETS,
    FLEET,
    AgentWorld,
    is_running,
    message,
    ready,
)

from hortus.apiserver.pods import PodPage
from hortus.domains.agents.fleet.counting import PlacementState
from hortus.domains.agents.fleet.explaining import explained, rows
from hortus.domains.agents.names import AGENTS_REPORT
from hortus.domains.agents.options import OPTIONS_ANNOTATION
from hortus.domains.agents.types import AGENT_CONFIGURATIONS, AgentPlacement
from hortus.engine import find_condition, read
from hortus.engine.kubeconfigs import SECRETS
from hortus.engine.serving import pair_of
from hortus.kube import PatchKind
from hortus.kube.objects import Object, Resource
from hortus.testing.apiserver import TestServer, started_apiserver
from hortus.testing.waiting import wait_for

NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
PODS = Resource("", "v1", "pods", "Pod")
ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")


class Network:
    """All agents say the same."""

    code = 200

    async def get(self, cluster: str, pod: Object, port: int, path: str) -> PodPage:
        return PodPage(self.code, b"")


@pytest.fixture(scope="module")
def server() -> Iterator[TestServer]:
    with started_apiserver() as running:
        yield running


@pytest.fixture
def network(server: TestServer) -> Network:
    made = Network()
    server.server.reach_pods(made)
    return made


async def annotate(here: AgentWorld, text: str | None) -> None:
    body = {"metadata": {"annotations": {OPTIONS_ANNOTATION: text}}}
    await here.client.patch(AGENT_CONFIGURATIONS, "fleet", body, FLEET)


def container(daemon_set: Object) -> Object:
    found: Object = daemon_set["spec"]["template"]["spec"]["containers"][0]
    return found


async def test_options_reach_the_clusters_as_a_version_and_leave_with_the_annotation(here: AgentWorld) -> None:
    await here.keys()
    await here.member("one")
    await here.configure()
    async with here.controllers(), here.inside("one") as client:
        await here.run_pods("one")
        plain = (await here.placement("one", is_running))["spec"]["version"]
        before = await client.get(DAEMON_SETS, AGENT, AGENT)
        await annotate(here, "{readinessProbe: true, sensorNetwork: {enabled: true}}")
        changed = await here.placement("one", lambda obj: obj["spec"]["version"] != plain)
        await here.placement("one", lambda obj: obj["status"].get("version") == changed["spec"]["version"])
        assert "readinessProbe" in container(await client.get(DAEMON_SETS, AGENT, AGENT))
        policies = Resource("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy")
        await wait_for(client, policies, f"{AGENT}-k8sensor", AGENT)
        await annotate(here, None)
        await here.placement("one", lambda obj: obj["status"].get("version") == plain)
        await here.gone_inside("one", policies, f"{AGENT}-k8sensor")
        after = await client.get(DAEMON_SETS, AGENT, AGENT)
        assert after["spec"]["template"] == before["spec"]["template"]


async def test_zones_are_those_of_each_cluster_s_nodes(here: AgentWorld) -> None:
    await here.keys()
    for name, zone in (("one", "a"), ("two", "b")):
        await here.member(name)
        async with here.inside(name) as client:
            await client.create(NODES, {"metadata": {"name": "n", "labels": {"zone": zone}}})
    await here.configure()
    await annotate(here, "zoneLabel: zone")
    async with here.controllers():
        for name, zone in (("one", "a"), ("two", "b")):
            async with here.inside(name) as client:
                await wait_for(client, DAEMON_SETS, f"{AGENT}-{zone}", AGENT)
                assert len((await client.list(DAEMON_SETS, AGENT)).items) == 1


async def test_a_labelled_configuration_of_a_cluster_is_merged(here: AgentWorld) -> None:
    await here.keys()
    await here.member("one")
    async with here.inside("one") as client:
        await client.create(
            Resource("", "v1", "namespaces", "Namespace", namespaced=False), {"metadata": {"name": AGENT}}
        )
        labels = {"instana.io/agent-config": "true"}
        maps = Resource("", "v1", "configmaps", "ConfigMap")
        body = {"metadata": {"name": "c", "namespace": AGENT, "labels": labels}, "data": {"configuration_yaml": "a: ["}}
        await client.create(maps, body)
    await here.configure()
    await annotate(here, "mergeConfigurations: true")
    async with here.controllers():
        failed = await here.placement("one", lambda obj: ready(obj) == ("False", "RenderFailed"))
    assert "ConfigMap" in message(failed)


async def test_options_that_cannot_be_used_leave_every_cluster_as_it_is(here: AgentWorld) -> None:
    await here.keys()
    await here.member("one")
    await here.configure()
    async with here.controllers():
        await here.run_pods("one")
        version = (await here.placement("one", is_running))["spec"]["version"]
        await annotate(here, "readinessProbes: true")
        broken = await here.configuration(lambda obj: ready(obj)[1] == "InvalidOptions")
        assert f"annotation {OPTIONS_ANNOTATION} of AgentConfiguration fleet/fleet: " in message(broken)
        assert (await here.placement("one", is_running))["spec"]["version"] == version
        await annotate(here, None)
        await here.configuration(lambda obj: ready(obj) == ("True", "AllReady"))


async def test_status_pages_are_reported_for_each_cluster(here: AgentWorld, network: Network) -> None:
    network.code = 500
    await here.keys()
    await here.member("one")
    await here.configure()
    await annotate(here, "runtimeStatus: true")
    async with here.controllers(), here.inside("one") as client:
        found = await wait_for(client, DAEMON_SETS, AGENT, AGENT)
        await client.apply(ACCOUNTS, {"metadata": {"name": "default", "namespace": AGENT}}, field_manager="test")
        spec = {"containers": [{"name": "instana-agent", "image": "i"}]}
        labels = found["spec"]["selector"]["matchLabels"]
        await client.create(PODS, {"metadata": {"name": "a", "namespace": AGENT, "labels": labels}, "spec": spec})
        status = {"phase": "Running", "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]}
        await client.patch(PODS, "a", {"status": status}, AGENT, PatchKind.MERGE, "status")
        await here.run_pods("one")
        ill = await here.placement(
            "one", lambda obj: (find_condition(obj, AGENTS_REPORT) or {}).get("reason") == "AgentsReportProblems"
        )
        lines = list(explained("one", {}, [], [PlacementState(read(AgentPlacement, ill), waits=False)]))
        assert "  AgentsReportProblems: pod a answers 500" in lines
        running = await here.placement("one", is_running)
        (row,) = rows([PlacementState(read(AgentPlacement, running), waits=False)])
        assert row[3:5] == ("Ready", "AgentsReportProblems")
        await annotate(here, None)
        await here.placement("one", lambda obj: find_condition(obj, AGENTS_REPORT) is None)


async def test_each_cluster_gets_a_certificate_of_an_authority_of_its_own(here: AgentWorld) -> None:
    await here.keys()
    for name in ("one", "two"):
        await here.member(name)
    await here.configure()
    await annotate(here, "certificate: {self: true}")
    authorities = set()
    async with here.controllers():
        for name in ("one", "two"):
            async with here.inside(name) as client:
                pair = pair_of((await wait_for(client, SECRETS, f"{AGENT}-certificate", AGENT))["data"])
                kept = pair_of((await wait_for(client, SECRETS, f"{AGENT}-certificate-authority", AGENT))["data"])
                assert pair is not None
                assert kept is not None
                assert pair.bundle == kept.certificate
                authorities.add(kept.certificate)
        await annotate(here, None)
        for name in ("one", "two"):
            for secret in (f"{AGENT}-certificate", f"{AGENT}-certificate-authority"):
                await here.gone_inside(name, SECRETS, secret)
    assert len(authorities) == 2
