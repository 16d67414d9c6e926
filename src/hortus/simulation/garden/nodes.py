"""Worker nodes as machines of a Shoot's pools: which there should be, what each looks like, and the next step to them.

Pure. A node's name says its pool, zone and the kind of its machine, as that of a machine of Gardener does:
`<technical ID>-<pool>-z<number>-<kind>-<machine>`. What a machine cannot change while it runs (type, image, minor
version of the kubelet, volume, runtime, start of a rotation) makes another kind: such nodes are replaced, by
`maxSurge` and `maxUnavailable`. Labels, annotations, taints and the kubelet's patch version change in place.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import orjson

from hortus.gardener.machineimages import MachineImageChoice, kept_images
from hortus.kube.objects import Object
from hortus.simulation.garden.profiles import MachineType

APPLIED = "node.machine.sapcloud.io/last-applied-anno-labels-taints"
"""The annotation with the labels, annotations and taints of a node that came from its pool, as JSON."""
IMAGE_RECORD = "simulation.hortus.dev/machine-image"
"""The annotation with the image from which a machine was booted, as JSON."""
POOL = "worker.gardener.cloud/pool"
_ROTATED = ("certificateAuthorities", "serviceAccountKey")
"""Rotations whose start replaces all nodes."""


class DesiredNode(NamedTuple):
    """A node there should be."""

    name: str
    pool: Mapping[str, Any]
    zone: str


class NodePool(NamedTuple):
    """The nodes of one pool there should be, and how fast they may be replaced."""

    name: str
    nodes: tuple[DesiredNode, ...]
    surge: int
    unavailable: int


class Step(NamedTuple):
    """The next actions; both empty when all is as it should be."""

    create: tuple[DesiredNode, ...]
    delete: tuple[str, ...]


def pools(shoot: Object) -> list[NodePool]:
    """All pools of a Shoot with the nodes they have when nothing runs on them: their minimum; none in hibernation."""
    spec = shoot["spec"]
    if (spec.get("hibernation") or {}).get("enabled"):
        return []
    return [_pool(shoot, worker) for worker in (spec.get("provider") or {}).get("workers") or ()]


def _pool(shoot: Object, worker: Mapping[str, Any]) -> NodePool:
    prefix, kind = shoot["status"]["technicalID"], machine_kind(shoot, worker)
    zones = worker.get("zones") or [""]
    nodes = []
    for number, (zone, count) in enumerate(zip(zones, spread(worker["minimum"], len(zones)), strict=True), start=1):
        group = f"{prefix}-{worker['name']}-z{number}-{kind}"
        nodes += [DesiredNode(f"{group}-{machine}", worker, zone) for machine in _distinct(group, count)]
    total = len(nodes)
    return NodePool(
        worker["name"],
        tuple(nodes),
        amount(worker.get("maxSurge", 1), total, up=True),
        amount(worker.get("maxUnavailable", 0), total, up=False),
    )


def spread(count: int, zones: int) -> list[int]:
    """The number of machines of each zone, of `count` in all; the first zones get the rest."""
    return [count // zones + (1 if index < count % zones else 0) for index in range(zones)]


def amount(value: object, total: int, *, up: bool) -> int:
    """An absolute number, or a percentage such as "25%" of `total`."""
    text = str(value)
    if not text.endswith("%"):
        return int(text)
    product = int(text[:-1]) * total
    return -(-product // 100) if up else product // 100


def machine_kind(shoot: Object, worker: Mapping[str, Any]) -> str:
    """Five characters that change when the machines of a pool must be replaced."""
    machine = worker["machine"]
    rotation = ((shoot.get("status") or {}).get("credentials") or {}).get("rotation") or {}
    parts = (
        machine["type"],
        machine.get("architecture", "amd64"),
        machine.get("image") or {},
        ".".join(kubelet_version(shoot, worker).split(".")[:2]),
        worker.get("volume") or {},
        (worker.get("cri") or {}).get("name", "containerd"),
        [(rotation.get(name) or {}).get("lastInitiationTime", "") for name in _ROTATED],
    )
    return _short(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS).decode())


def kubelet_version(shoot: Object, worker: Mapping[str, Any]) -> str:
    own = (worker.get("kubernetes") or {}).get("version")
    return str(own or (shoot["spec"].get("kubernetes") or {}).get("version") or "1.32.0")


def _distinct(group: str, count: int) -> list[str]:
    """Names of machines; the first ones are the same for every count."""
    found: dict[str, None] = {}
    numbers = itertools.count()
    while len(found) < count:
        found[_short(f"{group}/{next(numbers)}")] = None
    return list(found)


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:5]


def next_step(present: Mapping[str, str], wanted: Sequence[NodePool]) -> Step:
    """`present` maps the names of the nodes there are to their pools.

    Pools that are gone lose all their nodes, more or fewer nodes come and go at once; nodes of another kind are
    replaced such that a pool never has more than its size and `maxSurge`, nor less than its size less
    `maxUnavailable`.
    """
    create: list[DesiredNode] = []
    delete = [name for name, pool in present.items() if pool not in {one.name for one in wanted}]
    for pool in wanted:
        here = {name for name, of in present.items() if of == pool.name}
        names = {node.name for node in pool.nodes}
        missing = [node for node in pool.nodes if node.name not in here]
        extra = sorted(here - names)
        if missing and extra:
            room = max(0, len(names) + pool.surge - len(here))
            spare = max(0, len(here) - max(0, len(names) - pool.unavailable))
            if not room and not spare:
                spare = 1  # neither surge nor unavailability: it would never end
            missing, extra = missing[:room], extra[:spare]
        create += missing
        delete += extra
    return Step(tuple(create), tuple(sorted(delete)))


class Look:
    """The appearance of the nodes of one pool; made once, so that a node costs little."""

    def __init__(
        self,
        shoot: Object,
        worker: Mapping[str, Any],
        machine: MachineType,
        *,
        created: str,
        booted: MachineImageChoice | None = None,
    ) -> None:
        """`booted` is the image of the cloud from which new machines start, where the CloudProfile names one."""
        spec = shoot["spec"]
        self._booted = booted
        self._provider, self._region = spec["provider"]["type"], spec["region"]
        self._created = created
        self.kubelet = kubelet_version(shoot, worker)
        image = worker["machine"].get("image") or {}
        architecture = worker["machine"].get("architecture") or machine.architecture
        self.taints = [dict(taint) for taint in worker.get("taints") or ()]
        self._annotations = dict(worker.get("annotations") or {})
        self._labels = {
            "beta.kubernetes.io/instance-type": worker["machine"]["type"],
            "kubernetes.io/arch": architecture,
            "kubernetes.io/os": "linux",
            "networking.gardener.cloud/node-local-dns-enabled": "false",
            "node.kubernetes.io/instance-type": worker["machine"]["type"],
            "node.kubernetes.io/role": "node",
            "topology.kubernetes.io/region": self._region,
            **_pool_labels(worker, image, self.kubelet, shoot),
        }
        self._status = _status(machine, image, architecture, self.kubelet)

    def labels(self, node: DesiredNode) -> dict[str, str]:
        zone = {"topology.kubernetes.io/zone": self._zone(node.zone)} if node.zone else {}
        own = {"kubernetes.io/hostname": node.name, "node.gardener.cloud/machine-name": node.name}
        return {**self._labels, **own, **zone}

    def applied(self) -> str:
        """The value of the annotation `APPLIED`."""
        own = {"annotations": self._annotations, "labels": _own_labels(self._labels), "spec": {"taints": self.taints}}
        return orjson.dumps(own, option=orjson.OPT_SORT_KEYS).decode()

    def annotations(self) -> dict[str, str]:
        return {**self._annotations, APPLIED: self.applied()}

    def _of_new(self) -> dict[str, str]:
        """The annotations of a new node: a machine keeps the image from which it was booted."""
        if self._booted is None:
            return self.annotations()
        (record,) = kept_images((), [self._booted])
        return {**self.annotations(), IMAGE_RECORD: msgspec.json.encode(record).decode()}

    def node(self, node: DesiredNode, address: str) -> Object:
        """The whole object."""
        condition = {"lastHeartbeatTime": self._created, "lastTransitionTime": self._created}
        spec: dict[str, Any] = {"providerID": _provider_id(self._provider, self._region, node)}
        if self.taints:
            spec["taints"] = self.taints
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": node.name, "labels": self.labels(node), "annotations": self._of_new()},
            "spec": spec,
            "status": {
                **self._status,
                "addresses": [
                    {"type": "InternalIP", "address": address},
                    {"type": "Hostname", "address": node.name},
                ],
                "conditions": [
                    {
                        "type": "Ready",
                        "status": "True",
                        "reason": "KubeletReady",
                        "message": "simulated kubelet is ready",
                        **condition,
                    }
                ],
            },
        }

    def change(self, node: DesiredNode, found: Object) -> Object | None:
        """A merge patch that gives a node there is what its pool says now; None when it has it.

        What others have put on the node stays.
        """
        metadata = found["metadata"]
        annotations = metadata.get("annotations") or {}
        before = orjson.loads(annotations.get(APPLIED) or b"{}")
        patch: dict[str, Any] = {}
        if annotations.get(APPLIED) != self.applied():
            gone = {name: None for name in before.get("labels") or () if name not in self._labels}
            lost = {name: None for name in before.get("annotations") or () if name not in self._annotations}
            patch["metadata"] = {
                "labels": {**gone, **self.labels(node)},
                "annotations": {**lost, **self.annotations()},
            }
            theirs = _without((found.get("spec") or {}).get("taints"), (before.get("spec") or {}).get("taints"))
            patch["spec"] = {"taints": [*self.taints, *_without(theirs, self.taints)] or None}
        return patch or None

    def _zone(self, zone: str) -> str:
        return f"{self._region}-{zone}" if self._provider == "azure" else zone


def _pool_labels(worker: Mapping[str, Any], image: Mapping[str, str], kubelet: str, shoot: Object) -> dict[str, str]:
    name = worker["name"]
    secret = f"gardener-node-agent-{name}-{machine_kind(shoot, worker)}"
    labels = {
        POOL: name,
        "worker.garden.sapcloud.io/group": name,
        "worker.gardener.cloud/cri-name": (worker.get("cri") or {}).get("name", "containerd"),
        "worker.gardener.cloud/gardener-node-agent-secret-name": secret,
        "worker.gardener.cloud/kubernetes-version": kubelet,
        **(worker.get("labels") or {}),
    }
    if (worker.get("systemComponents") or {}).get("allow", True):
        labels["worker.gardener.cloud/system-components"] = "true"
    if image:
        labels["worker.gardener.cloud/image-name"] = image["name"]
        labels["worker.gardener.cloud/image-version"] = image.get("version", "")
    return labels


def _own_labels(labels: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in labels.items() if not name.startswith(("beta.", "topology."))}


def _without(taints: Iterable[Mapping[str, Any]] | None, others: Iterable[Mapping[str, Any]] | None) -> list[Any]:
    keys = {(taint["key"], taint.get("effect")) for taint in others or ()}
    return [taint for taint in taints or () if (taint["key"], taint.get("effect")) not in keys]


def _status(machine: MachineType, image: Mapping[str, str], architecture: str, kubelet: str) -> dict[str, Any]:
    capacity = {"cpu": machine.cpu, "memory": machine.memory, "pods": "110", "ephemeral-storage": "50Gi"}
    if machine.gpu != "0":
        capacity["nvidia.com/gpu"] = machine.gpu
    memory = f"{int(machine.memory.removesuffix('Gi')) - 1}Gi" if machine.memory.endswith("Gi") else machine.memory
    cpu = f"{int(machine.cpu) * 1000 - 80}m" if machine.cpu.isdecimal() else machine.cpu
    os = f"{image.get('name', 'Simulated Linux')} {image.get('version', '')}".strip()
    return {
        "capacity": capacity,
        "allocatable": {**capacity, "cpu": cpu, "memory": memory},
        "nodeInfo": {
            "architecture": architecture,
            "bootID": "",
            "containerRuntimeVersion": "containerd://2.0.0",
            "kernelVersion": "6.6.0",
            "kubeProxyVersion": f"v{kubelet}",
            "kubeletVersion": f"v{kubelet}",
            "machineID": "",
            "operatingSystem": "linux",
            "osImage": os,
            "systemUUID": "",
        },
    }


def _provider_id(provider: str, region: str, node: DesiredNode) -> str:
    """The provider's id as the cloud's controller writes it."""
    digest = hashlib.sha256(node.name.encode()).hexdigest()
    forms = {
        "aws": f"aws:///{node.zone}/i-{digest[:17]}",
        "azure": f"azure:///subscriptions/simulated/resourceGroups/{node.name.rpartition('-')[0]}/providers/"
        f"Microsoft.Compute/virtualMachines/{node.name}",
        "gcp": f"gce://simulated/{node.zone}/{node.name}",
        "openstack": f"openstack:///{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}",
        "alicloud": f"{region}.i-{digest[:20]}",
    }
    return forms.get(provider, f"simulated:///{node.name}")
