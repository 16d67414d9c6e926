"""The Clusters of Cluster API, in a cache that follows them in whichever version the server has.

Cluster API served v1beta1 alone, then both versions, and will serve v1beta2 alone. Each list finds out which version is
served; when a version is dropped, the watch ends and the next list takes the other one. So nothing is to be configured,
and an upgrade of Cluster API needs no restart.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from typing import Final

from hortus.domains.stacks.capi import CLUSTERS, CapiCluster, read_cluster
from hortus.domains.stacks.names import ReleaseName, parse_either
from hortus.engine import Cache, Change, Manager, NotReadable
from hortus.engine.indexes import without_managed_fields
from hortus.engine.reflector import EventStream, ListerWatcher, Page
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, Resource

_ANY: Final = next(iter(CLUSTERS.values()))
"""Names the cache; requests name the version that is served."""
_RELEASE_INDEX: Final = "stack-release"


class _AnyVersion:
    """Lists and watches Clusters in the preferred version that is served."""

    def __init__(self, client: ListerWatcher) -> None:
        self._client = client
        self._served = _ANY

    async def pages(
        self, resource: Resource, namespace: str = "", labels: object = "", fields: object = "", limit: int = 500
    ) -> AsyncIterator[Page]:
        *preferred, last = CLUSTERS.values()
        for one in preferred:
            self._served = one
            with suppress(NotFound):
                async for page in self._client.pages(one, namespace, labels, fields, limit):
                    yield page
                return
        self._served = last
        async for page in self._client.pages(last, namespace, labels, fields, limit):
            yield page

    def watch(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        resource_version: str = "",
        labels: object = "",
        fields: object = "",
        bookmarks: bool = True,
        on_bookmark: Callable[[str], None] | None = None,
    ) -> EventStream:
        return self._client.watch(
            self._served,
            namespace,
            resource_version=resource_version,
            labels=labels,
            fields=fields,
            bookmarks=bookmarks,
            on_bookmark=on_bookmark,
        )


def cluster_cache(manager: Manager, client: ListerWatcher, *, namespace: str) -> Cache:
    """The cache of Clusters of a process, in both forms; to be made once."""
    cache = manager.caches_of(_AnyVersion(client)).get(_ANY, namespace=namespace, transform=without_managed_fields)
    cache.add_index(_RELEASE_INDEX, _release_of)
    return cache


def users_of(clusters: Cache, namespace: str, release: ReleaseName) -> list[CapiCluster]:
    """The Clusters, of any namespace, that use a release whose ClusterClass is in `namespace`."""
    return [read_cluster(obj) for obj in clusters.by(_RELEASE_INDEX, _value(namespace, release))]


def releases_in_use(clusters: Cache, namespace: str) -> set[ReleaseName]:
    """The releases of `namespace` that Clusters, of any namespace, use. Clusters with other classes are left out."""
    start = f"{namespace}/"
    used = (value.removeprefix(start) for value in clusters.values_of(_RELEASE_INDEX) if value.startswith(start))
    return {name for tag in used if (name := parse_either(tag)) is not None}


def use_ended(change: Change) -> bool:
    """Passes a change after which a release may have one user less, and each Cluster of a first list."""
    _, old, new, initial = change
    return initial or (old is not None and (new is None or _release_of(old) != _release_of(new)))


def series_value(namespace: str, series: tuple[str, str, tuple[int, int]]) -> str:
    """A series of releases in a namespace, as the value of an index."""
    provider, stack, (major, minor) = series
    return f"{namespace}/{provider}-{stack}-{major}-{minor}"


def series_of_user(cluster: Object) -> Iterable[str]:
    """The series of the release that a Cluster uses."""
    with suppress(NotReadable):
        found = read_cluster(cluster)
        if (name := release_of(found)) is not None:
            return (series_value(found.class_namespace, name.series),)
    return ()


def release_of(cluster: CapiCluster) -> ReleaseName | None:
    """The release that a Cluster uses; None without a topology, or with a class that is no name of a release."""
    return parse_either(cluster.class_name) if cluster.class_name else None


def _release_of(obj: Object) -> Iterable[str]:
    with suppress(NotReadable):
        cluster = read_cluster(obj)
        name = release_of(cluster)
        if name is not None:
            return (_value(cluster.class_namespace, name),)
    return ()


def _value(namespace: str, release: ReleaseName) -> str:
    return f"{namespace}/{release.tag}"
