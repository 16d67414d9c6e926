"""The clusters that have agents: the way into each, the watches of its workloads, and the set of its objects.

Two watches a cluster, of DaemonSets and of Deployments, both by the label of our manager: what is kept of an object is
its metadata and its status. All other objects are compared when the agent is applied again. A cluster that an agent
leaves has one watch more, of the agent's namespace, until that is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from hortus.domains.agents.builders.metadata import MANAGED_BY_LABEL, MANAGER
from hortus.domains.agents.fleet.adoption import MemberAdoption
from hortus.domains.agents.fleet.workloads import (
    DAEMON_SETS,
    DEPLOYMENTS,
    AgentWorkloads,
    Generations,
    matters,
    outline,
    workloads_of,
)
from hortus.domains.agents.names import CERTIFICATES
from hortus.domains.agents.types import AgentPlacement
from hortus.domains.inventory.types import ClusterProfile, secret_of
from hortus.engine import Cache, Selection, metadata_of, without_managed_fields
from hortus.engine.applysets import (
    PART_OF,
    ApplySet,
    ClusterClient,
    Conflicts,
    KnownKinds,
    Parent,
    Policy,
    ServerLive,
)
from hortus.engine.remote import KubeconfigRef, RemotePool, RemoteWatch
from hortus.engine.sources import Source
from hortus.kube import Client
from hortus.kube.clock import Clock
from hortus.kube.objects import Object, ObjectKey, Resource, key_of

NAMESPACES: Final = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
_RBAC: Final = "rbac.authorization.k8s.io"
KINDS: Final = (
    NAMESPACES,
    Resource("", "v1", "configmaps", "ConfigMap"),
    Resource("", "v1", "secrets", "Secret"),
    Resource("", "v1", "services", "Service"),
    Resource("", "v1", "serviceaccounts", "ServiceAccount"),
    DAEMON_SETS,
    DEPLOYMENTS,
    Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget"),
    Resource(_RBAC, "v1", "clusterroles", "ClusterRole", namespaced=False),
    Resource(_RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False),
    Resource(_RBAC, "v1", "roles", "Role"),
    Resource(_RBAC, "v1", "rolebindings", "RoleBinding"),
)
"""The kinds of objects that builders make."""
_BY_OPTION: Final = (Resource("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy"), CERTIFICATES)
"""The kinds of objects that are made for options alone."""
_SELECTOR: Final = f"{MANAGED_BY_LABEL}={MANAGER}"


class NotedClient:
    """A cluster as sets see it, which notes the generation of each workload that it shows."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.generations: Generations = {}
        plain = ClusterClient(client)
        self.delete, self.patch = plain.delete, plain.patch
        self.listed, self.list_marked = plain.listed, plain.list_marked
        self.until, self.until_gone = plain.until, plain.until_gone

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Object:
        return self._noted(resource, await self.client.get(resource, name, namespace))

    async def apply(
        self, resource: Resource, obj: Object, *, field_manager: str, force: bool = True, dry_run: bool = False
    ) -> Object:
        written = await self.client.apply(resource, obj, field_manager=field_manager, force=force, dry_run=dry_run)
        return self._noted(resource, written)

    def _noted(self, resource: Resource, obj: Object) -> Object:
        if resource in (DAEMON_SETS, DEPLOYMENTS):
            metadata = metadata_of(obj)
            self.generations[resource.kind, metadata.name] = metadata.generation
        return obj


def place_of(profile: ClusterProfile) -> KubeconfigRef | None:
    """The place of a cluster's kubeconfig; None where it has none."""
    secret = secret_of(profile)
    return None if secret is None else KubeconfigRef(*secret)


class _Watched:
    """Clusters that watches follow, each by the key of its AgentPlacement."""

    def __init__(self, name: str) -> None:
        self.members = Cache(name)
        self.members.replace((), 0)
        self.places: dict[ObjectKey, KubeconfigRef] = {}
        self._keys: dict[KubeconfigRef, set[ObjectKey]] = {}

    def place(self, member: Object) -> KubeconfigRef | None:
        return self.places.get(key_of(member))

    def enter(self, key: ObjectKey, place: KubeconfigRef) -> None:
        if self.places.get(key) != place:
            self._unplace(key)
            self.places[key] = place
            self._keys.setdefault(place, set()).add(key)
            version = "/".join(place)
            self.members.put({"metadata": {"namespace": key.namespace, "name": key.name, "resourceVersion": version}})

    def leave(self, key: ObjectKey) -> None:
        if self._unplace(key):
            self.members.drop(key)

    def keys_at(self, place: KubeconfigRef) -> Iterable[ObjectKey]:
        return self._keys.get(place, ())

    def _unplace(self, key: ObjectKey) -> bool:
        place = self.places.pop(key, None)
        if place is None:
            return False
        here = self._keys[place]
        here.discard(key)
        if not here:
            del self._keys[place]
        return True


class AgentMembers:
    """The clusters that have agents, and those that agents are leaving."""

    def __init__(self, pool: RemotePool, *, clock: Clock) -> None:
        self.pool = pool
        self._clock = clock
        self._agents = _Watched("clusters with agents")
        self._removals = _Watched("clusters that agents leave")
        self._identities: dict[ObjectKey, str] = {}
        self._watches = {
            resource: RemoteWatch(
                pool,
                self._agents.members,
                place=self._agents.place,
                selection=Selection(resource, labels=_SELECTOR),
                transform=outline,
                when=matters,
            )
            for resource in (DAEMON_SETS, DEPLOYMENTS)
        }
        self._namespaces = RemoteWatch(
            pool,
            self._removals.members,
            place=self._removals.place,
            selection=lambda key: Selection(NAMESPACES, labels=f"{PART_OF}={self._identities[key]}"),
            transform=without_managed_fields,
            when=lambda change: change.new is None,
        )

    @property
    def sources(self) -> tuple[Source, ...]:
        return (*self._watches.values(), self._namespaces)

    def enter(self, key: ObjectKey, place: KubeconfigRef) -> None:
        """The cluster of an AgentPlacement is reached by `place` from now on."""
        self._agents.enter(key, place)

    def retire(self, key: ObjectKey) -> None:
        """The agent is being removed: its workloads are watched no more."""
        self._agents.leave(key)

    def await_removal(self, key: ObjectKey, place: KubeconfigRef, identity: str) -> None:
        """Reports the AgentPlacement when the namespace of that set is gone from the cluster."""
        self._identities[key] = identity
        self._removals.enter(key, place)

    def leave(self, key: ObjectKey) -> None:
        """The AgentPlacement is gone, or its cluster cannot be reached any more."""
        self._agents.leave(key)
        self._removals.leave(key)
        self._identities.pop(key, None)

    def shed(self, holds: Callable[[ObjectKey], bool]) -> None:
        """Release the clusters whose AgentPlacements have become another replica's."""
        for key in [key for key in (*self._agents.places, *self._removals.places) if not holds(key)]:
            self.leave(key)

    def keys_at(self, place: KubeconfigRef) -> Iterable[ObjectKey]:
        """The AgentPlacements of the cluster whose kubeconfig lies there."""
        return list({*self._agents.keys_at(place), *self._removals.keys_at(place)})

    def workloads(self, key: ObjectKey, identity: str) -> AgentWorkloads | None:
        """The workloads of a set in a cluster; None while the watches do not show it as it is."""
        found: dict[Resource, list[Object]] = {}
        for resource, watch in self._watches.items():
            cache = watch.cache(key)
            if cache is None or not cache.has_synced or watch.problem(key) is not None:
                return None
            found[resource] = [one for one in cache.values() if metadata_of(one).labels.get(PART_OF) == identity]
        return workloads_of(found[DAEMON_SETS], found[DEPLOYMENTS])

    def client_of(self, place: KubeconfigRef) -> NotedClient:
        """The client of the cluster whose kubeconfig lies there."""
        return NotedClient(self.pool.at(place))

    def set_of(self, placement: AgentPlacement, parent: Parent, client: NotedClient) -> ApplySet:
        """The set of one agent's objects."""
        return ApplySet(
            client,
            parent,
            kinds=KnownKinds(KINDS, optional=_BY_OPTION),
            live=ServerLive(client),
            field_manager=MANAGER,
            policy=Policy(conflicts=Conflicts.FORCE, adopt=MemberAdoption(placement)),
            clock=self._clock,
        )
