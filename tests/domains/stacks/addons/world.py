"""A management cluster with Clusters, and their workload clusters, all of them logical clusters of one server."""

from __future__ import annotations

import asyncio
import base64
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.domains.counting import Answer, note, requests_of
from tests.domains.definitions import define
from tests.domains.stacks.addons.releases import DirectRenderer, ReleaseShelf

from hortus.domains.stacks.addons.composition import add_addons
from hortus.domains.stacks.addons.controller import ClusterAddonController
from hortus.domains.stacks.addons.rendering import AddonRendering
from hortus.domains.stacks.capi import CLUSTERS
from hortus.domains.stacks.flux.registry import ChartRegistry
from hortus.domains.stacks.flux.settings import OFF
from hortus.domains.stacks.hooks.composition import hook_server
from hortus.domains.stacks.hooks.handling import HookHandler
from hortus.domains.stacks.releases.library import Library, LocalLibrary
from hortus.domains.stacks.releases.stores import ReleaseFolder
from hortus.domains.stacks.types import CLUSTER_ADDONS, ClusterAddon
from hortus.engine import EventRecorder, Manager, without_managed_fields
from hortus.engine.deputies import Deputies
from hortus.engine.health import Address
from hortus.engine.kubeconfigs import SECRETS, sealed
from hortus.engine.remote import RemotePool, RemoteSettings, SecretCredentials
from hortus.engine.rollouts import RolloutGate
from hortus.engine.serving import ServingPair
from hortus.kube import Client, Resource, yaml
from hortus.kube.clock import Clock, SystemClock
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, ObjectKey
from hortus.simulation.capi.definitions import definitions
from hortus.testing.apiserver import TestServer
from hortus.testing.waiting import wait_for, wait_gone

HOME = "stacks"
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
PLANES = Resource("controlplane.cluster.x-k8s.io", "v1beta1", "kubeadmcontrolplanes", "KubeadmControlPlane")
INFRA = Resource("infrastructure.cluster.x-k8s.io", "v1beta1", "dockerclusters", "DockerCluster")
V1BETA1 = CLUSTERS["v1beta1"]
CAPI = tuple(definitions())
PATIENCE = 60.0
_numbers = itertools.count(1)


class Requests:
    """The requests of the controllers: method, host ("remote" for all workload clusters) and code."""

    def __init__(self) -> None:
        self.answers: list[tuple[str, str, str]] = []
        self.on_answer: Callable[[str, str], None] = lambda method, host: None

    def answered(self, method: str, host: str, code: str, seconds: float) -> None:
        self.answers.append((method, host, code))
        note((method, host, code))
        self.on_answer(method, host)


class AddonWorld:
    """One logical cluster as the management cluster, one as the workload cluster of the Cluster `shop`."""

    def __init__(self, server: TestServer, client: Client, inside: Client, name: str, shelf: ReleaseShelf) -> None:
        self.server = server
        self.client = client
        self.inside = inside
        self.name = name
        self.shelf = shelf
        self.requests = Requests()
        self.renderer = DirectRenderer()
        self.clock: Clock = SystemClock()
        self.clusters = V1BETA1
        """Clusters in the version that controllers read."""
        self.library: Library | None = None
        """The releases, where they are not those on the shelf."""
        self.gate: Callable[[Manager], RolloutGate] | None = None
        self.flux = OFF
        self.trusted = "*"
        """The namespaces that controllers trust."""
        self.pair: ServingPair | None = None
        self.port = 0
        """The port of the server of charts for Flux; every process of controllers has the same."""
        self.controller: ClusterAddonController
        self.test_task = asyncio.current_task()

    @asynccontextmanager
    async def controllers(self) -> AsyncIterator[Manager]:
        """One process of controllers, killed at the end."""
        async with Client(self.client.access, observer=self.requests) as client:
            manager = Manager(client, clock=self.clock, grace=0.0)
            pool = RemotePool(
                SecretCredentials(client, manager.cache(SECRETS, labels="none=of-these", transform=sealed)),
                settings=RemoteSettings(deny=(), connect_timeout=20.0, timeout=20.0),
                clock=self.clock,
                observer=self.requests,
            )
            manager.on_stop(pool.close)
            events = EventRecorder(client, component="clusterstack-controller", clock=manager.clock)
            manager.add_server(events)
            releases = self.library or LocalLibrary(ReleaseFolder(self.shelf.folder), clock=self.clock)
            self.controller = add_addons(
                manager,
                client=client,
                namespace="",
                clusters=manager.cache(self.clusters, transform=without_managed_fields),
                pool=pool,
                releases=releases,
                renderer=self.renderer,
                events=events,
                gate=self.gate(manager) if self.gate is not None else RolloutGate(None),
                deputies=Deputies(client, self.trusted, clock=manager.clock),
                flux=self.flux,
                charts=self._charts(manager, client, releases),
            )
            async with manager.running():
                yield manager

    async def at_rest(self, manager: Manager) -> None:
        """Returns when the controllers have done all that is due now."""
        async with asyncio.timeout(PATIENCE):
            for controller in manager.controllers:
                await controller.queue.join()

    async def requests_of_a_reconcile(self, *, until: int | None = None) -> list[Answer]:
        """The requests that a reconcile of `shop` makes now; with `until`, reconciles until one makes so many."""
        key = ObjectKey(HOME, "cluster-addon-shop")
        async with asyncio.timeout(PATIENCE):
            while True:
                made = await requests_of(self.controller.reconcile(key))
                if until is None or len(made) == until:
                    return made

    def _charts(self, manager: Manager, client: Client, releases: Library) -> ChartRegistry | None:
        """The registry of charts on a hook server, where Flux is offered."""
        if not self.flux.offered or self.pair is None:
            return None
        charts = ChartRegistry(f"127.0.0.1:{self.port}", releases=releases, rendering=AddonRendering(self.renderer))
        handler = HookHandler(client, releases=releases, clock=self.clock)
        server = hook_server(Address("127.0.0.1", self.port), handler, charts)
        server.identify(self.pair)
        manager.add("runtime hooks", server.run, leader_only=False)
        return charts

    # Clusters.

    async def cluster(
        self,
        class_name: str,
        name: str = "shop",
        *,
        version: str = "v1.33.1",
        pending: str = "",
        **spec: Any,
    ) -> Object:
        """A Cluster whose control plane runs in `version`, as Cluster API leaves it; in the version of `clusters`."""
        is_v1beta2 = self.clusters.version == "v1beta2"
        references = {}
        for field, resource in (("controlPlaneRef", PLANES), ("infrastructureRef", INFRA)):
            made = await self.client.create(resource, typed(resource, name, {"of": name}))
            origin = {"apiGroup": resource.group} if is_v1beta2 else {"apiVersion": resource.api_version}
            references[field] = {**origin, "kind": resource.kind, "name": name}
            if resource is PLANES:
                await self.client.patch(resource, name, {"status": {"version": version}}, HOME, subresource="status")
            del made
        named = {"classRef": {"name": class_name}} if is_v1beta2 else {"class": class_name}
        topology = {**named, "version": version}
        endpoint = {"host": f"{name}.example.org", "port": 6443}
        spec = {"topology": topology, "controlPlaneEndpoint": endpoint, **references, **spec}
        annotations = {"runtime.cluster.x-k8s.io/pending-hooks": pending} if pending else {}
        return await self.client.create(self.clusters, typed(self.clusters, name, spec, annotations=annotations))

    async def kubeconfig(self, name: str = "shop", *, url: str = "") -> None:
        document = self.server.kubeconfig_dict(f"{self.name}-inside")
        if url:
            document["clusters"][0]["cluster"]["server"] = url
        data = {"value": base64.b64encode(yaml.dump(document).encode()).decode()}
        metadata = {"name": f"{name}-kubeconfig", "namespace": HOME, "labels": {"cluster.x-k8s.io/cluster-name": name}}
        await self.client.apply(SECRETS, {"metadata": metadata, "data": data}, field_manager="test")

    async def move(self, class_name: str, name: str = "shop", *, version: str = "", **spec: Any) -> None:
        topology = {"class": class_name, **({"version": version} if version else {})}
        await self.client.patch(V1BETA1, name, {"spec": {"topology": topology, **spec}}, HOME)

    async def hook(self, hook: str, name: str = "shop") -> None:
        """Sets the hook as the hook server does."""
        await self.client.patch(CLUSTER_ADDONS, f"cluster-addon-{name}", {"spec": {"hook": hook}}, HOME)

    async def upgraded(self, version: str, name: str = "shop") -> None:
        """The control plane has moved to a version."""
        await self.client.patch(PLANES, name, {"status": {"version": version}}, HOME, subresource="status")

    async def nudge(self, name: str = "shop") -> None:
        """Has the ClusterAddon reconciled before its time."""
        annotations = {"example.org/nudge": str(next(_numbers))}
        await self.client.patch(V1BETA1, name, {"metadata": {"annotations": annotations}}, HOME)

    # ClusterAddons and their objects.

    async def until(self, says: Callable[[Object], Any], name: str = "shop") -> Object:
        """The ClusterAddon as soon as `says` holds of it."""
        return await wait_for(
            self.client,
            CLUSTER_ADDONS,
            f"cluster-addon-{name}",
            HOME,
            until=lambda obj: bool(says(obj)),
            patience=PATIENCE,
        )

    async def installed(self, class_name: str, name: str = "shop") -> Object:
        return await self.until(lambda obj: is_installed(obj, class_name), name)

    async def names_inside(self, resource: Resource = CONFIG_MAPS, namespace: str = "kube-system") -> set[str]:
        """The names of the objects of addons."""
        found = await self.inside.list(resource, namespace, labels="clusterstack.x-k8s.io/instance=owned")
        return {one["metadata"]["name"] for one in found.items}

    async def inside_object(self, resource: Resource, name: str, namespace: str = "kube-system") -> Object | None:
        try:
            return await self.inside.get(resource, name, namespace)
        except NotFound:
            return None

    async def gone_inside(self, resource: Resource, name: str, namespace: str = "kube-system") -> None:
        await wait_gone(self.inside, resource, name, namespace)


def typed(resource: Resource, name: str, spec: Object, **metadata: Any) -> Object:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name, "namespace": HOME, **metadata},
        "spec": spec,
    }


def condition(obj: Object, kind: str) -> Object:
    found = obj.get("status", {}).get("conditions") or ()
    return next((one for one in found if one["type"] == kind), {})


def conditions(obj: Object) -> dict[str, str]:
    """Status and reason of each condition."""
    found = obj.get("status", {}).get("conditions") or ()
    return {one["type"]: " ".join(filter(None, (one["status"], one.get("reason")))) for one in found}


def is_installed(obj: Object, class_name: str) -> bool:
    """True when the addons of a class are installed and no hook is in progress."""
    spec, status = obj["spec"], obj.get("status", {})
    return bool(spec.get("clusterStack") == class_name and not spec.get("hook") and status.get("ready"))


@asynccontextmanager
async def addon_world(server: TestServer, folder: Path) -> AsyncIterator[AddonWorld]:
    name = f"stacks-{next(_numbers)}"
    for cluster in (name, f"{name}-inside"):
        await asyncio.to_thread(server.create_cluster, cluster)
    shelf = ReleaseShelf(folder / name)
    async with (
        Client.from_kubeconfig(server.kubeconfig_for(name)) as client,
        Client.from_kubeconfig(server.kubeconfig_for(f"{name}-inside")) as inside,
    ):
        await define(server, name, *CAPI, ClusterAddon)
        await client.create(NAMESPACES, {"metadata": {"name": HOME}})
        yield AddonWorld(server, client, inside, name, shelf)
