"""The sources of a controller's work: events of its own kind, events of other kinds mapped to keys of its own, and
whatever else calls `add`.

The sinks are the queue's own method and plain callables, so that an event costs a few calls and no task.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Protocol, runtime_checkable

from hortus.engine.cache import Cache, Change
from hortus.engine.queue import Priority
from hortus.kube.clock import Clock, Timer
from hortus.kube.objects import Object, ObjectKey, Resource

Add = Callable[[ObjectKey, int], None]
"""Puts a key with a priority into a controller's queue."""

Detach = Callable[[], None]
Mapper = Callable[[Object], Iterable[ObjectKey]]
"""The keys of the controller's own kind that an object of another kind concerns."""


class Source(Protocol):
    def attach(self, add: Add, clock: Clock) -> Detach:
        """Call `add` for all that is there and for each change from now on, until detached."""

    async def ready(self) -> None:
        """Return when all that was there has been added."""


@runtime_checkable
class CacheSource(Protocol):
    """A source that waits for caches."""

    @property
    def awaited(self) -> Collection[Cache]:
        """The caches that are complete when it is ready."""


class Watch:
    """The changes of one cache; for another kind `to` says which keys they concern, `when` which of them matter."""

    def __init__(
        self,
        cache: Cache,
        *,
        to: Mapper | None = None,
        when: Callable[[Change], bool] | None = None,
        awaited: bool = True,
        priority: Priority = Priority.EVENT,
    ) -> None:
        """`awaited=False`: workers begin before the cache is complete, since another system may be down.

        `priority` is that of a change; a lesser one is for changes that concern many, or that our own writes bring.
        """
        self.cache = cache
        self.to = to
        self._when = when
        self.awaited = (cache,) if awaited else ()
        self._priority = int(priority)

    def attach(self, add: Add, clock: Clock) -> Detach:
        return self.cache.subscribe(self._own(add) if self.to is None else self._mapped(add, self.to))

    async def ready(self) -> None:
        for cache in self.awaited:
            await cache.synced()

    def _own(self, add: Add) -> Callable[[Change], None]:
        when, initial, event = self._when, int(Priority.INITIAL), self._priority

        def on_change(change: Change) -> None:
            if when is None or when(change):
                add(change.key, initial if change.initial else event)

        return on_change

    def _mapped(self, add: Add, to: Mapper) -> Callable[[Change], None]:
        when, initial, event = self._when, int(Priority.INITIAL), self._priority

        def on_change(change: Change) -> None:
            if when is not None and not when(change):
                return
            priority = initial if change.initial else event
            # Both sides: an object that changes its owner or label concerns the one it left as well.
            for obj in (change.new, change.old):
                if obj is not None:
                    for key in to(obj):
                        add(key, priority)

        return on_change


class Trigger:
    """A source for whatever is no watch: call `fire` from anywhere on the loop."""

    def __init__(self) -> None:
        self._adds: list[Add] = []

    def fire(self, key: ObjectKey, *, priority: Priority = Priority.EVENT) -> None:
        for add in self._adds:
            add(key, priority)

    def attach(self, add: Add, clock: Clock) -> Detach:
        self._adds.append(add)
        return lambda: self._adds.remove(add)

    async def ready(self) -> None:
        return


class Every:
    """Adds `keys()` at once and then every `seconds`, with the least priority: for what no watch can tell."""

    def __init__(self, seconds: float, keys: Callable[[], Iterable[ObjectKey]]) -> None:
        if seconds <= 0:
            raise ValueError(f"a period must be longer than {seconds} s")
        self._seconds = seconds
        self._keys = keys

    def attach(self, add: Add, clock: Clock) -> Detach:
        timer: Timer | None = None

        def tick() -> None:
            nonlocal timer
            timer = clock.call_later(self._seconds, tick)
            for key in self._keys():
                add(key, Priority.RESYNC)

        tick()
        return lambda: timer.cancel() if timer is not None else None

    async def ready(self) -> None:
        return


def to_owner(resource: Resource, *, controllers_only: bool = True) -> Mapper:
    """Maps an object to its owner of this kind; with `controllers_only` the reference says `controller: true`."""
    group, kind, namespaced = resource.group, resource.kind, resource.namespaced

    def keys(obj: Object) -> Iterable[ObjectKey]:
        metadata = obj["metadata"]
        return [
            ObjectKey(metadata.get("namespace", "") if namespaced else "", owner["name"])
            for owner in metadata.get("ownerReferences") or ()
            if owner["kind"] == kind
            and owner["apiVersion"].rpartition("/")[0] == group
            and (owner.get("controller") or not controllers_only)
        ]

    return keys


def to_label(label: str, *, namespace: str | None = None) -> Mapper:
    """Maps an object to the key named by one of its labels, in its own namespace or in a given one (empty: none)."""

    def keys(obj: Object) -> Iterable[ObjectKey]:
        metadata = obj["metadata"]
        name = (metadata.get("labels") or {}).get(label)
        if not name:
            return ()
        return (ObjectKey(metadata.get("namespace", "") if namespace is None else namespace, name),)

    return keys


def to_same_name(obj: Object) -> Iterable[ObjectKey]:
    """Maps an object to the key with its own namespace and name."""
    metadata = obj["metadata"]
    return (ObjectKey(metadata.get("namespace", ""), metadata["name"]),)
