"""The seam between a set and its cluster, `SetClient`, and its implementation, `ClusterClient`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Protocol

from hortus.engine.applysets.identity import PART_OF
from hortus.kube import Client, Propagation
from hortus.kube.objects import Object, Resource

_PAGE = 50
"""Objects asked for at once where mostly the first decides."""


class SetClient(Protocol):
    """The calls that a set makes; `ClusterClient` makes them over `hortus.kube.Client`."""

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Object: ...

    async def apply(
        self, resource: Resource, obj: Object, *, field_manager: str, force: bool = True, dry_run: bool = False
    ) -> Object: ...

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        *,
        propagation: Propagation | None = None,
        uid: str = "",
        resource_version: str = "",
        dry_run: bool = False,
    ) -> Object: ...

    async def patch(self, resource: Resource, name: str, patch: Object, namespace: str = "") -> Object:
        """Merge `patch` into an object."""

    def listed(self, resource: Resource, namespace: str) -> AsyncIterator[Object]:
        """The metadata of all objects, page by page."""

    async def list_marked(self, resource: Resource, identity: str) -> list[Object]:
        """The metadata of all objects that are marked as part of that set."""

    async def until(self, resource: Resource, obj: Object, holds: Callable[[Object], bool]) -> None:
        """Return when `holds` is true of the cluster-scoped object, beginning after the given state of it."""

    async def until_gone(self, resource: Resource, obj: Object) -> None:
        """Return when the cluster-scoped object, which is given as it was last seen, is gone."""


class ClusterClient:
    """A cluster as sets see it: the management cluster, or one of a `hortus.engine.remote.RemotePool`."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.get, self.apply, self.delete = client.get, client.apply, client.delete
        self.patch = client.patch

    async def listed(self, resource: Resource, namespace: str) -> AsyncIterator[Object]:
        async for page in self.client.pages(resource, namespace, limit=_PAGE, metadata_only=True):
            for obj in page.items:
                yield obj

    async def list_marked(self, resource: Resource, identity: str) -> list[Object]:
        return (await self.client.list(resource, labels=f"{PART_OF}={identity}", metadata_only=True)).items

    async def until(self, resource: Resource, obj: Object, holds: Callable[[Object], bool]) -> None:
        await self._until(resource, obj, lambda kind, found: kind in ("ADDED", "MODIFIED") and holds(found))

    async def until_gone(self, resource: Resource, obj: Object) -> None:
        await self._until(resource, obj, lambda kind, found: kind == "DELETED")

    async def _until(self, resource: Resource, obj: Object, shown: Callable[[str, Object], bool]) -> None:
        metadata = obj["metadata"]
        watch = self.client.watch(resource, resource_version=metadata["resourceVersion"], name=metadata["name"])
        async with watch as events:
            async for event in events:
                if shown(event.type, event.object):
                    return
