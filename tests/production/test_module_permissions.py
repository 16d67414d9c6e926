"""The controllers of modules as exactly the account that the chart makes: nothing denied, nothing granted in vain."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.production.rendering import objects
from tests.production.test_permissions import POLICY, Record, Used, gone, granted, kubeconfig_of, seen
from tests.simulation.garden import started_garden

from hortus.apiserver import ApiServerSettings, AuditSettings
from hortus.cli.flags import FLAGS
from hortus.cli.install.applying import Installation
from hortus.cli.program import program
from hortus.domains.modules import rbac
from hortus.domains.modules.kyma.documents import CRDS, NAMESPACES
from hortus.domains.modules.publishing.pushing import push_component
from hortus.domains.modules.registry import access_from_host
from hortus.domains.modules.samples import sample_catalog, sample_modules
from hortus.domains.modules.types import KYMAS, MANIFESTS, MODULE_RELEASE_METAS, MODULE_TEMPLATES, WATCHERS
from hortus.engine.deputies import IMPERSONATES, REVIEWS
from hortus.engine.flags import FlagSet
from hortus.engine.kubeconfigs import SECRETS
from hortus.kube import Client, yaml
from hortus.kube.objects import Object, Resource
from hortus.simulation.registry import RegistryFolder, RegistryServer
from hortus.simulation.settings import GardenSettings
from hortus.testing.apiserver import TestServer

HOME, ISTIO = "kcp-system", "istio-system"
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
GROUP = KYMAS.group
CLUSTER = "skr"
KYMA_CRD = "kymas.operator.kyma-project.io"
DEPUTIES = granted((IMPERSONATES, REVIEWS))
"""For namespaces that are not trusted, of which none has an object here."""
ELSEWHERE = {
    # Events of agents reach another replica by an annotation; Istio and certificates of other issuers are served by
    # the tests of the watcher, which use an account with these rules alone.
    *(Used("networking.istio.io", "gateways", verb) for verb in ("list", "watch")),
    *(
        Used("networking.istio.io", "virtualservices", verb)
        for verb in ("get", "list", "watch", "create", "patch", "delete")
    ),
    *(
        Used(group, "certificates", verb)
        for group in ("cert-manager.io", "cert.gardener.cloud")
        for verb in ("get", "list", "watch", "create", "patch", "delete")
    ),
    *(Used(group, "certificates/status", "patch") for group in ("cert-manager.io", "cert.gardener.cloud")),
    # After a conflict over a finalizer the object is read again.
    *(Used(GROUP, name, "get") for name in ("kymas", "manifests", "modulereleasemetas", "watchers")),
    # An apply that makes an object needs leave to create and is logged as the patch it is (Kubernetes, KEP-555).
    *(Used(GROUP, "manifests", "create"), Used("", "secrets", "create")),
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
        running.create_cluster(CLUSTER)
        yield running


@asynccontextmanager
async def published(folder: Path, management: Client) -> AsyncIterator[str]:
    """The address of a registry with the sample modules; their catalog, and a mandatory module, are on `management`."""
    modules = sample_modules()
    async with RegistryServer(RegistryFolder(folder)) as registry:
        access = access_from_host(f"http://{registry.address}")
        for module in modules:
            await push_component(access, module.layout(access))
        for obj in sample_catalog(modules, namespace=HOME):
            resource = MODULE_TEMPLATES if obj["kind"] == "ModuleTemplate" else MODULE_RELEASE_METAS
            await management.create(resource, mandatory(obj) if obj["metadata"]["name"] == "greeter" else obj)
        yield f"http://{registry.address}"


def mandatory(release: Object) -> Object:
    """The ModuleReleaseMeta of a module that every cluster has."""
    spec = {name: value for name, value in release["spec"].items() if name != "channels"}
    return release | {"spec": spec | {"mandatory": {"version": "0.1.0"}}}


def watcher() -> Object:
    return {
        "apiVersion": WATCHERS.api_version,
        "kind": WATCHERS.kind,
        "metadata": {"name": "watcher", "namespace": HOME},
        "spec": {
            "manager": "lifecycle-manager",
            "resourceToWatch": {"group": GROUP, "version": "*", "resource": "kymas"},
            "field": "spec",
            "serviceInfo": {"name": "events", "namespace": HOME, "port": 8082},
            "gateway": {"selector": {"matchLabels": {"operator.kyma-project.io/watcher-gateway": "default"}}},
        },
    }


async def connect(management: Client, server: TestServer) -> None:
    """The Secret that leads a Kyma to the cluster, and the Kyma."""
    document = yaml.dump(server.kubeconfig_dict(CLUSTER)).encode()
    labels = {"operator.kyma-project.io/kyma-name": "one"}
    secret = {"metadata": {"name": "kubeconfig-one", "namespace": HOME, "labels": labels}}
    await management.create(SECRETS, secret | {"data": {"config": base64.b64encode(document).decode()}})
    metadata = {
        "name": "one",
        "namespace": HOME,
        "labels": {"kyma-project.io/runtime-id": "one", "kyma-project.io/instance-id": "instance-one"},
        "annotations": {"skr-domain": "one.demo.example.org"},
    }
    spec = {"channel": "regular", "modules": [{"name": "template-operator", "managed": True}]}
    kyma = {"apiVersion": KYMAS.api_version, "kind": KYMAS.kind, "metadata": metadata, "spec": spec}
    await management.create(KYMAS, kyma)


async def run_workloads(cluster: Client) -> None:
    """Report each Deployment of the cluster as ready."""
    conditions = [
        {"type": "Available", "status": "True"},
        {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
    ]
    while True:
        async with cluster.watch(DEPLOYMENTS, initial_events=True) as events:
            async for event in events:
                if event.type != "ADDED":
                    continue
                metadata = event.object["metadata"]
                status = {"status": {"replicas": 1, "readyReplicas": 1, "conditions": conditions}}
                await cluster.patch(DEPLOYMENTS, metadata["name"], status, metadata["namespace"], subresource="status")


def installed(kyma: Object) -> dict[str, tuple[Any, ...]]:
    status = kyma.get("status") or {}
    return {one["name"]: (one["state"], one.get("version")) for one in status.get("modules") or ()}


async def a_kymas_life(management: Client, server: TestServer) -> None:
    """A module is installed, upgraded, unmanaged and managed; the watcher is there; the Kyma is deleted."""
    async with Client.from_kubeconfig(server.kubeconfig_for(CLUSTER)) as cluster:
        workloads = asyncio.create_task(run_workloads(cluster))
        await seen(management, KYMAS, "one", lambda kyma: (kyma.get("status") or {}).get("state") == "Ready")
        assert installed(await management.get(KYMAS, "one", HOME)) == {"template-operator": ("Ready", "1.0.0")}
        for managed, state in ((True, "Ready"), (False, "Unmanaged"), (True, "Ready")):
            entry = {"name": "template-operator", "channel": "fast", "managed": managed}
            await cluster.patch(KYMAS, "default", {"spec": {"modules": [entry]}}, "kyma-system")
            await seen(
                management,
                KYMAS,
                "one",
                lambda kyma, state=state: (
                    installed(kyma).get("template-operator", ("",))[0] == state
                    and (state != "Ready" or installed(kyma)["template-operator"][1] == "1.1.0")
                ),
            )
        await management.create(WATCHERS, watcher())
        await seen(management, WATCHERS, "watcher", lambda one: (one.get("status") or {}).get("state") == "Ready")
        await management.delete(WATCHERS, "watcher", HOME)
        await gone(management, WATCHERS, "watcher")
        await seen(management, MANIFESTS, "", lambda one: "greeter" in one["metadata"]["name"])
        await management.delete(MODULE_RELEASE_METAS, "greeter", HOME)
        await gone(management, MODULE_RELEASE_METAS, "greeter")
        await management.delete(KYMAS, "one", HOME)
        await gone(management, KYMAS, "one")
        assert (await management.list(MANIFESTS, HOME)).items == []
        workloads.cancel()


async def test_modules_use_all_that_they_may_and_are_denied_nothing(
    server: TestServer, record: Record, tmp_path: Path
) -> None:
    async with Client.from_kubeconfig(server.kubeconfig) as management:
        for name in (HOME, ISTIO, "hortus-system"):
            await management.create(NAMESPACES, {"metadata": {"name": name}})
        config = {"modules": True, "oci-registry-host": "registry.example.com", "skr-watcher-image-tag": "1.0.0"}
        values = {"garden": {"projectName": "demo"}, "config": config}
        await Installation(management, objects("hortus-system", values), str, namespace="hortus-system").apply()
        stored = {"status": {"storedVersions": ["v1beta1", "v1beta2"]}}
        await management.patch(CRDS, KYMA_CRD, stored, subresource="status")
        async with published(tmp_path / "registry", management) as registry:
            await connect(management, server)
            ours = await kubeconfig_of(management, "hortus-system", "hortus", tmp_path / "management")
            flags = [
                f"--kubeconfig={ours}",
                f"--gardener-kubeconfig-path={server.kubeconfig_for('garden')}",
                "--gardener-project-name=demo",
                "--metrics-bind-address=0",
                "--health-probe-bind-address=0",
                "--audit-log-mandatory=false",
                "--allow-local-clusters",
                "--modules",
                "--module-configurations",
                f"--oci-registry-host={registry}",
                "--skr-watcher-image-tag=1.0.0",
                "--cert-management=self",
                "--watcher-listener-address=127.0.0.1:1",
                "--kyma-skr-listener-bind-address=127.0.0.1:0",
                "--kyma-requeue-busy-interval=200ms",
                "--manifest-requeue-busy-interval=200ms",
                "--failure-base-delay=100ms",
                "--failure-max-delay=1s",
                "--mandatory-module-deletion-requeue-success-interval=200ms",
            ]
            async with program(FlagSet(FLAGS).parse(flags)) as manager, manager.running():
                await a_kymas_life(management, server)
        crd = await management.get(CRDS, KYMA_CRD)
    assert crd["status"]["storedVersions"] == ["v1beta2"]
    done = record.of("system:serviceaccount:hortus-system:hortus", server)
    assert sorted(used for used, codes in done.items() if 403 in codes) == []
    permissions = (*rbac.CONTROL, *rbac.WIDE, *(one for place in rbac.ELSEWHERE for one in place.permissions))
    assert granted(permissions) - done.keys() - ELSEWHERE - DEPUTIES == set()


def test_an_object_with_a_finalizer_may_be_read_again_after_a_conflict() -> None:
    for name in ("kymas", "manifests", "modulereleasemetas", "watchers"):
        assert {Used(GROUP, name, verb) for verb in ("get", "patch")} <= granted(rbac.CONTROL)
