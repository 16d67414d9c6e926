"""The frame: the unit in which events stand in a segment file, and in which they are chained.

A frame is a header of 100 bytes and a payload of whole lines, one JSON text each. Numbers are little-endian:

    bytes   0  magic "HAB1"
            4  kind: 1 events of an API server, 2 reports of the spool about itself
            5  three bytes of zero
            8  length of the payload, u32
           12  number of lines, u32
           16  sequence number of the first line, u64
           24  time, nanoseconds since the Unix epoch, u64
           32  digest of the frame before, 32 bytes
           64  digest of this frame, 32 bytes
           96  CRC-32 of the bytes 0 to 95

The digest is SHA-256, or HMAC-SHA-256 where the spool has a key, over the bytes 0 to 63 and the payload. It contains
the digest of the frame before, so that a frame cannot be altered, removed, added or moved without breaking the chain.
The CRC separates a header that is damaged from one whose payload is: behind the latter the next frame is found by its
length.
"""

from __future__ import annotations

import enum
import hashlib
import hmac
import struct
import zlib
from collections.abc import Sequence
from typing import NamedTuple

MAGIC = b"HAB1"
_LAYOUT = struct.Struct("<4sB3xIIQQ32s32sI")
_CHAINED = 64
"""Bytes of the header that the digest covers: all but the digest itself and the CRC."""
HEADER_SIZE = _LAYOUT.size
DIGEST_SIZE = 32
LARGEST_PAYLOAD = 64 * 1024 * 1024
"""Bytes. A header that says more is damaged: the receiver takes no body of a quarter of it."""


class FrameKind(enum.IntEnum):
    EVENTS = 1
    REPORT = 2


class FrameHeader(NamedTuple):
    """The fields of a header whose CRC is right."""

    kind: int
    length: int
    lines: int
    first: int
    """Sequence number of the first line."""
    time: int
    """Nanoseconds since the Unix epoch."""
    previous: bytes
    digest: bytes

    @property
    def end(self) -> int:
        """Sequence number behind the last line."""
        return self.first + self.lines

    @property
    def size(self) -> int:
        """Bytes of the whole frame."""
        return HEADER_SIZE + self.length


class HashChain:
    """The digest function of a spool. With a `key`, only its holder can make or alter frames."""

    def __init__(self, key: bytes = b"") -> None:
        self._key = key

    @property
    def keyed(self) -> bool:
        return bool(self._key)

    def digest(self, head: bytes, parts: Sequence[bytes]) -> bytes:
        """The digest of `head` and `parts` in order; one pass over them, without a copy."""
        made = hmac.new(self._key, head, "sha256") if self._key else hashlib.sha256(head)
        for part in parts:
            made.update(part)
        return made.digest()

    def holds(self, raw: bytes, header: FrameHeader, payload: bytes) -> bool:
        """Returns whether a frame is as it was written; `raw` is its header's bytes."""
        return hmac.compare_digest(self.digest(raw[:_CHAINED], (payload,)), header.digest)


def encode_header(
    kind: FrameKind, parts: Sequence[bytes], *, count: int, first: int, time: int, previous: bytes, chain: HashChain
) -> tuple[bytes, bytes]:
    """The header of a frame with the payload `parts`, and its digest."""
    length = sum(map(len, parts))
    draft = _LAYOUT.pack(MAGIC, kind, length, count, first, time, previous, bytes(DIGEST_SIZE), 0)[:_CHAINED]
    digest = chain.digest(draft, parts)
    whole = draft + digest
    return whole + zlib.crc32(whole).to_bytes(4, "little"), digest


def decode_header(raw: bytes) -> FrameHeader | None:
    """The header that `raw` begins with; None where there is no whole one."""
    if len(raw) < HEADER_SIZE or not raw.startswith(MAGIC):
        return None
    _, kind, length, count, first, time, previous, digest, check = _LAYOUT.unpack_from(raw)
    if zlib.crc32(raw[: HEADER_SIZE - 4]) != check or length > LARGEST_PAYLOAD:
        return None
    return FrameHeader(kind, length, count, first, time, previous, digest)
