"""The nodes and configurations of the fleet's clusters, by two watches in each."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from typing import Final

import msgspec

from hortus.domains.inventory.types import ClusterProfile, is_hibernated, secret_of
from hortus.domains.nodes.service import (
    APPLIED,
    CANDIDATE,
    CHECKSUM,
    HEALTH,
    HOLD,
    IN_PLACE,
    RELEASED,
    ROLLED_BACK,
    SECRET_LABEL,
    SELECTED,
    VERSION,
    ClusterNodes,
    PoolNode,
    PoolSecret,
)
from hortus.engine import Cache, Change, Selection, metadata_of
from hortus.engine.remote import KubeconfigRef, RemotePool, RemoteWatch
from hortus.engine.sources import Source
from hortus.kube import Client
from hortus.kube.objects import Object, ObjectKey, Resource, shaped
from hortus.schema import Fields, ObjectMeta

NODES: Final = Resource("", "v1", "nodes", "Node", namespaced=False)
SECRETS: Final = Resource("", "v1", "secrets", "Secret")
_CONFIGURATIONS: Final = Selection(SECRETS, "kube-system", labels="gardener.cloud/role=operating-system-config")
_KEY: Final = "osc.yaml"


class NodeMembers:
    """The clusters whose nodes are governed, each by the key of its ClusterProfile."""

    def __init__(self, pool: RemotePool, profiles: Cache, *, holds: Callable[[ObjectKey], bool]) -> None:
        self._pool = pool
        self._profiles = profiles
        self._nodes = RemoteWatch(
            pool, profiles, place=_place, selection=Selection(NODES), transform=_node, when=_differs, holds=holds
        )
        self._secrets = RemoteWatch(
            pool, profiles, place=_place, selection=_CONFIGURATIONS, transform=_secret, when=_differs, holds=holds
        )

    @property
    def sources(self) -> tuple[Source, ...]:
        return self._nodes, self._secrets

    def reconsider(self, gained: object = None) -> int:
        """Look again at which clusters are this replica's; returns how many are new."""
        self._secrets.reconsider()
        return self._nodes.reconsider()

    def nodes(self, key: ObjectKey) -> ClusterNodes | None:
        """The nodes of a cluster; None while they are not seen as they are."""
        nodes, secrets = self._nodes.cache(key), self._secrets.cache(key)
        if nodes is None or secrets is None or not nodes.has_synced or not secrets.has_synced:
            return None
        if self._nodes.problem(key) is not None or self._secrets.problem(key) is not None:
            return None
        found = (shaped(one, PoolNode) for one in nodes.values())
        configurations = (shaped(one, PoolSecret) for one in secrets.values())
        return ClusterNodes(filter(None, found), filter(None, configurations))

    async def annotate(self, key: ObjectKey, node: str, annotations: Object, *, select: bool) -> None:
        """Write annotations of a Node, and the label that selects it for an update in place. Raises KubeError."""
        place, cache = _place(self._profiles[key]), self._nodes.cache(key)
        if place is None or cache is None:
            return
        client: Client = self._pool.at(place)
        # Without the answer, the next decision could count this node as one that was not released.
        labels = {"labels": {SELECTED: "true"}} if select else {}
        cache.learn(await client.patch(NODES, node, {"metadata": {"annotations": annotations, **labels}}))


def _place(profile: Object) -> KubeconfigRef | None:
    found = shaped(profile, ClusterProfile)
    secret = None if found is None or is_hibernated(found) else secret_of(found)
    return None if secret is None else KubeconfigRef(*secret)


class _Content(Fields, frozen=True):
    data: dict[str, str] = msgspec.field(default_factory=dict)


def _outline(metadata: ObjectMeta, annotations: Mapping[str, str], labels: Mapping[str, str]) -> Object:
    return {
        "name": metadata.name,
        "namespace": metadata.namespace,
        "uid": metadata.uid,
        "resourceVersion": metadata.resource_version,
        "annotations": annotations,
        "labels": labels,
    }


def _node(obj: Object) -> Object:
    """A heart-beat changes nothing of what is kept."""
    node, metadata = shaped(obj, PoolNode) or PoolNode(metadata_of(obj)), metadata_of(obj)
    conditions = [
        {
            "type": one.type,
            "status": one.status,
            "reason": one.reason if one.type == IN_PLACE else "",
            "lastTransitionTime": one.last_transition_time,
        }
        for one in node.status.conditions
        if one.type in (*HEALTH, IN_PLACE)
    ]
    annotations = _chosen(metadata.annotations, (APPLIED, HOLD, RELEASED, ROLLED_BACK))
    outline = _outline(metadata, annotations, _chosen(metadata.labels, (SECRET_LABEL, CANDIDATE, SELECTED)))
    return {"metadata": outline, "status": {"conditions": conditions}}


def _secret(obj: Object) -> Object:
    """The content is not kept. Where the Secret carries no checksum, agents report that of the content."""
    metadata = metadata_of(obj)
    annotations = _chosen(metadata.annotations, (CHECKSUM, VERSION))
    content = _content(shaped(obj, _Content) or _Content())
    if CHECKSUM not in annotations and content.strip():
        annotations[CHECKSUM] = sha256(content).hexdigest()
    return {"metadata": _outline(metadata, annotations, {})}


def _content(secret: _Content) -> bytes:
    try:
        return base64.b64decode(secret.data.get(_KEY, ""), validate=True)
    except ValueError:
        return b""


def _chosen(given: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    return {name: given[name] for name in names if name in given}


def _differs(change: Change) -> bool:
    return change.old is None or change.new is None or _facts(change.old) != _facts(change.new)


def _facts(obj: Object) -> tuple[object, ...] | None:
    """All that is kept of a Node or a Secret but its resourceVersion."""
    found = shaped(obj, PoolNode)
    return None if found is None else (found.metadata.annotations, found.metadata.labels, found.status)
