"""The component constructor of a module. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hortus.domains.modules.names import GROUP, Annotation, Label
from hortus.domains.modules.publishing.config import ModuleConfig
from hortus.domains.modules.publishing.constructor import (
    ConstructedComponent,
    Constructor,
    ConstructorLabel,
    ConstructorResource,
    ConstructorSource,
    Provider,
    ResourceAccess,
    ResourceInput,
)
from hortus.domains.modules.publishing.images import ModuleImage, distinct_names
from hortus.domains.modules.publishing.template import dependencies_text

PROVIDER = "kyma-project.io"
_BUILT_BY = ConstructorLabel(name="kyma-project.io/built-by", value="modulectl")
_REQUIRES_DOWNTIME = f"{GROUP}/requiresDowntime"
_SCAN = ConstructorLabel(name="security.kyma-project.io/scan", value="enabled")
_RESPONSIBLES = "cloud.gardener.cnudie/responsibles"
_TEAM_HOST = "github.tools.sap"
"""The host of teams that modulectl writes (kyma-project/modulectl, `internal/common/consts.go`)."""
_THIRD_PARTY = ConstructorLabel(name="scan.security.kyma-project.io/type", value="third-party-image")
MODULE_TEMPLATE = "moduletemplate"


class ModuleFiles(NamedTuple):
    """Names of the files that a constructor refers to, relative to its own folder."""

    manifest: str
    default_cr: str
    template: str


def constructor_of(
    config: ModuleConfig, images: Sequence[ModuleImage], files: ModuleFiles, *, cluster_scoped: bool, commit: str
) -> Constructor:
    """The constructor of a module with these images; without a `commit` it names no sources."""
    component = ConstructedComponent(
        name=config.name,
        version=config.version,
        provider=Provider(name=PROVIDER, labels=(_BUILT_BY,)),
        labels=_labels(config, cluster_scoped=cluster_scoped),
        sources=(_sources(config, commit),) if commit else (),
        resources=(*_images(images), *_blobs(config, files)),
    )
    return Constructor(components=(component,))


def _labels(config: ModuleConfig, *, cluster_scoped: bool) -> tuple[ConstructorLabel, ...]:
    facts = {
        Label.BETA: config.beta,
        Label.INTERNAL: config.internal,
        _REQUIRES_DOWNTIME: config.requires_downtime,
        Annotation.IS_CLUSTER_SCOPED: cluster_scoped,
    }
    found = [ConstructorLabel(name=name, value=str(fact).lower()) for name, fact in facts.items()]
    if config.security_scan_enabled:
        responsible = {"github_hostname": _TEAM_HOST, "teamname": config.team, "type": "githubTeam"}
        found += [_SCAN, ConstructorLabel(name=_RESPONSIBLES, value=[responsible])]
    if config.dependencies:
        found.append(ConstructorLabel(name=Annotation.DEPENDENCIES, value=dependencies_text(config)))
    return tuple(found)


def _sources(config: ModuleConfig, commit: str) -> ConstructorSource:
    return ConstructorSource(
        name="module-sources",
        type="Github",
        version=config.version,
        access=ResourceAccess(type="gitHub", repo_url=config.repository, commit=commit),
    )


def _images(images: Sequence[ModuleImage]) -> list[ConstructorResource]:
    return [
        ConstructorResource(
            name=name,
            type="ociArtifact",
            version=image.version,
            relation="external",
            labels=(_THIRD_PARTY,),
            access=ResourceAccess(type="ociArtifact", image_reference=image.reference),
        )
        for name, image in distinct_names(images)
    ]


def _blobs(config: ModuleConfig, files: ModuleFiles) -> list[ConstructorResource]:
    found = [_directory("raw-manifest", files.manifest, config.version)]
    if files.default_cr:
        found.append(_directory("default-cr", files.default_cr, config.version))
    template = ConstructorResource(
        name=MODULE_TEMPLATE,
        type="PlainText",
        version=config.version,
        relation="local",
        input=ResourceInput(type="file", path=files.template),
    )
    return [*found, template]


def _directory(name: str, path: str, version: str) -> ConstructorResource:
    folder, _, file = path.rpartition("/")
    return ConstructorResource(
        name=name,
        type="directoryTree",
        version=version,
        relation="local",
        input=ResourceInput(type="dir", path=folder or ".", include_files=(file,), compress=False),
    )
