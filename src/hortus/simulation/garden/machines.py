"""Brings the nodes of one workload cluster a step nearer to what its Shoot's pools say."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import orjson

from hortus.kube import Client
from hortus.kube.errors import AlreadyExists, NotFound
from hortus.kube.objects import Object
from hortus.simulation.garden.nodes import POOL, DesiredNode, Look, NodePool, next_step, pools
from hortus.simulation.garden.profiles import MachineType

_NODES = "/api/v1/nodes"
_MERGE = "application/merge-patch+json"
_UNKNOWN = MachineType()
"""The machine of a type that no CloudProfile describes."""


class _Cluster(NamedTuple):
    path: str
    shoot: Object
    pools: Sequence[NodePool]
    looks: Mapping[str, Look]
    """By pool."""


class Machines:
    """Machine types by (CloudProfile, name). `profile` finds a CloudProfile by its name."""

    def __init__(self, profile: Callable[[str], Object | None] = lambda _: None) -> None:
        self._profile = profile

    def of(self, shoot: Object, type_: str) -> MachineType:
        spec = shoot["spec"]
        name = (spec.get("cloudProfile") or {}).get("name") or spec.get("cloudProfileName") or ""
        profile = self._profile(name) or {}
        for found in (profile.get("spec") or {}).get("machineTypes") or ():
            if found["name"] == type_:
                known = {field: str(found[field]) for field in MachineType._fields if field in found}
                return MachineType(**known)
        return _UNKNOWN


async def step(client: Client, name: str, shoot: Object, machines: Machines, *, new: bool) -> bool:
    """Take one step in the logical cluster `name`; whether there is nothing left to do.

    A `new` cluster is known to have no nodes. Safe to repeat.
    """
    cluster = _cluster(name, shoot, machines)
    present = {} if new else await _present(client, cluster)
    move = next_step({node: _pool_of(obj) for node, obj in present.items()}, cluster.pools)
    taken = {_address(obj) for obj in present.values()}
    for wanted in move.create:
        body = cluster.looks[wanted.pool["name"]].node(wanted, _free(shoot, wanted, taken))
        with suppress(AlreadyExists):
            await client.request("POST", f"{cluster.path}{_NODES}", orjson.dumps(body))
    for node in move.delete:
        with suppress(NotFound):
            await client.request("DELETE", f"{cluster.path}{_NODES}/{node}")
    await _freshen(client, cluster, present, gone=set(move.delete))
    return new or not (move.create or move.delete) or _whole(cluster.pools, present, move.create, move.delete)


def _cluster(name: str, shoot: Object, machines: Machines) -> _Cluster:
    found = pools(shoot)
    created = shoot["metadata"]["creationTimestamp"]
    looks = {
        worker["name"]: Look(shoot, worker, machines.of(shoot, worker["machine"]["type"]), created=created)
        for worker in (shoot["spec"].get("provider") or {}).get("workers") or ()
    }
    return _Cluster(f"/clusters/{name}", shoot, found, looks)


async def _present(client: Client, cluster: _Cluster) -> dict[str, Object]:
    answer = await client.request("GET", f"{cluster.path}{_NODES}")
    return {obj["metadata"]["name"]: obj for obj in orjson.loads(answer.body)["items"] if _pool_of(obj)}


def _pool_of(node: Object) -> str:
    return str((node["metadata"].get("labels") or {}).get(POOL, ""))


def _address(node: Object) -> str:
    found = (node.get("status") or {}).get("addresses") or ()
    return next((one["address"] for one in found if one["type"] == "InternalIP"), "")


def _free(shoot: Object, node: DesiredNode, taken: set[str]) -> str:
    """An address of the network of nodes that no node has; which one follows from the name where it can."""
    nodes = (shoot["spec"].get("networking") or {}).get("nodes") or "10.250.0.0/16"
    network = ipaddress.ip_network(nodes, strict=False)
    size = max(network.num_addresses - 2, 1)
    offset = int.from_bytes(node.name.encode()[-5:]) % size
    for attempt in range(size):
        address = str(network[min(1 + (offset + attempt) % size, network.num_addresses - 1)])
        if address not in taken:
            break
    taken.add(address)
    return address


async def _freshen(client: Client, cluster: _Cluster, present: Mapping[str, Object], gone: set[str]) -> None:
    """Bring labels, annotations, taints and the kubelet's version of the nodes that stay up to date."""
    for pool in cluster.pools:
        look = cluster.looks[pool.name]
        for node in pool.nodes:
            found = present.get(node.name)
            if found is None or node.name in gone:
                continue
            if patch := look.change(node, found):
                await _patch(client, f"{cluster.path}{_NODES}/{node.name}", patch)
            version = f"v{look.kubelet}"
            if (found["status"].get("nodeInfo") or {}).get("kubeletVersion") != version:
                info = {"kubeletVersion": version, "kubeProxyVersion": version}
                await _patch(client, f"{cluster.path}{_NODES}/{node.name}/status", {"status": {"nodeInfo": info}})


async def _patch(client: Client, path: str, patch: Mapping[str, Any]) -> None:
    with suppress(NotFound):
        await client.request("PATCH", path, orjson.dumps(patch), content_type=_MERGE)


def _whole(
    wanted: Sequence[NodePool], present: Mapping[str, Object], created: Sequence[DesiredNode], deleted: Sequence[str]
) -> bool:
    """True when the step just taken was the last."""
    now = {*present, *(node.name for node in created)} - set(deleted)
    return now == {node.name for pool in wanted for node in pool.nodes}
