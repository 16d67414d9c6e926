"""A cluster with a Kyma and a catalog, in which tests type commands; they stand in for the controllers."""

from __future__ import annotations

import asyncio
import subprocess
from typing import Any

from tests.domains.modules.kyma.documents import release, template
from tests.scenarios import running

from hortus.domains.modules.names import MANAGED_BY_KYMA, Label
from hortus.domains.modules.types import (
    KYMAS,
    MODULE_RELEASE_METAS,
    MODULE_TEMPLATES,
    Kyma,
    Manifest,
    ModuleReleaseMeta,
    ModuleTemplate,
)
from hortus.kube import Client
from hortus.kube.objects import Object, Resource
from hortus.schema import encode
from hortus.testing.apiserver import TestServer
from hortus.testing.clusters import install
from hortus.testing.waiting import wait_for

NAMESPACE = "kyma-system"
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap")


class Cluster:
    """A cluster with a Kyma and a catalog."""

    def __init__(self, server: TestServer, client: Client) -> None:
        self.server = server
        self.client = client

    async def typed(self, *words: str) -> subprocess.CompletedProcess[str]:
        return await self._run("module", *words)

    async def typed_alpha(self, *words: str) -> subprocess.CompletedProcess[str]:
        return await self._run("alpha", "module", *words)

    async def prepare(self) -> None:
        """Create the kinds, an empty Kyma, and module istio in two versions."""
        await install(self.client, Kyma, Manifest, ModuleReleaseMeta, ModuleTemplate)
        for name in (NAMESPACE, "kcp-system"):
            await self.client.create(NAMESPACES, {"metadata": {"name": name}})
        kyma = {"metadata": {"name": "default", "namespace": NAMESPACE}, "spec": {"channel": "regular"}}
        await self.client.create(KYMAS, {"apiVersion": KYMAS.api_version, "kind": "Kyma", **kyma})
        offered = encode(release("istio", {"regular": "1.0.0", "fast": "1.1.0"}))
        offered["metadata"]["namespace"] = NAMESPACE
        await self.client.create(MODULE_RELEASE_METAS, offered)
        for version in ("1.0.0", "1.1.0"):
            await self.offer("istio", version)

    async def offer(self, module: str, version: str, **spec: Any) -> None:
        """Create a ModuleTemplate as the control plane copies it."""
        found = encode(template(module, version, labels={Label.MANAGED_BY: MANAGED_BY_KYMA}))
        found["spec"] |= {"descriptor": {}, **spec}
        found["metadata"]["namespace"] = NAMESPACE
        await self.client.create(MODULE_TEMPLATES, found)

    async def report(self, *modules: dict[str, Any]) -> None:
        status = {"status": {"state": "Ready", "modules": list(modules)}}
        await self.client.patch(KYMAS, "default", status, NAMESPACE, subresource="status")

    async def _run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return await asyncio.to_thread(running.typed, "--kubeconfig", str(self.server.kubeconfig), *words)

    async def until_listed(self, says: Any) -> list[Object]:
        found = await wait_for(self.client, KYMAS, "default", NAMESPACE, until=lambda one: says(_modules(one)))
        return _modules(found)


def _modules(kyma: Object) -> list[Object]:
    return list(kyma["spec"].get("modules") or [])


def istio(state: str, **fields: Any) -> dict[str, Any]:
    """The status of a module."""
    return {"name": "istio", "state": state, "version": "1.0.0", "channel": "regular", **fields}
