"""A management cluster, a garden, a registry with charts, and seed clusters in which simulated gardenlets run.

Everything goes through real sockets; the clusters are logical clusters of one server.
"""

from __future__ import annotations

import base64
import itertools
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from tests.domains.definitions import define
from tests.waiting import until

from hortus.domains.garden.gardenlets.acceptance import POLICIES
from hortus.domains.garden.gardenlets.bootstrap import SECRETS
from hortus.domains.garden.gardenlets.changes import CHANGE_KIND
from hortus.domains.garden.gardenlets.checks import CONFIG_MAPS, DEPLOYMENTS
from hortus.domains.garden.gardenlets.composition import add_controllers
from hortus.domains.garden.gardenlets.local import BAD, VERSIONS, local_artifacts
from hortus.domains.garden.gardenlets.settings import GardenletSettings
from hortus.domains.garden.kinds.seed import SHOOTS
from hortus.domains.garden.types import GARDENLETS, SEEDS, Gardenlet
from hortus.domains.inventory.types import ClusterProfile
from hortus.domains.rollouts.composition import add_controllers as add_rollouts
from hortus.engine import Manager, Watch
from hortus.engine.deputies import Deputies
from hortus.engine.leftovers import LeftoverRecorder
from hortus.engine.leftovers.types import Leftover
from hortus.engine.rollouts import RolloutGate
from hortus.engine.rollouts.types import ChangeKind, PlacementDecision, Rollout, RolloutPolicy
from hortus.kube import Client, RequestObserver, Resource
from hortus.kube.clock import Clock
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, ObjectKey
from hortus.simulation.garden.seed.definitions import definition
from hortus.simulation.garden.seed.gardenlets import GardenletTimes, SeedGardenlet
from hortus.simulation.registry import RegistryFolder, RegistryServer
from hortus.testing.apiserver import TestServer

NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
FLEET = "fleet"
OLD, NEW = VERSIONS
BROKEN = BAD
TIMES = GardenletTimes(lease_period=1.0, lease_grace=0.2, retry=0.1)
_POLICY_KINDS = {
    kind: Resource("admissionregistration.k8s.io", "v1", plural, kind, namespaced=False)
    for plural, kind in (
        ("validatingadmissionpolicies", "ValidatingAdmissionPolicy"),
        ("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding"),
    )
}
_ROLLOUT_KINDS = (ClusterProfile, ChangeKind, RolloutPolicy, Rollout, PlacementDecision)
_numbers = itertools.count(1)


def configuration(**seed: Any) -> Object:
    """A GardenletConfiguration with a Seed."""
    spec = {
        "provider": {"type": "local", "region": "local"},
        "networks": {"pods": "10.1.0.0/16", "services": "10.2.0.0/16"},
        "settings": {"verticalPodAutoscaler": {"enabled": False}},
        **seed,
    }
    return {
        "apiVersion": "gardenlet.config.gardener.cloud/v1alpha1",
        "kind": "GardenletConfiguration",
        "controllers": {"shoot": {"concurrentSyncs": 20}},
        "seedConfig": {"metadata": {"labels": {"ring": "canary"}}, "spec": spec},
    }


def seeds_definition() -> Object:
    """The CRD of Seeds, whose status is no subresource in the simulated garden."""
    made = definition(SEEDS)
    made["spec"]["versions"][0].pop("subresources")
    return made


class GardenWorld:
    """The clusters of one test."""

    def __init__(self, server: TestServer, number: int, management: Client, garden: Client, registry: str) -> None:
        self.server = server
        self.number = number
        self.management = management
        self.garden = garden
        self.registry = registry
        self.trusted = "*"
        self.seeds: dict[str, Client] = {}
        self.times: dict[str, GardenletTimes] = {}

    def chart(self, version: str = OLD) -> str:
        return f"{self.registry}/charts/gardenlet:{version}"

    def cluster_of(self, seed: str) -> str:
        return f"seed-{self.number}-{seed}"

    def settings(self, **changes: Any) -> GardenletSettings:
        values: dict[str, Any] = {
            "is_served": True,
            "upgraded": ("*",),
            "plain_registries": frozenset((self.registry,)),
            "local_registries": frozenset((self.registry,)),
            "settle": 0.0,
            "workers": 8,
        }
        return GardenletSettings(**(values | changes))

    @asynccontextmanager
    async def operating(
        self,
        *,
        rollouts: bool = False,
        clock: Clock | None = None,
        observer: RequestObserver | None = None,
        **changes: Any,
    ) -> AsyncIterator[Manager]:
        """The operator and self-upgrade, as one process that is killed at the end; with `rollouts` those too."""
        async with AsyncExitStack() as stack:
            client, garden = [
                await stack.enter_async_context(Client(one.access, observer=observer))
                for one in (self.management, self.garden)
            ]
            manager = Manager(client, grace=0.0, clock=clock)
            gate = RolloutGate(None)
            if rollouts:
                gate = RolloutGate(lambda kind: manager.cache(kind, namespace=FLEET))
                add_rollouts(
                    manager,
                    client,
                    fleet_namespace=FLEET,
                    watched="",
                    deputies=Deputies(client, "*", clock=manager.clock),
                    change_kinds=[CHANGE_KIND],
                )

            @asynccontextmanager
            async def open_seed(name: str) -> AsyncIterator[Client | None]:
                if name not in self.seeds:
                    yield None
                    return
                async with Client(self.seeds[name].access, observer=observer) as seed:
                    yield seed

            settings = self.settings(**changes)
            add_controllers(
                manager,
                client=client,
                garden=garden,
                settings=settings,
                gate=gate,
                deputies=Deputies(client, self.trusted, clock=manager.clock),
                leftovers=LeftoverRecorder(client, FLEET),
                open_seed=open_seed,
            )
            async with manager.running():
                yield manager

    @asynccontextmanager
    async def gardenlets(self, *names: str) -> AsyncIterator[None]:
        """The simulated gardenlets of seeds; of all without names."""
        manager = Manager(self.garden)
        for name in names or self.seeds:
            client = self.seeds[name]
            deployments = manager.caches_of(client).get(DEPLOYMENTS, namespace="garden")
            made = SeedGardenlet(
                seed=client, garden=self.garden, deployments=deployments, clock=manager.clock, times=TIMES
            )
            manager.controller(f"gardenlet-{name}", made, sources=[Watch(deployments)])
        async with manager.running():
            yield

    async def add_seed(self, name: str, stack: AsyncExitStack) -> Client:
        """A cluster for a seed."""
        cluster = self.cluster_of(name)
        self.server.create_cluster(cluster)
        client = await stack.enter_async_context(Client.from_kubeconfig(self.server.kubeconfig_for(cluster)))
        self.seeds[name] = client
        return client

    async def add_kubeconfig(self, seed: str, *, secret: str = "", data: Mapping[str, bytes] | None = None) -> str:
        """The Secret with the kubeconfig of a seed; returns its name."""
        name = secret or f"{seed}-kubeconfig"
        document = self.server.kubeconfig_for(self.cluster_of(seed)).read_bytes() if data is None else b""
        values = data if data is not None else {"kubeconfig": document}
        await self.management.apply(
            SECRETS,
            {
                "metadata": {"name": name, "namespace": "garden"},
                "data": {key: base64.b64encode(value).decode() for key, value in values.items()},
            },
            field_manager="test",
        )
        return name

    async def add_gardenlet(
        self,
        name: str,
        *,
        kubeconfig: str | None = None,
        version: str = OLD,
        config: Object | None = None,
        deployment: Object | None = None,
        **metadata: Any,
    ) -> Object:
        """A Gardenlet; its kubeconfig Secret is made unless another is named."""
        secret = await self.add_kubeconfig(name) if kubeconfig is None else kubeconfig
        given = {"helm": {"ociRepository": {"ref": self.chart(version)}}, **(deployment or {})}
        spec: Object = {"deployment": given, "config": config if config is not None else configuration()}
        if secret:
            spec["kubeconfigSecretRef"] = {"name": secret}
        made = {"metadata": {"name": name, "namespace": "garden", **metadata}, "spec": spec}
        return await self.management.create(
            GARDENLETS, {"apiVersion": GARDENLETS.api_version, "kind": GARDENLETS.kind, **made}
        )

    async def annotate(self, name: str, operation: str) -> None:
        patch = {"metadata": {"annotations": {"gardener.cloud/operation": operation}}}
        await self.management.patch(GARDENLETS, name, patch, "garden")

    async def gardenlet(self, name: str) -> Object:
        return await self.management.get(GARDENLETS, name, "garden")

    async def condition(self, name: str, kind: str, status: str, *, reason: str = "", text: str = "") -> Object:
        """The Gardenlet once a condition reports this."""

        async def look() -> Object | None:
            found = await self.gardenlet(name)
            for one in (found.get("status") or {}).get("conditions") or ():
                if one["type"] == kind and one["status"] == status and text in one["message"]:
                    return found if one["reason"] == reason or not reason else None
            return None

        return await until(look)

    async def healthy(self, name: str) -> Object:
        """The Gardenlet once its present generation is applied and the Seed is well."""

        async def look() -> Object | None:
            found = await self.gardenlet(name)
            title = f"Generation {found['metadata']['generation']} "
            for one in (found.get("status") or {}).get("conditions") or ():
                if (one["type"], one["status"]) == ("SeedHealthy", "True") and one["message"].startswith(title):
                    return found
            return None

        return await until(look)

    async def get(self, client: Client, resource: Resource, name: str, namespace: str = "") -> Object | None:
        try:
            return await client.get(resource, name, namespace)
        except NotFound:
            return None

    async def image(self, seed: str) -> str:
        """The version that the Deployment of a seed has."""
        found = await self.seeds[seed].get(DEPLOYMENTS, "gardenlet", "garden")
        image: str = found["spec"]["template"]["spec"]["containers"][0]["image"]
        return image.rpartition(":")[2]


@asynccontextmanager
async def garden_world(server: TestServer, folder: Path, *seeds: str) -> AsyncIterator[GardenWorld]:
    """A world of its own on a server, with these seeds."""
    number = next(_numbers)
    async with AsyncExitStack() as stack:
        clients = []
        for name in (f"management-{number}", f"garden-{number}"):
            server.create_cluster(name)
            clients.append(await stack.enter_async_context(Client.from_kubeconfig(server.kubeconfig_for(name))))
        management, garden = clients
        await define(server, f"garden-{number}", seeds_definition(), definition(SHOOTS))
        await define(server, f"management-{number}", Gardenlet, Leftover, *_ROLLOUT_KINDS)
        for policy in POLICIES:
            await management.apply(_POLICY_KINDS[policy["kind"]], policy, field_manager="test")
        for namespace in ("garden", FLEET):
            made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            await management.create(NAMESPACES, made)
        content = RegistryFolder(folder / "registry")
        for one in local_artifacts(""):
            content.add(one.repository, one.tag, one.manifest, one.blobs, media_type=one.media_type)
        registry = await stack.enter_async_context(RegistryServer(content))
        world = GardenWorld(server, number, management, garden, registry.address)
        for name in seeds:
            await world.add_seed(name, stack)
        yield world


__all__ = ["CONFIG_MAPS", "DEPLOYMENTS", "SEEDS", "GardenWorld", "ObjectKey", "configuration", "garden_world"]
