"""Protobuf for the built-in kinds, the default encoding of Go clients.

    decode(body, expected) -> Object        an object in the shape of its JSON; raises BadRequest
    encode(obj) -> bytes                    the envelope with the object in it
    encode_watch_event(type, obj) -> bytes  one frame of a watch

Everything is derived from the description, so a field is on this wire as soon as it is in `kinds.txt`. Pure functions
on bytes and dicts. No protobuf library, since the wire format is small and gogo-proto has other rules.
"""

from __future__ import annotations

from hortus.apiserver.builtin.protobuf.envelope import (
    MEDIA_TYPE,
    decode,
    decode_watch_events,
    encode,
    encode_watch_event,
    speaks,
)

__all__ = ["MEDIA_TYPE", "decode", "decode_watch_events", "encode", "encode_watch_event", "speaks"]
