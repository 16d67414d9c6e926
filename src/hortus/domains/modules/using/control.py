"""A control plane as `hortus module why` reads it: the Kyma, the catalog of its namespace, and the Manifest."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from hortus.domains.modules.kyma.resolution import ModuleTerms, resolve
from hortus.domains.modules.names import Label
from hortus.domains.modules.types import (
    MANIFESTS,
    MODULE_RELEASE_METAS,
    MODULE_TEMPLATES,
    Kyma,
    Manifest,
    Module,
    ModuleReleaseMeta,
    ModuleTemplate,
)
from hortus.domains.modules.using.explaining import ModuleExplanation, explain
from hortus.engine import read
from hortus.kube import Client
from hortus.kube.clock import SystemClock
from hortus.terminal import CommandError


class _ListedCatalog(NamedTuple):
    releases: dict[str, ModuleReleaseMeta]
    templates: dict[str, ModuleTemplate]

    def release(self, name: str) -> ModuleReleaseMeta | None:
        return self.releases.get(name)

    def template(self, name: str) -> ModuleTemplate | None:
        return self.templates.get(name)


async def explained(client: Client, kyma: Kyma, name: str) -> ModuleExplanation:
    """The explanation of a module of `kyma`. Raises CommandError for one that the Kyma does not know, KubeError."""
    namespace = kyma.metadata.namespace
    releases = [read(ModuleReleaseMeta, one) for one in (await client.list(MODULE_RELEASE_METAS, namespace)).items]
    templates = [read(ModuleTemplate, one) for one in (await client.list(MODULE_TEMPLATES, namespace)).items]
    catalog = _ListedCatalog(
        {one.metadata.name: one for one in releases}, {one.metadata.name: one for one in templates}
    )
    status = next((one for one in kyma.status.modules if one.name == name), None)
    listed = next((one for one in kyma.spec.modules if one.name == name), None)
    if status is None and listed is None:
        known = ", ".join(sorted(one.name for one in kyma.status.modules)) or "none"
        raise CommandError(f"Kyma {kyma.metadata.name} has no module {name}; it has: {known}")
    # The list of modules is the cluster's own; the status shows here what it says.
    module = Module(name=name, channel=status.channel or None) if status else listed
    assert module is not None
    labels = f"{Label.KYMA_NAME}={kyma.metadata.name},{Label.MODULE_NAME}={name}"
    manifests = [read(Manifest, one) for one in (await client.list(MANIFESTS, namespace, labels=labels)).items]
    asked = msgspec.structs.replace(kyma, spec=msgspec.structs.replace(kyma.spec, modules=(module,)))
    (resolution,) = resolve(asked, catalog, _terms(catalog, name), SystemClock().now())
    return explain(kyma, name, status, resolution, manifests[0] if manifests else None)


def _terms(catalog: _ListedCatalog, name: str) -> ModuleTerms:
    """The operator's terms as far as a command knows them: a selector is there for a module that is restricted."""
    release = catalog.release(name)
    return ModuleTerms(restricted=frozenset((name,)) if release and release.spec.kyma_selector else frozenset())
