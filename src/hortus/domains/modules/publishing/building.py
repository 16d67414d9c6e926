"""A module as it is published, made from its config: template.yaml, component-constructor.yaml and their contents."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from hortus.domains.modules.publishing.config import ModuleConfig, read_config
from hortus.domains.modules.publishing.constructing import MODULE_TEMPLATE, ModuleFiles, constructor_of
from hortus.domains.modules.publishing.constructor import Constructor
from hortus.domains.modules.publishing.images import ModuleImage, images_of
from hortus.domains.modules.publishing.layout import ComponentLayout, component_layout
from hortus.domains.modules.publishing.sources import DOWNLOADS, LARGEST_FILE, BadSource, head_commit, read_source
from hortus.domains.modules.publishing.template import module_template, scope_of, template_text
from hortus.domains.modules.registry import RegistryAccess
from hortus.kube import yaml
from hortus.kube.objects import Object, shaped
from hortus.render.artifacts import TransferSettings

_LIMITS = yaml.TextLimits(bytes=LARGEST_FILE, depth=100, nodes=1_000_000)
_MANIFEST_FILE, _DEFAULT_CR_FILE = "raw-manifest.yaml", "default-cr.yaml"


class BuildPaths(msgspec.Struct, frozen=True, kw_only=True):
    """The files of one build."""

    config: Path
    template: Path
    constructor: Path
    sources: Path | None
    """A folder in the module's git repository; None leaves the sources out of the component."""


class BuiltModule(msgspec.Struct, frozen=True, kw_only=True):
    """A module, ready to be written or pushed."""

    config: ModuleConfig
    warnings: tuple[str, ...]
    images: tuple[ModuleImage, ...]
    template: Object
    constructor: Constructor
    contents: Mapping[str, bytes]
    """The files of the component's resources, by the resource's name."""
    downloads: Mapping[str, bytes]
    """Files that stand next to the constructor because the module has them at an address."""

    @property
    def template_text(self) -> str:
        return template_text(self.template)

    @property
    def constructor_text(self) -> str:
        return yaml.dump(msgspec.to_builtins(self.constructor))

    def layout(self, access: RegistryAccess | None = None) -> ComponentLayout:
        """Raises TooLongDescriptor."""
        return component_layout(self.constructor.components[0], self.contents, access=access)


async def build(paths: BuildPaths, *, strict: bool = False, downloads: TransferSettings = DOWNLOADS) -> BuiltModule:
    """Read a config and its files, and make the module. Raises ConfigError, BadSource, BadImage."""
    data, folder = _config(paths.config), paths.config.parent
    config = read_config(data, str(paths.config), strict=strict).config
    manifest = await read_source("manifest", config.manifest, folder, downloads=downloads)
    default_cr = b""
    if config.default_cr:
        default_cr = await read_source("defaultCR", config.default_cr, folder, downloads=downloads)
    commit = head_commit(paths.sources) if paths.sources is not None else ""
    return assemble(paths, config=data, manifest=manifest, default_cr=default_cr, commit=commit)


def assemble(
    paths: BuildPaths, *, config: bytes, manifest: bytes, default_cr: bytes = b"", commit: str = ""
) -> BuiltModule:
    """The module of a config and its files, without reading any. Raises ConfigError, BadSource, BadImage."""
    checked = read_config(config, str(paths.config))
    found = checked.config
    objects = _objects("manifest", found.manifest, manifest)
    resource = _default_resource(found.default_cr, default_cr) if default_cr else None
    scope = scope_of(resource, objects)
    warnings = list(checked.warnings)
    if resource is not None and scope is None:
        warnings.append(f"{paths.config}: defaultCR: the manifest has no CRD of its kind; taken to be namespaced")
    images = tuple(images_of(objects))
    clusterwide = scope == "Cluster"
    template = module_template(found, default_cr=resource, cluster_scoped=clusterwide)
    constructor = constructor_of(found, images, _files(found, paths), cluster_scoped=clusterwide, commit=commit)
    contents = {"raw-manifest": manifest, MODULE_TEMPLATE: template_text(template).encode()}
    return BuiltModule(
        config=found,
        warnings=tuple(warnings),
        images=images,
        template=template,
        constructor=constructor,
        contents=contents | ({"default-cr": default_cr} if default_cr else {}),
        downloads=_downloads(found, manifest, default_cr),
    )


def _config(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        advice = "name it with --config-file, or make one with `hortus module scaffold`"
        raise BadSource(f"{path} cannot be read: {error.strerror}; {advice}") from None


class _Typed(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str


def _objects(key: str, place: str, data: bytes) -> list[Any]:
    try:
        found = [one for one in yaml.load_all(data, limits=_LIMITS) if one is not None]
    except yaml.YamlError as error:
        raise BadSource(f"{key}: {place}: {error}") from None
    if not found:
        raise BadSource(f"{key}: {place}: holds no objects")
    for at, one in enumerate(found, start=1):
        if shaped(one, _Typed) is None:
            raise BadSource(f"{key}: {place}: document {at} is no object: give it apiVersion and kind")
    return found


def _default_resource(place: str, data: bytes) -> Object:
    found = _objects("defaultCR", place, data)
    if len(found) != 1:
        raise BadSource(f"defaultCR: {place}: holds {len(found)} objects; a module has one default resource")
    resource: Object = found[0]
    return resource


def _is_address(place: str) -> bool:
    return place.startswith("https://")


def _downloads(config: ModuleConfig, manifest: bytes, default_cr: bytes) -> dict[str, bytes]:
    found = {_MANIFEST_FILE: manifest} if _is_address(config.manifest) else {}
    return found | ({_DEFAULT_CR_FILE: default_cr} if _is_address(config.default_cr) else {})


def _files(config: ModuleConfig, paths: BuildPaths) -> ModuleFiles:
    """The paths that the constructor has, relative to its own folder."""
    home = paths.constructor.parent

    def relative(place: str, download: str) -> str:
        return download if _is_address(place) else os.path.relpath(paths.config.parent / place, home)

    return ModuleFiles(
        manifest=relative(config.manifest, _MANIFEST_FILE),
        default_cr=relative(config.default_cr, _DEFAULT_CR_FILE) if config.default_cr else "",
        template=os.path.relpath(paths.template, home),
    )
