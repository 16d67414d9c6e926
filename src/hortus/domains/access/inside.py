"""The objects of requests in their clusters: one set a request, whose inventory lies in the request's status.

The objects are followed by watches, one for each kind that is written there, in each cluster for which there is a
request. So a role edited by hand and a deleted binding are repaired at once, and a request at rest costs no call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hortus.domains.access.manifests import KINDS
from hortus.domains.access.types import MANAGER, Label
from hortus.engine import Cache, Selection, managed_fields_of, metadata_of
from hortus.engine.applysets import (
    NO_ADOPTION,
    ApplySet,
    ClusterClient,
    Conflicts,
    KnownKinds,
    Parent,
    Policy,
    ServerLive,
)
from hortus.engine.remote import KubeconfigRef, RemotePool, RemoteWatch
from hortus.kube import Client
from hortus.kube.clock import Clock
from hortus.kube.objects import Object, ObjectKey, Resource, key_of

_POLICY = Policy(conflicts=Conflicts.FORCE, adopt=NO_ADOPTION)
_KINDS = KnownKinds(KINDS)


class _Seen:
    """The objects in one cluster: from the watches, from the server where they do not show one."""

    def __init__(self, client: Client, watches: dict[Resource, RemoteWatch], member: ObjectKey) -> None:
        self._server = ServerLive(client)
        self._watches = watches
        self._member = member

    async def get(self, resource: Resource, namespace: str, name: str) -> Object | None:
        cache = self._cache(resource)
        found = cache.get(ObjectKey(namespace, name)) if cache is not None else None
        return found if found is not None else await self._server.get(resource, namespace, name)

    def learn(self, resource: Resource, obj: Object) -> None:
        cache = self._cache(resource)
        if cache is not None:
            cache.learn(obj)

    def _cache(self, resource: Resource) -> Cache | None:
        """The cache of the watch; None while it is not current, as when it waits for a connection."""
        watch = self._watches[resource]
        cache = watch.cache(self._member)
        return cache if cache is not None and cache.has_synced and watch.problem(self._member) is None else None


class Clusters:
    """The clusters for which there are requests, the watches in them, and the sets of the requests' objects."""

    def __init__(self, pool: RemotePool, *, clock: Clock) -> None:
        self.pool = pool
        self._clock = clock
        self._members = Cache("clusters with requests")
        self._members.replace((), 0)
        self._places: dict[ObjectKey, KubeconfigRef] = {}
        self._users: dict[ObjectKey, set[ObjectKey]] = {}
        self._member_of: dict[ObjectKey, ObjectKey] = {}
        self._accesses_of: Callable[[str], Iterable[ObjectKey]] = lambda mark: ()
        labels = f"{Label.REQUEST},{Label.MANAGED_BY}={MANAGER}"
        transform = managed_fields_of(MANAGER)
        self.watches = {
            resource: RemoteWatch(
                pool,
                self._members,
                place=lambda member: self._places.get(key_of(member)),
                selection=Selection(resource, labels=labels),
                transform=transform,
                to=self._concerned,
            )
            for resource in KINDS
        }

    def route(self, accesses_of: Callable[[str], Iterable[ObjectKey]]) -> None:
        """Set the function that finds the requests of a mark."""
        self._accesses_of = accesses_of

    def users_of(self, place: KubeconfigRef) -> Iterable[ObjectKey]:
        """The requests for the cluster whose kubeconfig lies there."""
        for cluster, known in tuple(self._places.items()):
            if known == place:
                yield from self._users.get(cluster, ())

    def enter(self, access: ObjectKey, cluster: ObjectKey, place: KubeconfigRef) -> None:
        """Watch `cluster` for `access`, from now on."""
        if self._member_of.get(access, cluster) != cluster:
            self.leave(access)
        self._member_of[access] = cluster
        self._users.setdefault(cluster, set()).add(access)
        self._places[cluster] = place
        version = "/".join(place)
        self._members.put(
            {"metadata": {"namespace": cluster.namespace, "name": cluster.name, "resourceVersion": version}}
        )

    def leave(self, access: ObjectKey) -> None:
        """Release the cluster of `access`, which is gone or has nothing there; without users it is not watched."""
        cluster = self._member_of.pop(access, None)
        if cluster is None:
            return
        users = self._users[cluster]
        users.discard(access)
        if not users:
            del self._users[cluster]
            self._members.drop(cluster)
            self._places.pop(cluster, None)

    def shed(self, holds: Callable[[ObjectKey], bool]) -> None:
        """Release the clusters of requests that have become another replica's."""
        for access in [access for access in self._member_of if not holds(access)]:
            self.leave(access)

    def set_of(self, parent: Parent, cluster: ObjectKey, place: KubeconfigRef) -> ApplySet:
        """The set of one request's objects in `cluster`."""
        client = self.pool.at(place)
        return ApplySet(
            ClusterClient(client),
            parent,
            kinds=_KINDS,
            live=_Seen(client, self.watches, cluster),
            field_manager=MANAGER,
            policy=_POLICY,
            clock=self._clock,
        )

    def _concerned(self, member: ObjectKey, obj: Object) -> Iterable[ObjectKey]:
        mark = metadata_of(obj).labels.get(Label.REQUEST, "")
        return [key for key in self._accesses_of(mark) if self._member_of.get(key) == member]
