"""Gardenlets by resource: each Gardenlet becomes a gardenlet in the cluster of its Seed, and stays up to date there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hortus.domains.garden.topics import GardenTopic

if TYPE_CHECKING:
    from hortus.domains import LocalArtifact, ProcessContext
    from hortus.engine.flags import Flag
    from hortus.engine.rollouts.types import ChangeKind
    from hortus.kube.objects import Object, Resource
    from hortus.schema import Kind
    from hortus.terminal import CommandGroup, Connections


class _Gardenlets(GardenTopic):
    def kinds(self) -> Mapping[Resource, type[Kind]]:
        from hortus.domains.garden.types import GARDENLETS, Gardenlet

        return {GARDENLETS: Gardenlet}

    def change_kinds(self) -> Sequence[ChangeKind]:
        from hortus.domains.garden.gardenlets.changes import CHANGE_KIND

        return (CHANGE_KIND,)

    def admission_policies(self) -> Sequence[Object]:
        from hortus.domains.garden.gardenlets.acceptance import POLICIES

        return POLICIES

    def flags(self) -> Sequence[Flag]:
        from hortus.domains.garden.gardenlets.settings import FLAGS

        return FLAGS

    def check(self, values: Mapping[str, Any]) -> None:
        from hortus.domains.garden.gardenlets.settings import gardenlet_settings

        gardenlet_settings(values)

    def add_controllers(self, process: ProcessContext) -> None:
        from hortus.domains.garden.gardenlets.settings import gardenlet_settings

        if (settings := gardenlet_settings(process.values)).is_served:
            from hortus.domains.garden.gardenlets.composition import add_to

            add_to(process, settings)

    def add_commands(self, group: CommandGroup, connect: Callable[[], Connections]) -> None:
        from hortus.domains.garden.gardenlets import commands

        commands.register(group, connect)

    def local_flags(self, folder: Path) -> Sequence[str]:
        from hortus.domains.garden.gardenlets.local import local_flags

        return local_flags(folder)

    def local_artifacts(self, registry: str) -> Iterable[LocalArtifact]:
        from hortus.domains.garden.gardenlets.local import local_artifacts

        return local_artifacts(registry)


TOPIC = _Gardenlets(__name__)
