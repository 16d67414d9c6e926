"""Bytes out of a file or a gzip stream, counted against the budget before they are handed on."""

from __future__ import annotations

import zlib
from typing import BinaryIO, Protocol

from hortus.render.archive.errors import ArchiveError, Rule
from hortus.render.archive.limits import RemainingLimits

PIECE = 64 << 10
"""Bytes read at a time: what a file gives, and the most that one step of decompression adds."""
_GZIP = 16 + zlib.MAX_WBITS


class Stream(Protocol):
    """A forward-only stream of unpacked bytes."""

    def read(self, size: int) -> bytes:
        """Exactly `size` bytes, fewer only at the end. Raises ArchiveError."""


class Plain:
    """A file as it is."""

    def __init__(self, file: BinaryIO, budget: RemainingLimits) -> None:
        self._file = file
        self._budget = budget

    def read(self, size: int) -> bytes:
        data = self._file.read(size)
        self._budget.unpacked(len(data))
        return data


class Gunzip:
    """The contents of a gzip file, of all its members one after the other (RFC 1952, 2.2).

    What follows the last member is trailing data: refused, or ignored when `ignore_trailing`.
    """

    def __init__(self, file: BinaryIO, budget: RemainingLimits, *, ignore_trailing: bool = False) -> None:
        self._file = file
        self._budget = budget
        self._ignore_trailing = ignore_trailing
        self._member = zlib.decompressobj(_GZIP)
        self._pending = b""
        self._ready = bytearray()
        self._taken = self._given = 0
        self._ended = False

    def read(self, size: int) -> bytes:
        while len(self._ready) < size and not self._ended:
            self._more()
        data = bytes(self._ready[:size])
        del self._ready[:size]
        return data

    def _more(self) -> None:
        if self._member.eof:
            self._next_member()
            return
        if not self._pending:
            self._pending = self._input()
            if not self._pending:
                raise ArchiveError(Rule.TRUNCATED, "the gzip data ends in the middle")
        try:
            piece = self._member.decompress(self._pending, PIECE)
        except zlib.error as error:
            raise ArchiveError(Rule.MALFORMED, f"the gzip data is damaged: {error}") from None
        self._pending = self._member.unused_data if self._member.eof else self._member.unconsumed_tail
        self._given += len(piece)
        self._budget.unpacked(len(piece))
        self._budget.ratio(self._taken, self._given)
        self._ready += piece

    def _next_member(self) -> None:
        rest = self._pending
        while len(rest) < 2 and (piece := self._input()):
            rest += piece
        if rest[:2] == b"\x1f\x8b":
            self._member = zlib.decompressobj(_GZIP)
            self._pending = rest
            return
        if rest and not self._ignore_trailing:
            raise ArchiveError(Rule.TRAILING, "data follows the end of the gzip stream")
        self._ended = True

    def _input(self) -> bytes:
        piece = self._file.read(PIECE)
        self._taken += len(piece)
        return piece
