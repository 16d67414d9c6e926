"""The file system of a node below a root folder: every write is whole or not there.

A file is written to the agent's own folder, gets its permissions, reaches the disk, and takes the place of the old one
by a rename. Where the target is on another file system, the last step is done next to it. Leftovers of a killed agent
are in places that the next write reuses or that `clear` empties.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from hortus.nodeagent.seams import NodeFault

FOLDER_MODE = 0o755


def _ignore(_: str) -> None:
    return None


class Disk:
    """Implements `Files`. `observe` is called with the name of each change of the disk before and after it, for tests
    that fail or end there."""

    def __init__(self, root: Path, *, scratch: str, observe: Callable[[str], None] = _ignore) -> None:
        self._root = root
        self._scratch = scratch
        self._observe = observe

    def at(self, path: str) -> Path:
        return self._root / path.lstrip("/")

    def read(self, path: str) -> bytes | None:
        try:
            return self.at(path).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            _fail("read", path, error)

    def mode(self, path: str) -> int | None:
        try:
            return self.at(path).stat().st_mode & 0o7777
        except (FileNotFoundError, NotADirectoryError):
            return None

    def modified(self, path: str) -> float | None:
        try:
            return self.at(path).stat().st_mtime
        except (FileNotFoundError, NotADirectoryError):
            return None

    def write(self, path: str, content: bytes, *, mode: int, durable: bool = True) -> bool:
        if self.read(path) == content:
            return self._set_mode(path, mode)
        try:
            self._replace(path, content, mode, durable=durable)
        except OSError as error:
            _fail("write", path, error)
        return True

    def _set_mode(self, path: str, mode: int) -> bool:
        if self.mode(path) == mode:
            return False
        try:
            self.at(path).chmod(mode)
        except OSError as error:
            _fail("set the permissions of", path, error)
        return True

    def _replace(self, path: str, content: bytes, mode: int, *, durable: bool) -> None:
        target, scratch = self.at(path), self.at(self._scratch)
        for folder in (scratch, target.parent):
            folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        written = scratch / f"{target.name}.{os.getpid()}"
        try:
            self._fill(written, content, mode, durable=durable)
            self._observe(f"rename {path}")
            try:
                written.rename(target)
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
                near = target.with_name(f".{target.name}.new")
                self._fill(near, content, mode, durable=durable)
                near.rename(target)
            self._observe(f"renamed {path}")
        finally:
            with suppress(OSError):
                written.unlink(missing_ok=True)
        if durable:
            _sync(target.parent)

    def _fill(self, place: Path, content: bytes, mode: int, *, durable: bool) -> None:
        self._observe(f"fill {place.name}")
        descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), mode)
            if durable:
                os.fsync(file.fileno())
        self._observe(f"filled {place.name}")

    def remove(self, path: str) -> bool:
        self._observe(f"remove {path}")
        try:
            self.at(path).unlink()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            _fail("remove", path, error)
        self._observe(f"removed {path}")
        return True

    def remove_empty(self, folder: str) -> None:
        try:
            self.at(folder).rmdir()
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                _fail("remove", folder, error)

    def remove_tree(self, folder: str) -> None:
        try:
            shutil.rmtree(self.at(folder))
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            _fail("remove", folder, error)

    def names(self, folder: str) -> list[str]:
        try:
            return sorted(each.name for each in self.at(folder).iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return []

    def make_folder(self, folder: str) -> None:
        try:
            self.at(folder).mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        except OSError as error:
            _fail("make", folder, error)

    def clear(self) -> None:
        """Empties the scratch folder of what a killed agent left there."""
        for name in self.names(self._scratch):
            self.remove(f"{self._scratch}/{name}")


def _sync(folder: Path) -> None:
    """Brings a rename to the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


_FIXES = {
    errno.ENOSPC: "free space on its file system",
    errno.EDQUOT: "raise the quota of its file system",
    errno.EROFS: "mount its file system writable",
    errno.EACCES: "run the agent as root",
    errno.EPERM: "run the agent as root, and look for the immutable flag (lsattr)",
    errno.EISDIR: "remove the folder of that name",
    errno.ENOTDIR: "remove the file in the place of its folder",
}


def _fail(verb: str, path: str, error: OSError) -> NoReturn:
    fix = _FIXES.get(error.errno or 0, "look at the file system of the node")
    raise NodeFault(f"cannot {verb} {path}: {(error.strerror or 'unknown error').lower()}; {fix}") from error
