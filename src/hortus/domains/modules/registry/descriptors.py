"""Component descriptors: what a registry says of one version of a module, read without trust.

Format: open-component-model/ocm-spec, doc/05-guidelines/03-component-descriptor-serialization.md, schema version v2.
Fields that nothing here uses are left out.
"""

from __future__ import annotations

from typing import Any

import msgspec

from hortus.kube.yaml import TextLimits, YamlError, load

LARGEST_DESCRIPTOR = 100 << 10
"""Bytes of a component-descriptor.yaml, as in the Go system."""
_LIMITS = TextLimits(bytes=LARGEST_DESCRIPTOR, depth=50, nodes=50_000)
DESCRIPTOR_FILE = "component-descriptor.yaml"
SCHEMA_VERSION = "v2"
CONFIG_TYPE = "application/vnd.ocm.software.component.config.v1+json"
DESCRIPTOR_TYPE = "application/vnd.ocm.software.component-descriptor.v2+yaml+tar"
TAR_TYPE = "application/x-tar"


class BadDescriptor(ValueError):
    """A component descriptor that cannot be read; the message names the field."""


class ComponentLabel(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A label of a component or resource; the value is any JSON."""

    name: str
    value: Any
    version: str = ""


class ComponentAccess(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The place of a resource's content."""

    type: str
    local_reference: str = ""
    """Digest of a blob in the component's own repository (localBlob)."""
    digest: str = ""
    """The same, as localOciBlob writes it."""
    media_type: str = ""
    image_reference: str = ""
    """An image in any registry (the ociArtifact family)."""

    @property
    def blob(self) -> str:
        """The digest of a local blob as written."""
        return self.local_reference or self.digest


class ComponentResource(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One resource of a component."""

    name: str
    access: ComponentAccess
    type: str = ""
    version: str = ""
    relation: str = ""
    labels: tuple[ComponentLabel, ...] = ()


class RepositoryContext(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A registry that the component was transferred to; the last one is where it is."""

    type: str = ""
    base_url: str = ""
    sub_path: str = ""
    component_name_mapping: str = ""


class ComponentDescriptor(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The part of a component descriptor that installing a module needs."""

    name: str
    version: str
    repository_contexts: tuple[RepositoryContext, ...] = ()
    resources: tuple[ComponentResource, ...] = ()
    labels: tuple[ComponentLabel, ...] = ()

    def resource(self, name: str) -> ComponentResource | None:
        """The first resource of that name."""
        return next((one for one in self.resources if one.name == name), None)

    def label(self, name: str) -> Any:
        """The value of a label, None where there is none."""
        return next((one.value for one in self.labels if one.name == name), None)


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    schema_version: str


class _Document(msgspec.Struct, frozen=True):
    meta: _Meta
    component: ComponentDescriptor


def parse_descriptor(data: bytes) -> ComponentDescriptor:
    """Reads a component-descriptor.yaml. Raises BadDescriptor."""
    if len(data) > LARGEST_DESCRIPTOR:
        raise BadDescriptor(f"{DESCRIPTOR_FILE} has {len(data)} bytes; {LARGEST_DESCRIPTOR} are allowed")
    try:
        found = load(data, limits=_LIMITS)
        document = msgspec.convert(_without_nulls(found), _Document)
    except (YamlError, msgspec.ValidationError) as error:
        raise BadDescriptor(f"{DESCRIPTOR_FILE}: {error}") from None
    if document.meta.schema_version != SCHEMA_VERSION:
        said = document.meta.schema_version[:50]
        raise BadDescriptor(f"{DESCRIPTOR_FILE}: meta.schemaVersion is {said!r}; {SCHEMA_VERSION} is expected")
    return document.component


def _without_nulls(value: Any) -> Any:
    """Go writes an empty list as null."""
    if isinstance(value, dict):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value
