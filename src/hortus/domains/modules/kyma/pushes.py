"""Versions that are pushed again: another layer under the version that Kymas have.

No watch shows a push, so the components of all installed versions are asked for from time to time. The registry
answers from memory until it is due to look again, and then by one HEAD for each version, whatever the number of Kymas.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NoReturn

import structlog

from hortus.domains.modules.kinds.manifest import EXTERNAL, LINKED
from hortus.domains.modules.kyma.seams import Components
from hortus.domains.modules.names import Annotation
from hortus.domains.modules.types import KYMAS, InstallSource, Manifest
from hortus.engine import Priority, StepError, TypedCache, read, to_owner
from hortus.engine.sources import Add, Detach, Trigger
from hortus.kube.clock import Clock
from hortus.kube.objects import shaped

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

_VERSIONS: Final = "component version"
"""Index of managed Manifests by the place of the component and its version."""


class PushedAgain:
    """A source: Kymas that have another layer of a version than the registry has now.

    `run` looks, every `period` seconds. The Manifests of a version are compared when it is seen for the first time, and
    when its layer is another than at the last look.
    """

    def __init__(self, components: Components, manifests: TypedCache[Manifest], *, clock: Clock, period: float) -> None:
        manifests.add_index(_VERSIONS, _version_of)
        self._components = components
        self._manifests = manifests
        self._clock = clock
        self._period = period
        self._layers: dict[str, str] = {}
        self._trigger = Trigger()

    def attach(self, add: Add, clock: Clock) -> Detach:
        return self._trigger.attach(add, clock)

    async def ready(self) -> None:
        return

    async def run(self) -> NoReturn:
        """Look for ever; ends by cancellation only."""
        await self._manifests.raw.synced()
        while True:
            await self.look()
            await self._clock.sleep(self._period)

    async def look(self) -> None:
        """Ask for the layer of each installed version."""
        before, self._layers = self._layers, {}
        for version in list(self._manifests.raw.values_of(_VERSIONS)):
            layer = await self._layer(version)
            self._layers[version] = layer or before.get(version, "")
            if layer and layer != before.get(version):
                self._compare(version, layer)

    async def _layer(self, version: str) -> str:
        """The place and the digest of a version's layer; empty while it cannot be read, which its Kymas report."""
        place, _, number = version.rpartition(" ")
        try:
            component = await self._components.component(place, number)
        except StepError as error:
            _log.debug("a version cannot be compared with the registry", module=place, version=number, error=str(error))
            return ""
        return _text(component.install) if component.install is not None else ""

    def _compare(self, version: str, layer: str) -> None:
        for manifest in self._manifests.raw.by(_VERSIONS, version):
            source = _source(read(Manifest, manifest))
            if source is not None and _text(source) != layer:
                for kyma in to_owner(KYMAS)(manifest):
                    self._trigger.fire(kyma, priority=Priority.RETRY)


def _version_of(manifest: Manifest) -> Iterable[str]:
    """The place and the version of the component; nothing for a Manifest whose layer cannot be pushed again."""
    annotations, source = manifest.metadata.annotations, _source(manifest)
    if manifest.spec is None or source is None or source.type == EXTERNAL or Annotation.IS_UNMANAGED in annotations:
        return ()
    place = source.repo if source.type == LINKED else annotations.get(Annotation.FQDN, "")
    return (f"{place} {manifest.spec.version}",) if place else ()


def _text(source: InstallSource) -> str:
    return f"{source.type} {source.repo} {source.name} {source.ref}"


def _source(manifest: Manifest) -> InstallSource | None:
    return shaped(manifest.spec.install.source, InstallSource) if manifest.spec is not None else None
