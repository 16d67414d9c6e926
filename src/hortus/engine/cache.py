"""The objects of one kind as last seen, kept current by a watch (`hortus.engine.reflector`).

What comes out is the cache's own dict, not a copy: it is read only for everybody. That is the price of holding tens of
thousands of objects and touching each of them without cost; who wants to change one takes `copy_of`.

A cache is a little behind the server. `learn` closes the gap for one's own writes: the answer to a write goes in at
once, so that the next look at the cache does not find the old object and write again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple

import orjson
import structlog

from hortus.kube.objects import Object, ObjectKey, key_of

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Change(NamedTuple):
    """One object has become another. `old` is None when it is new to us, `new` when it is gone."""

    key: ObjectKey
    old: Object | None
    new: Object | None
    initial: bool = False
    """True when the object was there at the first list: nobody changed anything just now."""

    @property
    def current(self) -> Object:
        """The object after the change, or its last known state when it is gone."""
        found = self.new if self.new is not None else self.old
        assert found is not None, "a change has an old or a new object"
        return found


Handler = Callable[[Change], None]
IndexFunction = Callable[[Object], Iterable[str]]
Transform = Callable[[Object], Object]
"""Makes an object smaller before it is kept; it may change and return the very dict it gets."""

_DIGITS = 39
"""The digits of a number of 128 bits."""
_NO_KEYS: Collection[ObjectKey] = ()


class NotUnderstood(Exception):
    """Objects on which a transform or an index function failed; the cache goes on without their latest state."""


class _Index:
    __slots__ = ("_function", "_keys", "_name")

    def __init__(self, name: str, function: IndexFunction) -> None:
        self._name = name
        self._function = function
        self._keys: dict[str, dict[ObjectKey, None]] = {}

    def update(self, key: ObjectKey, old: Object | None, new: Object | None) -> None:
        before = self._values(key, old) if old is not None else set()
        after = self._values(key, new) if new is not None else set()
        for value in before - after:
            keys = self._keys.get(value, {})
            keys.pop(key, None)
            if not keys and value in self._keys:
                del self._keys[value]
        for value in after - before:
            self._keys.setdefault(value, {})[key] = None

    def _values(self, key: ObjectKey, obj: Object) -> set[str]:
        try:
            return set(self._function(obj))
        except Exception:
            # Filed under nothing: one object that the function does not understand must not hide all others.
            _log.exception("an index failed on an object", index=self._name, object=str(key))
            return set()

    def keys(self, value: str) -> Collection[ObjectKey]:
        return self._keys.get(value, _NO_KEYS)

    def values(self) -> Collection[str]:
        return self._keys.keys()


class Cache:
    """Objects by key, indexes over them, and the handlers that hear of each change. All of it on one event loop."""

    def __init__(
        self, name: str, *, transform: Transform | None = None, belongs: Callable[[Object], bool] | None = None
    ) -> None:
        self.name = name
        self._transform = transform
        self._belongs = belongs
        self._objects: dict[ObjectKey, Object] = {}
        self._indexes: dict[str, _Index] = {}
        self._handlers: tuple[Handler, ...] = ()
        self._synced = asyncio.Event()
        self._on_sync: list[Callable[[], None]] = []
        self._seen_version = 0
        self._refused: dict[ObjectKey, str] = {}

    # Reading. Everything returned is read only.

    def get(self, key: ObjectKey) -> Object | None:
        return self._objects.get(key)

    def __getitem__(self, key: ObjectKey) -> Object:
        return self._objects[key]

    def __contains__(self, key: object) -> bool:
        return key in self._objects

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[ObjectKey]:
        return iter(self._objects)

    def keys(self) -> Collection[ObjectKey]:
        return self._objects.keys()

    def values(self) -> Collection[Object]:
        """Every object; copy the collection before awaiting while walking it."""
        return self._objects.values()

    def by(self, index: str, value: str) -> list[Object]:
        """The objects which `index` files under `value`; raises KeyError when there is no such index."""
        return [self._objects[key] for key in self._indexes[index].keys(value)]

    def keys_by(self, index: str, value: str) -> list[ObjectKey]:
        return list(self._indexes[index].keys(value))

    def values_of(self, index: str) -> Collection[str]:
        """Every value under which `index` files something."""
        return self._indexes[index].values()

    # Wiring.

    def add_index(self, name: str, function: IndexFunction) -> None:
        """File every object under the values that `function` returns for it; the same name again changes nothing."""
        if name in self._indexes:
            return
        index = self._indexes[name] = _Index(name, function)
        for key, obj in self._objects.items():
            index.update(key, None, obj)

    def subscribe(self, handler: Handler) -> Callable[[], None]:
        """Call `handler` for each change, beginning with the present objects; returns the way to stop it.

        A handler is called in the middle of the watch: it must be quick and must not await.
        """
        self._handlers += (handler,)
        for key, obj in list(self._objects.items()):
            self._call(handler, Change(key, None, obj, initial=True))
        return lambda: self._unsubscribe(handler)

    @property
    def has_synced(self) -> bool:
        """True when the first list is complete."""
        return self._synced.is_set()

    async def synced(self) -> None:
        """Return when the first list is complete."""
        await self._synced.wait()

    def on_sync(self, call: Callable[[], None]) -> None:
        """Call `call` when the first list is complete, which is no change where that list is empty."""
        if self._synced.is_set():
            call()
        else:
            self._on_sync.append(call)

    @property
    def problem(self) -> NotUnderstood | None:
        """The objects that are not here in their latest state because the transform failed on them, or None."""
        if not self._refused:
            return None
        key, why = next(iter(self._refused.items()))
        return NotUnderstood(f"{len(self._refused)} objects are not understood, one is {key}: {why}")

    # Writing: for the reflector, for tests, and `learn` for one's own writes.

    def learn(self, obj: Object) -> None:
        """Take the server's answer to one's own write as the latest state, ahead of the watch.

        Ignored when the watch has been past it already, so that nothing that has been deleted meanwhile comes back,
        and when it is not of those that this cache selects. Relies on resource versions of one resource that grow
        (KEP-5504). The object belongs to the cache from then on.
        """
        version = version_of(obj)
        if version > self._seen_version and (self._belongs is None or self._belongs(obj)):
            known = self._objects.get(key_of(obj))
            if (known is None or version_of(known) < version) and (kept := self.taken(obj)) is not None:
                self.put(kept)

    def shrink(self, obj: Object) -> Object:
        """`obj` as it is kept here; may be the same dict with less in it."""
        return obj if self._transform is None else self._transform(obj)

    def taken(self, obj: Object) -> Object | None:
        """`obj` as it is kept here; None, and `problem` says so, when the transform fails on it.

        What is known of such an object stays as it is: it is not gone.
        """
        key = key_of(obj)
        try:
            kept = self.shrink(obj)
        except Exception as error:
            _log.exception("an object was not understood", cache=self.name, object=str(key))
            self._refused[key] = f"{type(error).__name__}: {error}"
            return None
        if self._refused:
            self._refused.pop(key, None)
        return kept

    def put(self, obj: Object, *, initial: bool = False) -> None:
        """Hold `obj` as it is from now on; the same resource version again changes nothing and notifies nobody."""
        key = key_of(obj)
        old = self._objects.get(key)
        if old is not None and old["metadata"].get("resourceVersion") == obj["metadata"].get("resourceVersion"):
            return
        self._objects[key] = obj
        self._changed(Change(key, old, obj, initial))

    def drop(self, key: ObjectKey, last: Object | None = None) -> None:
        """Hold `key` no longer; `last` is the state in which it went, where known.

        Passed over when `learn` has brought a later state since: another object of that name, or the same one that did
        not match the selector in between.
        """
        self._refused.pop(key, None)
        old = self._objects.get(key)
        if old is not None and last is not None and version_of(last) < version_of(old):
            return
        if old is not None:
            del self._objects[key]
            for index in self._indexes.values():
                index.update(key, old, None)
            self._notify(Change(key, last if last is not None else old, None))

    def replace(self, objects: Iterable[Object], version: int, *, refused: Collection[ObjectKey] = ()) -> None:
        """Become what a list at resource version `version` found, and report the differences and only those.

        Those of `refused` are in the list too, and were not `taken`.
        """
        first = not self._synced.is_set()
        self._refused = {key: why for key, why in self._refused.items() if key in refused}
        gone = dict.fromkeys(self._objects)
        for key in refused:
            gone.pop(key, None)
        for obj in objects:
            gone.pop(key_of(obj), None)
            self.observe(obj, initial=first)
        for key in gone:
            # A write that we learned of after the list was taken is not in it, and is no deletion.
            if version_of(self._objects[key]) <= version or not version:
                self.drop(key)
        self.advance(version)
        if first:
            self._synced.set()
            waiting, self._on_sync = self._on_sync, []
            for call in waiting:
                call()

    def reset(self) -> None:
        """Drop all objects and report each as deleted: another cluster answers, with versions of its own."""
        self._seen_version = 0
        self._refused.clear()
        for key in list(self._objects):
            self.drop(key)

    def observe(self, obj: Object, *, initial: bool = False) -> None:
        """Take a state that list or watch shows; ignored when `learn` has brought a later one already."""
        if self._objects:
            known = self._objects.get(key_of(obj))
            if known is not None and 0 < version_of(obj) < version_of(known) and _uid(known) == _uid(obj):
                return
        self.put(obj, initial=initial)

    def advance(self, version: int) -> None:
        """The watch has shown everything up to resource version `version`."""
        if version > self._seen_version:
            self._seen_version = version

    def _changed(self, change: Change) -> None:
        for index in self._indexes.values():
            index.update(change.key, change.old, change.new)
        self._notify(change)

    def _unsubscribe(self, handler: Handler) -> None:
        self._handlers = tuple(known for known in self._handlers if known is not handler)

    def _notify(self, change: Change) -> None:
        for handler in self._handlers:
            self._call(handler, change)

    def _call(self, handler: Handler, change: Change) -> None:
        try:
            handler(change)
        except Exception:
            # One object that a mapping does not understand must not take the watch of all others down.
            _log.exception("a handler failed on a change", cache=self.name, object=str(change.key))


def version_of(obj: Object) -> int:
    """The resource version as a number; 0 where a server has versions of another sort."""
    return number_of(obj["metadata"].get("resourceVersion", ""))


def number_of(version: object) -> int:
    """A resource version as a number; 0 for one of another sort, or of more digits than any server counts to."""
    if not isinstance(version, str) or len(version) > _DIGITS:
        return 0
    return int(version) if version.isascii() and version.isdigit() else 0


def copy_of(obj: Object) -> Object:
    """A copy that may be changed; a JSON round trip, ten times quicker than `copy.deepcopy`."""
    copied: Object = orjson.loads(orjson.dumps(obj))
    return copied


def _uid(obj: Object) -> str:
    return str(obj["metadata"].get("uid", ""))
