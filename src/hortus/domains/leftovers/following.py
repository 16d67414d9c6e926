"""Watches on the objects that are left in clusters: the deletion of one settles its Leftover at once.

A watch follows one object by its name, and takes one connection to its cluster. There are at most `MOST`; objects
beyond that are looked at every `LOOK_AGAIN`, and so is one whose watch does not work.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from hortus.domains.leftovers.looking import resource_of
from hortus.engine import Cache, Change, Selection, metadata_of
from hortus.engine.leftovers.types import LeftoverItem
from hortus.engine.remote import KubeconfigRef, RemotePool, RemoteWatch
from hortus.engine.sources import Add, Detach
from hortus.kube.clock import Clock
from hortus.kube.objects import Object, ObjectKey, key_of

MOST: Final = 500
"""Watches of a process: 29 MB of connections at 58 kB each."""


class ItemWatches:
    """A source: Leftovers of which an object was deleted, replaced by another, or is being deleted."""

    def __init__(self, pool: RemotePool, *, most: int) -> None:
        self._most = most
        self._members = Cache("objects that are left")
        self._members.replace((), 0)
        self._followed: dict[ObjectKey, dict[str, ObjectKey]] = {}
        """The members of each Leftover by the ids of its items."""
        self._places: dict[ObjectKey, KubeconfigRef] = {}
        self._selections: dict[ObjectKey, Selection] = {}
        self._leftovers: dict[ObjectKey, ObjectKey] = {}
        self._watch = RemoteWatch(
            pool,
            self._members,
            place=lambda member: self._places.get(key_of(member)),
            selection=self._selections.__getitem__,
            transform=_outline,
            when=_matters,
        )

    def follow(self, leftover: ObjectKey, place: KubeconfigRef | None, items: Iterable[LeftoverItem]) -> set[str]:
        """Watch exactly these items of a Leftover from now on; returns the ids of those whose watch works by now."""
        wanted = {item.id: item for item in items if item.object is not None} if place is not None else {}
        known = self._followed.setdefault(leftover, {})
        for name in [name for name, member in known.items() if name not in wanted or self._places[member] != place]:
            self._leave(known.pop(name))
        for name, item in wanted.items():
            if name not in known and len(self._places) < self._most and place is not None:
                known[name] = self._enter(leftover, place, item)
        if not known:
            del self._followed[leftover]
        return {name for name, member in known.items() if self._works(member)}

    def release(self, leftover: ObjectKey) -> None:
        """Watch nothing of a Leftover any more."""
        self.follow(leftover, None, ())

    def attach(self, add: Add, clock: Clock) -> Detach:
        def of_member(member: ObjectKey, priority: int) -> None:
            if (leftover := self._leftovers.get(member)) is not None:
                add(leftover, priority)

        return self._watch.attach(of_member, clock)

    async def ready(self) -> None:
        await self._watch.ready()

    def __len__(self) -> int:
        """The number of watches."""
        return len(self._places)

    def _enter(self, leftover: ObjectKey, place: KubeconfigRef, item: LeftoverItem) -> ObjectKey:
        known = item.object
        assert known is not None
        member = ObjectKey(leftover.namespace, f"{leftover.name}/{item.id}")
        selection = Selection(resource_of(known), known.namespace, fields=f"metadata.name={known.name}")
        self._places[member], self._selections[member], self._leftovers[member] = place, selection, leftover
        self._members.put({"metadata": {"namespace": member.namespace, "name": member.name, "resourceVersion": "1"}})
        return member

    def _leave(self, member: ObjectKey) -> None:
        # First, so that the end of the watch itself changes no Leftover.
        del self._leftovers[member]
        self._members.drop(member)
        del self._places[member], self._selections[member]

    def _works(self, member: ObjectKey) -> bool:
        cache = self._watch.cache(member)
        return cache is not None and cache.has_synced and self._watch.problem(member) is None


def _outline(obj: Object) -> Object:
    metadata = metadata_of(obj)
    kept = {"name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid}
    return {
        "metadata": {
            **kept,
            "resourceVersion": metadata.resource_version,
            "deletionTimestamp": metadata.deletion_timestamp,
        }
    }


def _matters(change: Change) -> bool:
    """An object that is there at first was just looked at."""
    if change.old is None or change.new is None:
        return not change.initial
    before, after = metadata_of(change.old), metadata_of(change.new)
    return (before.uid, before.deletion_timestamp) != (after.uid, after.deletion_timestamp)
