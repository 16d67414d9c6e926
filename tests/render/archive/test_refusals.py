"""Refusals of untrusted archives, rule by rule."""

from __future__ import annotations

import gzip
import struct
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.render.archive.making import entry, header, library_tar, pax, record, tar, tgz, zipped

from hortus.render.archive import (
    ArchiveError,
    Limits,
    RemainingLimits,
    Rule,
    Trailing,
    read_archive,
    read_archive_file,
    unpack_archive,
)

NAMES = [
    ("/etc/passwd", Rule.ABSOLUTE),
    ("C:/windows", Rule.ABSOLUTE),
    ("c:evil", Rule.ABSOLUTE),
    ("//host/share", Rule.ABSOLUTE),
    ("..", Rule.PARENT),
    ("../x", Rule.PARENT),
    ("a/../../x", Rule.PARENT),
    ("a/..", Rule.PARENT),
    ("./../x", Rule.PARENT),
    ("a//b", Rule.NAME),
    ("a/./b", Rule.NAME),
    (".//a", Rule.ABSOLUTE),
    ("..\\x", Rule.NAME),
    ("a\nb", Rule.NAME),
    ("a\x1b[2Jb", Rule.NAME),
    ("invoice\u202efdp.exe", Rule.NAME),
    ("a" * 256, Rule.NAME_LENGTH),
    ("a/" * 600 + "b", Rule.NAME_LENGTH),
    ("a/" * 40 + "b", Rule.DEPTH),
    (".", Rule.NAME),
]


def long_named(name: str) -> bytes:
    return tar(pax(record(b"path", name.encode())), entry(b"short", b"x"))


@pytest.mark.parametrize(("name", "rule"), NAMES)
@pytest.mark.parametrize("pack", [long_named, lambda name: zipped({name: b"x"})], ids=["tar", "zip"])
def test_a_name_that_could_lead_elsewhere_is_refused(name: str, rule: Rule, pack: Callable[[str], bytes]) -> None:
    with pytest.raises(ArchiveError) as caught:
        read_archive(pack(name))
    # A leading "./" is taken off once; what is left of ".//a" is an empty part.
    assert caught.value.rule in (rule, Rule.NAME)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 400


TARS = [
    (tar(entry(b"l", kind=b"2", link=b"/etc/passwd")), Rule.LINK),
    (tar(entry(b"l", kind=b"1", link=b"file")), Rule.LINK),
    (tar(entry(b"@LongLink", b"/etc/passwd\0", kind=b"K")), Rule.LINK),
    (tar(entry(b"d", kind=b"3")), Rule.DEVICE),
    (tar(entry(b"d", kind=b"4")), Rule.DEVICE),
    (tar(entry(b"p", kind=b"6")), Rule.FIFO),
    (tar(entry(b"s", b"x", kind=b"S")), Rule.SPARSE),
    (tar(entry(b"c", kind=b"7")), Rule.TYPE),
    (tar(entry(b"x", kind=b"Z")), Rule.TYPE),
    (tar(entry(b"s", mode=0o4755)), Rule.SETUID),
    (tar(entry(b"s", mode=0o2755)), Rule.SETUID),
    (tar(entry(b"a", b"1"), entry(b"a", b"2")), Rule.DUPLICATE),
    (tar(entry(b"a", b"1"), entry(b"./a", b"2")), Rule.DUPLICATE),
    (tar(entry(b"a", b"1"), entry(b"a/b", b"2")), Rule.DUPLICATE),
    (tar(entry(b"a/b", b"1"), entry(b"a", b"2")), Rule.DUPLICATE),
    (tar(entry(b"a", b"1"), entry(b"a/", kind=b"5")), Rule.DUPLICATE),
    (tar(entry(b"a", b"1"), entry(b"A", b"2")), Rule.CASE),
    (tar(entry(b"a/x", b"1"), entry(b"A/y", b"2")), Rule.CASE),
    (tar(entry("stra\u00dfe".encode()), entry(b"STRASSE")), Rule.CASE),
    (tar(entry("caf\u00e9".encode()), entry("cafe\u0301".encode())), Rule.CASE),
    (tar(entry(b"\xff\xfe")), Rule.NAME),
    (tar(entry(b"")), Rule.NAME),
    (tar(entry(b"f/", b"contents", kind=b"5")), Rule.MALFORMED),
    (tar(pax(record(b"size", b"1")), entry(b"a", b"12345")), Rule.OVERRIDE),
    (tar(pax(record(b"size", b"99999999999")), entry(b"a", b"12345")), Rule.OVERRIDE),
    (tar(pax(record(b"path", b"a"), record(b"path", b"b")), entry(b"c")), Rule.OVERRIDE),
    (tar(pax(record(b"path", b"a"), kind=b"g"), entry(b"c")), Rule.OVERRIDE),
    (tar(pax(record(b"linkpath", b"/etc")), entry(b"c")), Rule.OVERRIDE),
    (tar(pax(record(b"hdrcharset", b"BINARY")), entry(b"c")), Rule.OVERRIDE),
    (tar(pax(record(b"path", b"a")), pax(record(b"path", b"b")), entry(b"c")), Rule.OVERRIDE),
    (tar(pax(record(b"path", b"a")), entry(b"L", b"b\0", kind=b"L"), entry(b"c")), Rule.OVERRIDE),
    (tar(pax(record(b"GNU.sparse.realsize", b"1099511627776")), entry(b"c")), Rule.SPARSE),
    (tar(entry(b"PaxHeaders/x", b"99 path=a\n", kind=b"x"), entry(b"c")), Rule.MALFORMED),
    (tar(entry(b"PaxHeaders/x", b"nonsense", kind=b"x"), entry(b"c")), Rule.MALFORMED),
    (tar(pax(record(b"path", b"a"))), Rule.MALFORMED),
    (tar(header(b"a", size_field=b"\x80" + b"\0" * 3 + b"\xff" * 8)), Rule.SIZE),
    (tar(header(b"a", size_field=b"\xff" * 12)), Rule.MALFORMED),
    (tar(header(b"a", size_field=b"77777777777\0")), Rule.SIZE),
    (tar(header(b"a", size_field=b"12x45678901\0")), Rule.MALFORMED),
    (tar(header(b"x", size=1 << 30, kind=b"x")), Rule.SIZE),
    (header(b"a", size=1000) + b"short", Rule.TRUNCATED),
    (entry(b"a", b"x"), Rule.TRUNCATED),
    (entry(b"a", b"x") + b"\0" * 100, Rule.TRUNCATED),
    (tar(entry(b"a", b"x")) + b"more", Rule.TRAILING),
    (tar(entry(b"a", b"x")) + tar(entry(b"b", b"x")), Rule.TRAILING),
    (entry(b"a", b"x") + b"\1" * 512 + bytes(1024), Rule.MALFORMED),
    (tgz(entry(b"a", b"x")) + b"more", Rule.TRAILING),
    (tgz(entry(b"a", b"x"))[:-6], Rule.TRUNCATED),
    (tgz(entry(b"a", b"x"))[:-8] + bytes(8), Rule.MALFORMED),
    (b"BZh91AY", Rule.FORMAT),
    (b"\xfd7zXZ\0", Rule.FORMAT),
    (b"\x28\xb5\x2f\xfd", Rule.FORMAT),
    (b"", Rule.FORMAT),
    (b"<html>", Rule.FORMAT),
]


@pytest.mark.parametrize(("data", "rule"), TARS, ids=[f"{n}-{rule}" for n, (_, rule) in enumerate(TARS)])
def test_a_tar_that_breaks_a_rule_is_refused_by_that_rule(data: bytes, rule: Rule, tmp_path: Path) -> None:
    with pytest.raises(ArchiveError) as caught:
        read_archive(data)
    assert caught.value.rule is rule
    with pytest.raises(ArchiveError):
        unpack_archive(data, tmp_path / "out")
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


def _with_local_name(data: bytes, name: bytes) -> bytes:
    return data.replace(name, b"x" * len(name), 1)


def _edited(data: bytes, place: int, form: str, value: int) -> bytes:
    """A zip with one field of its first directory record set."""
    found = bytearray(data)
    struct.pack_into(form, found, data.index(b"PK\1\2") + place, value)
    return bytes(found)


def _overlapping() -> bytes:
    """Two records of one body: the seed of a bomb without recursion."""
    one = zipped({"aa": b"x" * 50}).replace(b"aa", b"bb", 1)
    start = one.index(b"PK\1\2")
    central = one[start : one.index(b"PK\5\6")]
    directory = central.replace(b"aa", b"bb") * 2
    return one[:start] + directory + struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 2, 2, len(directory), start, 0)


ONE = zipped({"name": b"x" * 100})
ZIPS = [
    (zipped({"l": b"/etc"}, modes={"l": 0o120777}), Rule.LINK),
    (zipped({"d": b""}, modes={"d": 0o020666}), Rule.DEVICE),
    (zipped({"d": b""}, modes={"d": 0o140666}), Rule.DEVICE),
    (zipped({"p": b""}, modes={"p": 0o010666}), Rule.FIFO),
    (zipped({"s": b""}, modes={"s": 0o104755}), Rule.SETUID),
    (zipped({"a": b"1", "A": b"2"}), Rule.CASE),
    (zipped({"a": b"1", "a/b": b"2"}), Rule.DUPLICATE),
    (zipped({"f/": b"contents"}, modes={"f/": 0o040755}), Rule.MALFORMED),
    (_with_local_name(ONE, b"name"), Rule.OVERRIDE),
    (_edited(ONE, 8, "<H", 1), Rule.ENCRYPTED),
    (_edited(ONE, 10, "<H", 12), Rule.FORMAT),
    (_edited(ONE, 16, "<I", 0), Rule.MALFORMED),
    (_edited(ONE, 24, "<I", 99), Rule.MALFORMED),
    (_edited(ONE, 24, "<I", 101), Rule.MALFORMED),
    (_edited(ONE, 24, "<I", 0xFFFFFFF0), Rule.SIZE),
    (_edited(ONE, 20, "<I", 4), Rule.TRUNCATED),
    (_edited(ONE, 42, "<I", 5), Rule.MALFORMED),
    (_edited(ONE, 42, "<I", 0xFFFFFFF0), Rule.MALFORMED),
    (_edited(ONE, 28, "<H", 60000), Rule.MALFORMED),
    (_overlapping(), Rule.MALFORMED),
    (b"MZ" + ONE, Rule.FORMAT),
    (ONE[:4] + ONE, Rule.TRAILING),
    (ONE + b"x", Rule.TRUNCATED),
    (ONE[:-1], Rule.TRUNCATED),
    (ONE[:60], Rule.TRUNCATED),
]


@pytest.mark.parametrize(("data", "rule"), ZIPS, ids=[f"{n}-{rule}" for n, (_, rule) in enumerate(ZIPS)])
def test_a_zip_that_breaks_a_rule_is_refused_by_that_rule(data: bytes, rule: Rule, tmp_path: Path) -> None:
    with pytest.raises(ArchiveError) as caught:
        read_archive(data)
    assert caught.value.rule is rule
    with pytest.raises(ArchiveError):
        unpack_archive(data, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_data_after_the_end_may_be_ignored_on_purpose() -> None:
    for data in (tar(entry(b"a", b"x")) + b"more", tgz(entry(b"a", b"x")) + b"more", zipped({"a": b"x"}) + b"more"):
        assert read_archive(data, trailing=Trailing.IGNORE).read("a") == b"x"


def _bomb(size: int) -> bytes:
    """`size` zeros as one file of a tgz, made piece by piece."""
    deflater = zlib.compressobj(9, zlib.DEFLATED, 31)
    parts = [deflater.compress(header(b"zeros", size_field=b"\x80" + size.to_bytes(11, "big")))]
    zeros = bytes(1 << 20)
    parts += [deflater.compress(zeros) for _ in range(size >> 20)]
    return b"".join([*parts, deflater.compress(bytes(1024)), deflater.flush()])


def test_a_bomb_is_refused_in_little_memory() -> None:
    bomb = _bomb(40 << 20)
    assert len(bomb) < 50_000
    tracemalloc.start()
    with pytest.raises(ArchiveError) as caught:
        read_archive(bomb)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert caught.value.rule is Rule.RATIO
    assert peak < 16 << 20


def test_an_endless_extended_header_takes_no_memory() -> None:
    long = pax(record(b"comment", b"x" * 900_000))
    many = gzip.compress(b"".join([long] * 300), 1)
    with pytest.raises(ArchiveError) as caught:
        read_archive(many, limits=Limits(ratio=100_000, total=20 << 20))
    assert caught.value.rule in (Rule.OVERRIDE, Rule.SIZE)


def test_a_zip_bomb_is_refused_before_it_is_unpacked() -> None:
    with pytest.raises(ArchiveError) as caught:
        read_archive(zipped({"zeros": bytes(32 << 20)}))
    assert caught.value.rule is Rule.RATIO


@pytest.mark.parametrize(
    "data",
    [tar(*(entry(b"%d" % n) for n in range(101))), zipped({str(n): b"" for n in range(101)})],
    ids=["tar", "zip"],
)
def test_the_number_of_entries_is_bounded(data: bytes) -> None:
    assert len(read_archive(data, limits=Limits(entries=101))) == 101
    with pytest.raises(ArchiveError) as caught:
        read_archive(data, limits=Limits(entries=100))
    assert caught.value.rule is Rule.ENTRIES


def test_archives_within_archives_share_one_budget_and_end_at_a_depth() -> None:
    inner = tar(entry(b"file", b"x" * 3000))
    limits = Limits(total=len(inner) * 3, nested=1)
    budget = RemainingLimits(limits)
    with budget.archive("outer"):
        assert read_archive(inner, budget=budget).read("file") == b"x" * 3000
        with budget.archive("middle"), pytest.raises(ArchiveError) as caught:
            read_archive(inner, budget=budget, name="deep.tgz")
    assert caught.value.rule is Rule.NESTED
    assert "deep.tgz" in str(caught.value)
    read_archive(inner, budget=budget)
    with pytest.raises(ArchiveError) as caught:
        for _ in range(3):
            read_archive(inner, budget=budget)
    assert caught.value.rule is Rule.SIZE


def test_an_archive_on_disk_is_no_link_and_no_pipe(tmp_path: Path) -> None:
    real = tmp_path / "real.tgz"
    real.write_bytes(tgz(entry(b"a", b"x")))
    assert read_archive_file(real).read("a") == b"x"
    (tmp_path / "link.tgz").symlink_to(real)
    with pytest.raises(OSError, match="symbolic links"):
        read_archive_file(tmp_path / "link.tgz")
    with pytest.raises(ArchiveError):
        read_archive_file(tmp_path)
    with pytest.raises(ArchiveError) as caught:
        read_archive_file(real, limits=Limits(compressed=10))
    assert caught.value.rule is Rule.SIZE


def test_old_tars_of_other_writers_are_read() -> None:
    files = {"a.txt": b"hello", "deep/" + "x" * 90 + "/" + "y" * 90 + ".yaml": b"a: 1\n", "n\u00e4me": b"x"}
    for form in (0, 1, 2):
        assert {name: file.data for name, file in read_archive(library_tar(files, form)).items()} == files
