"""Caches that give their objects as structs of a kind.

The cache below holds dicts; a struct is decoded when somebody asks for the object, so an object that nobody reads costs
nothing more. `raw` is the cache itself, for sources and writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from hortus.kube.objects import Object, ObjectKey, Resource
from hortus.schema import Kind, ObjectMeta

if TYPE_CHECKING:
    from hortus.engine.cache import Cache

K = TypeVar("K", bound=Kind)


class NotReadable(Exception):
    """An object does not have the shape of its kind; the text names the object and the field."""


def resource_of(kind: type[Kind]) -> Resource:
    """The REST resource of a kind."""
    facts = kind.FACTS
    return Resource(facts.group, facts.version, facts.plural, facts.name, namespaced=facts.scope == "Namespaced")


def read(kind: type[K], obj: Object) -> K:
    """The struct of an API object; unknown fields are left out. Raises NotReadable."""
    try:
        return msgspec.convert(obj, kind)
    except msgspec.ValidationError as error:
        # Only now: a copy of each object would cost more than all else here.
        with suppress(msgspec.ValidationError, RecursionError):  # of an object that is nested too deep for a copy
            return msgspec.convert(_with_whole_numbers(obj), kind)
        metadata = obj["metadata"]
        name = "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))
        raise NotReadable(f"{kind.FACTS.name} {name}: {error}") from error


def _with_whole_numbers(value: Any) -> Any:
    """A copy in which each number that an API server admits as an integer is one: 3600.0000001 may be stored there."""
    if isinstance(value, dict):
        return {name: _with_whole_numbers(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_with_whole_numbers(item) for item in value]
    from hortus.schema.checks import is_whole  # with it come formats and patterns, which reading does not need

    return round(value) if isinstance(value, float) and is_whole(value) else value


def metadata_of(obj: Object) -> ObjectMeta:
    """The metadata of an API object of any kind. Raises NotReadable."""
    try:
        return msgspec.convert(obj["metadata"], ObjectMeta)
    except msgspec.ValidationError as error:
        raise NotReadable(f"{obj.get('kind', 'object')} {obj['metadata'].get('name')}: metadata: {error}") from error


class TypedCache(Generic[K]):
    """Read access to the cache of one kind. Raises NotReadable for an object without the shape of its kind."""

    __slots__ = ("kind", "raw")

    def __init__(self, kind: type[K], raw: Cache) -> None:
        self.kind = kind
        self.raw = raw

    def get(self, key: ObjectKey) -> K | None:
        found = self.raw.get(key)
        return None if found is None else read(self.kind, found)

    def by(self, index: str, value: str) -> list[K]:
        """The objects that `index` files under `value`; raises KeyError when there is no such index."""
        return [read(self.kind, found) for found in self.raw.by(index, value)]

    def add_index(self, name: str, values: Callable[[K], Iterable[str]]) -> None:
        """File every object under the values that `values` returns for its struct."""
        self.raw.add_index(name, lambda obj: values(read(self.kind, obj)))

    def keys_by(self, index: str, value: str) -> list[ObjectKey]:
        return self.raw.keys_by(index, value)
