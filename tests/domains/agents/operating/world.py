"""A cluster with the kinds of agents and their controllers; DaemonSets and Deployments become ready on demand."""

from __future__ import annotations

import base64
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from tests.domains.definitions import define
from tests.waiting import until

from hortus.domains.agents.operating.composition import add_agents
from hortus.domains.agents.operating.objects import BESIDES_THE_AGENT, FIELD_MANAGER, WITHOUT_OWNER
from hortus.domains.agents.operating.settings import OperatingSettings
from hortus.domains.agents.types import INSTANA_AGENTS, INSTANA_AGENTS_REMOTE, InstanaAgent, InstanaAgentRemote
from hortus.engine import Manager
from hortus.engine.deputies import ACCOUNT, Deputies
from hortus.kube import Client, PatchKind
from hortus.kube.clock import Clock, SystemClock
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, Resource
from hortus.testing.apiserver import TestServer
from hortus.testing.waiting import wait_for, wait_gone

HOME = "instana-agent"
CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
EVENTS = Resource("", "v1", "events", "Event")
VERSION = "v2.2.16"
_numbers = itertools.count(1)


class Requests:
    """The requests of the controllers, but those of events and watches."""

    def __init__(self) -> None:
        self.methods: list[str] = []
        self.on_answer: Callable[[str, str], None] = lambda method, host: None

    def answered(self, method: str, host: str, code: str, seconds: float) -> None:
        self.methods.append(method)
        self.on_answer(method, host)

    @property
    def writes(self) -> list[str]:
        return [method for method in self.methods if method != "GET"]


class AgentsWorld:
    """One logical cluster."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.requests = Requests()
        self.clock: Clock = SystemClock()
        self.settings = OperatingSettings(operator_version=VERSION)
        self.watched = ""
        self.trusted = "*"
        self.manager: Manager | None = None

    @asynccontextmanager
    async def controllers(self, client: Client | None = None) -> AsyncIterator[Manager]:
        """One process of controllers, killed at the end."""
        access = (client or self.client).access
        async with Client(access, observer=self.requests) as used:
            manager = Manager(used, clock=self.clock, grace=0.0)
            deputies = Deputies(used, self.trusted, clock=self.clock)
            add_agents(manager, client=used, deputies=deputies, namespace=self.watched, settings=self.settings)
            async with manager.running():
                self.manager = manager
                yield manager

    # Objects.

    async def namespace(self, name: str, **labels: str) -> None:
        await self.client.apply(NAMESPACES, {"metadata": {"name": name, "labels": labels}}, field_manager="test")

    async def create(self, resource: Resource, name: str, namespace: str = HOME, **parts: Any) -> Object:
        metadata = {"name": name, "namespace": namespace, **parts.pop("metadata", {})}
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **parts}
        return await self.client.create(resource, body)

    async def agent(self, name: str = HOME, namespace: str = HOME, **spec: Any) -> Object:
        wanted = {"cluster": {"name": "demo"}, "zone": {"name": "one"}, "agent": base(), **spec}
        return await self.create(INSTANA_AGENTS, name, namespace, spec=wanted)

    async def remote(self, name: str = "outside", **spec: Any) -> Object:
        return await self.create(INSTANA_AGENTS_REMOTE, name, spec={"zone": {"name": "one"}, "agent": base(), **spec})

    async def change(self, resource: Resource, name: str, patch: Object, namespace: str = HOME) -> Object:
        return await self.client.patch(resource, name, patch, namespace)

    async def secret(self, name: str, namespace: str = HOME, **data: bytes) -> Object:
        encoded = {key.replace("_", "-"): base64.b64encode(value).decode() for key, value in data.items()}
        return await self.create(Resource("", "v1", "secrets", "Secret"), name, namespace, data=encoded)

    async def get(self, resource: Resource, name: str, namespace: str = HOME) -> Object | None:
        try:
            return await self.client.get(resource, name, namespace if resource.namespaced else "")
        except NotFound:
            return None

    async def ready(self, resource: Resource, name: str, namespace: str = HOME) -> None:
        """Report a workload as available, as kube-controller-manager does."""
        live = await wait_for(self.client, resource, name, namespace)
        generation = live["metadata"]["generation"]
        status: Object = {"observedGeneration": generation}
        if resource.kind == "DaemonSet":
            status |= {
                "currentNumberScheduled": 2,
                "numberReady": 2,
                "numberMisscheduled": 0,
                "desiredNumberScheduled": 2,
                "numberAvailable": 2,
                "updatedNumberScheduled": 2,
            }
        else:
            now = "2024-01-01T00:00:00Z"
            status["conditions"] = [
                {"type": kind, "status": "True", "reason": why, "lastTransitionTime": now, "lastUpdateTime": now}
                for kind, why in (("Available", "MinimumReplicasAvailable"), ("Progressing", "NewReplicaSetAvailable"))
            ]
        await self.client.patch(resource, name, {"status": status}, namespace, PatchKind.MERGE, "status")

    async def take_grants_back(self) -> None:
        """Take all permissions from the deputies of namespaces."""
        group = "rbac.authorization.k8s.io"
        for kind in ("RoleBinding", "ClusterRoleBinding"):
            resource = Resource(group, "v1", f"{kind.lower()}s", kind, namespaced=kind == "RoleBinding")
            for obj in (await self.client.list(resource)).items:
                if any(one.get("name") == ACCOUNT for one in obj.get("subjects") or ()):
                    await self.client.delete(resource, obj["metadata"]["name"], obj["metadata"].get("namespace", ""))

    # States to wait for.

    async def until(
        self,
        holds: Callable[[Object], Any],
        name: str = HOME,
        namespace: str = HOME,
        resource: Resource = INSTANA_AGENTS,
    ) -> Object:
        return await wait_for(self.client, resource, name, namespace, until=lambda obj: bool(holds(obj)))

    async def reconciled(self, name: str = HOME, namespace: str = HOME, resource: Resource = INSTANA_AGENTS) -> Object:
        """The agent once its present generation is reconciled."""
        return await self.until(is_reconciled, name, namespace, resource)

    async def gone(self, resource: Resource, name: str, namespace: str = HOME) -> None:
        await wait_gone(self.client, resource, name, namespace if resource.namespaced else "")

    async def at_rest(self) -> None:
        """Return when no controller has anything to do."""
        manager = self.manager
        assert manager is not None
        await until(lambda: not any(one.queue.waiting or one.queue.running for one in manager.controllers))

    async def owned(self, labels: str = f"app.kubernetes.io/managed-by={FIELD_MANAGER}") -> dict[str, Object]:
        """All objects of agents, by kind, namespace and name."""
        found = {}
        for resource in (*BESIDES_THE_AGENT, *WITHOUT_OWNER):
            for obj in (await self.client.list(resource, "", labels=labels)).items:
                metadata = obj["metadata"]
                found[f"{resource.kind} {metadata.get('namespace', '')}/{metadata['name']}"] = obj
        return found


def base(**fields: Any) -> Object:
    return {"endpointHost": "backend.example.org", "endpointPort": "443", "key": "some-key", **fields}


def condition(obj: Object, kind: str) -> tuple[str, str]:
    """Status and reason of a condition; empty where it has none."""
    for one in (obj.get("status") or {}).get("conditions") or ():
        if one["type"] == kind:
            return one["status"], one["reason"]
    return "", ""


def is_reconciled(obj: Object) -> bool:
    generation = (obj.get("status") or {}).get("observedGeneration")
    return generation == obj["metadata"]["generation"] and condition(obj, "ReconcileSucceeded")[0] == "True"


@asynccontextmanager
async def agents_world(server: TestServer) -> AsyncIterator[AgentsWorld]:
    """A world of its own: a logical cluster of the server."""
    name = f"agents-{next(_numbers)}"
    server.create_cluster(name)
    async with Client.from_kubeconfig(server.kubeconfig_for(name)) as client:
        await define(server, name, InstanaAgent, InstanaAgentRemote)
        for namespace in (HOME, "kube-system"):
            await client.apply(NAMESPACES, {"metadata": {"name": namespace}}, field_manager="test")
        yield AgentsWorld(client)
