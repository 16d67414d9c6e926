"""Packing a tree so that equal trees give equal bytes: sorted, without times, owners or the packer's own marks.

Plain modes (0644, 0755), everything owned by 0, time 0 unless given. A tar is ustar with a PAX header for the names
that do not fit. What gzip gives also depends on the zlib in use; where a digest must hold across machines, take it of
the tar or of the tree.
"""

from __future__ import annotations

import struct
import zlib

from hortus.render.archive.tar import BLOCK
from hortus.render.archive.tree import Tree

_GZIP_HEAD = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff"
"""Deflate, no flags, no time, best compression, unknown system."""
_ZIP_EPOCH = 0x0021
"""1980-01-01, the earliest date of a zip."""


def pack_tar(tree: Tree, *, prefix: str = "", folders: bool = False, time: int = 0) -> bytes:
    """A tar of `tree`, each path below `prefix`; folders have entries of their own only when `folders`."""
    start = prefix.rstrip("/") + "/" if prefix else ""
    paths = sorted([*tree, *((path + "/") for path in (tree.folders if folders else ()))])
    parts: list[bytes] = []
    for path in paths:
        if path.endswith("/"):
            parts += _entry(start + path, b"", 0o755, b"5", time)
        else:
            file = tree[path]
            parts += _entry(start + path, file.data, 0o755 if file.executable else 0o644, b"0", time)
    parts.append(bytes(2 * BLOCK))
    return b"".join(parts)


def pack_tgz(tree: Tree, *, prefix: str = "", folders: bool = False, time: int = 0) -> bytes:
    """`pack_tar`, gzipped."""
    tar = pack_tar(tree, prefix=prefix, folders=folders, time=time)
    deflater = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    body = deflater.compress(tar) + deflater.flush()
    return _GZIP_HEAD + body + struct.pack("<II", zlib.crc32(tar), len(tar) & 0xFFFFFFFF)


def pack_zip(tree: Tree, *, prefix: str = "") -> bytes:
    """A zip of the files of `tree`, deflated."""
    start = prefix.rstrip("/") + "/" if prefix else ""
    body, directory = bytearray(), bytearray()
    for path, file in tree.items():
        name = (start + path).encode()
        deflater = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
        packed = deflater.compress(file.data) + deflater.flush()
        head = struct.pack(
            "<HHHHHIIIHH",
            20,
            0x0800,
            8,
            0,
            _ZIP_EPOCH,
            zlib.crc32(file.data),
            len(packed),
            len(file.data),
            len(name),
            0,
        )
        mode = (0o100755 if file.executable else 0o100644) << 16
        directory += (
            b"PK\1\2" + struct.pack("<H", 0x0314) + head + struct.pack("<HHHII", 0, 0, 0, mode, len(body)) + name
        )
        body += b"PK\3\4" + head + name + packed
    end = struct.pack("<HHHHIIH", 0, 0, len(tree), len(tree), len(directory), len(body), 0)
    return bytes(body + directory + b"PK\5\6" + end)


def _entry(path: str, data: bytes, mode: int, kind: bytes, time: int) -> list[bytes]:
    name = path.encode()
    folder, short = _split(name)
    parts = []
    if short is None:
        parts = _long_name(name, time)
        folder, short = b"", name[:100].rstrip(b"\x80\xff")
    return [*parts, _header(folder, short, len(data), mode, kind, time), data, bytes(-len(data) % BLOCK)]


def _split(name: bytes) -> tuple[bytes, bytes | None]:
    """The name as ustar's prefix and name, or (b"", None) when it fits in no way."""
    if len(name) <= 100:
        return b"", name
    for place in range(min(155, len(name) - 2), 0, -1):
        if name[place : place + 1] == b"/" and len(name) - place - 1 <= 100:
            return name[:place], name[place + 1 :]
    return b"", None


def _long_name(name: bytes, time: int) -> list[bytes]:
    body = b" path=" + name + b"\n"
    size = len(body)
    while len(b"%d" % size) + len(body) != size:
        size = len(b"%d" % size) + len(body)
    record = b"%d" % size + body
    return [_header(b"", b"PaxHeaders/name", len(record), 0o644, b"x", time), record, bytes(-len(record) % BLOCK)]


def _header(folder: bytes, name: bytes, size: int, mode: int, kind: bytes, time: int) -> bytes:
    start = b"%-100b%07o\0%07o\0%07o\0%011o\0%011o\0" % (_padded(name, 100), mode, 0, 0, size, time)
    rest = kind + bytes(100) + b"ustar\x0000" + bytes(64) + b"0000000\x000000000\0" + _padded(folder, 155) + bytes(12)
    total = sum(start) + sum(rest) + 8 * 32
    return start + b"%06o\0 " % total + rest


def _padded(text: bytes, size: int) -> bytes:
    return text + bytes(size - len(text))
