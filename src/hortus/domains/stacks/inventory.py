"""The inventory of a release or an addon as the contract keeps it: status.resources, and one label on every object.

An entry is known by group, kind, namespace and name. The namespace is the one that the chart writes: the Go system
compares entries with charts, so a namespace that was filled in here would look like another object there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import msgspec

from hortus.domains.stacks.names import INSTANCE_LABEL, OWNED
from hortus.domains.stacks.types import ManagedResource
from hortus.engine.applysets import (
    ApplyReport,
    Conflicts,
    Inventory,
    InventoryEntry,
    Kinds,
    Member,
    NoAdoption,
    ObjectAction,
    Policy,
    UnknownKind,
)
from hortus.engine.applysets.wanted import defined_kinds
from hortus.kube.objects import GroupVersionKind, Object, Resource

_FOUNDATION_WAIT: Final = 2.0
"""Seconds to wait for namespaces and definitions; what needs them is applied by the next reconcile."""
SYNCED: Final = "synced"
NOT_SYNCED: Final = "not-synced"
_WORKLOADS: Final = {
    ("apps", "Deployment"),
    ("apps", "ReplicaSet"),
    ("apps", "StatefulSet"),
    ("apps", "DaemonSet"),
    ("extensions", "Deployment"),
    ("extensions", "ReplicaSet"),
    ("extensions", "DaemonSet"),
    ("batch", "Job"),
}
"""Kinds whose pods get the label, too."""
NOTHING: Final[Mapping[GroupVersionKind, Resource]] = MappingProxyType({})
Save = Callable[[Sequence[ManagedResource]], Awaitable[None]]


class InstanceLabel:
    """The label clusterstack.x-k8s.io/instance, whose value is the identity of every set."""

    required = True

    def owner(self, obj: Object) -> str:
        return str((obj["metadata"].get("labels") or {}).get(INSTANCE_LABEL, ""))

    def title(self, owner: str) -> str:
        return f"the cluster stack with the label {INSTANCE_LABEL}={owner}"

    def marked(self, obj: Object, identity: str, namespace: str) -> Object:
        metadata = _labelled(obj["metadata"], identity)
        if namespace and not metadata.get("namespace"):
            metadata["namespace"] = namespace
        marked = {**obj, "metadata": metadata}
        if (str(obj.get("apiVersion")).rpartition("/")[0], obj.get("kind")) in _WORKLOADS:
            marked["spec"] = _with_pods(marked.get("spec") or {}, identity)
        return marked


def policy_of_stacks(*, prune: bool) -> Policy:
    """The policy of the objects of releases and addons: the contract's label, which its Go system writes, says whose
    an object is. Who gives that label to an object of his own lets it be taken over, and deleted with the others."""
    return Policy(
        conflicts=Conflicts.FORCE,
        adopt=NoAdoption(f"delete it, or give it the label {INSTANCE_LABEL}={OWNED}", namespaces=True),
        by_name=True,
        marking=InstanceLabel(),
        prune=prune,
        prune_content=True,
        wait=_FOUNDATION_WAIT,
    )


def _with_pods(spec: Mapping[str, Any], identity: str) -> dict[str, Any]:
    template = spec.get("template") or {}
    return {**spec, "template": {**template, "metadata": _labelled(template.get("metadata") or {}, identity)}}


def _labelled(metadata: Mapping[str, Any], identity: str) -> dict[str, Any]:
    return {**metadata, "labels": {**(metadata.get("labels") or {}), INSTANCE_LABEL: identity}}


class ResourceInventory:
    """status.resources of one object as the parent of an apply set."""

    identity = OWNED
    shared_kinds: tuple[str, ...] = ()

    def __init__(self, listed: Iterable[ManagedResource], *, namespace: str, kinds: Kinds, save: Save) -> None:
        """`namespace` is that of objects that name none; `save` stores a list that has become longer before it
        returns."""
        self.namespace = namespace
        self._listed = {_key(one): one for one in listed}
        self._kinds = kinds
        self._save = save
        self._members: dict[Member, ManagedResource] = {}
        self._entries: dict[Member, InventoryEntry] = {}
        self._stored: Inventory = {}
        self._order: dict[tuple[str, str, str, str], None] = {}
        self._loaded = False

    @property
    def listed(self) -> tuple[ManagedResource, ...]:
        """The entries in the order of the chart, as the Go operator lists them; leaving ones last."""
        order = {key: number for number, key in enumerate(self._order)}
        return tuple(sorted(self._listed.values(), key=lambda one: order.get(_key(one), len(order))))

    @property
    def resources(self) -> set[Resource]:
        """The kinds of its members, as far as they are known."""
        return {entry.resource(member) for member, entry in self._entries.items()}

    def has_synced(self, objects: Sequence[Object]) -> bool:
        """Reports whether all of the objects are listed, and were applied without failure."""
        listed = (self._listed.get(_key(resource_of_object(obj))) for obj in objects)
        return all(one is not None and one.status == SYNCED for one in listed)

    async def name(self, objects: Sequence[Object]) -> None:
        """Note how charts write the namespaces of objects, before they are applied."""
        defined = defined_kinds(objects)
        for obj in objects:
            member, entry, written = await self._placed(resource_of_object(obj), defined)
            self._order.setdefault(_key(written))
            self._members.setdefault(member, written)
            self._entries.setdefault(member, entry)

    async def load(self) -> Inventory:
        if not self._loaded:
            found = [await self._placed(one) for one in self._listed.values()]
            self._members = {member: written for member, _, written in found} | self._members
            for _, _, written in found:
                self._order.setdefault(_key(written))
            self._stored = {member: entry for member, entry, _ in found}
            self._loaded = True
        return self._stored

    async def store(self, inventory: Inventory) -> None:
        before = set(self._listed)
        wanted = {}
        for member, entry in inventory.items():
            known = self._members.get(member) or _written(member, entry)
            listed = self._listed.get(_key(known))
            wanted[_key(known)] = listed or _replaced(known, version=entry.version, status=NOT_SYNCED, error="")
        self._stored = dict(inventory)
        self._listed = wanted
        if set(wanted) - before:
            await self._save(self.listed)

    async def remove(self) -> None:
        await self.store({})

    def note(self, report: ApplyReport) -> None:
        """Take over the outcome of each object from the report of a run."""
        for outcome in report.outcomes:
            known = self._members.get(outcome.member)
            if known is None or _key(known) not in self._listed:
                continue
            done = outcome.action in (ObjectAction.APPLIED, ObjectAction.UNCHANGED)
            self._listed[_key(known)] = _replaced(
                self._listed[_key(known)], status=SYNCED if done else NOT_SYNCED, error="" if done else outcome.message
            )

    def mark(self, members: Iterable[Member], error: str = "") -> None:
        """Note the outcome of objects that another system applies: synced, or the reason why not."""
        for member in members:
            known = self._members.get(member)
            if known is not None and _key(known) in self._listed:
                status = NOT_SYNCED if error else SYNCED
                self._listed[_key(known)] = _replaced(self._listed[_key(known)], status=status, error=error)

    async def members(self, objects: Sequence[Object]) -> dict[Member, InventoryEntry]:
        """The members that objects of charts stand for."""
        defined = defined_kinds(objects)
        found = [await self._placed(resource_of_object(obj), defined) for obj in objects]
        return {member: entry for member, entry, _ in found}

    async def _placed(
        self, one: ManagedResource, defined: Mapping[GroupVersionKind, Resource] = NOTHING
    ) -> tuple[Member, InventoryEntry, ManagedResource]:
        gvk = GroupVersionKind(one.group, one.version, one.kind)
        resource = defined.get(gvk) or await self._resource(one, gvk)
        namespace = (one.namespace or self.namespace) if resource.namespaced else ""
        member = Member(one.group, one.kind, namespace, one.name)
        return member, InventoryEntry(one.version, resource.plural, ""), one

    async def _resource(self, one: ManagedResource, gvk: GroupVersionKind) -> Resource:
        """The kind as it is served; one that is not served is taken for one in a namespace where an entry has one."""
        try:
            return await self._kinds.resource(gvk)
        except UnknownKind:
            return Resource(one.group, one.version, f"{one.kind.lower()}s", one.kind, namespaced=bool(one.namespace))


def resource_of_object(obj: Object) -> ManagedResource:
    """The entry for an object of a chart."""
    metadata = obj["metadata"]
    group, _, version = str(obj.get("apiVersion", "")).rpartition("/")
    return ManagedResource(
        group=group,
        version=version,
        kind=str(obj.get("kind", "")),
        namespace=metadata.get("namespace") or "",
        name=metadata["name"],
    )


def _key(one: ManagedResource) -> tuple[str, str, str, str]:
    return one.group, one.kind, one.namespace, one.name


def _written(member: Member, entry: InventoryEntry) -> ManagedResource:
    return ManagedResource(
        group=member.group, version=entry.version, kind=member.kind, namespace=member.namespace, name=member.name
    )


def _replaced(one: ManagedResource, **changes: Any) -> ManagedResource:
    return msgspec.structs.replace(one, **changes)
