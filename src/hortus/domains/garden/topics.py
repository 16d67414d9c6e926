"""Topics of the garden: one folder for each, and one descriptor through which the domain knows it.

A package in this folder that exports `TOPIC` is a topic; no other file names it. The methods of a descriptor import
what they return, as those of a domain do.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hortus.domains import DemoFleet, LocalArtifact, ProcessContext
    from hortus.domains.garden.extension.composition import SeedView
    from hortus.domains.garden.extension.topic import ConfigReviewer, ExtensionFacts, ExtensionTopic
    from hortus.engine.flags import Flag
    from hortus.engine.rbac import Permission
    from hortus.engine.rollouts.types import ChangeKind
    from hortus.kube.objects import Object, Resource
    from hortus.schema import Kind
    from hortus.terminal import CommandGroup, Connections


class GardenTopic:
    """A descriptor. Every part is optional; the defaults contribute nothing."""

    def __init__(self, package: str) -> None:
        """`package` is the `__name__` of the topic's package."""
        self.name = package.rpartition(".")[2]
        """The folder's name."""

    def facts(self) -> ExtensionFacts | None:
        """The names and the registration of the topic's extension; None for a topic that is no extension."""
        return None

    def extension(self, values: Mapping[str, Any], view: SeedView) -> ExtensionTopic | None:
        """The topic's extension for a process; None for a topic that is no extension. Raises FlagError."""
        return None

    def reviewer(self, values: Mapping[str, Any]) -> ConfigReviewer | None:
        """The extension for admission, which only judges and has no seed; None admits all. Raises FlagError."""
        return None

    def flags(self) -> Sequence[Flag]:
        """Flags of `hortus run`, besides those of the domain."""
        return ()

    def check(self, values: Mapping[str, Any]) -> None:
        """Raises FlagError for a value that cannot be used."""

    def permissions(self) -> Sequence[Permission]:
        """Requests of the topic to the seed, beyond those of the frame."""
        return ()

    def kinds(self) -> Mapping[Resource, type[Kind]]:
        """Kinds with a CRD on the management cluster."""
        return {}

    def change_kinds(self) -> Sequence[ChangeKind]:
        """The changes of many clusters for which the topic's controllers ask the gate."""
        return ()

    def admission_policies(self) -> Sequence[Object]:
        """Admission policies with their bindings, installed with the CRDs."""
        return ()

    def add_controllers(self, process: ProcessContext) -> None:
        """Add controllers next to that of the extension. Raises FlagError."""

    def add_commands(self, group: CommandGroup, connect: Callable[[], Connections]) -> None:
        """Add commands to `hortus garden`."""

    def add_fleet_commands(self, app: CommandGroup, connect: Callable[[], Connections]) -> None:
        """Add commands next to `hortus garden`."""

    def local_flags(self, folder: Path) -> Sequence[str]:
        """Arguments of the controllers in `hortus up`, whose state directory is `folder`."""
        return ()

    def local_artifacts(self, registry: str) -> Iterable[LocalArtifact]:
        """Artifacts that the registry of `hortus up`, at the address `registry`, holds at each start."""
        return ()

    def demo(self, fleet: DemoFleet) -> Iterable[tuple[Resource, Object]]:
        """Objects that `hortus up` creates on the management cluster."""
        return ()


@cache
def all_topics() -> tuple[GardenTopic, ...]:
    """The descriptors of all topics, by name."""
    folder = Path(__file__).parent
    names = sorted(found.name for found in pkgutil.iter_modules([str(folder)]) if found.ispkg)
    modules = (import_module(f"{__package__}.{name}") for name in names)
    return tuple(module.TOPIC for module in modules if hasattr(module, "TOPIC"))


def extension_topics() -> dict[str, GardenTopic]:
    """The topics that are extensions, by their type."""
    return {facts.type: topic for topic in all_topics() if (facts := topic.facts()) is not None}
