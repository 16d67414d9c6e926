"""Sink `file`: NDJSON appended to a file, synced before it is confirmed, rotated by size.

A crash may leave the begin of a line, or lines that were not confirmed. The former is cut off at the start; the latter
come again, as with every sink.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from hortus.domains.garden.audit.buffer.sinks.sink import SinkBatch, SinkError

_BLOCK = 1024 * 1024


class FileSink:
    """`largest` is the size in bytes from which on the file is moved to `<path>.1`; `kept` moved files are kept."""

    def __init__(self, path: Path, *, largest: int = 100 * 1024**2, kept: int = 10) -> None:
        self._path = path
        self._largest = largest
        self._kept = kept
        self._file = -1

    async def send(self, batch: SinkBatch) -> None:
        try:
            await asyncio.to_thread(self._write, batch.payload)
        except OSError as error:
            self._drop()
            raise SinkError(f"{self._path}: {error.strerror or error}") from error

    async def close(self) -> None:
        self._drop()

    def _drop(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _write(self, payload: bytes) -> None:
        if self._file < 0:
            self._open()
        size = os.fstat(self._file).st_size
        if size and size + len(payload) > self._largest:
            self._rotate()
            size = 0
        try:
            rest = memoryview(payload)
            while rest:
                rest = rest[os.write(self._file, rest) :]
            getattr(os, "fdatasync", os.fsync)(self._file)
        except OSError:
            # The part that was written would stand in the file twice after the next attempt.
            os.ftruncate(self._file, size)
            raise

    def _open(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._file = os.open(self._path, flags, 0o600)
        size = os.fstat(self._file).st_size
        whole = _end_of_last_line(self._file, size)
        if whole < size:
            os.ftruncate(self._file, whole)

    def _rotate(self) -> None:
        self._drop()
        for number in range(self._kept, 0, -1):
            older = self._path if number == 1 else self._numbered(number - 1)
            if older.exists():
                older.replace(self._numbered(number))
        if self._kept == 0:
            self._path.unlink()
        self._open()

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")


def _end_of_last_line(file: int, size: int) -> int:
    end = size
    while end > 0:
        start = max(end - _BLOCK, 0)
        at = os.pread(file, end - start, start).rfind(b"\n")
        if at >= 0:
            return start + at + 1
        end = start
    return 0
