"""What is there now: from caches that a watch keeps current, else from the server."""

from __future__ import annotations

from typing import Protocol

from hortus.engine.applysets.identity import PART_OF
from hortus.engine.cache import Cache
from hortus.engine.caches import Caches
from hortus.engine.indexes import managed_fields_of
from hortus.engine.within import within
from hortus.kube.clock import Clock
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, ObjectKey, Resource


class Live(Protocol):
    """Where a set looks before it acts."""

    async def get(self, resource: Resource, namespace: str, name: str) -> Object | None:
        """The object as it is, read only, or None. Raises KubeError."""

    def learn(self, resource: Resource, obj: Object) -> None:
        """The server's answer to a write."""


class LiveReader(Protocol):
    """What looking needs of `hortus.kube.Client`."""

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
        """Nothing: the server is asked again."""


class WatchedLive:
    """Watches the members of one set, so that a set at rest costs no call.

    What the watch does not show, since it is new or not ours, is asked of the server. `caches` are those of the cluster
    that the set is applied to; theirs is also the life of the watches: one for each kind of the set.
    """

    def __init__(
        self,
        client: LiveReader,
        caches: Caches,
        *,
        identity: str,
        field_manager: str,
        clock: Clock,
        patience: float = 10.0,
    ) -> None:
        """`patience` is in seconds: how long a first list is waited for before the server is asked directly."""
        self._server = ServerLive(client)
        self._caches = caches
        self._labels = f"{PART_OF}={identity}"
        self._transform = managed_fields_of(field_manager)
        self._clock = clock
        self._patience = patience

    async def get(self, resource: Resource, namespace: str, name: str) -> Object | None:
        cache = self.cache(resource)
        if not cache.has_synced:
            try:
                await within(self._clock, self._patience, cache.synced())
            except TimeoutError:
                return await self._server.get(resource, namespace, name)
        found = cache.get(ObjectKey(namespace, name))
        return found if found is not None else await self._server.get(resource, namespace, name)

    def learn(self, resource: Resource, obj: Object) -> None:
        self.cache(resource).learn(obj)

    def cache(self, resource: Resource) -> Cache:
        """The members of that kind; a `Watch` on it tells a controller of drift at once."""
        return self._caches.get(resource, labels=self._labels, transform=self._transform)
