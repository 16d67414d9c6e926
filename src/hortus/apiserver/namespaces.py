"""Namespaces: creation in them, the ones every cluster has, and their deletion.

A namespace is deleted in two steps (API Concepts; KEP-5080 keeps the order). Once it is marked, it accepts no new
objects, and all its content is deleted through the ordinary path, so that finalizers are honoured. When nothing is
left, its own finalizer `kubernetes` is removed and with it the namespace.
"""

from __future__ import annotations

from collections.abc import Callable

from hortus.apiserver.authn.identity import UserInfo
from hortus.apiserver.keyqueue import KeyQueue
from hortus.apiserver.resources.context import OperationContext
from hortus.apiserver.resources.deletion import delete
from hortus.apiserver.resources.failures import forbidden
from hortus.apiserver.resources.patching import modify
from hortus.apiserver.resources.scope import DeleteOptions, RequestScope, WriteOptions
from hortus.apiserver.resources.storage import Storage
from hortus.apiserver.store.backend import Commit, StoreKey
from hortus.kube.errors import ApiError, NotFound
from hortus.kube.objects import Object, format_time

NAMESPACES = "core/namespaces"
FINALIZER = "kubernetes"
_GONE_LIMIT = 1000
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


class NamespaceController:
    """Empties namespaces in deletion, then removes their finalizer."""

    def __init__(self, ctx: OperationContext) -> None:
        self._ctx = ctx
        self._ending: set[tuple[str, str]] = set()
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

    def forget(self, cluster: str) -> None:
        self._ending = {key for key in self._ending if key[0] != cluster}

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
        if not left:
            await self._change(scope, _without_finalizer)
        elif b"NamespaceContentRemaining" not in record.value:
            conditions = _remaining_conditions(left, format_time(ctx.clock.now()))
            await self._change(scope._replace(subresource="status"), lambda obj: _with_conditions(obj, conditions))

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


def _remaining_conditions(left: dict[str, int], now: str) -> list[Object]:
    """The conditions in the words of kube-controller-manager's namespace controller."""
    listed = ", ".join(f"{name} has {count} resource instances" for name, count in sorted(left.items()))
    said = [
        ("NamespaceDeletionDiscoveryFailure", "False", "ResourcesDiscovered", "All resources successfully discovered"),
        (
            "NamespaceDeletionContentFailure",
            "False",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        ("NamespaceContentRemaining", "True", "SomeResourcesRemain", f"Some resources are remaining: {listed}"),
        (
            "NamespaceFinalizersRemaining",
            "True",
            "SomeFinalizersRemain",
            "Some content in the namespace has finalizers remaining",
        ),
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
