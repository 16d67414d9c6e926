"""The controllers of agents as exactly the account that the chart makes: nothing denied, nothing granted in vain."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.domains.agents.fleet.world import ready as placed
from tests.domains.agents.operating.test_certificates import cert_manager
from tests.domains.agents.operating.test_take_over import left_by_the_operator_of_2_0
from tests.domains.agents.operating.world import HOME, AgentsWorld, condition, is_reconciled
from tests.domains.granting import grant, reads_secret
from tests.production.rendering import objects
from tests.production.test_permissions import POLICY, Record, Used, gone, granted, kubeconfig_of, seen
from tests.simulation.garden import started_garden

from hortus.apiserver import ApiServerSettings, AuditSettings
from hortus.cli.flags import FLAGS
from hortus.cli.install.applying import Installation
from hortus.cli.program import program
from hortus.domains.agents import rbac
from hortus.domains.agents.builders.etcd import BUNDLE, CLIENT, SOURCE_NAMESPACE
from hortus.domains.agents.fleet.distribution import DISTRIBUTABLE
from hortus.domains.agents.operating.objects import (
    CLUSTER_ROLES,
    CONFIG_MAPS,
    DAEMON_SETS,
    DEPLOYMENTS,
    POLICIES,
    ROLES,
    SECRETS,
)
from hortus.domains.agents.options import OPTIONS_ANNOTATION
from hortus.domains.agents.types import (
    AGENT_CONFIGURATIONS,
    AGENT_PLACEMENTS,
    INSTANA_AGENTS,
    INSTANA_AGENTS_REMOTE,
)
from hortus.engine.flags import FlagSet
from hortus.kube import Client, Resource, yaml
from hortus.kube.objects import Object
from hortus.simulation.settings import GardenSettings
from hortus.testing.apiserver import TestServer
from hortus.testing.waiting import wait_for

FLEET, CLUSTER, SENSOR = "fleet", "member", f"{HOME}-k8sensor"
ETCD = "agents-etcd-namespaces"
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
ACCOUNT = "system:serviceaccount:hortus-system:hortus"

HELD = (INSTANA_AGENTS, INSTANA_AGENTS_REMOTE, AGENT_CONFIGURATIONS, AGENT_PLACEMENTS)
"""The kinds whose objects get finalizers."""
CREATED = (
    *(one for one in rbac.CONTROL if "create" in one.verbs),
    *(one for one in rbac.WIDE if "create" in one.verbs),
    *(one for one in rbac.FLEET if one.group == AGENT_PLACEMENTS.group and "create" in one.verbs),
)
BY_CHANCE = {
    # An apply that makes an object needs leave to create and is logged as the patch it is (Kubernetes, KEP-555).
    *(one for one in granted(CREATED) if one.verb == "create"),
    # After a conflict over a finalizer the object is read again.
    *(Used(one.group, one.plural, "get") for one in HELD),
}


@pytest.fixture
def record(tmp_path: Path) -> Record:
    return Record(tmp_path / "audit.log")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[TestServer]:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    audited = ApiServerSettings(audit=AuditSettings(policy, tmp_path / "audit.log"))
    with started_garden(GardenSettings(), served=audited) as running:
        running.create_cluster(CLUSTER)
        yield running


async def openshift(here: AgentsWorld) -> None:
    """The credentials of etcd on OpenShift, for an agent that says that it runs there."""
    await here.namespace(SOURCE_NAMESPACE)
    await here.create(CONFIG_MAPS, BUNDLE, SOURCE_NAMESPACE, data={"ca-bundle.crt": "a"})
    await here.secret(CLIENT, SOURCE_NAMESPACE, **{"tls.crt": b"a", "tls.key": b"b"})


async def an_agents_life(here: AgentsWorld) -> None:
    """Taken over from the operator of 2.0, changed, repaired, deleted; with all that options and OpenShift add."""
    await seen(here.client, INSTANA_AGENTS, HOME, is_reconciled, namespace=HOME)
    await here.ready(DAEMON_SETS, HOME)
    await here.ready(DEPLOYMENTS, SENSOR)
    await here.until(lambda obj: obj["metadata"].get("finalizers") == ["v3.agent.instana.io/finalizer"])
    await openshift(here)
    await cert_manager(here)
    text = "sensorNetwork: {enabled: true}\ncertificate: {issuer: {name: ca}}"
    options = {"metadata": {"annotations": {OPTIONS_ANNOTATION: text}}}
    spec = {"openshift": True, "k8s_sensor": {"podDisruptionBudget": {"enabled": True}}}
    await here.change(INSTANA_AGENTS, HOME, {**options, "spec": spec})
    await wait_for(here.client, POLICIES, SENSOR, HOME)
    await wait_for(here.client, SECRETS, CLIENT, HOME)
    await here.reconciled()
    for resource, name, namespace in ((CLUSTER_ROLES, HOME, ""), (ROLES, f"{SENSOR}-etcd-reader", "kube-system")):
        await here.client.delete(resource, name, namespace)
        await wait_for(here.client, resource, name, namespace)
    await here.client.delete(SECRETS, CLIENT, SOURCE_NAMESPACE)
    await here.gone(SECRETS, CLIENT)
    await here.change(INSTANA_AGENTS, HOME, {"spec": {"k8s_sensor": {"deployment": {"enabled": False}}}})
    await here.gone(DEPLOYMENTS, SENSOR)
    await here.remote()
    await here.until(
        lambda obj: condition(obj, "ReconcileSucceeded")[0] == "True", "outside", HOME, INSTANA_AGENTS_REMOTE
    )
    await here.client.delete(INSTANA_AGENTS_REMOTE, "outside", HOME)
    await here.gone(INSTANA_AGENTS_REMOTE, "outside")
    await here.client.delete(INSTANA_AGENTS, HOME, HOME)
    await here.gone(INSTANA_AGENTS, HOME)


async def connect(management: Client, server: TestServer) -> None:
    """The Secret by which the member joins the inventory."""
    document = base64.b64encode(yaml.dump(server.kubeconfig_dict(CLUSTER)).encode()).decode()
    metadata = {"name": CLUSTER, "namespace": HOME, "labels": {"fleet.hortus.dev/kubeconfig": "true"}}
    await management.create(SECRETS, {"metadata": metadata, "data": {"config": document}})


def configuration() -> Object:
    agent = {"endpointHost": "backend.example.org", "endpointPort": "443", "keysSecret": "keys"}
    return {
        "apiVersion": AGENT_CONFIGURATIONS.api_version,
        "kind": AGENT_CONFIGURATIONS.kind,
        "metadata": {"name": "everywhere", "namespace": FLEET},
        "spec": {"clusterSelector": {}, "template": {"agent": agent}},
    }


async def a_fleets_life(here: AgentsWorld, server: TestServer) -> None:
    """An agent goes to a cluster, fails there, gets another key and is taken away."""
    await connect(here.client, server)
    # The fleet's namespace is not trusted, and its deputy has nothing by itself.
    await grant(here.client, FLEET, reads_secret(HOME, CLUSTER), reads_secret(FLEET, "keys"))
    data, labels = {"key": base64.b64encode(b"one").decode()}, {DISTRIBUTABLE: "true"}
    await here.client.create(
        SECRETS, {"metadata": {"name": "keys", "namespace": FLEET, "labels": labels}, "data": data}
    )
    await here.client.create(AGENT_CONFIGURATIONS, configuration())
    name = f"{HOME}.{CLUSTER}"

    async def runs(version: str = "") -> str:
        obj = await seen(
            here.client,
            AGENT_PLACEMENTS,
            name,
            lambda obj: (obj.get("status") or {}).get("version", version) != version,
            namespace=FLEET,
        )
        return str(obj["status"]["version"])

    first = await runs()
    await here.client.patch(SECRETS, "keys", {"data": {"key": base64.b64encode(b"two").decode()}}, FLEET)
    await runs(first)
    template = {"spec": {"template": {"agent": {"keysSecret": ""}}}}
    await here.client.patch(AGENT_CONFIGURATIONS, "everywhere", template, FLEET)
    await seen(
        here.client, AGENT_PLACEMENTS, name, lambda obj: placed(obj) == ("False", "NothingToRun"), namespace=FLEET
    )
    await here.client.delete(AGENT_CONFIGURATIONS, "everywhere", FLEET)
    await gone(here.client, AGENT_CONFIGURATIONS, "everywhere", namespace=FLEET)
    await gone(here.client, AGENT_PLACEMENTS, name, namespace=FLEET)


def handed_on(role: Object) -> set[Used]:
    """The permissions of a role, which nobody can grant who does not hold them."""
    return {
        Used(group, resource, verb)
        for rule in role["rules"]
        for group in rule.get("apiGroups") or ()
        for resource in rule.get("resources") or ()
        for verb in rule["verbs"]
    }


def urls(role: Object) -> set[str]:
    return {url for rule in role["rules"] for url in rule.get("nonResourceURLs") or ()}


async def test_agents_use_all_that_they_may_and_are_denied_nothing(
    server: TestServer, record: Record, tmp_path: Path
) -> None:
    async with Client.from_kubeconfig(server.kubeconfig) as management:
        for name in (HOME, FLEET, SOURCE_NAMESPACE, "hortus-system"):
            await management.create(NAMESPACES, {"metadata": {"name": name}})
        values = {"watchNamespace": HOME, "config": {"agents": True, "inventory": True, ETCD: HOME}}
        await Installation(management, objects("hortus-system", values), str, namespace="hortus-system").apply()
        here = AgentsWorld(management)
        await left_by_the_operator_of_2_0(here)
        ours = await kubeconfig_of(management, "hortus-system", "hortus", tmp_path / "management")
        flags = [
            f"--kubeconfig={ours}",
            f"--gardener-kubeconfig-path={server.kubeconfig_for('garden')}",
            "--gardener-project-name=demo",
            f"--watch-namespace={HOME}",
            "--metrics-bind-address=0",
            "--health-probe-bind-address=0",
            "--audit-log-mandatory=false",
            "--allow-local-clusters",
            "--agents",
            f"--{ETCD}={HOME}",
            "--inventory",
        ]
        async with program(FlagSet(FLAGS).parse(flags)) as manager, manager.running():
            roles = await roles_of_agents(management)
            await an_agents_life(here)
            await a_fleets_life(here, server)
    done = record.of(ACCOUNT, server)
    assert sorted(used for used, codes in done.items() if 403 in codes) == []
    granted_to_us = granted((*rbac.CONTROL, *rbac.WIDE, *rbac.ETCD, *rbac.FLEET))
    assert granted_to_us - done.keys() - set().union(*map(handed_on, roles)) - BY_CHANCE == set()
    assert {url for one in rbac.WIDE for url in one.urls} == set().union(*map(urls, roles))


async def roles_of_agents(management: Client) -> list[Object]:
    """The roles of an agent and its sensor, once they are there."""
    found = [await wait_for(management, ROLES, f"{SENSOR}-etcd-reader", "kube-system")]
    return [*found, *[await wait_for(management, CLUSTER_ROLES, name) for name in (HOME, SENSOR)]]


@pytest.mark.parametrize("resource", HELD)
def test_an_object_with_a_finalizer_may_be_read_again_after_a_conflict(resource: Resource) -> None:
    needed = {Used(resource.group, resource.plural, verb) for verb in ("get", "patch")}
    assert needed <= granted((*rbac.CONTROL, *rbac.FLEET))
