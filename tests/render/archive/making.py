"""Archives as an attacker would write them: every field by hand, checksums right."""

from __future__ import annotations

import gzip
import io
import stat
import tarfile
import zipfile


def header(
    name: bytes = b"file",
    *,
    size: int = 0,
    kind: bytes = b"0",
    mode: int = 0o644,
    size_field: bytes | None = None,
    link: bytes = b"",
    prefix: bytes = b"",
    magic: bytes = b"ustar\x0000",
) -> bytes:
    block = bytearray(512)
    block[0 : len(name)] = name
    block[100:108] = b"%07o\0" % mode
    block[108:124] = b"0000000\x000000000\0"
    block[124:136] = size_field if size_field is not None else b"%011o\0" % size
    block[136:148] = b"00000000000\0"
    block[156:157] = kind
    block[157 : 157 + len(link)] = link
    block[257:265] = magic
    block[345 : 345 + len(prefix)] = prefix
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 512)


def entry(name: bytes, data: bytes = b"", **fields: object) -> bytes:
    return header(name, **{"size": len(data), **fields}) + padded(data)  # type: ignore[arg-type]


def record(key: bytes, value: bytes) -> bytes:
    body = b" " + key + b"=" + value + b"\n"
    size = len(body) + 1
    while len(b"%d" % size) + len(body) != size:
        size += 1
    return b"%d" % size + body


def pax(*records: bytes, kind: bytes = b"x") -> bytes:
    return entry(b"PaxHeaders/x", b"".join(records), kind=kind)


def tar(*parts: bytes) -> bytes:
    return b"".join(parts) + bytes(1024)


def tgz(*parts: bytes) -> bytes:
    return gzip.compress(tar(*parts), mtime=0)


def zipped(
    files: dict[str, bytes], *, modes: dict[str, int] | None = None, method: int = zipfile.ZIP_DEFLATED
) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in files.items():
            info = zipfile.ZipInfo(name)
            info.create_system = 3
            info.external_attr = (modes or {}).get(name, stat.S_IFREG | 0o644) << 16
            info.compress_type = method
            archive.writestr(info, data)
    return out.getvalue()


def library_tar(files: dict[str, bytes], form: int) -> bytes:
    """A tar by the standard library, a writer that is not ours."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()
