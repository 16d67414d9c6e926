"""A module as somebody names it on the command line, and the parts of it that are installed.

A source is an OCI reference, a file, an https address, or a ModuleTemplate of the cluster. What was read is checked
against the digest that the user gives.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from hortus.domains.modules.kinds.moduletemplate import RAW_MANIFEST
from hortus.domains.modules.kyma.resolution import link_of
from hortus.domains.modules.publishing.sources import BadSource, read_source
from hortus.domains.modules.registry import (
    COMPONENT_FOLDER,
    BadRegistryAccess,
    Component,
    ModuleRegistry,
    ModuleSourceError,
    ReadingLimits,
    RegistryAccess,
    access_from_host,
    fixed,
)
from hortus.domains.modules.registry.components import OCI_REF
from hortus.domains.modules.types import MODULE_TEMPLATES, InstallSource, ModuleTemplate
from hortus.engine import NotReadable, read
from hortus.kube import yaml
from hortus.kube.objects import Object, shaped
from hortus.terminal import CommandError

_DIGEST: Final = re.compile(r"^sha256:[0-9a-f]{64}$")
_COMPONENT: Final = re.compile(r"^[a-z0-9-]+(\.[a-z0-9-]+)+(/[a-z0-9._-]+)+:[^/:@]+(@.*)?$")
_SUFFIXES: Final = (".yaml", ".yml", ".json")
_TEMPLATE_LAYER: Final = "moduletemplate"


class ModulePackage(msgspec.Struct, frozen=True, kw_only=True):
    """One version of a module, ready to be installed."""

    name: str
    version: str
    origin: str
    """The source, for people."""
    digest: str
    """The digest of the component in the registry, or that of the manifest's text."""
    manifest: bytes
    """The objects, as YAML."""
    component: str = ""
    """Name of the component; empty for a module that is in no registry."""
    images: tuple[str, ...] = ()
    """References that replace the images of the manifest with the same name and tag."""
    template: ModuleTemplate | None = None
    """Default resource, manager and dependencies; None for a plain manifest."""

    @property
    def resource(self) -> Object | None:
        """The default resource."""
        return self.template.spec.data if self.template is not None else None


class SourceOptions(NamedTuple):
    """The options that say more about a source."""

    access: RegistryAccess | None = None
    """The registry of components that are named without one."""
    docker_config: bytes = b""
    name: str = ""
    version: str = ""
    manifest: str = ""
    """File or https address with the objects, in place of the template's own."""
    digest: str = ""


def is_reference(source: str) -> bool:
    """Reports whether a source names a component in a registry."""
    return source.startswith("oci://") or _COMPONENT.match(source) is not None


def is_document(source: str) -> bool:
    """Reports whether a source is a file or an https address."""
    looks_like_one = source.startswith((".", "/", "https://")) or source.endswith(_SUFFIXES)
    return looks_like_one or Path(source).is_file()


async def package_of_reference(source: str, options: SourceOptions) -> ModulePackage:
    """The component version that `NAME:VERSION[@DIGEST]` or `oci://REGISTRY/...` names. Raises CommandError."""
    access, name, version, digest = _reference(source, options)
    _check_digest(options.digest or digest)
    async with _registry(access) as registry:
        try:
            component = await registry.component(name, version)
            _compare(source, options.digest or digest, component.digest)
            return await package_of_component(registry, component)
        except ModuleSourceError as error:
            raise CommandError(str(error)) from None


async def package_of_component(registry: ModuleRegistry, component: Component) -> ModulePackage:
    """The package of a component version. Raises ModuleSourceError, CommandError."""
    if component.install is None:
        raise CommandError(f"component {component.name}:{component.version} has no manifest; publish the module again")
    template = await _template_layer(registry, component)
    return ModulePackage(
        name=template.spec.module_name if template and template.spec.module_name else component.name.rpartition("/")[2],
        version=component.version,
        origin=f"{component.install.repo}/{COMPONENT_FOLDER}/{component.name}:{component.version}",
        digest=component.digest,
        manifest=await registry.manifest(component.install),
        component=component.name,
        images=component.localized_images,
        template=template,
    )


async def component_package(access: RegistryAccess, name: str, version: str, digest: str) -> ModulePackage:
    """The package of a component by name and version. Raises CommandError."""
    return await package_of_reference(f"{name}:{version}", SourceOptions(access=access, digest=digest))


async def package_of_document(source: str, options: SourceOptions) -> ModulePackage:
    """The module of a file or address: a ModuleTemplate, or a plain manifest with a name. Raises CommandError."""
    text = await _read(source)
    template = _template_in(source, text)
    if template is not None:
        return await package_of_template(template, source, options)
    if not options.name or not options.version:
        raise CommandError(f"{source} is a plain manifest: say what it is with --name MODULE --module-version VERSION")
    return _plain(source, text, options.name, options.version, None, options.digest)


async def package_of_template(template: ModuleTemplate, origin: str, options: SourceOptions) -> ModulePackage:
    """The module of a ModuleTemplate, with the objects of --manifest or of its own link. Raises CommandError."""
    place = options.manifest or link_of(template)
    if not place:
        raise CommandError(
            f"{origin}: ModuleTemplate {template.metadata.name} has no resource {RAW_MANIFEST} and is in no registry "
            "that is known; name its objects with --manifest FILE, or its registry with --registry ADDRESS"
        )
    if not options.manifest and not place.startswith("https://"):
        raise CommandError(f"{origin}: resource {RAW_MANIFEST}: {place} is no https address; use --manifest FILE")
    name = options.name or template.spec.module_name or template.metadata.name.rpartition("-")[0]
    version = options.version or template.spec.version
    if not version:
        raise CommandError(f"{origin}: ModuleTemplate {template.metadata.name} has no spec.version; correct it")
    return _plain(place, await _read(place), name, version, template, options.digest)


def _plain(
    place: str, text: bytes, name: str, version: str, template: ModuleTemplate | None, expected: str
) -> ModulePackage:
    digest = f"sha256:{hashlib.sha256(text).hexdigest()}"
    _check_digest(expected)
    _compare(place, expected, digest)
    return ModulePackage(name=name, version=version, origin=place, digest=digest, manifest=text, template=template)


def _reference(source: str, options: SourceOptions) -> tuple[RegistryAccess, str, str, str]:
    text, _, digest = source.removeprefix("oci://").partition("@")
    access = options.access
    if source.startswith("oci://"):
        host, found, text = text.partition(f"/{COMPONENT_FOLDER}/")
        if not found:
            raise CommandError(f"{source}: write oci://REGISTRY/{COMPONENT_FOLDER}/NAME:VERSION, as a push prints it")
        try:
            access = access_from_host(host, docker_config=options.docker_config)
        except BadRegistryAccess as error:
            raise CommandError(str(error)) from None
    name, _, version = text.rpartition(":")
    if not name or not version:
        raise CommandError(f"{source}: the version is missing; write NAME:VERSION")
    if access is None:
        raise CommandError("no registry: name one with --registry, or start `hortus up`, which has one")
    return access, name, version, digest


@asynccontextmanager
async def _registry(access: RegistryAccess) -> AsyncIterator[ModuleRegistry]:
    registry = ModuleRegistry(ReadingLimits(), fixed(access))
    try:
        yield registry
    finally:
        await registry.close()


async def _template_layer(registry: ModuleRegistry, component: Component) -> ModuleTemplate | None:
    resource = component.descriptor.resource(_TEMPLATE_LAYER)
    if resource is None or component.install is None or not resource.access.blob:
        return None
    source = InstallSource(repo=component.install.repo, name=component.name, ref=resource.access.blob, type=OCI_REF)
    return _template_in(f"component {component.name}:{component.version}", await registry.manifest(source))


class _Typed(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str


def _template_in(place: str, text: bytes) -> ModuleTemplate | None:
    """The one ModuleTemplate of a text; None for a text with other objects."""
    try:
        documents: list[Any] = list(yaml.load_all(text))
    except yaml.YamlError as error:
        raise CommandError(f"{place}: {error}") from None
    kind = (MODULE_TEMPLATES.api_version, MODULE_TEMPLATES.kind)
    found = [one for one in documents if (typed := shaped(one, _Typed)) and (typed.api_version, typed.kind) == kind]
    if not found:
        return None
    if len(found) > 1:
        raise CommandError(f"{place} holds {len(found)} ModuleTemplates; name one of them in a file of its own")
    try:
        return read(ModuleTemplate, found[0])
    except NotReadable as error:
        raise CommandError(f"{place}: {error}") from None


async def _read(place: str) -> bytes:
    try:
        return await read_source("SOURCE", place, Path())
    except BadSource as error:
        raise CommandError(str(error).removeprefix("SOURCE: ").partition("; paths are relative")[0]) from None


def _check_digest(digest: str) -> None:
    if digest and not _DIGEST.match(digest):
        raise CommandError(f"digest {digest[:80]!r} is not sha256: and 64 hexadecimal digits")


def _compare(place: str, expected: str, found: str) -> None:
    if expected and expected != found:
        raise CommandError(f"{place} has digest {found}, and {expected} is expected: nothing was installed")
