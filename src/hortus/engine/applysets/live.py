"""Live objects: from caches that a watch keeps current, else from the server."""

from __future__ import annotations

from functools import cache
from typing import Protocol

from hortus.engine.applysets.identity import PART_OF
from hortus.engine.cache import Cache, Transform
from hortus.engine.caches import Caches
from hortus.engine.indexes import managed_fields_of
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, ObjectKey, Resource


class Live(Protocol):
    """The source of live objects that a set compares with."""

    async def get(self, resource: Resource, namespace: str, name: str) -> Object | None:
        """The object as it is, read only, or None. Raises KubeError."""

    def learn(self, resource: Resource, obj: Object) -> None:
        """The server's answer to a write."""


class LiveReader(Protocol):
    """The part of `hortus.kube.Client` that reading uses."""

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Object: ...


class ServerLive:
    """Asks the server for each object: one GET each, for sets that are applied now and then."""

    def __init__(self, client: LiveReader) -> None:
        self._client = client

    async def get(self, resource: Resource, namespace: str, name: str) -> Object | None:
        try:
            return await self._client.get(resource, name, namespace)
        except NotFound:
            return None

    def learn(self, resource: Resource, obj: Object) -> None:
        """Has no effect: the server is asked again."""


class WatchedLive:
    """Watches the members of sets, so that a set at rest costs no call.

    What the watch does not show, since it is new, not ours, or the first list is not complete, is asked of the server.
    `caches` are those of the cluster that the set is applied to, and end its watches: one for each kind. With an
    `identity` only the members of that set are watched; without one those of all sets, for many sets in one cluster.
    """

    def __init__(
        self,
        client: LiveReader,
        caches: Caches,
        *,
        field_manager: str,
        identity: str = "",
        labels: str = "",
        namespace: str = "",
    ) -> None:
        """`labels` selects the members of sets that another label marks, `namespace` those of one namespace."""
        self._server = ServerLive(client)
        self._caches = caches
        self._labels = labels or (f"{PART_OF}={identity}" if identity else PART_OF)
        self._namespace = namespace
        self._transform = _thinned(field_manager)
        self._seen: set[Resource] = set()

    async def get(self, resource: Resource, namespace: str, name: str) -> Object | None:
        if resource in self._seen:
            cache = self.cache(resource)
            found = cache.get(ObjectKey(namespace, name)) if cache.has_synced else None
            if found is not None:
                return found
        found = await self._server.get(resource, namespace, name)
        if found is not None:
            self.cache(resource)  # the kind is served, which before its definition it is not
        return found

    def learn(self, resource: Resource, obj: Object) -> None:
        self.cache(resource).learn(obj)

    def cache(self, resource: Resource) -> Cache:
        """The members of that kind; a `Watch` on it reports drift to a controller at once."""
        self._seen.add(resource)
        namespace = self._namespace if resource.namespaced else ""
        return self._caches.get(resource, namespace=namespace, labels=self._labels, transform=self._transform)


@cache
def _thinned(field_manager: str) -> Transform:
    """One transform for each manager: sets that share it share their caches."""
    return managed_fields_of(field_manager)
