"""Registry mirrors: places from which containerd of a Shoot's nodes pulls the images of a registry first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hortus.domains.garden.topics import GardenTopic

if TYPE_CHECKING:
    from hortus.domains.garden.extension.composition import SeedView
    from hortus.domains.garden.extension.topic import ConfigReviewer, ExtensionFacts, ExtensionTopic
    from hortus.engine.rbac import Permission


class _RegistryMirror(GardenTopic):
    def facts(self) -> ExtensionFacts:
        from hortus.domains.garden.registrymirror.config import FACTS

        return FACTS

    def extension(self, values: Mapping[str, Any], view: SeedView) -> ExtensionTopic:
        from hortus.domains.garden.registrymirror.topic import MirrorTopic

        return MirrorTopic(view)

    def reviewer(self, values: Mapping[str, Any]) -> ConfigReviewer:
        from hortus.domains.garden.registrymirror.topic import MirrorReviewer

        return MirrorReviewer()

    def permissions(self) -> Sequence[Permission]:
        from hortus.domains.garden.extension.permissions import WEBHOOK_PERMISSIONS
        from hortus.domains.garden.registrymirror.config import PERMISSIONS

        return (*PERMISSIONS, *WEBHOOK_PERMISSIONS)


TOPIC = _RegistryMirror(__name__)
