"""Writing component versions to a registry: blobs first, then the manifest under the version's tag."""

from __future__ import annotations

from hortus.domains.modules.publishing.layout import ComponentLayout
from hortus.domains.modules.registry import RegistryAccess, component_reference
from hortus.domains.modules.registry.connections import registry_client
from hortus.domains.modules.registry.errors import reading
from hortus.render.artifacts import Digest, NotFound


class AlreadyPublished(Exception):
    """Another content is published under the same version; the message names both digests."""


async def push_component(access: RegistryAccess, layout: ComponentLayout, *, overwrite: bool = False) -> Digest:
    """Publish a component version; the same content again changes nothing. Returns the digest of its manifest.

    Raises ModuleSourceError, and AlreadyPublished for other content under the same version without `overwrite`.
    """
    place = f"module {layout.name} {layout.version}"
    with reading(place):
        reference = component_reference(access, layout.name, layout.version)
        async with registry_client(access) as client:
            try:
                there = await client.resolve(reference)
            except NotFound:
                there = None
            if there is not None and there != layout.digest and not overwrite:
                problem = f"{place} is published already in {access.repository} with other content ({there})"
                raise AlreadyPublished(f"{problem}: publish another version")
            if there != layout.digest:
                for data in layout.blobs:
                    await client.push_blob(reference, data)
                await client.push_manifest(reference, layout.manifest)
    return layout.digest
