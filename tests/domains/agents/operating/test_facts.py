"""Facts of a cluster: the same whether caches hold it or requests ask it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.domains.agents.operating.test_failures import DECLARED, account
from tests.domains.agents.operating.world import CRDS, HOME, NAMESPACES, AgentsWorld, base
from tests.production.test_permissions import kubeconfig_of

from hortus.domains.agents.builders import EtcdTargets, InstanaFacts, OpenShiftEtcd
from hortus.domains.agents.builders.configuration import MONITORING_LABEL
from hortus.domains.agents.builders.etcd import BUNDLE, CLIENT, SOURCE_NAMESPACE
from hortus.domains.agents.discovery.asked import AskedFacts
from hortus.domains.agents.discovery.cached import CachedFacts, etcd_caches
from hortus.domains.agents.discovery.facts import AUTHORITY, CLUSTER_OPERATORS, FactSource, facts_of
from hortus.domains.agents.discovery.secrets import NamedSecrets, secret_outlines
from hortus.domains.agents.operating.objects import (
    CONFIG_MAPS,
    DAEMON_SETS,
    FIELD_MANAGER,
    SECRETS,
    SERVICES,
    AgentObjects,
)
from hortus.domains.agents.types import InstanaAgent
from hortus.engine import Manager, read, without_managed_fields
from hortus.engine.deputies import Deputies
from hortus.kube import Client, yaml
from hortus.kube.errors import Forbidden
from hortus.kube.objects import Object, Resource

SLICES = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
ENDPOINTS = Resource("", "v1", "endpoints", "Endpoints")
PORT = {"name": "metrics", "port": 2381}
ETCD = {"labels": {"component": "etcd"}}


def agent(**spec: object) -> InstanaAgent:
    body = {"cluster": {"name": "demo"}, "agent": base(), **spec}
    metadata = {"name": HOME, "namespace": HOME, "uid": "one"}
    return read(
        InstanaAgent, {"apiVersion": "instana.io/v1", "kind": "InstanaAgent", "metadata": metadata, "spec": body}
    )


@asynccontextmanager
async def cached(here: AgentsWorld) -> AsyncIterator[CachedFacts]:
    manager = Manager(here.client, grace=0.0)
    objects, found = AgentObjects(manager, namespace=""), etcd_caches(manager, credentials=True)
    namespaces = manager.cache(NAMESPACES, labels=MONITORING_LABEL, transform=without_managed_fields)
    outlines = secret_outlines(manager, "")
    secrets = NamedSecrets(Deputies(here.client, "*", clock=manager.clock), outlines, objects.caches[SECRETS])
    async with manager.running():
        for cache in (*objects.caches.values(), *found.all, namespaces, outlines):
            await cache.synced()
        yield CachedFacts(objects=objects, secrets=secrets, namespaces=namespaces, etcd=found)


async def same_facts(here: AgentsWorld, of: InstanaAgent) -> InstanaFacts:
    """The facts, which both sources agree on."""

    async def found(source: FactSource) -> InstanaFacts:
        return await facts_of(source, of, operator_version="v1", keys=None, etcd_namespaces={HOME})

    asked = await found(AskedFacts(here.client))
    async with cached(here) as source:
        assert await found(source) == asked
    return asked


async def etcd(here: AgentsWorld, *, slices: bool) -> None:
    await here.create(SERVICES, "etcd", "kube-system", metadata=ETCD, spec={"ports": [PORT]})
    if slices:
        labels = {"labels": {"kubernetes.io/service-name": "etcd"}}
        endpoints = [{"addresses": ["10.0.0.1"]}]
        await here.create(
            SLICES, "a", "kube-system", metadata=labels, addressType="IPv4", endpoints=endpoints, ports=[PORT]
        )
    else:
        subset = {"addresses": [{"ip": "10.0.0.2"}], "ports": [PORT]}
        await here.create(ENDPOINTS, "etcd", "kube-system", subsets=[subset])


async def test_a_plain_cluster_has_no_facts_but_its_namespaces_and_workloads(here: AgentsWorld) -> None:
    await here.namespace("watched", **{MONITORING_LABEL: "true", "other": "label"})
    containers = [{"name": "instana-agent", "image": "a", "env": []}]
    labels = {"app.kubernetes.io/managed-by": FIELD_MANAGER}
    selected: Object = {"a": "b"}
    template = {"metadata": {"labels": selected}, "spec": {"containers": containers}}
    spec = {"selector": {"matchLabels": selected}, "template": template}
    await here.create(DAEMON_SETS, HOME, metadata={"labels": labels}, spec=spec)
    assert await same_facts(here, agent()) == InstanaFacts(
        operator_version="v1",
        namespaces={"watched": {MONITORING_LABEL: "true"}},
        persist_ids={HOME: False},
        corrected={HOME: True},
    )


@pytest.mark.parametrize("slices", [True, False])
async def test_etcd_is_found_behind_its_service(here: AgentsWorld, slices: bool) -> None:
    await etcd(here, slices=slices)
    url = f"http://10.0.0.{1 if slices else 2}:2381/metrics"
    assert (await same_facts(here, agent())).etcd == EtcdTargets((url,), ca_secret=False)
    await here.secret(AUTHORITY, ca=b"authority")
    assert (await same_facts(here, agent())).etcd == EtcdTargets((url,), ca_secret=True)
    assert (await same_facts(here, agent(k8s_sensor={"etcd": {"targets": ["http://own"]}}))).etcd is None


async def _openshift(here: AgentsWorld, *, is_there: bool) -> None:
    """Make or delete the definition that only OpenShift has."""
    live = await here.get(CRDS, CLUSTER_OPERATORS)
    if live is not None and not is_there:
        await here.client.delete(CRDS, CLUSTER_OPERATORS)
        await here.gone(CRDS, CLUSTER_OPERATORS)
    elif live is None and is_there:
        names = {"plural": "clusteroperators", "kind": "ClusterOperator", "singular": "clusteroperator"}
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        spec = {"group": "config.openshift.io", "names": names, "scope": "Cluster", "versions": [version]}
        await here.client.create(CRDS, {"metadata": {"name": CLUSTER_OPERATORS}, "spec": spec})


async def test_openshift_is_detected_as_each_row_of_the_cases_says(
    here: AgentsWorld, upstream: Path, tmp_path: Path
) -> None:
    cases = {one["id"]: one for one in yaml.load((upstream / "instana" / "cases_a.yaml").read_text())["cases"]}
    rows = [(*row["in"], row["out"]) for row in cases["A10-openshift-detection"]["table"]]
    assert rows.pop() == (None, "error", "reconcile fails")
    for given, is_there, expected in rows:
        await _openshift(here, is_there=is_there)
        spec = {} if given is None else {"openshift": given}
        assert (await same_facts(here, agent(**spec))).openshift is expected
    assert [row[:2] for row in rows] == [(None, True), (None, False), (True, False), (False, True)]

    await account(here, *(one for one in DECLARED if "customresourcedefinitions" not in one.resources))
    path = await kubeconfig_of(here.client, "hortus", "hortus", tmp_path / "account")
    async with Client.from_kubeconfig(path) as client:
        source = AskedFacts(client)
        with pytest.raises(Forbidden, match="customresourcedefinitions"):
            await facts_of(source, agent(), operator_version="v1", keys=None, etcd_namespaces=())
        found = await facts_of(source, agent(openshift=False), operator_version="v1", keys=None, etcd_namespaces=())
        assert not found.openshift  # what the spec says needs no definition


async def test_openshift_has_credentials_of_etcd_once_both_are_whole(here: AgentsWorld) -> None:
    await etcd(here, slices=True)
    await _openshift(here, is_there=True)
    await here.namespace(SOURCE_NAMESPACE)
    await here.create(CONFIG_MAPS, BUNDLE, SOURCE_NAMESPACE, data={"ca-bundle.crt": "authority"})
    await here.secret(CLIENT, SOURCE_NAMESPACE, **{"tls.crt": b"crt"})
    found = await same_facts(here, agent())
    assert (found.openshift, found.etcd) == (True, None)
    await here.change(SECRETS, CLIENT, {"stringData": {"tls.key": "key"}}, SOURCE_NAMESPACE)
    whole = (await same_facts(here, agent())).etcd
    assert isinstance(whole, OpenShiftEtcd)
    assert (whole.ca_bundle.data, set(whole.client.data)) == ({"ca-bundle.crt": "authority"}, {"tls.crt", "tls.key"})
    assert not (await same_facts(here, agent(openshift=False))).openshift
