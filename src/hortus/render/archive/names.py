"""Names of entries: which are taken, and that no two of them can meet in one place.

A name must mean the same everywhere: relative, with `/` alone, without `.` and `..`, in UTF-8 without control
characters, and different from every other name also where case or Unicode normalization do not count.
"""

from __future__ import annotations

import re
import unicodedata

from hortus.render.archive.errors import ArchiveError, Rule, shown
from hortus.render.archive.limits import Limits

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
"""Control characters, line breaks, marks that reverse what is read, and halves of characters."""
_DRIVE = re.compile(r"[A-Za-z]:")


class Names:
    """The names of one archive. `file` and `folder` clean a raw name and take its place."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._files: set[str] = set()
        self._folders: set[str] = {""}
        self._folded: dict[str, str] = {}

    def file(self, raw: str) -> str:
        """The clean path of a file. Raises ArchiveError."""
        path = clean(raw, self._limits)
        if not path or raw.endswith("/"):
            raise ArchiveError(Rule.NAME, "is no name for a file", entry=raw)
        self._parents(path, raw)
        if path in self._files:
            raise ArchiveError(Rule.DUPLICATE, "stands in the archive twice", entry=raw)
        if path in self._folders:
            raise ArchiveError(Rule.DUPLICATE, "is both a file and a folder", entry=raw)
        self._take(path, raw)
        self._files.add(path)
        return path

    def folder(self, raw: str) -> str:
        """The clean path of a folder, empty for the root; may be named more than once. Raises ArchiveError."""
        path = clean(raw, self._limits)
        if path not in self._folders:
            self._parents(path, raw)
            self._add_folder(path, raw)
        return path

    @property
    def folders(self) -> frozenset[str]:
        """All folders, named or implied by what is in them, without the root."""
        return frozenset(self._folders - {""})

    def _parents(self, path: str, raw: str) -> None:
        parent = path.rpartition("/")[0]
        if parent in self._folders:
            return
        self._parents(parent, raw)
        self._add_folder(parent, raw)

    def _add_folder(self, path: str, raw: str) -> None:
        if path in self._files:
            raise ArchiveError(Rule.DUPLICATE, f"{shown(path)} is both a file and a folder", entry=raw)
        self._take(path, raw)
        self._folders.add(path)

    def _take(self, path: str, raw: str) -> None:
        folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())
        other = self._folded.setdefault(folded, path)
        if other != path:
            raise ArchiveError(Rule.CASE, f"differs from {shown(other)} in case or normalization alone", entry=raw)


def clean(raw: str, limits: Limits) -> str:
    """`raw` without a leading `./` and a trailing `/`; empty for the root. Raises ArchiveError for any other oddity."""
    _check_text(raw, limits)
    if raw.startswith("/") or _DRIVE.match(raw):
        raise ArchiveError(Rule.ABSOLUTE, "is an absolute path", entry=raw)
    path = raw.removeprefix("./").removesuffix("/")
    if path in ("", "."):
        return ""
    parts = path.split("/")
    if len(parts) > limits.depth:
        raise ArchiveError(Rule.DEPTH, f"lies deeper than {limits.depth} folders", entry=raw)
    for part in parts:
        if part == "..":
            raise ArchiveError(Rule.PARENT, "climbs out of its folder with '..'", entry=raw)
        if part in ("", "."):
            raise ArchiveError(Rule.NAME, "holds an empty part or '.'", entry=raw)
        if len(part.encode()) > limits.component:
            raise ArchiveError(Rule.NAME_LENGTH, f"holds a part longer than {limits.component} bytes", entry=raw)
    return path


def _check_text(raw: str, limits: Limits) -> None:
    if len(raw) > limits.name or len(raw.encode("utf-8", "surrogatepass")) > limits.name:
        raise ArchiveError(Rule.NAME_LENGTH, f"has a name longer than {limits.name} bytes", entry=raw)
    if "\\" in raw:
        raise ArchiveError(Rule.NAME, "holds a backslash, which some systems take for a separator", entry=raw)
    if _CONTROL.search(raw):
        raise ArchiveError(Rule.NAME, "holds control characters", entry=raw)


def decoded(raw: bytes) -> str:
    """The text of a name. Raises ArchiveError when it is not UTF-8."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise ArchiveError(
            Rule.NAME, "has a name that is not UTF-8", entry=raw[:200].decode("ascii", "replace")
        ) from None
