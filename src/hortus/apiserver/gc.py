"""The garbage collector: objects whose owners are gone, and owners that wait for their dependents.

    background   an object whose owners are all gone is deleted
    foreground   an owner marked `foregroundDeletion` has its dependents deleted first; those that block
                 (`blockOwnerDeletion`) must be gone before it is deleted
    orphan       an owner marked `orphan` has its references taken out of its dependents, then is deleted

An owner is gone when no object of that kind and name has that uid; a reference to a kind that is not served is ignored,
because the kind may be served again. Level-based: an index of references is built from the store at start and updated
by the store's changes; a key in the queue only names the object to reconcile. Source: Kubernetes docs, "Garbage
Collection" and "Owners and Dependents".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, Protocol

import orjson

from hortus.apiserver.keyqueue import KeyQueue
from hortus.apiserver.namespaces import SERVER
from hortus.apiserver.resources import patching
from hortus.apiserver.resources.context import OperationContext
from hortus.apiserver.resources.deletion import FOREGROUND, ORPHAN, delete
from hortus.apiserver.resources.kind import with_revision
from hortus.apiserver.resources.patching import modify
from hortus.apiserver.resources.scope import DeleteOptions, Preconditions, RequestScope, WriteOptions
from hortus.apiserver.store.backend import Commit, StoreKey
from hortus.kube.errors import Conflict, NotFound
from hortus.kube.objects import Object

_REFERENCES = b'"ownerReferences":['
_MARKS = (b'"foregroundDeletion"', b'"orphan"')
_OPTIONS = WriteOptions(manager="garbage-collector")

_Owner = tuple[str, str]
"""Logical cluster and uid: anybody can write any uid into a reference, but it only affects his own cluster."""

OwnerState = Literal["present", "waiting", "gone"]
"""`waiting`: in foreground deletion, until its dependents are gone."""


class RemoteOwners(Protocol):
    """Owners that other servers have."""

    def serves(self, cluster: str, group: str, version: str) -> bool:
        """Reports whether another server serves this version."""

    async def state(self, cluster: str, namespace: str, owner: Object) -> OwnerState:
        """The state of the owner that a reference of an object in `namespace` names; an error where it is not known."""


class GarbageCollector:
    def __init__(self, ctx: OperationContext, remote: RemoteOwners) -> None:
        self._ctx = ctx
        self._remote = remote
        self._dependents: dict[_Owner, set[StoreKey]] = {}
        self._owners: dict[StoreKey, tuple[str, ...]] = {}
        """The uids that an object refers to."""
        self._waiting: dict[_Owner, StoreKey] = {}
        """Owners in foreground deletion."""
        self.queue: KeyQueue[StoreKey] = KeyQueue(
            "garbage-collector", ctx.clock, self._look_at, lambda key: key.cluster
        )
        ctx.storage.listen(self._changed)

    async def start(self) -> None:
        await self.queue.start()
        await self._ctx.storage.survey(lambda record: self._seen(record.key, record.value))

    async def stop(self) -> None:
        await self.queue.stop()

    def forget(self, cluster: str) -> None:
        """Drops the index of a removed logical cluster."""
        prefix = f"{cluster}/"
        for key in [key for key in self._owners if key.bucket.startswith(prefix)]:
            self._index(key, ())
        self._waiting = {owner: key for owner, key in self._waiting.items() if owner[0] != cluster}

    def _changed(self, change: Commit) -> None:
        if change.record is not None:
            self._seen(change.record.key, change.record.value)
            return
        key = change.key
        for owner in self._owners_of(key):
            if owner in self._waiting:
                self.queue.add(self._waiting[owner])
        self._index(key, ())
        if self._dependents:
            gone = (key.cluster, uid_of(change.previous or b"{}"))
            self._waiting.pop(gone, None)
            for dependent in self._dependents.get(gone, ()):
                self.queue.add(dependent)

    def _seen(self, key: StoreKey, value: bytes) -> None:
        if _REFERENCES in value:
            owners = orjson.loads(value)["metadata"].get("ownerReferences", ())
            uids = tuple(str(owner.get("uid")) for owner in owners)
            if uids != self._owners.get(key, ()):
                self._index(key, uids)
                self.queue.add(key)
        elif key in self._owners:
            self._index(key, ())
        if b'"deletionTimestamp"' in value and any(mark in value for mark in _MARKS):
            self.queue.add(key)

    def _owners_of(self, key: StoreKey) -> Iterator[_Owner]:
        return ((key.cluster, uid) for uid in self._owners.get(key, ()))

    def _dependents_of(self, scope: RequestScope, uid: str) -> list[StoreKey]:
        """Objects that refer to this owner from its scope; an object elsewhere that names the uid is no dependent."""
        found = self._dependents.get((scope.cluster, uid), ())
        return [key for key in found if not scope.namespace or key.name.startswith(f"{scope.namespace}/")]

    def _index(self, key: StoreKey, uids: tuple[str, ...]) -> None:
        for owner in self._owners_of(key):
            dependents = self._dependents.get(owner, set())
            dependents.discard(key)
            if not dependents:
                self._dependents.pop(owner, None)
        self._owners.pop(key, None)
        if uids:
            self._owners[key] = uids
            for owner in self._owners_of(key):
                self._dependents.setdefault(owner, set()).add(key)

    async def _look_at(self, key: StoreKey) -> None:
        found = await self._read(key)
        if found is None:
            return
        scope, obj = found
        finalizers = obj["metadata"].get("finalizers", ())
        if "deletionTimestamp" in obj["metadata"]:
            if FOREGROUND in finalizers:
                await self._delete_dependents(scope, obj)
            elif ORPHAN in finalizers:
                await self._release_dependents(scope, obj)
        if obj["metadata"].get("ownerReferences"):
            await self._check_owners(scope, obj)

    async def _read(self, key: StoreKey) -> tuple[RequestScope, Object] | None:
        cluster, _, suffix = key.bucket.partition("/")
        await self._ctx.registry.load(cluster)
        kind = self._ctx.registry.by_suffix(cluster, suffix)
        record = await self._ctx.storage.get(key)
        if kind is None or record is None:
            return None
        namespace, _, name = key.name.partition("/")
        return RequestScope(cluster, kind, SERVER, namespace, name), with_revision(orjson.loads(record.value), record)

    async def _check_owners(self, scope: RequestScope, obj: Object) -> None:
        """Deletes an object without remaining owners; removes references to owners that are gone from one that has
        others."""
        owners: list[dict[str, Any]] = obj["metadata"]["ownerReferences"]
        states = [await self.state(scope.cluster, scope.namespace, owner) for owner in owners]
        if "present" in states:
            if states.count("present") < len(states):
                gone = {str(owner["uid"]) for owner, state in zip(owners, states, strict=True) if state != "present"}
                await self._drop_references(scope, gone)
            return
        if "deletionTimestamp" in obj["metadata"]:
            return
        foreground = "waiting" in states and (scope.cluster, obj["metadata"]["uid"]) in self._dependents
        await self._delete(scope, obj, "Foreground" if foreground else "")

    async def state(self, cluster: str, namespace: str, owner: dict[str, Any]) -> OwnerState:
        """The state of the owner that a reference of an object in `namespace` names."""
        group, _, version = str(owner.get("apiVersion", "")).rpartition("/")
        if self._remote.serves(cluster, group, version):
            return await self._remote.state(cluster, namespace, owner)
        registry = self._ctx.registry
        kind = registry.by_kind(cluster, group, version, str(owner.get("kind")))
        kind = kind or registry.by_kind(cluster, group, "", str(owner.get("kind")))
        if kind is None or (kind.resource.namespaced and not namespace):
            return "present"
        place = namespace if kind.resource.namespaced else ""
        record = await self._ctx.storage.get(StoreKey(kind.bucket(cluster), f"{place}/{owner.get('name')}"))
        return state_of({} if record is None else orjson.loads(record.value)["metadata"], owner)

    def owner_gone(self, cluster: str, uid: str) -> None:
        """Looks again at the dependents of an owner that another server has deleted."""
        for key in self._dependents.get((cluster, uid), ()):
            self.queue.add(key)

    async def _delete_dependents(self, scope: RequestScope, obj: Object) -> None:
        """Deletes the dependents that block this owner; without any, removes its finalizer. Other dependents are
        deleted after it.

        Owners in a cycle would wait for each other for ever; a cycle has no order, so none of them waits for another.
        """
        uid = obj["metadata"]["uid"]
        owner = (scope.cluster, uid)
        self._waiting[owner] = scope.key
        blocking = 0
        waiting_for_us = self._waiting_owners(scope.key)
        for key in self._dependents_of(scope, uid):
            if key in waiting_for_us:
                continue
            found = await self._read(key)
            if found is None or not _blocks(found[1], uid):
                continue
            if "deletionTimestamp" not in found[1]["metadata"]:
                await self._check_owners(*found)
            blocking += await self._ctx.storage.get(key) is not None
        if not blocking:
            self._waiting.pop(owner, None)
            await self._drop_finalizer(scope, FOREGROUND)

    def _waiting_owners(self, key: StoreKey) -> set[StoreKey]:
        """Owners of an object, and their owners, that wait for the deletion of their dependents."""
        found: set[StoreKey] = set()
        further = [key]
        while further:
            owners = {self._waiting[owner] for owner in self._owners_of(further.pop()) if owner in self._waiting}
            further += owners - found
            found |= owners
        return found

    async def _release_dependents(self, scope: RequestScope, obj: Object) -> None:
        uid = obj["metadata"]["uid"]
        for key in self._dependents_of(scope, uid):
            found = await self._read(key)
            if found is not None:
                await self._drop_references(found[0], {uid})
        await self._drop_finalizer(scope, ORPHAN)

    async def _delete(self, scope: RequestScope, obj: Object, propagation: str) -> None:
        metadata = obj["metadata"]
        seen = Preconditions(metadata["uid"], metadata["resourceVersion"])
        try:
            await delete(self._ctx, scope, DeleteOptions(preconditions=seen, propagation=propagation))
        except NotFound:
            return
        except Conflict:
            self.queue.add(scope.key)

    async def _drop_references(self, scope: RequestScope, uids: set[str]) -> None:
        def without(obj: Object) -> Object:
            owners = obj["metadata"].get("ownerReferences", ())
            obj["metadata"]["ownerReferences"] = [owner for owner in owners if owner.get("uid") not in uids]
            return obj

        await _modified(self._ctx, scope, without)

    async def _drop_finalizer(self, scope: RequestScope, name: str) -> None:
        def without(obj: Object) -> Object:
            obj["metadata"]["finalizers"] = [each for each in obj["metadata"].get("finalizers", ()) if each != name]
            return obj

        await _modified(self._ctx, scope, without)


def state_of(metadata: Object, owner: dict[str, Any]) -> OwnerState:
    """The state of an owner; `metadata` is that of the object with its name, empty where there is none."""
    if not metadata or metadata.get("uid") != owner.get("uid"):
        return "gone"
    deleting = "deletionTimestamp" in metadata and FOREGROUND in metadata.get("finalizers", ())
    return "waiting" if deleting else "present"


async def _modified(ctx: OperationContext, scope: RequestScope, change: patching.Change) -> None:
    try:
        await modify(ctx, scope, change, _OPTIONS)
    except NotFound:
        return


def _blocks(obj: Object, uid: str) -> bool:
    owners = obj["metadata"].get("ownerReferences", ())
    return any(owner.get("uid") == uid and owner.get("blockOwnerDeletion") is True for owner in owners)


def uid_of(value: bytes) -> str:
    """The uid of an encoded object; empty where it has none."""
    return str(orjson.loads(value).get("metadata", {}).get("uid", ""))
