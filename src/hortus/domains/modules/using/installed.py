"""The modules of a cluster as a table: those that its Kyma lists, and community modules. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import msgspec

from hortus.domains.modules.names import CustomResourcePolicy, State
from hortus.domains.modules.types import Kyma, Module, ModuleStatus
from hortus.kube.objects import Object, shaped

HEADS: Final = ("Name", "Version", "CR Policy", "Managed", "Module Status", "Installation Status")
NOT_RUNNING: Final = "NotRunning"
COMMUNITY_HEADS: Final = ("Community Module", "Version", "Module Status", "Installation Status")
UNKNOWN: Final = "Unknown"
NO_POLICY: Final = "N/A"
"""Policy of a module that no Kyma lists."""


class InstalledModule(NamedTuple):
    """One row."""

    name: str
    version: str
    channel: str
    policy: str
    managed: bool
    resource_state: str
    """State of the module's default resource."""
    state: str
    """State of the installation."""
    message: str = ""
    """The reason for a state that needs somebody."""

    @property
    def row(self) -> tuple[str, ...]:
        return (
            self.name,
            f"{self.version}({self.channel})" if self.channel else self.version,
            self.policy,
            str(self.managed).lower(),
            self.resource_state,
            self.state,
        )

    def summary(self) -> dict[str, object]:
        """The row as JSON."""
        names = ("name", "version", "crPolicy", "managed", "moduleStatus", "installationStatus")
        return dict(zip(names, self.row, strict=True))

    @property
    def community_row(self) -> tuple[str, ...]:
        """The row in a table of community modules."""
        return (self.name, self.version, self.resource_state, self.state)

    def split_summary(self) -> dict[str, object]:
        """The row as JSON, with version and channel apart."""
        return {
            "name": self.name,
            "version": self.version,
            "channel": self.channel,
            "moduleStatus": self.resource_state,
            "managed": str(self.managed).lower(),
            "crPolicy": self.policy,
            "installationStatus": self.state,
        }

    def community_summary(self) -> dict[str, object]:
        """The row of a community module as JSON."""
        names = ("name", "version", "moduleStatus", "installationStatus")
        return dict(zip(names, self.community_row, strict=True))


def installed(kyma: Kyma, resources: Mapping[str, str]) -> list[InstalledModule]:
    """The modules of a Kyma, by name. `resources` holds the state of each module's default resource."""
    listed = {module.name: module for module in kyma.spec.modules}
    known = {status.name: status for status in kyma.status.modules}
    return [
        _row(name, listed.get(name), known.get(name), resources.get(name, UNKNOWN))
        for name in sorted(listed.keys() | known.keys())
    ]


def _row(name: str, module: Module | None, status: ModuleStatus | None, resource_state: str) -> InstalledModule:
    # A module that left the list is being removed; one that has no status yet is about to be installed.
    policy = module.custom_resource_policy if module else CustomResourcePolicy.CREATE_AND_DELETE.value
    return InstalledModule(
        name=name,
        version=status.version if status else "",
        channel=status.channel if status else (module.channel or "" if module else ""),
        policy=policy,
        managed=module.managed if module else True,
        resource_state=resource_state,
        state=status.state if status else State.PROCESSING,
        message=status.message if status else "",
    )


def found_module(name: str, version: str, state: str, resource_state: str) -> InstalledModule:
    """A module that is in the cluster and that no Kyma lists."""
    return InstalledModule(
        name=name,
        version=version,
        channel="",
        policy=NO_POLICY,
        managed=False,
        resource_state=resource_state,
        state=state,
    )


class _StateFields(msgspec.Struct):
    state: str = ""


class _Stated(msgspec.Struct):
    status: _StateFields = msgspec.field(default_factory=_StateFields)


def state_of(resource: Object | None) -> str:
    """The state of a module's default resource; None stands for one that does not exist."""
    if resource is None:
        return NOT_RUNNING
    found = shaped(resource, _Stated)
    return (found.status.state if found else "") or UNKNOWN


def problems(rows: Iterable[InstalledModule]) -> list[str]:
    """A line for each module whose state needs somebody, with the reason."""
    return [f"{row.name}: {row.state}: {row.message}" for row in rows if row.message]


def is_installed(status: ModuleStatus | None) -> bool:
    """Reports whether a module works."""
    return status is not None and status.state in (State.READY, State.WARNING)


def is_settled(status: ModuleStatus | None, channel: str, before: ModuleStatus | None) -> bool:
    """Reports whether a module works in a channel, or says why it is not moved there.

    `before` is the status at the time of the edit: its reason is that of an earlier one.
    """
    if status is None or not is_installed(status):
        return False
    return status != before if status.message else status.channel == channel


def is_unmanaged(status: ModuleStatus | None) -> bool:
    """Reports whether a module belongs to its user."""
    return status is not None and status.state == State.UNMANAGED
