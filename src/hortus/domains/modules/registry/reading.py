"""Reading modules: descriptors by component and version, manifests by digest."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

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
from hortus.domains.modules.registry.errors import DENIED, MISSING, UNAVAILABLE, reading
from hortus.domains.modules.registry.layers import descriptor_file, manifest_of
from hortus.domains.modules.types import InstallSource
from hortus.engine.outcomes import StepError
from hortus.kube import Clock, SystemClock
from hortus.kube.shapes import decode_json
from hortus.render.artifacts import ArtifactCache, BadDigest, parse_digest
from hortus.render.bounded import Bounded
from hortus.render.oci import OciClient, Reference, parse_reference

_log = structlog.get_logger(__name__)
COMPONENT_FOLDER = "component-descriptors"
"""The path of component versions below the registry's own path."""
FAILURE_AGE = 5.0
"""Seconds for which a failure of the registry is remembered."""
_OUTAGES = frozenset((UNAVAILABLE, DENIED, MISSING))
"""Failures that say nothing about the content: a component in memory is used on. Registries answer 404 for what a user
may not see, and while their storage is away."""
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
    checked: float = 0.0


class _Failure(NamedTuple):
    error: StepError
    at: float


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
        self._clients = RegistryClients(access, cache=cache, clock=self._clock)
        self._known: Bounded[tuple[str, str], _Known] = Bounded(_MOST_COMPONENTS, lambda key, value: 1)
        self._failures: Bounded[tuple[str, str], _Failure] = Bounded(_MOST_COMPONENTS, lambda key, value: 1)
        self._fetching: dict[tuple[str, str], asyncio.Lock] = {}

    async def close(self) -> None:
        await self._clients.close()

    async def component(self, name: str, version: str) -> Component:
        """The component version, out of memory or from the registry. Raises ModuleSourceError.

        One that is in memory survives an outage of the registry, a rejected credential and a deleted tag; a version
        that was pushed again is seen after `ReadingLimits.revalidation`. A failure is the answer for `FAILURE_AGE`.
        """
        key = name, version
        if (known := self._fresh(key)) is not None:
            return known
        async with self._fetching.setdefault(key, asyncio.Lock()):
            try:
                return self._fresh(key) or await self._renewed(key)
            finally:
                self._fetching.pop(key, None)

    async def manifest(self, source: InstallSource) -> bytes:
        """The YAML of a raw manifest, or of another layer, verified and unpacked. Raises ModuleSourceError."""
        largest = self._settings.largest_manifest
        with reading(f"module {source.name}, layer {source.ref}"):
            reference = parse_reference(f"{source.repo}/{COMPONENT_FOLDER}/{source.name}@{source.ref}")
            async with self._clients.client() as (client, _):
                layer = await client.blob_at(reference, parse_digest(source.ref), largest=largest)
            return await asyncio.to_thread(manifest_of, layer, source.type, largest=largest)

    def _fresh(self, key: tuple[str, str]) -> Component | None:
        known = self._known.get(key)
        if known is None or self._clock.monotonic() - known.checked >= self._settings.revalidation:
            return None
        return known.component

    async def _renewed(self, key: tuple[str, str]) -> Component:
        """Ask the registry; what it fails with is the answer for a while, so that no crowd waits for it in turn."""
        failure = self._failures.get(key)
        if failure is not None and self._clock.monotonic() - failure.at < FAILURE_AGE:
            # Each of a crowd would add its frames to those of the others, and with them all that it works on.
            raise failure.error.with_traceback(None)
        del failure  # the next one would keep it by this frame, and all before it
        known = self._known.get(key)
        try:
            found = await self._fetch(*key, known)
        except StepError as error:
            if known is None or error.reason not in _OUTAGES or known.repository != self._clients.repository:
                self._failures.put(key, _Failure(error, self._clock.monotonic()))
                raise
            _log.warning("using a descriptor in memory", module=key[0], version=key[1], error=str(error))
            found = known
        self._failures.forget(key)
        self._known.put(key, msgspec.structs.replace(found, checked=self._clock.monotonic()))
        return found.component

    async def _fetch(self, name: str, version: str, known: _Known | None) -> _Known:
        with reading(f"module {name} {version}"):
            async with self._clients.client() as (client, access):
                reference = component_reference(access, name, version)
                digest = await client.resolve(reference)
                if known is not None and (known.component.digest, known.repository) == (digest, access.repository):
                    return known
                descriptor = await _descriptor(client, reference.at(digest))
                if (descriptor.name, descriptor.version) != (name, version):
                    said = f"{descriptor.name[:100]} {descriptor.version[:50]}"
                    raise BadDescriptor(f"the descriptor is of {said!r}")
                component = component_of(descriptor, digest=digest, repository=access.repository)
        return _Known(component, access.repository)


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
        digest = parse_digest(decode_json(config, _Config).component_descriptor_layer.digest)
    except (msgspec.MsgspecError, BadDigest) as error:
        raise BadDescriptor(f"the config names no componentDescriptorLayer: {error}") from None
    layer = await client.blob_at(reference, digest, largest=_LARGEST_DESCRIPTOR_LAYER)
    return await asyncio.to_thread(lambda: parse_descriptor(descriptor_file(layer)))
