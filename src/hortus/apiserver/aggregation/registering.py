"""APIServices of the groups that CRDs and extensions define in a logical cluster, as kube-apiserver writes them.

Owns the APIServices with the label `kube-aggregator.kubernetes.io/automanaged: "true"`: there is one for each served
version, its spec is put right when it has been changed, and it goes with its version. One without the label belongs to
whom wrote it, also where it leads the version to another server. Those of the built-in groups are born with a cluster
(`registrations.own_registrations`).
"""

from __future__ import annotations

import logging

import orjson

from hortus.apiserver.keyqueue import KeyQueue
from hortus.apiserver.namespaces import SERVER
from hortus.apiserver.registrations import API_GROUP, MANAGED, SUFFIX, registration
from hortus.apiserver.resources.context import OperationContext
from hortus.apiserver.resources.deletion import delete
from hortus.apiserver.resources.kind import Kind
from hortus.apiserver.resources.patching import modify
from hortus.apiserver.resources.scope import DeleteOptions, Preconditions, RequestScope, WriteOptions
from hortus.apiserver.resources.writing import create
from hortus.apiserver.store.backend import Commit
from hortus.kube.errors import AlreadyExists, Conflict, Forbidden, NotFound
from hortus.kube.objects import Object

_OPTIONS = WriteOptions(manager="kube-apiserver")
_ALWAYS = "true"

_log = logging.getLogger("hortus.apiserver.aggregation")


class RegistrationController:
    def __init__(self, ctx: OperationContext) -> None:
        self._ctx = ctx
        self.queue: KeyQueue[str] = KeyQueue("apiservice-registration", ctx.clock, self._register, str)
        ctx.registry.on_defined(self.queue.add)
        ctx.storage.listen(self._changed, SUFFIX)

    async def start(self) -> None:
        await self.queue.start()

    async def stop(self) -> None:
        await self.queue.stop()

    def _changed(self, change: Commit) -> None:
        managed = f'"{MANAGED}":"{_ALWAYS}"'.encode()
        if any(value is not None and managed in value for value in (change.value, change.previous)):
            self.queue.add(change.key.cluster)

    async def _register(self, cluster: str) -> None:
        registry = self._ctx.registry
        kind = await registry.find(cluster, API_GROUP, "v1", "apiservices")
        if kind is None:
            return
        await registry.load(cluster)
        wanted = {
            f"{version}.{group}": registration(group, version, managed=_ALWAYS)
            for group, version in registry.own_versions(cluster)
        }
        for record in (await self._ctx.storage.list(f"{cluster}/{SUFFIX}")).records:
            name = record.name.lstrip("/")
            present = orjson.loads(record.value)
            if present["metadata"].get("labels", {}).get(MANAGED) == _ALWAYS:
                await self._put_right(cluster, kind, present, wanted.get(name))
            wanted.pop(name, None)
        for obj in wanted.values():
            await self._create(cluster, kind, obj)

    async def _put_right(self, cluster: str, kind: Kind, present: Object, wanted: Object | None) -> None:
        metadata = present["metadata"]
        scope = RequestScope(cluster, kind, SERVER, "", metadata["name"])
        try:
            if wanted is None:
                seen = Preconditions(uid=metadata["uid"])
                await delete(self._ctx, scope, DeleteOptions(preconditions=seen))
            elif present["spec"] != wanted["spec"]:
                await modify(self._ctx, scope, lambda obj: {**obj, "spec": dict(wanted["spec"])}, _OPTIONS)
        except (NotFound, Conflict):
            return

    async def _create(self, cluster: str, kind: Kind, obj: Object) -> None:
        try:
            await create(self._ctx, RequestScope(cluster, kind, SERVER), obj, _OPTIONS)
        except AlreadyExists:
            return
        except Forbidden as error:
            name = obj["metadata"]["name"]
            _log.warning("an APIService is not written", extra={"object": name, "error": error.message})
