"""Brings the nodes of one workload cluster a step nearer to what its Shoot's pools say."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec
import orjson

from hortus.gardener.machineimages import (
    KeptImage,
    MachineImageChoice,
    MachineImageRequest,
    UnreadableProfile,
    profile_of,
    select_image,
)
from hortus.kube import Client
from hortus.kube.errors import AlreadyExists, NotFound
from hortus.kube.objects import Object
from hortus.simulation.garden.nodes import IMAGE_RECORD, POOL, DesiredNode, Look, NodePool, next_step, pools
from hortus.simulation.garden.profiles import OPENSTACK, MachineType

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
    """Machine types and images of CloudProfiles. `profile` finds a CloudProfile by its name."""

    def __init__(self, profile: Callable[[str], Object | None] = lambda _: None) -> None:
        self._profile = profile

    def of(self, shoot: Object, type_: str) -> MachineType:
        profile = self._of(shoot)
        for found in (profile.get("spec") or {}).get("machineTypes") or ():
            if found["name"] == type_:
                known = {field: str(found[field]) for field in MachineType._fields if field in found}
                return MachineType(**known)
        return _UNKNOWN

    def image(self, shoot: Object, worker: Mapping[str, Any], kept: Sequence[KeptImage]) -> MachineImageChoice | None:
        """The image of a pool in OpenStack; None where none is mapped. Raises ImageNotFound, AmbiguousImage.

        `kept` are the images of the nodes there are: a version that left the CloudProfile is found there.
        """
        profile, spec, machine = self._of(shoot), shoot["spec"], worker["machine"]
        image = machine.get("image") or {}
        if (profile.get("spec") or {}).get("type") != OPENSTACK or not image:
            return None
        try:
            found = profile_of(profile)
        except UnreadableProfile:
            # The admission of the garden refuses such a profile; one from before is not the Shoot's concern.
            return None
        if found.provider_config is None or not found.provider_config.machine_images:
            return None
        wanted = MachineImageRequest(
            name=image["name"],
            version=image.get("version", ""),
            region=spec["region"],
            machine_type=machine["type"],
            architecture=machine.get("architecture", ""),
        )
        return select_image(found, wanted, kept)

    def _of(self, shoot: Object) -> Object:
        """The CloudProfile of a Shoot; empty where there is none."""
        spec = shoot["spec"]
        name = (spec.get("cloudProfile") or {}).get("name") or spec.get("cloudProfileName") or ""
        return self._profile(name) or {}


async def step(client: Client, name: str, shoot: Object, machines: Machines, *, new: bool) -> bool:
    """Take one step in the logical cluster `name`; whether there is nothing left to do.

    A `new` cluster is known to have no nodes. Safe to repeat. Raises ImageNotFound, AmbiguousImage.
    """
    present = {} if new else await _present(client, f"/clusters/{name}")
    cluster = _cluster(name, shoot, machines, present.values())
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


def _cluster(name: str, shoot: Object, machines: Machines, present: Iterable[Object]) -> _Cluster:
    found = pools(shoot)
    created, kept = shoot["metadata"]["creationTimestamp"], _kept(present)
    looks = {
        worker["name"]: Look(
            shoot,
            worker,
            machines.of(shoot, worker["machine"]["type"]),
            created=created,
            booted=machines.image(shoot, worker, kept),
        )
        for worker in (shoot["spec"].get("provider") or {}).get("workers") or ()
    }
    return _Cluster(f"/clusters/{name}", shoot, found, looks)


def _kept(present: Iterable[Object]) -> list[KeptImage]:
    """The images from which the nodes there are were booted."""
    records = {(node["metadata"].get("annotations") or {}).get(IMAGE_RECORD) for node in present}
    return [msgspec.json.decode(record, type=KeptImage) for record in sorted(filter(None, records))]


async def _present(client: Client, path: str) -> dict[str, Object]:
    answer = await client.request("GET", f"{path}{_NODES}")
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
