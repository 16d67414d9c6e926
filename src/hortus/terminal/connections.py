"""The cluster that a command connects to.

The management cluster, first match: `--kubeconfig`; $KUBECONFIG; the fleet that `hortus up` runs on this machine;
~/.kube/config. The garden: `--garden-kubeconfig`; $GARDEN_KUBECONFIG; `garden.kubeconfig` next to the management
cluster's file.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hortus.terminal.failures import CommandError

if TYPE_CHECKING:
    from hortus.kube import Client, ConnectionSettings


@dataclass(frozen=True)
class Connections:
    """The connection options; makes clients when asked."""

    local_state: Path
    """The state directory of `hortus up`."""
    kubeconfig: Path | None = None
    context: str = ""
    garden_kubeconfig: Path | None = None

    def management(self, settings: ConnectionSettings | None = None) -> Client:
        """A client for the management cluster. Raises KubeconfigError."""
        path = self._management_path()
        return _client(path, self.context, settings)

    def garden(self, settings: ConnectionSettings | None = None) -> Client:
        """A client for the garden. Raises KubeconfigError, CommandError when no option names it."""
        given = self.garden_kubeconfig or _path_of("GARDEN_KUBECONFIG")
        if given is not None:
            return _client(given, "", settings)
        file = self.folder / "garden.kubeconfig"
        if not file.exists():
            raise CommandError(
                "no option names the garden: give --garden-kubeconfig FILE or set GARDEN_KUBECONFIG "
                f"(looked for {file})"
            )
        return _client(file, "", settings)

    @property
    def folder(self) -> Path:
        """The folder of the management cluster's file and of the files that `hortus up` writes next to it."""
        return (self._management_path() or self.local_state / "kubeconfig").parent

    def _management_path(self) -> Path | None:
        if self.kubeconfig is not None:
            return self.kubeconfig
        if os.environ.get("KUBECONFIG"):
            return _path_of("KUBECONFIG") if os.pathsep not in os.environ["KUBECONFIG"] else None
        local = self.local_state / "kubeconfig"
        return local if local.exists() else None


def _path_of(variable: str) -> Path | None:
    text = os.environ.get(variable, "")
    return Path(text) if text else None


def _client(path: Path | None, context: str, settings: ConnectionSettings | None) -> Client:
    from hortus.kube import Client, ConnectionSettings
    from hortus.kube.kubeconfig import KubeconfigError, load

    try:
        access = load(*([path] if path is not None else [])).access(context)
    except KubeconfigError as error:
        if path is None:
            raise CommandError(
                f"{error}. Start a fleet on this machine with `hortus up`, or give --kubeconfig FILE"
            ) from None
        raise
    if settings is None:
        settings = ConnectionSettings(connections=8, timeout=30.0, connect_timeout=5.0, user_agent="hortus-cli")
    return Client(access, settings=settings)
