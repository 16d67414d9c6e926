"""Objects that several viewers read, each decoded once and held once.

Every viewer lists and watches with its own credential, so the API server decides what each of them gets. Shared is only
what an answer means: bytes that carry the uid and the resourceVersion of an object that another viewer holds are that
object. What no viewer holds any more is forgotten.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Iterable
from typing import Any
from weakref import WeakValueDictionary

import msgspec
import orjson

from hortus.engine.fleet import FleetKind
from hortus.engine.fleetreading import kept_part
from hortus.engine.reflector import EventStream, Page
from hortus.kube import Client
from hortus.kube.objects import Object, Resource


class SharedObject(dict[str, Any]):
    """The kept part of an object, held by the caches of all viewers that see it."""

    __slots__ = ("__weakref__", "mark")

    def __init__(self, kept: Object) -> None:
        super().__init__(kept)
        self.mark = secrets.randbits(128)
        """A random number; `marks_of` compares sets of objects by it."""


def marks_of(objects: Iterable[Object]) -> int:
    """The marks of some objects in one number: equal for the same objects, in whatever order."""
    found = 0
    for one in objects:
        found ^= mark_of(one)
    return found


def mark_of(obj: Object | None) -> int:
    """The mark of a shared object; 0 for none."""
    return obj.mark if isinstance(obj, SharedObject) else 0


class _StampMetadata(msgspec.Struct, rename="camel"):
    uid: str
    resource_version: str


class _Stamp(msgspec.Struct):
    metadata: _StampMetadata


class _RawList(msgspec.Struct):
    metadata: msgspec.Raw
    items: list[msgspec.Raw] | None = None


class _RawEvent(msgspec.Struct):
    type: str
    object: msgspec.Raw


_STAMP = msgspec.json.Decoder(_Stamp)
_LIST = msgspec.json.Decoder(_RawList)
_EVENT = msgspec.json.Decoder(_RawEvent)


class SharedKind:
    """The objects of one kind that one API server has, by uid and resourceVersion."""

    def __init__(self, kind: FleetKind) -> None:
        self._resource = kind.resource
        self._shrink = kept_part(kind)
        self._known: WeakValueDictionary[tuple[str, str], SharedObject] = WeakValueDictionary()

    def page(self, body: bytes) -> object:
        """One page of a list as JSON has it, with the known objects in their places. Raises orjson.JSONDecodeError."""
        try:
            found = _LIST.decode(body)
        except msgspec.DecodeError:
            return orjson.loads(body)
        return {
            "metadata": orjson.loads(memoryview(found.metadata)),
            "items": [self._item(raw) for raw in found.items or ()],
        }

    def event(self, line: bytes) -> object:
        """A line of a watch as JSON has it, with a known object in its place. Raises orjson.JSONDecodeError."""
        try:
            found = _EVENT.decode(line)
            known = self._known.get(_place(found.object))
        except msgspec.DecodeError:
            return orjson.loads(line)  # a bookmark and an error have no uid
        return orjson.loads(line) if known is None else {"type": found.type, "object": known}

    def kept(self, obj: Object) -> Object:
        """The shared form of an object; the transform of caches."""
        if isinstance(obj, SharedObject):
            return obj
        metadata = obj["metadata"]
        place = metadata.get("uid") or "", metadata.get("resourceVersion") or ""
        if (known := self._known.get(place)) is not None:
            return known
        shared = SharedObject({**self._kind, **self._shrink(obj)})
        if all(place):
            self._known[place] = shared
        return shared

    @property
    def _kind(self) -> Object:
        # Built-in kinds come without it in lists; the client adds it to such items by making others of them.
        return {"apiVersion": self._resource.api_version, "kind": self._resource.kind}

    def _item(self, raw: bytes) -> object:
        try:
            known = self._known.get(_place(raw))
        except msgspec.DecodeError:
            known = None
        if known is not None:
            return known
        found = orjson.loads(memoryview(raw))
        return {**self._kind, **found} if isinstance(found, dict) else found


def _place(raw: bytes) -> tuple[str, str]:
    metadata = _STAMP.decode(raw).metadata
    return metadata.uid, metadata.resource_version


class SharedReading:
    """The objects that the viewers of a dashboard share, by API server and kind."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], SharedKind] = {}

    def kind(self, client: Client, kind: FleetKind) -> SharedKind:
        """The objects of a kind of the API server that a client speaks to."""
        access = client.access
        server = access.server, access.ca, access.insecure, access.tls_server_name
        return self._known.setdefault((*server, kind), SharedKind(kind))


class SharedLister:
    """A client that lists and watches one kind, and decodes only what is not known."""

    def __init__(self, client: Client, kind: FleetKind, shared: SharedKind) -> None:
        self._client = client
        self._metadata_only = kind.metadata_only
        self._shared = shared

    def pages(
        self, resource: Resource, namespace: str = "", labels: object = "", fields: object = "", limit: int = 500
    ) -> AsyncIterator[Page]:
        return self._client.pages(
            resource, namespace, labels, fields, limit, metadata_only=self._metadata_only, decode=self._shared.page
        )

    def watch(self, resource: Resource, namespace: str = "", **options: Any) -> EventStream:
        return self._client.watch(
            resource, namespace, metadata_only=self._metadata_only, decode=self._shared.event, **options
        )
