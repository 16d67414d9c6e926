"""Registry caches: pods in a Shoot that keep the images of registries, which its nodes ask first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hortus.domains.garden.topics import GardenTopic

if TYPE_CHECKING:
    from hortus.domains.garden.extension.composition import SeedView
    from hortus.domains.garden.extension.topic import ConfigReviewer, ExtensionFacts, ExtensionTopic
    from hortus.engine.flags import Flag
    from hortus.engine.rbac import Permission

_IMAGE = "registry-cache-image"


class _RegistryCache(GardenTopic):
    def facts(self) -> ExtensionFacts:
        from hortus.domains.garden.registrycache.names import FACTS

        return FACTS

    def extension(self, values: Mapping[str, Any], view: SeedView) -> ExtensionTopic:
        from hortus.domains.garden.extension.shoots import remote_settings
        from hortus.domains.garden.registrycache.topic import CacheTopic

        return CacheTopic(values[_IMAGE], view, remote_settings(values))

    def reviewer(self, values: Mapping[str, Any]) -> ConfigReviewer:
        from hortus.domains.garden.registrycache.topic import CacheReviewer

        return CacheReviewer()

    def flags(self) -> Sequence[Flag]:
        from hortus.engine.flags import Flag

        return (Flag(_IMAGE, "string", "registry:3.0.0", "Image of distribution 3, which registry caches run."),)

    def check(self, values: Mapping[str, Any]) -> None:
        from hortus.engine.flags import FlagError

        if not values[_IMAGE]:
            raise FlagError(f"flag --{_IMAGE} is empty: name an image of distribution 3")

    def permissions(self) -> Sequence[Permission]:
        from hortus.domains.garden.extension.permissions import WEBHOOK_PERMISSIONS
        from hortus.domains.garden.registrycache.names import PERMISSIONS

        return (*PERMISSIONS, *WEBHOOK_PERMISSIONS)


TOPIC = _RegistryCache(__name__)
