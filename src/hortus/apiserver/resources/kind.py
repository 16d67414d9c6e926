"""A served kind: a definition made ready for requests.

Compiling a schema costs milliseconds and there are a hundred kinds, so both schemas are compiled at first use. One
`Kind` serves all logical clusters that define it alike; it holds nothing of any of them.

Objects are stored as JSON that begins `{"apiVersion":…,"kind":…,"metadata":{"resourceVersion":"…"`, so that the
revision can be put in, an item of a list stripped of its type, or another version's name put on, by cutting bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Protocol

import orjson

from hortus.apiserver.resources.definition import ResourceDefinition
from hortus.apiserver.store.backend import Record, Value
from hortus.kube.errors import InternalError
from hortus.kube.objects import Object, Resource
from hortus.schema import Structural
from hortus.schema.merge import MergeSchema

_RESOURCE_VERSION = b'"resourceVersion":"'


class Converter(Protocol):
    """Makes objects of one version out of another's, where that takes more than another apiVersion."""

    async def presented(self, cluster: str, values: Sequence[bytes], kind: Kind) -> list[bytes]:
        """Stored objects in the version of `kind`, laid out as stored ones. Raises InternalError."""

    async def convert(self, cluster: str, objects: Sequence[Object], version: str) -> list[Object]:
        """The objects in another apiVersion; those given stay as they are. Raises InternalError."""


class Kind:
    def __init__(
        self,
        definition: ResourceDefinition,
        *,
        custom: bool = False,
        digest: str = "",
        storage_version: str = "",
        upgrade: bool = False,
        converter: Converter | None = None,
    ) -> None:
        """`storage_version` is the version objects are written in, this one unless said; `upgrade` says that objects
        may lie there which were written under another schema or version and need work when read; `converter` makes
        other versions of objects where they differ by more than their apiVersion."""
        resource = definition.resource
        self.definition = definition
        self.resource: Resource = resource
        self.custom = custom
        self.digest = digest
        """Differs between custom kinds of one name that differ; empty for built-in ones."""
        stored = definition.stored
        group, _, version = stored.api_version.rpartition("/") if stored else (resource.group, "", storage_version)
        self.storage_version = version or resource.version
        self.suffix = f"{group or 'core'}/{resource.plural}"
        """What a store's bucket is called after the cluster's name."""
        self.group_resource = f"{resource.plural}.{resource.group}" if resource.group else resource.plural
        self.told_group = group
        """The group that messages about an object name: the one it is stored in, which few kinds share with another."""
        self.group_kind = f"{resource.kind}.{group}" if group else resource.kind
        self.upgrade = upgrade
        self.converter = converter
        self.type_head = self._head(resource.api_version)
        self._stored = stored
        self.storage_api_version = f"{group}/{self.storage_version}" if group else self.storage_version
        self._stored_head = self._head(self.storage_api_version)
        self._write_head = self._stored_head + _RESOURCE_VERSION
        self._items_typed = custom

    def _head(self, api_version: str) -> bytes:
        return b'{"apiVersion":%s,"kind":%s,"metadata":{' % (
            orjson.dumps(api_version),
            orjson.dumps(self.resource.kind),
        )

    @cached_property
    def structural(self) -> Structural:
        return Structural.compile(self.definition.schema, native=not self.custom)

    @cached_property
    def merge(self) -> MergeSchema:
        return MergeSchema.compile(self.definition.schema, empty=None if self.custom else self._empty())

    def _empty(self) -> Object:
        """What Go marshals a built-in kind to when nothing is set: structs that are no pointers always appear."""
        parts = self.definition.schema.get("properties", {})
        structs: Object = {part: {} for part in ("spec", "status") if part in parts}
        return {"metadata": {"creationTimestamp": None}, **structs, **self.definition.zero}

    def bucket(self, cluster: str) -> str:
        return f"{cluster}/{self.suffix}"

    def encode(self, obj: Object) -> Value:
        """The bytes to store, cut where the revision goes."""
        if self._stored is not None:
            obj = self._stored.write(obj)
        return self._cut(self._write_head, obj)

    def typed(self, obj: Object, revision: str = "") -> bytes:
        """An object of this version in the layout of stored ones; at its own revision unless one is given."""
        value = self._cut(self.type_head + _RESOURCE_VERSION, obj)
        return value.head + (revision or revision_of(obj)).encode() + value.tail

    def _cut(self, head: bytes, obj: Object) -> Value:
        metadata = obj["metadata"]
        if "resourceVersion" in metadata:
            metadata = {key: value for key, value in metadata.items() if key != "resourceVersion"}
        rest = {key: value for key, value in obj.items() if key not in ("apiVersion", "kind", "metadata")}
        tail, leaving = orjson.dumps(metadata)[1:], "deletionTimestamp" in metadata
        if rest:
            return Value(head, b'",%s,%s' % (tail, orjson.dumps(rest)[1:]), leaving)
        return Value(head, b'",%s}' % tail, leaving)

    def decode(self, value: bytes) -> Object:
        """The stored object as this version shows it. Every call gives a fresh object."""
        if self.converter is not None and not value.startswith(self.type_head):
            raise InternalError(f"{self.group_resource}: an object of another version has not been converted")
        obj: Object = orjson.loads(value)
        if self._stored is not None:
            obj = self._stored.read(obj)
        if self.upgrade:
            obj["apiVersion"] = self.resource.api_version
            self.structural.default(obj)
        return obj

    def reshaped(self, obj: Object, own: Kind) -> Object:
        """An object of another version of this resource as this version shows it; `obj` stays as it is."""
        if own._stored is not None:
            obj = own._stored.write(obj)
        if self._stored is not None:
            return self._stored.read(obj)
        return {**obj, "apiVersion": self.resource.api_version}

    def shown(self, value: bytes) -> bytes:
        """The stored bytes as this version shows them."""
        if not self.upgrade and value.startswith(self.type_head):
            return value
        obj = self.decode(value)
        obj["apiVersion"] = self.resource.api_version
        return orjson.dumps(obj)

    def items(self, values: list[bytes]) -> bytes:
        """Shown values joined as items of a list. Built-in kinds leave the type out there, as kube-apiserver does."""
        if self._items_typed:
            return b",".join(values)
        cut = slice(len(self.type_head) - len(b'"metadata":{'), None)
        return b"{" + b",{".join([value[cut] for value in values]) if values else b""

    def without_revision(self, value: Value) -> bytes:
        """The object of a dry run: it has no resourceVersion."""
        return self.shown(self._stored_head + value.tail[2:])


def cut_revision(value: bytes) -> Value:
    """Stored bytes cut where their revision stands, without decoding them."""
    start = value.index(_RESOURCE_VERSION) + len(_RESOURCE_VERSION)
    return Value(value[:start], value[value.index(b'"', start) :])


def revision_in(value: bytes) -> str:
    """The revision that stands in stored bytes."""
    start = value.index(_RESOURCE_VERSION) + len(_RESOURCE_VERSION)
    return value[start : value.index(b'"', start)].decode()


def revision_of(obj: Object) -> str:
    return str(obj["metadata"].get("resourceVersion", ""))


def with_revision(obj: Object, record: Record) -> Object:
    obj["metadata"]["resourceVersion"] = str(record.revision)
    return obj


def changed(new: Object, old: Object, *parts: str) -> bool:
    return any(new.get(part) != old.get(part) for part in parts)


def as_bytes(obj: Any) -> bytes:
    return orjson.dumps(obj)
