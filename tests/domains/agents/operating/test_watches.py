"""Facts of the cluster that change while agents run: each is seen by a watch, at once."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
import pytest
from tests.domains.agents.operating.world import CRDS, HOME, NAMESPACES, AgentsWorld, base, condition

from hortus.domains.agents.operating.objects import ACCOUNTS, CONFIG_MAPS, DEPLOYMENTS, SECRETS, SERVICES
from hortus.domains.agents.types import INSTANA_AGENTS, INSTANA_AGENTS_REMOTE
from hortus.kube.objects import Object, Resource

SENSOR = f"{HOME}-k8sensor"
SLICES = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
MONITORED = "instana-workload-monitoring"


def checksum(deployment: Object) -> Any:
    return deployment["spec"]["template"]["metadata"]["annotations"]["checksum/backend"]


def variables(deployment: Object) -> dict[str, Any]:
    return {one["name"]: one.get("value") for one in deployment["spec"]["template"]["spec"]["containers"][0]["env"]}


async def test_a_keys_secret_that_comes_changes_and_goes_is_followed(here: AgentsWorld) -> None:
    await here.agent(agent=base(key="", keysSecret="keys"))
    async with here.controllers():
        await here.until(lambda agent: condition(agent, "ConfigurationComplete") == ("False", "SecretMissing"))
        await here.secret("keys", other=b"x")
        await here.until(lambda agent: condition(agent, "ConfigurationComplete") == ("False", "KeyNotInSecret"))
        before = checksum(await here.until(lambda obj: obj, SENSOR, resource=DEPLOYMENTS))
        await here.change(SECRETS, "keys", {"data": {"key": base64.b64encode(b"\xff\x00 odd").decode()}})
        await here.until(lambda agent: condition(agent, "ConfigurationComplete") == ("", ""))
        await here.until(lambda obj: checksum(obj) != before, SENSOR, resource=DEPLOYMENTS)


async def test_namespaces_with_the_label_are_followed_created_ones_too(here: AgentsWorld) -> None:
    def says(text: str) -> Any:
        return lambda obj: text in obj["data"]["namespaces.yaml"]

    await here.agent()
    async with here.controllers():
        await here.reconciled()
        name = f"{HOME}-namespaces"
        await here.namespace("shop", **{MONITORED: "true"})  # the Go operator misses a creation
        await here.until(says("shop"), name, resource=CONFIG_MAPS)
        await here.client.patch(NAMESPACES, "shop", {"metadata": {"labels": {MONITORED: None}}})
        emptied = await here.until(says("namespaces: {}"), name, resource=CONFIG_MAPS)
    assert emptied["data"] == {"namespaces.yaml": "version: 1\nnamespaces: {}\n"}


async def test_etcd_is_found_by_watches_and_does_not_make_pods_flap(here: AgentsWorld) -> None:
    await here.agent()
    async with here.controllers() as manager:
        await here.reconciled()
        port = {"name": "metrics", "port": 2381}
        metadata = {"labels": {"component": "etcd"}}
        await here.create(SERVICES, "etcd", "kube-system", metadata=metadata, spec={"ports": [port]})
        await here.create(
            SLICES,
            "etcd-one",
            "kube-system",
            metadata={"labels": {"kubernetes.io/service-name": "etcd"}},
            addressType="IPv4",
            endpoints=[{"addresses": ["10.0.0.1"]}],
            ports=[port],
        )
        found = await here.until(
            lambda obj: variables(obj).get("ETCD_TARGETS") == "http://10.0.0.1:2381/metrics",
            SENSOR,
            resource=DEPLOYMENTS,
        )
        await here.at_rest()
        for controller in manager.controllers:
            controller.enqueue_all()  # the Go operator takes the variable away in each second reconcile
        await here.at_rest()
        assert await here.get(DEPLOYMENTS, SENSOR) == found
        await here.secret("etcd-ca", ca=b"authority")
        await here.until(
            lambda obj: variables(obj).get("ETCD_CA_FILE") == "/var/run/secrets/etcd/ca.crt",
            SENSOR,
            resource=DEPLOYMENTS,
        )


async def openshift(here: AgentsWorld) -> Object:
    """Make the cluster one of OpenShift, with the credentials of etcd; returns those of its client."""
    names = {"plural": "clusteroperators", "kind": "ClusterOperator", "singular": "clusteroperator"}
    schema = {"openAPIV3Schema": {"type": "object"}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    spec = {"group": "config.openshift.io", "names": names, "scope": "Cluster", "versions": [version]}
    await here.client.create(CRDS, {"metadata": {"name": "clusteroperators.config.openshift.io"}, "spec": spec})
    await here.namespace("openshift-etcd")
    await here.create(CONFIG_MAPS, "etcd-ca-bundle", "openshift-etcd", data={"ca-bundle.crt": "authority"})
    keys = {"tls.crt": base64.b64encode(b"crt").decode(), "tls.key": base64.b64encode(b"key").decode()}
    await here.create(SECRETS, "etcd-client", "openshift-etcd", data=keys)
    return keys


@pytest.mark.parametrize("named", [frozenset(), frozenset({"another"})])
async def test_no_agent_gets_the_credentials_of_etcd_outside_of_the_namespaces_that_are_named(
    here: AgentsWorld, named: frozenset[str]
) -> None:
    here.settings = msgspec.structs.replace(here.settings, etcd_namespaces=named)
    await openshift(here)
    await here.agent(openshift=True)
    async with here.controllers():
        await here.reconciled()
        await here.at_rest()
    assert await here.get(SECRETS, "etcd-client") is None
    assert await here.get(CONFIG_MAPS, "etcd-ca-bundle") is None
    assert "ETCD_CERT_FILE" not in variables(await here.get(DEPLOYMENTS, SENSOR) or {})


async def test_the_copies_go_when_their_namespace_is_named_no_more(here: AgentsWorld) -> None:
    here.settings = msgspec.structs.replace(here.settings, etcd_namespaces=frozenset({HOME}))
    await openshift(here)
    await here.agent()
    async with here.controllers():
        await here.until(lambda obj: obj, "etcd-client", resource=SECRETS)
        await here.reconciled()
    here.settings = msgspec.structs.replace(here.settings, etcd_namespaces=frozenset())
    async with here.controllers():
        await here.gone(SECRETS, "etcd-client")


async def test_credentials_of_openshift_are_copied_and_only_copies_are_deleted(here: AgentsWorld) -> None:
    here.settings = msgspec.structs.replace(here.settings, etcd_namespaces=frozenset({HOME}))
    await here.agent()
    async with here.controllers():
        await here.reconciled()
        keys = await openshift(here)
        copy = await here.until(lambda obj: obj, "etcd-client", resource=SECRETS)
        assert copy["data"] == keys
        await here.until(
            lambda obj: variables(obj).get("ETCD_CERT_FILE") == "/etc/etcd-client/tls.crt", SENSOR, resource=DEPLOYMENTS
        )
        await here.client.delete(SECRETS, "etcd-client", "openshift-etcd")
        await here.gone(SECRETS, "etcd-client")
        await here.gone(CONFIG_MAPS, "etcd-ca-bundle")
        await here.create(CONFIG_MAPS, "etcd-ca-bundle", data={"mine": "true"})
        await here.at_rest()
        assert await here.get(CONFIG_MAPS, "etcd-ca-bundle") is not None


async def test_the_account_of_remotes_outlives_one_of_them(here: AgentsWorld) -> None:
    await here.remote("one")
    await here.remote("two")
    async with here.controllers():
        for name in ("one", "two"):
            await here.reconciled(name, resource=INSTANA_AGENTS_REMOTE)
        account = await here.until(
            lambda obj: len(obj["metadata"]["ownerReferences"]) == 2, "instana-agent-remote", resource=ACCOUNTS
        )
        await here.client.delete(INSTANA_AGENTS_REMOTE, "one", HOME)
        await here.gone(INSTANA_AGENTS_REMOTE, "one")
        left = await here.until(
            lambda obj: [one["name"] for one in obj["metadata"]["ownerReferences"]] == ["two"],
            "instana-agent-remote",
            resource=ACCOUNTS,
        )
        assert left["metadata"]["uid"] == account["metadata"]["uid"]
        await here.client.delete(INSTANA_AGENTS_REMOTE, "two", HOME)
        await here.gone(INSTANA_AGENTS_REMOTE, "two")
        await here.gone(ACCOUNTS, "instana-agent-remote")


async def test_a_remote_next_to_an_agent_of_its_name_is_refused_and_touches_nothing(here: AgentsWorld) -> None:
    await here.agent()
    await here.remote(HOME)
    async with here.controllers():
        await here.reconciled()
        await here.until(
            lambda obj: condition(obj, "ReconcileSucceeded") == ("False", "ReconcileFailed"),
            resource=INSTANA_AGENTS_REMOTE,
        )
        await here.at_rest()
        before = await here.owned()
        await here.client.delete(INSTANA_AGENTS_REMOTE, HOME, HOME)
        await here.gone(INSTANA_AGENTS_REMOTE, HOME)
        await here.at_rest()
        assert await here.owned() == before


async def test_agents_of_one_name_are_warned_and_keep_their_roles_when_one_goes(here: AgentsWorld) -> None:
    await here.namespace("second")
    await here.agent()
    await here.agent(namespace="second")
    async with here.controllers():
        for namespace in (HOME, "second"):
            await here.until(
                lambda obj: condition(obj, "ConfigurationComplete") == ("False", "NameShared"), namespace=namespace
            )
        await here.client.delete(INSTANA_AGENTS, HOME, "second")
        await here.gone(INSTANA_AGENTS, HOME, "second")
        await here.until(lambda obj: condition(obj, "ConfigurationComplete") == ("", ""))
        await here.at_rest()
        owned = await here.owned()
        binding = owned[f"ClusterRoleBinding /{HOME}"]
        assert binding["subjects"][0]["namespace"] == HOME
        assert f"ClusterRole /{SENSOR}" in owned
