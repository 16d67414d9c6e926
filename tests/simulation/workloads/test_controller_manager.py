"""The simulated statuses are those that a real kube-controller-manager writes for the same objects.

The test plays the kubelet of the real control plane: it binds pods to the nodes that the controller chose, and makes
them ready. Compared are the statuses at rest, after each change.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.oracles.controlplane import find_assets, running_control_plane, why_none
from tests.simulation.workloads.test_running import NODES, daemon_set, node, simulated
from tests.waiting import until

from hortus.kube import Client
from hortus.kube.errors import KubeError
from hortus.kube.objects import Object
from hortus.simulation.workloads import DAEMON_SETS, DEPLOYMENTS, PODS
from hortus.testing.apiserver import running_apiserver

pytestmark = pytest.mark.real_apiserver
CONTROLLERS = ("daemonset-controller", "deployment-controller", "replicaset-controller")
_TAINTED = {"spec": {"taints": [{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}]}}


async def play_kubelet(client: Client) -> None:
    """Bind each pod, make it ready, and remove it when it is being deleted."""
    async with client.watch(PODS) as events:
        async for event in events:
            if event.type in ("ADDED", "MODIFIED"):
                await _run(client, event.object)


async def _run(client: Client, pod: Object) -> None:
    metadata, spec = pod["metadata"], pod["spec"]
    name, namespace = metadata["name"], metadata["namespace"]
    try:
        if metadata.get("deletionTimestamp"):
            await client.delete(PODS, name, namespace, grace=0)
            return
        if not spec.get("nodeName"):
            binding = {"metadata": {"name": name}, "target": {"kind": "Node", "name": _chosen(spec)}}
            await client.create_subresource(PODS, name, "binding", binding, namespace)
        if not any(one["type"] == "Ready" for one in (pod.get("status") or {}).get("conditions") or ()):
            ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
            status = {"phase": "Running", "conditions": [ready]}
            await client.patch(PODS, name, {"status": status}, namespace, subresource="status")
    except KubeError as error:
        assert error.__class__.__name__ in ("NotFound", "Conflict"), error


def _chosen(spec: Object) -> str:
    """The node by the affinity that the DaemonSet controller writes; a pod of a Deployment goes anywhere."""
    affinity = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    return affinity["nodeSelectorTerms"][0]["matchFields"][0]["values"][0] if affinity else "n1"


@asynccontextmanager
async def both(folder: Path) -> AsyncIterator[tuple[Client, Client]]:
    """Our server with the simulation, and a real control plane with a kubelet."""
    assets = find_assets()
    if assets is None:
        pytest.skip(why_none())
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(running_apiserver())
        ours = await stack.enter_async_context(Client.from_kubeconfig(server.kubeconfig))
        real = stack.enter_context(running_control_plane(assets, folder, more_controllers=CONTROLLERS))
        if not real.has_controllers:
            pytest.skip("no kube-controller-manager")
        theirs = await stack.enter_async_context(Client.from_kubeconfig(real.kubeconfig))
        kubelet = asyncio.create_task(play_kubelet(theirs))
        await stack.enter_async_context(simulated(ours))
        try:
            yield ours, theirs
        finally:
            kubelet.cancel()
            await asyncio.gather(kubelet, return_exceptions=True)


def _plain(status: Object) -> Any:
    conditions = {
        one["type"]: (one["status"], one["reason"], one["message"].partition('"')[0])
        for one in status.get("conditions") or ()
    }
    counts = {name: value for name, value in status.items() if name not in ("conditions", "terminatingReplicas")}
    return {name: value for name, value in counts.items() if value} | {"conditions": conditions}


async def test_statuses_at_rest_are_those_of_kube_controller_manager(tmp_path: Path) -> None:
    async with both(tmp_path) as clients:

        async def on_both(act: Callable[[Client], Awaitable[Object]]) -> None:
            for client in clients:
                await act(client)

        async def agree(resource: Any, name: str, **expected: int) -> None:
            """Wait until both report `expected` for the present generation, and the same in all the rest."""

            async def at_rest(client: Client) -> Object | None:
                obj = await client.get(resource, name, "default")
                status = obj.get("status") or {}
                wanted = {"observedGeneration": obj["metadata"]["generation"], **expected}
                return obj if all((status.get(key) or 0) == value for key, value in wanted.items()) else None

            async def alike() -> bool:
                ours, theirs = [await at_rest(client) for client in clients]
                return bool(ours and theirs and _plain(ours["status"]) == _plain(theirs["status"]))

            try:
                await until(alike)
            except TimeoutError:
                found = [(await client.get(resource, name, "default")).get("status") for client in clients]
                raise AssertionError(f"not alike with {expected}: ours {found[0]}, theirs {found[1]}") from None

        def everywhere(desired: int) -> dict[str, int]:
            names = ("desiredNumberScheduled", "updatedNumberScheduled", "numberAvailable")
            return dict.fromkeys(names, desired) | {"numberUnavailable": 0}

        async def add_node(name: str) -> None:
            await on_both(lambda client: client.create(NODES, node(name, pool=name)))
            # Admission taints a node that has no kubelet yet.
            await on_both(lambda client: client.patch(NODES, name, {"spec": {"taints": None}}))

        for name in ("n1", "n2", "n3"):
            await add_node(name)
        await on_both(lambda client: client.create(DAEMON_SETS, daemon_set()))
        await agree(DAEMON_SETS, "agent", **everywhere(3))
        image = {"spec": {"template": {"spec": {"containers": [{"name": "agent", "image": "agent:2"}]}}}}
        await on_both(lambda client: client.patch(DAEMON_SETS, "agent", image, "default"))
        await agree(DAEMON_SETS, "agent", **everywhere(3))
        # kube-controller-manager does not look at a DaemonSet for a NoSchedule taint alone; it does for other nodes.
        await on_both(lambda client: client.patch(NODES, "n2", _TAINTED))
        await on_both(lambda client: client.delete(NODES, "n3"))
        await add_node("n4")
        on_delete = {"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": None}}}
        await on_both(lambda client: client.patch(DAEMON_SETS, "agent", on_delete, "default"))
        await agree(DAEMON_SETS, "agent", **everywhere(2), numberMisscheduled=1)

        labels = {"app": "web"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}
        spec = {"replicas": 3, "selector": {"matchLabels": labels}, "template": template}
        web = {"metadata": {"name": "web", "namespace": "default"}, "spec": spec}
        await on_both(lambda client: client.create(DEPLOYMENTS, web))
        rolled = {"updatedReplicas": 3, "availableReplicas": 3, "replicas": 3, "unavailableReplicas": 0}
        await agree(DEPLOYMENTS, "web", **rolled)
        newer = {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "web:2"}]}}}}
        await on_both(lambda client: client.patch(DEPLOYMENTS, "web", newer, "default"))
        await agree(DEPLOYMENTS, "web", **rolled)
        await on_both(lambda client: client.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 0}}, "default"))
        await agree(DEPLOYMENTS, "web", updatedReplicas=0, availableReplicas=0, replicas=0, unavailableReplicas=0)
