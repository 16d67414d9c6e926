"""A management cluster with a simulated Cluster API, and an extension whose answers a test decides."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from aiohttp import web

from hortus.engine import Manager
from hortus.kube import Client, ConnectionSettings, Resource
from hortus.kube.access import Access, Credentials, Secret
from hortus.kube.objects import Object
from hortus.simulation.capi.composition import add_controllers
from hortus.simulation.capi.definitions import install
from hortus.simulation.capi.kinds import CLUSTERS, EXTENSION_CONFIGS, PENDING_HOOKS
from hortus.simulation.capi.settings import CapiSettings
from hortus.testing.apiserver import TestServer
from hortus.testing.waiting import wait_for

NAMESPACE = "stacks"
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
CLASSES = Resource("cluster.x-k8s.io", "v1beta1", "clusterclasses", "ClusterClass")
PLANE_TEMPLATES = Resource(
    "controlplane.cluster.x-k8s.io", "v1beta1", "kubeadmcontrolplanetemplates", "KubeadmControlPlaneTemplate"
)
PLANES = Resource("controlplane.cluster.x-k8s.io", "v1beta1", "kubeadmcontrolplanes", "KubeadmControlPlane")
DOCKER_TEMPLATES = Resource(
    "infrastructure.cluster.x-k8s.io", "v1beta1", "dockerclustertemplates", "DockerClusterTemplate"
)
HOOKS = ("BeforeClusterUpgrade", "AfterClusterUpgrade", "AfterControlPlaneInitialized")
QUICK = CapiSettings(infrastructure=0.0, control_plane=0.0, upgrade=0.0, retry=0.01, hook_wait=0.02)
_numbers = itertools.count(1)


class Extension:
    """A runtime extension; `answers` are given in turn, and then success. What is `held` is put off until it is not."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Object]] = []
        """All calls that were not put off."""
        self.answers: dict[str, list[Object]] = {}
        self.held: set[str] = set()
        self.url = ""

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        app = web.Application()
        app.router.add_post("/hooks.runtime.cluster.x-k8s.io/v1alpha1/{hook}", self._discovery)
        app.router.add_post("/hooks.runtime.cluster.x-k8s.io/v1alpha1/{hook}/{handler}", self._hook)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield
        finally:
            await runner.cleanup()

    async def _discovery(self, request: web.Request) -> web.Response:
        handlers = [
            {
                "name": hook.lower(),
                "requestHook": {"apiVersion": "hooks.runtime.cluster.x-k8s.io/v1alpha1", "hook": hook},
            }
            for hook in HOOKS
        ]
        return web.json_response({"status": "Success", "handlers": handlers})

    async def _hook(self, request: web.Request) -> web.Response:
        hook = request.match_info["hook"]
        if hook in self.held:
            return web.json_response({"status": "Success", "retryAfterSeconds": 1, "message": "not yet"})
        self.calls.append((hook, await request.json()))
        waiting = self.answers.get(hook)
        return web.json_response(waiting.pop(0) if waiting else {"status": "Success"})

    def called(self, hook: str) -> list[Object]:
        return [body for name, body in self.calls if name == hook.lower()]


class CapiWorld:
    """One logical cluster as the management cluster."""

    def __init__(self, server: TestServer, client: Client, management: Client) -> None:
        self.server = server
        self.client = client
        self.management = management
        self.extension = Extension()

    @asynccontextmanager
    async def controllers(self, settings: CapiSettings = QUICK) -> AsyncIterator[None]:
        """One process of the simulation, killed at the end."""
        manager = Manager(self.client, grace=0.0)
        add_controllers(manager, management=self.management, settings=settings)
        async with manager.running():
            yield

    async def cluster_class(self, name: str = "quick", **spec: Any) -> None:
        for resource, template in ((PLANE_TEMPLATES, f"{name}-plane"), (DOCKER_TEMPLATES, f"{name}-infra")):
            inner = {"template": {"spec": {"from": name}}}
            await self.client.create(resource, typed(resource, template, inner))
        refs = {
            "controlPlane": {"ref": reference(PLANE_TEMPLATES, f"{name}-plane")},
            "infrastructure": {"ref": reference(DOCKER_TEMPLATES, f"{name}-infra")},
        }
        await self.client.create(CLASSES, typed(CLASSES, name, {**refs, **spec}))

    async def cluster(self, name: str, version: str = "v1.33.1", *, class_name: str = "quick", **spec: Any) -> Object:
        topology = {"class": class_name, "version": version}
        resource = msgspec.structs.replace(CLUSTERS, version="v1beta1")
        return await self.client.create(resource, typed(resource, name, {"topology": topology, **spec}))

    async def extension_config(self) -> None:
        config = typed(EXTENSION_CONFIGS, "hooks", {"clientConfig": {"url": self.extension.url}})
        del config["metadata"]["namespace"]
        await self.client.apply(EXTENSION_CONFIGS, config, field_manager="test")
        await wait_for(self.client, EXTENSION_CONFIGS, "hooks", until=lambda obj: "handlers" in obj.get("status", {}))

    async def until(self, name: str, says: Callable[[Object], bool]) -> Object:
        return await wait_for(self.client, CLUSTERS, name, NAMESPACE, until=says)

    async def move(self, name: str, version: str, **topology: Any) -> None:
        await self.client.patch(CLUSTERS, name, {"spec": {"topology": {"version": version, **topology}}}, NAMESPACE)


def typed(resource: Resource, name: str, spec: Object) -> Object:
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": spec}


def reference(resource: Resource, name: str) -> Object:
    return {"apiVersion": resource.api_version, "kind": resource.kind, "name": name, "namespace": NAMESPACE}


def condition(obj: Object, kind: str) -> Object:
    return next((one for one in obj.get("status", {}).get("conditions", ()) if one["type"] == kind), {})


def is_ready(obj: Object) -> bool:
    return condition(obj, "Ready").get("status") == "True"


def pending(obj: Object) -> str:
    """The hooks that are still to be called."""
    return str((obj["metadata"].get("annotations") or {}).get(PENDING_HOOKS, ""))


@asynccontextmanager
async def capi_world(server: TestServer) -> AsyncIterator[CapiWorld]:
    """A management cluster of its own: workload clusters belong to the server's root cluster, which is it."""
    credentials = Credentials(token=Secret(server.token_everywhere))
    access = Access(server=server.url, ca=server.ca, credentials=credentials)
    settings = ConnectionSettings(connections=16)
    async with Client(access, settings=settings) as client, Client(access, settings=settings) as management:
        world = CapiWorld(server, client, management)
        await install(client)
        await client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
        async with world.extension.serving():
            yield world
