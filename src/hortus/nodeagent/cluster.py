"""The part of the cluster that a node sees: its Node, the Secret of its worker pool, and Secrets with tokens.

Each is one watch of one object. The Node is found by its name once there is one; before that by its host name.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from hortus.engine.cache import Cache
from hortus.engine.events import EventRecorder
from hortus.engine.reflector import Reflector, Selection
from hortus.kube import Client, Clock, ObjectKey, PatchKind, Resource
from hortus.kube.objects import Object
from hortus.nodeagent.osc import without_nulls
from hortus.nodeagent.seams import NodeFault

NAMESPACE = "kube-system"
HOSTNAME_LABEL = "kubernetes.io/hostname"
COMPONENT = "gardener-node-agent"
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
SECRETS = Resource("", "v1", "secrets", "Secret")
PODS = Resource("", "v1", "pods", "Pod")
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")


class NodeAddress(msgspec.Struct, frozen=True):
    type: str = ""
    address: str = ""


class NodeCondition(msgspec.Struct, frozen=True, rename="camel"):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""


class SeenMetadata(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class _NodeInfo(msgspec.Struct, frozen=True, rename="camel"):
    kubelet_version: str = ""


class _NodeStatus(msgspec.Struct, frozen=True, rename="camel"):
    addresses: tuple[NodeAddress, ...] = ()
    conditions: tuple[NodeCondition, ...] = ()
    node_info: _NodeInfo = _NodeInfo()


class SeenNode(msgspec.Struct, frozen=True, rename="camel"):
    """The Node as far as the agent reads it."""

    metadata: SeenMetadata
    status: _NodeStatus = _NodeStatus()

    @property
    def name(self) -> str:
        return self.metadata.name

    def condition(self, kind: str) -> NodeCondition | None:
        return next((each for each in self.status.conditions if each.type == kind), None)

    @property
    def reference(self) -> Object:
        """The Node as events refer to it."""
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": self.name, "uid": self.metadata.uid},
        }


class SeenSecret(msgspec.Struct, frozen=True, rename="camel"):
    metadata: SeenMetadata
    data: dict[str, str] = {}

    def value(self, key: str) -> bytes:
        """The decoded value of a key; empty without it."""
        try:
            return base64.b64decode(self.data.get(key, ""), validate=True)
        except ValueError:
            return b""


class WatchedObject:
    """One object that is watched, or several of which one is meant."""

    def __init__(self, client: Client, selection: Selection, clock: Clock, *, changed: Callable[[], None]) -> None:
        self.cache = Cache(str(selection), transform=_shrunk)
        self._reflector = Reflector(client, selection, self.cache, clock=clock)
        self.cache.subscribe(lambda _: changed())
        self.cache.on_sync(changed)

    async def run(self) -> None:
        await self._reflector.run()

    def one(self) -> Object | None:
        """The object, None without one. Raises NodeFault for several."""
        found = list(self.cache.values())
        if len(found) > 1:
            names = ", ".join(sorted(each["metadata"]["name"] for each in found))
            raise NodeFault(f"several Nodes have the label {HOSTNAME_LABEL} of this host: {names}; delete the others")
        return found[0] if found else None


def _shrunk(obj: Object) -> Object:
    """An object without what nobody reads here; a Node lists all its images."""
    obj["metadata"].pop("managedFields", None)
    if obj.get("kind") == "Node":
        status = obj.get("status") or {}
        obj["status"] = {key: status[key] for key in ("addresses", "conditions", "nodeInfo") if key in status}
    return obj


class NodeView:
    """The Node of this host. `changed` calls those who asked for it."""

    def __init__(self, client: Client, clock: Clock, *, hostname: str, name: str, events: EventRecorder) -> None:
        """`name` is the Node's, empty while there is none."""
        self.client = client
        self.hostname = hostname
        self.known_name = name
        self._clock = clock
        self._events = events
        self._listeners: list[Callable[[], None]] = []
        selector = {"fields": f"metadata.name={name}"} if name else {"labels": f"{HOSTNAME_LABEL}={hostname}"}
        self._sight = WatchedObject(client, Selection(NODES, **selector), clock, changed=self._changed)
        self._read: tuple[Object, SeenNode] | None = None

    async def run(self) -> None:
        await self._sight.run()

    async def synced(self) -> None:
        await self._sight.cache.synced()

    @property
    def has_synced(self) -> bool:
        return self._sight.cache.has_synced

    def on_change(self, call: Callable[[], None]) -> None:
        self._listeners.append(call)

    def _changed(self) -> None:
        for call in self._listeners:
            call()

    @property
    def node(self) -> SeenNode | None:
        """The Node as last seen, decoded once for each version of it."""
        found = self._sight.one()
        if found is None:
            return None
        if self._read is None or self._read[0] is not found:
            self._read = (found, msgspec.convert(without_nulls(found), SeenNode))
        return self._read[1]

    async def patch_metadata(self, node: SeenNode, **parts: Mapping[str, str | None]) -> None:
        """Sets labels and annotations, None removes one; writes nothing when they are so already."""
        now = {"labels": node.metadata.labels, "annotations": node.metadata.annotations}
        patch = {
            part: {key: value for key, value in wanted.items() if now[part].get(key) != value}
            for part, wanted in parts.items()
        }
        patch = {part: wanted for part, wanted in patch.items() if wanted}
        if patch:
            self.learn(await self.client.patch(NODES, node.name, {"metadata": patch}))

    async def patch_status(self, node: SeenNode, status: Mapping[str, Any]) -> None:
        patch = {"status": dict(status)}
        found = await self.client.patch(NODES, node.name, patch, kind=PatchKind.STRATEGIC, subresource="status")
        self.learn(found)

    def learn(self, obj: Object) -> None:
        self._sight.cache.learn(self._sight.cache.shrink(obj))

    def event(self, reason: str, message: str, *, warning: bool = False) -> None:
        """Implements `NodeEvents`; without a Node there is nobody to report to."""
        node = self.node
        if node is not None:
            self._events.event(node.reference, "Warning" if warning else "Normal", reason, message)


class SecretView:
    """One Secret of kube-system, watched."""

    def __init__(self, client: Client, clock: Clock, name: str) -> None:
        self.name = name
        self.changed = asyncio.Event()
        selection = Selection(SECRETS, NAMESPACE, fields=f"metadata.name={name}")
        self._sight = WatchedObject(client, selection, clock, changed=self.changed.set)

    async def run(self) -> None:
        await self._sight.run()

    @property
    def has_synced(self) -> bool:
        return self._sight.cache.has_synced

    @property
    def secret(self) -> SeenSecret | None:
        found = self._sight.cache.get(ObjectKey(NAMESPACE, self.name))
        return msgspec.convert(without_nulls(found), SeenSecret) if found is not None else None


async def secret_value(client: Client, name: str, key: str) -> bytes:
    """The value of a key of a Secret in kube-system, read now. Raises KubeError, and NodeFault without that key."""
    found = msgspec.convert(without_nulls(await client.get(SECRETS, name, NAMESPACE)), SeenSecret)
    if key not in found.data:
        raise NodeFault(f"Secret {NAMESPACE}/{name} has no key {key}: add it, or correct secretRef.dataKey")
    return found.value(key)
