"""Zip archives, read by their central directory, with every local header compared to it.

Methods are stored and deflated. Files whose data overlaps, names that differ between the two headers, encryption and
the 64-bit form (larger than any limit here) are refused. Format: PKWARE's APPNOTE 6.3, 4.3 and 4.4.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from hortus.render.archive.entries import ArchiveEntry, check_mode
from hortus.render.archive.errors import ArchiveError, Rule
from hortus.render.archive.limits import RemainingLimits
from hortus.render.archive.names import Names, decoded
from hortus.render.archive.streams import PIECE

_END = struct.Struct("<4sHHHHIIH")
_CENTRAL = struct.Struct("<4sHHHHHHIIIHHHHHII")
_LOCAL = struct.Struct("<4sHHHHHIIIHH")
_LONGEST_COMMENT = 0xFFFF
_STORED, _DEFLATED = 0, 8
_ENCRYPTED = 0x2041
"""Flag bits: encrypted, strongly encrypted, masked header."""
_PATCHED = 0x0020
_UNIX_HOSTS = (3, 19)
"""Systems whose upper attributes are a Unix mode: Unix and OS X."""
_FOLDER_ATTRIBUTE = 0x10
_UNICODE_PATH, _ZIP64 = 0x7075, 0x0001


class _Record(NamedTuple):
    """One entry of the central directory."""

    name: str
    raw: bytes
    host: int
    flags: int
    method: int
    crc: int
    packed: int
    size: int
    attributes: int
    offset: int

    @property
    def mode(self) -> int:
        return self.attributes >> 16 if self.host in _UNIX_HOSTS else 0

    @property
    def is_folder(self) -> bool:
        return self.name.endswith("/")


def zip_entries(data: bytes, budget: RemainingLimits, names: Names, *, ignore_trailing: bool) -> Iterator[ArchiveEntry]:
    """The entries of a zip in the order of its directory. Raises ArchiveError."""
    records, start = _directory(data, budget, ignore_trailing=ignore_trailing)
    places = {record.offset: _place(data, record) for record in records}
    _check_overlaps(records, places, start)
    for record in records:
        check_mode(record.mode, record.name)
        if record.is_folder:
            if record.size:
                raise ArchiveError(Rule.MALFORMED, "is a folder with contents of its own", entry=record.name)
            yield ArchiveEntry(names.folder(record.name), False, None)
            continue
        path = names.file(record.name)
        budget.file(record.name, record.size)
        budget.unpacked(record.size)
        budget.ratio(record.packed, record.size, record.name)
        yield ArchiveEntry(path, bool(record.mode & 0o100), _contents(data, record, places[record.offset]))


def _directory(data: bytes, budget: RemainingLimits, *, ignore_trailing: bool) -> tuple[list[_Record], int]:
    """All records, and where the directory starts."""
    end = _end_of_directory(data, ignore_trailing=ignore_trailing)
    _, disk, first, here, count, size, start, _ = _END.unpack_from(data, end)
    if 0xFFFF in (disk, count) or 0xFFFFFFFF in (size, start):
        raise ArchiveError(Rule.FORMAT, "the 64-bit form of zip is not read")
    if disk or first or here != count:
        raise ArchiveError(Rule.FORMAT, "a zip in several parts is not read")
    if start + size != end:
        raise ArchiveError(Rule.TRAILING, "data stands before or after the parts of the zip archive")
    records, place = [], start
    for _ in range(count):
        budget.entry()
        record, place = _record(data, place, end)
        records.append(record)
    if place != end:
        raise ArchiveError(Rule.MALFORMED, "the zip directory is longer than its entries")
    return records, start


def _end_of_directory(data: bytes, *, ignore_trailing: bool) -> int:
    place = len(data) - _END.size
    lowest = max(0, place - _LONGEST_COMMENT)
    while place >= 0 and (place := data.rfind(b"PK\5\6", lowest, place + 4)) >= 0:
        (length,) = struct.unpack_from("<H", data, place + _END.size - 2)
        end = place + _END.size + length
        if end == len(data) or (ignore_trailing and end < len(data)):
            return place
        place -= 1
    raise ArchiveError(Rule.TRUNCATED, "the zip archive has no directory at its end, or data follows it")


def _record(data: bytes, place: int, end: int) -> tuple[_Record, int]:
    if place + _CENTRAL.size > end or data[place : place + 4] != b"PK\1\2":
        raise ArchiveError(Rule.MALFORMED, "the zip directory cannot be read")
    fields = _CENTRAL.unpack_from(data, place)
    _, made_by, _, flags, method, _, _, crc, packed, size, name, extra, comment, _, _, attributes, offset = fields
    begin = place + _CENTRAL.size
    after = begin + name + extra + comment
    if after > end:
        raise ArchiveError(Rule.MALFORMED, "the zip directory cannot be read")
    raw = data[begin : begin + name]
    record = _Record(decoded(raw), raw, made_by >> 8, flags, method, crc, packed, size, attributes, offset)
    _check_record(record)
    _check_extra(data[begin + name : begin + name + extra], record.name)
    return record, after


def _check_record(record: _Record) -> None:
    if record.flags & _ENCRYPTED:
        raise ArchiveError(Rule.ENCRYPTED, "is encrypted", entry=record.name)
    if record.method not in (_STORED, _DEFLATED) or record.flags & _PATCHED:
        raise ArchiveError(Rule.FORMAT, f"is packed by method {record.method}, which is not read", entry=record.name)
    if record.method == _STORED and record.packed != record.size:
        raise ArchiveError(Rule.MALFORMED, "is stored, but has two sizes", entry=record.name)
    if record.attributes & _FOLDER_ATTRIBUTE and record.host not in _UNIX_HOSTS and not record.is_folder:
        raise ArchiveError(Rule.MALFORMED, "is a folder without the name of one", entry=record.name)
    if record.is_folder != (record.mode & 0o170000 == 0o040000) and record.mode & 0o170000 in (0o040000, 0o100000):
        raise ArchiveError(Rule.MALFORMED, "is called a file and a folder", entry=record.name)


def _check_extra(extra: bytes, name: str) -> None:
    while len(extra) >= 4:
        kind, length = struct.unpack_from("<HH", extra)
        if kind == _UNICODE_PATH:
            raise ArchiveError(Rule.OVERRIDE, "has a second name in an extra field", entry=name)
        if kind == _ZIP64:
            raise ArchiveError(Rule.FORMAT, "the 64-bit form of zip is not read", entry=name)
        extra = extra[4 + length :]


def _place(data: bytes, record: _Record) -> int:
    """The offset of the packed bytes, after a local header that agrees with the directory."""
    begin = record.offset + _LOCAL.size
    if begin > len(data) or data[record.offset : record.offset + 4] != b"PK\3\4":
        raise ArchiveError(Rule.MALFORMED, "has no header of its own", entry=record.name)
    _, _, flags, method, _, _, _, _, _, name, extra = _LOCAL.unpack_from(data, record.offset)
    if data[begin : begin + name] != record.raw:
        raise ArchiveError(Rule.OVERRIDE, "has another name in its own header", entry=record.name)
    if method != record.method or (flags ^ record.flags) & _ENCRYPTED:
        raise ArchiveError(Rule.OVERRIDE, "is packed another way by its own header", entry=record.name)
    return int(begin + name + extra)


def _check_overlaps(records: list[_Record], places: dict[int, int], start: int) -> None:
    """Every file has bytes of its own: shared ones make bombs of any size."""
    free = 0
    for record in sorted(records, key=lambda one: one.offset):
        if record.offset < free:
            raise ArchiveError(Rule.MALFORMED, "shares its data with another entry", entry=record.name)
        free = places[record.offset] + record.packed
        if free > start:
            raise ArchiveError(Rule.MALFORMED, "reaches into the zip directory", entry=record.name)


def _contents(data: bytes, record: _Record, place: int) -> Iterator[bytes]:
    packed = memoryview(data)[place : place + record.packed]
    pieces = _cut(packed) if record.method == _STORED else _inflate(packed, record)
    crc = size = 0
    for piece in pieces:
        size += len(piece)
        if size > record.size:
            break
        crc = zlib.crc32(piece, crc)
        yield piece
    if size != record.size or crc != record.crc:
        raise ArchiveError(
            Rule.MALFORMED, "does not match the size and checksum that the zip states", entry=record.name
        )


def _cut(packed: memoryview) -> Iterator[bytes]:
    for begin in range(0, len(packed), PIECE):
        yield bytes(packed[begin : begin + PIECE])


def _inflate(packed: memoryview, record: _Record) -> Iterator[bytes]:
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        for piece in _cut(packed):
            rest = piece
            while rest and not inflater.eof:
                if unpacked := inflater.decompress(rest, PIECE):
                    yield unpacked
                rest = inflater.unconsumed_tail
            if inflater.eof and inflater.unused_data:
                raise ArchiveError(Rule.TRAILING, "is followed by data that belongs to nothing", entry=record.name)
        while not inflater.eof and (unpacked := inflater.decompress(b"", PIECE)):
            yield unpacked
    except zlib.error as error:
        raise ArchiveError(Rule.MALFORMED, f"is damaged: {error}", entry=record.name) from None
    if not inflater.eof:
        raise ArchiveError(Rule.TRUNCATED, "its packed data ends in the middle", entry=record.name)
