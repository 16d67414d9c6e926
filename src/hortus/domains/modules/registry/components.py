"""Components: the meaning of a descriptor for the installation of its module. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from hortus.domains.modules.registry.descriptors import TAR_TYPE, BadDescriptor, ComponentDescriptor, ComponentResource
from hortus.domains.modules.types import InstallSource
from hortus.render.artifacts import BadDigest, Digest, parse_digest

RAW_MANIFEST = "raw-manifest"
DEFAULT_CR = "default-cr"
CONFIG = "config"
OCI_DIR = "oci-dir"
"""Type of an install source whose layer is a tar."""
OCI_REF = "oci-ref"
LOCAL_ACCESS = frozenset(("localBlob", "localBlob/v1", "localOciBlob", "localOciBlob/v1"))
IMAGE_ACCESS = frozenset(("ociArtifact", "ociArtifact/v1", "ociImage", "ociImage/v1", "ociRegistry", "ociRegistry/v1"))
LOCALIZED_ACCESS = "ociArtifact"
"""The one access type whose images replace those of the manifest."""


class Component(msgspec.Struct, frozen=True, kw_only=True):
    """One version of a module as its registry has it."""

    digest: Digest
    """The digest of the component's manifest; another one means that the version was pushed again."""
    descriptor: ComponentDescriptor
    install: InstallSource | None
    """The raw manifest; None without repository contexts in the descriptor, or without such a resource."""
    default_cr: InstallSource | None
    """The default custom resource, where it has a layer of its own."""
    config: InstallSource | None
    """The layer for Manifest.spec.config, which nothing uses."""
    localized_images: tuple[str, ...]
    """References that replace the images of the manifest with the same name and tag."""

    @property
    def name(self) -> str:
        return self.descriptor.name

    @property
    def version(self) -> str:
        return self.descriptor.version

    def label(self, name: str) -> Any:
        """The value of a label of the component, None where there is none."""
        return self.descriptor.label(name)


def component_of(descriptor: ComponentDescriptor, *, digest: Digest, repository: str) -> Component:
    """The component of a descriptor read from `repository` (host and path). Raises BadDescriptor."""
    layers = _layers(descriptor, repository)
    if not descriptor.repository_contexts:
        layers = {}
    return Component(
        digest=digest,
        descriptor=descriptor,
        install=layers.get(RAW_MANIFEST),
        default_cr=layers.get(DEFAULT_CR),
        config=layers.get(CONFIG),
        localized_images=tuple(
            one.access.image_reference
            for one in descriptor.resources
            if one.access.type == LOCALIZED_ACCESS and one.access.image_reference
        ),
    )


def _layers(descriptor: ComponentDescriptor, repository: str) -> dict[str, InstallSource]:
    found: dict[str, InstallSource] = {}
    for resource in descriptor.resources:
        if resource.access.type in LOCAL_ACCESS:
            found.setdefault(resource.name, _source(descriptor, resource, repository))
        elif resource.access.type not in IMAGE_ACCESS:
            found_type = f"resource {resource.name[:100]!r} has access type {resource.access.type[:100]!r}"
            raise BadDescriptor(f"{found_type}; localBlob, localOciBlob and ociArtifact are supported")
    return found


def _source(descriptor: ComponentDescriptor, resource: ComponentResource, repository: str) -> InstallSource:
    access = resource.access
    try:
        ref = parse_digest(access.blob)
    except BadDigest as error:
        raise BadDescriptor(f"resource {resource.name[:100]!r}: access.localReference {error}") from None
    kind = OCI_DIR if access.media_type == TAR_TYPE else OCI_REF
    return InstallSource(repo=repository, name=descriptor.name, ref=ref, type=kind)
