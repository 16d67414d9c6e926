"""Files that change under a running process: mounted Secrets and ConfigMaps, an operator's edit.

A kubelet swaps a mounted folder by one symbolic link, an editor writes a new file and renames it: so the folder is
watched, by the kernel's own means, and the content compared. Unchanged content is not reported.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from pathlib import Path

import structlog
from watchfiles import Change, awatch

from hortus.kube import Client
from hortus.kube.kubeconfig import load, through_proxy

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

_SETTLE = 200
"""Milliseconds of quiet after which several events count as one change. So often a thread for each file wakes at rest:
four of them took 0.2 % of a core with 50 ms, and 0.06 % with 200."""
_FIRST_LOOK = 1.0
"""The longest delay, in seconds, until the kernel reports a change."""


class FileWatch:
    """Calls `changed` whenever the content of `path` is another one. For `Manager.add(…, leader_only=False)`.

    A file that is gone for a moment is not a change; `changed` is called when it is back with other content.
    """

    def __init__(self, path: Path, changed: Callable[[], None]) -> None:
        self._path = path
        self._changed = changed
        self._seen = _digest(path)

    async def run(self) -> None:
        """Watch until cancelled."""
        # The kernel reports nothing that changed before it was asked to; one look of our own sees it.
        once = asyncio.get_running_loop().call_later(_FIRST_LOOK, self.look)
        try:
            async for _ in awatch(*self._folders(), watch_filter=self._concerns, step=_SETTLE, recursive=False):
                self.look()
        finally:
            once.cancel()

    def look(self) -> None:
        """Compare now."""
        found = _digest(self._path)
        if found is None or found == self._seen:
            return
        self._seen = found
        _log.info("a file has changed", path=str(self._path))
        self._changed()

    def _concerns(self, change: Change, path: str) -> bool:
        """True when the change may have changed the file: itself, the target of its link, or a kubelet's `..data`."""
        name = Path(path).name
        return name in (self._path.name, self._path.resolve().name) or name.startswith("..")

    def _folders(self) -> list[Path]:
        """The folders to watch: that of the file, and that of the file it links to."""
        return list(dict.fromkeys([self._path.absolute().parent, self._path.resolve().parent]))


class KubeconfigFile:
    """Keeps `client` in step with the kubeconfig file it was made from: a renewed credential needs no restart.

    A file that cannot be used is logged, and the client goes on as it was. `moved` is called when the file
    names another server: what the caches hold is not that server's, so the process should start again.
    """

    def __init__(self, client: Client, path: Path, *, moved: Callable[[], None]) -> None:
        self._client = client
        self._path = path
        self._moved = moved

    async def run(self) -> None:
        """Follow the file until cancelled. For `Manager.add(…, leader_only=False)`."""
        await FileWatch(self._path, self.reload).run()

    def reload(self) -> None:
        """Read the file now."""
        try:
            access = through_proxy(load(self._path).access())
            if access.server != self._client.access.server:
                _log.warning("the kubeconfig names another server now", path=str(self._path), server=access.server)
                self._moved()
                return
            self._client.become(access)
        except ValueError as error:
            _log.error("the kubeconfig cannot be used, keeping the one before", path=str(self._path), error=str(error))
            return
        _log.info("took the new kubeconfig", path=str(self._path))


def _digest(path: Path) -> bytes | None:
    try:
        return hashlib.sha256(path.read_bytes()).digest()
    except OSError:
        return None


__all__ = ["FileWatch", "KubeconfigFile"]
