"""Deletes the objects of CRDs in deletion, and accepts names that have become free."""

from __future__ import annotations

from collections.abc import Callable

import orjson

from hortus.apiserver.crds.conditions import CRD_GROUP, FINALIZER, PLURAL, SUFFIX, has_condition, set_condition
from hortus.apiserver.crds.kinds import stored_kind
from hortus.apiserver.keyqueue import KeyQueue
from hortus.apiserver.namespaces import SERVER
from hortus.apiserver.resources.context import OperationContext
from hortus.apiserver.resources.deletion import delete
from hortus.apiserver.resources.kind import Kind
from hortus.apiserver.resources.patching import modify
from hortus.apiserver.resources.scope import DeleteOptions, RequestScope, WriteOptions
from hortus.apiserver.store.backend import Commit, StoreKey
from hortus.kube.errors import ApiError, NotFound
from hortus.kube.objects import Object, format_time

_IN_PROGRESS = "InstanceDeletionInProgress"


class DefinitionController:
    """Deletes the objects of CRDs in deletion, and reconciles CRDs again whose names were taken."""

    def __init__(self, ctx: OperationContext) -> None:
        self._ctx = ctx
        self.queue: KeyQueue[StoreKey] = KeyQueue("custom-resources", ctx.clock, self._look_at, lambda key: key.cluster)
        ctx.storage.listen(self._changed)
        self._ending: dict[str, StoreKey] = {}
        """Buckets of objects to delete, and the CRD that waits for it."""

    async def start(self) -> None:
        await self.queue.start()
        await self._ctx.storage.survey(lambda record: self._seen(record.key, record.value), SUFFIX)

    async def stop(self) -> None:
        await self.queue.stop()

    def forget(self, cluster: str) -> None:
        prefix = f"{cluster}/"
        self._ending = {bucket: key for bucket, key in self._ending.items() if not bucket.startswith(prefix)}

    def _changed(self, change: Commit) -> None:
        if change.record is not None and not change.record.bucket.endswith(SUFFIX):
            return
        key = change.key
        if not key.bucket.endswith(SUFFIX):
            if key.bucket in self._ending:
                self.queue.add(self._ending[key.bucket])
        elif change.value is not None:
            self._seen(key, change.value)
        else:
            self._ending = {bucket: crd for bucket, crd in self._ending.items() if crd != key}
            self.queue.add(StoreKey(key.bucket, ""))

    def _seen(self, key: StoreKey, value: bytes) -> None:
        if b'"deletionTimestamp"' in value:
            self.queue.add(key)

    async def _look_at(self, key: StoreKey) -> None:
        cluster = key.cluster
        kind = await self._ctx.registry.find(cluster, CRD_GROUP, "v1", PLURAL)
        if kind is None:
            return
        if not key.name:
            await self._accept_waiting(cluster, kind)
            return
        record = await self._ctx.storage.get(key)
        if record is not None and b'"deletionTimestamp"' in record.value:
            await self._finish(cluster, kind, key, orjson.loads(record.value))

    async def _accept_waiting(self, cluster: str, kind: Kind) -> None:
        """Writes the CRDs that wait for the names of a deleted one; the write lets the strategy check the names
        again."""
        for record in (await self._ctx.storage.list(f"{cluster}/{SUFFIX}")).records:
            crd = orjson.loads(record.value)
            if not has_condition(crd, "NamesAccepted"):
                scope = RequestScope(cluster, kind, SERVER, "", crd["metadata"]["name"])
                await self._modify(scope, lambda obj: obj)

    async def _finish(self, cluster: str, kind: Kind, key: StoreKey, crd: Object) -> None:
        spec = crd["spec"]
        bucket = f"{cluster}/{spec['group']}/{spec['names']['plural']}"
        scope = RequestScope(cluster, kind, SERVER, "", crd["metadata"]["name"])
        await self._ctx.registry.load(cluster)
        if not self._ctx.registry.is_built_in(cluster, spec["group"], spec["names"]["plural"]):
            self._ending[bucket] = key
            await self._delete_instances(cluster, bucket, crd)
            if await self._ctx.storage.count(bucket):
                now = format_time(self._ctx.clock.now())
                if not _is_emptied(crd):
                    await self._modify(scope._replace(subresource="status"), lambda obj: _terminating(obj, now))
                return
            del self._ending[bucket]
        await self._modify(scope, _without_finalizer)

    async def _delete_instances(self, cluster: str, bucket: str, crd: Object) -> None:
        """Deletes all objects. Raises ApiError for those that failed, after trying all."""
        kind = self._ctx.registry.by_suffix(cluster, bucket.partition("/")[2]) or stored_kind(crd)
        refused: ApiError | None = None
        for record in (await self._ctx.storage.list(bucket)).records:
            namespace, _, name = record.name.partition("/")
            try:
                await delete(self._ctx, RequestScope(cluster, kind, SERVER, namespace, name), DeleteOptions())
            except NotFound:
                continue
            except ApiError as error:
                refused = error
        if refused is not None:
            raise refused

    async def _modify(self, scope: RequestScope, change: Callable[[Object], Object]) -> None:
        try:
            await modify(self._ctx, scope, change, WriteOptions(manager="kube-apiserver"))
        except NotFound:
            return


def _is_emptied(crd: Object) -> bool:
    """Reports whether the status already has the condition that its objects are being deleted."""
    conditions = crd.get("status", {}).get("conditions") or ()
    return any(each["type"] == "Terminating" and each["reason"] == _IN_PROGRESS for each in conditions)


def _terminating(obj: Object, now: str) -> Object:
    status = obj["status"] = dict(obj.get("status") or {})
    set_condition(status, "Terminating", ("True", _IN_PROGRESS, "CustomResource deletion is in progress"), now)
    return obj


def _without_finalizer(obj: Object) -> Object:
    finalizers = obj["metadata"].get("finalizers", ())
    obj["metadata"]["finalizers"] = [name for name in finalizers if name != FINALIZER]
    return obj
