"""The inventory of a module as the contract keeps it: Manifest.status.synced, and marks that name the Manifest.

Nothing is added to the cluster for it. The annotation owned-by says which Manifest an object belongs to, so the object
of one module is not taken by another. A Manifest that is gone, or is of another cluster, owns nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Final

from hortus.domains.modules.manifests.rendering import ObjectId
from hortus.domains.modules.names import MANAGED_BY_KYMA, Annotation, FieldOwner, Label
from hortus.domains.modules.types import SyncedObject
from hortus.engine.applysets import AdoptionClaim, Conflicts, FoundObjects, Inventory, InventoryEntry, Member, Policy
from hortus.engine.applysets.adoption import is_applied_by, is_namespace
from hortus.engine.indexes import by_annotation
from hortus.engine.typed import metadata_of
from hortus.kube.objects import Object, Resource

_LAST_WAVE: Final = frozenset(
    (
        "CustomResourceDefinition",
        "Namespace",
        "ServiceAccount",
        "Role",
        "ClusterRole",
        "RoleBinding",
        "ClusterRoleBinding",
        "Service",
        "Deployment",
    )
)
"""Kinds that are deleted when all objects of other kinds are gone: these may need them to go."""
_FOUNDATION_WAIT: Final = 2.0
"""Seconds to wait for namespaces and definitions; what needs them is applied by the next reconcile."""
_owner: Final = by_annotation(Annotation.OWNED_BY)


class OwnedBy:
    """The annotation owned-by, which the transforms write."""

    required = False

    def __init__(self, exists: Callable[[str], bool]) -> None:
        """`exists` reports whether a Manifest, `namespace/name`, installs something on this cluster."""
        self._exists = exists

    def owner(self, obj: Object) -> str:
        found = next(iter(_owner(obj)), "")
        return found if found and self._exists(found) else ""

    def title(self, owner: str) -> str:
        return f"the module of Manifest {owner}"

    def marked(self, obj: Object, identity: str, namespace: str) -> Object:
        return obj


def wave(resource: Resource) -> int:
    """The wave in which objects of a kind are deleted, 0 before 1."""
    return 1 if resource.kind in _LAST_WAVE else 0


class ModuleAdoption:
    """Takes over objects of modules whose Manifest is gone, and those that its Go system applied without a mark."""

    def remedy(self, member: Member) -> str:
        return f"delete it, or give it the label {Label.MANAGED_BY}={MANAGED_BY_KYMA}, so that modules may have it"

    def claim(self, member: Member, live: Object, owner: str, found: FoundObjects) -> AdoptionClaim:
        if owner:
            return AdoptionClaim.NONE
        metadata = metadata_of(live)
        marked = metadata.labels.get(Label.MANAGED_BY) == MANAGED_BY_KYMA or Annotation.OWNED_BY in metadata.annotations
        if marked or is_applied_by(live, FieldOwner.MODULE_RESOURCES):
            return AdoptionClaim.OURS
        return AdoptionClaim.USED if is_namespace(member) else AdoptionClaim.NONE


def policy(exists: Callable[[str], bool]) -> Policy:
    """The policy of a module's objects."""
    return Policy(
        conflicts=Conflicts.FORCE,
        adopt=ModuleAdoption(),
        by_name=True,
        marking=OwnedBy(exists),
        stage=wave,
        prune_content=True,
        wait=_FOUNDATION_WAIT,
    )


class SyncedInventory:
    """status.synced of one Manifest as the parent of an apply set.

    The namespace of modules belongs to all of them: it is listed and never pruned.
    """

    shared_kinds: tuple[str, ...] = ()
    namespace = "default"

    def __init__(
        self,
        identity: str,
        synced: Sequence[SyncedObject],
        *,
        shared: str,
        store: Callable[[Sequence[SyncedObject]], Awaitable[None]],
    ) -> None:
        """`identity` is namespace and name of the Manifest, `shared` the name of the namespace of modules; `store`
        keeps what has become longer before it returns."""
        self.identity = identity
        self._synced = tuple(synced)
        self._shared = Member("", "Namespace", "", shared)
        self._kept: tuple[SyncedObject, ...] = ()
        self._store = store

    def keep(self, objects: Iterable[SyncedObject]) -> None:
        """List these as well, which are not applied."""
        self._kept = tuple(objects)

    async def load(self) -> Inventory:
        return {
            member: InventoryEntry(one.version, guessed_plural(one.kind), "")
            for one in self._synced
            if (member := member_of(one)) != self._shared
        }

    async def store(self, inventory: Inventory) -> None:
        versions = {member: entry.version for member, entry in inventory.items()}
        versions |= {member_of(one): one.version for one in self._kept}
        known = [member for one in self._synced if (member := member_of(one)) in versions]
        order = dict.fromkeys((*known, *versions))
        wanted = tuple(
            SyncedObject(group=one.group, version=versions[one], kind=one.kind, name=one.name, namespace=one.namespace)
            for one in order
        )
        if wanted != self._synced:
            self._synced = wanted
            await self._store(wanted)

    async def remove(self) -> None:
        await self.store({})


def member_of(one: SyncedObject) -> Member:
    """The identity of an object of the inventory; its version is no part of it."""
    return Member(one.group, one.kind, one.namespace, one.name)


def synced_of(identity: ObjectId) -> SyncedObject:
    """The entry for an object."""
    return SyncedObject(**identity._asdict())


def leaving(synced: Iterable[SyncedObject], rendered: Iterable[ObjectId], *, shared: str) -> Iterator[SyncedObject]:
    """The objects of the inventory that are not rendered any more; the namespace of modules never leaves."""
    staying = {Member(one.group, one.kind, one.namespace, one.name) for one in rendered}
    staying.add(Member("", "Namespace", "", shared))
    return (one for one in synced if member_of(one) not in staying)


def guessed_plural(kind: str) -> str:
    """The plural of a kind as Kubernetes guesses it; discovery corrects a wrong guess."""
    word = kind.lower()
    if word.endswith(("s", "x", "ch", "sh")):
        return f"{word}es"
    return f"{word[:-1]}ies" if word.endswith("y") else f"{word}s"
