"""The OCI layout of a component version: the same parts give the same bytes.

The layout is the one that the OCM library writes (open-component-model/ocm-spec,
doc/04-extensions/03-storage-backends/oci.md): config with the place of the descriptor, the descriptor in a tar as first
layer, then one layer for each local blob, with the resources it belongs to in an annotation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from hortus.domains.modules.publishing.constructor import (
    ConstructedComponent,
    ConstructorResource,
    Provider,
    ResourceAccess,
    ResourceDigest,
)
from hortus.domains.modules.registry import COMPONENT_FOLDER, RegistryAccess
from hortus.domains.modules.registry.descriptors import (
    CONFIG_TYPE,
    DESCRIPTOR_FILE,
    DESCRIPTOR_TYPE,
    LARGEST_DESCRIPTOR,
    SCHEMA_VERSION,
    TAR_TYPE,
)
from hortus.kube import yaml
from hortus.render.archive import Tree, pack_tar
from hortus.render.artifacts import Digest, digest_of
from hortus.render.oci import Descriptor, manifest_bytes

_BLOB_TYPE = "application/octet-stream"
_VERSION_ANNOTATION = "software.ocm/component-version"
_CREATOR_ANNOTATION = "software.ocm/creator"
_RESOURCES_ANNOTATION = "software.ocm.artifact"


class ComponentLayout(msgspec.Struct, frozen=True, kw_only=True):
    """A component version as blobs and one manifest."""

    name: str
    version: str
    manifest: bytes
    config: bytes
    layers: tuple[bytes, ...]
    """The descriptor's tar first."""

    @property
    def repository(self) -> str:
        """The repository below the registry's path."""
        return f"{COMPONENT_FOLDER}/{self.name}"

    @property
    def digest(self) -> Digest:
        return digest_of(self.manifest)

    @property
    def blobs(self) -> tuple[bytes, ...]:
        """The manifest's config and layers."""
        return (self.config, *self.layers)


class TooLongDescriptor(ValueError):
    """A component descriptor that the lifecycle manager would refuse; the message names the component."""


def component_layout(
    component: ConstructedComponent, contents: Mapping[str, bytes], *, access: RegistryAccess | None = None
) -> ComponentLayout:
    """The layout of one entry of a constructor. Raises TooLongDescriptor.

    `contents` holds the files of resources with an `input`, by the resource's name. `access` is the registry that the
    descriptor names as its place; without it, it names none, and a transfer of the component adds it.
    """
    blobs: dict[str, _Blob] = {}
    resources = [_located(one, contents, blobs) for one in component.resources]
    descriptor = {
        "component": {
            "componentReferences": [],
            "labels": msgspec.to_builtins(component.labels),
            "name": component.name,
            "provider": _provider(component.provider),
            "repositoryContexts": [_context(access)] if access is not None else [],
            "resources": msgspec.to_builtins(resources),
            "sources": msgspec.to_builtins(component.sources),
            "version": component.version,
        },
        "meta": {"schemaVersion": SCHEMA_VERSION},
    }
    return _packed(component, descriptor, blobs)


class _Blob(NamedTuple):
    media_type: str
    data: bytes


def _provider(provider: Provider) -> str:
    """The provider's name; with labels, all of it as JSON, since schema version v2 knows a text only."""
    return msgspec.json.encode(provider).decode() if provider.labels else provider.name


def _context(access: RegistryAccess) -> dict[str, str]:
    found = {
        "baseUrl": f"http://{access.host}" if access.insecure else access.host,
        "componentNameMapping": "urlPath",
        "type": "OCIRegistry",
    }
    return found | {"subPath": access.path} if access.path else found


def _located(
    resource: ConstructorResource, contents: Mapping[str, bytes], blobs: dict[str, _Blob]
) -> ConstructorResource:
    """The resource as the descriptor lists it; an input becomes a local blob."""
    if resource.input is None:
        return resource
    blob = _Blob(_BLOB_TYPE, contents[resource.name])
    if resource.input.type == "dir":
        blob = _Blob(TAR_TYPE, pack_tar(Tree({resource.input.include_files[0]: blob.data})))
    blobs[resource.name] = blob
    digest = digest_of(blob.data)
    access = ResourceAccess(
        type="localBlob", local_reference=digest, media_type=blob.media_type, reference_name=resource.name
    )
    return msgspec.structs.replace(
        resource, input=None, access=access, digest=ResourceDigest(value=digest.partition(":")[2])
    )


def _packed(
    component: ConstructedComponent, descriptor: Mapping[str, Any], blobs: Mapping[str, _Blob]
) -> ComponentLayout:
    text = yaml.dump(descriptor, sort_keys=True).encode()
    identity = f"{component.name}:{component.version}"
    if len(text) > LARGEST_DESCRIPTOR:
        problem = f"the component descriptor of {identity} has {len(text)} bytes; {LARGEST_DESCRIPTOR} are allowed"
        raise TooLongDescriptor(f"{problem}: name fewer images or shorten labels")
    head = pack_tar(Tree({DESCRIPTOR_FILE: text}))
    first = _described(DESCRIPTOR_TYPE, head)
    config = msgspec.json.encode({"componentDescriptorLayer": first})
    layers = [first]
    for name, blob in blobs.items():
        owners = msgspec.json.encode([{"kind": "resource", "identity": {"name": name}}]).decode()
        layers.append(_described(blob.media_type, blob.data, {_RESOURCES_ANNOTATION: owners}))
    manifest = manifest_bytes(
        _described(CONFIG_TYPE, config),
        tuple(layers),
        annotations={_VERSION_ANNOTATION: identity, _CREATOR_ANNOTATION: "hortus"},
    )
    return ComponentLayout(
        name=component.name,
        version=component.version,
        manifest=manifest,
        config=config,
        layers=(head, *(blob.data for blob in blobs.values())),
    )


def _described(media_type: str, data: bytes, annotations: Mapping[str, str] | None = None) -> Descriptor:
    return Descriptor(media_type, digest_of(data), len(data), annotations=dict(annotations or {}))
