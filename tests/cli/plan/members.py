"""A management cluster without controllers, with members that join by Secrets, and plans over it.

The controllers of a plan make the rest of the fleet in the fork: ClusterProfiles first, then what is planned. Garden
and members are logical clusters of another server.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from hortus.cli.install.rollout import established
from hortus.cli.plan.flags import plan_flags
from hortus.cli.plan.running import PlanRequest, run_plan
from hortus.domains import all_domains
from hortus.domains.agents.fleet.distribution import DISTRIBUTABLE
from hortus.domains.agents.types import AGENT_CONFIGURATIONS
from hortus.kube import Access, Client, Resource, yaml
from hortus.kube.errors import NotFound
from hortus.kube.kubeconfig import load
from hortus.kube.objects import Object
from hortus.schema import crd
from hortus.simulation.fork import Fork
from hortus.simulation.plan.composing import PlanRun, plan_of
from hortus.simulation.plan.model import FleetPlan
from hortus.terminal import Connections
from hortus.testing.apiserver import TestServer
from hortus.testing.waiting import wait_for

FLEET = "fleet"
GARDEN = "garden"
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
SECRETS = Resource("", "v1", "secrets", "Secret")
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
DAEMON_SETS = Resource("apps", "v1", "daemonsets", "DaemonSet")
CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
AGENT = "instana-agent"
Change = Callable[[Fork], Awaitable[None]]


def agents(**pod: Any) -> Object:
    """An AgentConfiguration for all clusters, whose pods are as `pod` says."""
    agent = {"endpointHost": "ingress.example.org", "endpointPort": "443", "keysSecret": "agent-keys", "pod": pod}
    return {
        "apiVersion": AGENT_CONFIGURATIONS.api_version,
        "kind": AGENT_CONFIGURATIONS.kind,
        "metadata": {"name": "everywhere", "namespace": FLEET},
        "spec": {"clusterSelector": {}, "template": {"agent": agent}},
    }


def applying(*objects: Object) -> Change:
    """Applies AgentConfigurations to the fork."""

    async def apply(fork: Fork) -> None:
        async with fork.client() as client:
            for obj in objects:
                await client.apply(AGENT_CONFIGURATIONS, obj, field_manager="kubectl", force=True)

    return apply


class LiveFleet(NamedTuple):
    """The live side."""

    management: Access
    garden: Access
    folder: Path

    async def plan(self, change: Change, *, access: Access | None = None, **options: Any) -> FleetPlan:
        """Plans a change in a thread: live servers go on meanwhile. `options` are those of PlanRequest."""
        values = plan_flags(Connections(local_state=self.folder), self.folder / "flags.yaml", GARDEN)
        request = PlanRequest(access or self.management, self.garden, values, change, **options)
        return await asyncio.to_thread(run_plan, request, _finished)

    async def apply(self, obj: Object) -> None:
        """Applies an AgentConfiguration to the live side."""
        async with Client(self.management) as client:
            await client.apply(AGENT_CONFIGURATIONS, obj, field_manager="kubectl", force=True)

    async def delete(self, resource: Resource, name: str) -> None:
        """Deletes an object of the live side, if it is there."""
        async with Client(self.management) as client:
            with suppress(NotFound):
                await client.delete(resource, name, FLEET)


def _finished(run: PlanRun) -> FleetPlan:
    return plan_of(run, ["a change"], [view for domain in all_domains() for view in domain.fleet_views()])


@asynccontextmanager
async def live_fleet(
    management: TestServer,
    members: TestServer,
    folder: Path,
    kubeconfigs: Mapping[str, Object],
    *,
    purposes: Mapping[str, str] = {},
    without: Sequence[Resource] = (),
) -> AsyncIterator[LiveFleet]:
    """A fleet with a member of each kubeconfig, the CRDs of its domains but for `without`, and the agent's key.

    `purposes` are the labels of members by that name.
    """
    (folder / "flags.yaml").write_text(
        "agents: true\ninventory: true\nrollouts: true\nfleet-namespace: fleet\nwatch-namespace: fleet\n"
        "health-probe-bind-address: '0'\n"
    )
    async with Client.from_kubeconfig(management.kubeconfig) as client:
        kinds = [kind for domain in all_domains() for kind in domain.kinds().items()]
        there = {one["metadata"]["name"] for one in (await client.list(CRDS)).items if established(one)}
        wanted = [crd(kind) for name, kind in kinds if name not in without]
        await asyncio.gather(*(_define(client, one) for one in wanted if one["metadata"]["name"] not in there))
        await client.apply(NAMESPACES, {"metadata": {"name": FLEET}}, field_manager="test")
        await client.apply(
            SECRETS, _secret("agent-keys", {"key": b"the-key"}, {DISTRIBUTABLE: "true"}), field_manager="test"
        )
        for name, kubeconfig in kubeconfigs.items():
            labels = {"fleet.hortus.dev/kubeconfig": "true", "fleet.hortus.dev/purpose": purposes.get(name, "test")}
            secret = _secret(name, {"config": yaml.dump(kubeconfig).encode()}, labels)
            await client.apply(SECRETS, secret, field_manager="test")
        garden = load(members.kubeconfig_for(GARDEN)).access()
        yield LiveFleet(load(management.kubeconfig).access(), garden, folder)


async def _define(client: Client, definition: Object) -> None:
    await client.apply(CRDS, definition, field_manager="test")
    await wait_for(client, CRDS, definition["metadata"]["name"], until=established)


def _secret(name: str, data: Mapping[str, bytes], labels: Mapping[str, str]) -> Object:
    encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
    return {"metadata": {"name": name, "namespace": FLEET, "labels": {**labels}}, "data": encoded}


async def with_node(server: TestServer, cluster: str) -> None:
    """Makes a member have a node that works."""
    async with Client.from_kubeconfig(server.kubeconfig_for(cluster)) as client:
        await client.apply(NODES, {"metadata": {"name": f"{cluster}-node"}}, field_manager="test")
        ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
        await client.patch(NODES, f"{cluster}-node", ready, subresource="status")
