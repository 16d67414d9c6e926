"""The clusters that a command connects to.

The management cluster, first match: `--kubeconfig`; the fleet of `--state-dir`; $KUBECONFIG; the fleet that `hortus up`
runs on this machine; ~/.kube/config; the account of the pod. The garden: `--garden-kubeconfig`; $GARDEN_KUBECONFIG;
`garden.kubeconfig` next to the management cluster's file.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from hortus.terminal.failures import CommandError
from hortus.terminal.table import print_line

if TYPE_CHECKING:
    from hortus.kube import Access, Client, ConnectionSettings
    from hortus.kube.kubeconfig import Kubeconfig

GARDEN_FILE: Final = "garden.kubeconfig"
LOCAL_CONTEXT: Final = "hortus"
"""The context of a fleet's own management cluster in its file, to which people may add others."""
_UNSET: Final = "default"
"""The namespace of a context that names none."""


class GardenMissing(CommandError):
    """No option names the garden, and no file stands where one is looked for."""


class KubeconfigTarget(NamedTuple):
    """One context of one or several kubeconfig files."""

    access: Access
    context: str = ""
    """Its name; empty in a pod."""
    files: tuple[Path, ...] = ()
    """The files that its cluster, itself and its user come from; empty in a pod."""


async def _no_project(client: Client, namespace: str) -> str:
    return ""


async def _not_known(client: Client, kind: str, namespace: str) -> str:
    return ""


def _print_note(text: str) -> None:
    print_line(f"note: {text}", err=True)


DEFAULT_NAMESPACE = "kcp-system"
"""The namespace in which the Go system has all its objects, and `hortus up` as well."""


@dataclass(frozen=True)
class Connections:
    """The connection options; makes clients when asked."""

    local_state: Path
    """The state directory of `hortus up`."""
    local_chosen: bool = False
    """True if an option names the state directory, which then comes before the environment."""
    kubeconfig: Path | None = None
    context: str = ""
    garden_kubeconfig: Path | None = None
    garden_project: str = ""
    stopped: Callable[[Path], str] = lambda folder: ""
    """Returns that a fleet whose state directory this is does not run, with the fix; empty for all other folders."""
    installed_project: Callable[[Client, str], Awaitable[str]] = _no_project
    """Returns the project of the Hortus that is installed for a namespace of this cluster; empty if unknown."""
    unserved_reason: Callable[[Client, str, str], Awaitable[str]] = _not_known
    """Returns the reason for which no installed controller reconciles a kind in a namespace; empty if one does."""
    note: Callable[[str], None] = _print_note

    def management(self, settings: ConnectionSettings | None = None) -> Client:
        """A client for the management cluster. Raises KubeconfigError, CommandError."""
        return _client(self.target.access, settings)

    def garden(self, settings: ConnectionSettings | None = None) -> Client:
        """A client for the garden. Raises KubeconfigError, CommandError, GardenMissing."""
        return _client(self.garden_access, settings)

    async def garden_namespace(self, management: Client, namespace: str) -> str:
        """Namespace of the project, for objects in `namespace` of the management cluster; empty if nothing names it.

        First match: `--garden-project`; the installation on the management cluster; the namespace of the garden's
        context, or else that of its ServiceAccount.
        """
        project = self.garden_project or await self.installed_project(management, namespace)
        if project:
            return f"garden-{project}"
        return _namespace_of(self.garden_access)

    @property
    def folder(self) -> Path:
        """The folder of the management cluster's file and of the files that `hortus up` writes next to it."""
        files = self.target.files
        return files[0].parent if files else self.local_state

    @cached_property
    def target(self) -> KubeconfigTarget:
        """The management cluster's context. Raises KubeconfigError, CommandError."""
        from hortus.kube.kubeconfig import default_paths, in_cluster

        path = self._named_path()
        if path is not None:
            return self._target((path,))
        stopped = self._stopped_fleet()
        paths = tuple(found for found in default_paths() if found.exists())
        if paths:
            found = self._target(paths)
            if stopped:
                self.note(f"{stopped}; this is context {found.context} of {found.files[0]}")
            return found
        if os.environ.get("KUBERNETES_SERVICE_HOST"):
            return KubeconfigTarget(in_cluster())
        if stopped:
            raise CommandError(f"{stopped}, or give --kubeconfig FILE")
        looked = os.pathsep.join(map(str, default_paths()))
        raise CommandError(
            f"no kubeconfig at {looked}. Start a fleet on this machine with `hortus up`, or give --kubeconfig FILE"
        )

    @property
    def contexts(self) -> list[str]:
        """The contexts that `--context` may name. Raises KubeconfigError, CommandError."""
        from hortus.kube.kubeconfig import load

        path = self._named_path()
        return list(load(*([path] if path is not None else [])).contexts)

    def _named_path(self) -> Path | None:
        """The one file that an option names, or that of the running fleet; None for the files that kubectl reads."""
        if self.kubeconfig is not None:
            return self.kubeconfig.expanduser()
        local = self._local_file
        if self.local_chosen:
            if not local.exists():
                raise CommandError(f"there is no fleet of `hortus up` in {self.local_state}")
            return local
        if os.environ.get("KUBECONFIG") or not local.exists() or self.stopped(local.parent):
            return None
        return local

    @property
    def _local_file(self) -> Path:
        return self.local_state.expanduser() / "kubeconfig"

    def _stopped_fleet(self) -> str:
        """The remark that the local fleet, which no option named, is stopped; empty if another was named or it runs."""
        return "" if os.environ.get("KUBECONFIG") else self.stopped(self.local_state)

    def _target(self, paths: tuple[Path, ...]) -> KubeconfigTarget:
        """The context that an option names, else the fleet's own in its file, else the current one."""
        from hortus.kube.kubeconfig import load

        config = load(*paths)
        usual = LOCAL_CONTEXT if [path.absolute() for path in paths] == [self._local_file.absolute()] else ""
        name = self.context or (usual if usual in config.contexts else config.current_context)
        access = config.access(name)
        files = _origins(config, name)
        self._expect_running(files[0])
        return KubeconfigTarget(access, name, files)

    def _expect_running(self, file: Path) -> None:
        """Raises CommandError for a file of a fleet that is stopped."""
        if file.name in ("kubeconfig", GARDEN_FILE) and (reason := self.stopped(file.parent)):
            raise CommandError(reason)

    @property
    def garden_file(self) -> Path:
        """The file of the garden. Raises GardenMissing."""
        given = self.garden_kubeconfig
        if given is None and not self.local_chosen and os.environ.get("GARDEN_KUBECONFIG"):
            given = Path(os.environ["GARDEN_KUBECONFIG"])
        file = given or self.folder / GARDEN_FILE
        if given is None and not file.exists():
            raise GardenMissing(
                "no option names the garden: give --garden-kubeconfig FILE or set GARDEN_KUBECONFIG "
                f"(looked for {file})"
            )
        return file

    @cached_property
    def garden_access(self) -> Access:
        """The garden's context. Raises KubeconfigError, CommandError, GardenMissing."""
        from hortus.kube.kubeconfig import load

        file = self.garden_file
        access = load(file).access()
        self._expect_running(file.expanduser())
        return access


Connect = Callable[[], Connections]
"""Returns the clusters that the options of the root choose."""


def _namespace_of(access: Access) -> str:
    """The namespace of a context, else that of the ServiceAccount of its token; empty if neither says one."""
    from hortus.kube.tokens import claims_of

    if access.namespace != _UNSET:
        return access.namespace
    token = access.credentials.token
    return claims_of(token).account_namespace if token is not None else ""


def _origins(config: Kubeconfig, name: str) -> tuple[Path, ...]:
    """The files of a context's cluster, of the context and of its user, each once."""
    context = config.contexts[name]
    entries = [config.clusters[str(context.body["cluster"])], context]
    if user := context.body.get("user"):
        entries.append(config.users[str(user)])
    return tuple(dict.fromkeys(Path(entry.origin).absolute() for entry in entries))


def _client(access: Access, settings: ConnectionSettings | None) -> Client:
    from hortus.kube import Client, ConnectionSettings
    from hortus.kube.kubeconfig import through_proxy

    if settings is None:
        settings = ConnectionSettings(connections=8, timeout=30.0, connect_timeout=5.0, user_agent="hortus-cli")
    return Client(through_proxy(access), settings=settings)
