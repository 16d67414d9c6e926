"""A seed with Shoots on it, as gardenlet keeps them; everything goes through real sockets.

gardener-resource-manager is the simulated one. Tests play gardenlet: they write Clusters, Extensions and annotations.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

import msgspec
from tests.domains.definitions import define
from tests.waiting import until

from hortus.domains.garden.extension.composition import SeedView, add_extension, seed_view
from hortus.domains.garden.extension.topic import ExtensionTopic
from hortus.domains.garden.types import EXTENSIONS, INFRASTRUCTURES, MANAGED_RESOURCES, SEED_CLUSTERS
from hortus.engine import Manager, Watch
from hortus.kube import Client, Impersonation, PatchKind, RequestObserver, Resource
from hortus.kube.clock import Clock
from hortus.kube.errors import AlreadyExists, NotFound, NotServed
from hortus.kube.kubeconfig import load
from hortus.kube.objects import Object
from hortus.simulation.garden.seed.definitions import CRDS, definitions
from hortus.simulation.garden.seed.kinds import SECRETS
from hortus.simulation.garden.seed.resources import ResourceManager
from hortus.testing.apiserver import TestServer

NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
GATEWAYS = Resource("networking.istio.io", "v1beta1", "gateways", "Gateway")
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
ENVOY_FILTERS = Resource("networking.istio.io", "v1alpha3", "envoyfilters", "EnvoyFilter")
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
ISTIO_LABELS = {"app": "istio-ingressgateway", "istio": "ingressgateway"}
OPERATION = "gardener.cloud/operation"
_numbers = itertools.count(1)

MakeTopic = Callable[[SeedView], ExtensionTopic]


def shoot_document(name: str = "foo", project: str = "bar", **spec: Any) -> dict[str, Any]:
    """A Shoot as it is in a Cluster."""
    return {
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "Shoot",
        "metadata": {"name": name, "namespace": f"garden-{project}", "annotations": {}},
        "spec": {
            "region": "eu01",
            "provider": {"type": "openstack", "workers": [{"name": "pool"}]},
            "networking": {"nodes": "10.250.0.0/16", "pods": "100.96.0.0/11", "services": "100.64.0.0/13"},
            **spec,
        },
        "status": {
            "technicalID": f"shoot--{project}--{name}",
            "advertisedAddresses": [
                {"name": "external", "url": f"https://api.{name}.{project}.example.org"},
                {"name": "internal", "url": f"https://api.{name}.{project}.internal.example.org"},
            ],
            "lastOperation": {"type": "Reconcile", "state": "Processing", "progress": 50, "description": ""},
        },
    }


def seed_document(domain: str = "ingress.seed.example.org") -> dict[str, Any]:
    """A Seed as it is in a Cluster."""
    spec: dict[str, Any] = {"networks": {"nodes": "10.240.0.0/16", "pods": "10.96.0.0/11", "services": "10.0.0.0/16"}}
    if domain:
        spec["ingress"] = {"domain": domain}
    return {"metadata": {"name": "seed-1"}, "spec": spec}


class SeedWorld:
    """One logical cluster as the seed, with the logical clusters of Shoots next to it."""

    def __init__(self, server: TestServer, client: Client, name: str, clock: Clock | None = None) -> None:
        self.server = server
        self.client = client
        self.name = name
        self.clock = clock

    @asynccontextmanager
    async def running(
        self,
        *topics: MakeTopic,
        resources: bool = True,
        user: str = "",
        trusted: str = "*",
        observer: RequestObserver | None = None,
    ) -> AsyncIterator[list[ExtensionTopic]]:
        """The controllers of topics, and the simulated gardener-resource-manager unless `resources` is off.

        The controllers act as `user`, or as administrator.
        """
        access = load(self.server.kubeconfig_for(self.name)).access()
        if user:
            access = msgspec.structs.replace(access, impersonate=Impersonation(user=user))
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(Client(access, observer=observer))
            manager = Manager(client, clock=self.clock)
            view = seed_view(manager, client, trusted=trusted, is_own=True)
            made = [make(view) for make in topics]
            for topic in made:
                add_extension(view, topic, workers=4)
            if resources:
                await stack.enter_async_context(self.resource_manager())
            await stack.enter_async_context(manager.running())
            yield made

    @asynccontextmanager
    async def resource_manager(self) -> AsyncIterator[None]:
        """The simulated gardener-resource-manager of the seed."""
        manager = Manager(self.client)
        resources, secrets = manager.cache(MANAGED_RESOURCES), manager.cache(SECRETS)

        def reach(technical_id: str) -> Client:
            return Client.from_kubeconfig(self.server.kubeconfig_for(technical_id))

        made = ResourceManager(self.client, resources=resources, secrets=secrets, reach=reach, clock=manager.clock)
        manager.controller("resources", made, sources=[Watch(secrets, to=made.of_secret), Watch(resources)])
        async with manager.running():
            yield

    async def create(self, resource: Resource, name: str, namespace: str = "", **parts: Any) -> Object:
        """Create an object; its namespace is created where it is missing."""
        if namespace:
            await self.namespace(namespace)
        metadata = {"name": name, **({"namespace": namespace} if namespace else {}), **parts.pop("metadata", {})}
        document = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **parts}
        status = document.pop("status", None)
        made = await self.client.create(resource, document)
        if status is not None:
            made = await self.status(resource, name, namespace, status)
        return made

    async def namespace(self, name: str) -> None:
        try:
            await self.client.create(NAMESPACES, {"metadata": {"name": name}, "apiVersion": "v1", "kind": "Namespace"})
        except AlreadyExists:
            return

    async def status(self, resource: Resource, name: str, namespace: str, status: Any) -> Object:
        return await self.client.patch(resource, name, {"status": status}, namespace, subresource="status")

    async def add_shoot(self, shoot: Mapping[str, Any] | None = None, *, seed: Mapping[str, Any] | None = None) -> str:
        """Write the Cluster of a Shoot; returns its technical ID."""
        document = dict(shoot or shoot_document())
        name = document["status"]["technicalID"]
        await self.namespace(name)
        await self.client.apply(
            SEED_CLUSTERS,
            {
                "metadata": {"name": name},
                "spec": {"cloudProfile": {}, "seed": dict(seed or seed_document()), "shoot": document},
            },
            field_manager="gardenlet",
        )
        return str(name)

    async def add_gateway(
        self, technical_id: str, *, namespace: str = "istio-ingress", labels: Mapping[str, str] = ISTIO_LABELS
    ) -> None:
        """Write the Gateway of a Shoot's kube-apiserver, and the Deployment that serves it."""
        project, _, name = technical_id.removeprefix("shoot--").partition("--")
        hosts = [f"api.{name}.{project}.internal.example.org", f"api.{name}.{project}.example.org"]
        await self.add_hosts(technical_id, "kube-apiserver", [hosts], labels=labels)
        await self.add_deployment(namespace, labels)

    async def add_hosts(
        self,
        namespace: str,
        name: str,
        servers: Sequence[Sequence[str]],
        *,
        labels: Mapping[str, str] = ISTIO_LABELS,
        protocol: str = "TLS",
    ) -> None:
        """Write a Gateway whose servers have these hosts."""
        await self.namespace(namespace)
        port = {"number": 443, "name": "tls", "protocol": protocol}
        made = [{"hosts": list(hosts), "port": port} for hosts in servers]
        metadata = {"name": name, "namespace": namespace}
        document = {"metadata": metadata, "spec": {"selector": dict(labels), "servers": made}}
        await self.client.apply(GATEWAYS, document, field_manager="gardenlet")

    async def add_deployment(self, namespace: str, labels: Mapping[str, str] = ISTIO_LABELS) -> None:
        """Write the Deployment of a gateway."""
        await self.namespace(namespace)
        template = {"metadata": {"labels": dict(labels)}, "spec": {"containers": [{"name": "p", "image": "p"}]}}
        spec = {"selector": {"matchLabels": dict(labels)}, "template": template}
        await self.client.apply(
            DEPLOYMENTS,
            {
                "metadata": {"name": "istio-ingressgateway", "namespace": namespace, "labels": dict(labels)},
                "spec": spec,
            },
            field_manager="gardenlet",
        )

    async def add_infrastructure(self, technical_id: str, name: str, *egress: str) -> None:
        """Write the Infrastructure of a Shoot with the addresses of its nodes."""
        with suppress(AlreadyExists):
            spec = {"type": "openstack", "region": "eu01", "secretRef": {"name": "cloudprovider"}}
            await self.create(INFRASTRUCTURES, name, technical_id, spec=spec)
        await self.status(INFRASTRUCTURES, name, technical_id, {"egressCIDRs": list(egress)})

    async def add_extension(
        self, technical_id: str, type_: str, config: Any = None, *, operation: str = "reconcile", **metadata: Any
    ) -> Object:
        """Write an Extension as gardenlet does."""
        spec: dict[str, Any] = {"type": type_}
        if config is not None:
            spec["providerConfig"] = config
        annotations = {OPERATION: operation} if operation else {}
        return await self.create(
            EXTENSIONS, type_, technical_id, spec=spec, metadata={"annotations": annotations, **metadata}
        )

    async def ask(self, technical_id: str, type_: str, operation: str) -> None:
        """Annotate an Extension with an operation."""
        await self.client.patch(EXTENSIONS, type_, {"metadata": {"annotations": {OPERATION: operation}}}, technical_id)

    async def configure(self, technical_id: str, type_: str, config: Any) -> None:
        """Change the configuration of an Extension, and ask for an operation as gardenlet does."""
        patch = [
            {"op": "add", "path": "/spec/providerConfig", "value": config},
            {"op": "add", "path": "/metadata/annotations", "value": {OPERATION: "reconcile"}},
        ]
        await self.client.patch(EXTENSIONS, type_, patch, technical_id, PatchKind.JSON)

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        try:
            return await self.client.get(resource, name, namespace)
        except NotFound:
            return None

    async def extension(self, technical_id: str, type_: str) -> Object:
        found = await self.get(EXTENSIONS, type_, technical_id)
        assert found is not None
        return found

    async def operated(self, technical_id: str, type_: str, state: str = "Succeeded", kind: str = "") -> Object:
        """The Extension once its last operation has a state, for the generation and annotations that it has."""

        async def look() -> Object | None:
            found = await self.extension(technical_id, type_)
            status = found.get("status") or {}
            last = status.get("lastOperation") or {}
            if last.get("state") != state or (kind and last.get("type") != kind):
                return None
            if OPERATION in (found["metadata"].get("annotations") or {}):
                return None
            if state == "Succeeded" and status.get("observedGeneration") != found["metadata"]["generation"]:
                return None
            return found

        return await until(look)

    async def gone(self, resource: Resource, name: str, namespace: str = "") -> None:
        async def look() -> bool:
            return await self.get(resource, name, namespace) is None

        await until(look)

    async def there(self, resource: Resource, name: str, namespace: str = "") -> Object:
        return await until(lambda: self.get(resource, name, namespace))


async def add_user(seed: SeedWorld, rules: list[Object], name: str = "extension") -> None:
    """A user of the seed with these rules and no others."""
    group = "rbac.authorization.k8s.io"
    subject = {"kind": "User", "apiGroup": group, "name": name}
    reference = {"apiGroup": group, "kind": "ClusterRole", "name": name}
    await seed.create(Resource(group, "v1", "clusterroles", "ClusterRole", namespaced=False), name, rules=rules)
    bindings = Resource(group, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)
    await seed.create(bindings, name, roleRef=reference, subjects=[subject])


async def install(client: Client, crds: Iterable[Object]) -> None:
    """Install CRDs and return when they are served."""
    for crd in crds:
        await client.apply(CRDS, crd, field_manager="gardenlet")
        spec = crd["spec"]
        version = spec["versions"][0]["name"]
        resource = Resource(spec["group"], version, spec["names"]["plural"], spec["names"]["kind"])
        await until(lambda resource=resource: _is_served(client, resource))


async def _is_served(client: Client, resource: Resource) -> bool:
    try:
        await client.list(resource, limit=1)
    except NotServed:
        return False
    return True


@asynccontextmanager
async def seed_world(server: TestServer, clock: Clock | None = None) -> AsyncIterator[SeedWorld]:
    """A seed of its own on a server."""
    name = f"seed-{next(_numbers)}"
    server.create_cluster(name)
    async with Client.from_kubeconfig(server.kubeconfig_for(name)) as client:
        await define(server, name, *definitions())
        yield SeedWorld(server, client, name, clock)
