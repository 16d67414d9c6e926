"""A management cluster with sources, and real logical clusters behind them; everything goes through real sockets."""

from __future__ import annotations

import asyncio
import base64
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from tests.domains.definitions import define

from hortus.domains.clusters.types import RUNTIMES, Runtime
from hortus.domains.credentials.types import GARDENER_CLUSTERS, GardenerCluster
from hortus.domains.credentials.types import Label as KymaLabel
from hortus.domains.inventory import settings
from hortus.domains.inventory.composition import add_controller
from hortus.domains.inventory.shoots import outline
from hortus.domains.inventory.types import CLUSTER_PROFILES, ClusterProfile, ProfileAnnotation, SourceLabel
from hortus.engine import Manager, find_condition
from hortus.engine.deputies import Deputies
from hortus.engine.flags import FlagSet
from hortus.engine.kubeconfigs import SECRETS, sealed
from hortus.engine.remote import RemotePool, RemoteSettings, SecretCredentials
from hortus.kube import Client, Resource, yaml
from hortus.kube.clock import Clock, SystemClock
from hortus.kube.objects import Object
from hortus.testing.apiserver import TestServer

NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
SHOOTS = Resource("core.gardener.cloud", "v1beta1", "shoots", "Shoot")
PROPERTIES = Resource("about.k8s.io", "v1alpha1", "clusterproperties", "ClusterProperty", namespaced=False)
FLEET, HOME, PROJECT = "fleet", "kcp-system", "garden-test"
PATIENCE = 60.0
_numbers = itertools.count(1)


def open_crd(resource: Resource) -> Object:
    """A CRD that admits any object."""
    names = {"kind": resource.kind, "plural": resource.plural, "singular": resource.kind.lower()}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": resource.version, "served": True, "storage": True, "schema": schema}
    return {
        "apiVersion": CRDS.api_version,
        "kind": CRDS.kind,
        "metadata": {
            "name": f"{resource.plural}.{resource.group}",
            "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes/enhancements/pull/2150"},
        },
        "spec": {
            "group": resource.group,
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "names": {**names, "listKind": f"{resource.kind}List"},
            "versions": [version],
        },
    }


class Requests:
    """The requests of the controller, to the management cluster and to the clusters."""

    def __init__(self) -> None:
        self.answers: list[tuple[str, str, str]] = []
        self.on_write: Callable[[], None] = lambda: None
        self._news = asyncio.Event()

    def answered(self, method: str, host: str, code: str, seconds: float) -> None:
        self.answers.append((method, host, code))
        self._news.set()
        if method != "GET":
            self.on_write()

    @property
    def writes(self) -> list[tuple[str, str, str]]:
        return [one for one in self.answers if one[0] != "GET"]

    async def answer(self, code: str) -> None:
        """Return once a request was answered with `code`."""
        async with asyncio.timeout(PATIENCE):
            while all(one[2] != code for one in self.answers):
                self._news.clear()
                await self._news.wait()


class InventoryWorld:
    """One logical cluster as the management cluster."""

    def __init__(self, server: TestServer, client: Client, name: str) -> None:
        self.server = server
        self.client = client
        self.name = name
        self.requests = Requests()
        self.clock: Clock = SystemClock()
        self.flags: list[str] = []
        self.trusted = "*"

    @asynccontextmanager
    async def controllers(self) -> AsyncIterator[Manager]:
        """One process of controllers, killed at the end."""
        self.requests = Requests()
        async with Client(self.client.access, observer=self.requests) as client:
            manager = Manager(client, clock=self.clock, grace=0.0)
            values = FlagSet(settings.FLAGS).parse(["--inventory", *self.flags])
            kubeconfigs = manager.cache(SECRETS, labels=KymaLabel.SHOOT_NAME, transform=sealed)
            pool = RemotePool(
                SecretCredentials(client, kubeconfigs),
                settings=RemoteSettings(deny=(), connect_timeout=20.0, timeout=20.0),
                clock=self.clock,
                observer=self.requests,
            )
            manager.on_stop(pool.close)
            add_controller(
                manager,
                client=client,
                pool=pool,
                kubeconfigs=kubeconfigs,
                shoots=manager.cache(SHOOTS, namespace=PROJECT, transform=_kept),
                garden_namespace=PROJECT,
                watched="",
                deputies=Deputies(client, self.trusted, clock=self.clock),
                settings=settings.from_flags(values),
            )
            async with manager.running():
                yield manager

    # Clusters and their sources.

    async def create(self, resource: Resource, obj: Object) -> Object:
        return await self.client.create(resource, _typed(resource, obj))

    async def workload(self, name: str) -> str:
        """A logical cluster; returns its name."""
        full = f"{self.name}-{name}"
        await asyncio.to_thread(self.server.create_cluster, full)
        return full

    @asynccontextmanager
    async def inside(self, name: str) -> AsyncIterator[Client]:
        path = await asyncio.to_thread(self.server.kubeconfig_for, f"{self.name}-{name}")
        async with Client.from_kubeconfig(path) as client:
            yield client

    def kubeconfig(self, workload: str) -> str:
        document = self.server.kubeconfig_dict(f"{self.name}-{workload}")
        return base64.b64encode(yaml.dump(document).encode()).decode()

    async def secret(
        self, name: str, workload: str, *, key: str = "config", labels: Any = None, annotations: Any = None
    ) -> Object:
        """A Secret that is a source, with the kubeconfig of a logical cluster."""
        return await self.client.create(
            SECRETS,
            {
                "metadata": {
                    "name": name,
                    "namespace": HOME,
                    "labels": {SourceLabel.KUBECONFIG: "true", **(labels or {})},
                    "annotations": annotations or {},
                },
                "data": {key: self.kubeconfig(workload)},
            },
        )

    async def gardener_cluster(self, name: str, workload: str, **labels: str) -> Object:
        """A GardenerCluster with its Secret, as the credentials domain leaves it."""
        place = {"name": f"kubeconfig-{name}", "namespace": HOME, "key": "config"}
        made = await self.create(
            GARDENER_CLUSTERS,
            {
                "metadata": {"name": name, "namespace": HOME, "labels": {KymaLabel.RUNTIME_ID: name, **labels}},
                "spec": {"shoot": {"name": name}, "kubeconfig": {"secret": place}},
            },
        )
        await self.client.create(
            SECRETS,
            {
                "metadata": {
                    "name": place["name"],
                    "namespace": HOME,
                    "labels": {KymaLabel.SHOOT_NAME: name},
                    "annotations": {"credentials.hortus.dev/expiration": "2100-01-01T00:00:00Z"},
                },
                "data": {"config": self.kubeconfig(workload)},
            },
        )
        return made

    async def runtime(self, name: str, runtime_id: str, **labels: str) -> Object:
        shoot = {
            "name": runtime_id,
            "purpose": "production",
            "region": "eu-central-1",
            "platformRegion": "cf-eu10",
            "secretBindingName": "binding",
            "provider": {
                "type": "aws",
                "workers": [{"name": "w", "machine": {"type": "m"}, "minimum": 1, "maximum": 2}],
            },
            "networking": {"nodes": "10.0.0.0/16", "pods": "10.1.0.0/16", "services": "10.2.0.0/16"},
        }
        filters = {"egress": {"enabled": True}}
        return await self.create(
            RUNTIMES,
            {
                "metadata": {"name": name, "namespace": HOME, "labels": {KymaLabel.RUNTIME_ID: runtime_id, **labels}},
                "spec": {"shoot": shoot, "security": {"administrators": ["a"], "networking": {"filter": filters}}},
            },
        )

    async def shoot(self, name: str, **status: Any) -> Object:
        conditions = [{"type": kind, "status": "True", "reason": "Fine"} for kind in _HEALTHY]
        return await self.create(
            SHOOTS,
            {
                "metadata": {"name": name, "namespace": PROJECT},
                "spec": {
                    "kubernetes": {"version": "1.33.4"},
                    "region": "eu-central-1",
                    "purpose": "production",
                    "provider": {"type": "aws"},
                    "maintenance": {"timeWindow": {"begin": "220000+0100", "end": "230000+0100"}},
                },
                "status": {"conditions": conditions, "hibernated": False, **status},
            },
        )

    # Conditions to wait for.

    async def at_rest(self, manager: Manager) -> None:
        """Returns once the controllers have done all that is due now."""
        async with asyncio.timeout(PATIENCE):
            for controller in manager.controllers:
                await controller.queue.join()

    async def profile(self, name: str, says: Callable[[Object], Any] = bool, namespace: str = FLEET) -> Object:
        """The profile as soon as it exists and `says` holds of it."""
        return await self._profile(name, lambda found: found and says(found), namespace)

    async def no_profile(self, name: str, namespace: str = FLEET) -> None:
        """Returns when there is no such profile."""
        await self._profile(name, lambda found: not found, namespace)

    async def _profile(self, name: str, says: Callable[[Object], Any], namespace: str) -> Object:
        """The profile as soon as `says` holds of it; `says` gets an empty dict where there is none."""
        last: Object = {}
        try:
            async with (
                asyncio.timeout(PATIENCE),
                self.client.watch(
                    CLUSTER_PROFILES, namespace, fields=f"metadata.name={name}", initial_events=True
                ) as events,
            ):
                async for event in events:
                    if event.type == "BOOKMARK":
                        if not last and says(last):
                            return last
                        continue
                    last = {} if event.type == "DELETED" else event.object
                    if says(last):
                        return last
        except TimeoutError:
            raise AssertionError(f"waited in vain for profile {name}; last seen: {last}") from None
        raise AssertionError("the watch ended")

    async def changes_after(self, profile: Object, number: int) -> list[Object]:
        """The first `number` versions of a profile after this one."""
        metadata, found = profile["metadata"], list[Object]()
        version = metadata["resourceVersion"]
        watch = self.client.watch(CLUSTER_PROFILES, FLEET, name=metadata["name"], resource_version=version)
        async with asyncio.timeout(PATIENCE), watch as events:
            async for event in events:
                found += [event.object] if event.type != "BOOKMARK" else []
                if len(found) == number:
                    break
        return found

    async def names(self) -> list[str]:
        return sorted(one["metadata"]["name"] for one in (await self.client.list(CLUSTER_PROFILES, FLEET)).items)


_HEALTHY = ("APIServerAvailable", "ControlPlaneHealthy")


def is_joined(profile: Object) -> bool:
    return (find_condition(profile, "Joined") or {}).get("status") == "True"


def condition(profile: Object, kind: str) -> tuple[str, str]:
    found = find_condition(profile, kind) or {}
    return found.get("status", ""), found.get("reason", "")


def properties(profile: Object) -> dict[str, str]:
    return {one["name"]: one["value"] for one in (profile.get("status") or {}).get("properties") or ()}


def owns_sources(profile: Object) -> bool:
    """True once sources that were handed over are applied as well: no write is to come."""
    entries = [one["fieldsV1"] for one in profile["metadata"]["managedFields"] if one["operation"] == "Apply"]
    owned = [entry.get("f:metadata", {}).get("f:annotations", {}) for entry in entries]
    return any(f"f:{ProfileAnnotation.SOURCES}" in annotations for annotations in owned)


def _typed(resource: Resource, obj: Object) -> Object:
    return {"apiVersion": resource.api_version, "kind": resource.kind, **obj}


def _kept(shoot: Object) -> Object:
    metadata = {name: shoot["metadata"].get(name, "") for name in ("name", "namespace", "uid", "resourceVersion")}
    return {"metadata": metadata, **outline(shoot)}


@asynccontextmanager
async def inventory_world(server: TestServer) -> AsyncIterator[InventoryWorld]:
    """A fresh logical cluster with the CRDs and namespaces, and no source."""
    name = f"inventory-{next(_numbers)}"
    await asyncio.to_thread(server.create_cluster, name)
    async with Client.from_kubeconfig(server.kubeconfig_for(name)) as client:
        await define(server, name, ClusterProfile, Runtime, GardenerCluster, open_crd(SHOOTS))
        for namespace in (FLEET, HOME, PROJECT):
            await client.create(NAMESPACES, {"metadata": {"name": namespace}})
        yield InventoryWorld(server, client, name)
