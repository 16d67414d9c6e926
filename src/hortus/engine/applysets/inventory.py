"""The members of a set, as its parent stores them.

The inventory never holds less than what exists: before anything is written it becomes the union of what was remembered
and what is wanted, and it is narrowed only after deletions were seen to be done. So a process that is killed at any
moment leaves nothing behind that the next run would not find.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import orjson

from hortus.kube.objects import Object, Resource


class Member(NamedTuple):
    """One object. Its version is left out: an object keeps its identity when its kind moves to another one."""

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        kind = f"{self.kind}.{self.group}" if self.group else self.kind
        return f"{kind} {self.namespace}/{self.name}" if self.namespace else f"{kind} {self.name}"


class InventoryEntry(NamedTuple):
    """One member of a set: how it is reached, and its uid, "" before it was seen."""

    version: str
    plural: str
    uid: str
    undo: str = ""
    """The merge patch that gives an object of others back what it had before it was taken over, as JSON."""

    def resource(self, member: Member) -> Resource:
        return Resource(member.group, self.version, self.plural, member.kind, bool(member.namespace))


Inventory = Mapping[Member, InventoryEntry]


def member_of(resource: Resource, obj: Object) -> Member:
    metadata = obj["metadata"]
    return Member(resource.group, resource.kind, metadata.get("namespace", ""), metadata["name"])


def entry_of(resource: Resource, uid: str, *, undo: str = "") -> InventoryEntry:
    return InventoryEntry(resource.version, resource.plural, uid, undo)


def encode(inventory: Inventory) -> str:
    """One JSON line a member, in order, so that the same inventory is the same text."""
    lines = (orjson.dumps([*member, *_parts(entry)]).decode() for member, entry in sorted(inventory.items()))
    return "".join(f"{line}\n" for line in lines)


def decode(text: str) -> dict[Member, InventoryEntry]:
    """Raises ValueError, which says which line is not one of ours."""
    found: dict[Member, InventoryEntry] = {}
    for number, line in enumerate(text.removesuffix("\n").split("\n") if text else (), 1):
        try:
            parts = orjson.loads(line)
        except orjson.JSONDecodeError:
            parts = None
        if not isinstance(parts, list) or len(parts) not in (7, 8) or not all(isinstance(part, str) for part in parts):
            raise ValueError(f"line {number} is not a list of group, kind, namespace, name, version, plural and uid")
        found[Member(*parts[:4])] = InventoryEntry(*parts[4:])
    return found


def _parts(entry: InventoryEntry) -> tuple[str, ...]:
    return entry if entry.undo else entry[:-1]


def group_kinds(members: Iterable[Member]) -> str:
    """The value of the annotation `contains-group-kinds`."""
    return ",".join(sorted({f"{m.kind}.{m.group}" if m.group else m.kind for m in members}))


def other_namespaces(members: Iterable[Member], own: str) -> str:
    """The value of the annotation `additional-namespaces`."""
    return ",".join(sorted({m.namespace for m in members if m.namespace and m.namespace != own}))
