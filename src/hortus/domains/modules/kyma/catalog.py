"""The catalog of modules: what the control plane offers, and the part of it that each cluster gets a copy of.

Kymas that may see the same modules share one copy set, so that thousands of them cost one selection for each change of
the catalog. The selection itself is pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Generic, NamedTuple, TypeVar

import structlog

from hortus.domains.modules.kyma.copies import Copy, CopySet, copy_set
from hortus.domains.modules.kyma.documents import catalog_copy, with_channels
from hortus.domains.modules.kyma.resolution import is_offered, template_name
from hortus.domains.modules.names import FieldOwner, Label, is_true
from hortus.domains.modules.types import MODULE_RELEASE_METAS, MODULE_TEMPLATES, ModuleReleaseMeta, ModuleTemplate
from hortus.engine import Cache, Change, NotReadable, read
from hortus.kube.objects import Object, ObjectKey
from hortus.schema import Kind

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

CATALOG: Final = "catalog"
K = TypeVar("K", bound=Kind)


class _Structs(Generic[K]):
    """The objects of a cache as structs, each decoded once for each of its states."""

    def __init__(self, kind: type[K], cache: Cache) -> None:
        self._kind = kind
        self._cache = cache
        self._known: dict[ObjectKey, tuple[Object, K]] = {}
        cache.subscribe(self._changed)

    def get(self, key: ObjectKey) -> K | None:
        raw = self._cache.get(key)
        if raw is None:
            return None
        known = self._known.get(key)
        if known is None or known[0] is not raw:
            known = self._known[key] = (raw, read(self._kind, raw))
        return known[1]

    def _changed(self, change: Change) -> None:
        self._known.pop(change.key, None)


class ModuleCatalog:
    """The ModuleReleaseMetas and ModuleTemplates of the control plane."""

    def __init__(self, releases: Cache, templates: Cache, *, restricted: frozenset[str], sync_namespace: str) -> None:
        self.releases = releases
        self.templates = templates
        self._restricted = restricted
        self._sync_namespace = sync_namespace
        self._releases = _Structs(ModuleReleaseMeta, releases)
        self._templates = _Structs(ModuleTemplate, templates)
        self.version = 0
        """Grows with every change of the catalog."""
        self._offers: dict[_Audience, CopySet] = {}
        for cache in (releases, templates):
            cache.subscribe(self._changed)

    def at(self, namespace: str) -> NamespacedCatalog:
        """The catalog for Kymas of a namespace."""
        return NamespacedCatalog(self, namespace)

    def release(self, key: ObjectKey) -> ModuleReleaseMeta | None:
        """Raises NotReadable."""
        return self._releases.get(key)

    def template(self, key: ObjectKey) -> ModuleTemplate | None:
        """Raises NotReadable."""
        return self._templates.get(key)

    def mandatory(self, namespace: str) -> list[ModuleReleaseMeta]:
        """The mandatory modules, by name."""
        found = [release for release in self._readable(namespace) if release.spec.mandatory is not None]
        return sorted(found, key=lambda release: release.metadata.name)

    def offer(self, namespace: str, labels: Mapping[str, str]) -> CopySet:
        """The copies of the catalog for a cluster whose Kyma has these labels."""
        releases = self._readable(namespace)
        restricted = frozenset(
            release.metadata.name
            for release in releases
            if (release.metadata.name in self._restricted or release.spec.kyma_selector)
            and is_offered(release, labels, self._restricted)
        )
        audience = _Audience(namespace, is_true(labels, Label.BETA), is_true(labels, Label.INTERNAL), restricted)
        found = self._offers.get(audience)
        if found is None:
            found = self._offers[audience] = self._select(releases, audience)
        return found

    def _readable(self, namespace: str) -> list[ModuleReleaseMeta]:
        found = []
        for key in self.releases:
            if key.namespace == namespace:
                try:
                    release = self._releases.get(key)
                except NotReadable as error:
                    _log.warning("a release cannot be read", release=str(key), error=str(error))
                    continue
                if release is not None:
                    found.append(release)
        return found

    def _select(self, releases: Iterable[ModuleReleaseMeta], audience: _Audience) -> CopySet:
        kept: list[Copy] = []
        wanted: dict[ObjectKey, None] = {}
        for release in sorted(releases, key=lambda one: one.metadata.name):
            if not self._is_selected(release, audience):
                continue
            channels = []
            for channel in release.spec.channels:
                key = ObjectKey(audience.namespace, template_name(release.metadata.name, channel.version))
                if self._is_shown(key, audience):
                    channels.append(channel.channel)
                    wanted[key] = None
            if channels:
                raw = self.releases[ObjectKey(audience.namespace, release.metadata.name)]
                shown = with_channels(raw, channels)
                kept.append(Copy(MODULE_RELEASE_METAS, catalog_copy(shown, MODULE_RELEASE_METAS, self._sync_namespace)))
        templates = [
            Copy(MODULE_TEMPLATES, catalog_copy(self.templates[key], MODULE_TEMPLATES, self._sync_namespace))
            for key in sorted(wanted)
        ]
        pruned = (MODULE_TEMPLATES, MODULE_RELEASE_METAS)
        return copy_set(CATALOG, FieldOwner.CATALOG, [*templates, *kept], pruned=pruned)

    def _is_selected(self, release: ModuleReleaseMeta, audience: _Audience) -> bool:
        name = release.metadata.name
        if release.spec.mandatory is not None:
            return False
        if name not in self._restricted and release.spec.kyma_selector:
            _log.warning("a release has a selector and is not restricted; it is offered to nobody", release=name)
            return False
        return name not in self._restricted or name in audience.restricted

    def _is_shown(self, key: ObjectKey, audience: _Audience) -> bool:
        try:
            template = self._templates.get(key)
        except NotReadable:
            return False
        if template is None or template.spec.mandatory:
            return False
        labels = template.metadata.labels
        if is_true(labels, Label.BETA) and not audience.beta:
            return False
        return audience.internal or not is_true(labels, Label.INTERNAL)

    def _changed(self, change: Change) -> None:
        self.version += 1
        self._offers.clear()


class _Audience(NamedTuple):
    """Kymas that see the same catalog."""

    namespace: str
    beta: bool
    internal: bool
    restricted: frozenset[str]
    """Restricted modules that they may use."""


class NamespacedCatalog(NamedTuple):
    """The catalog as the resolution of modules reads it."""

    catalog: ModuleCatalog
    namespace: str

    def release(self, name: str) -> ModuleReleaseMeta | None:
        """The ModuleReleaseMeta of that name. Raises NotReadable."""
        return self.catalog.release(ObjectKey(self.namespace, name))

    def template(self, name: str) -> ModuleTemplate | None:
        """The ModuleTemplate of that name. Raises NotReadable."""
        return self.catalog.template(ObjectKey(self.namespace, name))
