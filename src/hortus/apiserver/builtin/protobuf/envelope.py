"""The envelope around every object: four magic bytes and a runtime.Unknown that names the kind; and watch frames.

Source: kubernetes.io, API concepts, "Kubernetes Protobuf encoding"; a watch is a stream of WatchEvents, each after its
length in four bytes, the object in each in an envelope of its own.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from importlib import resources

from hortus.apiserver.builtin.protobuf.decoding import Decoder
from hortus.apiserver.builtin.protobuf.encoding import MessageEncoder
from hortus.apiserver.builtin.protobuf.wire import BYTES, WireError, delimited, key, read_length, read_varint, skip
from hortus.apiserver.builtin.shapes import plain_shapes
from hortus.kube.errors import BadRequest, NotAcceptable
from hortus.kube.objects import GroupVersionKind, Object
from hortus.schema.builtin import ShapeError, builtin

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"

_MAGIC = b"k8s\0"
_TYPE, _RAW, _ENCODING, _CONTENT = (key(number, BYTES) for number in (1, 2, 3, 4))
_NO_PREFIX = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
_EVENT_LENGTH = 4
_META_KINDS = frozenset(
    {"Status", "DeleteOptions", "CreateOptions", "UpdateOptions", "PatchOptions", "ListOptions", "GetOptions"}
)
"""Registered in every group and version alike."""


@functools.cache
def _packages() -> dict[str, str]:
    """The package alias by apiVersion."""
    text = resources.files("hortus.apiserver.builtin").joinpath("resources.txt").read_text("utf-8")
    lines = (line.split(" ") for line in text.split("\n") if line.startswith("= "))
    return {api_version: alias for _, api_version, alias in lines} | {"meta.k8s.io/v1": "meta"}


@functools.cache
def type_of(api_version: str, kind: str) -> tuple[str, bool]:
    """The struct's alias.Name, and True for a list of them; ("", False) for a kind without protobuf form."""
    description = builtin()
    if kind in _META_KINDS:
        return f"meta.{kind}", False
    alias = _packages().get(api_version)
    if alias is None:
        return "", False
    if f"{alias}.{kind}" in description:
        return f"{alias}.{kind}", False
    item = f"{alias}.{kind.removesuffix('List')}"
    return (item, True) if kind.endswith("List") and item in description else ("", False)


@functools.cache
def _encoder() -> MessageEncoder:
    return MessageEncoder(builtin())


@functools.cache
def _decoder() -> Decoder:
    return Decoder(builtin())


def speaks(api_version: str, kind: str) -> bool:
    """Reports whether objects of this kind, or lists of them, have a protobuf form."""
    return bool(type_of(api_version, kind)[0])


def encode(obj: Object) -> bytes:
    """The envelope of an object or list. Raises NotAcceptable for a kind without protobuf form."""
    api_version, kind = obj["apiVersion"], obj["kind"]
    name, is_list = type_of(api_version, kind)
    if not name:
        raise NotAcceptable(f"{kind} in {api_version} cannot be shown as {MEDIA_TYPE}: only built-in kinds can")
    encoder = _encoder()
    raw = encoder.list_message(obj, name) if is_list else encoder.message(obj, name)
    head = key(1, BYTES) + delimited(api_version.encode()) + key(2, BYTES) + delimited(kind.encode())
    parts = (_MAGIC, _TYPE, delimited(head), _RAW, delimited(raw), _ENCODING, b"\0", _CONTENT, b"\0")
    return b"".join(parts)


def decode(data: bytes, expected: GroupVersionKind | None = None) -> Object:
    """The object in an envelope, in the shape of its JSON; `expected` is its type where it names none.

    Raises BadRequest for a malformed envelope or message, and for a kind without protobuf form.
    """
    if not data.startswith(_MAGIC):
        raise BadRequest(_NO_PREFIX)
    try:
        api_version, kind, raw = _unwrap(data)
    except WireError as error:
        raise BadRequest(str(error)) from None
    if not kind and expected is not None:
        api_version, kind = expected.api_version, expected.kind
    name, is_list = type_of(api_version, kind)
    if not name:
        raise BadRequest(f'no kind "{kind}" is registered for version "{api_version}" in protobuf')
    try:
        obj = {"apiVersion": api_version, "kind": kind} | _message(raw, name, is_list=is_list)
    except (WireError, ShapeError) as error:
        version = api_version.rpartition("/")[2]
        raise BadRequest(f'{kind} in version "{version}" cannot be handled as a {kind}: {error}') from None
    return obj


def _message(raw: bytes, name: str, *, is_list: bool) -> Object:
    if not is_list:
        obj = _decoder().message(raw, name)
        plain_shapes().shape_whole(obj, name)
        return obj
    found = _decoder().list_message(raw, name)
    plain_shapes().shape_whole(found["metadata"], "meta.ListMeta")
    for item in found["items"]:
        plain_shapes().shape_whole(item, name)
    return found


def _unwrap(data: bytes) -> tuple[str, str, bytes]:
    """apiVersion, kind and message of an envelope."""
    raw = b""
    names = {1: "", 2: ""}
    for number, (start, end) in _delimited_fields(data, len(_MAGIC), len(data)):
        if number == 1:
            for place, (first, last) in _delimited_fields(data, start, end):
                names[place] = data[first:last].decode(errors="replace")
        elif number == 2:
            raw = data[start:end]
    return names[1], names[2], raw


def encode_watch_event(kind: str, obj: Object) -> bytes:
    """One frame of a watch: ADDED, MODIFIED, DELETED, BOOKMARK or ERROR, and its object."""
    inner = key(1, BYTES) + delimited(encode(obj))
    event = key(1, BYTES) + delimited(kind.encode()) + key(2, BYTES) + delimited(inner)
    return len(event).to_bytes(_EVENT_LENGTH, "big") + event


def decode_watch_events(data: bytes) -> Iterator[tuple[str, Object]]:
    """Type and object of each whole frame in `data`. Raises BadRequest for a frame that is none."""
    at = 0
    while at + _EVENT_LENGTH <= len(data):
        start = at + _EVENT_LENGTH
        at = start + int.from_bytes(data[at:start], "big")
        if at > len(data):
            return
        try:
            yield _event(data[start:at])
        except WireError as error:
            raise BadRequest(f"a watch event is malformed: {error}") from None


def _event(frame: bytes) -> tuple[str, Object]:
    kind, wrapped = "", b""
    for number, (start, end) in _delimited_fields(frame, 0, len(frame)):
        if number == 1:
            kind = frame[start:end].decode(errors="replace")
        elif number == 2:
            inner = dict(_delimited_fields(frame, start, end)).get(1)
            wrapped = frame[slice(*inner)] if inner else b""
    return kind, decode(wrapped)


def _delimited_fields(data: bytes, at: int, end: int) -> Iterator[tuple[int, tuple[int, int]]]:
    while at < end:
        tag, at = read_varint(data, at, end)
        if tag & 7 != BYTES:
            at = skip(data, at, end, tag & 7)
            continue
        start, at = read_length(data, at, end)
        yield tag >> 3, (start, at)
