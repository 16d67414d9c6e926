"""The component constructor: input of `ocm add componentversions`, and of our own layout.

Format: https://ocm.software/latest/component-constructor-schema.yaml. Fields stand in the order that the file has.
"""

from __future__ import annotations

from typing import Any

import msgspec

LABEL_VERSION = "v1"


class ConstructorLabel(msgspec.Struct, frozen=True, kw_only=True):
    """A label; the value is any JSON."""

    name: str
    value: Any
    version: str = LABEL_VERSION


class Provider(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The provider of a component."""

    name: str
    labels: tuple[ConstructorLabel, ...] = ()


class ResourceInput(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A file that becomes a blob of the component: itself (`file`), or in a tar (`dir`)."""

    type: str
    path: str
    include_files: tuple[str, ...] = ()
    compress: bool | None = None


class ResourceAccess(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The place of an image, of a source, or of a blob of the component."""

    type: str
    image_reference: str = ""
    repo_url: str = ""
    commit: str = ""
    local_reference: str = ""
    media_type: str = ""
    reference_name: str = ""


class ResourceDigest(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The digest of a blob of the component."""

    hash_algorithm: str = "SHA-256"
    normalisation_algorithm: str = "genericBlobDigest/v1"
    value: str


class ConstructorResource(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A resource, with its place or with the file that it is made from; in a descriptor always with its place."""

    name: str
    type: str
    version: str
    relation: str
    labels: tuple[ConstructorLabel, ...] = ()
    access: ResourceAccess | None = None
    input: ResourceInput | None = None
    digest: ResourceDigest | None = None


class ConstructorSource(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The sources of a component."""

    name: str
    type: str
    version: str
    labels: tuple[ConstructorLabel, ...] = ()
    access: ResourceAccess


class ConstructedComponent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One component version."""

    name: str
    version: str
    provider: Provider
    labels: tuple[ConstructorLabel, ...] = ()
    sources: tuple[ConstructorSource, ...] = ()
    resources: tuple[ConstructorResource, ...] = ()


class Constructor(msgspec.Struct, frozen=True, kw_only=True):
    """A component-constructor.yaml."""

    components: tuple[ConstructedComponent, ...]
