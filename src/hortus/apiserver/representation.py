"""The forms in which the server sends objects, lists and events: whole, as a Table or as metadata; in JSON or YAML."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import orjson

from hortus.apiserver import tables
from hortus.apiserver.builtin import protobuf
from hortus.apiserver.http import decode_object, media_type_of
from hortus.apiserver.http.negotiation import PROTOBUF, Representation, wanted_of
from hortus.apiserver.http.queries import Query
from hortus.apiserver.http.replies import Reply
from hortus.apiserver.resources.kind import Kind
from hortus.apiserver.resources.partial import partial_metadata
from hortus.apiserver.resources.reading import LIST_TAIL, Listing, list_body, list_head
from hortus.apiserver.resources.watching import EventEncoder, SharedLines
from hortus.apiserver.turns import TurnPace
from hortus.kube import yaml
from hortus.kube.errors import ApiError, NotAcceptable
from hortus.kube.objects import GroupVersionKind, Object

_LARGE = 64 * 1024
"""Bytes of JSON from which another form is made in a thread."""
_PROTOBUF_STREAM = f"{PROTOBUF};stream=watch"
_PARTIAL_LIST = b'{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":%s,"items":[%s]}'
_STATUS = b'{"kind":"Status"'
_STREAMS = (
    "only the following media types are accepted: application/json;stream=watch, "
    "application/vnd.kubernetes.protobuf;stream=watch"
)


def negotiated(accept: str, kind: Kind, *, listing: bool = False) -> Representation:
    """The representation for a request about this kind. Raises NotAcceptable."""
    speaks = not kind.custom and protobuf.speaks(kind.resource.api_version, kind.resource.kind)
    return wanted_of(accept, protobuf=speaks, listing=listing)


def sent_object(body: bytes, content_type: str, expected: GroupVersionKind) -> Object:
    """The object in a request's body: JSON, YAML or protobuf. Raises BadRequest, UnsupportedMediaType."""
    if media_type_of(content_type) == PROTOBUF:
        return protobuf.decode(body, expected)
    return decode_object(body, content_type, expected.kind)


async def object_reply(
    wanted: Representation,
    kind: Kind,
    value: bytes,
    query: Query,
    now: float,
    pace: TurnPace,
    *,
    code: int = 200,
    warnings: tuple[str, ...] = (),
) -> Reply:
    """One object (or the Status of a deletion) in the requested form."""
    if wanted.transform and not value.startswith(_STATUS):
        if wanted.transform == "Table":
            row = tables.row_of(kind, value, include=query.get("includeObject", ""), now=now)
            meta = {"resourceVersion": orjson.loads(value)["metadata"].get("resourceVersion", "")}
            value = tables.table_body(kind, row, meta)
        elif wanted.transform == "PartialObjectMetadata":
            value = partial_metadata(value)
        else:
            raise _unacceptable(wanted, kind, is_list=False)
    return await _encoded(wanted, value, code, warnings, pace)


async def list_reply(
    wanted: Representation, kind: Kind, listing: Listing, query: Query, now: float, pace: TurnPace
) -> Reply:
    if not wanted.transform:
        body = list_body(kind, listing)
        if listing.joined is not None and wanted.encoding == "json":
            return Reply(body, pack=partial(listing.joined.packed, list_head(kind, listing), LIST_TAIL))
    elif wanted.transform == "Table":
        body = await tables.table_of(kind, listing, pace, include=query.get("includeObject", ""), now=now)
    elif wanted.transform == "PartialObjectMetadataList":
        items: list[bytes] = []
        for value in listing.values:
            if pace.due:
                await pace.turn()
            items.append(partial_metadata(value))
        body = _PARTIAL_LIST % (orjson.dumps(listing.meta()), b",".join(items))
    else:
        raise _unacceptable(wanted, kind, is_list=True)
    return await _encoded(wanted, body, 200, (), pace)


def event_encoder(wanted: Representation, kind: Kind, shared: SharedLines, query: Query, now: float) -> EventEncoder:
    """The encoder of a watch's events. Raises NotAcceptable: there is no stream of YAML documents."""
    if wanted.encoding == "protobuf":
        return _PartialProtobufEncoder(kind, shared) if wanted.transform else _ProtobufEncoder(kind, shared)
    if wanted.encoding != "json":
        raise NotAcceptable(_STREAMS)
    if wanted.transform == "Table":
        return _TableEncoder(kind, shared, query, now)
    if wanted.transform:
        return _PartialEncoder(kind, shared)
    return EventEncoder(kind, shared)


class _ProtobufEncoder(EventEncoder):
    """Encodes frames after their length, as Go clients read them."""

    form = "protobuf"
    content_type = _PROTOBUF_STREAM

    def _line(self, type_: str, value: bytes) -> bytes:
        return protobuf.encode_watch_event(type_, orjson.loads(self.object(self.kind.shown(value))))

    def bookmark(self, revision: int, annotations: bytes = b"") -> bytes:
        return protobuf.encode_watch_event("BOOKMARK", orjson.loads(super().bookmark(revision, annotations))["object"])

    def error(self, error: ApiError) -> bytes:
        return protobuf.encode_watch_event("ERROR", error.status())


class _PartialEncoder(EventEncoder):
    form = "partial"
    bookmark_head = b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",'

    def object(self, shown: bytes) -> bytes:
        return partial_metadata(shown)


class _PartialProtobufEncoder(_ProtobufEncoder):
    form = "protobuf partial"
    bookmark_head = _PartialEncoder.bookmark_head

    def object(self, shown: bytes) -> bytes:
        return partial_metadata(shown)


class _TableEncoder(EventEncoder):
    """Every event is a Table of one row; the first one also has the column definitions."""

    form = "table"
    bookmark_head = b'{"kind":"Table","apiVersion":"meta.k8s.io/v1","columnDefinitions":null,"rows":[],'

    def __init__(self, kind: Kind, shared: SharedLines, query: Query, now: float) -> None:
        super().__init__(kind, shared)
        self._include = query.get("includeObject", "")
        self._now = now
        self._first = True

    def line(self, type_: str, value: bytes, revision: int) -> bytes:
        return self._line(type_, value)

    def object(self, shown: bytes) -> bytes:
        columns, self._first = self._first, False
        meta: Mapping[str, str] = {"resourceVersion": orjson.loads(shown)["metadata"].get("resourceVersion", "")}
        row = tables.row_of(self.kind, shown, include=self._include, now=self._now)
        return tables.table_body(self.kind, row, meta, columns=columns)


async def _encoded(wanted: Representation, body: bytes, code: int, warnings: tuple[str, ...], pace: TurnPace) -> Reply:
    encode = _ENCODINGS.get(wanted.encoding)
    if encode is None:
        return Reply(body, code=code, warnings=warnings)
    form, content_type = encode
    # Both are slow; a thread shares the interpreter with the loop every few milliseconds.
    encoded = form(body) if len(body) < _LARGE else await pace.aside(partial(form, body))
    return Reply(encoded, code=code, content_type=content_type, warnings=warnings)


def _as_yaml(body: bytes) -> bytes:
    return yaml.dump(orjson.loads(body)).encode()


def _as_protobuf(body: bytes) -> bytes:
    return protobuf.encode(orjson.loads(body))


_ENCODINGS = {"yaml": (_as_yaml, "application/yaml"), "protobuf": (_as_protobuf, PROTOBUF)}


def _unacceptable(wanted: Representation, kind: Kind, *, is_list: bool) -> NotAcceptable:
    resource = kind.resource
    internal = resource.group.partition(".")[0] or "core"
    shown = "*unstructured.Unstructured" if kind.custom else f"*{internal}.{resource.kind}"
    what = f"a list ({shown}List)" if is_list else f"not a list ({shown})"
    return NotAcceptable(f"you requested {wanted.transform}, but the requested object is {what}")
