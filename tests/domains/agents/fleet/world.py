"""A management cluster with ClusterProfiles, and the clusters behind them; everything goes through real sockets.

The clusters have no controllers: tests write the status of DaemonSets as the kubelets of so many nodes would have it.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from tests.domains.definitions import define
from tests.waiting import until

from hortus.domains.agents.fleet.composition import add_fleet
from hortus.domains.agents.fleet.distribution import DISTRIBUTABLE
from hortus.domains.agents.settings import FleetSettings
from hortus.domains.agents.types import AGENT_CONFIGURATIONS, AGENT_PLACEMENTS, AgentConfiguration, AgentPlacement
from hortus.domains.inventory.types import CLUSTER_PROFILES, PLUGIN_EXTENSION, PROVIDER, ClusterProfile, ProfileLabel
from hortus.engine import Manager, find_condition
from hortus.engine.deputies import Deputies
from hortus.engine.kubeconfigs import SECRETS, sealed
from hortus.engine.leftovers import LeftoverRecorder
from hortus.engine.leftovers.types import Leftover
from hortus.engine.remote import RemotePool, RemoteSettings, SecretCredentials
from hortus.engine.rollouts import RolloutGate
from hortus.kube import Client, Resource, yaml
from hortus.kube.clock import Clock, SystemClock
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object
from hortus.testing.apiserver import TestServer
from hortus.testing.waiting import wait_for, wait_gone

FLEET, HOME, AGENT = "fleet", "kcp-system", "instana-agent"
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
DAEMON_SETS = Resource("apps", "v1", "daemonsets", "DaemonSet")
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
PATIENCE = 60.0
_numbers = itertools.count(1)


class Requests:
    """The methods of the controllers' requests, those to the management cluster and those to the members."""

    def __init__(self) -> None:
        self.home: list[str] = []
        self.remote: list[str] = []
        self.on_answer: Callable[..., None] = lambda method: None

    def reset(self) -> None:
        """Forget the requests of a former process."""
        self.home.clear()
        self.remote.clear()

    @property
    def writes(self) -> list[str]:
        return [method for method in (*self.home, *self.remote) if method != "GET"]

    def observer(self, *, remote: bool) -> _Observer:
        return _Observer(self, remote=remote)


class _Observer:
    def __init__(self, requests: Requests, *, remote: bool) -> None:
        self._requests = requests
        self._remote = remote

    def answered(self, method: str, host: str, code: str, seconds: float) -> None:
        (self._requests.remote if self._remote else self._requests.home).append(method)
        self._requests.on_answer(method)


class AgentWorld:
    """One logical cluster as the management cluster, others as members of the fleet."""

    def __init__(self, server: TestServer, client: Client, name: str) -> None:
        self.server = server
        self.client = client
        self.name = name
        self.requests = Requests()
        self.clock: Clock = SystemClock()
        self.gate: Callable[[Manager], RolloutGate] | None = None
        self.detach_after = 3600.0
        self.trusted = "*"
        self.operator_version = "v2.2.15"

    @asynccontextmanager
    async def controllers(self) -> AsyncIterator[Manager]:
        """One process of controllers, killed at the end."""
        self.requests.reset()
        requests = self.requests
        async with Client(self.client.access, observer=requests.observer(remote=False)) as client:
            manager = Manager(client, clock=self.clock, grace=0.0)
            pool = RemotePool(
                SecretCredentials(client, manager.cache(SECRETS, namespace=HOME, transform=sealed)),
                settings=RemoteSettings(deny=(), connect_timeout=20.0, timeout=20.0),
                clock=self.clock,
                observer=requests.observer(remote=True),
            )
            manager.on_stop(pool.close)
            add_fleet(
                manager,
                client=client,
                pool=pool,
                deputies=Deputies(client, self.trusted, clock=self.clock),
                gate=self.gate(manager) if self.gate is not None else RolloutGate(None),
                leftovers=LeftoverRecorder(client, FLEET),
                settings=FleetSettings(
                    namespace=FLEET,
                    resync=600.0,
                    detach_after=self.detach_after,
                    report_period=0.05,
                    fleet_period=0.05,
                    operator_version=self.operator_version,
                ),
            )
            async with manager.running():
                yield manager

    # The fleet.

    async def member(self, name: str, *, labels: dict[str, str] | None = None, provider: str = "aws") -> None:
        """A cluster with its kubeconfig and its ClusterProfile, as the inventory leaves them."""
        await asyncio.to_thread(self.server.create_cluster, f"{self.name}-{name}")
        document = self.server.kubeconfig_dict(f"{self.name}-{name}")
        data = {"config": base64.b64encode(yaml.dump(document).encode()).decode()}
        await self.client.create(SECRETS, {"metadata": {"name": f"kubeconfig-{name}", "namespace": HOME}, "data": data})
        await self.profile(name, labels=labels, provider=provider)

    async def profile(self, name: str, *, labels: dict[str, str] | None = None, provider: str = "aws") -> None:
        place = {"namespace": HOME, "name": f"kubeconfig-{name}", "key": "config"}
        known = {ProfileLabel.PROVIDER: provider, ProfileLabel.REGION: "eu-central-1", **(labels or {})}
        await self.client.create(
            CLUSTER_PROFILES,
            {
                "apiVersion": CLUSTER_PROFILES.api_version,
                "kind": CLUSTER_PROFILES.kind,
                "metadata": {"name": name, "namespace": FLEET, "labels": known},
                "spec": {"clusterManager": {"name": "hortus"}, "displayName": name},
            },
        )
        extension = {"name": PLUGIN_EXTENSION, "extension": {"secret": place}}
        access = {"name": PROVIDER, "cluster": {"server": "https://example.org", "extensions": [extension]}}
        await self.client.patch(
            CLUSTER_PROFILES, name, {"status": {"accessProviders": [access]}}, FLEET, subresource="status"
        )

    async def label(self, name: str, **labels: str | None) -> None:
        await self.client.patch(CLUSTER_PROFILES, name, {"metadata": {"labels": labels}}, FLEET)

    async def keys(self, name: str = "agent-keys", *, key: str = "replace-key") -> None:
        data = {"key": base64.b64encode(key.encode()).decode()}
        metadata = {"name": name, "namespace": FLEET, "labels": {DISTRIBUTABLE: "true"}}
        body = {"metadata": metadata, "type": "Opaque", "data": data}
        await self.client.apply(SECRETS, body, field_manager="test")

    async def configure(self, name: str = "fleet", *, agent: Any = None, template: Any = None, **spec: Any) -> Object:
        """An AgentConfiguration whose keys are in the Secret agent-keys."""
        base = {"endpointHost": "ingress.example.org", "endpointPort": "443", "keysSecret": "agent-keys"}
        return await self.client.create(
            AGENT_CONFIGURATIONS,
            {
                "apiVersion": AGENT_CONFIGURATIONS.api_version,
                "kind": AGENT_CONFIGURATIONS.kind,
                "metadata": {"name": name, "namespace": FLEET},
                "spec": {
                    "clusterSelector": {},
                    "template": {"agent": base | (agent or {}), **(template or {})},
                    **spec,
                },
            },
        )

    async def change(self, name: str = "fleet", **spec: Any) -> None:
        await self.client.patch(AGENT_CONFIGURATIONS, name, {"spec": spec}, FLEET)

    # Members.

    @asynccontextmanager
    async def inside(self, name: str) -> AsyncIterator[Client]:
        path = await asyncio.to_thread(self.server.kubeconfig_for, f"{self.name}-{name}")
        async with Client.from_kubeconfig(path) as client:
            yield client

    async def run_pods(self, name: str, *, nodes: int = 3, available: int | None = None) -> None:
        """The workloads of a member as controllers with so many nodes report them."""
        async with self.inside(name) as client:
            found = await wait_for(client, DAEMON_SETS, AGENT, AGENT, patience=PATIENCE)
            ready = nodes if available is None else available
            status = {
                "observedGeneration": found["metadata"]["generation"],
                "currentNumberScheduled": nodes,
                "desiredNumberScheduled": nodes,
                "numberAvailable": ready,
                "numberMisscheduled": 0,
                "numberReady": ready,
                "updatedNumberScheduled": nodes,
            }
            await client.patch(DAEMON_SETS, AGENT, {"status": status}, AGENT, subresource="status")
            sensors = await until(lambda: self._sensors(client))
            for one in sensors:
                metadata, replicas = one["metadata"], one["spec"]["replicas"]
                conditions = [
                    {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
                    {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
                ]
                done = {
                    "observedGeneration": metadata["generation"],
                    "replicas": replicas,
                    "updatedReplicas": replicas,
                    "readyReplicas": replicas,
                    "availableReplicas": replicas,
                    "conditions": conditions,
                }
                await client.patch(DEPLOYMENTS, metadata["name"], {"status": done}, AGENT, subresource="status")

    async def _sensors(self, client: Client) -> list[Object]:
        return (await client.list(DEPLOYMENTS, AGENT)).items

    async def inside_object(self, name: str, resource: Resource, obj: str, namespace: str = AGENT) -> Object | None:
        async with self.inside(name) as client:
            try:
                return await client.get(resource, obj, namespace if resource.namespaced else "")
            except NotFound:
                return None

    async def gone_inside(self, name: str, resource: Resource, obj: str, namespace: str = AGENT) -> None:
        async with self.inside(name) as client:
            await wait_gone(client, resource, obj, namespace if resource.namespaced else "")

    # Objects of the fleet.

    async def placement(self, cluster: str, says: Callable[[Object], Any] = bool) -> Object:
        return await wait_for(
            self.client,
            AGENT_PLACEMENTS,
            f"{AGENT}.{cluster}",
            FLEET,
            until=lambda obj: bool(says(obj)),
            patience=PATIENCE,
        )

    async def configuration(self, says: Callable[[Object], Any] = bool, name: str = "fleet") -> Object:
        return await wait_for(
            self.client, AGENT_CONFIGURATIONS, name, FLEET, until=lambda obj: bool(says(obj)), patience=PATIENCE
        )

    async def at_rest(self, manager: Manager) -> None:
        """Returns once both controllers have done all that is due now."""

        async with asyncio.timeout(PATIENCE):
            for controller in manager.controllers:
                await controller.queue.join()

    async def placed(self) -> set[str]:
        """The clusters that have an AgentPlacement."""
        return {one["spec"]["cluster"] for one in (await self.client.list(AGENT_PLACEMENTS, FLEET)).items}


def clusters(obj: Object) -> dict[str, int]:
    """The numbers of clusters in a status; empty while there is none."""
    found: dict[str, int] = (obj.get("status") or {}).get("clusters") or {}
    return found


def version(obj: Object) -> str:
    """The version that a cluster has; empty while there is no status."""
    return str((obj.get("status") or {}).get("version", ""))


def ready(obj: Object) -> tuple[str, str]:
    """Status and reason of the condition Ready, once it is of the present generation."""
    found = find_condition(obj, "Ready") or {}
    seen = (obj.get("status") or {}).get("observedGeneration") == obj["metadata"]["generation"]
    return (found.get("status", ""), found.get("reason", "")) if seen else ("", "")


def message(obj: Object) -> str:
    return str((find_condition(obj, "Ready") or {}).get("message", ""))


def is_running(obj: Object) -> bool:
    return ready(obj) == ("True", "AgentsRunning")


@asynccontextmanager
async def agent_world(server: TestServer) -> AsyncIterator[AgentWorld]:
    """A fresh logical cluster with the CRDs and namespaces, and no member."""
    name = f"agents-{next(_numbers)}"
    await asyncio.to_thread(server.create_cluster, name)
    async with Client.from_kubeconfig(server.kubeconfig_for(name)) as client:
        await define(server, name, AgentConfiguration, AgentPlacement, ClusterProfile, Leftover)
        for namespace in (FLEET, HOME):
            await client.create(NAMESPACES, {"metadata": {"name": namespace}})
        yield AgentWorld(server, client, name)
