"""Namespaces: creation in them, the ones every cluster has, and their deletion.

A namespace is deleted in two steps (API Concepts; KEP-5080 keeps the order). Once it is marked, it accepts no new
objects, and all its content is deleted through the ordinary path, so that finalizers are honoured. When nothing is
left, its own finalizer `kubernetes` is removed and with it the namespace.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, Protocol

import orjson

from hortus.apiserver.authn.identity import UserInfo
from hortus.apiserver.keyqueue import KeyQueue
from hortus.apiserver.resources.context import OperationContext
from hortus.apiserver.resources.deletion import delete
from hortus.apiserver.resources.failures import forbidden
from hortus.apiserver.resources.patching import modify
from hortus.apiserver.resources.scope import DeleteOptions, RequestScope, WriteOptions
from hortus.apiserver.resources.storage import Storage
from hortus.apiserver.store.backend import Commit, StoreKey
from hortus.kube.clock import Timer
from hortus.kube.errors import ApiError, NotFound
from hortus.kube.objects import Object, format_time

NAMESPACES = "core/namespaces"
FINALIZER = "kubernetes"
_GONE_LIMIT = 1000
_AGAIN = 2.0
"""Seconds after which a namespace with content of other servers is reconciled again."""
SERVER = UserInfo(username="system:apiserver", groups=("system:masters",))
"""The user of the server's own writes."""


class NamespaceStates:
    """The namespaces that accept new objects; active ones are cached until they change."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._living: set[tuple[str, str]] = set()
        storage.listen(self._changed, NAMESPACES)

    async def check(self, scope: RequestScope) -> None:
        cluster, namespace = scope.cluster, scope.namespace
        if (cluster, namespace) in self._living:
            return
        record = await self._storage.get(StoreKey(f"{cluster}/{NAMESPACES}", f"/{namespace}"))
        if record is None:
            raise NotFound(f'namespaces "{namespace}" not found', details={"name": namespace, "kind": "namespaces"})
        if b'"deletionTimestamp"' in record.value:
            raise _terminating(scope)
        self._living.add((cluster, namespace))

    def forget(self, cluster: str) -> None:
        self._living = {key for key in self._living if key[0] != cluster}

    def _changed(self, change: Commit) -> None:
        key = change.key
        self._living.discard((key.cluster, key.name[1:]))


class RemoteLeft(NamedTuple):
    """The content of a namespace that other servers have: what is left, by group and plural, which versions could not
    be discovered, and why objects could not be deleted."""

    left: Mapping[str, int] = MappingProxyType({})
    unknown: Sequence[str] = ()
    failed: Mapping[str, str] = MappingProxyType({})


class RemoteNamespaces(Protocol):
    """The content of namespaces that other servers have."""

    async def delete(self, cluster: str, namespace: str) -> RemoteLeft:
        """Deletes the objects of a namespace."""


class NamespaceController:
    """Empties namespaces in deletion, then removes their finalizer."""

    def __init__(self, ctx: OperationContext, remote: RemoteNamespaces) -> None:
        self._ctx = ctx
        self._remote = remote
        self._ending: set[tuple[str, str]] = set()
        self._timers: dict[tuple[str, str], Timer] = {}
        """The next look at namespaces with content of other servers."""
        self._gone: dict[tuple[str, str], None] = {}
        """Namespaces that were removed recently: another server on the same store may have admitted an object at that
        moment."""
        self.queue: KeyQueue[tuple[str, str]] = KeyQueue("namespaces", ctx.clock, self._empty, lambda key: key[0])
        ctx.storage.listen(self._changed)

    async def start(self) -> None:
        await self.queue.start()
        await self._ctx.storage.survey(lambda each: self._seen(each.bucket, each.name, each.value), NAMESPACES)

    async def stop(self) -> None:
        await self.queue.stop()
        for key in list(self._timers):
            self._cancel(key)

    def forget(self, cluster: str) -> None:
        self._ending = {key for key in self._ending if key[0] != cluster}
        for key in [key for key in self._timers if key[0] == cluster]:
            self._cancel(key)

    def _cancel(self, key: tuple[str, str]) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()

    def _changed(self, change: Commit) -> None:
        if change.record is not None and not change.record.bucket.endswith(NAMESPACES):
            if change.replaced is None and self._gone:
                late = (change.record.bucket.partition("/")[0], change.record.name.partition("/")[0])
                if late in self._gone:
                    self.queue.add(late)
            return
        bucket, name = change.key
        if bucket.endswith(f"/{NAMESPACES}"):
            if change.value is None:
                self._went((bucket.partition("/")[0], name[1:]))
            else:
                self._seen(bucket, name, change.value)
        elif change.value is None and self._ending:
            key = (bucket.partition("/")[0], name.partition("/")[0])
            if key in self._ending:
                self.queue.add(key)

    def _went(self, key: tuple[str, str]) -> None:
        self._ending.discard(key)
        self._gone[key] = None
        if len(self._gone) > _GONE_LIMIT:
            del self._gone[next(iter(self._gone))]

    def _seen(self, bucket: str, name: str, value: bytes) -> None:
        if self._gone:
            self._gone.pop((bucket.partition("/")[0], name[1:]), None)
        if b'"deletionTimestamp"' in value:
            key = (bucket.partition("/")[0], name[1:])
            self._ending.add(key)
            self.queue.add(key)

    async def _empty(self, key: tuple[str, str]) -> None:
        cluster, namespace = key
        ctx = self._ctx
        await ctx.registry.load(cluster)
        kind = await ctx.registry.find(cluster, "", "v1", "namespaces")
        if kind is None:
            return
        scope = RequestScope(cluster, kind, SERVER, "", namespace, "finalize")
        record = await ctx.storage.get(scope.key)
        if record is None:
            await self._delete_content(cluster, namespace)
            return
        if b'"deletionTimestamp"' not in record.value:
            return
        left = await self._delete_content(cluster, namespace)
        elsewhere = await self._remote.delete(cluster, namespace)
        left.update(elsewhere.left)
        if not left and not elsewhere.unknown and not elsewhere.failed:
            await self._change(scope, _without_finalizer)
            return
        conditions = _remaining_conditions(left, elsewhere, format_time(ctx.clock.now()))
        if not _has_conditions(orjson.loads(record.value), conditions):
            await self._change(scope._replace(subresource="status"), lambda obj: _with_conditions(obj, conditions))
        if any(elsewhere):
            # Nothing here hears of it when another server's objects are gone.
            self._cancel(key)
            self._timers[key] = ctx.clock.call_later(_AGAIN, lambda: self._again(key))

    def _again(self, key: tuple[str, str]) -> None:
        self._timers.pop(key, None)
        if key in self._ending:
            self.queue.add(key)

    async def _change(self, scope: RequestScope, change: Callable[[Object], Object]) -> None:
        try:
            await modify(self._ctx, scope, change, WriteOptions(manager="namespace-controller"))
        except NotFound:
            return

    async def _delete_content(self, cluster: str, namespace: str) -> dict[str, int]:
        """Deletes every object; returns the number of remaining ones by group and plural.

        Raises ApiError for those that failed, after trying all.
        """
        left: dict[str, int] = {}
        ctx = self._ctx
        refused: ApiError | None = None
        for bucket in await ctx.storage.buckets(f"{cluster}/"):
            kind = ctx.registry.by_suffix(cluster, bucket.partition("/")[2])
            if kind is None or not kind.resource.namespaced:
                continue
            for record in (await ctx.storage.list(bucket, prefix=f"{namespace}/")).records:
                name = record.name.partition("/")[2]
                if b'"deletionTimestamp"' not in record.value:
                    try:
                        await delete(
                            ctx, RequestScope(cluster, kind, SERVER, namespace, name), DeleteOptions(grace_period=0)
                        )
                    except NotFound:
                        continue
                    except ApiError as error:
                        refused = error
            remaining = len((await ctx.storage.list(bucket, prefix=f"{namespace}/")).records)
            if remaining:
                left[kind.group_resource] = remaining
        if refused is not None:
            raise refused
        return left


def _without_finalizer(obj: Object) -> Object:
    finalizers = obj.get("spec", {}).get("finalizers", ())
    obj["spec"] = {**obj.get("spec", {}), "finalizers": [name for name in finalizers if name != FINALIZER]}
    return obj


def _with_conditions(obj: Object, conditions: list[Object]) -> Object:
    obj["status"] = {**obj.get("status", {}), "conditions": conditions}
    return obj


def _has_conditions(obj: Object, conditions: list[Object]) -> bool:
    """Reports whether the namespace shows these types with these statuses."""
    shown = {each.get("type"): each.get("status") for each in obj.get("status", {}).get("conditions") or ()}
    return shown == {each["type"]: each["status"] for each in conditions}


def _remaining_conditions(left: Mapping[str, int], elsewhere: RemoteLeft, now: str) -> list[Object]:
    """The conditions in the words of kube-controller-manager's namespace controller."""
    listed = ", ".join(f"{name} has {count} resource instances" for name, count in sorted(left.items()))
    discovered = ("False", "ResourcesDiscovered", "All resources successfully discovered")
    if elsewhere.unknown:
        unknown = f"unable to retrieve the complete list of server APIs: {', '.join(elsewhere.unknown)}"
        message = f"Discovery failed for some groups, {len(elsewhere.unknown)} failing: {unknown}"
        discovered = ("True", "DiscoveryFailed", message)
    deleted = ("False", "ContentDeleted", "All content successfully deleted, may be waiting on finalization")
    if elsewhere.failed:
        failed = ", ".join(f"{name}: {problem}" for name, problem in sorted(elsewhere.failed.items()))
        message = f"Failed to delete all resource types, {len(elsewhere.failed)} remaining: {failed}"
        deleted = ("True", "ContentDeletionFailed", message)
    remaining = ("True", "SomeResourcesRemain", f"Some resources are remaining: {listed}")
    finalizers = ("True", "SomeFinalizersRemain", "Some content in the namespace has finalizers remaining")
    if not left:
        remaining = ("False", "ContentRemoved", "All content successfully removed")
        finalizers = ("False", "ContentHasNoFinalizers", "All content-preserving finalizers finished")
    said = [
        ("NamespaceDeletionDiscoveryFailure", *discovered),
        ("NamespaceDeletionContentFailure", *deleted),
        ("NamespaceContentRemaining", *remaining),
        ("NamespaceFinalizersRemaining", *finalizers),
    ]
    return [
        {"type": type_, "status": status, "lastTransitionTime": now, "reason": reason, "message": message}
        for type_, status, reason, message in said
    ]


def _terminating(scope: RequestScope) -> Exception:
    message = f"unable to create new content in namespace {scope.namespace} because it is being terminated"
    cause = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {scope.namespace} is being terminated",
        "field": "metadata.namespace",
    }
    return forbidden(scope.kind, scope.name, message, causes=[cause])
