"""Facts out of the clusters themselves: nodes, ClusterProperties, version, and whether they answer.

Nodes and ClusterProperties (KEP-2149) are watched, so a cluster at rest costs no call. A heart-beat of a node changes
none of the facts that are kept of it. The version is asked for where the garden does not know it: when the cluster was
connected, and then once in `VERSION_PERIOD`, since no watch reports it. The one object that is written into a cluster
is its mark (`hortus.engine.remote.identity`), once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

import msgspec

from hortus.engine import Backoff, Cache, Change, Priority, Selection, metadata_of
from hortus.engine.remote import (
    KubeconfigRef,
    MemberIdentity,
    Phase,
    RemotePool,
    RemoteState,
    RemoteWatch,
    digest_of_mark,
)
from hortus.engine.sources import Add, Detach
from hortus.kube import Access
from hortus.kube.clock import Clock
from hortus.kube.errors import ApiError, KubeError, TooManyRequests
from hortus.kube.objects import Object, ObjectKey, Resource, key_of
from hortus.schema import Fields, ObjectMeta

NODES: Final = Resource("", "v1", "nodes", "Node", namespaced=False)
CLUSTER_PROPERTIES: Final = Resource(
    "about.k8s.io", "v1alpha1", "clusterproperties", "ClusterProperty", namespaced=False
)
VERSION_PERIOD: Final = 3600.0
"""Seconds between two reads of the version of a cluster."""
UNSERVED: Final = Backoff(first=300.0, cap=6 * 3600.0, jitter=0.5)
"""Most clusters do not serve ClusterProperties, and are asked again this seldom: a handshake of 3 ms each time."""
_FACT: Final = "fact"
_ZONE: Final = "topology.kubernetes.io/zone"
_REGION: Final = "topology.kubernetes.io/region"
_NO_NODE: Final = ("", "", "")
_PASSING: Final = frozenset({Phase.IDLE, Phase.CONNECTING, Phase.WAITING})
"""Phases that change no condition."""


class _NodeSpec(Fields, frozen=True):
    provider_id: str = msgspec.field(name="providerID", default="")


class _Node(Fields, frozen=True):
    metadata: ObjectMeta
    spec: _NodeSpec = _NodeSpec()


class _PropertySpec(Fields, frozen=True):
    value: str = ""


class _ClusterProperty(Fields, frozen=True):
    metadata: ObjectMeta
    spec: _PropertySpec = _PropertySpec()


class _Version(Fields, frozen=True):
    git_version: str = ""


class NodeFacts(NamedTuple):
    """The nodes of a cluster."""

    number: int
    zones: tuple[str, ...]
    region: str
    provider: str
    """The scheme of the nodes' providerID."""


class MarkReading(NamedTuple):
    """The mark of a cluster as it was just read."""

    digest: str = ""
    refused: bool = False
    """The kubeconfig may not read or write it."""
    silent: bool = False
    """The cluster did not answer."""


class RemoteClusters:
    """The clusters that this replica keeps profiles of, each by the key of its profile."""

    def __init__(self, pool: RemotePool, *, clock: Clock) -> None:
        self.pool = pool
        self._clock = clock
        self._members = Cache("clusters of the inventory")
        self._members.replace((), 0)
        self._places: dict[ObjectKey, KubeconfigRef] = {}
        self._keys: dict[KubeconfigRef, set[ObjectKey]] = {}
        self._superseded: dict[KubeconfigRef, object] = {}
        """The connection that each place had when its credential changed, until there is another."""
        self._marks: dict[KubeconfigRef, tuple[object, MarkReading]] = {}
        """The marks that were read, each with the connection by which that was."""
        self._versions: dict[ObjectKey, tuple[KubeconfigRef, float, str]] = {}
        self._nodes = RemoteWatch(
            pool, self._members, place=self._place_of, selection=Selection(NODES), transform=_node, when=_fact_changed
        )
        self._properties = RemoteWatch(
            pool,
            self._members,
            place=self._place_of,
            selection=Selection(CLUSTER_PROPERTIES),
            transform=_property,
            when=_fact_changed,
            optional=UNSERVED,
        )
        self.watches = (self._nodes, self._properties)
        """Sources of a controller."""

    def _place_of(self, member: Object) -> KubeconfigRef | None:
        return self._places.get(key_of(member))

    def keys_at(self, place: KubeconfigRef) -> Iterable[ObjectKey]:
        """The profiles of the cluster whose kubeconfig lies there."""
        return tuple(self._keys.get(place, ()))

    def enter(self, key: ObjectKey, place: KubeconfigRef | None) -> None:
        """The cluster of profile `key` is reached by `place` from now on; None for one without a kubeconfig."""
        if self._places.get(key) == place:
            return
        self.leave(key)
        if place is not None:
            self._places[key] = place
            self._keys.setdefault(place, set()).add(key)
            version = "/".join(place)
            self._members.put({"metadata": {"namespace": key.namespace, "name": key.name, "resourceVersion": version}})

    def leave(self, key: ObjectKey) -> None:
        """The cluster is not of the fleet any more, or without a kubeconfig."""
        place = self._places.pop(key, None)
        self._versions.pop(key, None)
        if place is not None:
            keys = self._keys[place]
            keys.discard(key)
            if not keys:
                del self._keys[place]
                self._marks.pop(place, None)
            self._members.drop(key)

    def shed(self, holds: Callable[[ObjectKey], bool]) -> None:
        """Watch no more in the clusters whose profiles have become another replica's."""
        for key in [key for key in self._places if not holds(key)]:
            self.leave(key)

    def credential_changed(self, place: KubeconfigRef) -> None:
        """The Secret has changed, which the pool's own cache of Secrets may not show."""
        if place in self.pool.places():
            remote = self.pool.remote(place)
            self._superseded[place] = remote.link
            remote.credential_changed()

    # Facts.

    def state(self, key: ObjectKey) -> RemoteState | None:
        """None for a cluster without a kubeconfig."""
        place = self._places.get(key)
        return None if place is None else self.pool.state(place)

    def place(self, key: ObjectKey) -> KubeconfigRef | None:
        """The place of its kubeconfig."""
        return self._places.get(key)

    def identity(self, key: ObjectKey) -> MemberIdentity | None:
        """The cluster that was reached; None when the present credential was not seen to lead to one."""
        place = self._places.get(key)
        if place is None:
            return None
        remote = self.pool.remote(place)
        return remote.identity if remote.connected and not self.is_trying(key) else None

    async def look(self, place: KubeconfigRef) -> MemberIdentity | None:
        """The cluster that is reached by the kubeconfig there, also of another replica; None when none answers."""
        if not self.pool.remote(place).connected:
            try:
                await self.pool.at(place).get_raw("/version")
            except ApiError:
                pass  # that is an answer
            except KubeError:
                return None
        remote = self.pool.remote(place)
        return remote.identity if remote.connected else None

    async def mark(self, key: ObjectKey) -> MarkReading:
        """The mark of a cluster with a kubeconfig, which is read, or written, once a connection."""
        place = self._places[key]
        remote = self.pool.remote(place)
        known = self._marks.get(place)
        if known is not None and known[0] is remote.link:
            return known[1]
        try:
            digest = await digest_of_mark(self.pool.at(place))
            found = MarkReading(digest, refused=not digest)
        except KubeError as error:
            if not is_refusal(error):
                return MarkReading(silent=True)
            found = MarkReading(refused=True)
        self._marks[place] = remote.link, found
        return found

    def is_trying(self, key: ObjectKey) -> bool:
        """True while the connection is that of the credential before."""
        place = self._places.get(key)
        if place is None or place not in self._superseded:
            return False
        link = self.pool.remote(place).link
        if link is not None and link is not self._superseded[place]:
            del self._superseded[place]
            return False
        return True

    def access(self, key: ObjectKey) -> Access | None:
        """The address and trust of the present connection; None without one."""
        place = self._places.get(key)
        return None if place is None else self.pool.remote(place).access

    def nodes(self, key: ObjectKey) -> NodeFacts | None:
        """None as long as the nodes were never seen."""
        cache = self._nodes.cache(key)
        if cache is None or not cache.has_synced:
            return None
        facts = [found[_FACT] for found in cache.values()]
        return NodeFacts(
            number=len(facts),
            zones=tuple(sorted({fact[0] for fact in facts} - {""})),
            region=min((fact[1] for fact in facts if fact[1]), default=""),
            provider=min((fact[2] for fact in facts if fact[2]), default=""),
        )

    def properties(self, key: ObjectKey) -> Mapping[str, str] | None:
        """The ClusterProperties; None as long as they were never seen, which is for ever where they are not served."""
        cache = self._properties.cache(key)
        if cache is None or not cache.has_synced:
            return None
        return {key_of(found).name: found[_FACT] for found in cache.values()}

    async def version(self, key: ObjectKey) -> str:
        """The version of its API server, asked for when what is known is old; empty when it does not answer."""
        place = self._places.get(key)
        if place is None:
            return ""
        known, now = self._versions.get(key), self._clock.monotonic()
        if known is not None and known[0] == place and now - known[1] < VERSION_PERIOD:
            return known[2]
        try:
            answer = msgspec.convert(await self.pool.at(place).get_raw("/version"), _Version)
        except (KubeError, msgspec.ValidationError):
            return known[2] if known is not None else ""
        text = answer.git_version.removeprefix("v")[:64]
        self._versions[key] = place, now, text
        return text


class MemberStates:
    """A source: profiles whose cluster has become reachable, by another credential too, or unreachable."""

    def __init__(self, members: RemoteClusters) -> None:
        self._members = members

    def attach(self, add: Add, clock: Clock) -> Detach:
        def on_state(place: KubeconfigRef, before: RemoteState, after: RemoteState) -> None:
            if after.phase not in _PASSING:
                for key in self._members.keys_at(place):
                    add(key, int(Priority.EVENT))

        return self._members.pool.subscribe(on_state)

    async def ready(self) -> None:
        return


def is_refusal(error: KubeError) -> bool:
    """Reports whether a server will answer the same when it is asked again."""
    return isinstance(error, ApiError) and error.http_code < 500 and not isinstance(error, TooManyRequests)


def _node(obj: Object) -> Object:
    try:
        node = msgspec.convert(obj, _Node)
    except msgspec.ValidationError:
        return _kept(obj, _NO_NODE)  # it counts, and nothing is known of it
    labels, provider = node.metadata.labels, node.spec.provider_id.partition("://")
    return _kept(obj, (labels.get(_ZONE, ""), labels.get(_REGION, ""), provider[0] if provider[1] else ""))


def _property(obj: Object) -> Object:
    try:
        return _kept(obj, msgspec.convert(obj, _ClusterProperty).spec.value)
    except msgspec.ValidationError:
        return _kept(obj, "")


def _kept(obj: Object, fact: object) -> Object:
    metadata = metadata_of(obj)
    return {"metadata": {"name": metadata.name, "resourceVersion": metadata.resource_version}, _FACT: fact}


def _fact_changed(change: Change) -> bool:
    if change.old is None or change.new is None:
        return True
    return bool(change.old[_FACT] != change.new[_FACT])
