"""The fleet that `hortus up --clusters N` begins with: shoots, and a GardenerCluster for each once it is built.

In a Kyma installation another controller writes the GardenerClusters; here the simulation stands in for it, so that a
newcomer sees a whole fleet. It creates and never changes or deletes: what people edit stays as they left it. What they
delete may come back at the next start, a missing shoot below N always, a GardenerCluster while its shoot's last
operation is still its Create.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from hortus.engine import Cache
from hortus.kube import Client
from hortus.kube.errors import AlreadyExists
from hortus.kube.objects import Object, ObjectKey, Resource
from hortus.simulation.garden.kinds import SHOOTS
from hortus.simulation.garden.profiles import zones

GARDENER_CLUSTERS = Resource("infrastructuremanager.kyma-project.io", "v1", "gardenerclusters", "GardenerCluster")
FLEET_LABEL = "simulation.hortus.dev/fleet"
"""On shoots of the fleet; its value is `demo`."""
CLUSTER_NAMESPACE = "kcp-system"
_PARALLEL = 16
_PLACES = (("aws", "eu-central-1", "aws"), ("azure", "westeurope", "az"), ("gcp", "europe-west3", "gcp"))
_MACHINES = {"aws": "m6i.large", "azure": "Standard_D2s_v5", "gcp": "n2-standard-2"}


async def ensure_shoots(garden: Client, project: str, count: int) -> None:
    """Have the shoots `demo-1` to `demo-<count>`."""
    gate = asyncio.Semaphore(_PARALLEL)

    async def ensure(number: int) -> None:
        async with gate:
            with suppress(AlreadyExists):
                await garden.create(SHOOTS, fleet_shoot(project, number))

    await asyncio.gather(*(ensure(number) for number in range(1, count + 1)))


class FleetController:
    """Gives each built shoot of the fleet its GardenerCluster, once. Watches Shoots; owns nothing."""

    def __init__(self, *, client: Client, shoots: Cache) -> None:
        self._client = client
        self._shoots = shoots
        self._given: dict[ObjectKey, str] = {}
        """The uid of the shoot by its key: a cluster that somebody deletes does not come back with the next event."""

    async def reconcile(self, key: ObjectKey) -> None:
        shoot = self._shoots.get(key)
        if shoot is None:
            self._given.pop(key, None)
            return
        uid = shoot["metadata"]["uid"]
        if shoot["metadata"].get("deletionTimestamp") or self._given.get(key) == uid:
            return
        last = (shoot.get("status") or {}).get("lastOperation") or {}
        if last.get("type") != "Create" or last.get("state") != "Succeeded":
            return
        with suppress(AlreadyExists):
            await self._client.create(GARDENER_CLUSTERS, fleet_cluster(shoot))
        self._given[key] = uid


def of_fleet(shoot: Object) -> bool:
    return FLEET_LABEL in (shoot["metadata"].get("labels") or {})


def fleet_shoot(project: str, number: int) -> Object:
    """The shoot `demo-<number>`; providers take turns."""
    provider, region, profile = _PLACES[number % len(_PLACES)]
    return {
        "apiVersion": SHOOTS.api_version,
        "kind": SHOOTS.kind,
        "metadata": {
            "name": f"demo-{number}",
            "namespace": f"garden-{project}",
            "labels": {FLEET_LABEL: "demo"},
        },
        "spec": {
            "purpose": "evaluation",
            "cloudProfileName": profile,
            "secretBindingName": "demo-binding",
            "region": region,
            "kubernetes": {"version": "1.34.1"},
            "networking": {"type": "calico", "nodes": "10.250.0.0/16"},
            "provider": {"type": provider, "workers": [_worker(provider, region)]},
        },
    }


def _worker(provider: str, region: str) -> Object:
    return {
        "name": "cpu-worker-0",
        "machine": {"type": _MACHINES[provider], "image": {"name": "gardenlinux", "version": "1592.1.0"}},
        "minimum": 1,
        "maximum": 3,
        "zones": [zones(provider, region)[0]["name"]],
    }


def fleet_cluster(shoot: Object) -> Object:
    """The GardenerCluster for a shoot, as Kyma's own controllers would write it."""
    name = shoot["metadata"]["name"]
    labels = {
        "kyma-project.io/instance-id": f"instance-{name}",
        "kyma-project.io/runtime-id": name,
        "kyma-project.io/broker-plan-id": "simulated",
        "kyma-project.io/broker-plan-name": shoot["spec"]["provider"]["type"],
        "kyma-project.io/global-account-id": "demo-account",
        "kyma-project.io/subaccount-id": f"subaccount-{name}",
        "kyma-project.io/shoot-name": name,
        "kyma-project.io/region": shoot["spec"]["region"],
        "operator.kyma-project.io/kyma-name": name,
    }
    secret = {"name": f"kubeconfig-{name}", "namespace": CLUSTER_NAMESPACE, "key": "config"}
    return {
        "apiVersion": GARDENER_CLUSTERS.api_version,
        "kind": GARDENER_CLUSTERS.kind,
        "metadata": {"name": name, "namespace": CLUSTER_NAMESPACE, "labels": labels},
        "spec": {"shoot": {"name": name}, "kubeconfig": {"secret": secret}},
    }
