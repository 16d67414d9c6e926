"""A management cluster with Cluster API's kinds, a provider, and the controllers of the catalog."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.domains.counting import note
from tests.domains.definitions import define
from tests.domains.stacks.releasing import write_release

from hortus.domains.stacks import settings, types
from hortus.domains.stacks.catalog.composition import add_catalog
from hortus.domains.stacks.clusters import cluster_cache
from hortus.domains.stacks.releases import Library, LocalLibrary, ReleaseFolder
from hortus.engine import EventRecorder, Manager
from hortus.engine.deputies import Deputies
from hortus.engine.flags import FlagSet
from hortus.engine.leftovers import LeftoverRecorder
from hortus.engine.leftovers.types import Leftover
from hortus.kube import Client, PatchKind, Resource
from hortus.kube.clock import Clock, SystemClock
from hortus.kube.objects import Object
from hortus.render.helm import BuiltinRenderer
from hortus.simulation.capi.definitions import CRDS, definitions
from hortus.testing.apiserver import TestServer
from hortus.testing.waiting import wait_for, wait_gone

HOME, TEAM = "catalog", "team"
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
CLUSTERS = Resource("cluster.x-k8s.io", "v1beta1", "clusters", "Cluster")
CLASSES = Resource("cluster.x-k8s.io", "v1beta1", "clusterclasses", "ClusterClass")
EVENTS = Resource("events.k8s.io", "v1", "events", "Event")
_PROVIDER = "TestInfrastructureProviderClusterStackRelease"
PROVIDERS = Resource("infrastructure.clusterstack.x-k8s.io", "v1alpha1", f"{_PROVIDER.lower()}s", _PROVIDER)
TEMPLATES = Resource(
    "infrastructure.clusterstack.x-k8s.io", "v1alpha1", f"{_PROVIDER.lower()}templates", f"{_PROVIDER}Template"
)
CAPI = tuple(definitions())
KINDS = (types.ClusterStack, types.ClusterStackRelease, types.ClusterAddon, types.StackPolicy, Leftover)
_numbers = itertools.count(1)
_ANY = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


class Requests:
    """The requests of the controllers."""

    def __init__(self) -> None:
        self.methods: list[str] = []

    def answered(self, method: str, host: str, code: str, seconds: float) -> None:
        self.methods.append(method)
        note((method, host, code))

    @property
    def writes(self) -> list[str]:
        return [method for method in self.methods if method != "GET"]


class CatalogWorld:
    """One logical cluster as the management cluster; releases are folders."""

    def __init__(self, client: Client, folder: Path) -> None:
        self.client = client
        self.folder = folder
        self.requests = Requests()
        self.clock: Clock = SystemClock()
        self.library: Library = LocalLibrary(ReleaseFolder(folder), clock=self.clock)
        self.resync = "1h"
        self.trusted = "*"
        """The namespaces that controllers trust."""
        self.flags: tuple[str, ...] = ()
        self.renderer: BuiltinRenderer

    def release(self, tag: str, **options: Any) -> None:
        """Write the files of a release."""
        write_release(self.folder / "cluster-stacks", tag, **options)

    @asynccontextmanager
    async def controllers(self) -> AsyncIterator[Manager]:
        """One process of controllers, killed at the end."""
        async with Client(self.client.access, observer=self.requests) as client:
            manager = Manager(client, clock=self.clock, grace=0.0)
            words = ["--stacks", "--local", f"--stacks-resync={self.resync}", *self.flags]
            chosen = FlagSet(settings.FLAGS).parse(words)
            events = EventRecorder(client, component="clusterstack-controller", clock=manager.clock)
            manager.add_server(events)
            self.renderer = renderer = BuiltinRenderer()
            manager.on_stop(renderer.close)
            add_catalog(
                manager,
                client=client,
                namespace="",
                clusters=cluster_cache(manager, client, namespace=""),
                library=self.library,
                renderer=renderer,
                events=events,
                settings=settings.from_flags(chosen, {}),
                deputies=Deputies(client, self.trusted, clock=manager.clock),
                leftovers=LeftoverRecorder(client, HOME, registry=manager.registry),
            )
            async with manager.running():
                yield manager

    # Objects.

    async def create(self, resource: Resource, name: str, namespace: str = HOME, **parts: Any) -> Object:
        metadata = {"name": name, "namespace": namespace, **parts.pop("metadata", {})}
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **parts}
        return await self.client.create(resource, body)

    async def stack(self, *versions: str, name: str = "stack", **spec: Any) -> Object:
        wanted = {
            "provider": "docker",
            "name": "ferrol",
            "kubernetesVersion": "1.27",
            "versions": list(versions),
            "autoSubscribe": False,
            "noProvider": True,
            **spec,
        }
        return await self.create(types.CLUSTER_STACKS, name, spec=wanted)

    async def cluster(self, name: str, class_name: str, *, namespace: str = HOME, **topology: Any) -> Object:
        spec = {"topology": {"class": class_name, "version": "v1.27.3", **topology}}
        return await self.create(CLUSTERS, name, namespace, spec=spec)

    async def template(self, *images: str) -> Object:
        """The provider's template."""
        return await self.create(TEMPLATES, "template", spec={"template": {"spec": {"nodeImages": list(images)}}})

    async def provider_ready(self, tag: str) -> None:
        await self.until(PROVIDERS, tag)
        patch = {"status": {"ready": True}}
        await self.client.patch(PROVIDERS, tag, patch, HOME, PatchKind.MERGE, "status")

    # Conditions to wait for.

    async def until(
        self, resource: Resource, name: str, holds: Callable[[Object], Any] | None = None, namespace: str = HOME
    ) -> Object:
        return await wait_for(
            self.client, resource, name, namespace, until=None if holds is None else lambda obj: bool(holds(obj))
        )

    async def until_gone(self, resource: Resource, name: str) -> None:
        await wait_gone(self.client, resource, name, HOME)

    async def ready(self, tag: str) -> Object:
        """The ClusterStackRelease once it is ready."""
        return await self.until(types.CLUSTER_STACK_RELEASES, tag, is_ready)

    async def names(self, resource: Resource = types.CLUSTER_STACK_RELEASES) -> list[str]:
        return sorted(obj["metadata"]["name"] for obj in (await self.client.list(resource, HOME)).items)

    async def reasons(self) -> set[str]:
        return {str(event["reason"]) for event in (await self.client.list(EVENTS, HOME)).items}


def is_ready(obj: Object) -> bool:
    """Reports whether the status of an object says ready."""
    return bool(obj.get("status", {}).get("ready"))


def condition(obj: Object, kind: str) -> Object:
    """A condition of an object without its time; empty where it has none."""
    for one in obj.get("status", {}).get("conditions") or ():
        if one["type"] == kind:
            return {name: value for name, value in one.items() if name not in ("lastTransitionTime", "type")}
    return {}


def resources(obj: Object) -> list[tuple[str, str, str]]:
    """Kind, name and state of the objects of a release."""
    return sorted((one["kind"], one["name"], one["status"]) for one in obj["status"].get("resources") or ())


@asynccontextmanager
async def catalog_world(server: TestServer, folder: Path) -> AsyncIterator[CatalogWorld]:
    """A world of its own: a logical cluster of the server."""
    name = f"catalog-{next(_numbers)}"
    server.create_cluster(name)
    async with Client.from_kubeconfig(server.kubeconfig_for(name)) as client:
        await define(server, name, *CAPI, *KINDS, *_provider_crds((PROVIDERS, TEMPLATES)))
        for namespace in (HOME, TEAM):
            await client.create(NAMESPACES, {"metadata": {"name": namespace}})
        yield CatalogWorld(client, folder)


def _provider_crds(kinds: Sequence[Resource]) -> list[Object]:
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": _ANY, "status": _ANY}}}
    return [
        {
            "apiVersion": CRDS.api_version,
            "kind": CRDS.kind,
            "metadata": {"name": f"{one.plural}.{one.group}"},
            "spec": {
                "group": one.group,
                "names": {"kind": one.kind, "listKind": f"{one.kind}List", "plural": one.plural},
                "scope": "Namespaced",
                "versions": [
                    {
                        "name": one.version,
                        "served": True,
                        "storage": True,
                        "schema": schema,
                        "subresources": {"status": {}},
                    }
                ],
            },
        }
        for one in kinds
    ]
