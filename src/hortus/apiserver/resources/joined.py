"""Items of lists, joined and compressed once for all clients while their bucket does not change.

After a restart or an outage, every client asks for the same lists at once. Joining 3,000 small objects costs as much as
sending them, and compressing them three times as much. A list that is requested a second time is cached, within a bound
of bytes; the metadata of a list changes with each revision of the store, so head and tail are put around the cached
items.
"""

from __future__ import annotations

import struct
import zlib
from collections import OrderedDict

from hortus.apiserver.resources.kind import Kind
from hortus.apiserver.store.backend import RecordPage

_MOST_BYTES = 32 * 1024 * 1024
"""The size of all kept items, compressed ones included."""
_MOST = 4096
"""Lists whose first request is remembered."""
_GZIP_HEAD = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff"
"""RFC 1952: deflate, no name, no time, fastest, from no system in particular."""
_POLYNOMIAL = 0xEDB88320
_ONE, _X = 1 << 31, 1 << 30
"""Polynomials with the bits of a CRC-32: the highest bit is the power 0."""


class Joined:
    """Items as bytes, from which a gzip stream is made without compressing them again."""

    __slots__ = ("_checksum", "_deflated", "_shift", "items")

    def __init__(self, items: bytes) -> None:
        self.items = items
        self._deflated = b""
        self._checksum = self._shift = 0

    @property
    def size(self) -> int:
        """The most bytes: those of the items and of their compressed form, if it is requested."""
        return 2 * len(self.items)

    def packed(self, head: bytes, tail: bytes) -> bytes:
        """`head`, the items and `tail` in the form of gzip."""
        if not self._deflated:
            self._deflated = _deflated(self.items, zlib.Z_FULL_FLUSH)
            self._checksum = zlib.crc32(self.items)
            self._shift = _power(8 * len(self.items))
        checksum = _times(self._shift, zlib.crc32(head)) ^ self._checksum
        end = struct.pack("<LL", zlib.crc32(tail, checksum), (len(head) + len(self.items) + len(tail)) & 0xFFFFFFFF)
        # A full flush ends on a byte, and the bytes after it do not refer back.
        parts = _GZIP_HEAD, _deflated(head, zlib.Z_FULL_FLUSH), self._deflated, _deflated(tail, zlib.Z_FINISH), end
        return b"".join(parts)


def _deflated(data: bytes, end: int) -> bytes:
    compressor = zlib.compressobj(1, zlib.DEFLATED, -zlib.MAX_WBITS)
    return compressor.compress(data) + compressor.flush(end)


def _times(left: int, right: int) -> int:
    """The product of two polynomials modulo that of CRC-32."""
    product, bit = 0, _ONE
    while bit:
        if left & bit:
            product ^= right
        bit >>= 1
        right = right >> 1 ^ _POLYNOMIAL if right & 1 else right >> 1
    return product


def _power(exponent: int) -> int:
    """x to the power of `exponent`, the factor of a checksum when that many zero bits follow."""
    power, square = _ONE, _X
    while exponent:
        if exponent & 1:
            power = _times(square, power)
        square = _times(square, square)
        exponent >>= 1
    return power


class _Asked:
    """A requested list, with the state of its bucket at that time."""

    __slots__ = ("joined", "kind", "state")

    def __init__(self, kind: Kind, state: object) -> None:
        self.kind = kind
        self.state = state
        self.joined: Joined | None = None


class JoinedLists:
    """Joined items of the lists of one server, the most recently requested last."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._asked: OrderedDict[tuple[str, str, str], _Asked] = OrderedDict()

    def of(self, kind: Kind, bucket: str, prefix: str, page: RecordPage) -> Joined | None:
        """The page's items in the version of `kind`; None at the first request, and where they cannot be cached."""
        if page.state is None or kind.upgrade or kind.converter is not None:
            return None
        key = bucket, prefix, kind.resource.api_version
        asked = self._asked.get(key)
        if asked is None or asked.state is not page.state or asked.kind is not kind:
            self._asked[key] = _Asked(kind, page.state)
            self._asked.move_to_end(key)
            if len(self._asked) > _MOST:
                self._asked.popitem(last=False)
            return None
        self._asked.move_to_end(key)
        found = asked.joined
        if found is None:
            found = asked.joined = Joined(kind.items([kind.shown(record.value) for record in page.records]))
            self._shrink()
        return found

    def _shrink(self) -> None:
        kept = [asked for asked in self._asked.values() if asked.joined is not None]
        size = sum(asked.joined.size for asked in kept if asked.joined is not None)
        for asked in kept:
            if size <= self._most_bytes:
                return
            assert asked.joined is not None
            size -= asked.joined.size
            asked.joined = None
