"""Tar archives: ustar, PAX and GNU's long names, read once from front to back.

Each header is checked as it comes. Extended headers may give a long name and otherwise only what is ignored here
anyway (times, owners, attributes): whatever would change how the archive is cut into entries is refused, since readers
disagree on it. Formats: POSIX.1-2017, pax, "ustar Interchange Format" and "pax Header Block"; GNU tar manual, appendix.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hortus.render.archive.entries import ArchiveEntry, check_mode
from hortus.render.archive.errors import ArchiveError, Rule
from hortus.render.archive.limits import RemainingLimits
from hortus.render.archive.names import Names, decoded
from hortus.render.archive.streams import PIECE, Stream

BLOCK = 512
_ZEROS = bytes(BLOCK)
_REFUSED = {
    b"1": (Rule.LINK, "is a hard link"),
    b"2": (Rule.LINK, "is a symbolic link"),
    b"3": (Rule.DEVICE, "is a character device"),
    b"4": (Rule.DEVICE, "is a block device"),
    b"6": (Rule.FIFO, "is a named pipe"),
    b"7": (Rule.TYPE, "is a contiguous file"),
    b"K": (Rule.LINK, "has a long link name"),
    b"S": (Rule.SPARSE, "is a sparse file"),
}
_FILES, _FOLDER, _EXTENDED, _GLOBAL, _LONG_NAME = (b"0", b"\0"), b"5", b"x", b"g", b"L"
_HARMLESS = re.compile(
    r"comment|charset|[amc]time|[ug]id|[ug]name|(?:SCHILY|LIBARCHIVE|RHT|APPLE|MSWINDOWS|SUN)\..*", re.DOTALL
)
"""Keys of extended headers that change neither name nor size."""
_OCTAL = re.compile(rb"[ \0]*([0-7]*)[ \0]*")
_DIGITS = re.compile(rb"[1-9][0-9]{0,8}")


def tar_entries(
    stream: Stream, budget: RemainingLimits, names: Names, *, ignore_trailing: bool
) -> Iterator[ArchiveEntry]:
    """The entries of a tar in its own order. Raises ArchiveError."""
    reader = _Reader(stream, budget, names)
    yield from reader.entries()
    if not ignore_trailing:
        reader.expect_nothing()


class _Reader:
    def __init__(self, stream: Stream, budget: RemainingLimits, names: Names) -> None:
        self._stream = stream
        self._budget = budget
        self._names = names
        self._long_name: str | None = None
        self._extended: dict[str, str] | None = None
        self._left = 0

    def entries(self) -> Iterator[ArchiveEntry]:
        while (header := self._header()) is not None:
            raw, size = _name(header), _number(header[124:136])
            kind = header[156:157]
            if kind in (_EXTENDED, _GLOBAL, _LONG_NAME):
                self._describe(kind, size)
                continue
            if kind in _REFUSED:
                rule, problem = _REFUSED[kind]
                raise ArchiveError(rule, f"{problem}; only files and folders are unpacked", entry=self._effective(raw))
            name = self._effective(raw)
            self._extended_size(name, size)
            self._budget.entry()
            check_mode(_number(header[100:108]), name)
            yield self._entry(kind, name, size, header)
            self._skip()

    def expect_nothing(self) -> None:
        """Only zeros may follow the end mark: tar pads to whole records."""
        while piece := self._stream.read(PIECE):
            if piece.strip(b"\0"):
                raise ArchiveError(Rule.TRAILING, "data follows the end of the tar archive")

    def _entry(self, kind: bytes, name: str, size: int, header: bytes) -> ArchiveEntry:
        if kind == _FOLDER or (kind in _FILES and name.endswith("/")):
            if size:
                raise ArchiveError(Rule.MALFORMED, "is a folder with contents of its own", entry=name)
            return ArchiveEntry(self._names.folder(name), False, None)
        if kind not in _FILES:
            raise ArchiveError(Rule.TYPE, f"has the unknown type {kind.decode('latin-1')!a}", entry=name)
        path = self._names.file(name)
        self._budget.file(name, size)
        self._left = size + -size % BLOCK
        return ArchiveEntry(path, bool(_number(header[100:108]) & 0o100), self._contents(size, name))

    def _contents(self, size: int, name: str) -> Iterator[bytes]:
        while size:
            piece = self._stream.read(min(size, PIECE))
            if not piece:
                raise ArchiveError(Rule.TRUNCATED, "the archive ends in the middle of it", entry=name)
            size -= len(piece)
            self._left -= len(piece)
            yield piece

    def _skip(self) -> None:
        while self._left:
            piece = self._stream.read(min(self._left, PIECE))
            if not piece:
                raise ArchiveError(Rule.TRUNCATED, "the archive ends in the middle of an entry")
            self._left -= len(piece)

    def _header(self) -> bytes | None:
        """The next header, or None at the end mark."""
        header = self._stream.read(BLOCK)
        if header == _ZEROS:
            if self._long_name is not None or self._extended is not None:
                raise ArchiveError(Rule.MALFORMED, "the archive ends after an extended header")
            return None
        if len(header) < BLOCK:
            raise ArchiveError(Rule.TRUNCATED, "the archive ends without an end mark")
        if not is_header(header):
            raise ArchiveError(Rule.MALFORMED, "a header does not match its checksum")
        return header

    def _describe(self, kind: bytes, size: int) -> None:
        """Take in a header that describes the entry after it."""
        if size > self._budget.limits.metadata:
            allowed = self._budget.limits.metadata
            raise ArchiveError(Rule.SIZE, f"an extended header of {size} bytes is longer than the allowed {allowed}")
        self._budget.entry()
        data = self._stream.read(size + -size % BLOCK)[:size]
        if len(data) < size:
            raise ArchiveError(Rule.TRUNCATED, "the archive ends in an extended header")
        if kind == _LONG_NAME and self._long_name is None:
            self._long_name = decoded(data.rstrip(b"\0"))
        elif kind == _EXTENDED and self._extended is None:
            self._extended = _records(data, {"path", "size"})
        elif kind == _GLOBAL:
            _records(data, set())
        else:
            raise ArchiveError(Rule.OVERRIDE, "an entry has two extended headers of one kind")

    def _effective(self, name: bytes) -> str:
        """The entry's name, out of the one place that gives it."""
        extended = (self._extended or {}).get("path")
        if extended is not None and self._long_name is not None:
            raise ArchiveError(Rule.OVERRIDE, "has two long names", entry=extended)
        if extended is None:
            extended = self._long_name
        return decoded(name) if extended is None else extended

    def _extended_size(self, name: str, size: int) -> None:
        """Forget the extended header; the size in it must be the one of the plain header."""
        text = (self._extended or {}).get("size")
        if text is not None and text != str(size):
            raise ArchiveError(Rule.OVERRIDE, f"its extended header says another size than {size}", entry=name)
        self._extended = self._long_name = None


def _records(data: bytes, taken: set[str]) -> dict[str, str]:
    """The records of a PAX header that are in `taken`; others must be harmless. Form: `<length> <key>=<value>\\n`."""
    found: dict[str, str] = {}
    while data:
        length, _, _ = data[:10].partition(b" ")
        size = int(length) if _DIGITS.fullmatch(length) else 0
        record, data = data[:size], data[size:]
        key, equals, value = record[len(length) + 1 : -1].partition(b"=")
        if not size or len(record) < size or not equals or record[-1:] != b"\n":
            raise ArchiveError(Rule.MALFORMED, "an extended header cannot be read")
        name = decoded(key)
        if name in taken:
            if name in found:
                raise ArchiveError(Rule.OVERRIDE, f"an extended header says {name} twice")
            found[name] = decoded(value)
        elif name.startswith("GNU.sparse."):
            raise ArchiveError(Rule.SPARSE, "an extended header describes a sparse file")
        elif not _HARMLESS.fullmatch(name):
            raise ArchiveError(Rule.OVERRIDE, f"an extended header sets {name[:80]!a}, which is not allowed")
    return found


def is_header(block: bytes) -> bool:
    """True when 512 bytes are a tar header: their sum, the checksum field taken as blanks, is the one they state."""
    stated = _OCTAL.fullmatch(block[148:156])
    if len(block) < BLOCK or stated is None or not stated[1]:
        return False
    rest = block[:148] + b" " * 8 + block[156:]
    wanted = int(stated[1], 8)
    return wanted == sum(rest) or wanted == sum(byte - 256 if byte > 127 else byte for byte in rest)


def _name(header: bytes) -> bytes:
    name = header[:100].partition(b"\0")[0]
    if header[257:263] == b"ustar\0":
        prefix = header[345:500].partition(b"\0")[0]
        return prefix + b"/" + name if prefix else name
    return name


def _number(field: bytes) -> int:
    """A number in octal digits, or in base 256 where the first bit is set (GNU)."""
    if field[0] & 0x80:
        if field[0] != 0x80:
            raise ArchiveError(Rule.MALFORMED, "a header holds a negative number")
        return int.from_bytes(field[1:], "big")
    digits = _OCTAL.fullmatch(field)
    if digits is None:
        raise ArchiveError(Rule.MALFORMED, "a header holds a number that cannot be read")
    return int(digits[1] or b"0", 8)
