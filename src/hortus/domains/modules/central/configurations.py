"""The ModuleConfigurations of a control plane, as the controllers of Kymas and Manifests read them."""

from __future__ import annotations

from collections.abc import Mapping

import structlog

from hortus.domains.modules.central.overriding import Override, overrides_of
from hortus.domains.modules.kinds.moduleconfiguration import MODULE_CONFIGURATIONS, ModuleConfiguration
from hortus.domains.modules.settings import Settings
from hortus.engine import Cache, Change, Manager, NotReadable, read, without_managed_fields

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def central_configurations(manager: Manager, namespace: str, settings: Settings) -> CentralConfigurations:
    """The configurations of the process's own cluster, where they are served."""
    if not settings.configurations:
        return CentralConfigurations()
    cache = manager.cache(MODULE_CONFIGURATIONS, namespace=namespace, transform=without_managed_fields)
    return CentralConfigurations(cache)


class CentralConfigurations:
    """All configurations of a namespace, decoded once for each change; none without a cache."""

    def __init__(self, cache: Cache | None = None) -> None:
        self.cache = cache
        self._known: list[ModuleConfiguration] | None = None
        if cache is not None:
            cache.subscribe(self._changed)

    def overrides(self, labels: Mapping[str, str]) -> list[Override]:
        """The overrides for a Kyma with these labels."""
        if self._known is None:
            self._known = list(self._read())
        return overrides_of(self._known, labels) if self._known else []

    def _read(self) -> list[ModuleConfiguration]:
        found = []
        for raw in self.cache.values() if self.cache is not None else ():
            try:
                found.append(read(ModuleConfiguration, raw))
            except NotReadable as error:
                _log.warning("a module configuration cannot be read", error=str(error))
        return found

    def _changed(self, change: Change) -> None:
        self._known = None
