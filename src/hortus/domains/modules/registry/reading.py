"""Reading modules: descriptors by component and version, manifests by digest."""

from __future__ import annotations

import asyncio

import msgspec
import structlog

from hortus.domains.modules.registry.access import ReadAccess, RegistryAccess
from hortus.domains.modules.registry.components import Component, component_of
from hortus.domains.modules.registry.connections import RegistryClients
from hortus.domains.modules.registry.descriptors import (
    LARGEST_DESCRIPTOR,
    BadDescriptor,
    ComponentDescriptor,
    parse_descriptor,
)
from hortus.domains.modules.registry.errors import reading
from hortus.domains.modules.registry.layers import descriptor_file, manifest_of
from hortus.domains.modules.types import InstallSource
from hortus.kube import Clock, SystemClock
from hortus.render.artifacts import ArtifactCache, ArtifactError, BadDigest, parse_digest
from hortus.render.bounded import Bounded
from hortus.render.oci import OciClient, Reference, parse_reference

_log = structlog.get_logger(__name__)
COMPONENT_FOLDER = "component-descriptors"
"""The path of component versions below the registry's own path."""
_LARGEST_LAYER = 16 << 20
_LARGEST_CONFIG = 1 << 20
_LARGEST_DESCRIPTOR_LAYER = 4 * LARGEST_DESCRIPTOR
_MOST_COMPONENTS = 10_000


class ReadingLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of reading modules."""

    revalidation: float = 300.0
    """Seconds after which a descriptor's digest is compared with the registry; 0 at each use."""
    largest_manifest: int = _LARGEST_LAYER
    """Bytes of a layer, and of the manifest in it."""


class _Known(msgspec.Struct, frozen=True):
    component: Component
    repository: str
    checked: float


class ModuleRegistry:
    """The modules of one registry. Made anywhere, used in one event loop, closed once.

    Without a `cache`, each layer is fetched whenever it is asked for.
    """

    def __init__(
        self,
        settings: ReadingLimits,
        access: ReadAccess,
        *,
        cache: ArtifactCache | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._settings = settings
        self._clock: Clock = clock or SystemClock()
        self._connections = RegistryClients(access, cache=cache, clock=self._clock)
        self._known: Bounded[tuple[str, str], _Known] = Bounded(_MOST_COMPONENTS, lambda key, value: 1)
        self._fetching: dict[tuple[str, str], asyncio.Lock] = {}

    async def close(self) -> None:
        await self._connections.close()

    async def component(self, name: str, version: str) -> Component:
        """The component version, out of memory or from the registry. Raises ModuleSourceError.

        One that is in memory survives an outage of the registry; a version that was pushed again is seen after
        `ReadingLimits.revalidation`.
        """
        key = name, version
        if (known := self._fresh(key)) is not None:
            return known
        async with self._fetching.setdefault(key, asyncio.Lock()):
            if (known := self._fresh(key)) is not None:
                return known
            try:
                found = await self._fetch(name, version)
            finally:
                self._fetching.pop(key, None)
        self._known.put(key, found)
        return found.component

    async def manifest(self, source: InstallSource) -> bytes:
        """The YAML of a raw manifest, or of another layer, verified and unpacked. Raises ModuleSourceError."""
        largest = self._settings.largest_manifest
        with reading(f"module {source.name}, layer {source.ref}"):
            reference = parse_reference(f"{source.repo}/{COMPONENT_FOLDER}/{source.name}@{source.ref}")
            async with self._connections.client() as (client, _):
                layer = await client.blob_at(reference, parse_digest(source.ref), largest=largest)
            return await asyncio.to_thread(manifest_of, layer, source.type, largest=largest)

    def _fresh(self, key: tuple[str, str]) -> Component | None:
        known = self._known.get(key)
        if known is None or self._clock.monotonic() - known.checked >= self._settings.revalidation:
            return None
        return known.component

    async def _fetch(self, name: str, version: str) -> _Known:
        known = self._known.get((name, version))
        with reading(f"module {name} {version}"):
            async with self._connections.client() as (client, access):
                reference = component_reference(access, name, version)
                same_place = known is not None and known.repository == access.repository
                try:
                    digest = await client.resolve(reference)
                except ArtifactError as error:
                    if known is None or not same_place or not error.temporary:
                        raise
                    _log.warning("using a descriptor in memory", module=name, version=version, error=str(error))
                    return self._checked(known)
                if known is not None and same_place and known.component.digest == digest:
                    return self._checked(known)
                descriptor = await _descriptor(client, reference.at(digest))
                if (descriptor.name, descriptor.version) != (name, version):
                    said = f"{descriptor.name[:100]} {descriptor.version[:50]}"
                    raise BadDescriptor(f"the descriptor is of {said!r}")
                component = component_of(descriptor, digest=digest, repository=access.repository)
        return _Known(component, access.repository, self._clock.monotonic())

    def _checked(self, known: _Known) -> _Known:
        return msgspec.structs.replace(known, checked=self._clock.monotonic())


def component_reference(access: RegistryAccess, name: str, version: str) -> Reference:
    """The reference of a component version. Raises BadReference."""
    return parse_reference(f"{access.repository}/{COMPONENT_FOLDER}/{name}:{component_tag(version)}")


def component_tag(version: str) -> str:
    """The tag of a version: tags have no `+` (open-component-model/ocm-spec, oci.md, "Version Mapping")."""
    return version.replace("+", ".build-")


class _DescriptorLayer(msgspec.Struct, frozen=True):
    digest: str


class _Config(msgspec.Struct, frozen=True, rename="camel"):
    component_descriptor_layer: _DescriptorLayer


async def _descriptor(client: OciClient, reference: Reference) -> ComponentDescriptor:
    manifest = await client.image(reference)
    config = await client.blob_at(reference, manifest.config.digest, largest=_LARGEST_CONFIG)
    try:
        digest = parse_digest(msgspec.json.decode(config, type=_Config).component_descriptor_layer.digest)
    except (msgspec.MsgspecError, BadDigest) as error:
        raise BadDescriptor(f"the config names no componentDescriptorLayer: {error}") from None
    layer = await client.blob_at(reference, digest, largest=_LARGEST_DESCRIPTOR_LAYER)
    return await asyncio.to_thread(lambda: parse_descriptor(descriptor_file(layer)))
