"""A served kind: a definition that is compiled for requests.

Compiling a schema costs milliseconds and there are a hundred kinds, so both schemas are compiled at first use. One
`Kind` serves all logical clusters that define it alike; it holds nothing of any of them.

Objects are stored as JSON that begins `{"apiVersion":…,"kind":…,"metadata":{"resourceVersion":"…"`, so that slices of
bytes suffice to insert the revision, to remove the type of a list item, or to set another version.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Protocol

import orjson

from hortus.apiserver.resources.definition import ResourceDefinition
from hortus.apiserver.store.backend import StoredRecord, Value
from hortus.kube.errors import InternalError
from hortus.kube.objects import Object, Resource
from hortus.schema import Structural
from hortus.schema.merge import MergeSchema

_RESOURCE_VERSION = b'"resourceVersion":"'


class VersionConverter(Protocol):
    """Converts objects between versions, where they differ by more than the apiVersion."""

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
        converter: VersionConverter | None = None,
    ) -> None:
        """`storage_version` is the version that objects are stored in, by default this one; `upgrade` means that
        objects may have been stored under another schema or version and need conversion when read; `converter` converts
        versions that differ by more than their apiVersion."""
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
        """The name of a store's bucket after the cluster's name."""
        self.group_resource = f"{resource.plural}.{resource.group}" if resource.group else resource.plural
        self.error_group = group
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
        """A built-in kind as Go marshals it with nothing set: structs that are no pointers always appear."""
        parts = self.definition.schema.get("properties", {})
        structs: Object = {part: {} for part in ("spec", "status") if part in parts}
        return {"metadata": {"creationTimestamp": None}, **structs, **self.definition.zero}

    def bucket(self, cluster: str) -> str:
        return f"{cluster}/{self.suffix}"

    def encode(self, obj: Object) -> Value:
        """The bytes to store, split where the revision is inserted."""
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
        """The stored object in this version. Every call returns a new object."""
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
        """An object of another version of this resource in this version; `obj` is not changed."""
        if own._stored is not None:
            obj = own._stored.write(obj)
        if self._stored is not None:
            return self._stored.read(obj)
        return {**obj, "apiVersion": self.resource.api_version}

    def shown(self, value: bytes) -> bytes:
        """The stored bytes in this version."""
        if not self.upgrade and value.startswith(self.type_head):
            return value
        obj = self.decode(value)
        obj["apiVersion"] = self.resource.api_version
        return orjson.dumps(obj)

    def items(self, values: list[bytes]) -> bytes:
        """Shown values joined as items of a list. Built-in kinds omit the type there, as in kube-apiserver."""
        if self._items_typed:
            return b",".join(values)
        cut = slice(len(self.type_head) - len(b'"metadata":{'), None)
        return b"{" + b",{".join([value[cut] for value in values]) if values else b""

    def without_revision(self, value: Value) -> bytes:
        """The object of a dry run: it has no resourceVersion."""
        return self.shown(self._stored_head + value.tail[2:])


def cut_revision(value: bytes) -> Value:
    """Stored bytes split at their revision, without decoding them."""
    start = value.index(_RESOURCE_VERSION) + len(_RESOURCE_VERSION)
    return Value(value[:start], value[value.index(b'"', start) :])


def revision_in(value: bytes) -> str:
    """The revision in stored bytes."""
    start = value.index(_RESOURCE_VERSION) + len(_RESOURCE_VERSION)
    return value[start : value.index(b'"', start)].decode()


def revision_of(obj: Object) -> str:
    return str(obj["metadata"].get("resourceVersion", ""))


def with_revision(obj: Object, record: StoredRecord) -> Object:
    obj["metadata"]["resourceVersion"] = str(record.revision)
    return obj


def changed(new: Object, old: Object, *parts: str) -> bool:
    return any(new.get(part) != old.get(part) for part in parts)


def as_bytes(obj: Any) -> bytes:
    return orjson.dumps(obj)
