"""The controllers of cluster stacks and of node images as exactly the account that the chart makes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.production.rendering import objects
from tests.production.test_permissions import POLICY, Record, Used, gone, granted, kubeconfig_of, seen
from tests.simulation.garden import started_garden

from hortus.apiserver import ApiServerSettings, AuditSettings
from hortus.cli.flags import FLAGS
from hortus.cli.install import contents
from hortus.cli.install.applying import Installation
from hortus.cli.program import program
from hortus.cli.up.cloud import CLOUD_FILE, local_cloud
from hortus.cli.up.registry import local_registry
from hortus.domains.modules.kyma.documents import NAMESPACES
from hortus.domains.stacks import rbac
from hortus.domains.stacks.capi import CAPI_GROUP, CLUSTERS
from hortus.domains.stacks.local import local_setup
from hortus.domains.stacks.names import GROUP
from hortus.domains.stacks.types import (
    CLUSTER_ADDONS,
    CLUSTER_STACK_RELEASES,
    CLUSTER_STACKS,
    OPENSTACK_NODE_IMAGES,
    OPENSTACK_RELEASE_TEMPLATES,
)
from hortus.engine import Manager
from hortus.engine.deputies import IMPERSONATES, REVIEWS
from hortus.engine.flags import FlagSet
from hortus.engine.kubeconfigs import SECRETS
from hortus.engine.leases import LEASES
from hortus.kube import Client, Resource
from hortus.kube.objects import Object
from hortus.simulation.capi.composition import add_controllers as add_capi
from hortus.simulation.capi.definitions import install
from hortus.simulation.capi.settings import CapiSettings
from hortus.simulation.settings import GardenSettings
from hortus.testing.apiserver import TestServer

HOME = "kcp-system"
V1BETA1 = CLUSTERS["v1beta1"]
ONE, NEXT = "docker-sample-1-34-v1", "docker-sample-1-35-v1"

DEPUTIES = granted((IMPERSONATES, REVIEWS))
"""For namespaces that are not trusted, of which none has an object here."""
ELSEWHERE = {
    # After a conflict over a finalizer the object is read again.
    *(Used(GROUP, one.plural, "get") for one in (CLUSTER_STACKS, CLUSTER_STACK_RELEASES, CLUSTER_ADDONS)),
    # An apply that makes an object needs leave to create and is logged as the patch it is (Kubernetes, KEP-555).
    *(Used(f"runtime.{CAPI_GROUP}", "extensionconfigs", "create"), Used("", "secrets", "create")),
    # Addons are handed to Flux by choice, with a password that goes with them.
    *(one for one in granted(rbac.CONTROL) if one.group.endswith("toolkit.fluxcd.io")),
    Used("", "secrets", "delete"),
}


@pytest.fixture
def record(tmp_path: Path) -> Record:
    return Record(tmp_path / "audit.log")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[TestServer]:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    audited = ApiServerSettings(audit=AuditSettings(policy, tmp_path / "audit.log"))
    with started_garden(GardenSettings(time_factor=100.0), served=audited) as running:
        yield running


def made(resource: Resource, name: str, spec: Object) -> Object:
    metadata = {"name": name, "namespace": HOME}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": spec}


async def stack(management: Client, name: str, minor: str, **spec: Any) -> None:
    body = {"provider": "docker", "name": "sample", "kubernetesVersion": minor, **spec}
    await management.create(CLUSTER_STACKS, made(CLUSTER_STACKS, name, body))


async def a_clusters_life(management: Client) -> None:
    """A Cluster gets its addons, is upgraded and deleted; then its stacks are."""
    await stack(management, "one", "1.34", noProvider=True, autoSubscribe=False, versions=["v1"])
    await stack(management, "next", "1.35", noProvider=True)
    for tag in (ONE, NEXT):
        await seen(management, CLUSTER_STACK_RELEASES, tag, lambda one: (one.get("status") or {}).get("ready"))
    topology = {"class": ONE, "version": "v1.34.1"}
    await management.create(V1BETA1, made(V1BETA1, "shop", {"topology": topology}))

    def uses(tag: str) -> Any:
        return lambda one: one["spec"].get("clusterStack") == tag and one.get("status", {}).get("ready")

    await seen(management, CLUSTER_ADDONS, "cluster-addon-shop", uses(ONE))
    topology = {"class": NEXT, "version": "v1.35.0"}
    await management.patch(V1BETA1, "shop", {"spec": {"topology": topology}}, HOME)
    await seen(management, CLUSTER_ADDONS, "cluster-addon-shop", uses(NEXT))
    await management.delete(V1BETA1, "shop", HOME)
    await gone(management, CLUSTER_ADDONS, "cluster-addon-shop")
    await management.patch(CLUSTER_STACKS, "one", {"spec": {"versions": ["v2"]}}, HOME)
    await gone(management, CLUSTER_STACK_RELEASES, ONE)
    await management.delete(CLUSTER_STACKS, "next", HOME)
    await gone(management, CLUSTER_STACK_RELEASES, NEXT)


async def a_clouds_life(management: Client, clouds: str) -> None:
    """A release imports its node image, and is deleted."""
    secret = {"metadata": {"name": "openstack", "namespace": HOME}, "stringData": {CLOUD_FILE: clouds}}
    await management.create(SECRETS, secret)
    template = OPENSTACK_RELEASE_TEMPLATES
    identity = {"identityRef": {"kind": "Secret", "name": "openstack"}}
    await management.create(template, made(template, "cloud", {"template": {"spec": identity}}))
    reference = {"apiVersion": template.api_version, "kind": template.kind, "name": "cloud"}
    await stack(management, "cloud", "1.34", provider="openstack", providerRef=reference)
    tag = "openstack-sample-1-34-v1"
    await seen(management, CLUSTER_STACK_RELEASES, tag, lambda one: (one.get("status") or {}).get("ready"))
    image = await seen(management, OPENSTACK_NODE_IMAGES, "", lambda one: one.get("status", {}).get("ready"))
    await management.delete(CLUSTER_STACKS, "cloud", HOME)
    await gone(management, CLUSTER_STACK_RELEASES, tag)
    await gone(management, OPENSTACK_NODE_IMAGES, image["metadata"]["name"])


async def test_stacks_and_node_images_are_denied_nothing(server: TestServer, record: Record, tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    async with (
        Client.from_kubeconfig(server.kubeconfig) as management,
        local_registry(folder),
        local_cloud(folder) as cloud,
    ):
        await install(management)
        for name in (HOME, "hortus-system"):
            await management.create(NAMESPACES, {"metadata": {"name": name}})
        released = {"metadata": {"name": GROUP, "namespace": HOME}, "spec": {"holderIdentity": ""}}
        await management.create(LEASES, released)
        # Nobody reaches a Service here; the webhooks have a test of their own.
        values = {"config": {"stacks": True, "hook-namespace": "kube-system"}, "webhooks": {"stacks": False}}
        await Installation(management, objects("hortus-system", values), str, namespace="hortus-system").apply()
        ours = await kubeconfig_of(management, "hortus-system", "hortus", tmp_path / "management")
        flags = [
            f"--kubeconfig={ours}",
            "--gardener-kubeconfig-path=",
            "--metrics-bind-address=0",
            "--health-probe-bind-address=0",
            "--audit-log-mandatory=false",
            "--allow-local-clusters",
            "--leader-elect",
            "--leader-election-namespace=hortus-system",
            "--delete-node-images",
            *local_setup(folder).flags,
        ]
        capi = Manager(management, grace=1.0)
        # This client is no administrator of the workload clusters, which nodes would join.
        add_capi(capi, management=management, settings=CapiSettings(hook_wait=0.1, nodes=False))
        async with program(FlagSet(FLAGS).parse(flags)) as manager, manager.running(), capi.running():
            await a_clusters_life(management)
            await a_clouds_life(management, (folder / CLOUD_FILE).read_text())
        assert len(cloud.images) == 0
    done = record.of("system:serviceaccount:hortus-system:hortus", server)
    assert sorted(used for used, codes in done.items() if 403 in codes) == []
    unused = granted((*rbac.CONTROL, *contents.WIDE["stacks"], *rbac.HOOKS)) - done.keys() - ELSEWHERE - DEPUTIES
    assert {one for one in unused if one.resource != "*"} == set()
