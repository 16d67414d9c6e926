"""The API of one logical cluster from inside the process, with the same rules as over the wire.

For strategies, subresource handlers and the parts of this server: no socket and no authorization (the caller names the
user), everything else as for any client: validation, conflicts, managed fields, watches.
"""

from __future__ import annotations

from collections.abc import Callable

import orjson

from hortus.apiserver.authn.identity import UserInfo
from hortus.apiserver.resources import deletion, patching, reading, writing
from hortus.apiserver.resources.context import OperationContext
from hortus.apiserver.resources.scope import DeleteOptions, Preconditions, RequestScope, WriteOptions
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, Resource
from hortus.kube.patches import apply_merge_patch


class Local:
    """`manager` is the field manager of all writes."""

    def __init__(self, ctx: OperationContext, cluster: str, user: UserInfo, manager: str) -> None:
        self._ctx = ctx
        self._cluster = cluster
        self._user = user
        self._options = WriteOptions(manager=manager)

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Object:
        """Raises NotFound."""
        found: Object = orjson.loads(await reading.get(self._ctx, await self._scope(resource, namespace, name), {}))
        return found

    async def find(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        try:
            return await self.get(resource, name, namespace)
        except NotFound:
            return None

    async def list(
        self, resource: Resource, namespace: str = "", *, labels: str = "", fields: str = ""
    ) -> list[Object]:
        query = {"labelSelector": labels, "fieldSelector": fields}
        listing = await reading.collect(self._ctx, await self._scope(resource, namespace), query)
        return [orjson.loads(value) for value in listing.values]

    async def create(self, resource: Resource, obj: Object) -> Object:
        """Raises AlreadyExists, Invalid, NotFound (the namespace)."""
        scope = await self._scope(resource, obj["metadata"].get("namespace", ""))
        outcome = await writing.create(self._ctx, scope, orjson.loads(orjson.dumps(obj)), self._options)
        return _object(outcome.body)

    async def replace(self, resource: Resource, obj: Object, *, subresource: str = "") -> Object:
        metadata = obj["metadata"]
        scope = await self._scope(resource, metadata.get("namespace", ""), metadata["name"], subresource)
        outcome = await writing.replace(self._ctx, scope, orjson.loads(orjson.dumps(obj)), self._options)
        return _object(outcome.body)

    async def patch(
        self, resource: Resource, name: str, patch: Object, namespace: str = "", *, subresource: str = ""
    ) -> Object:
        """Applies the merge patch `patch` (RFC 7386)."""
        return await self.modify(
            resource, name, lambda obj: apply_merge_patch(obj, patch), namespace, subresource=subresource
        )

    async def modify(
        self,
        resource: Resource,
        name: str,
        change: Callable[[Object], Object],
        namespace: str = "",
        *,
        subresource: str = "",
    ) -> Object:
        """Writes the result of `change` for the current object; calls `change` again when another writer was first."""
        scope = await self._scope(resource, namespace, name, subresource)
        outcome = await patching.modify(self._ctx, scope, change, self._options)
        return _object(outcome.body)

    async def apply(self, resource: Resource, obj: Object, *, force: bool = True, subresource: str = "") -> Object:
        """Server-side apply; the object holds all fields of this manager."""
        metadata = obj["metadata"]
        scope = await self._scope(resource, metadata.get("namespace", ""), metadata["name"], subresource)
        intent: Object = orjson.loads(orjson.dumps(obj))
        outcome = await patching.apply(self._ctx, scope, intent, self._options._replace(force=force))
        return _object(outcome.body)

    async def delete(
        self, resource: Resource, name: str, namespace: str = "", *, uid: str = "", propagation: str = ""
    ) -> None:
        """Raises NotFound, Conflict (another uid)."""
        options = DeleteOptions(preconditions=Preconditions(uid=uid or None), propagation=propagation)
        await deletion.delete(self._ctx, await self._scope(resource, namespace, name), options)

    async def _scope(self, resource: Resource, namespace: str, name: str = "", subresource: str = "") -> RequestScope:
        kind = await self._ctx.registry.find(self._cluster, resource.group, resource.version, resource.plural)
        if kind is None:
            raise NotFound(f"{resource.plural}.{resource.group} {resource.version} is not served in {self._cluster}")
        return RequestScope(self._cluster, kind, self._user, namespace, name, subresource)


def _object(body: bytes) -> Object:
    found: Object = orjson.loads(body)
    return found
