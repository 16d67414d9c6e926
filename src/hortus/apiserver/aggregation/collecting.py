"""Garbage among the objects of other servers: those whose owners are all gone are deleted.

    an owner here, its dependent there     the dependent is deleted by its server
    an owner there, its dependent here     the collector of this server asks for the owner (`GarbageCollector`)
    both there                             as the first

Background deletion only: an owner in foreground deletion does not wait for dependents of other servers. References to
owners that are gone are taken out of an object that has others.
"""

from __future__ import annotations

from typing import NamedTuple

from hortus.apiserver.aggregation.content import RemoteContent, RemoteResource
from hortus.apiserver.aggregation.watching import RemoteChange
from hortus.apiserver.gc import GarbageCollector, uid_of
from hortus.apiserver.keyqueue import KeyQueue
from hortus.apiserver.resources.context import OperationContext
from hortus.apiserver.store.backend import Commit
from hortus.kube.objects import Object


class _Dependent(NamedTuple):
    cluster: str
    resource: RemoteResource
    namespace: str
    name: str


class RemoteCollector:
    def __init__(self, ctx: OperationContext, content: RemoteContent, collector: GarbageCollector) -> None:
        self._content = content
        self._collector = collector
        self._dependents: dict[tuple[str, str], set[_Dependent]] = {}
        """Objects of other servers by cluster and the uid of an owner."""
        self._owners: dict[_Dependent, tuple[str, ...]] = {}
        self.queue: KeyQueue[_Dependent] = KeyQueue("remote-garbage", ctx.clock, self._look_at, lambda key: key.cluster)
        ctx.storage.listen(self._changed)

    async def start(self) -> None:
        await self.queue.start()

    async def stop(self) -> None:
        await self.queue.stop()

    def forget(self, cluster: str) -> None:
        for key in [key for key in self._owners if key.cluster == cluster]:
            self._index(key, ())

    def ended(self, cluster: str, resource: RemoteResource) -> None:
        """Drops the objects of a resource that is no longer watched."""
        for key in [key for key in self._owners if key.cluster == cluster and key.resource == resource]:
            self._index(key, ())

    def seen(self, change: RemoteChange) -> None:
        """Follows an object of another server."""
        metadata = change.metadata
        key = _Dependent(change.cluster, change.resource, metadata.get("namespace", ""), metadata["name"])
        if change.gone:
            self._index(key, ())
            uid = str(metadata.get("uid", ""))
            self._collector.owner_gone(change.cluster, uid)
            self._owner_gone(change.cluster, uid)
            return
        uids = tuple(str(owner.get("uid")) for owner in metadata.get("ownerReferences") or ())
        if uids != self._owners.get(key, ()):
            self._index(key, uids)
            if uids:
                self.queue.add(key)

    def _changed(self, change: Commit) -> None:
        if change.record is None and self._dependents and change.previous is not None:
            self._owner_gone(change.key.cluster, uid_of(change.previous))

    def _owner_gone(self, cluster: str, uid: str) -> None:
        for key in self._dependents.get((cluster, uid), ()):
            self.queue.add(key)

    def _index(self, key: _Dependent, uids: tuple[str, ...]) -> None:
        for uid in self._owners.pop(key, ()):
            dependents = self._dependents.get((key.cluster, uid), set())
            dependents.discard(key)
            if not dependents:
                self._dependents.pop((key.cluster, uid), None)
        if uids:
            self._owners[key] = uids
            for uid in uids:
                self._dependents.setdefault((key.cluster, uid), set()).add(key)

    async def _look_at(self, key: _Dependent) -> None:
        if key not in self._owners:
            return
        obj = await self._content.get(key.cluster, key.resource, key.namespace, key.name)
        if obj is None or "deletionTimestamp" in obj["metadata"]:
            return
        owners: list[Object] = obj["metadata"].get("ownerReferences") or []
        states = [await self._collector.state(key.cluster, key.namespace, owner) for owner in owners]
        if not owners or states.count("present") == len(owners):
            return
        if "present" not in states:
            await self._content.delete_one(key.cluster, key.resource, obj)
            return
        kept = [owner for owner, state in zip(owners, states, strict=True) if state == "present"]
        await self._content.own(key.cluster, key.resource, obj, kept)
