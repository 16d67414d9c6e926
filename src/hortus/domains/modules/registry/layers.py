"""The content of layers: the file in a tar, or the bytes themselves, compressed or not. Pure and CPU-bound."""

from __future__ import annotations

import zlib

from hortus.domains.modules.registry.components import OCI_DIR
from hortus.domains.modules.registry.descriptors import DESCRIPTOR_FILE, LARGEST_DESCRIPTOR
from hortus.render.archive import ArchiveError, Limits, Rule, Trailing, archive_files

_GZIP = b"\x1f\x8b"
_APPLE_DOUBLE = "._"
"""Beginning of the names of files in which macOS keeps attributes."""


def manifest_of(layer: bytes, kind: str, *, largest: int) -> bytes:
    """The file in an `oci-dir` layer, or an `oci-ref` layer itself. Raises ArchiveError."""
    if kind != OCI_DIR:
        return _plain(layer, largest)
    limits = Limits(file=largest, total=2 * largest, entries=1_000)
    for path, data in archive_files(layer, limits=limits, trailing=Trailing.IGNORE):
        if not path.rpartition("/")[2].startswith(_APPLE_DOUBLE):
            return data
    raise ArchiveError(Rule.FORMAT, "holds no file")


def descriptor_file(layer: bytes) -> bytes:
    """The component-descriptor.yaml in a descriptor layer. Raises ArchiveError."""
    limits = Limits(file=LARGEST_DESCRIPTOR, total=4 * LARGEST_DESCRIPTOR, entries=100)
    for path, data in archive_files(layer, limits=limits, trailing=Trailing.IGNORE):
        if path == DESCRIPTOR_FILE:
            return data
    raise ArchiveError(Rule.FORMAT, f"holds no {DESCRIPTOR_FILE}")


def _plain(layer: bytes, largest: int) -> bytes:
    if not layer.startswith(_GZIP):
        return layer
    inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        data = inflater.decompress(layer, largest + 1)
    except zlib.error:
        raise ArchiveError(Rule.MALFORMED, "cannot be unpacked with gzip") from None
    if len(data) > largest:
        raise ArchiveError(Rule.SIZE, f"unpacks to more than the allowed {largest} bytes")
    if not inflater.eof:
        raise ArchiveError(Rule.TRUNCATED, "ends in the middle of its gzip stream")
    return data
