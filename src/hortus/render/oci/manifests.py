"""Manifests and indexes, read without trust (image-spec: manifest.md, image-index.md, descriptor.md).

A document that could be read as both, or as something else than its media type says, is refused (CVE-2021-41190). The
bytes are kept with their meaning: the digest is that of the bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from hortus.kube.shapes import decode_json
from hortus.render.artifacts import BadAnswer, BadDigest, Digest, parse_digest

OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
OCI_INDEX = "application/vnd.oci.image.index.v1+json"
DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
DOCKER_LIST = "application/vnd.docker.distribution.manifest.list.v2+json"
EMPTY_CONFIG = "application/vnd.oci.empty.v1+json"
MANIFESTS = (OCI_MANIFEST, DOCKER_MANIFEST)
INDEXES = (OCI_INDEX, DOCKER_LIST)
ACCEPT = ", ".join(MANIFESTS + INDEXES)


class Platform(msgspec.Struct, frozen=True):
    """The platform that an image runs on."""

    architecture: str = ""
    os: str = ""
    variant: str = ""

    def __str__(self) -> str:
        return "/".join(filter(None, (self.os, self.architecture, self.variant)))


class Descriptor(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The identity of content: media type, digest and size in bytes."""

    media_type: str
    digest: Digest
    size: int
    artifact_type: str = ""
    platform: Platform | None = None
    annotations: Mapping[str, str] = {}


class ImageManifest(msgspec.Struct, frozen=True, kw_only=True):
    """One artifact: a config and layers."""

    digest: Digest
    media_type: str
    config: Descriptor
    layers: tuple[Descriptor, ...]
    artifact_type: str
    subject: Descriptor | None
    annotations: Mapping[str, str]
    raw: bytes


class Index(msgspec.Struct, frozen=True, kw_only=True):
    """A list of manifests, as a rule one a platform."""

    digest: Digest
    media_type: str
    manifests: tuple[Descriptor, ...]
    artifact_type: str
    annotations: Mapping[str, str]
    raw: bytes


class _Document(msgspec.Struct, frozen=True, rename="camel"):
    schema_version: int
    media_type: str = ""
    artifact_type: str = ""
    config: Descriptor | None = None
    layers: list[Descriptor] | None = None
    manifests: list[Descriptor] | None = None
    subject: Descriptor | None = None
    annotations: dict[str, str] | None = None


def parse_manifest(
    raw: bytes, media_type: str, digest: Digest, *, place: str, max_manifests: int, max_layers: int
) -> ImageManifest | Index:
    """Decode the document that a registry sent as `media_type`. Raises BadAnswer."""
    media_type = media_type.partition(";")[0].strip().lower()
    try:
        document = decode_json(raw, _Document)
    except msgspec.DecodeError as error:
        problem = error if isinstance(error, msgspec.ValidationError) else "not JSON"
        raise BadAnswer(place, f"the manifest cannot be read: {problem}") from None
    _check_kind(document, media_type, place)
    found = [one for one in (document.config, document.subject) if one] + (document.layers or [])
    _check_descriptors(found + (document.manifests or []), place)
    annotations = document.annotations or {}
    if document.manifests is not None:
        _check_number(document.manifests, max_manifests, "manifests", place)
        return Index(
            digest=digest,
            media_type=media_type,
            manifests=tuple(document.manifests),
            artifact_type=document.artifact_type,
            annotations=annotations,
            raw=raw,
        )
    if document.config is None or document.layers is None:
        raise BadAnswer(place, "the manifest has no config or no layers")
    _check_number(document.layers, max_layers, "layers", place)
    return ImageManifest(
        digest=digest,
        media_type=media_type,
        config=document.config,
        layers=tuple(document.layers),
        artifact_type=document.artifact_type or document.config.media_type,
        subject=document.subject,
        annotations=annotations,
        raw=raw,
    )


def manifest_bytes(
    config: Descriptor,
    layers: tuple[Descriptor, ...],
    *,
    artifact_type: str = "",
    subject: Descriptor | None = None,
    annotations: Mapping[str, str] | None = None,
) -> bytes:
    """An OCI manifest, the same bytes for the same parts."""
    document: dict[str, Any] = {"schemaVersion": 2, "mediaType": OCI_MANIFEST}
    if artifact_type:
        document["artifactType"] = artifact_type
    document |= {"config": config, "layers": layers}
    if subject is not None:
        document["subject"] = subject
    if annotations:
        document["annotations"] = dict(sorted(annotations.items()))
    return msgspec.json.encode(document)


def _check_kind(document: _Document, media_type: str, place: str) -> None:
    if document.schema_version != 2:
        raise BadAnswer(place, f"the manifest has schema version {document.schema_version}; 2 is expected")
    if media_type not in MANIFESTS + INDEXES:
        raise BadAnswer(place, f"the manifest has the unknown media type {media_type[:100]!r}")
    if document.media_type and document.media_type != media_type:
        said = document.media_type[:100]
        raise BadAnswer(place, f"the manifest calls itself {said!r}, but was sent as {media_type!r}")
    both = document.manifests is not None and (document.layers is not None or document.config is not None)
    if both or (document.manifests is not None) != (media_type in INDEXES):
        raise BadAnswer(place, f"the manifest is not what its media type {media_type!r} says")


def _check_descriptors(descriptors: list[Descriptor], place: str) -> None:
    for descriptor in descriptors:
        try:
            parse_digest(descriptor.digest)
        except BadDigest as error:
            raise BadAnswer(place, f"the manifest holds a bad descriptor: {error}") from None
        if descriptor.size < 0:
            raise BadAnswer(place, f"the manifest says that {descriptor.digest} has {descriptor.size} bytes")


def _check_number(descriptors: list[Descriptor], most: int, what: str, place: str) -> None:
    if len(descriptors) > most:
        raise BadAnswer(place, f"lists {len(descriptors)} {what}; {most} are allowed")


# Helm charts as OCI artifacts (Helm community, hips/hip-0006.md): one config, one layer with the tgz, perhaps its
# provenance.
CHART_CONFIG = "application/vnd.cncf.helm.config.v1+json"
CHART_CONTENT = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
_LEGACY_CONTENT = "application/tar+gzip"
_PROVENANCE = "application/vnd.cncf.helm.chart.provenance.v1.prov"


class ChartArtifact(msgspec.Struct, frozen=True, kw_only=True):
    """A chart with the digest that pins it."""

    digest: Digest
    """The digest of the manifest: `name@digest` gives exactly this again."""
    content: bytes
    """The chart's tgz."""
    provenance: bytes | None
    """The signature file, not verified here."""


def chart_layers(manifest: ImageManifest, place: str) -> tuple[Descriptor, Descriptor | None]:
    """The layer of the tgz, and that of the provenance. Raises BadAnswer when this is no chart."""
    if manifest.config.media_type != CHART_CONFIG:
        raise BadAnswer(place, f"is no Helm chart: its config has the media type {manifest.config.media_type[:100]!r}")
    content = [layer for layer in manifest.layers if layer.media_type in (CHART_CONTENT, _LEGACY_CONTENT)]
    provenance = [layer for layer in manifest.layers if layer.media_type == _PROVENANCE]
    if len(content) != 1 or len(provenance) > 1:
        found = f"{len(content)} chart and {len(provenance)} provenance layers"
        raise BadAnswer(place, f"is no Helm chart: it has {found} instead of one, and one at most")
    return content[0], provenance[0] if provenance else None
