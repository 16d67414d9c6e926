"""Looks at the items of a Leftover: in their cluster, in the garden, on the management cluster.

It reads single objects and changes none. An item counts as gone only when a server says that this very object is
missing: the kind is served, and the name is not there or belongs to an object with another uid. Items in a cluster that
does not answer are gone with it, when the garden has no Shoot of its name.
"""

from __future__ import annotations

from collections.abc import Iterable

from hortus.domains.clusters.types import RUNTIMES
from hortus.domains.credentials.types import GARDENER_CLUSTERS, GardenerCluster
from hortus.domains.leftovers.service import ASK_AGAIN, LOOK_AGAIN, Sight
from hortus.engine import Cache, TypedCache, metadata_of
from hortus.engine.kubeconfigs import SECRETS
from hortus.engine.leftovers import safe_text
from hortus.engine.leftovers.types import LeftoverCluster, LeftoverItem, LeftoverObject
from hortus.engine.remote import KubeconfigRef, MemberIdentity, RemotePool, RemoteUnavailable
from hortus.kube import Client
from hortus.kube.errors import ApiError, KubeError, NotFound, NotServed, TooManyRequests
from hortus.kube.objects import ObjectKey, Resource

SHOOTS = Resource("core.gardener.cloud", "v1beta1", "shoots", "Shoot")
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
_MANAGEMENT = (SECRETS, GARDENER_CLUSTERS, RUNTIMES)
"""Kinds that are read on the management cluster: the author of a Leftover cannot have us read others."""
_GARDEN = (SHOOTS, CONFIG_MAPS)
_INVISIBLE = "no API server shows it: look at the provider, remove it there, then acknowledge"
_ASK_THERE = "look in the cluster by its former kubeconfig, then acknowledge"
_CLOSED = Sight("Unknown", "there is no kubeconfig for its cluster: the GardenerCluster or its Secret is missing")


class ClusterWays:
    """The places of the kubeconfigs of clusters."""

    def __init__(self, clusters: TypedCache[GardenerCluster], kubeconfigs: Cache) -> None:
        """`kubeconfigs` holds the Secrets of GardenerClusters, without their values."""
        self._clusters = clusters
        self._kubeconfigs = kubeconfigs

    def place_of(self, cluster: LeftoverCluster) -> KubeconfigRef | None:
        """The place of a cluster's kubeconfig; None when there is none now.

        Only a Secret of the GardenerCluster itself, in its namespace: a Leftover cannot name one of another owner.
        """
        found = self._clusters.get(ObjectKey(cluster.namespace, cluster.name))
        if found is None or not found.is_at_home or cluster.shoot not in ("", found.shoot):
            return None
        secret = self._kubeconfigs.get(found.secret.object_key)
        if secret is None or found.metadata.uid not in [owner.uid for owner in metadata_of(secret).owner_references]:
            return None
        return KubeconfigRef(found.secret.namespace, found.secret.name, found.secret.key)


class ItemLookup:
    """Looks at items."""

    def __init__(
        self, client: Client, garden: Client, garden_namespace: str, *, shoots: Cache, pool: RemotePool
    ) -> None:
        self._client = client
        self._garden = garden
        self._garden_namespace = garden_namespace
        self._shoots = shoots
        self._pool = pool

    async def look(
        self, cluster: LeftoverCluster, place: KubeconfigRef | None, items: Iterable[LeftoverItem]
    ) -> dict[str, Sight]:
        """Each of these items as it is seen now, by its id. `place` is that of the cluster's kubeconfig."""
        sights: dict[str, Sight] = {}
        inside = []
        for item in items:
            if item.where == "Cluster":
                inside.append(item)
            else:
                sights[item.id] = await self._outside(item)
        return sights | await self._inside(cluster, place, inside)

    async def _outside(self, item: LeftoverItem) -> Sight:
        known = item.object
        if item.where == "Infrastructure" or known is None:
            return Sight("Unknown", _INVISIBLE)
        if item.where == "Garden":
            return await self._in_garden(known)
        if resource_of(known) not in _MANAGEMENT:
            return Sight("Unknown", f"objects of kind {known.kind} are not looked at here: look, then acknowledge")
        return await _seen(self._client, known)

    async def _in_garden(self, known: LeftoverObject) -> Sight:
        resource = resource_of(known)
        if resource not in _GARDEN or known.namespace != self._garden_namespace:
            return Sight("Unknown", "it is outside of the project: look there, then acknowledge")
        if resource == SHOOTS:
            return await _seen(self._garden, known)
        try:
            # The account may delete ConfigMaps of the project and may not read them.
            await self._garden.delete(resource, known.name, known.namespace, dry_run=True)
        except KubeError as error:
            return _failed(error)
        return Sight("Left", after=LOOK_AGAIN)

    async def _inside(
        self, cluster: LeftoverCluster, place: KubeconfigRef | None, items: list[LeftoverItem]
    ) -> dict[str, Sight]:
        if not items:
            return {}
        sights = await self._entered(cluster, place, items) if place else {item.id: _CLOSED for item in items}
        if all(sight.state != "Unknown" for sight in sights.values()):
            return sights
        if not cluster.shoot or not await self._shoot_is_gone(cluster.shoot):
            return sights
        gone = Sight("Gone", f"its cluster is gone: the garden has no Shoot {cluster.shoot}")
        return {name: gone if sight.state == "Unknown" else sight for name, sight in sights.items()}

    async def _entered(
        self, cluster: LeftoverCluster, place: KubeconfigRef, items: list[LeftoverItem]
    ) -> dict[str, Sight]:
        """Items as their cluster shows them."""
        sights: dict[str, Sight] = {}
        remote = self._pool.at(place)
        for item in items:
            sights[item.id] = sight = await _seen(remote, item.object) if item.object else Sight("Unknown")
            if (verdict := _judged(cluster, self._pool.identity(place))) is not None:
                return {one.id: verdict for one in items}
            if sight.state == "Unknown":
                # The cluster does not answer well: the others wait for the same.
                return sights | {one.id: sight for one in items if one.id not in sights}
        return sights

    async def _shoot_is_gone(self, name: str) -> bool:
        """True when the garden itself says so; the watch saves the question while it shows the Shoot."""
        if self._shoots.has_synced and self._shoots.get(ObjectKey(self._garden_namespace, name)) is not None:
            return False
        try:
            await self._garden.get(SHOOTS, name, self._garden_namespace, metadata_only=True)
        except NotServed:
            return False
        except NotFound:
            return True
        except KubeError:
            return False
        return False


def _judged(cluster: LeftoverCluster, found: MemberIdentity) -> Sight | None:
    """The state of all items where the cluster of the debt is not the one that answers now; None where it is.

    A uid is the word of the one who answers: only at the address of the debt does another one mean that its cluster is
    gone. The same uid at another address behind other authorities may be an impostor's.
    """
    if not found.address:
        return None  # it has not answered
    moved = cluster.address not in ("", found.address)
    if cluster.identity and found.uid and cluster.identity != found.uid:
        if not moved:
            return Sight("Gone", "its cluster is gone: another one answers under its name")
        return Sight("Unknown", f"another cluster answers under its name, at another address: {_ASK_THERE}")
    if moved and cluster.authority != found.authority:
        return Sight("Unknown", f"nothing but the uid says that its cluster has moved: {_ASK_THERE}")
    return None


async def _seen(client: Client, known: LeftoverObject) -> Sight:
    """One object as its server shows it."""
    try:
        found = metadata_of(await client.get(resource_of(known), known.name, known.namespace, metadata_only=True))
    except (KubeError, ValueError) as error:
        return _failed(error)
    if known.uid and found.uid != known.uid:
        return Sight("Gone", "another object has its name")
    held = "it is being deleted, and its finalizers hold it" if found.deletion_timestamp else ""
    return Sight("Left", held, LOOK_AGAIN)


def _failed(error: Exception) -> Sight:
    if isinstance(error, NotFound) and not isinstance(error, NotServed):
        return Sight("Gone", "the server has no such object")
    if isinstance(error, RemoteUnavailable):
        return Sight("Unknown", safe_text(str(error)))  # the pool reports the state that follows
    refused = isinstance(error, ApiError) and error.http_code < 500 and not isinstance(error, TooManyRequests)
    again = LOOK_AGAIN if refused or not isinstance(error, KubeError) else ASK_AGAIN
    return Sight("Unknown", safe_text(str(error)), again)


def resource_of(known: LeftoverObject) -> Resource:
    """The resource of an item."""
    return Resource(known.group, known.version, known.resource, known.kind, bool(known.namespace))
