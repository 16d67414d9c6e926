"""The audit log file: lines written by a thread of its own, in batches, rotated by size.

Requests hand a line over and continue. When too many lines wait for a slow disk, requests wait too, because an audit
log must not drop lines. A failure of the file is logged and counted, and requests continue.
"""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import threading
from io import BufferedWriter
from pathlib import Path

_log = logging.getLogger("hortus.apiserver.audit")
_WAITING = 4096
"""Lines that may wait for the disk before requests do."""
_BATCH = 256


class AuditLog:
    """`largest` is the size in bytes at which the file is rotated to `<path>.1`; `kept` rotated files are kept."""

    def __init__(self, path: Path, *, largest: int = 100 * 1024 * 1024, kept: int = 10) -> None:
        self.path = path
        self._largest = largest
        self._kept = kept
        self._lines: queue.Queue[bytes | threading.Event | None] = queue.Queue(_WAITING)
        self._thread: threading.Thread | None = None
        self.lost = 0
        """Lines that could not be written."""

    async def start(self) -> None:
        """Open the file. Raises OSError."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        file = _opened(self.path)
        self._thread = threading.Thread(target=self._run, args=(file,), name="audit-log", daemon=True)
        self._thread.start()

    async def stop(self) -> None:
        """Writes the waiting lines and closes the file."""
        thread, self._thread = self._thread, None
        if thread is not None:
            await asyncio.to_thread(self._end, thread)

    def write(self, line: bytes) -> None:
        """Hands over one line, without its line end."""
        self._lines.put(line)

    async def flush(self) -> None:
        """Returns when all lines handed over so far are in the file."""
        written = threading.Event()
        await asyncio.to_thread(self._lines.put, written)
        await asyncio.to_thread(written.wait)

    def _end(self, thread: threading.Thread) -> None:
        self._lines.put(None)
        thread.join()

    def _run(self, file: BufferedWriter) -> None:
        while True:
            batch: list[bytes] = []
            item = self._lines.get()
            while isinstance(item, bytes):
                batch.append(item)
                item = self._lines.get() if len(batch) < _BATCH and not self._lines.empty() else b""
                if item == b"":
                    break
            file = self._written(file, batch)
            if isinstance(item, threading.Event):
                item.set()
            elif item is None:
                file.close()
                return

    def _written(self, file: BufferedWriter, batch: list[bytes]) -> BufferedWriter:
        """Writes the batch, with a rotation where one is due; returns the file that is open afterwards."""
        try:
            if file.closed:
                file = _opened(self.path)
            for line in batch:
                if file.tell() and file.tell() + len(line) + 1 > self._largest:
                    file = self._rotated(file)
                file.write(line + b"\n")
            file.flush()
        except (OSError, ValueError) as error:
            # ValueError: the rotation failed after it had closed the file, which is opened again for the next lines.
            self.lost += len(batch)
            _log.error("the audit log cannot be written", exc_info=error)
        return file

    def _rotated(self, file: BufferedWriter) -> BufferedWriter:
        file.close()
        for number in range(self._kept - 1, 0, -1):
            older = _numbered(self.path, number)
            if older.exists():
                older.replace(_numbered(self.path, number + 1))
        if self._kept:
            self.path.replace(_numbered(self.path, 1))
        else:
            self.path.unlink()
        return _opened(self.path)


def _numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")


def _opened(path: Path) -> BufferedWriter:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    file = os.fdopen(handle, "ab")
    file.seek(0, os.SEEK_END)
    return file
