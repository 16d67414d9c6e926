"""One process per state file: an advisory lock that the kernel releases when the holder ends, however it ends."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from hortus.apiserver.store.backend import StoreFailed


class FileLock:
    """The file remains when the lock is released; only the kernel's lock on it counts."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Takes the lock and writes the process id into the file; raises StoreFailed, which names the holder."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 32).decode(errors="replace").strip()
            os.close(descriptor)
            who = f"process {holder}" if holder.isdigit() else "another process"
            raise StoreFailed(
                f"the state in {self.path.parent} is in use by {who}: stop it, or use another state directory"
            ) from None
        except OSError:
            os.close(descriptor)
            raise
        # Overwritten, not truncated first: on a full disk the file would lose its block.
        os.ftruncate(descriptor, os.pwrite(descriptor, b"%d\n" % os.getpid(), 0))
        self._descriptor = descriptor

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
