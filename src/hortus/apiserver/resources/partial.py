"""PartialObjectMetadata: an object reduced to its metadata, without decoding the rest."""

from __future__ import annotations

import msgspec

_HEAD = b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":'


class _Metadata(msgspec.Struct):
    metadata: msgspec.Raw


_DECODER = msgspec.json.Decoder(_Metadata)


def partial_metadata(value: bytes) -> bytes:
    """The PartialObjectMetadata of an encoded object."""
    return _HEAD + bytes(_DECODER.decode(value).metadata) + b"}"
