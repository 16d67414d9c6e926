"""Flux: installed in Shoots, with the source and the Kustomization that their owners configure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hortus.domains.garden.topics import GardenTopic

if TYPE_CHECKING:
    from hortus.domains.garden.extension.composition import SeedView
    from hortus.domains.garden.extension.topic import ConfigReviewer, ExtensionFacts, ExtensionTopic
    from hortus.engine.flags import Flag
    from hortus.engine.rbac import Permission


class _Flux(GardenTopic):
    def facts(self) -> ExtensionFacts:
        from hortus.domains.garden.flux.names import FACTS

        return FACTS

    def extension(self, values: Mapping[str, Any], view: SeedView) -> ExtensionTopic:
        from hortus.domains.garden.extension.shoots import remote_settings
        from hortus.domains.garden.flux.settings import flux_settings
        from hortus.domains.garden.flux.topic import FluxTopic

        return FluxTopic(flux_settings(values), view, remote_settings(values))

    def reviewer(self, values: Mapping[str, Any]) -> ConfigReviewer:
        from hortus.domains.garden.flux.review import FluxReviewer

        return FluxReviewer()

    def flags(self) -> Sequence[Flag]:
        from hortus.domains.garden.flux.settings import FLAGS

        return FLAGS

    def check(self, values: Mapping[str, Any]) -> None:
        from hortus.domains.garden.flux.settings import flux_settings

        flux_settings(values)

    def permissions(self) -> Sequence[Permission]:
        from hortus.domains.garden.flux.names import PERMISSIONS

        return PERMISSIONS

    def local_flags(self, folder: Path) -> Sequence[str]:
        return (f"--flux-manifests={Path(__file__).parent / 'samples'}",)


TOPIC = _Flux(__name__)
