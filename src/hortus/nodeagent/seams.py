"""The interfaces between the agent and its node: the file system, systemd, containerd and the machine.

`hortus.nodeagent.disk`, `systemd`, `containerd` and `host` implement them; the fakes are in `hortus.nodeagent.fakes`,
but for the file system, which is a real folder in tests too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

import msgspec


class NodeFault(Exception):
    """A part of the node failed. The message names the part and the fix; nothing in it is confidential."""


class UnitStatus(msgspec.Struct, frozen=True):
    """A unit as systemd sees it; the defaults are those of a unit that it does not know."""

    load: str = "not-found"
    active: str = "inactive"
    sub: str = "dead"
    invocation: str = ""
    """128 bits in hexadecimal, another one at each start; empty before the first."""
    enabled: str = ""
    """The state of the unit file: enabled, disabled, static, ...; empty without a file."""
    kind: str = ""
    """`Type=` of a service."""
    started: float = 0.0
    """The time at which the unit last left the inactive state, in seconds since the epoch."""
    changed: float = 0.0
    """The time of the last change of the active state."""
    triggers: tuple[str, ...] = ()
    """The timers and paths that start the unit."""

    @property
    def runs(self) -> bool:
        return self.active in ("active", "activating", "reloading")


class Files(Protocol):
    """The file system of the node. Paths are those of the node; failures are `NodeFault`s."""

    def read(self, path: str) -> bytes | None:
        """Returns the content, or None without such a file."""

    def mode(self, path: str) -> int | None:
        """Returns the permissions, or None without such a file."""

    def modified(self, path: str) -> float | None:
        """Returns the time of the last change of the content, or None without such a file."""

    def write(self, path: str, content: bytes, *, mode: int, durable: bool = True) -> bool:
        """Replaces the file in one step, with its folders. Returns False when it was so before.

        Without `durable` the change may be lost when the machine stops, but is never half there.
        """

    def remove(self, path: str) -> bool:
        """Removes the file; returns False without one."""

    def remove_empty(self, folder: str) -> None:
        """Removes the folder if nothing is in it."""

    def remove_tree(self, folder: str) -> None:
        """Removes the folder with everything in it."""

    def names(self, folder: str) -> list[str]:
        """Returns the sorted names in a folder; nothing without one."""

    def make_folder(self, folder: str) -> None: ...


class UnitControl(Protocol):
    """The part of systemd that the agent uses. Failures are `NodeFault`s."""

    async def status(self, names: Collection[str], *, details: bool = True) -> Mapping[str, UnitStatus]:
        """Returns the state of each of the units. Without `details` it is one call, for load, active and sub only."""

    async def reload(self) -> None:
        """Reads all unit files again."""

    async def enable(self, name: str) -> None: ...

    async def disable(self, name: str) -> None: ...

    async def restart(self, name: str) -> str:
        """Returns the result of the job; `timeout` when there is none within ten seconds, while the job goes on."""

    async def stop(self, name: str) -> str: ...


class NodeRuntime(Protocol):
    """The part of containerd that the agent uses. Failures are `NodeFault`s."""

    async def version(self) -> str:
        """Returns the version of the running containerd."""

    async def default_config(self) -> str:
        """Returns the configuration that containerd has without a file."""

    async def file_from_image(self, image: str, path: str) -> bytes:
        """Returns a file of an image, which is pulled first."""


class MachineControl(Protocol):
    """The machine below the node: its boots, and commands that update its operating system."""

    def boot(self) -> str:
        """Returns an identifier that is another one after each start of the machine."""

    async def run(self, command: Sequence[str], *, patience: float) -> tuple[int, str]:
        """Returns the exit code and the output of a command, both streams as one text. Raises NodeFault when it cannot
        be run, or does not end within `patience` seconds."""


class UpdateReports(Protocol):
    """The part of the cluster that takes part in an update in place. Failures are `NodeFault`s and `KubeError`s."""

    @property
    def has_failed(self) -> bool:
        """True while the Node is labelled as one whose update failed."""

    @property
    def awaits_result(self) -> bool:
        """True while the Node is drained for an update without a result, or its update has failed."""

    async def begin_os(self, version: str) -> None:
        """Notes on the Node the version of the operating system that its machine is about to get."""

    async def fail(self, reason: str) -> None:
        """Labels the Node, with the reason in an annotation."""

    async def succeed(self) -> None:
        """Labels the Node, and removes what the update noted there."""

    async def pods(self) -> tuple[str, ...]:
        """Returns the pods of the node, but for static ones, as namespace/name/uid."""

    async def delete(self, pods: Collection[str]) -> None:
        """Deletes those of `pods` that are still there."""

    def sync_tokens(self) -> None:
        """Has the tokens on the node compared with their Secrets."""

    async def renew_agent(self) -> None:
        """Writes a kubeconfig with a new certificate of this agent, once a call with it succeeded."""

    async def write_kubelet_bootstrap(self) -> None:
        """Writes a kubeconfig with the kubelet's certificate and the current authority, once a call with it
        succeeded."""
