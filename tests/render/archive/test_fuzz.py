"""The reader answers any bytes with a tree or an ArchiveError, soon and in bounded memory."""

from __future__ import annotations

import gzip
import random
import struct
import tracemalloc

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.render.archive.making import entry, pax, record, tar, tgz, zipped

from hortus.render.archive import ArchiveError, Limits, Tree, pack_zip, read_archive

LIMITS = Limits(total=1 << 20, file=1 << 18, entries=50, compressed=1 << 18, slack=1 << 16)
SEEDS = [
    tar(entry(b"a/b.yaml", b"x: 1\n" * 200), entry(b"c/", kind=b"5"), pax(record(b"path", b"d" * 150)), entry(b"d")),
    tar(entry(b"@LongLink", b"e" * 200 + b"\0", kind=b"L"), entry(b"e", b"f" * 700)),
    tgz(entry(b"a/b.yaml", b"x: 1\n" * 200), entry(b"z", bytes(5000))),
    zipped({"a/b.yaml": b"x: 1\n" * 200, "c/": b"", "d": b"stored"}, modes={"c/": 0o040755}),
    zipped({"a": b"stored", "b": b"x"}, method=0),
    pack_zip(Tree({"one": b"1" * 500, "two/three": b"2"})),
]


def assert_answered(data: bytes) -> bool:
    """Returns True if the archive was read, within the limits, and False if it was refused."""
    try:
        tree = read_archive(data, limits=LIMITS)
    except ArchiveError:
        return False
    assert len(tree) <= LIMITS.entries
    assert sum(len(file.data) for file in tree.values()) <= LIMITS.total
    return True


def _resealed(data: bytes) -> bytes:
    """The checksum of every 512-byte block that could be a tar header put right, so that fuzz gets past it."""
    found = bytearray(data)
    for place in range(0, len(found) - 511, 512):
        if found[place + 257 : place + 262] == b"ustar":
            found[place + 148 : place + 156] = b" " * 8
            found[place + 148 : place + 156] = b"%06o\0 " % sum(found[place : place + 512])
    return bytes(found)


def _mutated(seed: bytes, chance: random.Random) -> bytes:
    data = bytearray(seed)
    for _ in range(chance.randint(1, 6)):
        place = chance.randrange(len(data))
        match chance.randrange(5):
            case 0:
                data[place] = chance.randrange(256)
            case 1:
                data[place] ^= 1 << chance.randrange(8)
            case 2:
                del data[place : place + chance.randint(1, 64)]
            case 3:
                data[place:place] = chance.randbytes(chance.randint(1, 64))
            case 4 if place + 4 <= len(data):
                struct.pack_into("<I", data, place, chance.choice([0, 1, 0xFFFF, 0xFFFFFFFF, 0x7FFFFFFF, len(data)]))
        if not data:
            break
    return bytes(data)


def test_damaged_archives_neither_crash_nor_hang_nor_grow() -> None:
    chance = random.Random(20240601)
    read = set()
    tracemalloc.start()
    for _ in range(1500):
        for seed in SEEDS:
            damaged = _mutated(seed, chance)
            read.add(assert_answered(damaged))
            if seed.startswith(b"a/") or seed[257:262] == b"ustar":
                sealed = _resealed(damaged)
                assert_answered(sealed)
                assert_answered(gzip.compress(sealed, 1))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 << 20
    assert read == {True, False}


@settings(max_examples=150, deadline=None)
@given(st.sampled_from([b"", b"PK\3\4", b"PK\5\6", b"\x1f\x8b\x08\0\0\0\0\0\0\3"]), st.binary(max_size=2000))
def test_arbitrary_bytes_are_answered(start: bytes, rest: bytes) -> None:
    assert_answered(start + rest)


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=60), st.binary(max_size=12), st.binary(min_size=1, max_size=1), st.binary(max_size=300))
def test_arbitrary_headers_are_answered(name: bytes, size: bytes, kind: bytes, data: bytes) -> None:
    assert_answered(tar(entry(name, data, kind=kind, size_field=size.ljust(12, b"\0"))))
    assert_answered(tar(entry(b"x", data, kind=b"x"), entry(name, data)))
