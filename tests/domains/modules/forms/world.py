"""A cluster, and a registry with the sample modules, both reached through real sockets."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.domains.definitions import define
from tests.domains.modules.registry.shelves import Shelf, shelf

from hortus.cli.flags import FLAGS
from hortus.cli.program import program
from hortus.domains.modules.publishing.pushing import push_component
from hortus.domains.modules.samples import sample_catalog, sample_modules
from hortus.domains.modules.types import (
    KYMAS,
    MANIFESTS,
    MODULE_RELEASE_METAS,
    MODULE_TEMPLATES,
    Kyma,
    Manifest,
    ModuleReleaseMeta,
    ModuleTemplate,
    Watcher,
)
from hortus.engine import Manager
from hortus.engine.flags import FlagSet
from hortus.kube import Client, Resource
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object
from hortus.testing.apiserver import TestServer
from hortus.testing.waiting import wait_for, wait_gone

HOME = "kyma-system"
OPERATOR, OPERATOR_HOME = "template-operator-controller-manager", "template-operator-system"
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
SAMPLES = Resource("operator.kyma-project.io", "v1alpha1", "samples", "Sample")
CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
_numbers = itertools.count(1)


class OneCluster:
    """A cluster that is its own control plane, or has none."""

    def __init__(self, server: TestServer, client: Client, name: str, shelf: Shelf) -> None:
        self.server = server
        self.client = client
        self.name = name
        self.shelf = shelf
        self.kubeconfig: Path = server.kubeconfig_for(name)

    @asynccontextmanager
    async def controllers(self, *flags: str, kubeconfig: Path | None = None) -> AsyncIterator[Manager]:
        """`hortus run` with the flags of the in-cluster form, and `flags`."""
        given = (
            f"--kubeconfig={kubeconfig or self.kubeconfig}",
            "--gardener-kubeconfig-path=",
            "--modules",
            "--in-kcp-mode=false",
            f"--watch-namespace={HOME}",
            f"--oci-registry-host={self.shelf.site.url}/prod/modules",
            "--metrics-bind-address=0",
            "--health-probe-bind-address=0",
            "--kyma-requeue-busy-interval=200ms",
            "--manifest-requeue-busy-interval=200ms",
            "--module-upgrade-rollout-max-delay=0s",
            *flags,
        )
        async with program(FlagSet(FLAGS).parse(list(given))) as manager, manager.running():
            yield manager

    async def become_control_plane(self) -> None:
        """Install the kinds and the catalog of the sample modules."""
        await define(self.server, self.name, Kyma, Manifest, ModuleTemplate, ModuleReleaseMeta, Watcher)
        by_kind = {one.kind: one for one in (MODULE_TEMPLATES, MODULE_RELEASE_METAS)}
        for obj in sample_catalog(sample_modules(), namespace=HOME):
            await self.client.create(by_kind[obj["kind"]], obj)

    async def kyma(self, *modules: str, **spec: Any) -> Object:
        listed = [{"name": name, "managed": True} for name in modules]
        made = {
            "apiVersion": KYMAS.api_version,
            "kind": KYMAS.kind,
            "metadata": {"name": "default", "namespace": HOME},
            "spec": {"channel": "regular", "modules": listed, **spec},
        }
        return await self.client.create(KYMAS, made)

    async def kyma_is(self, state: str) -> Object:
        return await wait_for(self.client, KYMAS, "default", HOME, until=lambda obj: _state(obj) == state)

    async def kyma_is_gone(self) -> None:
        await wait_gone(self.client, KYMAS, "default", HOME)

    async def become_available(self, name: str = OPERATOR, namespace: str = OPERATOR_HOME) -> None:
        """Stand in for the cluster's controllers: the Deployment is rolled out as soon as it is there."""
        await wait_for(self.client, DEPLOYMENTS, name, namespace)
        conditions = [
            {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable", "message": ""},
            {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable", "message": ""},
        ]
        status = {"status": {"conditions": conditions}}
        await self.client.patch(DEPLOYMENTS, name, status, namespace, subresource="status")

    async def read(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        try:
            return await self.client.get(resource, name, namespace)
        except NotFound:
            return None

    async def manifests(self) -> list[Object]:
        return (await self.client.list(MANIFESTS, HOME)).items


def _state(obj: Object) -> str:
    return str((obj.get("status") or {}).get("state", ""))


@asynccontextmanager
async def sample_shelf() -> AsyncIterator[Shelf]:
    """A registry with the sample modules."""
    async with shelf() as made:
        for module in sample_modules():
            await push_component(made.access, module.layout(made.access))
        yield made


@asynccontextmanager
async def one_cluster(server: TestServer, shelf: Shelf) -> AsyncIterator[OneCluster]:
    """A new cluster with the namespace of modules, next to a registry."""
    name = f"one-{next(_numbers)}"
    await asyncio.to_thread(server.create_cluster, name)
    async with Client.from_kubeconfig(server.kubeconfig_for(name)) as client:
        await client.create(NAMESPACES, {"metadata": {"name": HOME}})
        yield OneCluster(server, client, name, shelf)
